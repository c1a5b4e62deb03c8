"""The items of a small task in the plane: true classes, votes, and classes after steps of EM."""

from __future__ import annotations

from itertools import cycle
from typing import Any

import numpy as np

from ...base.plain import as_rows
from ...base.arrays import Floats, Integers
from .sections import EmbeddingView
from ...pages.charts import COLOURS, GREY, Figure, chart, colour, number, tooltip

_SIDE = 190  # pixels of a panel
_STAGES = 4  # panels of inferred classes
_TRUE, _OPEN = "true classes", "undecided"


def embedding_figure(view: EmbeddingView) -> Figure:
    """Return a panel of the true classes, where known, and panels of the inferred ones."""
    classes = view.classes.tolist()
    codes = {stage.name: view.inferred(stage) for stage in view.stages}
    known = bool((view.labelled & (view.truth >= 0)).any())
    titles, rows = [], []
    if known:
        titles.append(_TRUE)
        rows += _rows(view, _TRUE, view.truth, np.ones(len(view.items)))
    for index in np.unique(np.linspace(0, len(view.stages) - 1, _STAGES).round().astype(int)):
        stage = view.stages[index]
        title = "votes, before EM" if index == 0 else f"after {stage.name}"
        title += f": {view.accuracy(stage):.0%} right" if known else ""
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
    words = (
        f"{len(view.items)} items, neighbours in the embedding next to each other (t-SNE; axes and "
        "far distances mean nothing). Fainter: less probable"
    )
    words += "; ringed: wrong; right: of the items with labels." if known else "."
    return Figure("Classes in the embedding", words, spec)


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
