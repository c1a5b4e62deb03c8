"""Rules that look at every item on its own: count, perhaps weigh, decide.

A vote adds its weight to the class it names, and the belief in a class is its share of all
weight. A vote of negative weight counts for every other class instead; that moves all scores of
an item alike, so the class with the highest score stays the same. Where weights are log-odds of
being right, the belief is the posterior of that model: scores are logarithms. Where no vote on an
item weighs anything, plain votes decide.

Rules that learn weights compare every annotator with a consensus, which gold overrules. Among
classes that lead together the consensus is split, so that names of classes do not matter.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar, NamedTuple

import numpy as np

from .._relation import Floats, Integers
from ..annotations import Part
from ..params import Count
from ..result import Aggregation
from ._base import TIE, Aggregator, Fit, Found, first_best, share
from ._em import normalise

__all__ = [
    "Found",
    "IteratedVote",
    "Record",
    "VoteAggregator",
    "WeightedVote",
    "Weights",
    "record_against",
    "shares",
]

_SAME = 1e-9  # counts of agreements that differ by less are equal


@dataclass(frozen=True, kw_only=True)
class VoteAggregator(Aggregator):
    """A belief in every class from the votes of an item, and a decision."""

    additive: ClassVar[bool] = True

    def infer(self, fit: Fit) -> Aggregation:
        """Return shares of votes and what they decide."""
        return self.conclude(fit, *self.judge(fit, None))

    def find(self, fit: Fit) -> Found:
        """Return nothing: there is nothing to learn."""
        return Found()

    def judge(self, fit: Fit, params: Any) -> tuple[Floats, Integers]:
        """Return shares of votes and what they decide."""
        posterior = fit.over_items(self.believe)
        return posterior, self.decide(fit, posterior)

    def believe(self, part: Part) -> Floats:
        """Return the belief in every class: (item, class)."""
        return share(part.votes)

    def decide(self, fit: Fit, posterior: Floats) -> Integers:
        """Return the class of every item, -1 for none."""
        return first_best(posterior)


class Weights(NamedTuple):
    """What a weighted vote learns."""

    weight: Floats  # (annotator)
    accuracy: Floats  # (annotator): the share of labels that are right, as the method sees it

    def reindex(self, indices: Integers, n_items: int) -> Weights:
        """Return the same for other annotators, by their places here; -1 is somebody new."""
        return Weights(*(np.append(value, _mean(value))[indices] for value in self))


class Record(NamedTuple):
    """How annotators did against a consensus."""

    right: Floats  # (annotator): labels that agree with it
    labels: Floats  # (annotator): labels in all
    n_classes: int

    @property
    def accuracy(self) -> Floats:
        """The share of labels that agree; 0 for those who gave none."""
        return self.right / np.maximum(self.labels, 1)

    def average_others(self, value: Floats) -> Floats:
        """Return values of annotators, with the mean in the place of those who gave no label."""
        gave = self.labels > 0
        return np.where(gave, value, _mean(value[gave]))


@dataclass(frozen=True, kw_only=True)
class WeightedVote(VoteAggregator):
    """Votes that weigh as much as the annotators who gave them."""

    learns: ClassVar[type] = Weights
    log_odds: ClassVar[bool] = False  # whether the weights are log-odds of being right

    @abstractmethod
    def weigh(self, fit: Fit) -> Found:
        """Return how much every annotator weighs."""

    def infer(self, fit: Fit) -> Aggregation:
        """Return the labels under the weights."""
        weights, trace, converged = self.find(fit)
        posterior, label = self.judge(fit, weights)
        return self.conclude(
            fit, posterior, label, params=weights, trace=trace, converged=converged
        )

    def find(self, fit: Fit) -> Found:
        """Return the weights."""
        return self.weigh(fit)

    def judge(self, fit: Fit, params: Weights) -> tuple[Floats, Integers]:
        """Return posterior and labels under weights that are known."""
        posterior = fit.over_items(partial(self.count, weight=params.weight))
        return posterior, self.decide(fit, posterior)

    def quality(self, params: Weights, agreement: Floats) -> Floats:
        """Return every annotator's probability of being right."""
        return params.accuracy

    def count(self, part: Part, weight: Floats) -> Floats:
        """Return the belief in every class under weights of annotators: (item, class)."""
        return shares(part, weight[part.annotator], log_odds=self.log_odds)

    def record(self, fit: Fit, weight: Floats | None = None) -> Record:
        """Return how annotators do against the vote under weights, or against plain votes."""
        labels = fit.annotations.labels_per_annotator.astype(float)
        return Record(self.right(fit, weight), labels, fit.annotations.n_classes)

    def right(self, fit: Fit, weight: Floats | None = None) -> Floats:
        """Return how many labels of every annotator agree with that vote."""
        return fit.add_up(partial(self._right, weight=weight))

    def _right(self, part: Part, weight: Floats | None) -> Floats:
        posterior = self.believe(part) if weight is None else self.count(part, weight)
        return agreed(part, posterior)


@dataclass(frozen=True, kw_only=True)
class IteratedVote(WeightedVote):
    """Votes and weights in turn, until the votes stay the same.

    A weight that grows with the number of right labels is the slope of a convex function of it,
    `worth`. The vote maximises the sum of weights of right labels, so no round lowers the worth
    of all annotators together.

    Parameters
    ----------
    max_iter
        Rounds at most; the first takes its weights from plain votes.
    """

    max_iter: Count = 100

    @abstractmethod
    def weight(self, record: Record) -> Floats:
        """Return the weights that follow from a record: (annotator)."""

    @abstractmethod
    def worth(self, record: Record) -> Floats:
        """Return the function whose slope in `right` is the weight: (annotator)."""

    def weigh(self, fit: Fit) -> Found:
        record = self._first(fit)
        trace: list[float] = []
        while True:
            weight = self.weight(record)
            trace.append(float(self.worth(record)[record.labels > 0].sum()))
            fit.progress(len(trace), trace[-1])
            right = self.right(fit, weight)
            converged = np.allclose(right, record.right, rtol=0, atol=_SAME)
            if converged or len(trace) == self.max_iter:
                found = (record.average_others(value) for value in (weight, record.accuracy))
                return Found(Weights(*found), tuple(trace), converged)
            record = record._replace(right=right)

    def _first(self, fit: Fit) -> Record:
        """Return how annotators do against plain votes, or against a belief to start from."""
        return self.record(fit) if fit.start is None else record_against(fit, fit.start)


def shares(part: Part, weight: Floats, *, log_odds: bool = False) -> Floats:
    """Return the belief in every class under weights of annotations: (item, class)."""
    score = part.score(weight)
    if log_odds:
        posterior = normalise(score - score.max(axis=1, keepdims=True))[1]
        silent = np.flatnonzero(part.by_item(np.abs(weight)) == 0)
    else:
        if weight.min(initial=0) < 0:
            score -= part.by_item(np.minimum(weight, 0))[:, None]
            np.maximum(score, 0, out=score)
        total = np.einsum("ik->i", score)
        silent = np.flatnonzero(total == 0)
        total[silent] = 1
        score *= (1 / total)[:, None]
        posterior = score
    if len(silent):
        posterior[silent] = share(part.votes[silent])
    return posterior


def agreed(part: Part, posterior: Floats) -> Floats:
    """Return how many labels of every annotator are a best class, or the gold one, of their item.

    Where several classes are best together, each counts as its share of the one label.
    """
    best = posterior >= posterior.max(axis=1, keepdims=True) - TIE
    if part.gold is not None:
        known = np.flatnonzero(part.gold >= 0)
        best[known] = np.arange(part.n_classes) == part.gold[known, None]
    count = np.einsum("ik->i", best.view(np.uint8), dtype=np.int64)
    each = np.repeat(1 / count, np.diff(part.index))
    each *= part.given_posterior(best)
    return part.by_annotator(each)


def record_against(fit: Fit, posterior: Floats) -> Record:
    """Return how annotators do against the best classes of a belief: (item, class)."""
    right = fit.add_up(partial(_agreed_with, posterior=posterior))
    return Record(
        right, fit.annotations.labels_per_annotator.astype(float), fit.annotations.n_classes
    )


def _agreed_with(part: Part, posterior: Floats) -> Floats:
    return agreed(part, posterior[part.start : part.stop])


def _mean(value: Floats) -> float:
    return float(value.mean()) if len(value) else 0.0
