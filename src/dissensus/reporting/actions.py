"""What to do with a data set: one plan, from one computation of the errors that are left.

Every action follows from numbers and states its expected effect. Labels are requested again only
until the target is expected to be reached; advice to stop needs the lower end of the interval of
the accuracy at the target; where that cannot be known, the plan asks for known items. Camps are
never called wrong, and only random and constant annotators are proposed to be left out.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from ..identification.annotator_evidence import ENOUGH
from ..identification.verdicts import LEFT_OUT, RELATED
from ..label_errors import checks_needed
from .sentences import amount, listed, percent

if TYPE_CHECKING:
    from .report import Report

_NAMED = 3  # groups in one sentence
_MOST = 0.5  # of the items, above which a list to relabel is no plan


class Action(NamedTuple):
    """Something to do, and the section of the page that shows why."""

    sentence: str
    section: str = ""


def actions(report: Report) -> list[Action]:
    """Return what to do next, the most urgent first."""
    steps = [Action(f"{one.sentence} {one.remedy}".strip(), "data") for one in report.check.serious]
    steps += [*_people(report), *_copies(report)]
    if not report.has_camps:
        return [*steps, *_labels(report)]
    keep = "Keep the labels of both camps, and learn or report what each says: neither is wrong"
    return [Action(f"{keep}, and further labels would not settle it.", "annotators"), *steps]


def _people(report: Report) -> list[Action]:
    """Return whom to leave out, to check, or to ask."""
    scores, steps = report.annotator_scores, []
    following = scores.basis.following
    enough = following.n_labels >= ENOUGH
    unrelated = enough & ~(following.z >= RELATED)
    if 2 * int(unrelated.sum()) > int(enough.sum()):
        return [
            Action(
                "Look at the question and its instructions first: the labels of most annotators "
                "do not follow the items, so they carry hardly any information.",
                "annotators",
            )
        ]
    people = {
        verdict: [
            f"annotator {name}" if name.isdecimal() else name
            for name in scores.annotations.annotators[
                scores.worst[scores.verdict[scores.worst] == verdict]
            ].tolist()
        ]
        for verdict in ("random", "constant", "reversed", "likely random")
    }
    left_out = [name for verdict in LEFT_OUT for name in people[verdict]]
    if left_out and report.n_changed is not None:
        words = "whose labels do not follow the items"
        effect = f"this changes {amount(report.n_changed, 'label')}"
        steps.append(Action(f"Leave out {listed(left_out)}, {words}: {effect}.", "annotators"))
    if people["reversed"]:
        names = listed(people["reversed"])
        steps.append(Action(f"Ask {names} whether the task was misunderstood.", "annotators"))
    if people["likely random"]:
        names = listed(people["likely random"])
        words = "labels may ignore the items, but this is not certain"
        steps.append(Action(f"Give {names} known items: their {words}.", "annotators"))
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
    errors, target = report.errors, report.target
    if errors.n_items == 0:
        return []
    _, low, _ = errors.accuracy
    if report.should_stop:
        words = f"at least {percent(low)} of the labels are right, the target is {target:.0%}"
        return [Action(f"Stop here: {words}.", "labels")]
    steps, again = [], report.to_relabel
    if len(again):
        left = report.errors_after
        fixed = errors.expected - left.expected
        share = len(again) / errors.n_items
        words = (
            f"Have {amount(len(again), 'item')} labelled again, the least certain first: they hold "
            f"about {fixed:.0f} of about {errors.expected:.0f} wrong labels, and about "
            f"{left.expected:.0f} ({left.low:.0f} to {left.high:.0f}) would be left."
        )
        if share > _MOST:
            words += f" That is {percent(share)} of the items: plan for more labels per item."
        steps.append(Action(words, "items"))
    if not errors.n_checked:
        n_checks = checks_needed(target)
        words = f"Check {n_checks} random items against known labels"
        effect = f"without an error among them, {target:.0%} would be reached"
        found = "they show how many labels really are wrong" if len(again) else effect
        steps.append(Action(f"{words}: {found}.", "labels"))
    return steps
