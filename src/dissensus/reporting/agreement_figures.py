"""Pictures of agreement: what the crowd confuses with what, and annotators two by two."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from .charts import Figure, chart, pairs_chart
from .sentences import percent

if TYPE_CHECKING:
    from ..agreement import Clusters, Pairs
    from .report import Report

__all__ = ["confusion_figure", "pairs_figure"]

_MOST_CLASSES = 40
_WRITTEN = 12  # classes up to which shares stand in the cells
_UPRIGHT = 60  # letters of all classes up to which their names stand upright
_NAMED = 10  # pairs of annotators in the table


def confusion_figure(report: Report) -> Figure | None:
    """Return what all annotators together make of every class."""
    annotations = report.annotations
    if not 2 <= annotations.n_classes <= _MOST_CLASSES:
        return None
    matrix = report.crowd_confusion
    names = annotations.classes.tolist()
    span = range(len(names))
    turned = max(map(len, names)) * len(names) > _UPRIGHT
    rows = [
        {"true": names[true], "given": names[given], "share": round(float(matrix[true, given]), 4)}
        for true in span
        for given in span
    ]
    x = {
        "field": "given",
        "type": "nominal",
        "sort": names,
        "axis": {"labelLimit": 140, "title": "label given", "grid": False}
        | {"labelAngle": -40 if turned else 0},
    }
    y = {
        "field": "true",
        "type": "nominal",
        "sort": names,
        "axis": {"labelLimit": 140, "title": "inferred label", "grid": False},
    }
    colour = {
        "field": "share",
        "type": "quantitative",
        "title": "share",
        "scale": {"domain": [0, 1], "range": ["#eef4fc", "#0b3d91"]},
        "legend": {"format": ".0%"},
    }
    cells = {
        "mark": {"type": "rect", "tooltip": {"content": "data"}},
        "encoding": {"x": x, "y": y, "color": colour},
    }
    shares = {
        "mark": {"type": "text", "fontSize": 11, "tooltip": {"content": "data"}},
        "encoding": {
            "x": x,
            "y": y,
            "text": {"field": "share", "type": "quantitative", "format": ".0%"},
            "color": {
                "condition": {"test": "datum.share > 0.5", "value": "#ffffff"},
                "value": "#1b2330",
            },
        },
    }
    few = len(names) <= _WRITTEN
    spec = chart(
        rows,
        height=max(len(names) * (32 if few else 18), 100),
        layer=[cells, shares] if few else [cells],
    )
    wrong = np.where(np.eye(len(names), dtype=bool), 0, matrix)
    true, given = np.unravel_index(wrong.argmax(), wrong.shape)
    words = (
        f"The most frequent mistake: {percent(float(wrong.max()))} of the labels on items of "
        f"class {names[int(true)]} say {names[int(given)]}."
    )
    numbers = (
        ("inferred ↓ given →", *names),
        *((names[k], *(percent(float(share)) for share in matrix[k])) for k in span),
    )
    return Figure("What is confused with what", words, spec, numbers if few else ())


def pairs_figure(pairs: Pairs | None, clusters: Clusters | None) -> Figure | None:
    """Return annotators two by two, those who agree side by side."""
    if pairs is None or clusters is None:
        return None
    spec = pairs_chart(pairs, clusters)
    told = spec.pop("title")["subtitle"]
    groups = clusters.n_clusters
    words = (
        f"Annotators fall into {groups} groups who agree more with each other than with the rest."
        if groups > 1
        else "There are no groups of annotators who agree more with each other than with the rest."
    )
    known = np.flatnonzero(pairs.known)
    order = known[np.argsort(pairs.value[known], kind="stable")][:_NAMED]
    numbers = (
        ("least agreement", "with", "kappa", "common items"),
        *(
            (
                pairs.annotators[pairs.one[k]],
                pairs.annotators[pairs.other[k]],
                f"{pairs.value[k]:.2f}",
                f"{pairs.overlap[k]:.0f}",
            )
            for k in order.tolist()
        ),
    )
    return Figure("Annotators two by two", f"{words} Shown: {told}.", spec, numbers)
