"""Votes: count the labels of every item, perhaps weighted by annotator, and decide.

A vote adds its weight to the class it names; the posterior of a class is its share of all weight.
A vote of negative weight counts for every other class instead. Where weights are log-odds of being
right, the posterior is that of the one-coin model. Where no vote on an item has any weight, plain
votes decide.

Methods that learn weights compare every annotator with a consensus, which gold overrules. Tied
classes share the consensus, so that the order of classes does not matter.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar, NamedTuple

import numpy as np

from ..base.probability import TIE, log_normalize, normalize
from ..base.arrays import Floats, Integers
from ..answers.annotations import Part
from ..base.calibration import label_temperature
from ..params import Count
from ..method import Aggregator, FitContext, Fitted

_SAME = 1e-9  # counts of agreements that differ by less are equal


@dataclass(frozen=True, kw_only=True)
class VoteAggregator(Aggregator):
    """Vote shares as the posterior, and a rule to decide."""

    additive: ClassVar[bool] = True

    def part_posterior(self, part: Part, params: Any) -> Floats:
        return normalize(part.votes())

    def temperature(self, n_labels: Integers) -> Floats | None:
        return None


class Weights(NamedTuple):
    """Parameters of a weighted vote."""

    weight: Floats  # (annotator)
    accuracy: Floats  # (annotator): fraction of labels that agree with the consensus

    def reindex(self, indices: Integers, n_items: int) -> Weights:
        """Return the parameters of other annotators by their indices here; -1 is a new one."""
        return Weights(*(np.append(value, _mean(value))[indices] for value in self))


class Record(NamedTuple):
    """How often annotators agree with a consensus."""

    right: Floats  # (annotator): labels that agree with it
    labels: Floats  # (annotator): all labels
    n_classes: int

    @property
    def wrong(self) -> Floats:
        """The number of labels that do not agree."""
        return np.maximum(self.labels - self.right, 0)

    @property
    def accuracy(self) -> Floats:
        """The fraction of labels that agree; 0 for annotators without labels."""
        return self.right / np.maximum(self.labels, 1)

    def impute(self, value: Floats) -> Floats:
        """Return values of annotators, with the mean for annotators without labels."""
        labelled = self.labels > 0
        return np.where(labelled, value, _mean(value[labelled]))

    def weights(self, weight: Floats | None = None) -> Weights:
        """Return the parameters of a vote with these weights, by default the accuracies."""
        accuracy = self.impute(self.accuracy)
        return Weights(accuracy if weight is None else weight, accuracy)


@dataclass(frozen=True, kw_only=True)
class WeightedVote(VoteAggregator):
    """Votes weighted by annotator."""

    params_type: ClassVar[type] = Weights
    log_odds: ClassVar[bool] = False  # whether the weights are log-odds of being right

    @abstractmethod
    def estimate_params(self, fit: FitContext) -> Fitted:
        """Return the weights of annotators."""

    def part_posterior(self, part: Part, params: Weights) -> Floats:
        return self.vote(part, params.weight)

    def quality(self, params: Weights, agreement: Floats) -> Floats:
        return params.accuracy

    def temperature(self, n_labels: Integers) -> Floats | None:
        return label_temperature(n_labels) if self.log_odds else None

    def vote(self, part: Part, weight: Floats | None) -> Floats:
        """Return the posterior under weights of annotators, or of plain votes: (item, class)."""
        if weight is None:
            return normalize(part.votes())
        return weighted_shares(part, weight[part.annotator], log_odds=self.log_odds)

    def record(self, fit: FitContext, weight: Floats | None = None) -> Record:
        """Return how often annotators agree with the weighted vote, or with plain votes."""
        return _record(fit, fit.engine.add_up(partial(self._right, weight=weight), fit.parts))

    def _right(self, part: Part, weight: Floats | None) -> Floats:
        return agreement_counts(part, self.vote(part, weight))


@dataclass(frozen=True, kw_only=True)
class IteratedVote(WeightedVote):
    """Votes and weights in turns, until the votes do not change.

    A weight that grows with the number of right labels is the derivative of a convex function of
    it, the `objective`. The vote maximizes the sum of weights of right labels, so no iteration
    lowers the sum of the objective over annotators.

    Parameters
    ----------
    max_iter
        Maximum number of iterations; the first takes its weights from plain votes.
    """

    max_iter: Count = 100

    @property
    def has_objective(self) -> bool:
        """Whether votes and weights maximize a common objective."""
        return True

    @abstractmethod
    def weight(self, record: Record) -> Floats:
        """Return the weights that follow from a record: (annotator)."""

    @abstractmethod
    def objective(self, record: Record) -> Floats:
        """Return the function whose derivative in `right` is the weight: (annotator)."""

    def estimate_params(self, fit: FitContext) -> Fitted:
        record = self.first_record(fit)
        trace: list[float] = []
        while True:
            weight = self.weight(record)
            trace.append(float(self.objective(record)[record.labels > 0].sum()))
            fit.progress(len(trace), trace[-1])
            now = self.record(fit, weight)
            converged = np.allclose(now.right, record.right, rtol=0, atol=_SAME)
            if converged or len(trace) == self.max_iter:
                params = record.weights(record.impute(weight))
                return Fitted(params, tuple(trace) if self.has_objective else (), converged)
            record = now

    def first_record(self, fit: FitContext) -> Record:
        """Return how often annotators agree with plain votes, or with a posterior to start from."""
        return self.record(fit) if fit.start is None else record_against(fit, fit.start)


def weighted_shares(part: Part, weight: Floats, *, log_odds: bool = False) -> Floats:
    """Return the posterior under weights of annotations: (item, class)."""
    score = part.votes(weight)
    if log_odds:
        posterior = log_normalize(score - score.max(axis=1, keepdims=True))[1]
        unweighted = np.flatnonzero(part.by_item(np.abs(weight)) == 0)
    else:
        if weight.min(initial=0) < 0:
            score -= part.by_item(np.minimum(weight, 0))[:, None]
            np.maximum(score, 0, out=score)
        total = np.einsum("ik->i", score)
        unweighted = np.flatnonzero(total == 0)
        total[unweighted] = 1
        score *= (1 / total)[:, None]
        posterior = score
    if len(unweighted):
        posterior[unweighted] = normalize(part.votes()[unweighted])
    return posterior


def agreement_counts(part: Part, posterior: Floats) -> Floats:
    """Return how many labels of every annotator are the most probable or gold class of the item.

    A label for one of several tied classes counts as a fraction.
    """
    best = posterior >= posterior.max(axis=1, keepdims=True) - TIE
    if part.gold is not None:
        known = np.flatnonzero(part.gold >= 0)
        best[known] = np.arange(part.n_classes) == part.gold[known, None]
    n_tied = np.einsum("ik->i", best.view(np.uint8), dtype=np.int64)
    each = np.repeat(1 / n_tied, np.diff(part.index))
    each *= part.given_posterior(best)
    return part.by_annotator(each)


def record_against(fit: FitContext, posterior: Floats) -> Record:
    """Return how often annotators agree with the most probable classes: (item, class)."""
    return _record(fit, fit.engine.add_up(partial(_agreement_with, posterior=posterior), fit.parts))


def _agreement_with(part: Part, posterior: Floats) -> Floats:
    return agreement_counts(part, posterior[part.start : part.stop])


def _record(fit: FitContext, right: Floats) -> Record:
    annotations = fit.annotations
    return Record(right, annotations.labels_per_annotator.astype(float), annotations.n_classes)


def _mean(value: Floats) -> float:
    return float(value.mean()) if len(value) else 0.0
