"""Reports on answers of any kind in words; every sentence follows from numbers.

| phrase | when |
|---|---|
| poor … almost perfect agreement | alpha by distance below 0, then in steps of 0.2 |
| careless, misses marks, … | the verdicts of `identification.answers` |
| about … % of the marks are right | their confidence, with the interval of `label_errors` |
| disputed | three answers or more that differ as much as answers to different items do |
| clearly better than the next one | with a probability above 97.5 %, by both intervals |
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from ..answers.marks import Marks
from ..answers.masks import Masks
from ..answers.rankings import Rankings
from ..answers.sets import Sets
from ..answers.texts import Texts
from ..errors import Note
from ..metrics import in_words
from ..pages.sections import CONFIDENT
from ..pages.wording import amount, listed, percent, titles
from ..quality.answers import FEW
from .actions import Action
from .sentences import volume

if TYPE_CHECKING:
    from .answer_report import AnswerReport

_CLEAR = 0.975  # probability that a thing is better than the next one
_VERDICTS = {  # what one such annotator does, and several; what to do
    "careless": ("often answers carelessly", "often answer carelessly"),
    "misses marks": ("misses much of what others mark", "miss much of what others mark"),
    "misses options": ("misses many options", "miss many options"),
    "spurious marks": ("often marks what others do not", "often mark what others do not"),
    "one side": ("nearly always prefers one side", "nearly always prefer one side"),
    "far from the others": ("is far from the others", "are far from the others"),
}


def answer_opening(report: AnswerReport) -> list[str]:
    """Return what a reader should know first: answers, consensus, agreement and annotators."""
    answers = report.answers
    answers_each = len(answers) / max(answers.n_items, 1)
    return [
        f"{volume(answers, 'answer')}, {answers_each:.1f} each on average.",
        _content(report),
        *_consensus(report),
        _agreement(report),
        *_annotators(report),
    ]


def _content(report: AnswerReport) -> str:
    """Return what the answers hold, and how many are empty."""
    answers: Any = report.answers
    content, none = "", "empty"
    if isinstance(answers, Marks):
        labels = f" with {amount(len(answers.classes), 'label')}" if answers.labelled else ""
        content = f"They hold {amount(answers.n_elements, report.noun)}{labels}"
        none = "empty: annotators looked and marked nothing"
    elif isinstance(answers, Sets):
        mean = answers.n_elements / len(answers)
        content = f"They choose {mean:.1f} of {amount(answers.n_options, 'option')} on average"
        none = "empty: they choose no option"
    elif isinstance(answers, Rankings):
        tied = float((answers.pairs().outcome == 2).mean()) if answers.n_elements else 0.0
        mean = answers.n_elements / len(answers)
        content = f"They rank {amount(answers.n_things, 'thing')}, {mean:.1f} at a time"
        content += f"; {percent(tied)} of the pairs are ties" if tied else ""
    elif isinstance(answers, Masks):
        content = f"A mask has {amount(round(float(answers.area.mean())), 'pixel')} on average"
    elif isinstance(answers, Texts):
        size, unit = float(answers.tokens.sizes.mean()), answers.tokens.unit
        content = f"A text has {size:.1f} {unit}s on average"
    share = float(answers.empty.mean())
    return f"{content}; {percent(share)} of the answers are {none}." if share else f"{content}."


def _consensus(report: AnswerReport) -> list[str]:
    """Return what the consensus holds, and how good it is as far as that can be known."""
    result, answers = report.result, report.answers
    if isinstance(answers, Rankings):
        sentences = [_order(report)]
    elif isinstance(answers, Marks):
        items, n_marks = len(np.unique(result.items["item"])), len(result.items["item"])
        bare = answers.n_items - items
        words = f"The consensus has {amount(n_marks, report.noun)} on {amount(items, 'item')}"
        sentences = [f"{words}, and none on {amount(bare, 'item')}." if bare else f"{words}."]
    elif isinstance(answers, Sets):
        agreed: Any = result.truth
        mean, bare = agreed.n_elements / max(len(agreed), 1), int(agreed.empty.sum())
        words = f"The consensus has {mean:.1f} options per item"
        sentences = [f"{words}, and none on {amount(bare, 'item')}." if bare else f"{words}."]
    else:
        confidence = percent(float(np.nanmean(result.confidence)))
        masks = f"Where masks of an item differ, {confidence} of the votes decide on average"
        texts = f"The texts of the consensus have a confidence of {confidence} on average"
        sentences = [f"{masks if isinstance(answers, Masks) else texts}."]
    evaluation = report.evaluation
    if evaluation is not None:
        name, score = next(
            (measure, estimate)
            for measure, estimate in evaluation.scores.items()
            if estimate is not None
        )
        sentences.append(
            f"Compared with {amount(evaluation.n_scored, 'known answer')}, "
            f"{titles('scores')[name]} is {score.value:.2f} ({score.low:.2f} to {score.high:.2f})."
        )
    elif report.errors is not None and report.errors.n_items:
        right, low, high = report.errors.accuracy
        sentences.append(
            f"By their confidence alone, about {percent(right)} of them are right (probably "
            f"{percent(low)} to {percent(high)})."
        )
    return sentences


def _order(report: AnswerReport) -> str:
    """Return how far the order of things is clear."""
    table = report.result.items
    confidence = table["confidence"][np.isfinite(table["confidence"])]
    groups = len(np.unique(table["group"][table["n"] > 0]))
    among = f"in {amount(groups, 'group')} that nothing compares" if groups > 1 else "in one order"
    ranked = int((table["n"] > 0).sum())
    words = f"The consensus ranks {amount(ranked, 'thing')} {among}"
    if not len(confidence):
        return f"{words}."
    clear = int((confidence > _CLEAR).sum())
    return (
        f"{words}; {amount(clear, 'thing', len(confidence))} with a successor are clearly better "
        "than it."
    )


def unclear_neighbours(report: AnswerReport) -> int:
    """Return how many things are not clearly better than the next one."""
    confidence = report.result.items["confidence"]
    return int((confidence[np.isfinite(confidence)] <= _CLEAR).sum())


def _agreement(report: AnswerReport) -> str:
    """Return the word for alpha, its interval, and what it means in distances."""
    agreement = report.agreement
    if agreement is None:
        return "Agreement cannot be measured: no item has two answers."
    alpha, observed, expected = (agreement[name] for name in ("alpha", "observed", "expected"))
    if math.isnan(alpha.value):
        return "Agreement cannot be measured: there are no answers to different items to compare."
    interval = "" if math.isnan(alpha.low) else f", {alpha.low:.2f} to {alpha.high:.2f}"
    return (
        f"Agreement is {in_words(alpha.value)} (alpha {alpha.value:.2f}{interval}): two answers to "
        f"an item have a distance of {observed.value:.2f} on average, answers to different items "
        f"{expected.value:.2f}, where 0 is the same and 1 has nothing in common."
    )


def _annotators(report: AnswerReport) -> list[str]:
    """Return who stands out, as far as there is evidence."""
    n_annotators = report.answers.n_annotators
    few = int((report.scores.verdict == FEW).sum())
    if few == n_annotators:
        return ["No annotator gave enough answers to be judged."]
    sentences = []
    for verdict, people in report.judged.items():
        singular, plural = _VERDICTS[verdict]
        subject = (
            f"1 annotator {singular}" if len(people) == 1 else f"{len(people)} annotators {plural}"
        )
        sentences.append(f"{subject}: {listed(people)}.")
    too_few = f" ({amount(few, 'annotator')} gave too few answers to say)" if few else ""
    return sentences or [f"No annotator clearly stands out{too_few}."]


def answer_actions(report: AnswerReport) -> list[Action]:
    """Return what to do next, the most urgent first."""
    answers = report.answers
    steps = []
    single = int((answers.labels_per_item == 1).sum())
    if report.agreement is None:
        words = "Have some items answered by several annotators: nothing can be compared now."
        steps.append(Action(words, "data"))
    elif 2 * single > answers.n_items:
        words = f"{amount(single, 'item', answers.n_items)} have one answer"
        steps.append(Action(f"{words}: have them answered again, or check them.", "data"))
    if isinstance(answers, Marks) and not answers.empty.any():
        words = (
            "No answer is empty. If annotators also looked at items and marked nothing, add these "
            "answers (`{}`): without them misses look rarer than they are."
        )
        steps.append(Action(Note("", remedy=words, assigned=...), "data"))
    steps += _people(report)
    if len(report.disputed):
        words = (
            f"On {amount(len(report.disputed), 'item')} answers differ as much as answers to "
            "different items do: look at the most disputed ones, and whether the instructions say "
            "what to do with them."
        )
        steps.append(Action(words, "disputed"))
    return [*steps, *_uncertain(report)]


def _people(report: AnswerReport) -> list[Action]:
    """Return whose answers to look at; who stands out may also see what others miss."""
    people = [name for names in report.judged.values() for name in names]
    if not people:
        return []
    words = [f"annotator {name}" if name.isdecimal() else name for name in people]
    them = "they" if len(people) > 1 else "this annotator"
    sentence = (
        f"Look at some answers of {listed(words)} before you use them or leave them out: {them} "
        "may also see what the others miss."
    )
    if report.n_changed is not None:
        without = "them" if len(people) > 1 else "this one"
        change = (
            f"the consensus changes by a distance above 0.1 on {amount(report.n_changed, 'item')}"
        )
        if isinstance(report.answers, Rankings):
            change = f"the ranks of {amount(report.n_changed, 'thing')} change"
        sentence += f" Without {without}, {change}."
    return [Action(sentence, "annotators")]


def _uncertain(report: AnswerReport) -> list[Action]:
    """Return which part of the consensus to check."""
    result, low = report.result, report.less_certain
    if isinstance(report.answers, Rankings):
        steps = []
        if len(np.unique(result.items["group"][result.items["n"] > 0])) > 1:
            words = "If all things need one order, compare some of different groups: nothing does"
            steps.append(Action(f"{words}.", "consensus"))
        unclear = unclear_neighbours(report)
        if unclear:
            unclear_things = "1 thing is" if unclear == 1 else f"{amount(unclear, 'thing')} are"
            words = f"{unclear_things} not clearly better than the next one, by their intervals"
            steps.append(Action(f"{words}: compare such pairs again if their order matters.",
                                "consensus"))  # fmt: skip
        return steps
    if not len(low) or result.inner is None:  # confidence is no probability there
        return []
    doubt = float((1 - result.confidence[low]).sum())
    if doubt < 0.5:
        return []
    words = (
        f"Check {amount(len(low), report.noun)} of the consensus with a confidence below "
        f"{CONFIDENT:.0%}: by their confidence, about {doubt:.0f} of them are wrong."
    )
    return [Action(words, "consensus")]
