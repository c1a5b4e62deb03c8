"""The consensus of sets, rankings, marks, masks or texts, and its annotators: tables and charts."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import numpy as np

from ..aggregation.sections import confidence_histogram
from ..base.arrays import Array, Integers
from ..base.storage import as_rows
from ..pages import charts
from ..pages.charts import BLUE, GREY, RED, Figure
from ..pages.sections import Column, Download, SortableTable
from ..pages.wording import amount, interval, percent
from ..quality.answers import FEW, LIKE_OTHERS
from ..quality.sections import MAX_ANNOTATORS, MAX_ITEMS, shortened
from .details import Details, annotator_rows, downloads
from .figures import figures
from .parts import OTHERS, part

if TYPE_CHECKING:
    from .report import Report

_MAX_NAMED = 40  # things in a chart
_HEADS = {
    "excess": "more distant",
    "distance": "distance to others",
    "n_marked": "marked by",
    "n_looked": "looked",
    "n_answers": "answers",
    "n": "answers",
}
_SET_COLUMNS = ("item", "labels", "confidence", "answers")
_SHARES = ("found", "sensitivity", "specificity", "iou", "accuracy", "honest", "left", "ties")


def plural(noun: str) -> str:
    """Return the plural of a noun."""
    return amount(2, noun).removeprefix("2 ")


# Rows of the consensus.


@part
def consensus_table(report: Report) -> SortableTable:
    """Return the rows of the consensus, the least certain first, things by rank."""
    raise NotImplementedError


@consensus_table.for_kind(*OTHERS)
def _by_certainty(report: Report) -> SortableTable:
    confidence = np.nan_to_num(report.result.items["confidence"], nan=2.0)
    return _table(report, np.argsort(confidence, kind="stable"), "the least certain first")


@consensus_table.for_kind("sets")
def _of_sets(report: Report) -> SortableTable:
    """Return the same; options are in the labels, their columns are too many."""
    table = _by_certainty(report)
    columns = {name: column for name, column in table.columns.items() if name in _SET_COLUMNS}
    return table._replace(columns=columns)


@consensus_table.for_kind("rankings")
def _by_rank(report: Report) -> SortableTable:
    table = report.result.items
    return _table(report, np.lexsort((table["rank"], table["group"])), "by rank")


def _table(report: Report, order: Integers, words: str) -> SortableTable:
    """Return rows of the consensus in an order."""
    rows = order[:MAX_ITEMS]
    columns = {
        _HEADS.get(name, name.removeprefix("p:")): _column(name, values[rows])
        for name, values in report.result.items.items()
        if name not in ("counts", "group") or (name == "group" and len(np.unique(values)) > 1)
    }
    caption = f"{amount(len(rows), report.noun, len(order))}, {words}"
    return SortableTable("consensus-table", caption, columns)


def _column(name: str, values: Array) -> Column:
    """Return a column in the format of its values."""
    if values.dtype.kind in "iu":
        return Column(values, "d")
    if values.dtype.kind != "f":
        texts = [shortened(value) for value in values.tolist()]
        return Column(texts, kind="text" if name in ("item", "thing", "label") else "plain")
    return Column(values, percent if name == "confidence" else ".4g")


# Annotators.


@annotator_rows.for_kind(*OTHERS)
def _who_answered(report: Report) -> tuple[SortableTable, Details]:
    """Return annotators, those with a verdict first, then the most distant ones."""
    table, verdict = report.annotator_scores.annotators, report.annotator_scores.verdict
    rank = np.array([{LIKE_OTHERS: 1, FEW: 2}.get(word, 0) for word in verdict.tolist()])
    rows_listed = np.lexsort((-np.nan_to_num(table["excess"], nan=-9.0), rank))
    rows_listed = rows_listed[table["n_answers"][rows_listed] > 0][:MAX_ANNOTATORS]
    columns: dict[str, Column] = {}
    for name, all_values in table.items():
        values = all_values[rows_listed]
        if name.endswith(("_low", "_high")) or name in ("n_true", "n_decided"):
            continue
        if name == "annotator":
            columns[name] = Column(values)
        elif name == "n_answers":
            columns["answers"] = Column(values, "d")
        elif name != "verdict":
            share = name in _SHARES
            columns[_HEADS.get(name, name.replace("_", " "))] = Column(
                values, percent if share else "z.2f"
            )
            if f"{name}_low" in table:
                ends = zip(
                    table[f"{name}_low"][rows_listed],
                    table[f"{name}_high"][rows_listed],
                    strict=True,
                )
                cells = [_ends(float(low), float(high), share=share) for low, high in ends]
                columns[f"95% of {name}"] = Column(cells, kind="plain number")
    evidence = [
        report.annotator_scores.evidence.get(name, "")
        for name in table["annotator"][rows_listed].tolist()
    ]
    columns["verdict"] = Column(verdict[rows_listed], kind="verdict")
    if any(evidence):
        columns["evidence"] = Column(evidence, kind="plain", classes=["text"] * len(evidence))
    caption = (
        f"{amount(len(rows_listed), 'annotator', report.answers.n_annotators)}, verdicts first"
    )
    kinds = [[word] for word in verdict[rows_listed].tolist()]
    return SortableTable("annotator-table", caption, columns, kinds, filter="Verdict"), []


def _ends(low: float, high: float, *, share: bool) -> str:
    if not share:
        return interval(low, high)
    return "" if low != low or high != high else f"{percent(low)} to {percent(high)}"


# Lists to download.


@downloads.for_kind(*OTHERS)
def _lists(report: Report) -> dict[str, Download]:
    """Return the consensus, annotators, and items by distance."""
    distances = {
        "item": report.answers.items,
        "answers": report.answers.labels_per_item,
        "distance": report.doubt.distance,
    }
    return {
        "consensus": Download("the consensus", report.result.items),
        "annotators": Download("annotators", report.annotator_scores.annotators),
        "distances": Download("items by distance", distances),
    }


# Charts.


@figures.for_kind(*OTHERS)
def _figures(report: Report) -> dict[str, Figure | None]:
    confidence = report.result.confidence
    confidence = confidence[np.isfinite(confidence)]
    nouns = plural(report.noun)
    certain = confidence_histogram(confidence, "consensus", "confidence", nouns)
    drawn = certain if len(confidence) else None
    return {"confidence": drawn, "annotators": _annotators_figure(report)}


@figures.for_kind("rankings")
def _figures_of_rankings(report: Report) -> dict[str, Figure | None]:
    return {"annotators": _annotators_figure(report), "scores": _scores_figure(report)}


def _scores_figure(report: Report) -> Figure:
    """Return the scores of things with their intervals; of many, the best and the worst."""
    table = report.result.items
    order = np.argsort(-np.nan_to_num(table["score"], nan=-np.inf), kind="stable")
    group = table["group"]
    size = np.bincount(group, table["n"] > 0)
    order = order[np.isfinite(table["score"][order]) & (group[order] == size.argmax())]
    half, note = _MAX_NAMED // 2, ""
    if len(order) > _MAX_NAMED:
        note = f" The {half} best and the {half} worst of {len(order)} are shown."
        order = np.concatenate([order[:half], order[-half:]])
    names = table["thing"][order].tolist()
    measures = {name: table[name][order] for name in ("score", "low", "high") if name in table}
    has_interval = "low" in measures and bool(np.isfinite(measures["low"]).any())
    values = {name: np.round(column, 3) for name, column in measures.items()}
    rows = as_rows({"thing": table["thing"][order], **values, "n": table["n"][order]})
    x = charts.number("score", "score", scale={"nice": False, "zero": False})
    y = {
        "field": "thing",
        "type": "nominal",
        "sort": names,
        "title": None,
        "axis": {"labelLimit": 160},
    }
    tip = charts.tooltip(thing="", score=".2f", low=".2f", high=".2f", n="d")
    layer = charts.dots(x, y, tip, along="x", color=BLUE)
    spec = charts.chart(rows, height=18 * len(rows), layer=layer if has_interval else layer[1:])
    words = "Scores of things with 95% intervals." if has_interval else "Scores of things."
    if np.count_nonzero(size) > 1:
        words += f" They are of the largest of {np.count_nonzero(size)} groups."
    return Figure("Scores", f"{words}{note}", spec)


def _annotators_figure(report: Report) -> Figure | None:
    """Return the distance of annotators to others: intervals, or a histogram of many."""
    table, verdict = report.annotator_scores.annotators, report.annotator_scores.verdict
    has_interval = np.flatnonzero(np.isfinite(table["excess_low"]))
    if not len(has_interval):
        return None
    tones = {FEW: GREY, LIKE_OTHERS: BLUE} | dict.fromkeys(report.judged, RED)
    drawn, counts = set(verdict[has_interval].tolist()), Counter(verdict.tolist())
    palette = {word: tone for word, tone in tones.items() if word in drawn}
    words = ", ".join(f"{word} {count}" for word, count in counts.items())
    columns = {
        "annotator": table["annotator"][has_interval],
        "answers": table["n_answers"][has_interval],
        "excess": table["excess"][has_interval],
        "low": table["excess_low"][has_interval],
        "high": table["excess_high"][has_interval],
        "verdict": verdict[has_interval],
    }
    spec = charts.verdicts_chart(columns, palette, "excess", "more distant by", 0.05)
    title = "Distance to others, compared with others on the same items"
    return Figure(title, f"Number of annotators by verdict: {words}.", spec)
