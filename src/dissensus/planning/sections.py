"""Plans as people see them: the labels or items to request, and expected accuracy by budget."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import Note
from ..pages.charts import BLUE, Figure, chart, number, tooltip
from ..pages.sections import Section, Table
from ..pages.wording import formatted

if TYPE_CHECKING:
    from .curve import Curve
    from .planner import Plan

_SPENT = {"cost": "cost of the labels to come", "labels": "further labels"}
_PAIRS, _ITEMS = 8, 20  # rows of a plan that are shown: of labels, and of items
_MUCH = 0.5  # share of the labels for one annotator that calls for caution
_HEADS = ("item", "annotator", "nats", "per cost", "now right", "then")
_ITEM_HEADS = ("item", "answers", "distance", "expected", "more", "gain")
_FORMS = ("d", ".3f", ".3f", "d", ".4f")


def plan_sections(plan: Plan) -> tuple[Section, ...]:
    """Return what to request, what accuracy that is expected to reach, and the advice."""
    if plan.items is not None:
        return _items_sections(plan)
    columns = [values[:_PAIRS].tolist() for values in plan.table.values()]
    rows: list[tuple[str, ...]] = [
        (item, annotator, f"{gain:.3f}", f"{ratio:.3g}", *_shares(before, after))
        for item, annotator, gain, ratio, _, before, after in zip(*columns, strict=True)
    ]
    if len(plan) > _PAIRS:
        rows.append(("…", f"{len(plan) - _PAIRS} more", *[""] * 4))
    caption = f"{len(plan)} labels for {plan.cost.sum():g}, by {plan.policy}"
    panels = [[Table(caption, _HEADS, rows, n_texts=2)]]
    if plan.curve is not None:
        panels.append([_curve_table(plan.curve)])
    advice = Section("advice", "Advice", text=(*plan.sentences, *_cautions(plan)))
    return Section("plan", "What to label next", panels=panels), advice


def _items_sections(plan: Plan) -> tuple[Section, ...]:
    items, *columns = (values[:_ITEMS].tolist() for values in plan.table.values())
    cells = [
        [formatted(value, form) for value in column]
        for column, form in zip(columns, _FORMS, strict=True)
    ]
    rows = list(zip(items, *cells, strict=True))
    caption = f"{int(plan.table['more'].sum())} answers on {len(plan)} items"
    text: list[str] = list(plan.sentences)
    if len(plan) > _ITEMS:
        hidden = f"{len(plan) - _ITEMS} more items"
        text.insert(0, Note(hidden, remedy="{} FILE writes them.", output=...))
    return (
        Section("plan", "What to show again", panels=[[Table(caption, _ITEM_HEADS, rows)]]),
        Section("advice", "Advice", text=text),
    )


def _shares(*right: float) -> list[str]:
    return [formatted(share, ".0%") for share in right]


def _curve_table(curve: Curve) -> Table:
    points = [
        (
            f"{point.labels}",
            f"{point.cost:g}",
            f"{point.accuracy:.1%}",
            f"{point.low:.1%} – {point.high:.1%}",
        )
        for point in curve
    ]
    heads = ("more labels", "cost", "right", "90 % prediction interval")
    return Table("Expected accuracy with more labels", heads, points, n_texts=0)


def _cautions(plan: Plan) -> list[str]:
    """Return what to know before trusting the plan."""
    out: list[str] = []
    if plan.annotations.scale == "ordinal":
        out.append("Caution: a label is right or wrong here, however near it is to the true one.")
    if plan.errors is not None and not plan.errors.n_checked and plan.errors.n_items:
        factor = "Caution: without known labels the number of errors can be off by a factor of two"
        out.append(Note(factor, remedy="{} with items drawn at random narrows it.", truth=...))
    load = np.bincount(plan.annotator, minlength=1)
    busiest = int(load.argmax())
    if len(plan) > 1 and load[busiest] > _MUCH * len(plan) and plan.annotations.n_annotators > 1:
        name = plan.annotations.annotators[busiest]
        busy = f"Caution: {name} gets {load[busiest]} of {len(plan)} labels"
        out.append(Note(busy, remedy="{} spreads them.", limit=...))
    return out


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
