"""The page of a report on answers that are sets, rankings, marks, masks or texts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.special import gammaincinv

from .._plain import as_rows
from .._relation import Array, Floats
from ..answers.marks import Marks
from ..answers.rankings import Rankings
from ..answers.sets import Sets
from ..identification.nearness import DISTANT, FEW, ORDINARY, UNRELATED
from ..identification.proportions import proportion
from . import charts
from .answer_drawings import disputed_panels
from .charts import BLUE, GREY, RED, Figure
from .class_page import IN_MEMORY
from .figures import confidence_histogram
from .sections import Column, Download, Page, Section, SortableTable, Table, estimates_table
from .sentences import amount, formatted, interval, percent
from .tables import MAX_ANNOTATORS, MAX_ITEMS, shortened

if TYPE_CHECKING:
    from .answer_report import AnswerReport

_MAX_NAMED = 40  # annotators and things in a chart
MEASURES = {
    "alpha": "alpha",
    "observed": "distance within items",
    "expected": "distance between items",
    "token_alpha": "alpha of tokens",
    "span_f1": "F1 of pairs of annotators, same spans",
    "gamma": "gamma, mean over pairs",
    "f1_50": "F1 of pairs of answers, overlap above one half",
    "iou": "intersection over union of pairs",
    "jaccard_alpha": "alpha with the Jaccard distance",
    "option_alpha": "alpha of options, mean",
}
_COLOURS = {UNRELATED: RED, DISTANT: "#edae49", FEW: GREY, ORDINARY: BLUE}
_CONFIDENCE = {"sets": "set", "masks": "mask", "texts": "text", "rankings": "ranking"}


def answer_page(report: AnswerReport) -> Page:
    """Return what the page shows."""
    from .answer_sentences import SCORES

    answers, agreement = report.answers, report.agreement
    drawn = {
        "confidence": _confidence_figure(report),
        "annotators": _annotators_figure(report),
        "scores": _scores_figure(report),
    }
    figures = {name: one for name, one in drawn.items() if one is not None}
    sections = [_data_section(report), _consensus_section(report), _annotators_section(report)]
    if report.evaluation is not None:
        scores = {SCORES.get(name, name): one for name, one in report.evaluation.scores.items()}
        panels = [[estimates_table("Scores of the consensus", scores)]]
        sections.insert(2, Section("truth", "Known answers", panels=panels))
    sections.append(_disputed_section(report))
    if agreement is not None:
        estimates = {MEASURES.get(one.measure, one.measure): one for one in agreement.estimates}
        table = estimates_table("Measures, intervals over items", estimates)
        words = f"{amount(agreement.n_paired, 'item')} have two answers or more."
        section = Section("agreement", "Agreement", [words], agreement.notes, panels=[[table]])
        sections.append(section)
    n_rows = len(report.result.items[next(iter(report.result.items))])
    alpha = "–" if agreement is None else formatted(agreement["alpha"].value, ".2f")
    marks = "mark " if isinstance(answers, Marks) else f"{_CONFIDENCE.get(report.kind)} "
    found = ["found"] * ("found" in report.result.annotators)
    return Page(
        {
            "annotators": (amount(answers.n_annotators), "annotators"),
            "items": (amount(answers.n_items), "disputed"),
            "answers": (amount(len(answers)), "data"),
            f"{_plural(report.noun)} in the consensus": (amount(n_rows), "consensus"),
            "alpha": (alpha, "consensus" if agreement is None else "agreement"),
            "disputed items": (amount(len(report.disputed)), "disputed"),
        },
        sections,
        figures,
        {
            "consensus": Download("the consensus", report.result.items),
            "annotators": Download("annotators", _annotator_columns(report)),
            "distances": Download(
                "items by distance",
                {
                    "item": answers.items,
                    "answers": answers.labels_per_item,
                    "distance": report.distance,
                },
            ),
        },
        (f"{marks}confidence", "distance", "nearness", *found, "distance alpha"),
        report.result.method,
        report.actions,
        None,
        "scores" if "scores" in figures else "confidence",
    )


def _plural(noun: str) -> str:
    return amount(2, noun).removeprefix("2 ")


def _data_section(report: AnswerReport) -> Section:
    """Return what was read."""
    reading, size = report.reading, report.answers.labels_per_item
    few, most = int(size.min()), int(size.max())
    each = f"{few} to {most} answers, {size.mean():.1f} on average"
    parts = [
        "" if reading.format in IN_MEMORY else f"The file was read as {reading.format}.",
        f"The answers are {report.kind}.",
        f"An item has {amount(few, 'answer') if few == most else each}.",
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
    panels: Any = [["scores"]] if isinstance(report.answers, Rankings) else [["confidence"]]
    notes = [*result.notes, "The command `dissensus compare` puts methods side by side."]
    return Section(
        "consensus", "Consensus", text, panels=panels, table=_consensus_table(report), folded=notes
    )


def _consensus_table(report: AnswerReport) -> SortableTable:
    """Return the rows of the consensus, the least certain first, things by rank."""
    table = report.result.items
    size = len(table[next(iter(table))])
    if isinstance(report.answers, Rankings):
        order = np.lexsort((table["rank"], table["group"])) if "group" in table else np.arange(size)
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
        columns = {name: one for name, one in columns.items() if name in _SET_COLUMNS}
    noun = report.noun
    caption = f"{amount(len(order), noun, size)}, {words}"
    return SortableTable("consensus-table", caption, columns)


_HEADS = {"n_marked": "marked by", "n_looked": "looked", "n_answers": "answers", "n": "answers"}
_SET_COLUMNS = ("item", "labels", "confidence", "answers")


def _column(name: str, values: Array) -> Column:
    """Return a column in the format of its values."""
    if values.dtype.kind in "iu":
        return Column(values, "d")
    if values.dtype.kind != "f":
        texts = [shortened(one) for one in values.tolist()]
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
    """Return the scores of things with their intervals, the best and the worst if there are many."""
    table = report.result.items
    if not isinstance(report.answers, Rankings):
        return None
    order = np.argsort(-np.nan_to_num(table["score"], nan=-np.inf), kind="stable")
    order = order[np.isfinite(table["score"][order])]
    half, some = _MAX_NAMED // 2, ""
    if len(order) > _MAX_NAMED:
        some = f" The {half} best and the {half} worst of {len(order)} are shown."
        order = np.concatenate([order[:half], order[-half:]])
    names = table["thing"][order].tolist()
    known = {name: table[name][order] for name in ("score", "low", "high") if name in table}
    has_interval = "low" in known and bool(np.isfinite(known["low"]).any())
    values = {name: np.round(one, 3) for name, one in known.items()}
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
    spec = charts.chart(rows, height={"step": 18}, layer=layer if has_interval else layer[1:])
    words = "Scores of things with 95% intervals." if has_interval else "Scores of things."
    if "group" in table and len(np.unique(table["group"])) > 1:
        words += " Scores of different groups cannot be compared."
    return Figure("Scores", f"{words}{some}", spec)


def _annotators_figure(report: AnswerReport) -> Figure | None:
    """Return how far answers follow the items: intervals, or a histogram of many annotators."""
    near = report.nearness
    known = np.flatnonzero(np.isfinite(near.low))
    if not len(known):
        return None
    verdict = near.verdict[known]
    palette = {word: tone for word, tone in _COLOURS.items() if word in verdict}
    colour = charts.colour("verdict", palette, symbolOpacity=1, columns=3)
    counted = [f"{word} {int((near.verdict == word).sum())}" for word in _COLOURS]
    words = f"Number of annotators by verdict: {', '.join(counted)}."
    title = "How far answers follow the items"
    if len(known) > _MAX_NAMED:
        step = np.clip(np.floor(near.follows[known] * 10 + 1e-9), -10, 9) / 10
        cells, count = np.unique(np.stack([step.astype(str), verdict]), axis=1, return_counts=True)
        rows = [
            {"from": float(low), "to": float(low) + 0.1, "verdict": word, "annotators": int(n)}
            for low, word, n in zip(*cells, count, strict=True)
        ]
        x = charts.number("from", "follows", bin={"binned": True}, axis={"tickCount": 10})
        y = charts.number("annotators", "annotators", stack="zero")
        encoding = {"x": x, "x2": {"field": "to"}, "y": y, "color": colour}
        mark = {"type": "bar", "tooltip": {"content": "data"}}
        return Figure(title, words, charts.chart(rows, height=220, mark=mark, encoding=encoding))
    order = known[np.argsort(near.follows[known], kind="stable")]
    columns = {
        "annotator": report.answers.annotators[order],
        "answers": near.n_compared[order],
        "follows": near.follows[order].round(3),
        "low": near.low[order].round(3),
        "high": near.high[order].round(3),
        "verdict": near.verdict[order],
    }
    x = charts.number("follows", "follows", scale={"nice": False, "zero": False})
    names = columns["annotator"].tolist()
    y = {"field": "annotator", "type": "nominal", "sort": names, "title": None}
    tip = charts.tooltip(annotator="", answers="d", follows=".2f", low=".2f", high=".2f")
    layers = charts.dots(x, y, tip, along="x")
    for layer in layers:
        layer["encoding"]["color"] = colour
    return Figure(title, words, charts.chart(as_rows(columns), height={"step": 18}, layer=layers))


def _annotators_section(report: AnswerReport) -> Section:
    """Return annotators with what the kind says about them and how far they follow the items."""
    near = report.nearness
    shown = near.worst[report.answers.labels_per_annotator[near.worst] > 0][:MAX_ANNOTATORS]
    people = {name: values[shown] for name, values in _annotator_columns(report).items()}
    columns = {
        "annotator": Column(people.pop("annotator")),
        "answers": Column(people.pop("answers"), "d"),
    }
    text_of = {"verdict": "verdict"}
    for name, values in people.items():
        if name.endswith(("_low", "_high")):
            continue
        if name in text_of:
            columns[name] = Column(values, kind=text_of[name])
            continue
        form: Any = percent if name in _SHARES else ".2f"
        columns[name] = Column(values, form)
        if f"{name}_low" in people:
            ends = zip(people[f"{name}_low"].tolist(), people[f"{name}_high"].tolist(), strict=True)
            cells = [_ends(low, high, name) for low, high in ends]
            columns[f"{name}, 95%"] = Column(cells, kind="plain number")
    caption = f"{amount(len(shown), 'annotator', report.answers.n_annotators)}, the worst first"
    kinds = [[one] for one in near.verdict[shown].tolist()]
    table = SortableTable("annotator-table", caption, columns, kinds, filter="Verdict")
    text = [
        "“Follows” compares the distances of an annotator's answers to those of others on the same "
        "items and on other items: 1 gives the same answers as the others, 0 ignores the items. "
        "Verdicts need ten answers and hold although many annotators are compared. They do not say "
        "who is right."
    ]
    return Section("annotators", "Annotators", text, panels=[["annotators"]], table=table)


_SHARES = ("found", "sensitivity", "specificity", "iou", "accuracy", "honest", "left", "ties",
           "empty")  # fmt: skip


def _ends(low: float, high: float, name: str) -> str:
    if name not in _SHARES:
        return interval(low, high)
    return "" if low != low else f"{percent(low)} to {percent(high)}"


def _annotator_columns(report: AnswerReport) -> dict[str, Array]:
    """Return what the kind says about annotators, with intervals where counts give them."""
    answers, near, given = report.answers, report.nearness, report.result.annotators
    n_answers = answers.labels_per_annotator.astype(float)
    empty = np.bincount(answers.annotator, answers.empty, minlength=answers.n_annotators)
    columns: dict[str, Array] = {"annotator": answers.annotators, "answers": given["n_answers"]}
    if answers.empty.any():
        with np.errstate(invalid="ignore", divide="ignore"):
            columns["empty"] = empty / n_answers
    for name, values in given.items():
        if name in ("annotator", "n_answers"):
            continue
        columns[name] = values
        low, high = _bounds(report, name, values)
        if low is not None and high is not None:
            columns |= {f"{name}_low": low, f"{name}_high": high}
    columns |= {"follows": near.follows, "follows_low": near.low, "follows_high": near.high}
    return columns | {"verdict": near.verdict}


def _bounds(
    report: AnswerReport, name: str, values: Floats
) -> tuple[Floats | None, Floats | None]:
    """Return intervals of shares of what is there, and of counts per item."""
    answers = report.answers
    there = _there(report)
    if name in ("found", "sensitivity", "specificity"):
        absent = name == "specificity"
        among = _asked(report) - there if absent else there
        with np.errstate(invalid="ignore"):
            found = proportion(np.nan_to_num(values) * among, among)
        return found.low, found.high
    if name == "spurious":
        n_answers = np.maximum(answers.labels_per_annotator.astype(float), 1.0)
        count = np.nan_to_num(values) * n_answers
        low = np.where(count > 0, gammaincinv(np.maximum(count, 1e-9), 0.025), 0.0)
        return low / n_answers, gammaincinv(count + 1, 0.975) / n_answers
    return None, None


def _there(report: AnswerReport) -> Floats:
    """Return how many elements the consensus has on the items that annotators answered."""
    answers, agreed = report.answers, report.result.consensus
    size = np.zeros(answers.n_items)
    if hasattr(agreed, "sizes"):
        size = np.bincount(agreed.item, agreed.sizes, minlength=answers.n_items).astype(float)
    who, n = answers.annotator, answers.n_annotators
    return np.bincount(who, size[answers.item], minlength=n).astype(float)


def _asked(report: AnswerReport) -> Floats:
    """Return how many options annotators could choose in all their answers."""
    return report.answers.labels_per_annotator * float(getattr(report.answers, "n_options", 0))


def _disputed_section(report: AnswerReport) -> Section:
    """Return the items whose answers differ most, drawn."""
    title = "Disputed questions" if isinstance(report.answers, Rankings) else "Disputed items"
    if not len(report.most_disputed):
        words = ["No two answers to an item differ, or no item has two."]
        return Section("disputed", title, words)
    panels: list[list[Table | str | Any]] = disputed_panels(report)
    n_shown = len(report.most_disputed)
    words = [f"The {amount(n_shown, 'item')} whose answers differ most, by their mean distance."]
    if report.agreement is not None:
        words.append(
            f"On {amount(len(report.disputed), 'item')} of three answers or more, these differ as "
            "much as answers to different items do."
        )
    return Section("disputed", title, words, panels=panels)
