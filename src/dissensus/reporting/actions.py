"""What to do with a data set: one plan, from one computation of the errors that are left.

Every action follows from numbers and states its expected effect. Labels are requested again only
until the target is expected to be reached; advice to stop needs the lower end of the interval of
the accuracy at the target; where that cannot be known, the plan asks for known items. Camps are
never called wrong, and only random and constant annotators are proposed to be left out.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from ..errors import Note
from ..metrics.answer_scores import joined
from ..pages.sections import CONFIDENT, Action, Finding
from ..pages.wording import amount, listed, percent
from ..planning.label_errors import checks_needed, label_errors
from ..quality.verdicts import ENOUGH, LEFT_OUT, RELATED
from .parts import LABELS, MARKS, OTHERS, part
from .sentences import unclear_neighbours

if TYPE_CHECKING:
    from .doubt import LabelDoubt
    from .report import Report

_NAMED = 3  # groups in one sentence
_MOST = 0.5  # of the items, above which a list to relabel is no plan
_CHANGED = 0.1  # distance above which the consensus on an item has changed


def actions(report: Report) -> list[Action]:
    """Return what to do next, the most urgent first."""
    steps = [*about_data(report), *about_people(report)]
    if not report.has_camps:
        return [*steps, *about_items(report)]
    keep = "Keep the labels of both camps, and learn or report what each says: neither is wrong"
    return [Action(f"{keep}, and further labels would not settle it.", "annotators"), *steps]


# What leaving annotators out changes.


@part
def effect(report: Report) -> str:
    """Return what leaving out unreliable annotators changes; empty without any."""
    raise NotImplementedError


@effect.for_kind("classes")
def _changed_labels(report: Report) -> str:
    if report.without is None:
        return ""
    n_changed = int((report.without.label != report.result.label).sum())
    return f"this changes {amount(n_changed, 'label') if n_changed else 'no label'}"


@effect.for_kind("numbers")
def _changed_values(report: Report) -> str:
    if report.without is None:
        return ""
    changes = np.nan_to_num(report.without.value - report.result.value)
    changed = np.abs(changes[changes != 0])
    if not len(changed):
        return "this changes no value"
    by = report.doubt.form(float(changed.mean()))
    return f"this changes {amount(len(changed), 'value')} by {by} on average"


@effect.for_kind(*OTHERS)
def _changed_consensus(report: Report) -> str:
    if report.without is None:
        return ""
    answers, first, second = joined(report.result.truth, report.without.truth)
    n_changed = int((answers.distance(first, second) > _CHANGED).sum())
    return f"the consensus changes by a distance above {_CHANGED} on {amount(n_changed, 'item')}"


@effect.for_kind("rankings")
def _changed_ranks(report: Report) -> str:
    if report.without is None:
        return ""
    before, after = (result.items["rank"] for result in (report.result, report.without))
    return f"the ranks of {amount(int((before != after).sum()), 'thing')} change"


# About the data.


@part
def about_data(report: Report) -> Sequence[Action]:
    """Return what to do about the data."""
    raise NotImplementedError


@about_data.for_kind(*LABELS)
def _data_of_labels(report: Report) -> Sequence[Action]:
    """Return the remedies of serious problems in the data."""
    return [Action(_with_remedy(finding), "data") for finding in report.check.serious]


def _with_remedy(finding: Finding) -> str:
    """Return a finding and what helps, in sentences; a remedy with keywords keeps them."""
    remedy = finding.remedy
    if not isinstance(remedy, Note) or not remedy.message.remedies:
        return f"{finding.sentence} {remedy[:1].upper()}{remedy[1:]}".strip(" .") + "."
    advice, (words, instead) = remedy.message.what, remedy.message.remedies[0]
    if advice:
        sentence = f"{finding.sentence} {advice[:1].upper()}{advice[1:]}"
        return Note(sentence, remedy=f"{words.rstrip('.')}.", **instead)
    spelled = words if "{}" in words else f"{{}} {words}"
    return Note("", remedy=f"{finding.sentence} {spelled.rstrip('.')}.", **instead)


@about_data.for_kind(*OTHERS)
def _data_of_answers(report: Report) -> Sequence[Action]:
    """Return the same, and whether items need further answers."""
    answers, remedies = report.answers, _data_of_labels(report)
    single = int((answers.labels_per_item == 1).sum())
    if report.agreement is None or 2 * single <= answers.n_items:
        return remedies
    words = f"{amount(single, 'item', answers.n_items)} have one answer"
    return [*remedies, Action(f"{words}: have them answered again, or check them.", "data")]


@about_data.for_kind(*MARKS)
def _data_of_marks(report: Report) -> Sequence[Action]:
    """Return the same, and whether empty answers are missing."""
    steps = list(_data_of_answers(report))
    if not report.answers.empty.any():
        words = (
            "No answer is empty. If annotators also looked at items and marked nothing, add these "
            "answers (`{}`): without them misses look rarer than they are."
        )
        steps.append(Action(Note("", remedy=words, assigned=...), "data"))
    return steps


# About annotators.


@part
def about_people(report: Report) -> Sequence[Action]:
    """Return whom to leave out, to check, or to ask."""
    raise NotImplementedError


@about_people.for_kind(*LABELS)
def _people_of_labels(report: Report) -> Sequence[Action]:
    return [*_by_verdict(report), *_copies(report)]


def _by_verdict(report: Report) -> list[Action]:
    scores = report.annotator_scores
    following = scores.basis.following
    enough = following.n_labels >= ENOUGH
    unrelated = enough & ~(following.z >= RELATED)
    if 2 * int(unrelated.sum()) > int(enough.sum()):
        return [
            Action(
                "Look at the question and its instructions first: the answers of most annotators "
                "do not follow the items, so they carry hardly any information.",
                "annotators",
            )
        ]
    worst, unsure = scores.worst, scores.judged("likely random")
    checked = scores.basis.gold_labels >= ENOUGH
    left_out = scores.judged(*LEFT_OUT) & bool(report.effect)
    templates = {
        f"Leave out {{}}, whose answers do not follow the items: {report.effect}.": left_out,
        "Ask {} whether the task was misunderstood.": scores.judged("reversed"),
        "Give {} known items: their answers may ignore the items, but this is not certain.": (
            unsure & ~checked
        ),
        "Give {} more items: their answers may ignore the items, and the known ones among them do "
        "not settle it.": unsure & checked,
    }
    steps = []
    for sentence, selected in templates.items():
        names = scores.annotations.annotators[worst[selected[worst]]].tolist()
        words = [f"annotator {name}" if name.isdecimal() else name for name in names]
        if names:
            pairs = tuple(zip(words, names, strict=True))
            steps.append(Action(sentence.format(listed(words)), "annotators", pairs))
    return steps


def _copies(report: Report) -> list[Action]:
    copies = report.annotator_scores.copies
    clusters = [] if copies is None else copies.as_dict()["clusters"]
    if not clusters:
        return []
    groups = "; ".join(map(listed, clusters[:_NAMED]))
    return [Action(f"Ask whether these worked together: {groups}.", "annotators")]


@about_people.for_kind(*OTHERS)
def _people_of_answers(report: Report) -> Sequence[Action]:
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
    if report.effect:
        sentence += f" Without {'them' if len(people) > 1 else 'this one'}, {report.effect}."
    return [Action(sentence, "annotators")]


# About what was inferred.


@part
def about_items(report: Report) -> Sequence[Action]:
    """Return which items to answer again, or to check."""
    raise NotImplementedError


@about_items.for_kind("classes")
def _labels(report: Report) -> Sequence[Action]:
    """Return whether to stop, to check known items, or to label again."""
    doubt, unidentifiable = report.doubt, report.result.unidentifiable
    errors, target = doubt.errors, doubt.target
    steps = [] if unidentifiable is None else [Action(unidentifiable.remedy, "labels")]
    if errors.n_items == 0:
        return steps
    _, low, _ = errors.accuracy
    if doubt.should_stop:
        of = f" of {amount(errors.n_items, 'item')}" if unidentifiable else ""
        words = f"at least {percent(low)} of the labels{of} are right, the target is {target:.0%}"
        return [*steps, Action(f"Stop here: {words}.", "labels")]
    to_relabel = doubt.again
    if len(to_relabel):
        errors_left = doubt.errors_after
        fixed = errors.expected - errors_left.expected
        share = len(to_relabel) / errors.n_items
        words = (
            f"Have {amount(len(to_relabel), 'item')} labelled again, the least certain first: they "
            f"hold about {fixed:.0f} of about {errors.expected:.0f} wrong labels, and about "
            f"{errors_left.expected:.0f} ({errors_left.low:.0f} to {errors_left.high:.0f}) would "
            "be left."
        )
        if share > _MOST:
            words += f" That is {percent(share)} of the items: plan for more labels per item."
        steps.append(Action(words, "items"))
    if not errors.n_checked:
        n_checks = checks_needed(target)
        words = f"Check {n_checks} random items against known labels"
        effect = f"without an error among them, {target:.0%} would be reached"
        effect_of_checks = (
            "they show how many labels really are wrong" if len(to_relabel) else effect
        )
        steps.append(Action(f"{words}: {effect_of_checks}.", "labels"))
    elif not len(to_relabel):
        words = f"{target:.0%} are probably reached, but this is not certain: check"
        n_more = _further_checks(doubt)
        how_many = "more random items" if n_more is None else f"about {n_more} more random items"
        steps.append(Action(f"{words} {how_many} against known labels.", "labels"))
    return steps


def _further_checks(doubt: LabelDoubt) -> int | None:
    """Return how many further checks with as few errors would show that the target is reached."""
    if doubt.checked is not None:
        return None
    confidence, checks = doubt.certainty[doubt.unchecked], doubt.checks
    while checks["n_checked"] < len(confidence):
        checks = {name: 2 * count for name, count in checks.items()}
        if label_errors(confidence, **checks).reaches(doubt.target):
            return checks["n_checked"] - doubt.checks["n_checked"]
    return None


@about_items.for_kind("numbers")
def _values(report: Report) -> Sequence[Action]:
    """Return whether to have items answered again, and what that is expected to change."""
    doubt = report.doubt
    wide = doubt.again
    if not len(wide):
        return []
    size = report.answers.labels_per_item[wide]
    error_now, error_after = (
        float(np.sqrt(doubt.variance[wide] / (factor * size)).mean()) for factor in (1, 2)
    )
    words = (
        f"Have {amount(len(wide), 'item')} answered again, on which answers scatter most: with "
        "twice as many answers, the standard error of their values is expected to fall from "
        f"{doubt.form(error_now)} to {doubt.form(error_after)} on average."
    )
    return [Action(words, "items")]


@about_items.for_kind(*OTHERS)
def _consensus(report: Report) -> Sequence[Action]:
    """Return which items are disputed, and which part of the consensus to check."""
    doubt, steps = report.doubt, _disputed(report)
    low = doubt.less_certain
    if report.result.inner is None:  # confidence is no probability there
        return steps
    n_wrong = float((1 - report.result.confidence[low]).sum())
    if n_wrong >= 0.5:
        words = (
            f"Check {amount(len(low), report.noun)} of the consensus with a confidence below "
            f"{CONFIDENT:.0%}: by their confidence, about {n_wrong:.0f} of them are wrong."
        )
        steps.append(Action(words, "consensus"))
    return steps


@about_items.for_kind("rankings")
def _order(report: Report) -> Sequence[Action]:
    """Return which questions are disputed, and which things to compare again."""
    result, steps = report.result, _disputed(report)
    if len(np.unique(result.items["group"][result.items["n"] > 0])) > 1:
        words = "If all things need one order, compare some of different groups: nothing does."
        steps.append(Action(words, "consensus"))
    unclear = unclear_neighbours(report)
    if unclear:
        unclear_things = "1 thing is" if unclear == 1 else f"{amount(unclear, 'thing')} are"
        words = (
            f"{unclear_things} not clearly better than the next one, by their intervals: compare "
            "such pairs again if their order matters."
        )
        steps.append(Action(words, "consensus"))
    return steps


def _disputed(report: Report) -> list[Action]:
    """Return whether to look at disputed items."""
    n_disputed = len(report.doubt.again)
    words = (
        f"On {amount(n_disputed, 'item')} answers differ as much as answers to different items do: "
        "look at the most disputed ones, and whether the instructions say what to do with them."
    )
    return [Action(words, "disputed")] * bool(n_disputed)
