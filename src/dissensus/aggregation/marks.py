"""The steps that methods for marks have in common: what to keep, its table, and who found it."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from ..base.arrays import Array, Floats, Integers
from . import Aggregator
from ..answers import Candidates
from ..answers.matching import overlaps
from ..params import Probability
from ..result import Aggregation
from ..consensus_base import ConsensusContext, ConsensusMethod
from .schedule import allow_nested, schedule
from .aggregation import Consensus

Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True, kw_only=True)
class MarkMethod(ConsensusMethod):
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

    def infer(self, fit: ConsensusContext) -> Consensus:
        answers = fit.answers
        if answers.n_elements or (fit.gold is not None and fit.gold.n_elements):
            return self.infer_marks(fit)
        table, none = answers.as_table()[0], np.zeros(0, dtype=np.int64)
        table |= {"confidence": none.astype(float), "n_marked": none, "n_looked": none}
        looked = answers.labels_per_annotator > 0
        people = {"found": np.full(len(looked), np.nan), "spurious": np.where(looked, 0.0, np.nan)}
        return self.result(fit, table, people, notes=("Nobody marked anything.",))

    @abstractmethod
    def infer_marks(self, fit: ConsensusContext) -> Consensus:
        """Return the result of a fit to answers with marks."""

    def span_result(self, fit: ConsensusContext, proposed: Proposed) -> Consensus:
        """Return the result from candidate spans."""
        inner = proposed.inner
        return self.result(
            fit,
            proposed.items_table(fit, self.keep(fit, proposed), {}),
            proposed.annotators_table(fit),
            inner=inner,
            trace=inner.trace,
            converged=inner.converged,
            notes=inner.notes,
        )

    def keep(self, fit: ConsensusContext, proposed: Proposed) -> Mask:
        """Return which candidates are in the consensus: (candidate)."""
        probability = proposed.probability
        least = self.threshold
        if self.favour == "recall":
            least = min(least, best_f1_threshold(probability))
        kept = probability > least
        if fit.answers.kind != "spans":
            return kept
        at = np.flatnonzero(kept)
        item, place = proposed.candidates.item[at], proposed.place[at]
        weight = probability[at] - least
        chosen = schedule(item, place, weight)
        nested = _nested(fit.answers, proposed.candidates.members)
        if len(nested[0]):
            row = np.full(len(kept), -1)
            row[at] = np.arange(len(at))
            both = (row[nested[0]] >= 0) & (row[nested[1]] >= 0)
            pairs = row[nested[0][both]], row[nested[1][both]]
            chosen = allow_nested(item, place, weight, chosen, pairs)
        kept[at] = chosen
        return kept


@dataclass(frozen=True)
class Proposed:
    """Candidates with their probabilities, coordinates and labels."""

    candidates: Candidates
    inner: Aggregation
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
        annotations = self.inner.annotations
        return np.bincount(annotations.item[self.marked], minlength=annotations.n_items)

    def items_table(
        self, fit: ConsensusContext, kept: Mask, more: Mapping[str, Array]
    ) -> dict[str, Array]:
        """Return the kept candidates as columns; on known items, the gold instead."""
        answers, gold, where = fit.answers, fit.gold, self.candidates.item
        row = np.flatnonzero(kept & ~fit.known[where])
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
            **{name: values[row] for name, values in more.items()},
        }

    def annotators_table(self, fit: ConsensusContext) -> dict[str, Array]:
        """Return what annotators found of what is there, and spurious marks per item."""
        annotations = self.inner.annotations
        true = self.probability[annotations.item]

        def total(value: Floats) -> Floats:
            size = annotations.n_annotators
            return np.bincount(annotations.annotator, value, minlength=size).astype(float)

        with np.errstate(invalid="ignore", divide="ignore"):  # NaN for those who never looked
            found = total(true * self.marked) / total(true)
            spurious = total((1 - true) * self.marked) / fit.answers.labels_per_annotator
        return {"found": found, "spurious": spurious}


def fit_inner(method: Aggregator, fit: ConsensusContext, candidates: Candidates) -> Aggregation:
    """Return the result of an aggregator on candidates, with those of known items decided."""
    annotations, known = candidates.annotations, {}
    if candidates.gold is not None:
        at = np.flatnonzero(candidates.gold >= 0)
        names = annotations.classes[candidates.gold[at]].tolist()
        known = dict(zip(annotations.items[at].tolist(), names, strict=True))
    context: dict[str, Any] = {"engine": fit.engine, "seed": fit.seed, "progress": fit.progress}
    return method.fit(annotations, gold=known, **context)


def best_f1_threshold(probability: Floats) -> float:
    """Return half of the best expected F1 of keeping the most probable candidates.

    That is the threshold which maximizes the expected F1.

    >>> round(best_f1_threshold(np.array([0.9, 0.9, 0.4, 0.1])), 3)
    0.419
    """
    ranked = np.sort(probability)[::-1]
    kept = np.arange(1, len(ranked) + 1)
    return float((np.cumsum(ranked) / (kept + ranked.sum())).max(initial=0.0))


def group_median(value: Floats, group: Integers, n_groups: int) -> Floats:
    """Return the median of every column in every group, NaN without values: (group, column).

    >>> group_median(np.array([[1.0], [2.0], [9.0], [4.0]]), np.array([0, 0, 0, 1]), 2).tolist()
    [[2.0], [4.0]]
    """
    size = np.bincount(group, minlength=n_groups)
    start, some = np.cumsum(size) - size, size > 0
    lower, upper = (start + (size - 1) // 2)[some], (start + size // 2)[some]
    median = np.full((n_groups, value.shape[1]), np.nan)
    for column, values in enumerate(value.T):
        ranked = values[np.lexsort((values, group))]
        median[some, column] = ranked[lower] / 2 + ranked[upper] / 2
    return median


def _nested(answers: Any, members: Integers) -> tuple[Integers, Integers]:
    """Return the pairs of candidates that one annotator marked although they overlap."""
    one, two = overlaps(answers.answer, answers.place)
    return members[one], members[two]
