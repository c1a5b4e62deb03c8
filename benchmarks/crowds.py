"""Simulated crowds of several sizes, drawn once and kept in `out/`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from measure import fresh

if TYPE_CHECKING:
    from dissensus import Annotations

__all__ = ["OUT", "SIZES", "Size", "draw", "load", "stored"]

OUT = Path(__file__).parent / "out"


class Size(NamedTuple):
    """How large a crowd is."""

    items: int
    annotators: int
    per_item: int
    classes: int

    @property
    def answers(self) -> int:
        """How many labels are given."""
        return self.items * self.per_item


SIZES = {
    "S": Size(1_000, 50, 10, 5),
    "SM": Size(10_000, 100, 10, 10),
    "M": Size(100_000, 1_000, 10, 10),
    "L": Size(1_000_000, 10_000, 10, 10),
    "XL": Size(10_000_000, 100_000, 10, 10),
    # Few items, each with very many votes.
    "20 × 1000": Size(20, 1_000, 1_000, 5),
    "100 × 1000": Size(100, 1_000, 1_000, 5),
    "20 × 100000": Size(20, 100_000, 100_000, 5),
}


def stored(name: str) -> str:
    """Return the file of a crowd, which is drawn if it is not there."""
    path = OUT / f"crowd-{name.replace(' × ', '-by-')}.npz"
    if not path.exists():
        found = fresh("crowds:draw", size=SIZES[name], path=str(path))
        if "failed" in found:
            raise SystemExit(f"crowd {name}: {found['failed']}")
    return str(path)


def draw(size: list[int], path: str | None = None) -> dict[str, Any]:
    """Draw a crowd, perhaps keep it, and return how long it took."""
    from time import perf_counter

    from dissensus import simulate

    n_items, n_annotators, per_item, n_classes = size
    start = perf_counter()
    drawn = simulate(
        "independent-confusion",
        n_items=n_items,
        n_annotators=n_annotators,
        n_classes=n_classes,
        feedback=per_item,
        workerload=max(n_items, per_item),  # it limits labels per item, too
        fast=True,
    )
    seconds = perf_counter() - start
    if len(drawn.annotations) != n_items * per_item:
        raise ValueError(f"{len(drawn.annotations)} answers instead of {n_items * per_item}")
    if path is not None:
        annotations, truth = drawn.annotations, drawn.truth.astype(np.uint8)
        shape = [annotations.n_items, annotations.n_annotators, annotations.n_classes]
        draft = Path(path).with_suffix(".part.npz")
        draft.parent.mkdir(exist_ok=True)
        np.savez(
            draft,
            index=annotations.index,
            annotator=annotations.annotator,
            label=annotations.label,
            truth=truth,
            shape=shape,
        )
        draft.rename(path)
    return {"seconds": seconds, "answers": len(drawn.annotations)}


def load(path: str, *, binary: bool = False) -> tuple[Annotations, np.ndarray[Any, Any]]:
    """Return annotations and truth of a stored crowd; binary, with classes folded into two."""
    from dissensus import Annotations

    with np.load(path) as kept:
        columns = {name: kept[name] for name in ("index", "annotator", "label")}
        truth = kept["truth"]
        sizes = kept["shape"].tolist()
    if binary:
        columns["label"], truth, sizes[2] = columns["label"] % 2, truth % 2, 2
    items, annotators, classes = (np.arange(size).astype(np.dtypes.StringDType()) for size in sizes)
    return Annotations(items=items, annotators=annotators, classes=classes, **columns), truth
