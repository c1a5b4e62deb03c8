"""Figures of recovered label distributions: compared with annotators, and their calibration."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import cycle

import numpy as np

from ...base.arrays import Floats
from ...pages.charts import BLUE, COLOURS, ORANGE, Figure, chart, colour, diagonal, number, share
from .base import entropy, reliability, shares_of

_ANNOTATORS, _RECOVERED = "annotators", "recovered"
_ROW_HEIGHT = 22
_WHITE = {"background": "white"}


def splits_figure(
    p: Floats,
    votes: Floats,
    *,
    items: Sequence[str],
    classes: Sequence[str],
    most: int = 12,
    columns: int = 4,
) -> Figure:
    """Return annotated and recovered label shares side by side, by rising disagreement.

    Parameters
    ----------
    p, votes
        Recovered distributions, and vote counts: (item, class).
    items, classes
        Names; of an item perhaps its text.
    most
        Number of items, evenly spaced from least to most disagreement.
    columns
        Items in a row.
    """
    q = shares_of(votes)
    order = np.argsort(entropy(q) + 1e-6 * entropy(p), kind="stable")
    sample = order[np.unique(np.linspace(0, len(order) - 1, min(most, len(order))).astype(int))]
    titles = [f"{number}. {_short(str(items[item]))}" for number, item in enumerate(sample, 1)]
    rows = [
        {"item": title, "class": str(name), "share": round(float(of[item, k]), 6), "of": source}
        for title, item in zip(titles, sample, strict=True)
        for source, of in ((_ANNOTATORS, q), (_RECOVERED, p))
        for k, name in enumerate(classes)
    ]
    sources = {_ANNOTATORS: BLUE, _RECOVERED: ORANGE}
    y = {"field": "class", "type": "nominal", "sort": list(classes), "title": None}
    encoding = {
        "y": {**y, "axis": {"labelLimit": 80}},
        "yOffset": {"field": "of", "sort": list(sources)},
        "x": {**share("share", None), "axis": {"format": ".0%", "tickCount": 3}},
        "color": {**colour("of", sources), "sort": list(sources)},
    }
    header = {"labelLimit": 150, "labelAnchor": "start", "labelFontSize": 10}
    facet = {"field": "item", "type": "nominal", "sort": titles, "title": None, "header": header}
    height = max(_ROW_HEIGHT * len(classes), 2 * _ROW_HEIGHT)
    bars = {"width": 110, "height": height, "mark": {"type": "bar", "tooltip": True}}
    spec = chart(
        rows, columns=columns, facet=facet, spec=bars | {"encoding": encoding}, config=_WHITE
    )
    del spec["width"]
    per_item = float(np.asarray(votes).sum(axis=1).mean())
    words = (
        f"Label shares of the annotators ({per_item:.1f} per item) and recovered ones, of "
        f"{len(sample)} items from most to least agreement."
    )
    return Figure("Annotated and recovered label shares", words, spec)


def reliability_figure(predicted: Mapping[str, Floats], votes: Floats, bins: int = 10) -> Figure:
    """Return a reliability diagram with a line for every method."""
    q = shares_of(votes)
    tables = {name: reliability(p, q, bins) for name, p in predicted.items()}
    rows = [
        {"method": name, "predicted": float(x), "observed": float(y), "pairs": int(size)}
        for name, table in tables.items()
        for x, y, size in zip(table.predicted, table.observed, table.size, strict=True)
        if size
    ]
    palette = dict(zip(predicted, cycle(COLOURS), strict=False))
    x = share("predicted", "recovered share of a class")
    y = share("observed", "share of the annotators")
    lines = colour("method", palette, columns=3, labelLimit=220)
    if len(predicted) == 1:
        lines["legend"] = None
    encoding = {"x": x, "y": y, "color": {**lines, "sort": list(predicted)}}
    legend = {"title": "items × classes", "tickCount": 3}
    size = number("pairs", scale={"range": [12, 260]}, legend=legend)
    circles = {"type": "circle", "opacity": 1, "tooltip": True}
    layers = [
        diagonal(x, y),
        {"mark": {"type": "line", "strokeWidth": 1.5}, "encoding": encoding},
        {"mark": circles, "encoding": {**encoding, "size": size}},
    ]
    spec = chart(rows, height=320, layer=layers, config=_WHITE) | {"width": 320}
    errors = ", ".join(f"{name} {table.error:.3f}" for name, table in tables.items())
    words = f"Mean label share in bins of the recovered share; mean absolute difference: {errors}."
    return Figure("Reliability of recovered shares", words, spec)


def _short(text: str) -> str:
    text = " ".join(text.split())
    return text if len(text) <= 28 else f"{text[:27]}…"
