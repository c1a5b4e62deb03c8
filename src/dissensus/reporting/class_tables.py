"""Tables of the page on classes: annotators, items, their details, and downloads.

Large data are cut, the worst and most doubtful first, and the page says so.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from .._relation import Integers
from .embedding import embedded_image
from .sections import Download, Row, SortableTable, number_cell
from .sentences import amount, percent

if TYPE_CHECKING:
    from .report import Report

__all__ = ["annotator_table", "downloads", "item_table", "part"]

_MAX_ANNOTATORS, _MAX_ITEMS = 500, 1000  # rows
_MAX_LABELS = 60  # of one item
_MAX_CLASSES = 20  # of annotators' confusion matrices
_MAX_LONE = 10  # labels
_MAX_BYTES = 4_000_000  # of labels to download
_MAX_DOUBTFUL = 10_000  # items to label again
_SHORT = 120  # characters of a text in the table


def part(shown: int, total: int, what: str) -> str:
    """Return how many are shown."""
    return amount(total, what) if shown == total else f"{shown} of {amount(total, what)}"


def annotator_table(report: Report) -> tuple[SortableTable, list[dict[str, Any]]]:
    """Return the annotators, the worst first, and the details of each."""
    annotations, scores = report.annotations, report.annotator_scores
    shown = scores.worst[annotations.labels_per_annotator[scores.worst] > 0][:_MAX_ANNOTATORS]
    lone = _lone_labels(report, shown)
    with_confusion = annotations.n_classes <= _MAX_CLASSES
    habits, accuracy = scores.habits, scores.accuracy
    verdicts, evidence = scores.verdict, scores.evidence
    timed = bool(np.isfinite(habits.seconds).any())
    heads = {
        "annotator": "name",
        "labels": "number",
        "right": "number",
        "95% interval": "plain number",
        "agrees": "number",
        "spam score": "number",
        **({"seconds": "number"} if timed else {}),
        "verdict": "verdict",
    }
    rows, details = [], []
    for a in shown.tolist():
        name, verdict = annotations.annotators[a], str(verdicts[a])
        low, high = float(accuracy.low[a]), float(accuracy.high[a])
        cells = [
            (name, None),
            number_cell(int(habits.labels[a]), "d"),
            number_cell(float(accuracy.value[a]), percent),
            ("" if math.isnan(low) else f"{percent(low)} to {percent(high)}", None),
            number_cell(float(habits.agreement[a]), percent),
            number_cell(float(scores.spam_score[a]), ".2f"),
            *([number_cell(float(habits.seconds[a]), ".1f")] if timed else []),
            (verdict, None),
        ]
        rows.append(Row(cells, [verdict]))
        details.append(
            {
                "name": name,
                "verdict": verdict,
                "evidence": evidence[a],
                "alone": lone.get(a, []),
                "confusion": scores.confusion[a].round(3).tolist() if with_confusion else None,
            }
        )
    caption = f"{part(len(rows), annotations.n_annotators, 'annotator')}, the worst first"
    hint = "name or verdict"
    table = SortableTable("annotator-table", caption, heads, rows, "annotator", hint, "Verdict")
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
    texts = {}
    if report.reading.texts is not None:
        texts = dict(report.reading.texts.select("item", "text").iter_rows())
    heads = {
        "item": "name",
        **({"text": "plain"} if report.reading.texts is not None else {}),
        "label": "text",
        **({"known": "text"} if known else {}),
        "confidence": "number",
        "labels": "number",
        "votes": "plain",
        "why": "text",
    }
    rows, details = [], []
    names: dict[str, int] = {}
    labels, causes = result.labels, scores.cause
    for item in shown.tolist():
        name, label = annotations.items[item], labels[item] or "undecided"
        text, cause = texts.get(name), str(causes[item])
        confidence, posterior = float(result.confidence[item]), result.posterior[item]
        span = slice(annotations.index[item], annotations.index[item + 1])
        given = annotations.label[span]
        votes = np.bincount(given)
        most = np.argsort(-votes, kind="stable").tolist()
        counts = [f"{votes[k]} × {annotations.classes[k]}" for k in most if votes[k]]
        differs = known.get(name, label) != label
        overruled = bool(most[0] != result.label[item] and 2 * votes[most[0]] > len(given))
        cells = [
            (name, None),
            *(
                [((text or "")[:_SHORT] + "…" * (len(text or "") > _SHORT), "text")]
                if texts
                else []
            ),
            (label, None),
            *([(known.get(name, ""), "differs" if differs else None)] if known else []),
            number_cell(confidence, percent),
            number_cell(len(given), "d"),
            (", ".join(counts[:6]) + " …" * (len(counts) > 6), None),
            (cause, None),
        ]
        kinds = [cause] + ["most votes are for another label"] * overruled
        rows.append(Row(cells, kinds + ["the known label is another"] * differs))
        annotators = annotations.annotators[annotations.annotator[span][:_MAX_LABELS]].tolist()
        details.append(
            {
                "name": name,
                "label": label,
                "confidence": round(confidence, 4),
                "cause": cause,
                "n": len(given),
                "text": text,
                "image": embedded_image(text, report.folder),
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
    caption = f"{part(len(rows), annotations.n_items, 'item')}, the most doubtful first"
    hint = "item, text or label"
    table = SortableTable("item-table", caption, heads, rows, "item", hint, "Show")
    return table, details, list(names)


def downloads(report: Report) -> dict[str, Download]:
    """Return labels, items to label again, annotators, and the plan of further labels."""
    annotations, result, scores = report.annotations, report.result, report.annotator_scores
    labels, confidence = result.labels, result.confidence.round(4)
    all_labels = [list(row) for row in zip(annotations.items.tolist(), labels.tolist(),
                                           confidence.tolist(), strict=True)]  # fmt: skip
    if sum(len(str(item)) + len(str(label)) for item, label, _ in all_labels) > _MAX_BYTES:
        all_labels = []
    again = report.doubtful[:_MAX_DOUBTFUL]
    columns = annotations.items, labels, confidence, report.item_scores.cause
    relabel = [
        list(row) for row in zip(*(column[again].tolist() for column in columns), strict=True)
    ]
    numbers = (scores.accuracy.value, scores.accuracy.low, scores.accuracy.high, scores.spam_score)
    people = [
        [
            annotations.annotators[a],
            scores.verdict[a],
            int(scores.habits.labels[a]),
            *(None if math.isnan(column[a]) else round(float(column[a]), 4) for column in numbers),
            scores.evidence[a],
        ]
        for a in scores.worst[:_MAX_ANNOTATORS].tolist()
    ]
    further: list[list[Any]] = []
    if report.plan is not None:
        table = report.plan.table
        asked = table["item"], table["annotator"], table["gain"].round(4)
        further = [list(row) for row in zip(*(column.tolist() for column in asked), strict=True)]
    head = ["annotator", "verdict", "labels", "right", "low", "high", "spam_score", "evidence"]
    return {
        "labels": Download("labels", ["item", "label", "confidence"], all_labels),
        "relabel": Download(
            "items to label again", ["item", "label", "confidence", "why"], relabel
        ),
        "annotators": Download("annotators", head, people),
        "plan": Download("further labels to ask for", ["item", "annotator", "gain"], further),
    }
