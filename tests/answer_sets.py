"""Small sets of answers of every kind, drawn with known truth."""

from typing import Any

import numpy as np

from dissensus.answers import Boxes, Masks, Points, Spans

Rows = list[tuple[Any, ...]]


def span_rows(rng: np.random.Generator, *, long: bool = False) -> Rows:
    """Return rows of item, annotator, start, end, label."""
    rows: Rows = []
    rate = rng.beta(8, 2, 6)
    for item in range(25):
        start = np.arange(rng.integers(0, 4)) * 60 + rng.integers(5, 15)
        for j in rng.choice(6, 4, replace=False):
            rows.append((f"t{item}", f"w{j}", None, None, None))
            for k, first in enumerate(start):
                if rng.random() < rate[j]:
                    off = rng.integers(-3, 4, 2) if long else (rng.random(2) < 0.1)
                    label = "XY"[k % 2] if rng.random() < 0.9 else "XY"[1 - k % 2]
                    length = 30 if long else 3
                    rows.append(
                        (f"t{item}", f"w{j}", first + off[0], first + length + off[1], label)
                    )
            if rng.random() < 0.2:
                rows.append((f"t{item}", f"w{j}", 250 + 9 * j, 252 + 9 * j, "X"))
    return rows


def box_rows(rng: np.random.Generator) -> Rows:
    """Return rows of item, annotator, x, y, w, h."""
    rows: Rows = []
    rate = rng.beta(8, 2, 6)
    for item in range(20):
        true = np.column_stack(
            [np.arange(3) * 150.0, rng.uniform(0, 400, 3), rng.uniform(40, 100, (3, 2))]
        )[: rng.integers(0, 4)]
        for j in rng.choice(6, 5, replace=False):
            rows.append((f"i{item}", f"w{j}", None, None, None, None))
            for box in true:
                if rng.random() < rate[j]:
                    rows.append((f"i{item}", f"w{j}", *(box + rng.normal(0, 3, 4)).round(2)))
            if rng.random() < 0.2:
                rows.append((f"i{item}", f"w{j}", *rng.uniform(500, 900, 2).round(2), 30.0, 30.0))
    return rows


def mask_rows(rng: np.random.Generator) -> Rows:
    """Return rows of item, annotator, counts of images of 12 × 10 pixels."""
    rows: Rows = []
    for item in range(8):
        middle = rng.uniform(3, 8, 2)
        for j in range(5):
            y, x = np.mgrid[:12, :10]
            away = np.hypot(y - middle[0], x - middle[1]) + rng.normal(0, 0.4, (12, 10))
            flat = (away < 3 + rng.normal(0, 0.3)).T.ravel()
            change = np.flatnonzero(np.diff(flat, prepend=False))
            runs = np.diff(np.append(change, len(flat)), prepend=0)
            rows.append((f"m{item}", f"w{j}", " ".join(map(str, runs))))
    return rows


def drawn(kind: str, seed: int = 0) -> Rows:
    rng = np.random.default_rng(seed)
    if kind == "masks":
        return mask_rows(rng)
    if kind == "spans":
        return span_rows(rng)
    rows = box_rows(rng)
    return rows if kind == "boxes" else [row[:4] for row in rows]


def made(kind: str, rows: Rows) -> Any:
    """Return answers from rows."""
    columns = [list(column) for column in zip(*rows, strict=True)]
    if kind == "masks":
        return Masks.from_columns(*columns, size=dict.fromkeys(columns[0], (12, 10)))
    return {"spans": Spans, "boxes": Boxes, "points": Points}[kind].from_columns(*columns)
