"""The page of a report on answers that are sets, rankings, marks, masks or texts."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

import numpy as np

from ..aggregation.sections import confidence_histogram
from ..answers.marks import Marks
from ..answers.rankings import Rankings
from ..answers.sets import Sets
from ..base.arrays import Array
from ..base.storage import as_rows
from ..pages import charts
from ..pages.charts import BLUE, GREY, RED, Figure
from ..pages.sections import Column, Download, Page, Section, SortableTable, Table, estimates_table
from ..pages.wording import amount, formatted, interval, percent, titles
from ..quality.answers import FEW, LIKE_OTHERS
from ..quality.sections import MAX_ANNOTATORS, MAX_ITEMS, shortened
from .class_page import IN_MEMORY
from .drawings import disputed_panels

if TYPE_CHECKING:
    from .answer_report import AnswerReport

_MAX_NAMED = 40  # annotators and things in a chart
_CONFIDENCE = {"sets": "set", "masks": "mask", "texts": "text", "rankings": "ranking"}
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


def answer_page(report: AnswerReport) -> Page:
    """Return what the page shows."""
    answers, agreement = report.answers, report.agreement
    drawn = {
        "confidence": _confidence_figure(report),
        "annotators": _annotators_figure(report),
        "scores": _scores_figure(report),
    }
    figures = {name: figure for name, figure in drawn.items() if figure is not None}
    sections = [_data_section(report), _consensus_section(report), _annotators_section(report)]
    if report.evaluation is not None:
        words = titles("scores")
        scores = {words[name]: score for name, score in report.evaluation.scores.items()}
        panels = [[estimates_table("Scores of the consensus", scores)]]
        sections.insert(2, Section("truth", "Known answers", panels=panels))
    sections.append(_disputed_section(report))
    if agreement is not None:
        names = titles("distances")
        estimates = {names[estimate.measure]: estimate for estimate in agreement.estimates}
        table = estimates_table("Measures, intervals over items", estimates)
        paired = f"{amount(agreement.n_paired, 'item')} have two answers or more."
        section = Section("agreement", "Agreement", [paired], agreement.notes, panels=[[table]])
        sections.append(section)
    n_rows = len(report.result.items[next(iter(report.result.items))])
    alpha = "–" if agreement is None else formatted(agreement["alpha"].value, ".2f")
    marks = "mark " if isinstance(answers, Marks) else f"{_CONFIDENCE.get(report.kind)} "
    terms_found = ["found"] * ("found" in report.result.annotators)
    return Page(
        facts={
            "annotators": (amount(answers.n_annotators), "annotators"),
            "items": (amount(answers.n_items), "disputed"),
            "answers": (amount(len(answers)), "data"),
            f"{_plural(report.noun)} in the consensus": (amount(n_rows), "consensus"),
            "alpha": (alpha, "consensus" if agreement is None else "agreement"),
            "disputed items": (amount(len(report.disputed)), "disputed"),
        },
        sections=sections,
        charts=figures,
        downloads={
            "consensus": Download("the consensus", report.result.items),
            "annotators": Download("annotators", report.scores.annotators),
            "distances": Download(
                "items by distance",
                {
                    "item": answers.items,
                    "answers": answers.labels_per_item,
                    "distance": report.distance,
                },
            ),
        },
        terms=(f"{marks}confidence", "distance", "answer verdicts", *terms_found, "distance alpha"),
        method=report.result.method,
        actions=report.actions,
        picture="scores" if "scores" in figures else "confidence",
    )


def _plural(noun: str) -> str:
    return amount(2, noun).removeprefix("2 ")


def _data_section(report: AnswerReport) -> Section:
    """Return what was read."""
    reading, size = report.reading, report.answers.labels_per_item
    few, most = int(size.min()), int(size.max())
    range_words = f"{few} to {most} answers, {size.mean():.1f} on average"
    parts = [
        "" if reading.format in IN_MEMORY else f"The file was read as {reading.format}.",
        f"The answers are {report.kind}.",
        f"An item has {amount(few, 'answer') if few == most else range_words}.",
    ]
    return Section("data", "Data", [" ".join(filter(None, parts))], reading.notes)


def _consensus_section(report: AnswerReport) -> Section:
    """Return how the consensus was found, and its rows, the least certain first."""
    result = report.result
    ended = "" if result.converged or not result.trace else " It had not converged when it stopped."
    text = [f"The consensus was found by the method {result.method}.{ended}"]
    if report.errors is not None and report.errors.n_items and report.evaluation is None:
        errors = report.errors
        text.append(
            f"Of {amount(errors.n_items, report.noun)}, about {errors.expected:.0f} are wrong "
            f"({errors.low:.0f} to {errors.high:.0f}), judged by their confidence alone, which can "
            "be off by a factor of two."
        )
    notes = [*result.notes, "The command `dissensus compare` puts methods side by side."]
    return Section("consensus", "Consensus", text, table=_consensus_table(report), folded=notes)


def _consensus_table(report: AnswerReport) -> SortableTable:
    """Return the rows of the consensus, the least certain first, things by rank."""
    table = report.result.items
    size = len(table[next(iter(table))])
    if isinstance(report.answers, Rankings):
        order = np.lexsort((table["rank"], table["group"]))
        words = "by rank"
    else:
        order = np.argsort(np.nan_to_num(table["confidence"], nan=2.0), kind="stable")
        words = "the least certain first"
    order = order[:MAX_ITEMS]
    columns = {
        _HEADS.get(name, name.removeprefix("p:")): _column(name, values[order])
        for name, values in table.items()
        if name not in ("counts", "group") or (name == "group" and len(np.unique(values)) > 1)
    }
    if isinstance(report.answers, Sets):  # options are in the labels; their columns are too many
        columns = {name: column for name, column in columns.items() if name in _SET_COLUMNS}
    noun = report.noun
    caption = f"{amount(len(order), noun, size)}, {words}"
    return SortableTable("consensus-table", caption, columns)


def _column(name: str, values: Array) -> Column:
    """Return a column in the format of its values."""
    if values.dtype.kind in "iu":
        return Column(values, "d")
    if values.dtype.kind != "f":
        texts = [shortened(value) for value in values.tolist()]
        return Column(texts, kind="text" if name in ("item", "thing", "label") else "plain")
    return Column(values, percent if name == "confidence" else ".4g")


def _confidence_figure(report: AnswerReport) -> Figure | None:
    """Return how many rows of the consensus have which confidence."""
    confidence = report.result.confidence
    confidence = confidence[np.isfinite(confidence)]
    if not len(confidence) or isinstance(report.answers, Rankings):
        return None
    return confidence_histogram(confidence, "consensus", "confidence", _plural(report.noun))


def _scores_figure(report: AnswerReport) -> Figure | None:
    """Return the scores of things with their intervals; of many, the best and the worst."""
    table = report.result.items
    if not isinstance(report.answers, Rankings):
        return None
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


def _annotators_figure(report: AnswerReport) -> Figure | None:
    """Return the distance of annotators to others: intervals, or a histogram of many."""
    table, verdict = report.scores.annotators, report.scores.verdict
    has_interval = np.flatnonzero(np.isfinite(table["excess_low"]))
    if not len(has_interval):
        return None
    kinds = verdict.tolist()
    palette = {FEW: GREY, LIKE_OTHERS: BLUE} | dict.fromkeys(report.judged, RED)
    palette = {
        word: tone for word, tone in palette.items() if word in verdict[has_interval].tolist()
    }
    colour = charts.colour("verdict", palette, symbolOpacity=1, columns=3)
    counted = [f"{word} {kinds.count(word)}" for word in dict.fromkeys(kinds)]
    words = f"Number of annotators by verdict: {', '.join(counted)}."
    title, axis = "Distance to others, compared with others on the same items", "more distant by"
    value = table["excess"][has_interval]
    if len(has_interval) > _MAX_NAMED:
        step = np.floor(value * 20 + 1e-9) / 20
        pairs = Counter(zip(step.tolist(), verdict[has_interval].tolist(), strict=True))
        rows = [
            {"from": low, "to": round(low + 0.05, 3), "verdict": word, "annotators": count}
            for (low, word), count in sorted(pairs.items())
        ]
        x = charts.number("from", axis, bin={"binned": True}, axis={"tickCount": 10})
        y = charts.number("annotators", "annotators", stack="zero")
        encoding = {"x": x, "x2": {"field": "to"}, "y": y, "color": colour}
        mark = {"type": "bar", "tooltip": {"content": "data"}}
        return Figure(title, words, charts.chart(rows, height=220, mark=mark, encoding=encoding))
    order = has_interval[np.argsort(value, kind="stable")]
    columns = {
        "annotator": table["annotator"][order],
        "answers": table["n_answers"][order],
        "excess": table["excess"][order].round(3),
        "low": table["excess_low"][order].round(3),
        "high": table["excess_high"][order].round(3),
        "verdict": verdict[order],
    }
    x = charts.number("excess", axis, axis={"tickCount": 8}, scale={"nice": False})
    names = columns["annotator"].tolist()
    y = {"field": "annotator", "type": "nominal", "sort": names, "title": None}
    tip = charts.tooltip(annotator="", answers="d", excess=".2f", low=".2f", high=".2f")
    layers = charts.dots(x, y, tip, along="x")
    for layer in layers:
        layer["encoding"]["color"] = colour
    return Figure(
        title, words, charts.chart(as_rows(columns), height=18 * len(order), layer=layers)
    )


def _annotators_section(report: AnswerReport) -> Section:
    """Return annotators, those with a verdict first, then the most distant ones."""
    table, verdict = report.scores.annotators, report.scores.verdict
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
        report.scores.evidence.get(name, "") for name in table["annotator"][rows_listed].tolist()
    ]
    columns["verdict"] = Column(verdict[rows_listed], kind="verdict")
    if any(evidence):
        columns["evidence"] = Column(evidence, kind="plain", classes=["text"] * len(evidence))
    caption = (
        f"{amount(len(rows_listed), 'annotator', report.answers.n_annotators)}, verdicts first"
    )
    kinds = [[word] for word in verdict[rows_listed].tolist()]
    rows = SortableTable("annotator-table", caption, columns, kinds, filter="Verdict")
    text = [
        "Annotators are compared with the consensus and with others on the same items. “More "
        "distant” is by how much the distance of their answers to others exceeds the mean distance "
        "of the items they answered. A verdict needs the whole interval of what speaks for it, and "
        "does not say who is right."
    ]
    return Section("annotators", "Annotators", text, panels=[["annotators"]], table=rows)


def _ends(low: float, high: float, *, share: bool) -> str:
    if not share:
        return interval(low, high)
    return "" if low != low or high != high else f"{percent(low)} to {percent(high)}"


def _disputed_section(report: AnswerReport) -> Section:
    """Return the items whose answers differ most, drawn."""
    title = "Disputed questions" if isinstance(report.answers, Rankings) else "Disputed items"
    if not len(report.most_disputed):
        words = ["No two answers to an item differ, or no item has two."]
        return Section("disputed", title, words)
    panels: list[list[Table | str | Any]] = disputed_panels(report)
    n_shown, n_disputed = len(report.most_disputed), len(report.disputed)
    opening = "This is the item" if n_shown == 1 else f"These are the {n_shown} items"
    words = [f"{opening} whose answers differ most, by their mean distance."]
    if n_disputed:
        words.append(
            f"On {amount(n_disputed, 'item')} of three answers or more, these differ as much as "
            "answers to different items do."
        )
    return Section("disputed", title, words, panels=panels)
