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
    said, scores = report.said, report.annotator_scores
    who = scores.worst[said.labels_per_annotator[scores.worst] > 0][:MOST_ANNOTATORS]
    which = _chosen(report)
    annotators = _annotators(report, who)
    items = _items(report, which)
    samples = []
    if len(who) < said.n_annotators:
        told = _part(len(who), said.n_annotators, "annotator")
        samples.append(f"The page shows {told}, the worst first.")
    if len(which) < said.n_items:
        told = _part(len(which), said.n_items, "item")
        samples.append(f"The page shows {told}, the most doubtful first.")
    labels = labels_to_download(report)
    if labels is None:
        samples.append("There are too many labels to download here; `dissensus aggregate` has all.")
    names, said_by = _said(report, which)
    data = {
        "classes": said.classes.tolist(),
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
        bool(np.isfinite(scores.habits.seconds).any()),
        f"{_part(len(who), said.n_annotators, 'annotator')}, the worst first",
        f"{_part(len(which), said.n_items, 'item')}, the most doubtful first",
        samples,
        data,
    )


def _chosen(report: Report) -> Integers:
    """Return the items to show, by code, the most doubtful first."""
    said = report.said
    doubt = report.item_scores.posterior_entropy
    doubt = np.where(said.labels_per_item > 0, np.nan_to_num(doubt), -1)
    split = np.nan_to_num(report.item_scores.vote_entropy)
    order = np.lexsort((-split, -doubt.round(9)))
    return order[said.labels_per_item[order] > 0][:MOST_ITEMS]


def _annotators(report: Report, who: Integers) -> list[dict[str, Any]]:
    scores = report.annotator_scores
    alone = _alone(report, who)
    small = report.said.n_classes <= MOST_CLASSES
    rows = []
    verdict, evidence = scores.verdict, scores.evidence
    for place in who.tolist():
        value = float(scores.accuracy.value[place])
        low, high = float(scores.accuracy.low[place]), float(scores.accuracy.high[place])
        agrees, spam = float(scores.habits.agreement[place]), float(scores.spam_score[place])
        seconds = float(scores.habits.seconds[place])
        data = {
            "name": scores.said.annotators[place],
            "verdict": verdict[place],
            "evidence": evidence[place],
            "labels": int(scores.habits.labels[place]),
            "right": _short(value),
            "low": _short(low),
            "high": _short(high),
            "spam": _short(spam),
            "alone": alone[place],
            "confusion": scores.confusion[place].round(3).tolist() if small else None,
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
    said, result = report.said, report.result
    found: dict[int, list[list[str]]] = {place: [] for place in who.tolist()}
    about, label = said.item, result.label[said.item]
    single = (said.votes()[about, said.label] == 1) & (said.labels_per_item[about] > 2)
    single &= (label != said.label) & (label >= 0) & np.isin(said.annotator, who)
    rows = np.flatnonzero(single)
    rows = rows[np.argsort(-result.confidence[about[rows]], kind="stable")]
    rows = rows[np.argsort(said.annotator[rows], kind="stable")]
    count = np.bincount(said.annotator[rows], minlength=said.n_annotators)
    place = np.arange(len(rows)) - np.repeat(np.cumsum(count) - count, count)
    for row in rows[place < MOST_ALONE].tolist():
        told = said.items[about[row]], said.classes[said.label[row]], said.classes[label[row]]
        found[int(said.annotator[row])].append([*told])
    return found


def _items(report: Report, which: Integers) -> list[dict[str, Any]]:
    said, result = report.said, report.result
    labels, cause = result.labels, report.item_scores.cause
    known = {**report.reading.gold, **report.truth}
    rows = []
    for item, text in zip(which.tolist(), _texts(report, which), strict=True):
        votes = np.bincount(said.label[said.index[item] : said.index[item + 1]])
        order = np.argsort(-votes, kind="stable").tolist()
        told = [f"{int(votes[k])} × {said.classes[k]}" for k in order if votes[k]]
        belief = result.posterior[item]
        best = np.argsort(-belief, kind="stable")[:8]
        label = labels[item] or "undecided"
        name, n = said.items[item], int(said.labels_per_item[item])
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
                        [said.classes[k], _short(float(belief[k]))] for k in best.tolist()
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
    names = [report.said.items[item] for item in which.tolist()]
    known = dict(zip(table["item"].to_list(), table["text"].to_list(), strict=True))
    return [known.get(name) for name in names]


def _said(report: Report, which: Integers) -> tuple[list[str], list[list[list[int]]]]:
    """Return names of annotators, and who said what about every item by place among them."""
    said = report.said
    seat: dict[int, int] = {}
    out = []
    for item in which.tolist():
        span = slice(said.index[item], min(said.index[item + 1], said.index[item] + MOST_LABELS))
        rows = zip(said.annotator[span].tolist(), said.label[span].tolist(), strict=True)
        out.append([[seat.setdefault(who, len(seat)), label] for who, label in rows])
    return [said.annotators[who] for who in seat], out


def _short(value: float) -> float | None:
    return None if math.isnan(value) else round(value, 4)


def _number(value: float) -> str:
    return "" if math.isnan(value) else f"{value:.6g}"
