"""The page of a report on numbers."""

from __future__ import annotations

import math

import numpy as np

from ..result import Table as Columns
from .charts import GREY, RED, Figure, chart, colour, histogram, number
from .embedding import plain
from .number_report import NumberReport
from .sections import Download, Page, Row, Section, SortableTable, Table, number_cell, with_interval
from .sentences import amount

__all__ = ["layout"]

_MAX_ROWS = 1000
_MAX_POINTS = 2000
_BINS = 20
_COLOURS = {  # by verdict, the worst first
    "does not follow the others": RED,
    "too high": "#edae49",
    "too low": "#8a63b8",
    "scattered": "#66a182",
    "too few answers to say": GREY,
    "fine": "#5b9bd5",
}
_SCORES = {"mae": "mean absolute error", "rmse": "root mean squared error"}


def layout(report: NumberReport) -> Page:
    """Return what the page shows."""
    charts = {"values": _values_figure(report), "bias": _bias_figure(report)}
    heads = ["measure", "value", "95% interval"]
    coefficients = [("Krippendorff's alpha for numbers", *with_interval(report.alpha))]
    panel: list[Table | str] = [Table("Agreement", heads, coefficients)]
    if report.evaluation is not None:
        scores = [
            (_SCORES.get(name, f"correlation ({name.capitalize()})"), *with_interval(score))
            for name, score in report.evaluation.scores.items()
            if score is not None
        ]
        panel.append(Table("Against known values", heads, scores))
    text = ["Everybody is compared with the mean of the others on the same items."]
    annotators = _annotator_table(report)
    return Page(
        report.name,
        report.sentences,
        {
            "annotators": amount(report.annotations.n_annotators),
            "items": amount(report.annotations.n_items),
            "numbers": amount(len(report.annotations)),
            "alpha": number_cell(report.alpha.value, ".2f")[0],
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
            "values": _download("values", report.items),
            "annotators": _download("annotators", report.annotators),
        },
        {
            "Bias": "By how much an annotator answers higher than the others, on average.",
            "Scatter": "Standard deviation: of an annotator's differences to the others, or of the "
            "answers on an item.",
            "Correlation": "With the mean of the others: 1 follows them, 0 is unrelated.",
            "Alpha": "Krippendorff's for numbers: 1 is full agreement, 0 is agreement by chance.",
        },
        report.result.method,
        report.seed,
    )


def _values_figure(report: NumberReport) -> Figure | None:
    """Return the distribution of the estimates."""
    value = report.result.value[np.isfinite(report.result.value)]
    if not len(value):
        return None
    counts, edges = np.histogram(value, bins=_BINS)
    spec = histogram(edges.tolist(), counts.tolist(), "value of an item", axis={"tickCount": 8})
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
    rows = [
        {
            "annotator": report.annotations.annotators[a],
            "verdict": bias.verdict[a],
            "answers": int(bias.n_answers[a]),
            "bias": float(bias.bias[a]),
            "scatter": float(bias.scatter[a]),
        }
        for a in known.tolist()
    ]
    palette = {word: tone for word, tone in _COLOURS.items() if word in bias.verdict}
    tooltip = [{"field": name} for name in ("annotator", "verdict", "answers")]
    tooltip += [{"field": name, "format": ".3~g"} for name in ("bias", "scatter")]
    spec = chart(
        rows,
        height=300,
        mark={"type": "circle", "size": 60, "opacity": 0.95},
        encoding={
            "x": number("bias", "answers higher than the others by"),
            "y": number("scatter", "scatter around the others"),
            "color": colour("verdict", palette, columns=3, labelLimit=240),
            "tooltip": tooltip,
        },
    )
    words = "To the right: answers too high; far up: differs from the others in both directions."
    return Figure("Annotators compared with the others", words, spec)


def _annotator_table(report: NumberReport) -> SortableTable:
    bias, names = report.bias, report.annotations.annotators
    rank = [*_COLOURS].index
    order = sorted(range(len(names)), key=lambda a: (rank(bias.verdict[a]), -bias.n_answers[a]))
    heads = {"annotator": "name", "answers": "number", "bias": "number", "scatter": "number"}
    heads |= {"correlation": "number", "verdict": "text"}
    rows = [
        Row(
            [
                (names[a], None),
                number_cell(int(bias.n_answers[a]), "d"),
                number_cell(bias.bias[a], "+.3g"),
                number_cell(bias.scatter[a]),
                number_cell(bias.correlation[a], ".2f"),
                (bias.verdict[a], None),
            ]
        )
        for a in order[:_MAX_ROWS]
    ]
    caption = f"{len(rows)} of {amount(len(names), 'annotator')}, the worst first"
    return SortableTable("annotator-table", caption, heads, rows)


def _item_table(report: NumberReport) -> SortableTable:
    annotations = report.annotations
    order = np.argsort(-np.nan_to_num(report.scatter), kind="stable")[:_MAX_ROWS]
    columns = ("value", "answers", "scatter", "lowest", "highest")
    rows = []
    for item in order.tolist():
        given = annotations.value[annotations.index[item] : annotations.index[item + 1]]
        numbers = (
            *(report.result.value[item], len(given), report.scatter[item]),
            *((given.min(), given.max()) if len(given) else (math.nan, math.nan)),
        )
        rows.append(Row([(annotations.items[item], None), *map(number_cell, numbers)]))
    caption = f"{len(rows)} of {amount(annotations.n_items, 'item')}, the widest scatter first"
    heads = {"item": "name", **dict.fromkeys(columns, "number")}
    return SortableTable("item-table", caption, heads, rows)


def _download(title: str, table: Columns) -> Download:
    """Return a table with six digits of every number."""
    rows = [
        [float(f"{value:.6g}") if isinstance(value, float) else value for value in row]
        for row in zip(*plain([*table.values()]), strict=True)
    ]
    return Download(title, [*table], rows)
