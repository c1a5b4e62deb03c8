"""A picture of a budget: expected accuracy against what is spent, with its interval."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .charts import BLUE, chart

if TYPE_CHECKING:
    from ..planning import Plan

__all__ = ["curve_chart"]

_SPENT = {"cost": "cost of the labels to come", "labels": "further labels"}


def curve_chart(found: Plan, spent: str = "cost") -> dict[str, Any]:
    """Return the curve of a plan as a Vega-Lite specification; the target is a dashed line.

    What is spent is the `cost`, or the number of `labels`.
    """
    x = {
        "field": spent,
        "type": "quantitative",
        "title": _SPENT[spent],
        "axis": {"tickCount": 6},
        "scale": {"nice": False},
    }
    y = {
        "type": "quantitative",
        "title": "labels expected to be right",
        "axis": {"format": ".1~%", "tickCount": 6},
        "scale": {"zero": False},
    }
    told = [
        {"field": "labels", "title": "more labels"},
        {"field": "cost", "format": ",.6~g"},
        *({"field": name, "format": ".1%"} for name in ("accuracy", "low", "high")),
    ]
    layers: list[dict[str, Any]] = [
        {
            "mark": {"type": "area", "opacity": 0.2, "color": BLUE},
            "encoding": {"x": x, "y": {**y, "field": "low"}, "y2": {"field": "high"}},
        },
        {
            "mark": {"type": "line", "point": {"color": BLUE}, "color": BLUE},
            "encoding": {"x": x, "y": {**y, "field": "accuracy"}, "tooltip": told},
        },
    ]
    if found.target is not None:
        layers.append(
            {
                "data": {"values": [{"target": found.target}]},
                "mark": {"type": "rule", "strokeDash": [6, 4]},
                "encoding": {"y": {**y, "field": "target"}},
            }
        )
    under = [f"policy {found.policy}; nine in ten drawn futures lie in the band", found.reason]
    return chart(
        [] if found.curve is None else found.curve.as_dict(),
        height=240,
        title={"text": "Expected accuracy", "subtitle": under, "anchor": "start"},
        layer=layers,
    )
