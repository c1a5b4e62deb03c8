"""Tables of the page on classes: annotators, items, their details, and downloads.

Large data are cut, the worst and most doubtful first, and the page says so.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from .._plain import as_rows
from .._relation import Integers
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
_MAX_DOUBTFUL = 10_000  # items to label again
_SHORT = 120  # characters of a text in the table


def annotator_table(report: Report) -> tuple[SortableTable, list[dict[str, Any]]]:
    """Return the annotators, the worst first, and the details of each."""
    annotations, worst = report.annotations, report.annotator_scores.worst
    shown = worst[annotations.labels_per_annotator[worst] > 0][:_MAX_ANNOTATORS]
    scores = {name: values[shown] for name, values in report.annotators.items()}
    bounds = zip(scores["accuracy_low"], scores["accuracy_high"], strict=True)
    intervals = [f"{percent(low)} to {percent(high)}" if low == low else "" for low, high in bounds]
    columns = {
        "annotator": Column(scores["annotator"]),
        "labels": Column(scores["labels"], "d"),
        "right": Column(scores["accuracy"], percent),
        "95% interval": Column(intervals, kind="plain number"),
        "agrees": Column(scores["agreement"], percent),
        "follows the items": Column(scores["correlation"], ".2f"),
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
    """Return the items, the most doubtful first, the details of each, and annotators' names."""
    annotations, result, scores = report.annotations, report.result, report.item_scores
    doubt, split = (np.nan_to_num(one) for one in (scores.posterior_entropy, scores.vote_entropy))
    order = np.lexsort((-split, -doubt.round(9)))
    shown = order[annotations.labels_per_item[order] > 0][:_MAX_ITEMS]
    known = {**report.reading.gold, **report.truth}
    table = report.reading.texts
    texts = {} if table is None else dict(table.select("item", "text").iter_rows())
    labels = [label or "undecided" for label in result.labels[shown]]
    details, kinds, votes = [], [], []
    names: dict[str, int] = {}
    for item, label in zip(shown.tolist(), labels, strict=True):
        name, cause = annotations.items[item], str(scores.cause[item])
        span = slice(annotations.index[item], annotations.index[item + 1])
        given, posterior = annotations.label[span], result.probabilities[item]
        counts = np.bincount(given)
        most = np.argsort(-counts, kind="stable").tolist()
        shares = [f"{counts[k]} × {annotations.classes[k]}" for k in most if counts[k]]
        votes.append(", ".join(shares[:6]) + " …" * (len(shares) > 6))
        kinds.append([cause])
        if most[0] != result.label[item] and 2 * counts[most[0]] > len(given):
            kinds[-1].append("most votes are for another label")
        if known.get(name, label) != label:
            kinds[-1].append("the known label is another")
        annotators = annotations.annotators[annotations.annotator[span][:_MAX_LABELS]].tolist()
        details.append(
            {
                "name": name,
                "label": label,
                "confidence": round(float(result.confidence[item]), 4),
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
        "confidence": Column(result.confidence[shown], percent),
        "labels": Column(annotations.labels_per_item[shown], "d"),
        "votes": Column(votes, kind="plain"),
        "why": Column(scores.cause[shown]),
    }
    caption = f"{amount(len(shown), 'item', annotations.n_items)}, the most doubtful first"
    hint = "item, text or label"
    rows = SortableTable("item-table", caption, columns, kinds, "item", hint, "Show")
    return rows, details, list(names)


def downloads(report: Report) -> dict[str, Download]:
    """Return labels, items to label again, annotators, and the plan of further labels."""
    annotations, result = report.annotations, report.result
    again = report.doubtful[:_MAX_DOUBTFUL]
    worst = report.annotator_scores.worst[:_MAX_ANNOTATORS]
    scores = {name: values[worst] for name, values in report.annotators.items()}
    labels = {
        "item": annotations.items,
        "label": result.labels,
        "confidence": result.confidence.round(4),
    }
    relabel = {name: values[again] for name, values in labels.items()}
    plan = {} if report.plan is None else report.plan.table
    small = sum(map(len, annotations.items.tolist())) + 8 * annotations.n_items <= _MAX_CHARACTERS
    return {
        "labels": Download("labels", labels if small else {}),
        "relabel": Download(
            "items to label again", {**relabel, "why": report.item_scores.cause[again]}
        ),
        "annotators": Download("annotators", scores),
        "plan": Download("further labels to ask for", plan),
    }
