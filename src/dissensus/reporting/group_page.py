"""The page of a comparison of two groups."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from ..base.storage import as_rows
from ..pages import charts
from ..pages.charts import BLUE, GREY, ORANGE, RED, Figure
from ..pages.sections import Column, Download, Page, Section, SortableTable, Table
from ..pages.wording import amount, formatted, percent, with_interval
from .figures import class_order, class_shares, classes_figure

if TYPE_CHECKING:
    from .group_comparison import Group, GroupComparison

_MAX_ROWS = 1000
_COLOURS = {"better": "#1d6996", "worse": RED, "no clear change": GREY}


def group_page(groups: GroupComparison) -> Page:
    """Return what the page shows."""
    drawn = {"classes": _classes_figure(groups)}
    annotators = items = None
    people, labels = "No annotator labelled in both groups.", "No item is in both."
    n_annotators, n_changed = len(groups.annotators["annotator"]), len(groups.items["item"])
    if n_annotators:
        drawn["change"] = _change_figure(groups)
        annotators = _annotator_table(groups)
        people = (
            f"{amount(n_annotators, 'annotator')} labelled in both. “Right” is how often "
            "a label is the consensus of the others, those of both groups together."
        )
    if groups.n_common:
        items = _item_table(groups) if n_changed else None
        kappa = "" if math.isnan(groups.kappa) else f" Cohen's kappa is {groups.kappa:.2f}."
        labels = (
            f"{n_changed} of {amount(groups.n_common, 'common item')} got another label, "
            f"the highest confidence first.{kappa}"
        )
    return Page(
        facts={
            "items in both": (amount(groups.n_common), "items"),
            "of these with the same label": (percent(groups.same.value), "items"),
            "change of alpha": (formatted(groups.alpha.value, "+.2f"), "numbers"),
            "annotators in both": (amount(n_annotators), "annotators"),
        },
        sections=[
            Section("numbers", "Comparison", panels=[[_numbers_table(groups)]]),
            Section(
                "annotators", "Annotators in both", [people], panels=[["change"]], table=annotators
            ),
            Section("items", "Items with another label", [labels], table=items),
        ],
        charts=drawn,
        downloads={
            "changed_items": Download("items with another label", groups.items),
            "annotators": Download("annotators in both", groups.annotators),
        },
        terms=("right", "change", "confidence", "alpha"),
        method=groups.first.result.method,
        picture="classes",
    )


def _numbers_table(groups: GroupComparison) -> Table:
    """Return the key figures of both groups with their intervals."""

    def shown(estimate: object, form: str | Callable[[float], str] = percent) -> str:
        value, interval = with_interval(estimate, form)
        return f"{value} ({interval})" if interval else value

    def figures(group: Group) -> dict[str, str]:
        annotations = group.annotations
        accuracy = None if group.evaluation is None else group.evaluation.scores.get("accuracy")
        return {
            "annotators": str(annotations.n_annotators),
            "items": str(annotations.n_items),
            "labels": str(len(annotations)),
            "labels on an item": f"{len(annotations) / max(annotations.n_items, 1):.1f}",
            "pairs that agree": shown(group.agreement["percent"]),
            "alpha": shown(group.alpha, ".2f"),
            "labels right, by the consensus of the others": shown(group.right),
            "items with a less certain label": shown(group.unsure),
            "annotators whose answers ignore the items": str(group.n_random),
            **({} if accuracy is None else {"items labelled right": shown(accuracy)}),
            **({"the same label on common items": shown(groups.same)} if groups.n_common else {}),
        }

    first, second = figures(groups.first), figures(groups.second)
    rows = [(name, value, second.get(name, "–")) for name, value in first.items()]
    return Table("With 95% intervals", ["", groups.first.name, groups.second.name], rows)


def _classes_figure(groups: GroupComparison) -> Figure:
    """Return how common every class is in both groups."""
    pair = groups.first, groups.second
    shares = [class_shares(group.result) for group in pair]
    classes = groups.first.annotations.classes.tolist()
    k = int(np.abs(shares[1] - shares[0]).argmax())
    words = (
        f"The share of {classes[k]} differs most: {percent(float(shares[0][k]))} and "
        f"{percent(float(shares[1][k]))} of the items."
    )
    order = class_order(groups.first.annotations, shares[0] + shares[1])
    kinds = {group.name: values for group, values in zip(pair, shares, strict=True)}
    colours = [ORANGE, BLUE]
    return classes_figure(("Class shares", words), classes, kinds, order=order, colours=colours)


def _change_figure(groups: GroupComparison) -> Figure:
    """Return the share of right labels of every annotator, first against second."""
    columns = ("annotator", "first_right", "second_right", "verdict")
    points = as_rows({name: groups.annotators[name][:_MAX_ROWS] for name in columns})
    x = charts.share("first_right", f"right in {groups.first.name}")
    y = charts.share("second_right", f"right in {groups.second.name}")
    tooltip = charts.tooltip(annotator="", verdict="", first_right=".1%", second_right=".1%")
    layer = {
        "mark": {"type": "circle", "size": 60, "opacity": 0.95},
        "encoding": {
            "x": x,
            "y": y,
            "color": charts.colour("verdict", _COLOURS),
            "tooltip": tooltip,
        },
    }
    spec = charts.chart(points, height=300, layer=[charts.diagonal(x, y), layer])
    return Figure("Annotators, first and second", "Above the dashed line: better.", spec)


def _annotator_table(groups: GroupComparison) -> SortableTable:
    first, second = groups.first.name, groups.second.name
    table = {name: values[:_MAX_ROWS] for name, values in groups.annotators.items()}
    bounds = zip(table["low"], table["high"], strict=True)
    columns = {
        "annotator": Column(table["annotator"]),
        f"labels, {first}": Column(table["first_labels"], "d"),
        f"labels, {second}": Column(table["second_labels"], "d"),
        f"right, {first}": Column(table["first_right"], percent),
        f"right, {second}": Column(table["second_right"], percent),
        "change, points": Column(100 * table["change"], "+.0f"),
        "95% interval": Column(
            [f"{100 * low:+.0f} to {100 * high:+.0f}" for low, high in bounds], kind="plain number"
        ),
        "verdict": Column(table["verdict"]),
    }
    caption = f"{amount(len(table['annotator']), 'annotator')}, the largest loss first"
    return SortableTable("annotator-table", caption, columns)


def _item_table(groups: GroupComparison) -> SortableTable:
    first, second = groups.first.name, groups.second.name
    table = {name: values[:_MAX_ROWS] for name, values in groups.items.items()}
    columns = {
        "item": Column(table["item"]),
        f"label, {first}": Column(table["first_label"]),
        f"confidence, {first}": Column(table["first_confidence"], percent),
        f"label, {second}": Column(table["second_label"]),
        f"confidence, {second}": Column(table["second_confidence"], percent),
    }
    total = amount(len(groups.items["item"]), "item")
    caption = f"{len(table['item'])} of {total} with another label"
    return SortableTable("item-table", caption, columns)
