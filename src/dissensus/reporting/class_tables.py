"""Tables of the page on classes: annotators, items, their details, and downloads.

Large data are cut, the worst and most doubtful first, and the page says so.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from .._plain import as_rows
from .._relation import Integers
from ..annotations import Annotations
from ..label_errors import checks_needed
from .embedding import embedded_image
from .sections import Column, Download, SortableTable
from .sentences import amount, percent

if TYPE_CHECKING:
    from .report import Report

_MAX_ANNOTATORS, _MAX_ITEMS = 500, 1000  # rows
_MAX_LABELS = 60  # of one item
_MAX_CLASSES = 20  # of annotators' confusion matrices
_MAX_LONE = 10  # labels
_MAX_CHARACTERS = 4_000_000  # of items to download
_MAX_LISTED = 10_000  # items to label again
_SHORT = 120  # characters of a text in the table


def annotator_table(report: Report) -> tuple[SortableTable, list[dict[str, Any]]]:
    """Return the annotators, the worst first, and the details of each."""
    annotations, worst = report.annotations, report.annotator_scores.worst
    shown = worst[annotations.labels_per_annotator[worst] > 0][:_MAX_ANNOTATORS]
    scores = {name: values[shown] for name, values in report.annotators.items()}
    bounds = zip(scores["correlation_low"], scores["correlation_high"], strict=True)
    intervals = [f"{low:.2f} to {high:.2f}" if low == low else "" for low, high in bounds]
    columns = {
        "annotator": Column(scores["annotator"]),
        "labels": Column(scores["labels"], "d"),
        "follows": Column(scores["correlation"], ".2f"),
        "95% interval": Column(intervals, kind="plain number"),
    }
    if "gold_accuracy" in scores:
        ends = ("accuracy", "low", "high", "labels")
        known = zip(*(scores[f"gold_{end}"] for end in ends), strict=True)
        right = [
            f"{percent(value)} of {n} ({percent(low)} to {percent(high)})" if n else ""
            for value, low, high, n in known
        ]
        columns["right on known items"] = Column(right, kind="plain number")
    columns |= {
        "agrees": Column(scores["agreement"], percent),
        "seconds": Column(scores["seconds"], ".1f"),
        "verdict": Column(scores["verdict"], kind="verdict"),
    }
    if np.isnan(scores["seconds"]).all():
        del columns["seconds"]
    lone, confusion = _lone_labels(report, shown), report.annotator_scores.confusion
    small = annotations.n_classes <= _MAX_CLASSES
    details = as_rows(
        {
            **{name: scores[name] for name in ("verdict", "evidence")},
            "name": scores["annotator"],
            "alone": [lone.get(a, []) for a in shown.tolist()],
            "confusion": [
                confusion[a].round(3).tolist() if small else None for a in shown.tolist()
            ],
        }
    )
    caption = f"{amount(len(shown), 'annotator', annotations.n_annotators)}, the worst first"
    kinds, hint = [[verdict] for verdict in scores["verdict"]], "name or verdict"
    table = SortableTable("annotator-table", caption, columns, kinds, "annotator", hint, "Verdict")
    return table, details


def _lone_labels(report: Report, shown: Integers) -> dict[int, list[list[str]]]:
    """Return labels that nobody else gave to their item, by annotator, the clearest first."""
    annotations, result = report.annotations, report.result
    item, label = annotations.item, result.label[annotations.item]
    single = annotations.votes()[item, annotations.label] == 1
    single &= annotations.labels_per_item[item] > 2
    single &= (label != annotations.label) & (label >= 0) & np.isin(annotations.annotator, shown)
    rows = np.flatnonzero(single)
    lone: dict[int, list[list[str]]] = {}
    for row in rows[np.argsort(-result.confidence[item[rows]], kind="stable")].tolist():
        labels = lone.setdefault(int(annotations.annotator[row]), [])
        if len(labels) < _MAX_LONE:
            codes = annotations.label[row], label[row]
            labels.append([annotations.items[item[row]], *annotations.classes[list(codes)]])
    return lone


def item_table(report: Report) -> tuple[SortableTable, list[dict[str, Any]], list[str]]:
    """Return the items, the least certain first, the details of each, and annotators' names."""
    annotations, result, scores = report.annotations, report.result, report.item_scores
    order = np.argsort(report.certainty, kind="stable")
    order = order[annotations.labels_per_item[order] > 0]
    known = {**report.reading.gold, **report.truth}
    labelled = zip(annotations.items.tolist(), result.labels.tolist(), strict=True)
    wrong = np.array([known.get(name, label) != label for name, label in labelled])
    shown = np.concatenate([order[:_MAX_ITEMS], order[_MAX_ITEMS:][wrong[order[_MAX_ITEMS:]]]])
    texts = report.texts
    labels = [label or "undecided" for label in result.labels[shown]]
    details, kinds, votes = [], [], []
    certain = "within one step" if annotations.scale == "ordinal" else "confidence"
    names: dict[str, int] = {}
    for item, label in zip(shown.tolist(), labels, strict=True):
        name, cause = annotations.items[item], str(scores.cause[item])
        span = slice(annotations.index[item], annotations.index[item + 1])
        given, posterior = annotations.label[span], result.probabilities[item]
        counts = np.bincount(given)
        most = np.argsort(-counts, kind="stable").tolist()
        votes.append(votes_of(annotations, item))
        kinds.append([cause])
        if most[0] != result.label[item] and 2 * counts[most[0]] > len(given):
            kinds[-1].append("most votes are for another label")
        if known.get(name, label) != label:
            kinds[-1].append("differs from the known label")
        annotators = annotations.annotators[annotations.annotator[span][:_MAX_LABELS]].tolist()
        details.append(
            {
                "name": name,
                "label": label,
                "confidence": round(float(report.certainty[item]), 4),
                "cause": cause,
                "n": len(given),
                "text": texts.get(name),
                "image": embedded_image(texts[name], report.folder) if name in texts else None,
                "gold": known.get(name),
                "posterior": [
                    [annotations.classes[k], round(float(posterior[k]), 4)]
                    for k in np.argsort(-posterior, kind="stable")[:8].tolist()
                ],
                "annotations": [
                    [names.setdefault(annotator, len(names)), code]
                    for annotator, code in zip(annotators, given.tolist(), strict=False)
                ],
            }
        )
    short = [
        (one["text"] or "")[:_SHORT] + "…" * (len(one["text"] or "") > _SHORT) for one in details
    ]
    gold = [one["gold"] or "" for one in details]
    differs = [
        "differs" if one and one != label else "" for one, label in zip(gold, labels, strict=True)
    ]
    columns = {
        "item": Column(annotations.items[shown]),
        **({"text": Column(short, kind="plain", classes=["text"] * len(short))} if texts else {}),
        "label": Column(labels),
        **({"known": Column(gold, classes=differs)} if known else {}),
        certain: Column(report.certainty[shown], percent),
        "labels": Column(annotations.labels_per_item[shown], "d"),
        "votes": Column(votes, kind="plain"),
        "why": Column(scores.cause[shown]),
    }
    caption = f"{amount(len(shown), 'item', annotations.n_items)}, the least certain first"
    hint = "item, text or label"
    rows = SortableTable("item-table", caption, columns, kinds, "item", hint, "Show")
    return rows, details, list(names)


def downloads(report: Report) -> dict[str, Download]:
    """Return labels, items to label again, items to check, and annotators."""
    annotations, result = report.annotations, report.result
    worst = report.annotator_scores.worst[:_MAX_ANNOTATORS]
    scores = {name: values[worst] for name, values in report.annotators.items()}
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
        "annotators": Download("annotators", scores),
    }


def _listing(report: Report, items: Integers) -> dict[str, Any]:
    """Return items with text, votes, label, certainty and the cause of disagreement."""
    items = items[:_MAX_LISTED]
    annotations, names = report.annotations, report.annotations.items[items]
    texts = report.texts
    columns = {
        "item": names,
        "text": [texts.get(name, "") for name in names.tolist()],
        "votes": [votes_of(annotations, item) for item in items.tolist()],
        "label": report.result.labels[items],
        "certainty": report.certainty[items].round(4),
        "why": report.item_scores.cause[items],
    }
    if not texts:
        del columns["text"]
    return columns


def votes_of(annotations: Annotations, item: int) -> str:
    """Return how often every label was given to an item, the most frequent first."""
    given = annotations.label[annotations.index[item] : annotations.index[item + 1]]
    counts = np.bincount(given)
    most = np.argsort(-counts, kind="stable").tolist()
    shares = [f"{counts[k]} × {annotations.classes[k]}" for k in most if counts[k]]
    return ", ".join(shares[:6]) + " …" * (len(shares) > 6)
