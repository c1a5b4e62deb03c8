"""Pictures of the labels: how common classes are, how sure labels are, and how often right."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ..identification.proportions import proportion
from ..result import gold_codes
from .charts import BLUE, GREY, ORANGE, PERCENT, Figure, chart, share_bars
from .sentences import percent
from .summary import SURE

if TYPE_CHECKING:
    from .report import Report

__all__ = ["calibration_figure", "classes_figure", "confidence_figure"]

_MOST_CLASSES = 40
_BINS = 20


def classes_figure(report: Report) -> Figure:
    """Return how common every class is, among labels given and labels inferred."""
    annotations, result = report.annotations, report.result
    given = np.bincount(annotations.label, minlength=annotations.n_classes) / max(
        len(annotations), 1
    )
    label = result.label[result.label >= 0]
    inferred = np.bincount(label, minlength=annotations.n_classes) / max(len(label), 1)
    order = np.argsort(-inferred, kind="stable")[:_MOST_CLASSES]
    names = [annotations.classes[position] for position in order.tolist()]
    shares = {
        "labels given": given[order].tolist(),
        "labels inferred": inferred[order].tolist(),
    }
    spec = share_bars(names, shares, [GREY, BLUE])
    top = names[0] if names else "none"
    some = (
        "" if len(names) == annotations.n_classes else f" The {len(names)} most common are shown."
    )
    words = (
        f"The most common class is {top}: {percent(float(inferred.max(initial=0)))} of the items."
    )
    numbers = (
        ("class", "labels given", "labels inferred"),
        *(
            (
                annotations.classes[position],
                percent(float(given[position])),
                percent(float(inferred[position])),
            )
            for position in order.tolist()
        ),
    )
    return Figure("Classes, before and after", words + some, spec, numbers)


def confidence_figure(report: Report) -> Figure:
    """Return how many items are held with which belief."""
    annotations = report.annotations
    posterior = report.result.confidence[annotations.labels_per_item > 0]
    edges = np.linspace(0, 1, _BINS + 1).round(6)
    position = np.minimum((np.clip(posterior, 0, 1) * _BINS + 1e-9).astype(int), _BINS - 1)
    count = np.bincount(position, minlength=_BINS).tolist()
    rows = [
        {
            "from": float(edges[k]),
            "to": float(edges[k + 1]),
            "items": count[k],
            "what": _SECOND if edges[k] < SURE - 1e-9 else _ENOUGH,
        }
        for k in range(_BINS)
    ]
    spec = chart(
        rows,
        height=200,
        mark={"type": "bar", "tooltip": True},
        encoding={
            "x": {
                "field": "from",
                "type": "quantitative",
                "bin": {"binned": True, "step": 1 / _BINS},
                "title": "belief in the label",
                "axis": PERCENT,
                "scale": {"domain": [0, 1]},
            },
            "x2": {"field": "to"},
            "y": {"field": "items", "type": "quantitative", "title": "items"},
            "color": {
                "field": "what",
                "type": "nominal",
                "title": None,
                "scale": {"domain": [_SECOND, _ENOUGH], "range": [ORANGE, BLUE]},
                "legend": {"orient": "top"},
            },
        },
    )
    below = float((posterior < SURE).mean()) if len(posterior) else 0.0
    numbers = (
        ("belief in the label", "items"),
        *(
            (f"{percent(row['from'])} to {percent(row['to'])}", str(row["items"]))
            for row in rows
            if row["items"]
        ),
    )
    words = f"The belief is below {SURE:.0%} for {percent(below)} of the items."
    return Figure("How sure the labels are", words, spec, numbers)


_SECOND, _ENOUGH = "a second look", "sure enough"


def calibration_figure(report: Report) -> Figure | None:
    """Return how often labels that are held with some belief are right."""
    annotations, result = report.annotations, report.result
    classes, items = set(annotations.classes.tolist()), set(annotations.items.tolist())
    known = {i: label for i, label in report.truth.items() if label in classes and i in items}
    truth = gold_codes(annotations, known)
    if truth is None:
        return None
    scored = np.flatnonzero((truth >= 0) & (result.label >= 0))
    if not len(scored):
        return None
    posterior, right = result.confidence[scored], (result.label == truth)[scored]
    position = np.minimum((posterior * 10).astype(int), 9)
    size = np.bincount(position, minlength=10).astype(float)
    mean = np.bincount(position, posterior, minlength=10)
    share = proportion(np.bincount(position, right, minlength=10).astype(float), size, 0.95)
    rows = [
        {
            "belief": float(mean[k] / size[k]),
            "right": float(share.value[k]),
            "low": float(share.low[k]),
            "high": float(share.high[k]),
            "items": int(size[k]),
        }
        for k in np.flatnonzero(size).tolist()
    ]
    whole = {"axis": PERCENT, "scale": {"domain": [0, 1]}, "type": "quantitative"}
    x = {"field": "belief", "title": "belief in the label", **whole}
    y = {"title": "really right", **whole}
    diagonal = {"values": [{"belief": 0, "right": 0}, {"belief": 1, "right": 1}]}
    spec = chart(
        rows,
        height=240,
        layer=[
            {
                "data": diagonal,
                "mark": {"type": "line", "strokeDash": [4, 4], "color": GREY},
                "encoding": {"x": x, "y": {**y, "field": "right"}},
            },
            {
                "mark": {"type": "rule", "color": BLUE},
                "encoding": {"x": x, "y": {**y, "field": "low"}, "y2": {"field": "high"}},
            },
            {
                "mark": {"type": "circle", "size": 70, "color": BLUE, "opacity": 1, "clip": False},
                "encoding": {"x": x, "y": {**y, "field": "right"}, "tooltip": _TOLD},
            },
        ],
    )
    numbers = (
        ("belief", "really right", "95% interval", "items"),
        *(
            (
                percent(row["belief"]),
                percent(row["right"]),
                f"{percent(row['low'])} to {percent(row['high'])}",
                str(row["items"]),
            )
            for row in rows
        ),
    )
    words = "Dots on the dashed line: labels are right as often as they are believed to be."
    return Figure("Belief and truth", words, spec, numbers)


_TOLD: list[dict[str, Any]] = [
    {"field": "belief", "format": ".1%"},
    {"field": "right", "format": ".1%"},
    {"field": "items"},
]
