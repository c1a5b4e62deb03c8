"""A view of a small task: its items in the plane, with true classes, votes, and classes after EM.

Embeddings have tens or hundreds of features. t-SNE arranges the items in the plane so that
neighbours stay neighbours; distances between far groups, and the axes, mean nothing.

    L. van der Maaten, G. Hinton. Visualizing data using t-SNE. JMLR 9, 2008.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import cycle
from typing import Any, NamedTuple

import numpy as np

from ...base.arrays import Array, Floats, Integers
from ...base.names import as_names
from ...base.storage import as_rows
from ...base.tables import Drawable, Table
from ...pages.charts import COLOURS, GREY, Figure, chart, colour, number, tooltip

_PERPLEXITY = 30.0  # most; of few items a third of them
_SIDE = 190  # pixels of a panel
_STAGES = 4  # panels of inferred classes
_TRUE, _OPEN = "true classes", "undecided"


class Stage(NamedTuple):
    """Probabilities of the classes of all items at one time."""

    name: str
    probability: Floats  # (item, class)


@dataclass(frozen=True, eq=False, repr=False)
class EmbeddingView(Drawable):
    """Items of a task in the plane, with their true and inferred classes.

    Attributes
    ----------
    items, classes
        Names.
    position
        (item, 2).
    labelled
        Whether an item has annotations: (item).
    stages
        Inferred classes, from the votes to those after the last step.
    truth
        Codes of the true classes, -1 where unknown: (item).
    """

    items: Array
    classes: Array
    position: Floats
    labelled: Array
    stages: tuple[Stage, ...]
    truth: Integers

    def inferred(self, stage: Stage) -> Integers:
        """Return the most probable class of every item, -1 where several are: (item)."""
        best = stage.probability.max(axis=1, keepdims=True)
        tied = (stage.probability >= best - 1e-9).sum(axis=1) > 1
        return np.where(tied, -1, stage.probability.argmax(axis=1))

    def accuracy(self, stage: Stage) -> float:
        """Return the share of items with labels whose known class is inferred; NaN without any."""
        scored = self.labelled & (self.truth >= 0)
        right = self.inferred(stage)[scored] == self.truth[scored]
        return float(right.mean()) if scored.any() else float("nan")

    def name_of(self, code: Integers) -> Array:
        """Return names of classes, empty for -1."""
        return as_names(["", *self.classes.tolist()])[code + 1]

    def _chart(self) -> tuple[Figure | None, str]:
        return embedding_figure(self), ""

    def _table(self) -> Table:
        columns = {"item": self.items, "x": self.position[:, 0], "y": self.position[:, 1]}
        columns |= {"labelled": self.labelled, "truth": self.name_of(self.truth)}
        classes = {stage.name: self.name_of(self.inferred(stage)) for stage in self.stages}
        return columns | classes

    def __repr__(self) -> str:
        return (
            f"<EmbeddingView: {len(self.items)} items, {len(self.classes)} classes, "
            f"{len(self.stages)} stages>"
        )


def in_plane(vectors: Floats, seed: int = 0) -> Floats:
    """Return positions by t-SNE: (item, 2).

    >>> in_plane(np.repeat(np.eye(2), 5, axis=0)).shape
    (10, 2)
    """
    from sklearn.manifold import TSNE  # type: ignore[import-untyped]

    n_items = len(vectors)
    if n_items < 3 or not np.ptp(vectors, axis=0).any():  # no neighbours to keep
        return np.stack([np.arange(n_items), np.zeros(n_items)], axis=1)
    perplexity = min(_PERPLEXITY, (n_items - 1) / 3)
    tsne = TSNE(perplexity=perplexity, init="random", random_state=seed)
    return tsne.fit_transform(vectors.astype(np.float64)).astype(np.float64)


def stage_names(n_steps: int) -> Sequence[str]:
    """Return the names of the stages.

    >>> stage_names(2)
    ['votes', 'step 1', 'step 2']
    """
    return ["votes", *(f"step {step}" for step in range(1, n_steps + 1))]


def embedding_figure(view: EmbeddingView) -> Figure:
    """Return a panel of the true classes, where known, and panels of the inferred ones."""
    classes = view.classes.tolist()
    codes = {stage.name: view.inferred(stage) for stage in view.stages}
    has_truth = bool((view.labelled & (view.truth >= 0)).any())
    titles, rows = [], []
    if has_truth:
        titles.append(_TRUE)
        rows += _rows(view, _TRUE, view.truth, np.ones(len(view.items)))
    for index in np.unique(np.linspace(0, len(view.stages) - 1, _STAGES).round().astype(int)):
        stage = view.stages[index]
        title = "votes, before EM" if index == 0 else f"after {stage.name}"
        title += f": {view.accuracy(stage):.0%} right" if has_truth else ""
        titles.append(title)
        rows += _rows(view, title, codes[stage.name], stage.probability.max(axis=1))
    palette = dict(zip(classes, cycle(COLOURS), strict=False)) | {_OPEN: GREY}
    hidden: dict[str, Any] = {"axis": None, "scale": {"zero": False}}
    shape = {
        "field": "labels",
        "type": "nominal",
        "title": None,
        "scale": {"domain": ["with labels", "without"], "range": ["circle", "triangle-up"]},
        "legend": {"orient": "top"} if not view.labelled.all() else None,
    }
    encoding = {
        "x": number("x", **hidden),
        "y": number("y", **hidden),
        "color": colour("class", palette, columns=8, symbolOpacity=1),
        "shape": shape,
        "tooltip": tooltip(item="", **{"class": ""}, probability=".0%", truth=""),
    }
    opacity = number("probability", scale={"domain": [0, 1], "range": [0.2, 1]}, legend=None)
    wrong = {"value": None, "condition": {"test": "datum.wrong", "value": "black"}}
    points = {
        "width": _SIDE,
        "height": _SIDE,
        "mark": {"type": "point", "filled": True, "size": 55, "strokeWidth": 1.5},
        "encoding": {**encoding, "opacity": opacity, "stroke": wrong},
    }
    header = {"labelAnchor": "start", "labelLimit": _SIDE}
    facet = {"field": "panel", "type": "nominal", "sort": titles, "title": None, "header": header}
    spec = chart(rows, columns=3, facet=facet, spec=points)
    del spec["width"]
    caption = (
        f"{len(view.items)} items, neighbours in the embedding next to each other (t-SNE; axes and "
        "far distances mean nothing). Fainter: less probable"
    )
    caption += "; ringed: wrong; right: of the items with labels." if has_truth else "."
    return Figure("Classes in the embedding", caption, spec)


def _rows(
    view: EmbeddingView, panel: str, code: Integers, probability: Floats
) -> list[dict[str, Any]]:
    """Return the items of a panel."""
    name = view.name_of(code)
    name[code < 0] = _OPEN
    columns = {
        "item": view.items,
        "x": view.position[:, 0],
        "y": view.position[:, 1],
        "labels": np.where(view.labelled, "with labels", "without"),
        "class": name,
        "probability": probability,
        "truth": view.name_of(view.truth),
        "wrong": (view.truth >= 0) & (code >= 0) & (code != view.truth),
        "panel": np.full(len(code), panel),
    }
    return as_rows(columns)
