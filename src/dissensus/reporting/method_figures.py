"""Figures of methods side by side, and of the accuracy expected from further labels."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from .charts import BLUE, PERCENT, Figure, chart, dots, number, tooltip

if TYPE_CHECKING:
    from ..comparison import Comparison
    from ..planning import Plan

_SPENT = {"cost": "cost of the labels to come", "labels": "further labels"}


def methods_figure(comparison: Comparison | None) -> Figure | None:
    """Return methods as dots with intervals: accuracy if known, else distance to the best."""
    if comparison is None:
        return None
    known = all(one.evaluation is not None for one in comparison.methods)
    if not known and not comparison.n_scored:
        return None
    rows = []
    for one in comparison.methods:
        score = one.evaluation.scores.get("accuracy") if known and one.evaluation else None
        reach = 2 * one.error if math.isfinite(one.error) else 0.0
        bounds = (-one.gap, -one.gap - reach, -one.gap + reach)
        if score is not None:
            bounds = (score.value, score.low, score.high)
        rows.append({"method": one.method, **dict(zip(_BOUNDS, bounds, strict=True))})
    title = "items labelled right" if known else "log-likelihood of held-out labels, to the best"
    axis = {**(PERCENT if known else {"tickCount": 6}), "labelFlush": False}
    x = number("value", title, scale={"zero": False}, axis=axis)
    order = [row["method"] for row in rows]
    y = {"field": "method", "type": "nominal", "sort": order, "title": "method"}
    shown = tooltip(method="", **dict.fromkeys(_BOUNDS, ".1%" if known else ".4f"))
    layers = dots(x, {**y, "axis": {"labelLimit": 200}}, shown, along="x", color=BLUE, opacity=1)
    spec = chart(rows, height=max(26 * len(rows), 60), layer=layers)
    words = (
        "Share of items labelled right, with 95% intervals."
        if known
        else "Mean log-likelihood of held-out labels less that of the best, ± 2 standard errors."
    )
    return Figure("Comparison of methods", words, spec)


_BOUNDS = ("value", "low", "high")


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
    shown = tooltip(labels="", cost=",.6~g", accuracy=".1%", low=".1%", high=".1%")
    layers: list[dict[str, Any]] = [
        {
            "mark": {"type": "area", "opacity": 0.2, "color": BLUE},
            "encoding": {"x": x, "y": {**y, "field": "low"}, "y2": {"field": "high"}},
        },
        {
            "mark": {"type": "line", "point": {"color": BLUE}, "color": BLUE},
            "encoding": {"x": x, "y": y, "tooltip": shown},
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
