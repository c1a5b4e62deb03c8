"""Objects: marks of several annotators that mean the same, and whether each is there."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ..base.arrays import Array, Floats, Integers
from . import as_method
from ..answers.annotations import Annotations
from ..answers import Candidates
from ..params import Positive, Probability
from ..consensus_base import ConsensusContext
from .existence import EXISTENCE, YES, Existence, Levels
from .marks import MarkMethod, Proposed, fit_inner, group_median
from .aggregation import Consensus


@dataclass(frozen=True, kw_only=True)
class Objects(MarkMethod):
    """Marks matched by similarity, with a model of what annotators find and of clutter.

    Objects: marks of several annotators that mean the same, and whether each is there.

    Marks on an item are matched greedily by intersection over union, or by distance for points: the
    mark that is most similar to all others takes every other annotator's most similar mark. Whether
    a group of marks is an object is a question to all who looked, see `Existence`; its corners are
    the medians of its marks. The label is a second question, to those who marked it.

        P(marks | object of visibility v) = Π_j (found[j, v] if j marked it else 1 - found[j, v])

    When it fails: Crowded scenes: where objects overlap by more than `match`, marks of two objects
    are matched as one. Annotators who never give an empty answer look as if they miss nothing.

    Parameters
    ----------
    match
        Least similarity of two marks of one object: intersection over union for spans and boxes.
    aggregator
        An aggregator for whether candidates exist, `name[setting=value,…]`; `objects` is the model
        of objects and clutter.
    levels
        Number of visibilities of objects.
    strength
        Pseudo-counts of every annotator's probability to find objects of a visibility.
    labels
        The aggregator for the labels of marks.

    Examples
    --------
    >>> from dissensus.answers import Boxes
    >>> left, top = [0, 1, 0, 40], [0, 0, 2, 40]
    >>> boxes = Boxes.from_columns("aaaa", "xyzx", left, top, [10] * 4, [20] * 4)
    >>> table = Objects().fit(boxes).items
    >>> table["x"].tolist(), table["y"].tolist(), table["n_marked"].tolist()
    ([0.0], [0.0], [3])
    """

    match: Probability = 0.3
    aggregator: str = EXISTENCE
    levels: Levels = 2
    strength: Positive = 5.0
    labels: str = "hierarchical"

    def infer_marks(self, fit: ConsensusContext) -> Consensus:
        proposed = self.propose(fit)
        corners = fit.answers.corners(proposed.place)
        params = proposed.inner.params
        return self.result(
            fit,
            proposed.items_table(
                fit, self.keep(fit, proposed), _spread_by_candidate(fit, proposed, corners)
            ),
            proposed.annotators_table(fit) | _errors_by_annotator(fit, proposed, corners),
            inner=proposed.inner,
            params=params._asdict() if self.aggregator == EXISTENCE else {},
            trace=proposed.inner.trace,
            converged=proposed.inner.converged,
            notes=proposed.inner.notes,
        )

    def propose(self, fit: ConsensusContext) -> Proposed:
        """Return every group of marks with its probability, median corners and label."""
        answers = fit.answers
        candidates = answers.match(self.match, fit.gold)
        model = Existence(levels=self.levels, strength=self.strength)
        chosen = model if self.aggregator == EXISTENCE else as_method(self.aggregator)
        inner = fit_inner(chosen, fit, candidates)
        marks = answers.place if fit.gold is None else np.vstack([answers.place, fit.gold.place])
        members, n_candidates = candidates.members, len(candidates.item)
        place = answers.from_corners(group_median(answers.corners(marks), members, n_candidates))
        label, sure = self._labels(fit, candidates)
        return Proposed(
            candidates,
            inner,
            candidates.annotations.label == YES,
            inner.posterior[:, YES],
            inner.probabilities[:, YES],
            place,
            label,
            sure,
        )

    def _labels(self, fit: ConsensusContext, candidates: Candidates) -> tuple[Integers, Floats]:
        """Return the label of every candidate and how probable it is, from those who marked it."""
        answers, annotations = fit.answers, candidates.annotations
        if not answers.labelled:
            n_candidates = annotations.n_items
            return np.zeros(n_candidates, dtype=np.int64), np.ones(n_candidates)
        names: dict[str, Any] = {
            "items": annotations.items,
            "annotators": annotations.annotators,
            "classes": answers.classes,
        }
        members = candidates.members[: answers.n_elements]
        annotator = answers.annotator[answers.answer]
        given = Annotations.from_codes(members, annotator, answers.label, **names)
        known = None
        if fit.gold is not None:
            known = np.full(annotations.n_items, -1)
            known[candidates.members[answers.n_elements :]] = answers.label_codes(fit.gold)
        question = Candidates(given, candidates.item, candidates.members, known)
        result = fit_inner(as_method(self.labels), fit, question)
        label = np.maximum(result.label, 0)
        return label, result.probabilities[np.arange(len(label)), label]


def _spread_by_candidate(
    fit: ConsensusContext, proposed: Proposed, corners: Floats
) -> dict[str, Array]:
    """Return the median absolute deviation of the corners of every candidate's marks."""
    if fit.answers.kind == "spans":
        return {}
    off, members = _off(fit, proposed, corners)
    deviation = group_median(np.abs(off), members, len(corners))
    return {"spread": deviation.mean(axis=1)}


def _errors_by_annotator(
    fit: ConsensusContext, proposed: Proposed, corners: Floats
) -> dict[str, Array]:
    """Return how far annotators' marks are from the consensus, and in which direction."""
    answers = fit.answers
    if answers.kind == "spans":
        return {}
    off, members = _off(fit, proposed, corners)
    true = proposed.probability[members] > 0.5
    who, off = answers.annotator[answers.answer][true], off[true]
    n_annotators = answers.n_annotators
    spread = group_median(np.abs(off).mean(axis=1, keepdims=True), who, n_annotators)[:, 0]
    bias = group_median(off, who, n_annotators)
    return {"spread": spread} | {
        f"bias_{side}": values for side, values in zip(answers.sides, bias.T, strict=True)
    }


def _off(fit: ConsensusContext, proposed: Proposed, corners: Floats) -> tuple[Floats, Integers]:
    """Return the differences of all marks from their candidate, and that candidate."""
    members = proposed.candidates.members[: fit.answers.n_elements]
    return fit.answers.corners(fit.answers.place) - corners[members], members
