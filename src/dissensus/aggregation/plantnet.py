"""Pl@ntNet's vote (Lefort et al. 2024): votes weighted by the number of known classes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from ..base.probability import TIE, normalize
from ..base.arrays import Array, Floats, Integers
from ..answers.annotations import Annotations
from ..answers.selections import author_codes
from ..errors import MethodError
from ..params import Count, NonNegative, Probability, table_of
from ..method import Aggregator, FitContext, Fitted
from .votes import record_against

Truths = npt.NDArray[np.bool_]


class Experience(NamedTuple):
    """Parameters of Pl@ntNet's vote."""

    weight: Floats  # (annotator)
    experience: Floats  # (annotator): number of known classes
    accuracy: Floats  # (annotator): fraction of labels that are right
    confidence: Floats  # (item): weight of its label; NaN for items that were not in the fit
    share: Floats  # (item): the same as a share of all weight on the item
    valid: Truths  # (item)

    def reindex(self, indices: Integers, n_items: int) -> Experience:
        """Return the parameters of other annotators by their indices here; -1 is a new one."""
        known = (self.weight, self.experience, self.accuracy)
        weight, experience, accuracy = (np.append(value, value.mean())[indices] for value in known)
        unknown = np.full(n_items, np.nan)
        valid = np.zeros(n_items, dtype=bool)
        return Experience(weight, experience, accuracy, unknown, unknown, valid)


@dataclass(frozen=True, kw_only=True)
class Plantnet(Aggregator):
    """Votes weighted by the number of classes that annotators know.

    Pl@ntNet's vote (Lefort et al. 2024): votes weighted by the number of known classes.

    An annotator's experience is the number of different classes they got right: those of their own
    items, where these are valid, and a tenth of further ones, rounded, through votes on any item.
    Their weight is `experience**alpha - experience**beta + gamma`. The label of an item is the
    class with most weight; that weight is its confidence, and its share of all weight on the item
    the accuracy. An item is valid if confidence and accuracy lie above `theta_conf` and
    `theta_acc`. Weights, labels, validity and experience are updated in turns until experience does
    not change. Where classes are tied, no label is right.

    The cost of an iteration grows with the annotations, not with the number of classes.

        weight[a] = experience[a]**alpha - experience[a]**beta + gamma

    When it fails: With few classes: experience counts different classes that were recognized, so
    with two classes hardly anything distinguishes annotators. It was made for thousands of classes.
    Items below the thresholds stay undecided: 44 % on public sets.

        T. Lefort, A. Affouard, B. Charlier, J. Salmon, P. Bonnet, A. Joly. Cooperative learning of
        Pl@ntNet's artificial intelligence algorithm: how does it work and how can we improve it?
        Methods in Ecology and Evolution, 2025. arXiv:2406.03356

    Parameters
    ----------
    alpha
        Exponent by which experience adds weight.
    beta
        Exponent by which it takes weight away, so that the first classes add little.
    gamma
        The weight of a newcomer.
    theta_conf
        Weight above which an item may be valid.
    theta_acc
        Share of weight above which it may be valid.
    taxa_obs_weight
        Experience for a class that an annotator got right on a valid item of their own.
    taxa_votes_weight
        Experience for a further class that they got right elsewhere.
    authors
        The annotator whose item it is, `{item: annotator}`, or a file: a table with the columns
        item and author, a JSON object, or one annotator on each line.
    ai
        The role of a model's labels: `ignored`, an ordinary `worker`, a `fixed` weight,
        `invalidating` (where it disagrees its weight lowers the accuracy, and nothing else) or
        `confident` (a fixed weight where its score is high enough).
    ai_annotator
        The model's name among the annotators.
    ai_weight
        The model's weight, where it is fixed.
    scores
        The model's scores, `{item: score}`, or a file: a table with the columns item and score,
        or a JSON object.
    threshold_scores
        Least score of a confident label.
    output_unvalidated
        Whether items that are not valid get a label too.
    max_iter
        Maximum number of iterations, and at least five.
    tol
        Change of experience per item below which the fit has converged.

    Examples
    --------
    >>> from dissensus import Annotations
    >>> labels = ["oak", "oak", "oak", "elm", "elm"]
    >>> annotations = Annotations.from_columns("aaabb", "xyzxy", labels)
    >>> Plantnet().fit(annotations).labels.tolist()
    ['oak', None]
    """

    params_type: ClassVar[type] = Experience
    abstains: ClassVar[bool] = True
    side_tables: ClassVar[tuple[str, ...]] = ("authors", "scores")

    alpha: NonNegative = 0.5
    beta: NonNegative = 0.2
    gamma: NonNegative = 0.7419373447293773  # log(2.1)
    theta_conf: NonNegative = 2.0
    theta_acc: Probability = 0.7
    taxa_obs_weight: NonNegative = 1.0
    taxa_votes_weight: NonNegative = 0.1
    authors: Mapping[str, str] | str | None = None
    ai: Literal["ignored", "worker", "fixed", "invalidating", "confident"] = "ignored"
    ai_annotator: str = "AI"
    ai_weight: NonNegative = 1.0
    scores: Mapping[str, float] | str | None = None
    threshold_scores: Probability = 0.7
    output_unvalidated: bool = False
    max_iter: Count = 100
    tol: NonNegative = 1e-5

    def estimate_params(self, fit: FitContext) -> Fitted:
        votes = self._votes_of(fit)
        experience = np.zeros(fit.annotations.n_annotators)
        author = author_codes(fit.annotations, table_of("authors", self.authors))
        n_items = max(int((fit.annotations.labels_per_item > 0).sum()), 1)
        for iteration in range(1, max(self.max_iter, _LEAST) + 1):
            now = self._experience(votes, self._vote(votes, self.weight(experience)), author)
            change = float(np.abs(now - experience).sum()) / n_items
            experience = now
            if change <= self.tol and iteration >= _LEAST:
                break
        weight = self.weight(experience)
        vote = self._vote(votes, weight)
        record = record_against(fit, votes.posterior(vote.score))
        accuracy = record.impute(record.accuracy)
        params = Experience(
            weight, experience, accuracy, vote.confidence, vote.accuracy, vote.valid
        )
        return Fitted(params, (), change <= self.tol)

    def posterior(self, fit: FitContext, params: Experience) -> Floats:
        votes = self._votes_of(fit)
        return votes.posterior(self._vote(votes, params.weight).score)

    def decide(self, fit: FitContext, posterior: Floats, params: Experience) -> Integers:
        vote = self._vote(self._votes_of(fit), params.weight)
        return vote.first if self.output_unvalidated else np.where(vote.valid, vote.first, -1)

    def temperature(self, n_labels: Integers) -> Floats | None:
        return None  # the posterior is a share of weights

    def quality(self, params: Experience, agreement: Floats) -> Floats:
        return params.accuracy

    def weight(self, experience: Floats) -> Floats:
        """Return the weights of annotators of this experience."""
        weight = experience**self.alpha - experience**self.beta + self.gamma
        return np.where(experience > 0, np.maximum(weight, 0), self.gamma)

    def _vote(self, votes: _Votes, weight: Floats) -> _Vote:
        """Return the weighted vote on every item."""
        each = weight[votes.annotations.annotator]
        if self.ai != "worker":
            each = np.where(votes.by_model, votes.fixed * self.ai_weight, each)
        score = np.bincount(votes.cell, each, len(votes.cell_item)).astype(float)
        n_items = votes.annotations.n_items
        best, total = np.zeros(n_items), np.bincount(votes.cell_item, score, n_items)
        np.maximum.at(best, votes.cell_item, score)
        leads = score >= (best - TIE * np.maximum(best, 1))[votes.cell_item]
        leads &= best[votes.cell_item] > 0
        first = np.full(n_items, -1)
        led = np.flatnonzero(leads)[::-1]
        first[votes.cell_item[led]] = votes.cell_label[led]  # the first one is written last
        if self.ai == "invalidating":
            against = votes.by_model & (votes.annotations.label != first[votes.item])
            total = total + self.ai_weight * np.bincount(votes.item, against, n_items)
        shared = best / np.where(total > 0, total, 1)
        known = votes.gold >= 0
        valid = (best > self.theta_conf + TIE) & (shared > self.theta_acc + TIE) | known
        alone = np.bincount(votes.cell_item, leads, n_items) == 1
        label = np.where(known, votes.gold, np.where(alone, first, -1))
        return _Vote(score, best, shared, valid, first, label)

    def _experience(self, votes: _Votes, vote: _Vote, author: Integers) -> Floats:
        """Return the number of classes that every annotator knows."""
        right = votes.annotations.label == vote.label[votes.item]
        own = author[votes.item] == votes.annotations.annotator
        seen = votes.known(right & own & vote.valid[votes.item])
        voted = votes.known(right & ~own) & ~seen
        further = np.round(self.taxa_votes_weight * votes.by_annotator(voted))
        return self.taxa_obs_weight * votes.by_annotator(seen) + further

    def _votes_of(self, fit: FitContext) -> _Votes:
        annotations = fit.annotations
        by_model = annotations.annotators[annotations.annotator] == self.ai_annotator
        fixed = by_model & (self.ai in ("fixed", "confident"))
        if self.ai == "confident":
            fixed &= self._confident(annotations)[annotations.item]
        gold = np.full(annotations.n_items, -1) if fit.gold is None else fit.gold
        return _Votes.of(annotations, gold, by_model, fixed)

    def _confident(self, annotations: Annotations) -> Truths:
        """Return where the model's score is high enough: (item)."""
        if self.scores is None:
            raise MethodError(
                "ai = 'confident' needs scores: write plantnet[ai=confident,scores=…]"
            )
        scores = table_of("scores", self.scores)
        score = np.array([scores.get(name, -np.inf) for name in annotations.items.tolist()])
        return score >= self.threshold_scores


_LEAST = 5  # iterations


class _Vote(NamedTuple):
    """A weighted vote."""

    score: Floats  # (cell)
    confidence: Floats  # (item)
    accuracy: Floats  # (item)
    valid: Truths  # (item)
    first: Integers  # (item): the first class with most weight, -1 without weight
    label: Integers  # (item): the class that counts as right, -1 if tied


class _Votes(NamedTuple):
    """The annotations by item and class (cells), and by annotator and class (pairs)."""

    annotations: Annotations
    gold: Integers  # (item)
    by_model: Truths  # (annotation): whether it is a label of the model
    fixed: Truths  # (annotation): whether it has the fixed weight
    item: Array  # (annotation)
    cell: Integers  # (annotation)
    cell_item: Integers  # (cell)
    cell_label: Integers  # (cell)
    pair: Integers  # (annotation)
    pair_annotator: Integers  # (pair)

    @classmethod
    def of(
        cls, annotations: Annotations, gold: Integers, by_model: Truths, fixed: Truths
    ) -> _Votes:
        """Return the votes of annotations."""
        item, n_classes = annotations.item, annotations.n_classes
        cells, cell = np.unique(item * np.int64(n_classes) + annotations.label, return_inverse=True)
        pairs, pair = np.unique(
            annotations.annotator * np.int64(n_classes) + annotations.label, return_inverse=True
        )
        return cls(
            annotations,
            gold,
            by_model,
            fixed,
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
        """Return the number of pairs of every annotator."""
        count = np.bincount(self.pair_annotator[pairs], minlength=self.annotations.n_annotators)
        return count.astype(float)

    def posterior(self, score: Floats) -> Floats:
        """Return the share of every class in the weight of an item: (item, class)."""
        posterior = np.zeros((self.annotations.n_items, self.annotations.n_classes))
        posterior[self.cell_item, self.cell_label] = score
        return normalize(posterior)
