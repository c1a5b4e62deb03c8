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
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar, Literal, NamedTuple

import numpy as np

from ..answers.annotations import Part
from ..base.arrays import Floats, Integers
from ..base.probability import TIE, label_temperature, log_normalize, most_probable, normalize
from ..method import Fitted
from ..params import Count, NonNegative, Positive, Probability, table_of
from .classes import ClassContext, ClassMethod

_SAME = 1e-9  # counts of agreements that differ by less are equal


@dataclass(frozen=True, kw_only=True)
class VoteAggregator(ClassMethod):
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
    def estimate_params(self, fit: ClassContext) -> Fitted:
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

    def record(self, fit: ClassContext, weight: Floats | None = None) -> Record:
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

    def estimate_params(self, fit: ClassContext) -> Fitted:
        record = self.first_record(fit)
        trace: list[float] = []
        while True:
            weight = self.weight(record)
            trace.append(float(self.objective(record)[record.labels > 0].sum()))
            fit.progress(len(trace), trace[-1])
            updated = self.record(fit, weight)
            converged = np.allclose(updated.right, record.right, rtol=0, atol=_SAME)
            if converged or len(trace) == self.max_iter:
                params = record.weights(record.impute(weight))
                return Fitted(params, tuple(trace) if self.has_objective else (), converged)
            record = updated

    def first_record(self, fit: ClassContext) -> Record:
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
        gold_items = np.flatnonzero(part.gold >= 0)
        best[gold_items] = np.arange(part.n_classes) == part.gold[gold_items, None]
    n_tied = np.einsum("ik->i", best.view(np.uint8), dtype=np.int64)
    credit = np.repeat(1 / n_tied, np.diff(part.index))
    credit *= part.given_posterior(best)
    return part.by_annotator(credit)


def record_against(fit: ClassContext, posterior: Floats) -> Record:
    """Return how often annotators agree with the most probable classes: (item, class)."""
    return _record(fit, fit.engine.add_up(partial(_agreement_with, posterior=posterior), fit.parts))


def _agreement_with(part: Part, posterior: Floats) -> Floats:
    return agreement_counts(part, posterior[part.start : part.stop])


def _record(fit: ClassContext, right: Floats) -> Record:
    annotations = fit.answers
    return Record(right, annotations.labels_per_annotator.astype(float), annotations.n_classes)


def _mean(value: Floats) -> float:
    return float(value.mean()) if len(value) else 0.0


@dataclass(frozen=True, kw_only=True)
class GoldMajority(WeightedVote):
    """Votes weighted by accuracy on items with gold.

    Gold majority: votes weighted by accuracy on items with gold.

    The weight of an annotator is their accuracy on items with gold, with Laplace smoothing,
    (right + smoothing) / (labels + 2 * smoothing). Annotators without labels on such items get a
    default weight. Without gold it is the plain vote.

        weight[a] = (right[a] + smoothing) / (labels[a] + 2 smoothing)     on items with gold
        label[i] = argmax_t Σ_a weight[a] · 1(annotator a labels item i as t)

    When it fails: With few gold items per annotator the weights are mostly noise, and gold that is
    easier than the rest makes everybody look equally good. An annotator below chance level still
    counts for their label.

        R. Snow, B. O'Connor, D. Jurafsky, A. Ng. Cheap and fast - but is it good? Evaluating
        non-expert annotations for natural language tasks. EMNLP 2008

    Parameters
    ----------
    smoothing
        Right and wrong labels added to those of every annotator.
    default
        Weight of annotators without labels on gold items; by default the mean of the others.

    Examples
    --------
    >>> from dissensus import Annotations
    >>> annotations = Annotations.from_columns("aaabbb", "xyzxyz", "001110")
    >>> GoldMajority().fit(annotations, gold={"b": "1"}).quality.round(2).tolist()
    [0.67, 0.67, 0.33]
    """

    smoothing: Positive = 1.0
    default: NonNegative | None = None

    def estimate_params(self, fit: ClassContext) -> Fitted:
        if fit.gold is None:
            default = 1.0 if self.default is None else self.default
            return Fitted(self.record(fit).weights(np.full(fit.answers.n_annotators, default)))
        right, labels = fit.engine.add_up(_on_gold, fit.parts)
        accuracy = (right + self.smoothing) / (labels + 2 * self.smoothing)
        weight = Record(right, labels, fit.answers.n_classes).impute(accuracy)
        if self.default is not None:
            weight[labels == 0] = self.default
        return Fitted(Weights(weight, accuracy))


def _on_gold(part: Part) -> tuple[Floats, Floats]:
    """Return the number of right labels and of all labels on gold items: (annotator)."""
    gold = np.asarray(part.gold)[part.item]
    has_gold, right = gold >= 0, gold == part.label
    return part.by_annotator(right.astype(float)), part.by_annotator(has_gold.astype(float))


@dataclass(frozen=True, kw_only=True)
class Majority(VoteAggregator):
    """The class with most votes.

    Majority vote: the class with most votes, with a stated rule for ties.

    Random ties use one random number per item, so neither the order of rows nor ties elsewhere
    change them. For scores, prefer the expectation over ties (`evaluate` gives it) to one draw.

        label[i] = argmax_t Σ_a 1(annotator a labels item i as t)

    When it fails: All votes count the same, so a few prolific spammers or annotators with a common
    bias decide items that better annotators got right; with an even number of votes many items are
    tied.

    Parameters
    ----------
    ties
        Which of several tied classes: one at `random` (by the seed), the `first`, none
        (`abstain`), the most common among all labels (`prior`), or the posterior split over
        `all` of them, with the first as the label.

    Examples
    --------
    >>> from dissensus import Annotations
    >>> labels = ["dog", "dog", "cat", "cat", "dog"]
    >>> annotations = Annotations.from_columns("aaabb", "xyzxy", labels)
    >>> Majority(ties="abstain").fit(annotations).labels.tolist()
    ['dog', None]
    """

    ties: Literal["random", "first", "abstain", "prior", "all"] = "random"

    def part_posterior(self, part: Part, params: Any) -> Floats:
        votes = part.votes()
        return normalize(_leading(votes).astype(float)) if self.ties == "all" else normalize(votes)

    def decide(self, fit: ClassContext, posterior: Floats, params: Any) -> Integers:
        leading = _leading(posterior)
        label = leading.argmax(axis=1)
        tied = np.flatnonzero(np.einsum("ik->i", leading.view(np.uint8), dtype=np.int64) > 1)
        if self.ties == "abstain":
            label[tied] = -1
        if self.ties == "random":
            random = np.random.PCG64(fit.seed)
            random.advance(fit.first)  # one number for each item
            drawn = np.random.Generator(random).random(len(leading))[tied]
            cumulative = leading[tied].cumsum(axis=1)
            label[tied] = (cumulative > (drawn * cumulative[:, -1]).astype(int)[:, None]).argmax(
                axis=1
            )
        if self.ties == "prior":
            label[tied] = np.where(leading[tied], fit.labels_per_class, -1).argmax(axis=1)
        return label


def _leading(votes: Floats) -> np.ndarray[tuple[int, int], np.dtype[np.bool_]]:
    """Return the classes with most votes, tied ones included: (item, class)."""
    return votes >= votes.max(axis=1, keepdims=True) - TIE


@dataclass(frozen=True, kw_only=True)
class NaiveSoft(VoteAggregator):
    """Vote shares; the label is the class with most votes, of tied classes the first.

    Naive soft labels: the vote share of a class is its probability.

        posterior[i, t] = votes for t on item i / votes on item i

    When it fails: As `majority`: annotators are not distinguished. With few votes the shares are
    coarse, and two equal votes out of two are called certain.

    Examples
    --------
    >>> from dissensus import Annotations
    >>> annotations = Annotations.from_columns("aaab", "xyzx", ["dog", "dog", "cat", "cat"])
    >>> NaiveSoft().fit(annotations).posterior.round(2).tolist()
    [[0.33, 0.67], [1.0, 0.0]]
    """


@dataclass(frozen=True, kw_only=True)
class TwoThirds(VoteAggregator):
    """The class with most votes, if it has two thirds of them.

    Two-thirds agreement: a label needs enough votes, and enough of them for one class.

    The posterior of a class is its share of votes. The label is the class with most, where there
    are at least `least_labels` labels and it has at least `least_share` of them; elsewhere the item
    stays undecided. Known from citizen science and from peerannot.

        label[i] = argmax_t votes[i, t]   if Σ_t votes[i, t] ≥ least_labels
                                          and max_t votes[i, t] ≥ least_share · Σ_t votes[i, t]

    When it fails: On hard items and on small crowds: many items stay undecided, and those are not a
    random part of the data. A biased majority passes the rule as easily as a right one.

        T. Lefort, B. Charlier, A. Joly, J. Salmon. Peerannot: classification for crowdsourced image
        datasets with Python. Computo, 2024. doi:10.57750/qmaz-gr91

    Parameters
    ----------
    least_share
        Share of votes that a class needs for a label.
    least_labels
        Number of labels that an item needs for a label.

    Examples
    --------
    >>> from dissensus import Annotations
    >>> annotations = Annotations.from_columns("aaabbc", "xyzxyx", ["dog", "dog", "cat"] * 2)
    >>> TwoThirds().fit(annotations).labels.tolist()
    ['dog', 'dog', None]
    """

    abstains: ClassVar[bool] = True

    least_share: Probability = 2 / 3
    least_labels: Count = 2

    def decide(self, fit: ClassContext, posterior: Floats, params: Any) -> Integers:
        enough = fit.answers.labels_per_item >= self.least_labels
        enough &= posterior.max(axis=1) >= self.least_share - TIE
        return np.where(enough, most_probable(posterior), -1)


@dataclass(frozen=True, kw_only=True)
class Weighted(WeightedVote):
    """Votes weighted by given skills.

    Weighted vote: the weights of annotators are given.

    The label is the class with most weight. A negative skill counts against the label. Annotators
    without a skill get a default weight. Without any skill, all votes have the same weight.

        label[i] = argmax_t Σ_a skill[a] · 1(annotator a labels item i as t)

    When it fails: Where skills come from another task or another time: the vote is then weighted by
    something that no longer holds, and nothing in the fit can notice.

    Parameters
    ----------
    skills
        `{annotator: skill}`, or a file: a table with the columns annotator and skill, or a JSON
        object.
    default
        Weight of annotators without a skill; by default the mean of the skills.

    Examples
    --------
    >>> from dissensus import Annotations
    >>> annotations = Annotations.from_columns("aaabbb", "xyzxyz", "001110")
    >>> Weighted(skills={"x": 1, "y": 1, "z": 3}).fit(annotations).labels.tolist()
    ['1', '0']
    """

    side_tables: ClassVar[tuple[str, ...]] = ("skills",)

    skills: Mapping[str, float] | str | None = None
    default: float | None = None

    def estimate_params(self, fit: ClassContext) -> Fitted:
        skills = table_of("skills", self.skills)
        mean = sum(skills.values()) / len(skills) if skills else 1.0
        default = mean if self.default is None else self.default
        names = fit.answers.annotators.tolist()
        weight = np.array([skills.get(name, default) for name in names], dtype=float)
        return Fitted(self.record(fit, weight).weights(weight))
