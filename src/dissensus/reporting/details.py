"""Tables of the page on classes: annotators, items, and downloads."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ..answers.annotations import Annotations
from ..base.arrays import Integers
from ..pages.sections import Column, Download, SortableTable
from ..pages.wording import percent
from ..planning.label_errors import checks_needed
from ..quality.sections import MAX_ITEMS, annotator_columns, item_table

if TYPE_CHECKING:
    from .report import Report

_MAX_CHARACTERS = 4_000_000  # of items to download
_MAX_LISTED = 10_000  # items to label again
_MAX_SHOWN = 8  # classes of a posterior
DIFFERS = "differs from the known label"


def lone_labels(report: Report) -> Integers:
    """Return labels that nobody else gave to their item, by row, the clearest first."""
    annotations, result = report.annotations, report.result
    item, label = annotations.item, result.label[annotations.item]
    single = annotations.votes()[item, annotations.label] == 1
    single &= annotations.labels_per_item[item] > 2
    rows = np.flatnonzero(single & (label != annotations.label) & (label >= 0))
    return rows[np.argsort(-result.confidence[item[rows]], kind="stable")]


def class_items(report: Report) -> tuple[SortableTable, list[dict[str, Any]], list[str]]:
    """Return the items, the least certain first and all known ones that are wrong."""
    annotations, result = report.annotations, report.result
    order = np.argsort(report.certainty, kind="stable")
    order = order[annotations.labels_per_item[order] > 0]
    wrong = report.is_wrong
    listed_items = np.concatenate([order[:MAX_ITEMS], order[MAX_ITEMS:][wrong[order[MAX_ITEMS:]]]])
    ordered = annotations.scale == "ordinal"
    votes = [votes_of(annotations, item) for item in listed_items.tolist()]
    cause, certainty = report.cause[listed_items].tolist(), report.certainty[listed_items]
    posterior = result.probabilities[listed_items]
    common = np.argsort(-posterior, axis=1, kind="stable")[:, :_MAX_SHOWN]
    share = np.take_along_axis(posterior, common, axis=1).round(4)
    within = " within one step" if ordered else ""
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
        "within one step" if ordered else "confidence": Column(certainty, percent),
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


def downloads(report: Report) -> dict[str, Download]:
    """Return labels, items to label again, items to check, and annotators."""
    annotations, result = report.annotations, report.result
    labels = {
        "item": annotations.items,
        "label": result.labels,
        "confidence": result.confidence.round(4),
    }
    small = sum(map(len, annotations.items.tolist())) + 8 * annotations.n_items <= _MAX_CHARACTERS
    n_checks = min(checks_needed(report.target), len(report.unchecked))
    drawn = np.random.default_rng(report.seed).permutation(report.unchecked)[:n_checks]
    return {
        "labels": Download("labels", labels if small else {}),
        "relabel": Download("items to label again", _listing(report, report.to_relabel)),
        "check": Download("random items to check", _listing(report, drawn)),
        "annotators": Download("annotators", annotator_columns(report)),
    }


def _listing(report: Report, items: Integers) -> dict[str, Any]:
    """Return items with text, votes, label, certainty and the cause of disagreement."""
    items = items[:_MAX_LISTED]
    annotations, names = report.annotations, report.annotations.items[items]
    columns = {
        "item": names,
        "text": [report.texts.get(name, "") for name in names.tolist()],
        "votes": [votes_of(annotations, item) for item in items.tolist()],
        "label": report.result.labels[items],
        "certainty": report.certainty[items].round(4),
        "why": report.cause[items],
    }
    if not report.texts:
        del columns["text"]
    return columns


def votes_of(annotations: Annotations, item: int) -> str:
    """Return how often every label was given to an item, the most frequent first."""
    labels = annotations.label[annotations.index[item] : annotations.index[item + 1]]
    counts = np.bincount(labels)
    most = np.argsort(-counts, kind="stable").tolist()
    shares = [f"{counts[k]} × {annotations.classes[k]}" for k in most if counts[k]]
    return ", ".join(shares[:6]) + " …" * (len(shares) > 6)
