"""Accuracy of few-shot methods against a condition, as a Vega-Lite dictionary."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dissensus.pages.charts import COLOURS, chart

__all__ = ["accuracy_chart"]


def accuracy_chart(
    rows: Sequence[dict[str, Any]], against: str, title: str, *, log: bool = False
) -> dict[str, Any]:
    """Return lines of accuracy with their 95 % intervals, one for every method.

    Parameters
    ----------
    rows
        With `method`, `accuracy`, `half` (of the interval), and the condition.
    against
        Name of the condition.
    title
        Title of the chart.
    log
        Whether the horizontal axis is logarithmic.
    """
    methods = list(dict.fromkeys(row["method"] for row in rows))
    values = [
        {**row, "low": row["accuracy"] - row["half"], "high": row["accuracy"] + row["half"]}
        for row in rows
    ]
    x = {
        "field": against,
        "type": "quantitative",
        "scale": {"type": "log" if log else "linear", "zero": False, "nice": False},
        "axis": {"values": sorted({row[against] for row in rows}), "format": "~g"},
    }
    y = {
        "type": "quantitative",
        "title": "accuracy on queries",
        "scale": {"zero": False},
        "axis": {"format": ".0%", "tickCount": 6},
    }
    colour = {
        "field": "method",
        "type": "nominal",
        "title": None,
        "sort": methods,
        "scale": {"domain": methods, "range": COLOURS[: len(methods)]},
        "legend": {"symbolOpacity": 1},
    }
    interval = {"y": {**y, "field": "low"}, "y2": {"field": "high"}}
    layers = [
        {
            "mark": {"type": "area", "opacity": 0.15},
            "encoding": {"x": x, **interval, "color": colour},
        },
        {
            "mark": {"type": "line", "point": True},
            "encoding": {"x": x, "y": {**y, "field": "accuracy"}, "color": colour},
        },
    ]
    return chart(values, height=220, title={"text": title, "anchor": "start"}, layer=layers)
