"""Figures: methods side by side, expected accuracy of further labels, confidences, annotators."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from ..base.arrays import Floats
from ..pages import charts
from ..pages.charts import (
    BLUE,
    ORANGE,
    PERCENT,
    VERDICT_COLOURS,
    Figure,
    chart,
    dots,
    number,
    tooltip,
)
from ..pages.sections import CONFIDENT
from ..pages.wording import percent
from .aggregation import ClassAggregation

if TYPE_CHECKING:
    from ..planning import Plan
    from ..quality import AnnotatorScores
    from .comparison import Comparison

_SPENT = {"cost": "cost of the labels to come", "labels": "further labels"}
_BOUNDS = ("value", "low", "high")
_BINS = 20
_TITLE = "How far answers follow the items"
_FOLLOWS = "follows (correlation with the others)"
_REVIEW = "less certain"
_CONFIDENT = "certain"


def methods_figure(comparison: Comparison | None) -> Figure | None:
    """Return methods as dots with intervals: accuracy if known, else distance to the best."""
    if comparison is None:
        return None
    has_truth = all(method.evaluation is not None for method in comparison.methods)
    if not has_truth and not comparison.n_scored:
        return None
    rows = []
    for row in comparison.methods:
        score = row.evaluation.scores.get("accuracy") if has_truth and row.evaluation else None
        reach = 2 * row.error if math.isfinite(row.error) else 0.0
        bounds = (-row.gap, -row.gap - reach, -row.gap + reach)
        if score is not None:
            bounds = (score.value, score.low, score.high)
        rows.append({"method": row.method, **dict(zip(_BOUNDS, bounds, strict=True))})
    title = (
        "items labelled right" if has_truth else "log-likelihood of held-out labels, to the best"
    )
    axis = {**(PERCENT if has_truth else {"tickCount": 6}), "labelFlush": False}
    x = number("value", title, scale={"zero": False}, axis=axis)
    order = [point["method"] for point in rows]
    y = {"field": "method", "type": "nominal", "sort": order, "title": "method"}
    hover = tooltip(method="", **dict.fromkeys(_BOUNDS, ".1%" if has_truth else ".4f"))
    layers = dots(x, {**y, "axis": {"labelLimit": 200}}, hover, along="x", color=BLUE, opacity=1)
    spec = chart(rows, height=max(26 * len(rows), 60), layer=layers)
    words = (
        "Share of items labelled right, with 95% intervals."
        if has_truth
        else "Mean log-likelihood of held-out labels less that of the best, ± 2 standard errors."
    )
    return Figure("Comparison of methods", words, spec)


def curve_figure(plan: Plan) -> Figure | None:
    """Return expected accuracy against cost, with the advice in words."""
    if plan.curve is None:
        return None
    spec = curve_chart(plan)
    title = spec.pop("title")
    return Figure(title["text"], f"{plan.reason} The band is a 90% prediction interval.", spec)


def curve_chart(plan: Plan, spent: str = "cost") -> dict[str, Any]:
    """Return expected accuracy against `cost` or `labels`; the target is a dashed line."""
    x = number(spent, _SPENT[spent], axis={"tickCount": 6}, scale={"nice": False})
    axis = {"format": ".1~%", "tickCount": 6}
    y = number("accuracy", "expected accuracy", axis=axis, scale={"zero": False})
    hover = tooltip(labels="", cost=",.6~g", accuracy=".1%", low=".1%", high=".1%")
    layers: list[dict[str, Any]] = [
        {
            "mark": {"type": "area", "opacity": 0.2, "color": BLUE},
            "encoding": {"x": x, "y": {**y, "field": "low"}, "y2": {"field": "high"}},
        },
        {
            "mark": {"type": "line", "point": {"color": BLUE}, "color": BLUE},
            "encoding": {"x": x, "y": y, "tooltip": hover},
        },
    ]
    layers.append(
        {
            "data": {"values": [{"target": plan.target}]},
            "mark": {"type": "rule", "strokeDash": [6, 4]},
            "encoding": {"y": {**y, "field": "target"}},
        }
    )
    subtitle = [f"policy {plan.policy}; band: 90% prediction interval", plan.reason]
    return chart(
        [] if plan.curve is None else plan.curve.as_dict(),
        height=240,
        title={"text": "Expected accuracy", "subtitle": subtitle, "anchor": "start"},
        layer=layers,
    )


def confidence_figure(result: ClassAggregation) -> Figure | None:
    """Return how many items have which confidence; `None` where it cannot be told of any."""
    confidence = result.confidence[result.answers.labels_per_item > 0]
    if len(confidence) and np.isnan(confidence).all():
        return None
    confidence = confidence[~np.isnan(confidence)]
    return confidence_histogram(confidence, "labels", "confidence in the label", "items")


def annotators_figure(scores: AnnotatorScores, hint: str = "") -> Figure | None:
    """Return how far answers follow the items: intervals, or a histogram of many annotators."""
    follow = scores.basis.following
    defined = np.flatnonzero(~np.isnan(follow.correlation))
    if not len(defined):
        return None
    verdicts = scores.verdict_counts
    palette = {word: tone for word, tone in VERDICT_COLOURS.items() if word in verdicts}
    words = ", ".join(f"{word} {count}" for word, count in verdicts.items())
    words = f"Number of annotators by verdict: {words}."
    if len(defined) < sum(verdicts.values()):
        words += " Those whose correlation is undefined are not shown."
    columns = {
        "annotator": scores.annotations.annotators[defined],
        "labels": scores.behaviour.labels[defined].astype(int),
        "follows": follow.correlation[defined],
        "low": follow.low[defined],
        "high": follow.high[defined],
        "verdict": scores.verdict[defined],
    }
    spec = charts.verdicts_chart(columns, palette, "follows", _FOLLOWS, 0.1)
    if charts.has_names(defined):
        words += f" Lines are 95% intervals{hint}."
    return Figure(_TITLE, words, spec)


def confidence_histogram(confidence: Floats, of: str, axis: str, rows_of: str) -> Figure:
    """Return how many rows have which confidence."""
    edges = np.linspace(0, 1, _BINS + 1).round(6)
    index = np.minimum((np.clip(confidence, 0, 1) * _BINS + 1e-9).astype(int), _BINS - 1)
    counts = np.bincount(index, minlength=_BINS)
    spec = charts.histogram(edges, counts, axis, axis=PERCENT, scale={"domain": [0, 1]})
    spec["encoding"]["y"]["title"] = rows_of
    rows: list[dict[str, Any]] = spec["data"]["values"]
    for row in rows:
        row["kind"] = _REVIEW if row["from"] < CONFIDENT - 1e-9 else _CONFIDENT
    spec["encoding"]["color"] = charts.colour("kind", {_REVIEW: ORANGE, _CONFIDENT: BLUE})
    below = float((confidence < CONFIDENT).mean()) if len(confidence) else 0.0
    numbers = [
        (f"{percent(row['from'])} to {percent(row['to'])}", str(row["items"]))
        for row in rows
        if row["items"]
    ]
    words = f"Confidence is below {CONFIDENT:.0%} for {percent(below)} of the {rows_of}."
    return Figure(f"Confidence in the {of}", words, spec, ((axis, rows_of), *numbers))
