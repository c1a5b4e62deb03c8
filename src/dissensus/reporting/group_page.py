"""The page of a comparison of two groups."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from .charts import BLUE, GREY, ORANGE, RED, Figure, chart, colour, diagonal, share
from .figures import class_shares, classes_figure
from .group_comparison import Group, GroupComparison
from .sections import Download, Page, Row, Section, SortableTable, Table, number_cell, with_interval
from .sentences import amount, percent
from .summary import CONFIDENT

__all__ = ["layout"]

_MAX_ROWS = 1000
_COLOURS = {"better": "#1d6996", "worse": RED, "no clear change": GREY}


def layout(groups: GroupComparison) -> Page:
    """Return what the page shows."""
    charts = {"classes": _classes_figure(groups)}
    annotators = items = None
    annotator_text, item_text = "No annotator labelled in both groups.", "No item is in both."
    if groups.annotators:
        charts["change"] = _change_figure(groups)
        annotators = _annotator_table(groups)
        annotator_text = (
            f"{amount(len(groups.annotators), 'annotator')} labelled in both. “Right” is how often "
            "a label is the consensus of the others, those of both groups together."
        )
    if groups.n_common:
        items = _item_table(groups) if groups.items else None
        kappa = "" if math.isnan(groups.kappa) else f" Cohen's kappa is {groups.kappa:.2f}."
        item_text = (
            f"{len(groups.items)} of {amount(groups.n_common, 'common item')} got another label, "
            f"the highest confidence first.{kappa}"
        )
    return Page(
        groups.name,
        groups.sentences,
        {
            "items in both": amount(groups.n_common),
            "with the same label": percent(groups.same.value),
            "change of alpha": f"{groups.alpha.value:+.2f}",
            "annotators in both": amount(len(groups.annotators)),
        },
        [
            Section("numbers", "Comparison", panels=[[_numbers_table(groups), "classes"]]),
            Section(
                "annotators",
                "Annotators in both",
                [annotator_text],
                panels=[["change"]],
                table=annotators,
            ),
            Section("items", "Items with another label", [item_text], table=items),
        ],
        charts,
        _downloads(groups),
        {
            "Right": "How often labels are the consensus of the others, those of both groups "
            "together.",
            "Change": "Second less first. It is called clear if it holds although so many "
            "annotators were compared (Bonferroni).",
            "Confidence": f"How probable a label is. Below {CONFIDENT:.0%} it needs review.",
            "Alpha": "Krippendorff's: 1 is full agreement, 0 is agreement by chance.",
        },
        groups.first.result.method,
        groups.seed,
    )


def _numbers_table(groups: GroupComparison) -> Table:
    """Return the key figures of both groups with their intervals."""

    def shown(estimate: object, form: str | Callable[[float], str] = percent) -> str:
        value, interval = with_interval(estimate, form)
        return f"{value} ({interval})" if interval else value

    def figures(group: Group) -> dict[str, str]:
        annotations = group.annotations
        known = None if group.evaluation is None else group.evaluation.scores.get("accuracy")
        return {
            "annotators": str(annotations.n_annotators),
            "items": str(annotations.n_items),
            "labels": str(len(annotations)),
            "labels on an item": f"{len(annotations) / max(annotations.n_items, 1):.1f}",
            "pairs that agree": shown(group.agreement["percent"]),
            "alpha": shown(group.alpha, ".2f"),
            "labels right, by the consensus of the others": shown(group.right),
            "items that need review": shown(group.unsure),
            "annotators who answer at random": str(group.n_random),
            **({} if known is None else {"items labelled right": shown(known)}),
            **({"the same label on common items": shown(groups.same)} if groups.n_common else {}),
        }

    first, second = figures(groups.first), figures(groups.second)
    rows = [(name, value, second.get(name, "–")) for name, value in first.items()]
    return Table("With 95% intervals", ["", groups.first.name, groups.second.name], rows)


def _classes_figure(groups: GroupComparison) -> Figure:
    """Return how common every class is in both groups."""
    both = groups.first, groups.second
    shares = [class_shares(group.result) for group in both]
    classes = groups.first.annotations.classes.tolist()
    k = int(np.abs(shares[1] - shares[0]).argmax())
    words = (
        f"The share of {classes[k]} differs most: {percent(float(shares[0][k]))} and "
        f"{percent(float(shares[1][k]))} of the items."
    )
    order = np.argsort(-(shares[0] + shares[1]), kind="stable").tolist()
    kinds = {group.name: share for group, share in zip(both, shares, strict=True)}
    return classes_figure(("Class shares", words), classes, kinds, order, [ORANGE, BLUE])


def _change_figure(groups: GroupComparison) -> Figure:
    """Return the share of right labels of every annotator, first against second."""
    rows = [
        {"annotator": one.name, "first": one.right[0], "second": one.right[1], "change": one.word}
        for one in groups.annotators[:_MAX_ROWS]
    ]
    x = share("first", f"right in {groups.first.name}")
    y = share("second", f"right in {groups.second.name}")
    tooltip = [
        {"field": "annotator"},
        {"field": "first", "format": ".1%"},
        {"field": "second", "format": ".1%"},
        {"field": "change"},
    ]
    points = {
        "mark": {"type": "circle", "size": 60, "opacity": 0.95},
        "encoding": {"x": x, "y": y, "color": colour("change", _COLOURS), "tooltip": tooltip},
    }
    spec = chart(rows, height=300, layer=[diagonal(x, y), points])
    return Figure("Annotators, first and second", "Above the dashed line: better.", spec)


def _annotator_table(groups: GroupComparison) -> SortableTable:
    one, two = groups.first.name, groups.second.name
    columns = (f"labels, {one}", f"labels, {two}", f"right, {one}", f"right, {two}", "change")
    heads = {"annotator": "name", **dict.fromkeys(columns, "number")}
    rows = [
        Row(
            [
                (each.name, None),
                *(number_cell(count, "d") for count in each.labels),
                *(number_cell(value, percent) for value in each.right),
                (f"{100 * each.change.value:+.0f} points", each.change.value),
                (f"{100 * each.change.low:+.0f} to {100 * each.change.high:+.0f}", None),
                (each.word, None),
            ]
        )
        for each in groups.annotators[:_MAX_ROWS]
    ]
    caption = f"{amount(len(rows), 'annotator')}, the largest loss first"
    heads |= {"95% interval": "plain", "verdict": "text"}
    return SortableTable("annotator-table", caption, heads, rows)


def _item_table(groups: GroupComparison) -> SortableTable:
    heads = {"item": "name"}
    for name in (groups.first.name, groups.second.name):
        heads |= {f"label, {name}": "text", f"confidence, {name}": "number"}
    rows = []
    for each in groups.items[:_MAX_ROWS]:
        first, second = (number_cell(value, percent) for value in each.confidence)
        labels = [(label, None) for label in each.label]
        rows.append(Row([(each.name, None), labels[0], first, labels[1], second]))
    caption = f"{len(rows)} of {amount(len(groups.items), 'item')} with another label"
    return SortableTable("item-table", caption, heads, rows)


def _downloads(groups: GroupComparison) -> dict[str, Download]:
    head = ["item", "first_label", "second_label", "first_confidence", "second_confidence"]
    items = [
        [one.name, *one.label, *(round(value, 4) for value in one.confidence)]
        for one in groups.items
    ]
    columns = ["annotator", "first_labels", "second_labels", "first_right", "second_right"]
    annotators = [
        [
            *(one.name, *one.labels, *(round(value, 4) for value in one.right)),
            *(*(round(value, 4) for value in one.change), one.word),
        ]
        for one in groups.annotators
    ]
    columns += ["change", "low", "high", "verdict"]
    return {
        "changed_items": Download("items with another label", head, items),
        "annotators": Download("annotators in both", columns, annotators),
    }
