"""Pictures of methods side by side, and of what further labels would bring."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .charts import BLUE, PERCENT, Figure, chart
from .curve import curve_chart
from .sentences import amount, percent

if TYPE_CHECKING:
    from ..comparison import Comparison
    from ..planning import Plan

__all__ = ["budget_figure", "methods_figure"]


def methods_figure(found: Comparison) -> Figure | None:
    """Return methods as dots with intervals: accuracy if known, else how far behind the best."""
    known = all(one.evaluation is not None for one in found.methods)
    if not known and not found.n_scored:
        return None
    rows = []
    for one in found.methods:
        score = one.evaluation.scores.get("accuracy") if known and one.evaluation else None
        if score is not None:
            value, low, high = score.value, score.low, score.high
        else:
            reach = 2 * one.error if one.error < float("inf") else 0.0
            value, low, high = -one.behind, -one.behind - reach, -one.behind + reach
        rows.append({"method": one.method, "value": value, "low": low, "high": high})
    x = {
        "type": "quantitative",
        "title": "items labelled right" if known else "how well left-out labels are foreseen",
        "scale": {"zero": False},
        "axis": {**(PERCENT if known else {"tickCount": 6}), "labelFlush": False},
    }
    y = {
        "field": "method",
        "type": "nominal",
        "sort": [row["method"] for row in rows],
        "title": "method",
        "axis": {"labelLimit": 200},
    }
    shown = {"format": ".1%" if known else ".4f"}
    spec = chart(
        rows,
        height=max(26 * len(rows), 60),
        layer=[
            {
                "mark": {"type": "rule", "color": BLUE},
                "encoding": {"y": y, "x": {**x, "field": "low"}, "x2": {"field": "high"}},
            },
            {
                "mark": {"type": "circle", "size": 80, "color": BLUE, "opacity": 1},
                "encoding": {
                    "y": y,
                    "x": {**x, "field": "value"},
                    "tooltip": [
                        {"field": "method"},
                        *({"field": name, **shown} for name in ("value", "low", "high")),
                    ],
                },
            },
        ],
    )
    words = (
        "Share of items labelled right, with 95% intervals."
        if known
        else "Log chance of left-out labels less that of the best method, ± 2 standard errors."
    )
    return Figure("Methods side by side", words, spec)


def budget_figure(plan: Plan) -> Figure | None:
    """Return the share of right labels that is expected of further labels."""
    if plan.curve is None or len(plan.curve.points) < 2:
        return None
    points = plan.curve.points
    spec = curve_chart(plan, "labels")
    del spec["title"]
    words = (
        f"If beliefs are right, {amount(points[-1].labels, 'further label')}, asked of the right "
        f"people, lift the share of right labels from {percent(points[0].accuracy)} to "
        f"{percent(points[-1].accuracy)}. Beliefs are often too high; some known labels would tell."
    )
    numbers = (
        ("further labels", "expected to be right", "90% interval"),
        *(
            (
                str(one.labels),
                percent(one.accuracy),
                f"{percent(one.low)} to {percent(one.high)}",
            )
            for one in points
        ),
    )
    return Figure("What more labels would bring", words, spec, numbers)
