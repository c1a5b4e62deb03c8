"""A report in words. Every sentence follows from numbers and the limits that are named here.

| word | when |
|---|---|
| poor … almost perfect agreement | Krippendorff's alpha below 0, then in steps of 0.2 |
| deserves a second look | the belief in an item's label is below 0.8 |
| answers at random, careless, … | the verdicts of `identify` |
| explains the labels best | foresees left-out labels best, beyond two standard errors |
| belief is too high | above the interval of the share of known labels met, and by 0.05 or more |
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from ..agreement import Estimate

if TYPE_CHECKING:
    from .report import Report

__all__ = ["advice", "amount", "listed", "opening", "percent"]

_NAMED = 3  # names in one sentence
_TOO_SURE = 0.05  # by how much belief may exceed the share of right labels
_NUMBERS = ["No", "One", "Two", "Three", "Four", "Five", "Six", "Seven", "Eight", "Nine"]

# Verdict → what such an annotator does, and what one could do about it.
_DOES = {
    "spammer": "answers at random",
    "adversarial": "says mostly the opposite of what is right",
    "careless": "is right much less often than the others",
}
_REMEDY = {
    "spammer": "Leave out the labels of {}.",
    "adversarial": "Ask {} whether the task was misunderstood.",
    "careless": "Train or talk to {}.",
}


def opening(report: Report) -> list[str]:
    """Return what a reader should know first."""
    annotations = report.annotations
    told = [
        f"{amount(annotations.n_annotators, 'annotator')} gave {amount(len(annotations), 'label')} to "
        f"{amount(annotations.n_items, 'item')}, {len(annotations) / max(annotations.n_items, 1):.1f} each on average."
    ]
    told.append(_agreement(report))
    told += _annotators(report)
    told.append(_doubt(report))
    if report.comparison is not None and report.comparison.n_scored:
        alike = [one.method for one in report.comparison.methods if one.alike]
        if len(alike) == 1:
            told.append(f"Of the usual methods, {alike[0]} explains the labels best.")
        else:
            told.append(f"{listed(alike)} explain the labels about equally well.")
    told += _known(report)
    return told


def advice(report: Report) -> list[str]:
    """Return what to do next, the most urgent first."""
    told = [f"{one.sentence} {one.remedy}".strip() for one in report.check.serious]
    scores = report.annotator_scores
    for verdict, remedy in _REMEDY.items():
        who = _names(report, verdict)
        if verdict == "spammer" and 2 * len(who) > report.annotations.n_annotators:
            told.append(
                "Look at the question and its instructions first: most annotators seem to answer "
                "at random, so labels hardly tell anything."
            )
        elif who:
            told.append(remedy.format(listed([_person(name) for name in who])))
    together = [] if scores.copies is None else scores.copies.as_dict()["clusters"]
    if together:
        groups = [listed(group) for group in together[:_NAMED]]
        told.append(f"Ask whether these worked together: {'; '.join(groups)}.")
    count = len(report.doubtful)
    if count:
        told.append(f"Have {amount(count, 'item')} labelled again; the list can be downloaded.")
    if not told:
        told.append("Nothing urgent: annotators agree, and hardly any label is in doubt.")
    return told


def amount(count: int, what: str) -> str:
    """Return a count with its word.

    >>> amount(1, "item"), amount(2140, "label"), amount(20480, "class")
    ('1 item', '2140 labels', '20\u202f480 classes')
    """
    many = what + ("es" if what.endswith("s") else "s")
    shown = f"{count:,}".replace(",", "\u202f") if count >= 10_000 else str(count)
    return f"{shown} {what if count == 1 else many}"


def percent(share: float) -> str:
    """Return a share as people write it; one digit more near the ends.

    >>> percent(0.914), percent(0.9987), percent(0.99999), percent(1.0), percent(math.nan)
    ('91%', '99.9%', 'above 99.9%', '100%', '–')
    """
    if math.isnan(share):
        return "–"
    if not 0 < min(share, 1 - share) < 0.01:
        return f"{share:.0%}"
    if min(share, 1 - share) >= 0.0005:
        return f"{share:.1%}"
    return "below 0.1%" if share < 0.5 else "above 99.9%"


def listed(names: list[str]) -> str:
    """Return names as a list in a sentence.

    >>> listed(["a", "b", "c"]), listed(["a", "b", "c", "d", "e"])
    ('a, b and c', 'a, b, c and 2 more')
    """
    shown = names[:_NAMED] if len(names) > _NAMED + 1 else names
    if len(names) > len(shown):
        return f"{', '.join(shown)} and {len(names) - len(shown)} more"
    return " and ".join(filter(None, [", ".join(shown[:-1]), shown[-1]])) if shown else ""


def _known(report: Report) -> list[str]:
    found = report.evaluation
    score = None if found is None else found.scores.get("accuracy")
    if found is None or score is None:
        return []
    told = [
        f"Of the {amount(found.n_scored, 'item')} whose label is known, {percent(score.value)} are "
        f"labelled right ({percent(score.low)} to {percent(score.high)})."
    ]
    held = float(np.mean(report.result.confidence[report.annotations.labels_per_item > 0]))
    if held > max(score.high, score.value + _TOO_SURE):
        told.append(
            f"So the mean belief, {percent(held)}, is too high: annotators share some errors."
        )
    return told


def _agreement(report: Report) -> str:
    alpha: Estimate | None = next(
        (one for one in report.agreement.estimates if one.measure == "alpha"), None
    )
    if alpha is None or math.isnan(alpha.value):
        return "Agreement cannot be measured: no two labels of an item, or only one class."
    return (
        f"Agreement is {report.agreement.word} "
        f"(alpha {alpha.value:.2f}, {alpha.low:.2f} to {alpha.high:.2f})."
    )


def _annotators(report: Report) -> list[str]:
    told = []
    for verdict, does in _DOES.items():
        who = _names(report, verdict)
        if not who:
            continue
        count = _NUMBERS[len(who)] if len(who) < len(_NUMBERS) else str(len(who))
        people = "annotator" if len(who) == 1 else "annotators"
        verb = does if len(who) == 1 else _plural(does)
        told.append(f"{count} {people} {verb}: {listed(who)}.")
    if not told:
        unsure = report.annotator_scores.verdict_counts.get("too few labels to say", 0)
        some = "" if unsure == 0 else f" ({amount(unsure, 'annotator')} gave too few labels to say)"
        told.append(f"No annotator stands out as careless or random{some}.")
    return told


def _plural(does: str) -> str:
    word, _, rest = does.partition(" ")
    return f"{ {'is': 'are'}.get(word, word.removesuffix('s')) } {rest}".strip()


def _names(report: Report, verdict: str) -> list[str]:
    scores = report.annotator_scores
    order = scores.worst
    return [
        str(name) for name in scores.annotations.annotators[order[scores.verdict[order] == verdict]]
    ]


def _person(name: str) -> str:
    """Return a name that reads as one in a sentence."""
    return f"annotator {name}" if name.isdecimal() else name


def _doubt(report: Report) -> str:
    count, labelled = len(report.doubtful), int((report.annotations.labels_per_item > 0).sum())
    if count == 0:
        return f"All {amount(labelled, 'label')} inferred are held with 80% belief or more."
    deserve = "deserves" if count == 1 else "deserve"
    mean = float(np.mean(report.result.confidence[report.annotations.labels_per_item > 0]))
    return (
        f"{amount(count, 'item')} ({percent(count / labelled)}) {deserve} a second look; "
        f"the belief in a label is {percent(mean)} on average."
    )
