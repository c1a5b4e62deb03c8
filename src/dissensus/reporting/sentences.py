"""Reports in words; every sentence follows from numbers and the limits named here.

| phrase | when |
|---|---|
| poor … almost perfect agreement | alpha below 0, then in steps of 0.2 |
| answers at random, contradicts the others, misses marks, … | the verdicts of `identify` |
| about … % of the labels are right | calibrated confidence, with the interval of `label_errors` |
| two camps | all four rules of `camps` |
| disputed | three answers or more that differ as much as answers to different items do |
| clearly better than the next one | with a probability above 97.5 %, by both intervals |
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ..metrics import Agreement, in_words
from ..pages.wording import amount, listed, percent, titles
from ..quality.answers import FEW
from ..quality.verdicts import reference
from .parts import LABELS, MARKS, OTHERS, part

if TYPE_CHECKING:
    from .report import Report

_WARNED = 1  # groups on which verdicts fall
_CLEAR = 0.975  # probability that a thing is better than the next one
_NUMBERS = ["No", "One", "Two", "Three", "Four", "Five", "Six", "Seven", "Eight", "Nine"]
_VERDICTS = {  # what one such annotator does, and several
    "random": ("answers at random", "answer at random"),
    "constant": ("nearly always gives one answer", "nearly always give one answer"),
    "reversed": ("contradicts {}", "contradict {}"),
    "likely random": ("may answer at random", "may answer at random"),
}
ANSWER_VERDICTS = {
    "careless": ("often answers carelessly", "often answer carelessly"),
    "misses marks": ("misses much of what others mark", "miss much of what others mark"),
    "misses options": ("misses many options", "miss many options"),
    "spurious marks": ("often marks what others do not", "often mark what others do not"),
    "one side": ("nearly always prefers one side", "nearly always prefer one side"),
    "far from the others": ("is far from the others", "are far from the others"),
}
_UNDEFINED = {  # why agreement on labels is
    "classes": "no two labels of an item, or only one class",
    "numbers": "no two numbers on an item, or all the same",
}


def opening(report: Report) -> tuple[str, ...]:
    """Return what a reader should know first: the answers, how good they are, and who gave them."""
    camps = report.camps
    agreeing = camps is not None and camps.verdict in ("camps", "some agree more")
    return (
        *content(report),
        *([camps.sentence] if agreeing and camps is not None else []),
        *quality(report),
        agreement(report),
        *people(report),
    )


def volume(answers: Any, noun: str = "label") -> str:
    """Return how much was annotated."""
    return (
        f"{amount(answers.n_annotators, 'annotator')} gave {amount(len(answers), noun)} "
        f"to {amount(answers.n_items, 'item')}"
    )


def _volume_each(answers: Any, noun: str) -> str:
    each_item = len(answers) / max(answers.n_items, 1)
    return f"{volume(answers, noun)}, {each_item:.1f} each on average"


# What the answers hold.


@part
def content(report: Report) -> Sequence[str]:
    """Return how many answers there are, and what they hold."""
    raise NotImplementedError


@content.for_kind("classes")
def _of_classes(report: Report) -> Sequence[str]:
    return [f"{_volume_each(report.answers, 'label')}."]


@content.for_kind("numbers")
def _of_numbers(report: Report) -> Sequence[str]:
    value = report.answers.value
    return [f"{_volume_each(report.answers, 'number')}, from {value.min():g} to {value.max():g}."]


@content.for_kind(*MARKS)
def _of_marks(report: Report) -> Sequence[str]:
    answers = report.answers
    labels = f" with {amount(len(answers.classes), 'label')}" if answers.labelled else ""
    words = f"They hold {amount(answers.n_elements, report.noun)}{labels}"
    return _held(answers, words, "empty: annotators looked and marked nothing")


@content.for_kind("sets")
def _of_sets(report: Report) -> Sequence[str]:
    answers = report.answers
    mean = answers.n_elements / len(answers)
    words = f"They choose {mean:.1f} of {amount(answers.n_options, 'option')} on average"
    return _held(answers, words, "empty: they choose no option")


@content.for_kind("rankings")
def _of_rankings(report: Report) -> Sequence[str]:
    answers = report.answers
    tied = float((answers.pairs().outcome == 2).mean()) if answers.n_elements else 0.0
    mean = answers.n_elements / len(answers)
    words = f"They rank {amount(answers.n_things, 'thing')}, {mean:.1f} at a time"
    return _held(answers, words + (f"; {percent(tied)} of the pairs are ties" if tied else ""))


@content.for_kind("masks")
def _of_masks(report: Report) -> Sequence[str]:
    area = round(float(report.answers.area.mean()))
    return _held(report.answers, f"A mask has {amount(area, 'pixel')} on average")


@content.for_kind("texts")
def _of_texts(report: Report) -> Sequence[str]:
    tokens = report.answers.tokens
    size = float(tokens.sizes.mean())
    return _held(report.answers, f"A text has {size:.1f} {tokens.unit}s on average")


def _held(answers: Any, words: str, empty: str = "empty") -> list[str]:
    """Return how many answers there are, what they hold, and how many are empty."""
    share = float(answers.empty.mean())
    words += f"; {percent(share)} of the answers are {empty}." if share else "."
    return [f"{_volume_each(answers, 'answer')}.", words]


# How good what was inferred is.


@part
def quality(report: Report) -> Sequence[str]:
    """Return how good what was inferred is, as far as that can be known."""
    raise NotImplementedError


@quality.for_kind("classes")
def _of_labels(report: Report) -> Sequence[str]:
    """Return how good the labels are, and which are none of one's own."""
    doubt, unidentifiable = report.doubt, report.result.unidentifiable
    within = " within one step" if doubt.ordered else ""
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
    elif doubt.errors.n_items and (within or accuracy is None):
        right, low, high = doubt.errors.accuracy
        certain = " The certainty is calibrated on known items." if report.result.n_gold else ""
        of = f" of {amount(doubt.errors.n_items, 'item')}" if unidentifiable else ""
        sentences.append(
            f"About {percent(right)} of the inferred labels{of} are right{within} (probably "
            f"{percent(low)} to {percent(high)}).{certain}"
        )
    if unidentifiable and not report.has_camps:
        sentences.append(unidentifiable.reason)
    if doubt.odd_items:
        words = [f"{amount(count, 'item')} {reason}" for reason, count in doubt.odd_items.items()]
        sentences.append(f"Look at these yourself: {listed(words)}.")
    return sentences


@quality.for_kind("numbers")
def _of_values(report: Report) -> Sequence[str]:
    """Return how far values are off, their standard error, and how far answers scatter."""
    doubt, sentences = report.doubt, []
    if report.evaluation is not None:
        error, fit = (report.evaluation.scores[name] for name in ("mae", "pearson"))
        if error is not None and fit is not None:
            sentences.append(
                f"Of {amount(report.evaluation.n_scored, 'item')} whose value is known, the "
                f"estimates are off by {doubt.form(error.value)} on average (correlation "
                f"{fit.value:.2f})."
            )
    deviation = report.result.deviation[np.isfinite(report.result.deviation)]
    if len(deviation):
        sentences.append(
            f"The standard error of a value is {doubt.form(float(np.median(deviation)))} "
            "(median over items)."
        )
    if not math.isnan(doubt.usual):
        sentences.append(
            f"Answers on an item usually scatter by {doubt.form(doubt.usual)}; on "
            f"{amount(len(doubt.again), 'item')} by more than twice as much."
        )
    return sentences


@quality.for_kind(*MARKS)
def _of_marked(report: Report) -> Sequence[str]:
    items, n_marks = report.result.items["item"], len(report.result.items["item"])
    n_marked = len(np.unique(items))
    words = f"The consensus has {amount(n_marks, report.noun)} on {amount(n_marked, 'item')}"
    return [_bare(words, report.answers.n_items - n_marked), *_scored(report)]


@quality.for_kind("sets")
def _of_chosen(report: Report) -> Sequence[str]:
    agreed: Any = report.result.truth
    mean = agreed.n_elements / max(len(agreed), 1)
    words = f"The consensus has {mean:.1f} options per item"
    return [_bare(words, int(agreed.empty.sum())), *_scored(report)]


@quality.for_kind("rankings")
def _of_order(report: Report) -> Sequence[str]:
    """Return how far the order of things is clear."""
    table = report.result.items
    confidence = table["confidence"][np.isfinite(table["confidence"])]
    groups = len(np.unique(table["group"][table["n"] > 0]))
    among = f"in {amount(groups, 'group')} that nothing compares" if groups > 1 else "in one order"
    ranked = int((table["n"] > 0).sum())
    words = f"The consensus ranks {amount(ranked, 'thing')} {among}"
    if len(confidence):
        clear = amount(int((confidence > _CLEAR).sum()), "thing", len(confidence))
        words += f"; {clear} with a successor are clearly better than it"
    return [f"{words}.", *_scored(report)]


def unclear_neighbours(report: Report) -> int:
    """Return how many things are not clearly better than the next one."""
    confidence = report.result.items["confidence"]
    return int((confidence[np.isfinite(confidence)] <= _CLEAR).sum())


@quality.for_kind("masks")
def _of_outlines(report: Report) -> Sequence[str]:
    confidence = percent(float(np.nanmean(report.result.confidence)))
    words = f"Where masks of an item differ, {confidence} of the votes decide on average."
    return [words, *_scored(report)]


@quality.for_kind("texts")
def _of_wordings(report: Report) -> Sequence[str]:
    confidence = percent(float(np.nanmean(report.result.confidence)))
    words = f"The texts of the consensus have a confidence of {confidence} on average."
    return [words, *_scored(report)]


def _bare(words: str, n_items: int) -> str:
    """Return a sentence, and on how many items there is nothing."""
    return f"{words}, and none on {amount(n_items, 'item')}." if n_items else f"{words}."


def _scored(report: Report) -> list[str]:
    """Return the main score of a consensus, or else how good it is by its confidence."""
    evaluation, errors = report.evaluation, report.errors
    if evaluation is not None:
        scores = evaluation.scores.items()
        name, score = next((name, score) for name, score in scores if score is not None)
        return [
            f"Compared with {amount(evaluation.n_scored, 'known answer')}, "
            f"{titles('scores')[name]} is {score.value:.2f} ({score.low:.2f} to {score.high:.2f})."
        ]
    if errors is None or not errors.n_items:
        return []
    right, low, high = errors.accuracy
    return [
        f"By their confidence alone, about {percent(right)} of them are right (probably "
        f"{percent(low)} to {percent(high)})."
    ]


# How much annotators agree.


@part
def agreement(report: Report) -> str:
    """Return the word for alpha and its interval, or why it is undefined."""
    raise NotImplementedError


@agreement.for_kind(*LABELS)
def _on_labels(report: Report) -> str:
    measured: Agreement = report.agreement
    alpha = measured["alpha"]
    if math.isnan(alpha.value):
        return f"Agreement cannot be measured: {_UNDEFINED[report.kind]}."
    interval = f"{alpha.low:.2f} to {alpha.high:.2f}"
    return f"Agreement is {measured.word} (alpha {alpha.value:.2f}, {interval})."


@agreement.for_kind(*OTHERS)
def _on_answers(report: Report) -> str:
    """Return the same, and what it means in distances."""
    measured = report.agreement
    if measured is None:
        return "Agreement cannot be measured: no item has two answers."
    alpha, observed, expected = (measured[name] for name in ("alpha", "observed", "expected"))
    if math.isnan(alpha.value):
        return "Agreement cannot be measured: there are no answers to different items to compare."
    interval = "" if math.isnan(alpha.low) else f", {alpha.low:.2f} to {alpha.high:.2f}"
    return (
        f"Agreement is {in_words(alpha.value)} (alpha {alpha.value:.2f}{interval}): two answers to "
        f"an item have a distance of {observed.value:.2f} on average, answers to different items "
        f"{expected.value:.2f}, where 0 is the same and 1 has nothing in common."
    )


# Who stands out.


@part
def people(report: Report) -> Sequence[str]:
    """Return which annotators stand out, as far as there is evidence."""
    raise NotImplementedError


@people.for_kind(*LABELS)
def _who_gave_labels(report: Report) -> Sequence[str]:
    """Return whose labels do not follow the items, and whether that falls on one group."""
    scores = report.annotator_scores
    worst = scores.worst
    verdicts = []
    for verdict, (singular, plural) in _VERDICTS.items():
        selected = worst[scores.judged(verdict)[worst]]
        names = report.answers.annotators[selected].tolist()
        count = _NUMBERS[len(names)] if len(names) < len(_NUMBERS) else str(len(names))
        if names:
            does = f"annotator {singular}" if len(names) == 1 else f"annotators {plural}"
            does = does.format(reference(scores.basis, selected))
            verdicts.append(f"{count} {does}: {listed(names)}.")
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


@people.for_kind(*OTHERS)
def _who_answered(report: Report) -> Sequence[str]:
    n_annotators = report.answers.n_annotators
    few = int((report.annotator_scores.verdict == FEW).sum())
    if few == n_annotators:
        return ["No annotator gave enough answers to be judged."]
    sentences = []
    for verdict, names in report.judged.items():
        singular, plural = ANSWER_VERDICTS[verdict]
        of_all = f"{len(names)} annotators {plural}"
        subject = f"1 annotator {singular}" if len(names) == 1 else of_all
        sentences.append(f"{subject}: {listed(names)}.")
    too_few = f" ({amount(few, 'annotator')} gave too few answers to say)" if few else ""
    return sentences or [f"No annotator clearly stands out{too_few}."]
