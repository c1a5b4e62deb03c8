"""Reports in words; every sentence follows from numbers and the limits named here.

| phrase | when |
|---|---|
| poor … almost perfect agreement | Krippendorff's alpha below 0, then in steps of 0.2 |
| answers at random, contradicts the others, … | the verdicts of `identify` |
| about … % of the labels are right | calibrated confidence, with the interval of `label_errors` |
| two camps | all four rules of `camps` |
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from ..metrics import Agreement
from ..pages.wording import amount, listed, percent
from ..quality.verdicts import reference

if TYPE_CHECKING:
    from .number_report import NumberReport
    from .report import Report

_WARNED = 1  # groups on which verdicts fall
_NUMBERS = ["No", "One", "Two", "Three", "Four", "Five", "Six", "Seven", "Eight", "Nine"]
_VERDICTS = {  # what one such annotator does, and several
    "random": ("answers at random", "answer at random"),
    "constant": ("nearly always gives one answer", "nearly always give one answer"),
    "reversed": ("contradicts {}", "contradict {}"),
    "likely random": ("may answer at random", "may answer at random"),
}


def opening(report: Report) -> list[str]:
    """Return what a reader should know first: the labels, how good they are, and who gave them."""
    annotations, camps = report.annotations, report.camps
    labels_each = len(annotations) / max(annotations.n_items, 1)
    agreeing = camps is not None and camps.verdict in ("camps", "some agree more")
    return [
        f"{volume(annotations)}, {labels_each:.1f} each on average.",
        *([camps.sentence] if agreeing and camps is not None else []),
        *_quality(report),
        agreement_sentence(report.agreement, "no two labels of an item, or only one class"),
        *annotator_sentences(report),
    ]


def _quality(report: Report) -> list[str]:
    """Return how good the labels are, and which are none of one's own."""
    right, low, high = report.errors.accuracy
    within = " within one step" if report.annotations.scale == "ordinal" else ""
    accuracy = None if report.evaluation is None else report.evaluation.scores.get("accuracy")
    sentences = []
    if report.evaluation is not None and accuracy is not None:
        sentences.append(
            f"Of the {amount(report.evaluation.n_scored, 'item')} whose label is known, "
            f"{percent(accuracy.value)} are labelled right ({percent(accuracy.low)} to "
            f"{percent(accuracy.high)})."
        )
    if report.has_camps:
        sentences.append("Where the camps differ there is no single right label.")
    elif report.errors.n_items and (within or accuracy is None):
        certain = " The certainty is calibrated on known items." if report.result.n_gold else ""
        unidentifiable = report.result.unidentifiable
        of = f" of {amount(report.errors.n_items, 'item')}" if unidentifiable else ""
        sentences.append(
            f"About {percent(right)} of the inferred labels{of} are right{within} (probably "
            f"{percent(low)} to {percent(high)}).{certain}"
        )
    if report.result.unidentifiable and not report.has_camps:
        sentences.append(report.result.unidentifiable.reason)
    odd = report.odd_items
    if odd:
        words = [f"{amount(count, 'item')} {reason}" for reason, count in odd.items()]
        sentences.append(f"Look at these yourself: {listed(words)}.")
    return sentences


def annotator_sentences(report: Report | NumberReport) -> list[str]:
    """Return whose labels do not follow the items, and whether that falls on one group."""
    scores = report.annotator_scores
    worst = scores.worst
    verdicts = []
    for verdict, (singular, plural) in _VERDICTS.items():
        selected = worst[scores.judged(verdict)[worst]]
        people = scores.annotations.annotators[selected].tolist()
        count = _NUMBERS[len(people)] if len(people) < len(_NUMBERS) else str(len(people))
        if people:
            does = f"annotator {singular}" if len(people) == 1 else f"annotators {plural}"
            does = does.format(reference(scores.basis, selected))
            verdicts.append(f"{count} {does}: {listed(people)}.")
    if not verdicts:
        unsure = scores.verdict_counts.get("too few labels", 0)
        too_few = f" ({amount(unsure, 'annotator')} gave too few labels to say)" if unsure else ""
        verdicts = [f"No annotator seems to answer at random{too_few}."]
    warnings = [] if report.groups is None else report.groups.warnings
    n_more = len(warnings) - _WARNED
    if n_more > 0:
        more_groups = "one more group" if n_more == 1 else f"{n_more} more groups"
        warnings = [*warnings[:_WARNED], f"The same holds for {more_groups}; see Groups."]
    return [*verdicts, *warnings]


def volume(annotations: Any, noun: str = "label") -> str:
    """Return how much was annotated."""
    return (
        f"{amount(annotations.n_annotators, 'annotator')} gave {amount(len(annotations), noun)} "
        f"to {amount(annotations.n_items, 'item')}"
    )


def agreement_sentence(agreement: Agreement, undefined: str) -> str:
    """Return the word for alpha and its interval, or why it is undefined."""
    alpha = agreement["alpha"]
    if math.isnan(alpha.value):
        return f"Agreement cannot be measured: {undefined}."
    interval = f"{alpha.low:.2f} to {alpha.high:.2f}"
    return f"Agreement is {agreement.word} (alpha {alpha.value:.2f}, {interval})."
