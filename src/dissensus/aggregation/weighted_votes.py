"""Votes whose weights are learned from agreement with the vote itself.

An annotator who agrees more often with the consensus, or has recognized more classes, weighs more
in the next one; the methods differ in how agreement becomes weight, and in how often they repeat.
All of them take a bias that most annotators share for quality.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Literal, NamedTuple, Self

import numpy as np
import numpy.typing as npt
from scipy.special import xlogy

from ..answers.annotations import Annotations
from ..answers.selections import author_codes
from ..base.arrays import Array, Floats, Integers
from ..base.probability import TIE, normalize
from ..errors import MethodError, OptionError
from ..method import Fitted
from ..params import Count, NonNegative, Positive, Probability, table_of
from .classes import ClassContext, ClassMethod
from .votes import IteratedVote, Record, WeightedVote, Weights, record_against

Truths = npt.NDArray[np.bool_]
_LEAST = 5  # iterations of Plantnet
_TOLERANCE = 1e-12  # gaps between skills and agreement below this are none


@dataclass(frozen=True, kw_only=True)
class Wawa(WeightedVote):
    """Votes weighted by agreement with the majority.

    Wawa, worker agreement with aggregate: votes weighted by agreement with the majority.

    The weight of an annotator is the fraction of their labels that equal the majority vote, and the
    label is the class with most weight. Where the majority is tied, agreement counts as a fraction.

        weight[a] = share of a's labels that equal the majority vote
        label[i] = argmax_t Σ_a weight[a] · 1(annotator a labels item i as t)

    When it fails: Where the majority is wrong, it rewards those who are wrong with it. Weights of
    annotators who guess are still 1 / n_classes or more, so spammers are dampened, not removed.

        Appen. Calculating worker agreement with aggregate (Wawa), 2021.
        https://success.appen.com/hc/en-us/articles/202703205

    Examples
    --------
    >>> from dissensus import Annotations
    >>> annotations = Annotations.from_columns("aaabbb", "xyzxyz", "001110")
    >>> Wawa().fit(annotations).quality.round(2).tolist()
    [1.0, 1.0, 0.0]
    """

    def estimate_params(self, fit: ClassContext) -> Fitted:
        return Fitted(self.record(fit).weights())


@dataclass(frozen=True, kw_only=True)
class Iwmv(IteratedVote):
    """Votes weighted by agreement with the weighted vote, iterated.

    Iterative weighted majority vote (Li & Yu 2014): votes and weights in turns.

    Every annotator's accuracy is measured against the present vote; their weight is `n_classes *
    accuracy - 1`, zero at chance level and negative below it, a linear approximation of the optimal
    log-odds. A vote of negative weight counts for all other classes. It iterates until the vote
    does not change. With weights of plain accuracy, one iteration is Wawa.

        accuracy[a] = share of a's labels that equal the present vote
        weight[a] = n_classes · accuracy[a] - 1

    When it fails: It confirms its own vote: where most annotators share a bias, iterating drives
    the weights of the others to zero or below. On bluebirds it is right in 72 %, plain votes in 76
    %, Dawid-Skene in 90 %.

        H. Li, B. Yu. Error rate bounds and iterative weighted majority voting for crowdsourcing.
        arXiv:1411.4086, 2014

    Parameters
    ----------
    weights
        From accuracy to weight: `li-yu`, zero at chance level and negative below it, or
        `accuracy` itself.

    Examples
    --------
    >>> from dissensus import Annotations
    >>> annotations = Annotations.from_columns("aaabbb", "xyzxyz", "001110")
    >>> Iwmv().fit(annotations).params.weight.tolist()
    [1.0, 1.0, -1.0]
    """

    weights: Literal["li-yu", "accuracy"] = "li-yu"

    def weight(self, record: Record) -> Floats:
        if self.weights == "accuracy":
            return record.accuracy
        return record.n_classes * record.accuracy - 1

    def objective(self, record: Record) -> Floats:
        half = record.right * record.accuracy / 2
        return half if self.weights == "accuracy" else record.n_classes * half - record.right


@dataclass(frozen=True, kw_only=True)
class LogOdds(IteratedVote):
    """Votes weighted by the log-odds of being right.

    Log-odds vote: the optimal weights for annotators of known accuracy.

    If annotator a is right with probability p and otherwise names any other class with equal
    probability, the optimal vote gives them the weight log(p (n_classes - 1) / (1 - p)) (Nitzan &
    Paroush 1982), and its scores are log posteriors. Here p is measured against the present vote,
    (right + smoothing) / (labels + n_classes * smoothing), and iterated until the vote does not
    change: the one-coin model fitted with hard labels.

        p[a] = (right[a] + smoothing) / (labels[a] + n_classes · smoothing)
        weight[a] = log(p[a] (n_classes - 1) / (1 - p[a]))

    When it fails: As `iwmv`, and more strongly: one annotator who seems perfect outweighs many
    others. It cannot express that a class is often missed, so rare classes suffer.

        S. Nitzan, J. Paroush. Optimal decision rules in uncertain dichotomous choice situations.
        International Economic Review 23(2), 1982. doi:10.2307/2526438

    Parameters
    ----------
    smoothing
        Pseudo-count of right labels, and of labels for each wrong class.

    Examples
    --------
    >>> from dissensus import Annotations
    >>> annotations = Annotations.from_columns("aaabbb", "xyzxyz", "001110")
    >>> LogOdds().fit(annotations).params.weight.round(2).tolist()
    [1.1, 1.1, -1.1]
    """

    log_odds: ClassVar[bool] = True

    smoothing: Positive = 1.0

    def weight(self, record: Record) -> Floats:
        right, wrong, n_wrong = self._counts(record)
        return np.log(right * n_wrong / wrong)

    def objective(self, record: Record) -> Floats:
        right, wrong, n_wrong = self._counts(record)
        return xlogy(right, right) + xlogy(wrong, wrong) + record.right * np.log(n_wrong)

    def _counts(self, record: Record) -> tuple[Floats, Floats, int]:
        """Return smoothed counts of right and wrong labels, and the number of wrong classes."""
        n_wrong = max(record.n_classes - 1, 1)
        wrong = record.labels - record.right
        return record.right + self.smoothing, wrong + n_wrong * self.smoothing, n_wrong


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
        values = (self.weight, self.experience, self.accuracy)
        weight, experience, accuracy = (np.append(value, value.mean())[indices] for value in values)
        unknown = np.full(n_items, np.nan)
        valid = np.zeros(n_items, dtype=bool)
        return Experience(
            weight=weight,
            experience=experience,
            accuracy=accuracy,
            confidence=unknown,
            share=unknown,
            valid=valid,
        )


@dataclass(frozen=True, kw_only=True)
class Plantnet(ClassMethod):
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

    def with_authors(self, author_of: Mapping[str, str]) -> Self:
        raise OptionError("plantnet counts authors' own labels: write plantnet[authors=FILE]")

    def estimate_params(self, fit: ClassContext) -> Fitted:
        votes = self._votes_of(fit)
        experience = np.zeros(fit.answers.n_annotators)
        author = author_codes(fit.answers, table_of("authors", self.authors))
        n_items = max(int((fit.answers.labels_per_item > 0).sum()), 1)
        for iteration in range(1, max(self.max_iter, _LEAST) + 1):
            updated = self._experience(votes, self._vote(votes, self.weight(experience)), author)
            change = float(np.abs(updated - experience).sum()) / n_items
            experience = updated
            if change <= self.tol and iteration >= _LEAST:
                break
        weight = self.weight(experience)
        vote = self._vote(votes, weight)
        record = record_against(fit, votes.posterior(vote.score))
        accuracy = record.impute(record.accuracy)
        params = Experience(
            weight=weight,
            experience=experience,
            accuracy=accuracy,
            confidence=vote.confidence,
            share=vote.accuracy,
            valid=vote.valid,
        )
        return Fitted(params, (), change <= self.tol)

    def posterior(self, fit: ClassContext, params: Experience) -> Floats:
        votes = self._votes_of(fit)
        return votes.posterior(self._vote(votes, params.weight).score)

    def decide(self, fit: ClassContext, posterior: Floats, params: Experience) -> Integers:
        vote = self._vote(self._votes_of(fit), params.weight)
        return vote.leader if self.output_unvalidated else np.where(vote.valid, vote.leader, -1)

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
        label_weight = weight[votes.annotations.annotator]
        if self.ai != "worker":
            label_weight = np.where(votes.by_model, votes.fixed * self.ai_weight, label_weight)
        score = np.bincount(votes.cell, label_weight, len(votes.cell_item)).astype(float)
        n_items = votes.annotations.n_items
        best, total = np.zeros(n_items), np.bincount(votes.cell_item, score, n_items)
        np.maximum.at(best, votes.cell_item, score)
        leads = score >= (best - TIE * np.maximum(best, 1))[votes.cell_item]
        leads &= best[votes.cell_item] > 0
        leader = np.full(n_items, -1)
        led = np.flatnonzero(leads)[::-1]
        leader[votes.cell_item[led]] = votes.cell_label[led]  # the first one is written last
        if self.ai == "invalidating":
            against = votes.by_model & (votes.annotations.label != leader[votes.item])
            total = total + self.ai_weight * np.bincount(votes.item, against, n_items)
        shared = best / np.where(total > 0, total, 1)
        has_gold = votes.gold >= 0
        valid = (best > self.theta_conf + TIE) & (shared > self.theta_acc + TIE) | has_gold
        untied = np.bincount(votes.cell_item, leads, n_items) == 1
        label = np.where(has_gold, votes.gold, np.where(untied, leader, -1))
        return _Vote(
            score=score, confidence=best, accuracy=shared, valid=valid, leader=leader, label=label
        )

    def _experience(self, votes: _Votes, vote: _Vote, author: Integers) -> Floats:
        """Return the number of classes that every annotator knows."""
        right = votes.annotations.label == vote.label[votes.item]
        own = author[votes.item] == votes.annotations.annotator
        observed = votes.right_pairs(right & own & vote.valid[votes.item])
        voted = votes.right_pairs(right & ~own) & ~observed
        further = np.round(self.taxa_votes_weight * votes.by_annotator(voted))
        return self.taxa_obs_weight * votes.by_annotator(observed) + further

    def _votes_of(self, fit: ClassContext) -> _Votes:
        annotations = fit.answers
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


class _Vote(NamedTuple):
    """A weighted vote."""

    score: Floats  # (cell)
    confidence: Floats  # (item)
    accuracy: Floats  # (item)
    valid: Truths  # (item)
    leader: Integers  # (item): the first class with most weight, -1 without weight
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
        cell_item, cell_label = np.divmod(cells, n_classes)
        return cls(
            annotations=annotations,
            gold=gold,
            by_model=by_model,
            fixed=fixed,
            item=item,
            cell=cell,
            cell_item=cell_item,
            cell_label=cell_label,
            pair=pair,
            pair_annotator=pairs // n_classes,
        )

    def right_pairs(self, right: Truths) -> Truths:
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


@dataclass(frozen=True, kw_only=True)
class Zbs(WeightedVote):
    """Votes weighted by skills that move towards agreement with the vote.

    Zero-based skill: skills move towards the agreement with the vote that they weight.

    All skills start equal, a little above chance level. In every iteration each skill moves towards
    its annotator's agreement with the weighted vote. The step size starts at `step` and is
    multiplied by `shrink` every `every` iterations. The fit stops early once all skills equal the
    agreement.

        skill[a] ← skill[a] + step · (agreement[a] - skill[a])

    When it fails: As `wawa`, to which it is close: the vote judges the annotators. The result
    depends on the schedule of step sizes where the agreement keeps changing.

        D. Ustalov, N. Pavlichenko, B. Tseitlin. Learning from crowds with Crowd-Kit. Journal of
        Open Source Software 9(96), 2024. doi:10.21105/joss.06227

    Parameters
    ----------
    max_iter
        Maximum number of iterations.
    step
        The first step, as a fraction of the distance to the agreement.
    every
        Number of iterations after which steps shrink.
    shrink
        Factor by which steps shrink.
    above
        How far above chance level skills start.

    Examples
    --------
    >>> from dissensus import Annotations
    >>> annotations = Annotations.from_columns("aaabbb", "xyzxyz", "001110")
    >>> Zbs().fit(annotations).params.weight.tolist()
    [1.0, 1.0, 0.0]
    """

    max_iter: Count = 100
    step: Probability = 1.0
    every: Count = 20
    shrink: Probability = 0.5
    above: Positive = 1e-5

    def estimate_params(self, fit: ClassContext) -> Fitted:
        skill = np.full(fit.answers.n_annotators, 1 / fit.answers.n_classes + self.above)
        step = self.step
        for iteration in range(1, self.max_iter + 1):
            if iteration % self.every == 0:
                step *= self.shrink
            record = self.record(fit, skill)
            gap = record.impute(record.accuracy) - skill
            if np.all(np.abs(gap) <= _TOLERANCE):
                break
            skill = skill + step * gap
        skill = np.clip(skill, 0, 1)
        return Fitted(Weights(skill, skill))
