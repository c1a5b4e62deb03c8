"""The page of a report on numbers."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from .._plain import as_rows
from .charts import VERDICT_COLOURS, Figure, chart, colour, histogram, number, tooltip
from .sections import Column, Download, Page, Section, SortableTable, Table, estimates_table
from .sentences import amount, formatted

if TYPE_CHECKING:
    from .number_report import NumberReport

_MAX_ROWS = 1000
_MAX_POINTS = 2000
_BINS = 20
_SCORES = {
    "mae": "mean absolute error",
    "rmse": "root mean squared error",
    "pearson": "correlation (Pearson)",
    "spearman": "correlation (Spearman)",
}


def number_page(report: NumberReport) -> Page:
    """Return what the page shows."""
    charts = {"values": _values_figure(report), "bias": _bias_figure(report)}
    agreement = {"Krippendorff's alpha for numbers": report.alpha}
    panel: list[Table | str] = [estimates_table("Agreement", agreement)]
    if report.evaluation is not None:
        scores = {title: report.evaluation.scores.get(name) for name, title in _SCORES.items()}
        panel.append(estimates_table("Against known values", scores))
    text = ["Everybody is compared with the mean of the others on the same items."]
    annotators = _annotator_table(report)
    return Page(
        {
            "annotators": amount(report.annotations.n_annotators),
            "items": amount(report.annotations.n_items),
            "numbers": amount(len(report.annotations)),
            "alpha": formatted(report.alpha.value, ".2f"),
            "items scatter widely": amount(len(report.wide)),
        },
        [
            Section("data", "Data", findings=report.check.findings),
            Section("values", "Values", panels=[[*panel, "values"]]),
            Section("annotators", "Annotators", text, panels=[["bias"]], table=annotators),
            Section("items", "Items", table=_item_table(report)),
        ],
        {name: one for name, one in charts.items() if one is not None},
        {
            "values": Download("values", report.items),
            "annotators": Download("annotators", report.annotators),
        },
        ("bias", "scatter", "correlation", "alpha"),
        report.result.method,
    )


def _values_figure(report: NumberReport) -> Figure | None:
    """Return the distribution of the estimates."""
    value = report.result.value[np.isfinite(report.result.value)]
    if not len(value):
        return None
    counts, edges = np.histogram(value, bins=_BINS)
    spec = histogram(edges, counts, "value of an item", axis={"tickCount": 8})
    words = f"From {value.min():.3g} to {value.max():.3g}, {value.mean():.3g} on average."
    rows = spec["data"]["values"]
    numbers = [(f"{row['from']:.3g} to {row['to']:.3g}", str(row["items"])) for row in rows]
    return Figure("Values of the items", words, spec, (("value", "items"), *numbers))


def _bias_figure(report: NumberReport) -> Figure | None:
    """Return bias and scatter of every annotator."""
    bias = report.bias
    known = np.flatnonzero(np.isfinite(bias.scatter))[:_MAX_POINTS]
    if not len(known):
        return None
    columns = {
        "annotator": report.annotations.annotators[known],
        "verdict": [bias.verdict[a] for a in known.tolist()],
        "answers": bias.n_answers[known],
        "bias": bias.bias[known],
        "scatter": bias.scatter[known],
    }
    points = as_rows(columns)
    palette = {word: tone for word, tone in VERDICT_COLOURS.items() if word in bias.verdict}
    spec = chart(
        points,
        height=300,
        mark={"type": "circle", "size": 60, "opacity": 0.95},
        encoding={
            "x": number("bias", "answers higher than the others by"),
            "y": number("scatter", "scatter around the others"),
            "color": colour("verdict", palette, columns=3, labelLimit=240),
            "tooltip": tooltip(annotator="", verdict="", answers="", bias=".3~g", scatter=".3~g"),
        },
    )
    words = "To the right: answers too high; far up: differs from the others in both directions."
    return Figure("Annotators compared with the others", words, spec)


def _annotator_table(report: NumberReport) -> SortableTable:
    bias, names = report.bias, report.annotations.annotators
    rank = [*VERDICT_COLOURS].index
    order = sorted(range(len(names)), key=lambda a: (rank(bias.verdict[a]), -bias.n_answers[a]))
    shown = order[:_MAX_ROWS]
    columns = {
        "annotator": Column(names[shown]),
        "answers": Column(bias.n_answers[shown], "d"),
        "bias": Column(bias.bias[shown], "+.3g"),
        "scatter": Column(bias.scatter[shown], ".4g"),
        "correlation": Column(bias.correlation[shown], ".2f"),
        "verdict": Column([bias.verdict[a] for a in shown]),
    }
    caption = f"{len(shown)} of {amount(len(names), 'annotator')}, the worst first"
    return SortableTable("annotator-table", caption, columns)


def _item_table(report: NumberReport) -> SortableTable:
    annotations = report.annotations
    shown = np.argsort(-np.nan_to_num(report.scatter), kind="stable")[:_MAX_ROWS]
    given = [
        annotations.value[annotations.index[item] : annotations.index[item + 1]]
        for item in shown.tolist()
    ]
    columns = {
        "item": Column(annotations.items[shown]),
        "value": Column(report.result.value[shown], ".4g"),
        "answers": Column(annotations.labels_per_item[shown], "d"),
        "scatter": Column(report.scatter[shown], ".4g"),
        "lowest": Column([one.min() if len(one) else math.nan for one in given], ".4g"),
        "highest": Column([one.max() if len(one) else math.nan for one in given], ".4g"),
    }
    caption = f"{len(shown)} of {amount(annotations.n_items, 'item')}, the widest scatter first"
    return SortableTable("item-table", caption, columns)
