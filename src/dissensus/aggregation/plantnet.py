"""Pl@ntNet's vote (Lefort et al. 2024): who knows many classes weighs more.

An annotator's experience is the number of different classes they got right: those of their own
items, where these are valid, and a tenth of further ones, rounded, through votes on any item.
Their weight is `experience**alpha - experience**beta + gamma`. The label of an item is the class
with most weight; that weight is its confidence, and its share of all weight on the item the
accuracy. An item is valid if confidence and accuracy lie above `theta_conf` and `theta_acc`.
Weights, labels, validity and experience follow from each other, always from the present labels,
until experience stays the same. While several classes lead together nobody is right.

The cost of a round grows with the annotations, not with the classes, which may be many.

    T. Lefort, A. Affouard, B. Charlier, J. Salmon, P. Bonnet, A. Joly. Cooperative learning of
    Pl@ntNet's artificial intelligence algorithm: how does it work and how can we improve it?
    Methods in Ecology and Evolution, 2025. arXiv:2406.03356
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from .._names import as_names
from .._relation import Array, Floats, Integers, indices_of
from ..annotations import Annotations
from ..errors import MethodError
from ..params import Count, NonNegative, Probability
from ..result import Aggregation
from ._base import TIE, Aggregator, Fit, share
from ._votes import record_against

__all__ = ["Experience", "Plantnet"]

Truths = npt.NDArray[np.bool_]


class Experience(NamedTuple):
    """What Pl@ntNet's vote learns."""

    weight: Floats  # (annotator)
    experience: Floats  # (annotator): classes they know
    accuracy: Floats  # (annotator): the share of labels that are right
    confidence: Floats  # (item): weight of its label; NaN for items that were not in the fit
    share: Floats  # (item): the same as a share of all weight on the item
    valid: Truths  # (item)

    def reindex(self, indices: Integers, n_items: int) -> Experience:
        """Return the same for other annotators, by their places here; -1 is somebody new."""
        known = (self.weight, self.experience, self.accuracy)
        weight, experience, accuracy = (np.append(value, value.mean())[indices] for value in known)
        unknown = np.full(n_items, np.nan)
        valid = np.zeros(n_items, dtype=bool)
        return Experience(weight, experience, accuracy, unknown, unknown, valid)


@dataclass(frozen=True, kw_only=True)
class Plantnet(Aggregator):
    """Votes weighted by the number of classes that annotators know.

    Parameters
    ----------
    alpha
        Exponent by which experience adds weight.
    beta
        Exponent by which it takes weight away, so that beginners gain little.
    gamma
        The weight of a newcomer.
    theta_conf
        Weight above which an item may be valid.
    theta_acc
        Share of weight above which it may be valid.
    taxa_obs_weight
        What a class counts that an annotator got right on a valid item of their own.
    taxa_votes_weight
        What a further class counts that they got right elsewhere.
    authors
        File that names the author of items: a table with the columns item and author, a JSON
        object, or one annotator on each line.
    ai
        What to do with labels of a machine: `ignored`, an ordinary `worker`, a `fixed` weight,
        `invalidating` (where it disagrees its weight lowers the accuracy, and nothing else) or
        `confident` (a fixed weight where its score is high enough).
    ai_annotator
        The machine's name among the annotators.
    ai_weight
        The machine's weight, where it is fixed.
    scores
        File with the machine's scores: a table with the columns item and score, or a JSON object.
    threshold_scores
        Score that is high enough.
    output_unvalidated
        Whether items that are not valid get a label too.
    max_iter
        Rounds at most, and at least five.
    tol
        Stop when a round changes experience by less than this for each item.

    Examples
    --------
    >>> from dissensus import Annotations
    >>> annotations = Annotations.from_columns("aaabb", "xyzxy", ["oak", "oak", "oak", "elm", "elm"])
    >>> Plantnet().fit(annotations).labels.tolist()
    ['oak', None]
    """

    learns: ClassVar[type] = Experience
    abstains: ClassVar[bool] = True

    alpha: NonNegative = 0.5
    beta: NonNegative = 0.2
    gamma: NonNegative = 0.7419373447293773  # log(2.1)
    theta_conf: NonNegative = 2.0
    theta_acc: Probability = 0.7
    taxa_obs_weight: NonNegative = 1.0
    taxa_votes_weight: NonNegative = 0.1
    authors: str | None = None
    ai: Literal["ignored", "worker", "fixed", "invalidating", "confident"] = "ignored"
    ai_annotator: str = "AI"
    ai_weight: NonNegative = 1.0
    scores: str | None = None
    threshold_scores: Probability = 0.7
    output_unvalidated: bool = False
    max_iter: Count = 100
    tol: NonNegative = 1e-5

    def infer(self, fit: Fit) -> Aggregation:
        ballot = self._ballot(fit)
        experience = np.zeros(fit.annotations.n_annotators)
        author = self._author(fit.annotations)
        n_items = max(int((fit.annotations.labels_per_item > 0).sum()), 1)
        for done in range(1, max(self.max_iter, _LEAST) + 1):
            vote = self._vote(ballot, self.weight(experience))
            now = self._experience(ballot, vote, author)
            change = float(np.abs(now - experience).sum()) / n_items
            experience = now
            if change <= self.tol and done >= _LEAST:
                break
        weight = self.weight(experience)
        vote = self._vote(ballot, weight)
        posterior = ballot.posterior(vote.score)
        record = record_against(fit, posterior)
        accuracy = record.average_others(record.accuracy)
        params = Experience(
            weight, experience, accuracy, vote.confidence, vote.accuracy, vote.valid
        )
        label = self._decide(vote)
        converged = change <= self.tol
        return self.conclude(fit, posterior, label, params=params, converged=converged)

    def judge(self, fit: Fit, params: Experience) -> tuple[Floats, Integers]:
        ballot = self._ballot(fit)
        vote = self._vote(ballot, params.weight)
        return ballot.posterior(vote.score), self._decide(vote)

    def quality(self, params: Experience, agreement: Floats) -> Floats:
        return params.accuracy

    def weight(self, experience: Floats) -> Floats:
        """Return what annotators of some experience weigh."""
        weight = experience**self.alpha - experience**self.beta + self.gamma
        return np.where(experience > 0, np.maximum(weight, 0), self.gamma)

    def _vote(self, ballot: _Ballot, weight: Floats) -> _Vote:
        """Return what the weighted votes say of every item."""
        each = weight[ballot.annotations.annotator]
        if self.ai != "worker":
            each = np.where(ballot.machine, ballot.loud * self.ai_weight, each)
        score = np.bincount(ballot.cell, each, len(ballot.cell_item)).astype(float)
        n_items = ballot.annotations.n_items
        best, total = np.zeros(n_items), np.bincount(ballot.cell_item, score, n_items)
        np.maximum.at(best, ballot.cell_item, score)
        leads = score >= (best - TIE * np.maximum(best, 1))[ballot.cell_item]
        leads &= best[ballot.cell_item] > 0
        first = np.full(n_items, -1)
        led = np.flatnonzero(leads)[::-1]
        first[ballot.cell_item[led]] = ballot.cell_label[led]  # the first one is written last
        if self.ai == "invalidating":
            against = ballot.machine & (ballot.annotations.label != first[ballot.item])
            total = total + self.ai_weight * np.bincount(ballot.item, against, n_items)
        shared = best / np.where(total > 0, total, 1)
        known = ballot.gold >= 0
        valid = (best > self.theta_conf + TIE) & (shared > self.theta_acc + TIE) | known
        alone = np.bincount(ballot.cell_item, leads, n_items) == 1
        label = np.where(known, ballot.gold, np.where(alone, first, -1))
        return _Vote(score, best, shared, valid, first, label)

    def _experience(self, ballot: _Ballot, vote: _Vote, author: Integers) -> Floats:
        """Return how many classes every annotator knows."""
        right = ballot.annotations.label == vote.label[ballot.item]
        own = author[ballot.item] == ballot.annotations.annotator
        seen = ballot.known(right & own & vote.valid[ballot.item])
        voted = ballot.known(right & ~own) & ~seen
        further = np.round(self.taxa_votes_weight * ballot.by_annotator(voted))
        return self.taxa_obs_weight * ballot.by_annotator(seen) + further

    def _decide(self, vote: _Vote) -> Integers:
        return vote.first if self.output_unvalidated else np.where(vote.valid, vote.first, -1)

    def _author(self, annotations: Annotations) -> Integers:
        """Return the annotator whose item it is, -1 where that is not known: (item)."""
        author = np.full(annotations.n_items, -1)
        if self.authors:
            from ..readers.side_tables import read_authors

            named = read_authors(self.authors)
            item = indices_of(as_names(named.keys()), annotations.items)
            author[item[item >= 0]] = indices_of(as_names(named.values()), annotations.annotators)[
                item >= 0
            ]
        return author

    def _ballot(self, fit: Fit) -> _Ballot:
        annotations = fit.annotations
        machine = annotations.annotators[annotations.annotator] == self.ai_annotator
        loud = machine & (self.ai in ("fixed", "confident"))
        if self.ai == "confident":
            loud &= self._sure(annotations)[annotations.item]
        gold = np.full(annotations.n_items, -1) if fit.gold is None else fit.gold
        return _Ballot.of(annotations, gold, machine, loud)

    def _sure(self, annotations: Annotations) -> Truths:
        """Return where the machine's score is high enough: (item)."""
        from ..readers.side_tables import read_scores

        if not self.scores:
            raise MethodError(
                "ai = 'confident' needs scores: write plantnet[ai=confident,scores=…]"
            )
        found = read_scores(self.scores)
        score = np.array([found.get(name, -np.inf) for name in annotations.items.tolist()])
        return score >= self.threshold_scores


_LEAST = 5  # rounds


class _Vote(NamedTuple):
    """What a weighted vote says."""

    score: Floats  # (cell)
    confidence: Floats  # (item)
    accuracy: Floats  # (item)
    valid: Truths  # (item)
    first: Integers  # (item): the first class with most weight, -1 where nothing weighs
    label: Integers  # (item): the class that is right, -1 where several lead


class _Ballot(NamedTuple):
    """The annotations by item and class, cells, and by annotator and class, what they may know."""

    annotations: Annotations
    gold: Integers  # (item)
    machine: Truths  # (annotation): whether a machine said it
    loud: Truths  # (annotation): whether that counts with a fixed weight
    item: Array  # (annotation)
    cell: Integers  # (annotation)
    cell_item: Integers  # (cell)
    cell_label: Integers  # (cell)
    pair: Integers  # (annotation)
    pair_annotator: Integers  # (pair)

    @classmethod
    def of(cls, annotations: Annotations, gold: Integers, machine: Truths, loud: Truths) -> _Ballot:
        """Return the ballot of annotations."""
        item, n_classes = annotations.item, annotations.n_classes
        cells, cell = np.unique(item * np.int64(n_classes) + annotations.label, return_inverse=True)
        pairs, pair = np.unique(
            annotations.annotator * np.int64(n_classes) + annotations.label, return_inverse=True
        )
        return cls(
            annotations,
            gold,
            machine,
            loud,
            item,
            cell,
            *np.divmod(cells, n_classes),
            pair,
            pairs // n_classes,
        )

    def known(self, right: Truths) -> Truths:
        """Return the pairs of annotator and class with a right label: (pair)."""
        return np.bincount(self.pair[right], minlength=len(self.pair_annotator)) > 0

    def by_annotator(self, pairs: Truths) -> Floats:
        """Return how many pairs every annotator has."""
        count = np.bincount(self.pair_annotator[pairs], minlength=self.annotations.n_annotators)
        return count.astype(float)

    def posterior(self, score: Floats) -> Floats:
        """Return shares of the weight that cells have: (item, class)."""
        posterior = np.zeros((self.annotations.n_items, self.annotations.n_classes))
        posterior[self.cell_item, self.cell_label] = score
        return share(posterior)
