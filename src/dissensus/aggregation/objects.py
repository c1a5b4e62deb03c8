"""Objects: marks of several annotators that mean the same, and whether each is there.

Methods for marks propose candidates with a probability, a place and a label each (`Proposed`). What
they have in common is here: which candidates to keep, the table of these, and which annotators
found them.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from ..answers import Candidates
from ..answers.annotations import Annotations
from ..answers.marks import Marks
from ..base.arrays import Array, Floats, Integers
from ..method import FitContext, Method
from ..params import Positive, Probability
from . import as_method
from .aggregation import AnswerAggregation, ClassAggregation
from .classes import ClassMethod
from .existence import EXISTENCE, YES, Existence, Levels
from .scheduling import without_overlaps

Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True, kw_only=True)
class MarkMethod(Method[Marks, AnswerAggregation]):
    """A method that keeps the candidates which are probable enough.

    Parameters
    ----------
    favour
        `accuracy` keeps candidates above the threshold; `recall` also those above half of the best
        expected F1.
    threshold
        Least probability of a mark in the consensus.
    """

    favour: Literal["accuracy", "recall"] = "accuracy"
    threshold: Probability = 0.5

    def infer(self, fit: FitContext[Marks]) -> AnswerAggregation:
        answers = fit.answers
        if answers.n_elements or (fit.gold is not None and fit.gold.n_elements):
            return self.infer_marks(fit)
        table, none = answers.as_table()[0], np.zeros(0, dtype=np.int64)
        table |= {"confidence": none.astype(float), "n_marked": none, "n_looked": none}
        looked = answers.labels_per_annotator > 0
        people = {"found": np.full(len(looked), np.nan), "spurious": np.where(looked, 0.0, np.nan)}
        return AnswerAggregation.of(self, fit, table, people, notes=("Nobody marked anything.",))

    @abstractmethod
    def infer_marks(self, fit: FitContext[Marks]) -> AnswerAggregation:
        """Return the result of a fit to answers with marks."""

    def span_result(self, fit: FitContext[Marks], proposed: Proposed) -> AnswerAggregation:
        """Return the result from candidate spans."""
        inner = proposed.inner
        return AnswerAggregation.of(
            self,
            fit,
            proposed.items_table(fit, self.keep(fit, proposed), {}),
            proposed.annotators_table(fit),
            inner=inner,
            trace=inner.trace,
            converged=inner.converged,
            notes=inner.notes,
        )

    def keep(self, fit: FitContext[Marks], proposed: Proposed) -> Mask:
        """Return which candidates are in the consensus: (candidate)."""
        probability = proposed.probability
        least = self.threshold
        if self.favour == "recall":
            least = min(least, best_f1_threshold(probability))
        if not fit.answers.of_text:
            return probability > least
        return without_overlaps(
            fit.answers,
            proposed.candidates.members,
            item=proposed.candidates.item,
            place=proposed.place,
            weight=probability - least,
        )


@dataclass(frozen=True)
class Proposed:
    """Candidates with their probabilities, coordinates and labels."""

    candidates: Candidates
    inner: ClassAggregation
    marked: Mask  # (annotation): whether it marks its candidate
    probability: Floats  # (candidate): posterior that it exists
    calibrated: Floats  # (candidate): the same, calibrated
    place: Floats  # (candidate, coordinate)
    label: Integers  # (candidate)
    sure: Floats  # (candidate): calibrated probability of the label if it exists

    @property
    def confidence(self) -> Floats:
        """The calibrated probability that a candidate exists and has its label."""
        return self.calibrated * self.sure

    @property
    def n_marked(self) -> Integers:
        """Number of answers that mark every candidate."""
        annotations = self.inner.answers
        return np.bincount(annotations.item[self.marked], minlength=annotations.n_items)

    def items_table(
        self, fit: FitContext[Marks], selected: Mask, columns: Mapping[str, Array]
    ) -> dict[str, Array]:
        """Return the kept candidates as columns; on known items, the gold instead."""
        answers, gold, where = fit.answers, fit.gold, self.candidates.item
        row = np.flatnonzero(selected & ~fit.known[where])
        item, place, label = where[row], self.place[row], self.label[row]
        confidence = self.confidence[row]
        if gold is not None:
            row = np.concatenate([row, self.candidates.members[answers.n_elements :]])
            item, place = np.concatenate([item, gold.mark_item]), np.vstack([place, gold.place])
            label = np.concatenate([label, answers.label_codes(gold)])
            confidence = np.concatenate([confidence, np.ones(gold.n_elements)])
        order = np.lexsort((label, *place.T[::-1], item))
        row = row[order]
        return {
            **answers.table_of(item[order], place[order], label[order]),
            "confidence": confidence[order],
            "n_marked": self.n_marked[row],
            "n_looked": answers.labels_per_item[item[order]],
            **{name: values[row] for name, values in columns.items()},
        }

    def annotators_table(self, fit: FitContext[Marks]) -> dict[str, Array]:
        """Return what annotators found of what is there, and spurious marks per item."""
        annotations = self.inner.answers
        true = self.probability[annotations.item]

        def total(value: Floats) -> Floats:
            size = annotations.n_annotators
            return np.bincount(annotations.annotator, value, minlength=size).astype(float)

        with np.errstate(invalid="ignore", divide="ignore"):  # NaN for those who never looked
            found_share = total(true * self.marked) / total(true)
            spurious = total((1 - true) * self.marked) / fit.answers.labels_per_annotator
        return {"found": found_share, "spurious": spurious}


def fit_inner(
    method: ClassMethod, fit: FitContext[Marks], candidates: Candidates
) -> ClassAggregation:
    """Return the result of an aggregator on candidates, with those of known items decided."""
    annotations, gold_labels = candidates.annotations, {}
    if candidates.gold is not None:
        at = np.flatnonzero(candidates.gold >= 0)
        names = annotations.classes[candidates.gold[at]].tolist()
        gold_labels = dict(zip(annotations.items[at].tolist(), names, strict=True))
    context: dict[str, Any] = {"engine": fit.engine, "seed": fit.seed, "progress": fit.progress}
    return method.fit(annotations, gold=gold_labels, **context)


def best_f1_threshold(probability: Floats) -> float:
    """Return half of the best expected F1 of keeping the most probable candidates.

    That is the threshold which maximizes the expected F1.

    >>> round(best_f1_threshold(np.array([0.9, 0.9, 0.4, 0.1])), 3)
    0.419
    """
    ranked = np.sort(probability)[::-1]
    n_kept = np.arange(1, len(ranked) + 1)
    return float((np.cumsum(ranked) / (n_kept + ranked.sum())).max(initial=0.0))


def group_median(value: Floats, group: Integers, n_groups: int) -> Floats:
    """Return the median of every column in every group, NaN without values: (group, column).

    >>> group_median(np.array([[1.0], [2.0], [9.0], [4.0]]), np.array([0, 0, 0, 1]), 2).tolist()
    [[2.0], [4.0]]
    """
    size = np.bincount(group, minlength=n_groups)
    start, filled = np.cumsum(size) - size, size > 0
    lower, upper = (start + (size - 1) // 2)[filled], (start + size // 2)[filled]
    median = np.full((n_groups, value.shape[1]), np.nan)
    for column, values in enumerate(value.T):
        ranked = values[np.lexsort((values, group))]
        median[filled, column] = ranked[lower] / 2 + ranked[upper] / 2
    return median


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

    def infer_marks(self, fit: FitContext[Marks]) -> AnswerAggregation:
        proposed = self.propose(fit)
        corners = fit.answers.corners(proposed.place)
        params = proposed.inner.params
        return AnswerAggregation.of(
            self,
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

    def propose(self, fit: FitContext[Marks]) -> Proposed:
        """Return every group of marks with its probability, median corners and label."""
        answers = fit.answers
        candidates = answers.match(self.match, fit.gold)
        model = Existence(levels=self.levels, strength=self.strength)
        aggregator = model if self.aggregator == EXISTENCE else as_method(self.aggregator)
        inner = fit_inner(aggregator, fit, candidates)
        marks = answers.place if fit.gold is None else np.vstack([answers.place, fit.gold.place])
        members, n_candidates = candidates.members, len(candidates.item)
        place = answers.from_corners(group_median(answers.corners(marks), members, n_candidates))
        label, sure = self._labels(fit, candidates)
        return Proposed(
            candidates=candidates,
            inner=inner,
            marked=candidates.annotations.label == YES,
            probability=inner.posterior[:, YES],
            calibrated=inner.probabilities[:, YES],
            place=place,
            label=label,
            sure=sure,
        )

    def _labels(self, fit: FitContext[Marks], candidates: Candidates) -> tuple[Integers, Floats]:
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
        labels = Annotations.from_codes(members, annotator, answers.label, **names)
        gold = None
        if fit.gold is not None:
            gold = np.full(annotations.n_items, -1)
            gold[candidates.members[answers.n_elements :]] = answers.label_codes(fit.gold)
        question = Candidates(labels, candidates.item, candidates.members, gold)
        result = fit_inner(as_method(self.labels), fit, question)
        label = np.maximum(result.label, 0)
        return label, result.probabilities[np.arange(len(label)), label]


def _spread_by_candidate(
    fit: FitContext[Marks], proposed: Proposed, corners: Floats
) -> dict[str, Array]:
    """Return the median absolute deviation of the corners of every candidate's marks."""
    if fit.answers.of_text:
        return {}
    off, members = _off(fit, proposed, corners)
    deviation = group_median(np.abs(off), members, len(corners))
    return {"spread": deviation.mean(axis=1)}


def _errors_by_annotator(
    fit: FitContext[Marks], proposed: Proposed, corners: Floats
) -> dict[str, Array]:
    """Return how far annotators' marks are from the consensus, and in which direction."""
    answers = fit.answers
    if answers.of_text:
        return {}
    off, members = _off(fit, proposed, corners)
    true = proposed.probability[members] > 0.5
    annotator, off = answers.annotator[answers.answer][true].astype(np.int64), off[true]
    n_annotators = answers.n_annotators
    spread = group_median(np.abs(off).mean(axis=1, keepdims=True), annotator, n_annotators)[:, 0]
    bias = group_median(off, annotator, n_annotators)
    return {"spread": spread} | {
        f"bias_{side}": values for side, values in zip(answers.sides, bias.T, strict=True)
    }


def _off(fit: FitContext[Marks], proposed: Proposed, corners: Floats) -> tuple[Floats, Integers]:
    """Return the differences of all marks from their candidate, and that candidate."""
    members = proposed.candidates.members[: fit.answers.n_elements]
    return fit.answers.corners(fit.answers.place) - corners[members], members
