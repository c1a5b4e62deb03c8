"""The tables of a report's page: rows to show, and what the page's script looks up.

Large data are cut to what a reader can use, the worst and most doubtful first, and it is said.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from .._relation import Integers
from .downloads import labels_to_download, plan_to_download, relabel_to_download
from .pictures import embedded
from .sentences import amount, percent

if TYPE_CHECKING:
    from .report import Report

__all__ = ["Contents", "contents"]

MOST_ANNOTATORS = 500
MOST_ITEMS = 1000
MOST_LABELS = 60  # of one item
MOST_CLASSES = 20  # for confusion matrices of annotators
MOST_ALONE = 10
_SHORT = 120  # letters of a text in the table


@dataclass(frozen=True)
class Contents:
    """Rows of the tables, and the data behind them."""

    annotators: list[dict[str, Any]]
    items: list[dict[str, Any]]
    copies: list[tuple[str, ...]]
    kinds: list[str]
    has_seconds: bool
    annotators_caption: str
    items_caption: str
    samples: list[str]
    data: dict[str, Any]


def contents(report: Report) -> Contents:
    """Return the rows of all tables."""
    annotations, scores = report.annotations, report.annotator_scores
    who = scores.worst[annotations.labels_per_annotator[scores.worst] > 0][:MOST_ANNOTATORS]
    which = _chosen(report)
    annotators = _annotators(report, who)
    items = _items(report, which)
    samples = []
    if len(who) < annotations.n_annotators:
        told = _part(len(who), annotations.n_annotators, "annotator")
        samples.append(f"The page shows {told}, the worst first.")
    if len(which) < annotations.n_items:
        told = _part(len(which), annotations.n_items, "item")
        samples.append(f"The page shows {told}, the most doubtful first.")
    labels = labels_to_download(report)
    if labels is None:
        samples.append("There are too many labels to download here; `dissensus aggregate` has all.")
    names, said_by = _as_annotations(report, which)
    data = {
        "classes": annotations.classes.tolist(),
        "annotators": [one["data"] for one in annotators],
        "items": [one["data"] | {"said": rows} for one, rows in zip(items, said_by, strict=True)],
        "names": names,
        "labels": labels,
        "relabel": relabel_to_download(report),
        "plan": plan_to_download(report),
    }
    pairs = [] if scores.copies is None else scores.copies.pairs[:20]
    kinds = list(dict.fromkeys(kind for one in items for kind in one["kinds"]))
    return Contents(
        annotators,
        items,
        [
            (one.one, one.other, str(one.common), str(one.equal), f"{one.expected:.0f}")
            for one in pairs
        ],
        sorted(kinds),
        bool(np.isfinite(scores.behaviour.seconds).any()),
        f"{_part(len(who), annotations.n_annotators, 'annotator')}, the worst first",
        f"{_part(len(which), annotations.n_items, 'item')}, the most doubtful first",
        samples,
        data,
    )


def _chosen(report: Report) -> Integers:
    """Return the items to show, by code, the most doubtful first."""
    annotations = report.annotations
    doubt = report.item_scores.posterior_entropy
    doubt = np.where(annotations.labels_per_item > 0, np.nan_to_num(doubt), -1)
    split = np.nan_to_num(report.item_scores.vote_entropy)
    order = np.lexsort((-split, -doubt.round(9)))
    return order[annotations.labels_per_item[order] > 0][:MOST_ITEMS]


def _annotators(report: Report, who: Integers) -> list[dict[str, Any]]:
    scores = report.annotator_scores
    alone = _alone(report, who)
    small = report.annotations.n_classes <= MOST_CLASSES
    rows = []
    verdict, evidence = scores.verdict, scores.evidence
    for position in who.tolist():
        value = float(scores.accuracy.value[position])
        low, high = float(scores.accuracy.low[position]), float(scores.accuracy.high[position])
        agrees, spam = float(scores.behaviour.agreement[position]), float(scores.spam_score[position])
        seconds = float(scores.behaviour.seconds[position])
        data = {
            "name": scores.annotations.annotators[position],
            "verdict": verdict[position],
            "evidence": evidence[position],
            "labels": int(scores.behaviour.labels[position]),
            "right": _short(value),
            "low": _short(low),
            "high": _short(high),
            "spam": _short(spam),
            "alone": alone[position],
            "confusion": scores.confusion[position].round(3).tolist() if small else None,
        }
        rows.append(
            {
                "data": data,
                "name": data["name"],
                "labels": data["labels"],
                "right": percent(value),
                "right_value": _number(value),
                "interval": "" if math.isnan(low) else f"{percent(low)} to {percent(high)}",
                "agrees": percent(agrees),
                "agrees_value": _number(agrees),
                "spam": "–" if math.isnan(spam) else f"{spam:.2f}",
                "spam_value": _number(spam),
                "seconds": "–" if math.isnan(seconds) else f"{seconds:.1f}",
                "seconds_value": _number(seconds),
                "verdict": data["verdict"],
                "verdict_class": data["verdict"].partition(" ")[0],
            }
        )
    return rows


def _alone(report: Report, who: Integers) -> dict[int, list[list[str]]]:
    """Return items on which nobody else says what an annotator says, the surest first."""
    annotations, result = report.annotations, report.result
    found: dict[int, list[list[str]]] = {position: [] for position in who.tolist()}
    about, label = annotations.item, result.label[annotations.item]
    single = (annotations.votes()[about, annotations.label] == 1) & (
        annotations.labels_per_item[about] > 2
    )
    single &= (label != annotations.label) & (label >= 0) & np.isin(annotations.annotator, who)
    rows = np.flatnonzero(single)
    rows = rows[np.argsort(-result.confidence[about[rows]], kind="stable")]
    rows = rows[np.argsort(annotations.annotator[rows], kind="stable")]
    count = np.bincount(annotations.annotator[rows], minlength=annotations.n_annotators)
    position = np.arange(len(rows)) - np.repeat(np.cumsum(count) - count, count)
    for row in rows[position < MOST_ALONE].tolist():
        told = (
            annotations.items[about[row]],
            annotations.classes[annotations.label[row]],
            annotations.classes[label[row]],
        )
        found[int(annotations.annotator[row])].append([*told])
    return found


def _items(report: Report, which: Integers) -> list[dict[str, Any]]:
    annotations, result = report.annotations, report.result
    labels, cause = result.labels, report.item_scores.cause
    known = {**report.reading.gold, **report.truth}
    rows = []
    for item, text in zip(which.tolist(), _texts(report, which), strict=True):
        votes = np.bincount(
            annotations.label[annotations.index[item] : annotations.index[item + 1]]
        )
        order = np.argsort(-votes, kind="stable").tolist()
        told = [f"{int(votes[k])} × {annotations.classes[k]}" for k in order if votes[k]]
        posterior = result.posterior[item]
        best = np.argsort(-posterior, kind="stable")[:8]
        label = labels[item] or "undecided"
        name, n = annotations.items[item], int(annotations.labels_per_item[item])
        differs = known.get(name, label) != label
        kinds = [cause[item]]
        if order[0] != result.label[item] and 2 * votes[order[0]] > n:
            kinds.append("most votes say otherwise")
        if differs:
            kinds.append("the known label is another")
        rows.append(
            {
                "data": {
                    "name": name,
                    "label": label,
                    "belief": _short(float(result.confidence[item])),
                    "cause": cause[item],
                    "n": n,
                    "text": text,
                    "image": embedded(text, report.folder),
                    "gold": known.get(name),
                    "posterior": [
                        [annotations.classes[k], _short(float(posterior[k]))] for k in best.tolist()
                    ],
                },
                "name": name,
                "label": label,
                "known": known.get(name, ""),
                "differs": differs,
                "short": _cut(text),
                "belief": percent(float(result.confidence[item])),
                "belief_value": _number(float(result.confidence[item])),
                "n": n,
                "votes": ", ".join(told[:6]) + (" …" if len(told) > 6 else ""),
                "cause": cause[item],
                "kinds": kinds,
            }
        )
    return rows


def _part(shown: int, total: int, what: str) -> str:
    return amount(total, what) if shown == total else f"{shown} of {amount(total, what)}"


def _cut(text: str | None) -> str:
    return "" if text is None else text[:_SHORT] + ("…" if len(text) > _SHORT else "")


def _texts(report: Report, which: Integers) -> list[str | None]:
    table = report.reading.texts
    if table is None:
        return [None] * len(which)
    names = [report.annotations.items[item] for item in which.tolist()]
    known = dict(zip(table["item"].to_list(), table["text"].to_list(), strict=True))
    return [known.get(name) for name in names]


def _as_annotations(report: Report, which: Integers) -> tuple[list[str], list[list[list[int]]]]:
    """Return names of annotators, and who said what about every item by place among them."""
    annotations = report.annotations
    reindex: dict[int, int] = {}
    out = []
    for item in which.tolist():
        span = slice(
            annotations.index[item],
            min(annotations.index[item + 1], annotations.index[item] + MOST_LABELS),
        )
        rows = zip(
            annotations.annotator[span].tolist(), annotations.label[span].tolist(), strict=True
        )
        out.append([[reindex.setdefault(who, len(reindex)), label] for who, label in rows])
    return [annotations.annotators[who] for who in reindex], out


def _short(value: float) -> float | None:
    return None if math.isnan(value) else round(value, 4)


def _number(value: float) -> str:
    return "" if math.isnan(value) else f"{value:.6g}"
