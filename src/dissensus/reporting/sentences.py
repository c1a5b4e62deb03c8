"""Reports in words; every sentence follows from numbers and the limits named here.

| phrase | when |
|---|---|
| poor … almost perfect agreement | Krippendorff's alpha below 0, then in steps of 0.2 |
| needs review | the confidence in an item's label is below 0.8 |
| answers at random, careless, … | the verdicts of `identify` |
| explains the labels best | best held-out likelihood, beyond two standard errors |
| confidence is too high | above the interval of the accuracy on known labels, by 0.05 or more |
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from ..agreement import Agreement
from .summary import CONFIDENT

if TYPE_CHECKING:
    from .report import Report

_NAMED = 3  # names in one sentence
_AGREE = 0.4  # alpha from which annotators are called agreeing
_OVERCONFIDENT = 0.05  # by how much confidence may exceed accuracy
_NUMBERS = ["No", "One", "Two", "Three", "Four", "Five", "Six", "Seven", "Eight", "Nine"]
_VERDICTS = {  # what one such annotator does, and several
    "spammer": ("answers at random", "answer at random"),
    "adversarial": ("gives mostly wrong labels", "give mostly wrong labels"),
    "careless": (
        "is right much less often than the others",
        "are right much less often than the others",
    ),
}
_REMEDIES = {
    "spammer": "Leave out the labels of {}.",
    "adversarial": "Ask {} whether the task was misunderstood.",
    "careless": "Train or talk to {}.",
}


def opening(report: Report) -> list[str]:
    """Return what a reader should know first."""
    annotations, confidence = report.annotations, report.result.confidence
    scores, comparison = report.annotator_scores, report.comparison
    labelled = annotations.labels_per_item > 0
    mean = float(np.mean(confidence[labelled]))
    each = len(annotations) / max(annotations.n_items, 1)
    sentences = [
        f"{volume(annotations)}, {each:.1f} each on average.",
        agreement_sentence(report.agreement, "no two labels of an item, or only one class"),
    ]
    worst = scores.worst
    verdicts = verdict_sentences(annotations.annotators[worst], scores.verdict[worst], _VERDICTS)
    if not verdicts:
        unsure = scores.verdict_counts.get("too few labels to say", 0)
        some = f" ({amount(unsure, 'annotator')} gave too few labels to say)" if unsure else ""
        verdicts = [f"No annotator stands out as careless or random{some}."]
    sentences += verdicts
    count, total = len(report.doubtful), int(labelled.sum())
    sentences.append(
        f"{amount(count, 'item')} ({percent(count / total)}) {'needs' if count == 1 else 'need'} "
        f"review; the mean confidence in a label is {percent(mean)}."
        if count
        else f"All {amount(total, 'inferred label')} have a confidence of {CONFIDENT:.0%} or more."
    )
    if comparison is not None and comparison.n_scored:
        best = [one.method for one in comparison.methods if one.tied]
        sentences.append(
            f"Of the usual methods, {best[0]} explains the labels best."
            if len(best) == 1
            else f"{listed(best)} explain the labels about equally well."
        )
    score = None if report.evaluation is None else report.evaluation.scores.get("accuracy")
    if report.evaluation is not None and score is not None:
        sentences.append(
            f"Of the {amount(report.evaluation.n_scored, 'item')} whose label is known, "
            f"{percent(score.value)} are labelled right ({percent(score.low)} to "
            f"{percent(score.high)})."
        )
        if mean > max(score.high, score.value + _OVERCONFIDENT):
            sentences.append(
                f"So the mean confidence, {percent(mean)}, is too high: annotators share errors."
            )
    return sentences


def advice(report: Report) -> list[str]:
    """Return what to do next, the most urgent first."""
    steps = [f"{one.sentence} {one.remedy}".strip() for one in report.check.serious]
    scores = report.annotator_scores
    for verdict, remedy in _REMEDIES.items():
        such = scores.worst[scores.verdict[scores.worst] == verdict]
        names = report.annotations.annotators[such].tolist()
        people = [f"annotator {name}" if name.isdecimal() else name for name in names]
        if verdict == "spammer" and 2 * len(people) > report.annotations.n_annotators:
            steps.append(
                "Look at the question and its instructions first: most annotators seem to answer "
                "at random, so labels carry hardly any information."
            )
        elif people:
            steps.append(remedy.format(listed(people)))
    copies = scores.copies
    clusters = [] if copies is None else copies.as_dict()["clusters"]
    if clusters:
        groups = "; ".join(map(listed, clusters[:_NAMED]))
        steps.append(f"Ask whether these worked together: {groups}.")
    if len(report.doubtful):
        count = amount(len(report.doubtful), "item")
        steps.append(f"Have {count} labelled again; the list can be downloaded.")
    alpha = report.agreement["alpha"].value
    agree = "annotators agree, and " if alpha >= _AGREE else ""
    return steps or [f"Nothing urgent: {agree}hardly any label is in doubt."]


def volume(annotations: Any, what: str = "label") -> str:
    """Return how much was annotated."""
    return (
        f"{amount(annotations.n_annotators, 'annotator')} gave {amount(len(annotations), what)} "
        f"to {amount(annotations.n_items, 'item')}"
    )


def agreement_sentence(agreement: Agreement, undefined: str) -> str:
    """Return the word for alpha and its interval, or why it is undefined."""
    alpha = agreement["alpha"]
    if math.isnan(alpha.value):
        return f"Agreement cannot be measured: {undefined}."
    interval = f"{alpha.low:.2f} to {alpha.high:.2f}"
    return f"Agreement is {agreement.word} (alpha {alpha.value:.2f}, {interval})."


def verdict_sentences(
    names: Iterable[Any], verdicts: Iterable[str], phrases: Mapping[str, tuple[str, str]]
) -> list[str]:
    """Return a sentence for every verdict, with its annotators."""
    judged = list(zip(names, verdicts, strict=True))
    sentences = []
    for verdict, (one, several) in phrases.items():
        people = [str(name) for name, each in judged if each == verdict]
        count = _NUMBERS[len(people)] if len(people) < len(_NUMBERS) else str(len(people))
        if people:
            does = f"annotator {one}" if len(people) == 1 else f"annotators {several}"
            sentences.append(f"{count} {does}: {listed(people)}.")
    return sentences


def amount(count: int, what: str = "", total: int | None = None) -> str:
    """Return a count with its noun, and of how many unless these are all.

    >>> amount(1, "item"), amount(2140, "label"), amount(20480, "class"), amount(20480)
    ('1 item', '2140 labels', '20\u202f480 classes', '20\u202f480')
    >>> amount(500, "item", 2140)
    '500 of 2140 items'
    """
    if total is not None and count < total:
        return f"{count} of {amount(total, what)}"
    shown = f"{count:,}".replace(",", "\u202f") if count >= 10_000 else str(count)
    if what and count != 1:
        what += "es" if what.endswith("s") else "s"
    return f"{shown} {what}".rstrip()


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


def formatted(value: float, form: str | Callable[[float], str] = ".4g") -> str:
    """Return a number as text, a dash for NaN.

    >>> formatted(0.25, ".0%"), formatted(math.nan)
    ('25%', '–')
    """
    if math.isnan(value):
        return "–"
    return form(value) if callable(form) else f"{value:{form}}"


def with_interval(estimate: Any, form: str | Callable[[float], str] = ".3f") -> tuple[str, str]:
    """Return an estimate and its interval as texts; a dash and nothing where there is none."""
    value, low, high = (
        formatted(one, form) for one in (estimate.value, estimate.low, estimate.high)
    )
    return value, "" if "–" in (value, low, high) else f"{low} to {high}"
