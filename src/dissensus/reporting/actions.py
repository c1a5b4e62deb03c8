"""What to do with a data set: one plan, from one computation of the errors that are left.

Every action follows from numbers and states its expected effect. Labels are requested again only
until the target is expected to be reached; advice to stop needs the lower end of the interval of
the accuracy at the target; where that cannot be known, the plan asks for known items. Camps are
never called wrong, and only random and constant annotators are proposed to be left out.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ..errors import Note
from ..pages.sections import Finding
from ..pages.wording import amount, listed, percent
from ..planning.label_errors import checks_needed, label_errors
from ..quality.verdicts import ENOUGH, LEFT_OUT, RELATED

if TYPE_CHECKING:
    from .number_report import NumberReport
    from .report import Report

_NAMED = 3  # groups in one sentence
_MOST = 0.5  # of the items, above which a list to relabel is no plan


class Action(NamedTuple):
    """Something to do, and the section of the page that shows why.

    `names` are names of annotators, each with its words in the sentence.
    """

    sentence: str
    section: str = ""
    names: tuple[tuple[str, str], ...] = ()


def actions(report: Report) -> list[Action]:
    """Return what to do next, the most urgent first."""
    steps = [*data_actions(report), *annotator_actions(report), *_copies(report)]
    if not report.has_camps:
        return [*steps, *_labels(report)]
    keep = "Keep the labels of both camps, and learn or report what each says: neither is wrong"
    return [Action(f"{keep}, and further labels would not settle it.", "annotators"), *steps]


def number_actions(report: NumberReport) -> list[Action]:
    """Return what to do next about numbers, the most urgent first."""
    steps = [*data_actions(report), *annotator_actions(report)]
    wide = report.wide
    if len(wide):
        size = report.annotations.labels_per_item[wide]
        error_now, error_after = (
            float(np.sqrt(report.variance[wide] / (factor * size)).mean()) for factor in (1, 2)
        )
        words = (
            f"Have {amount(len(wide), 'item')} answered again, on which answers scatter most: with "
            "twice as many answers, the standard error of their values is expected to fall from "
            f"{report.form(error_now)} to {report.form(error_after)} on average."
        )
        steps.append(Action(words, "items"))
    return steps


def data_actions(report: Report | NumberReport) -> list[Action]:
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


def annotator_actions(report: Report | NumberReport) -> list[Action]:
    """Return whom to leave out, to check, or to ask."""
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


def _labels(report: Report) -> list[Action]:
    """Return whether to stop, to check known items, or to label again."""
    errors, target, unidentifiable = report.errors, report.target, report.result.unidentifiable
    steps = [] if unidentifiable is None else [Action(unidentifiable.remedy, "labels")]
    if errors.n_items == 0:
        return steps
    _, low, _ = errors.accuracy
    if report.should_stop:
        of = f" of {amount(errors.n_items, 'item')}" if unidentifiable else ""
        words = f"at least {percent(low)} of the labels{of} are right, the target is {target:.0%}"
        return [*steps, Action(f"Stop here: {words}.", "labels")]
    to_relabel = report.to_relabel
    if len(to_relabel):
        errors_left = report.errors_after
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
        n_more = _further_checks(report)
        how_many = "more random items" if n_more is None else f"about {n_more} more random items"
        steps.append(Action(f"{words} {how_many} against known labels.", "labels"))
    return steps


def _further_checks(report: Report) -> int | None:
    """Return how many further checks with as few errors would show that the target is reached."""
    if report.checked is not None:
        return None
    confidence, checks = report.certainty[report.unchecked], report.checks
    while checks["n_checked"] < len(confidence):
        checks = {name: 2 * count for name, count in checks.items()}
        if label_errors(confidence, **checks).reaches(report.target):
            return checks["n_checked"] - report.checks["n_checked"]
    return None
