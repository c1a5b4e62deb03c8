"""Details of annotators and items whose answers are labels, and lists to download.

Of a table that readers click, a part returns the table and what the script of the page shows of
every row.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from ..answers.annotations import Annotations
from ..answers.numbers import Numbers
from ..base.arrays import Integers
from ..pages.sections import Column, Download, SortableTable
from ..pages.wording import formatted, percent
from ..planning.label_errors import checks_needed
from ..quality.sections import MAX_ITEMS, annotator_columns, annotator_table, item_table
from .parts import part

if TYPE_CHECKING:
    from .report import Report

Details = list[dict[str, Any]]  # of the rows of a table

_MAX_CHARACTERS = 4_000_000  # of items to download
_MAX_LISTED = 10_000  # items to label again
_MAX_SHOWN = 8  # classes of a posterior
DIFFERS = "differs from the known label"
_WIDE, _ORDINARY = "answers scatter widely", "answers scatter as usual"


# Annotators.


@part
def annotator_rows(report: Report) -> tuple[SortableTable, Details]:
    """Return the annotators, the worst first, and the details of each."""
    raise NotImplementedError


@annotator_rows.for_kind("classes")
def _who_labelled(report: Report) -> tuple[SortableTable, Details]:
    labels = report.answers.classes[report.answers.label]
    return annotator_table(report, _lone_labels(report), report.result.labels, labels)


@annotator_rows.for_kind("numbers")
def _who_answered(report: Report) -> tuple[SortableTable, Details]:
    numbers, value = report.answers, report.result.value
    farthest = np.argsort(-np.abs(numbers.value - value[numbers.item]), kind="stable")
    values = [formatted(of_item, report.doubt.form) for of_item in value]
    return annotator_table(report, farthest, values, [f"{x:g}" for x in numbers.value.tolist()])


def _lone_labels(report: Report) -> Integers:
    """Return labels that nobody else gave to their item, by row, the clearest first."""
    annotations, result = report.answers, report.result
    item, label = annotations.item, result.label[annotations.item]
    single = annotations.votes()[item, annotations.label] == 1
    single &= annotations.labels_per_item[item] > 2
    rows = np.flatnonzero(single & (label != annotations.label) & (label >= 0))
    return rows[np.argsort(-result.confidence[item[rows]], kind="stable")]


# Items.


@part
def item_rows(report: Report) -> tuple[SortableTable, Details, list[str]]:
    """Return the items, the most doubtful first, details of each, and annotators named in these."""
    raise NotImplementedError


@item_rows.for_kind("classes")
def _labelled_items(report: Report) -> tuple[SortableTable, Details, list[str]]:
    """Return the least certain items, and all known ones that are wrong."""
    annotations, result, doubt = report.answers, report.result, report.doubt
    order = np.argsort(doubt.certainty, kind="stable")
    order = order[annotations.labels_per_item[order] > 0]
    wrong = _is_wrong(report)
    listed_items = np.concatenate([order[:MAX_ITEMS], order[MAX_ITEMS:][wrong[order[MAX_ITEMS:]]]])
    votes = [votes_of(annotations, item) for item in listed_items.tolist()]
    cause, certainty = doubt.cause[listed_items].tolist(), doubt.certainty[listed_items]
    posterior = result.probabilities[listed_items]
    common = np.argsort(-posterior, axis=1, kind="stable")[:, :_MAX_SHOWN]
    share = np.take_along_axis(posterior, common, axis=1).round(4)
    within = " within one step" if doubt.ordered else ""
    split = annotations.votes()[listed_items]
    most = split.argmax(axis=1)
    outvoted = (most != result.label[listed_items]) & (2 * split.max(axis=1) > split.sum(axis=1))
    kinds = [
        [why, *["most votes are for another label"] * beaten, *[DIFFERS] * differs]
        for why, beaten, differs in zip(
            cause, outvoted.tolist(), wrong[listed_items].tolist(), strict=True
        )
    ]
    details: dict[str, list[Any]] = {
        "words": [
            (
                ", of which it cannot be told whether it is right."
                if np.isnan(x)
                else f", right{within} with probability {percent(x)}."
            )
            + f" Why annotators disagree: {why}."
            for x, why in zip(certainty.tolist(), cause, strict=True)
        ],
        "posterior": [
            list(zip(*class_shares, strict=True))
            for class_shares in zip(
                annotations.classes[common].tolist(), share.tolist(), strict=True
            )
        ],
    }
    columns = {
        "within one step" if doubt.ordered else "confidence": Column(certainty, percent),
        "labels": Column(annotations.labels_per_item[listed_items], "d"),
        "votes": Column(votes, kind="plain"),
        "why": Column(cause),
    }
    label = Column([name or "undecided" for name in result.labels[listed_items]])
    labels = annotations.label
    return item_table(
        report,
        listed_items,
        answers=labels,
        label=label,
        columns=columns,
        details=details,
        kinds=kinds,
        order="the least certain first",
    )


def _is_wrong(report: Report) -> npt.NDArray[np.bool_]:
    """Return which items have a label that differs from the known one."""
    pairs = zip(report.answers.items.tolist(), report.result.labels.tolist(), strict=True)
    return np.array([report.known.get(item, label) != label for item, label in pairs], dtype=bool)


@item_rows.for_kind("numbers")
def _valued_items(report: Report) -> tuple[SortableTable, Details, list[str]]:
    """Return the items, the widest scatter first."""
    numbers, doubt, form = report.answers, report.doubt, report.doubt.form
    listed_items = np.argsort(-np.nan_to_num(doubt.scatter, nan=-1.0), kind="stable")
    listed_items = listed_items[numbers.labels_per_item[listed_items] > 0][:MAX_ITEMS]
    ends = [_values_of(numbers, item)[[0, -1]].tolist() for item in listed_items.tolist()]
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
        "answers": Column(numbers.labels_per_item[listed_items], "d"),
        "scatter": Column(doubt.scatter[listed_items], form),
        "lowest": Column(lowest, "g"),
        "highest": Column(highest, "g"),
    }
    is_wide = np.isin(listed_items, doubt.again).tolist()
    return item_table(
        report,
        listed_items,
        answers=numbers.value,
        label=Column(report.result.value[listed_items], form),
        columns=columns,
        details=details,
        kinds=[[_WIDE if wide else _ORDINARY] for wide in is_wide],
        order="the widest scatter first",
    )


def votes_of(annotations: Annotations, item: int) -> str:
    """Return how often every label was given to an item, the most frequent first."""
    labels = annotations.label[annotations.index[item] : annotations.index[item + 1]]
    counts = np.bincount(labels)
    most = np.argsort(-counts, kind="stable").tolist()
    shares = [f"{counts[k]} × {annotations.classes[k]}" for k in most if counts[k]]
    return ", ".join(shares[:6]) + " …" * (len(shares) > 6)


def _values_of(numbers: Numbers, item: int) -> Any:
    return np.sort(numbers.value[numbers.index[item] : numbers.index[item + 1]])


# Lists to download.


@part
def downloads(report: Report) -> dict[str, Download]:
    """Return lists of annotators and items."""
    raise NotImplementedError


@downloads.for_kind("classes")
def _lists_of_labels(report: Report) -> dict[str, Download]:
    """Return labels, items to label again, items to check, and annotators."""
    annotations, result, doubt = report.answers, report.result, report.doubt
    labels = {
        "item": annotations.items,
        "label": result.labels,
        "confidence": result.confidence.round(4),
    }
    small = sum(map(len, annotations.items.tolist())) + 8 * annotations.n_items <= _MAX_CHARACTERS
    n_checks = min(checks_needed(doubt.target), len(doubt.unchecked))
    drawn = np.random.default_rng(report.seed).permutation(doubt.unchecked)[:n_checks]
    return {
        "labels": Download("labels", labels if small else {}),
        "relabel": Download("items to label again", _labels_of(report, doubt.again)),
        "check": Download("random items to check", _labels_of(report, drawn)),
        "annotators": Download("annotators", annotator_columns(report)),
    }


@downloads.for_kind("numbers")
def _lists_of_values(report: Report) -> dict[str, Download]:
    """Return values, items to answer again, and annotators."""
    values = {**report.result.items, "scatter": report.doubt.scatter}
    items, numbers = report.doubt.again, report.answers
    columns = {
        "answers": [
            ", ".join(f"{value:g}" for value in _values_of(numbers, item))
            for item in items.tolist()
        ],
        "value": report.result.value[items],
        "standard_error": report.result.deviation[items],
        "scatter": report.doubt.scatter[items],
    }
    return {
        "values": Download("values", values),
        "relabel": Download("items to answer again", _named(report, items) | columns),
        "annotators": Download("annotators", annotator_columns(report)),
    }


def _labels_of(report: Report, items: Integers) -> dict[str, Any]:
    """Return items with text, votes, label, certainty and the cause of disagreement."""
    items = items[:_MAX_LISTED]
    return _named(report, items) | {
        "votes": [votes_of(report.answers, item) for item in items.tolist()],
        "label": report.result.labels[items],
        "certainty": report.doubt.certainty[items].round(4),
        "why": report.doubt.cause[items],
    }


def _named(report: Report, items: Integers) -> dict[str, Any]:
    """Return the names of items, and their texts if there are any."""
    names = report.answers.items[items]
    if not report.texts:
        return {"item": names}
    return {"item": names, "text": [report.texts.get(name, "") for name in names.tolist()]}
