"""The page of a report on numbers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ..aggregation.sections import annotators_figure
from ..base.arrays import Integers
from ..pages.charts import Figure, histogram
from ..pages.sections import Column, Download, Page, Section, SortableTable, Table, estimates_table
from ..pages.wording import amount, formatted, titles
from ..quality.sections import MAX_ITEMS, annotator_columns, annotator_table, item_table
from .class_page import TERMS, annotators_section, data_section

if TYPE_CHECKING:
    from .number_report import NumberReport

_BINS = 20
_WIDE, _ORDINARY = "answers scatter widely", "answers scatter as usual"
_SCORES = ("mae", "rmse", "pearson", "spearman")


def number_page(report: NumberReport) -> Page:
    """Return what the page shows."""
    annotations = report.annotations
    charts = {
        "values": _values_figure(report),
        "annotators": annotators_figure(report.annotator_scores),
    }
    estimates = estimates_table("Agreement", {"Krippendorff's alpha for numbers": report.alpha})
    panels: list[list[Table | str]] = [[estimates]]
    if report.evaluation is not None:
        words = titles("scores")
        scores = {words[name]: report.evaluation.scores.get(name) for name in _SCORES}
        forms = {words[name]: report.form for name in ("mae", "rmse")}
        panels[0].append(estimates_table("Against known values", scores, forms))
    values = [formatted(value, report.form) for value in report.result.value]
    answers = [f"{value:g}" for value in annotations.value.tolist()]
    error = np.abs(annotations.value - report.result.value[annotations.item])
    farthest = np.argsort(-error, kind="stable")
    annotators, annotator_details = annotator_table(report, farthest, values, answers)
    items, item_details, names = _item_table(report)
    method = report.result.method
    how = {"mean": "the mean of its answers", "median": "the median of its answers"}
    text = f"The value of an item is {how.get(method, f'estimated by the method {method}')}."
    return Page(
        facts={
            "annotators": (amount(annotations.n_annotators), "annotators"),
            "items": (amount(annotations.n_items), "items"),
            "answers": (amount(len(annotations)), "values"),
            "alpha": (formatted(report.alpha.value, ".2f"), "values"),
            "items to answer again": (amount(len(report.wide)), "items"),
        },
        sections=[
            data_section(report),
            Section("values", "Values", [text], panels=panels),
            annotators_section(annotators),
            Section("items", "Items", ["Click an item for all its answers."], table=items),
        ],
        charts={name: figure for name, figure in charts.items() if figure is not None},
        downloads={
            "values": Download("values", report.items),
            "relabel": Download("items to answer again", _listing(report, report.wide)),
            "annotators": Download("annotators", annotator_columns(report)),
        },
        terms=("error", "scatter", "level", *TERMS),
        method=method,
        actions=report.actions,
        picture="values",
        data={
            "noun": report.noun,
            "alone": "Answers that are farthest from the values",
            "annotators": annotator_details,
            "items": item_details,
            "names": names,
        },
    )


def _values_figure(report: NumberReport) -> Figure | None:
    """Return the distribution of the estimates."""
    value = report.result.value[np.isfinite(report.result.value)]
    if not len(value):
        return None
    counts, edges = np.histogram(value, bins=_BINS)
    spec = histogram(edges, counts, "value of an item", axis={"tickCount": 8})
    form = report.form
    words = f"From {form(value.min())} to {form(value.max())}, {form(value.mean())} on average."
    rows = spec["data"]["values"]
    numbers = [(f"{form(row['from'])} to {form(row['to'])}", str(row["items"])) for row in rows]
    return Figure("Values of the items", words, spec, (("value", "items"), *numbers))


def _item_table(report: NumberReport) -> tuple[SortableTable, list[dict[str, Any]], list[str]]:
    """Return the items, the widest scatter first."""
    annotations, form = report.annotations, report.form
    listed_items = np.argsort(-np.nan_to_num(report.scatter, nan=-1.0), kind="stable")
    listed_items = listed_items[annotations.labels_per_item[listed_items] > 0][:MAX_ITEMS]
    ends = [_answers(report, item)[[0, -1]].tolist() for item in listed_items.tolist()]
    lowest, highest = zip(*ends, strict=True)
    error = report.result.deviation[listed_items]
    details = {
        "words": [
            f" (standard error {formatted(deviation, form)}). Answers are from {low:g} to {high:g}."
            for deviation, low, high in zip(error.tolist(), lowest, highest, strict=True)
        ]
    }
    columns = {
        "standard error": Column(error, form),
        "answers": Column(annotations.labels_per_item[listed_items], "d"),
        "scatter": Column(report.scatter[listed_items], form),
        "lowest": Column(lowest, "g"),
        "highest": Column(highest, "g"),
    }
    kinds = [[_WIDE if wide else _ORDINARY] for wide in np.isin(listed_items, report.wide).tolist()]
    value = Column(report.result.value[listed_items], form)
    return item_table(
        report,
        listed_items,
        answers=annotations.value,
        label=value,
        columns=columns,
        details=details,
        kinds=kinds,
        order="the widest scatter first",
    )


def _answers(report: NumberReport, item: int) -> Any:
    annotations = report.annotations
    return np.sort(annotations.value[annotations.index[item] : annotations.index[item + 1]])


def _listing(report: NumberReport, items: Integers) -> dict[str, Any]:
    """Return items with text, answers, value, standard error and scatter."""
    names = report.annotations.items[items]
    columns = {
        "item": names,
        "text": [report.texts.get(name, "") for name in names.tolist()],
        "answers": [
            ", ".join(f"{value:g}" for value in _answers(report, item)) for item in items.tolist()
        ],
        "value": report.result.value[items],
        "standard_error": report.result.deviation[items],
        "scatter": report.scatter[items],
    }
    if not report.texts:
        del columns["text"]
    return columns
