"""Between one coin and one confusion matrix per annotator: fewer parameters, or shared ones.

With few labels per annotator a full matrix is mostly noise. An annotator may have one accuracy, or
one for every true class; their matrix may be drawn towards that of the crowd; or, where labels
abound, they may have two matrices, for easy and for hard items.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import ClassVar, Literal, NamedTuple

import numpy as np
from scipy.special import psi, softmax

from ..answers.annotations import Annotations, Part
from ..base.arrays import Array, Floats, Integers
from ..base.probability import log_normalize, normalize, safe_log
from ..params import NonNegative, Probability
from .aggregation import ClassAggregation
from .bcc import Bcc, DirichletPosterior, Fraction
from .classes import ClassContext
from .dawid_skene import Confusion, ConfusionAggregator, Counts, pseudo_counts
from .em import EM

_EDGE = 1e-10  # no accuracy is exactly 0 or 1
_LIMITS = (0.01, 2000.0)  # of a strength that is estimated


class Coins(NamedTuple):
    """Parameters of the one-coin model."""

    prior: Floats  # (true class)
    right: Floats  # (annotator): the probability of being right

    def reindex(self, indices: Integers, n_items: int) -> Coins:
        """Return the parameters of other annotators by their indices here; -1 is a new one."""
        average = self.right.mean(keepdims=True) if len(self.right) else np.array([0.5])
        return Coins(self.prior, np.concatenate([self.right, average])[indices])


class CoinCounts(NamedTuple):
    """Expected sufficient statistics; they add up over parts of the items."""

    true: Floats  # (true class)
    right: Floats  # (annotator)
    labels: Floats  # (annotator)


@dataclass(frozen=True, kw_only=True)
class OneCoin(EM[Coins, CoinCounts]):
    """One probability of being right per annotator, fitted with EM.

    One coin per annotator: one accuracy, whatever the true class.

    The truth of an item is drawn from `prior`. Annotator a is right with probability `right[a]`,
    whatever the truth; errors are spread evenly over the other classes. With one parameter per
    annotator, the cost of an iteration does not depend on the number of classes. The model cannot
    express that a class is often missed: on imbalanced classes it may collapse to the most common
    one, and a `uniform` prevalence is then safer.

        P(labels of i, t) = prior[t] · Π_a (right[a] if a's label is t else wrong[a])
        wrong[a] = (1 - right[a]) / (n_classes - 1)

    When it fails: Where classes are confused asymmetrically: on bluebirds, where a bird is often
    missed but seldom seen in error, it is right in 58 % and plain votes in 76 %.

        Y. Zhang, X. Chen, D. Zhou, M. I. Jordan. Spectral methods meet EM: a provably optimal
        algorithm for crowdsourcing. JMLR 17(102), 2016.
        G. Demartini, D. E. Difallah, P. Cudré-Mauroux. ZenCrowd: leveraging probabilistic reasoning
        and crowdsourcing techniques for large-scale entity linking. WWW 2012.
        doi:10.1145/2187836.2187900

    Parameters
    ----------
    prevalence
        Whether the prevalence of classes is `estimated` or `uniform`.
    strength
        Pseudo-counts of every annotator: the strength of a Beta prior.
    accuracy
        The fraction of them that is right.

    Examples
    --------
    >>> from dissensus import Annotations
    >>> annotations = Annotations.from_columns("aaabbb", "xyzxyz", "001110")
    >>> OneCoin().fit(annotations).quality.round(2).tolist()
    [1.0, 1.0, 0.0]
    """

    params_type: ClassVar[type] = Coins

    prevalence: Literal["estimated", "uniform"] = "estimated"
    strength: NonNegative = 0.01
    accuracy: Probability = 0.7

    def log_joint(self, part: Part, params: Coins) -> Floats:
        n_wrong = max(part.n_classes - 1, 1)
        right, wrong = np.log(params.right), np.log((1 - params.right) / n_wrong)
        joint = part.votes((right - wrong)[part.annotator])
        joint += part.by_item(wrong[part.annotator])[:, None]
        joint += safe_log(params.prior)
        return joint

    def counts(self, part: Part, posterior: Floats) -> CoinCounts:
        right = part.by_annotator(part.given_posterior(posterior))
        return CoinCounts(np.einsum("it->t", posterior), right, part.by_annotator(part.ones))

    def update(self, counts: CoinCounts, last: Coins | None) -> Coins:
        right = counts.right + self.strength * self.accuracy
        wrong = counts.labels - counts.right + self.strength * (1 - self.accuracy)
        right = normalize(np.stack([right, np.maximum(wrong, 0.0)]), axis=0)[0]
        flat = self.prevalence == "uniform"
        prior = normalize(np.ones_like(counts.true) if flat else counts.true)
        return Coins(prior, np.clip(right, _EDGE, 1 - _EDGE))

    def log_prior(self, params: Coins) -> float:
        right, wrong = np.log(params.right).sum(), np.log1p(-params.right).sum()
        return float(self.strength * (self.accuracy * right + (1 - self.accuracy) * wrong))

    def confusion(self, params: Coins) -> Floats:
        n_classes = len(params.prior)
        n_wrong = max(n_classes - 1, 1)
        wrong = ((1 - params.right) / n_wrong)[:, None, None]
        eye = np.eye(n_classes)
        return np.where(eye, params.right[:, None, None] if n_classes > 1 else 1.0, wrong)

    def label_probabilities(self, params: Coins, item: Array, annotator: Array) -> Floats:
        return self.confusion(Coins(params.prior, params.right[annotator]))

    def quality(self, params: Coins, agreement: Floats) -> Floats:
        return params.right

    def n_floats(self, annotations: Annotations) -> int:
        return 2 * super().n_floats(annotations)


@dataclass(frozen=True, kw_only=True)
class Diagonal(ConfusionAggregator):
    """One probability of being right per annotator and true class, fitted with EM.

    One accuracy per annotator and true class.

    Between `one-coin` and `dawid-skene`: annotator a labels an item of class t correctly with
    probability `confusion[a, t, t]`, and errors are spread evenly over the other classes. K
    parameters per annotator instead of K², and with two classes the same as Dawid-Skene. They have
    a Beta prior for every true class, as in `dawid-skene-map`.

        confusion[a, t, g] = right[a, t] if g = t else (1 - right[a, t]) / (n_classes - 1)

    When it fails: With more than two classes it cannot express that two classes are mistaken for
    each other, so it trusts a common confusion as if it were rare. Shared errors make it too sure.

        V. C. Raykar and others. Learning from crowds. JMLR 11, 2010 (two classes: sensitivity and
        specificity).

    Parameters
    ----------
    strength
        Pseudo-counts of every annotator for every true class.
    accuracy
        The fraction of them that is right.

    Examples
    --------
    >>> from dissensus import Annotations
    >>> annotations = Annotations.from_columns("aaabbb", "xyzxyz", "001110")
    >>> Diagonal().fit(annotations).labels.tolist()
    ['0', '1']
    """

    strength: NonNegative = 0.01
    accuracy: Probability = 0.7

    def update(self, counts: Counts, last: Confusion | None) -> Confusion:
        n_classes = len(counts.true)
        cells = counts.given_true.reshape(-1, n_classes, n_classes)
        right = np.einsum("att->at", cells)
        wrong = cells.sum(axis=1) - right + self.strength * (1 - self.accuracy)
        rates = normalize(np.stack([right + self.strength * self.accuracy, wrong]), axis=0)
        eye = np.eye(n_classes, dtype=bool)
        n_wrong = max(n_classes - 1, 1)
        spread = np.where(eye, rates[0][:, None, :], rates[1][:, None, :] / n_wrong)
        return Confusion(safe_log(normalize(counts.true)), safe_log(spread).reshape(-1, n_classes))

    def log_prior(self, params: Confusion) -> float:
        n_classes = len(params.log_prior)
        log_cells = params.log_given.reshape(-1, n_classes, n_classes).sum(axis=0)
        right = np.trace(log_cells)
        wrong = (log_cells.sum() - right) / max(n_classes - 1, 1)
        return float(self.strength * (self.accuracy * right + (1 - self.accuracy) * wrong))


@dataclass(frozen=True, kw_only=True)
class Hierarchical(Bcc):
    """One confusion matrix per annotator, shrunk towards that of the crowd, by variational Bayes.

    Hierarchical: annotators with few labels are shrunk towards the crowd.

    The model is that of `bcc` with a learned prior. A priori an annotator has `strength`
    pseudo-counts for every true class. A fraction `pooled` of them follows the confusion matrix of
    the whole crowd, the rest is that of `bcc`, an annotator of the given `accuracy`:

        base[g, t] = strength * ((1 - pooled) * fixed[g, t] + pooled * crowd[g, t])

    The fixed part is an anchor: a free crowd matrix lets classes drift and merge, most of all where
    labels are few. The crowd's matrix, and with `estimate` the strength and the accuracy, maximize
    the evidence lower bound by Minka's fixed-point steps, which never lower it.

    When it fails: Where the crowd is not one crowd: annotators with few labels are taken for the
    average one, so a small group of experts among novices is underrated (`cbcc`). Shared errors
    make it too sure. With two annotators it falls behind a vote.

        T. P. Minka. Estimating a Dirichlet distribution. Technical report, 2000.
        R. J. Passonneau, B. Carpenter. The benefits of a model of annotation. TACL 2, 2014.
        doi:10.1162/tacl_a_00185

    Parameters
    ----------
    pooled
        The fraction of the pseudo-counts that follows the crowd.
    estimate
        Whether the strength, and without pooling the accuracy, are estimated as well. On small
        data the strength may reach its limit: all annotators are then alike.

    Examples
    --------
    >>> from dissensus import Annotations
    >>> annotations = Annotations.from_columns("aaabbb", "xyzxyz", "001110")
    >>> Hierarchical().fit(annotations).labels.tolist()
    ['0', '1']
    """

    tol: NonNegative = 1e-7  # the crowd's matrix converges slowly
    pooled: Probability = 0.5
    estimate: bool = False

    def update(self, counts: Counts, last: DirichletPosterior | None) -> DirichletPosterior:
        n_classes = len(counts.true)
        cells = counts.given_true.reshape(-1, n_classes, n_classes)
        if last is None:
            strength = np.clip(self.strength, *_LIMITS) if self.estimate else self.strength
            base = self.blend(float(strength), cells.sum(axis=0))
        else:
            base = self.update_base(cells, last.base)
        return self.posterior_params(counts, base)

    def update_base(self, cells: Floats, base: Floats) -> Floats:
        """Return pseudo-counts under which the counts are at least as probable.

        In the Pólya urn, `draws` is the expected number of labels drawn from the base rather than
        from earlier labels of the annotator.
        """
        draws = base * (psi(base + cells) - psi(base)).sum(axis=0)  # (given class, true class)
        strength = base[:, 0].sum()
        fixed = (1 - self.pooled) * pseudo_counts(strength, self.accuracy, len(base))
        if self.estimate:
            rate = (psi(strength + cells.sum(axis=1)) - psi(strength)).sum()
            strength = np.clip(draws.sum() / rate, *_LIMITS) if rate > 0 else strength
        if self.pooled:
            return self.blend(strength, draws * (1 - fixed / base))
        right = (np.trace(draws) + self.accuracy) / (draws.sum() + 1)
        return pseudo_counts(strength, right if self.estimate else self.accuracy, len(base))

    def blend(self, strength: float, draws: Floats) -> Floats:
        """Return the pseudo-counts, with the crowd's matrix from these draws and one more."""
        crowd = normalize(draws + pseudo_counts(1, self.accuracy, len(draws)), axis=0)
        fixed = pseudo_counts(strength, self.accuracy, len(draws))
        return (1 - self.pooled) * fixed + self.pooled * strength * crowd

    def log_prior(self, params: DirichletPosterior) -> float:
        """Return minus the KL divergence, plus the log prior of the crowd's matrix."""
        base = params.base / params.base.sum(axis=0)
        fixed = pseudo_counts(1, self.accuracy, len(base))
        if self.pooled:
            crowd = (base - (1 - self.pooled) * fixed) / self.pooled
            return super().log_prior(params) + float((fixed * safe_log(crowd)).sum())
        right = base[0, 0]
        anchor = self.accuracy * safe_log(right) + (1 - self.accuracy) * safe_log(1 - right)
        return super().log_prior(params) + float(anchor)


@dataclass(frozen=True, kw_only=True)
class TwoLevel(Bcc):
    """Two confusion matrices per annotator, for easy and for hard items, by variational Bayes.

    Two levels: every class has easy and hard items, with confusion matrices of their own.

    The model is that of `bcc` with two states for every class. A priori annotators are right nine
    times out of ten on easy items and seven times on hard ones; their confusion matrices are
    learned. So on hard items a few annotators may be right against the majority. It always starts
    from the votes, because the start decides which items become hard: the more an item's annotators
    agree, the easier it counts. The posterior of a class is the sum over its easy and hard state.

    Over 23 public data sets it was as good as `bcc` on average, far better on some and worse on
    others: a member of an ensemble rather than a method to use alone.

        P(labels of i, t, level) = prior[t, level] · Π_a confusion[a, t, level, label of a on i]

    When it fails: With fewer than about four labels per item nothing shows which items are hard,
    and it has twice the parameters: on sets with few labels per annotator it loses to `bcc`.

    Parameters
    ----------
    accuracy
        The fraction of pseudo-counts on the right label of easy items.
    hard
        The same for hard items.

    Examples
    --------
    >>> from dissensus import Annotations
    >>> annotations = Annotations.from_columns("aaabbb", "xyzxyz", "001110")
    >>> TwoLevel().fit(annotations).labels.tolist()
    ['0', '1']
    """

    own_start: ClassVar[bool] = True

    accuracy: Fraction = 0.9
    hard: Fraction = 0.7

    def base(self, n_states: int) -> Floats:
        easy = pseudo_counts(self.strength, self.accuracy, n_states // 2)
        return np.hstack([easy, pseudo_counts(self.strength, self.hard, n_states // 2)])

    def normalize_joint(self, joint: Floats, allowed: Floats | float) -> tuple[float, Floats]:
        return log_normalize(
            joint, np.tile(allowed, 2) if isinstance(allowed, np.ndarray) else allowed
        )

    def part_posterior(self, part: Part, params: DirichletPosterior) -> Floats:
        _, posterior = self.normalize_joint(self.log_joint(part, params), part.allowed)
        return params.by_class(posterior)

    def level_posterior(self, part: Part, params: DirichletPosterior) -> Floats:
        """Return P(level | class): (item, state)."""
        joint = self.log_joint(part, params).reshape(-1, 2, part.n_classes)
        return softmax(joint, axis=1).reshape(len(joint), -1)

    def infer(self, fit: ClassContext) -> ClassAggregation:
        result = super().infer(fit)
        parts = fit.engine.each(partial(self.level_posterior, params=result.params), fit.parts)
        level = np.concatenate([np.empty((0, 2 * fit.answers.n_classes)), *parts])
        return replace(result, params=result.params._replace(level=level))

    def label_probabilities(
        self, params: DirichletPosterior, item: Array, annotator: Array
    ) -> Floats:
        confusion = normalize(params.cells[annotator], axis=1)  # (answer, given class, state)
        return params.by_class(confusion * params.level[item][:, None]).swapaxes(1, 2)

    def initial_counts(self, part: Part, posterior: Floats) -> Counts:
        best = normalize(part.votes()).max(axis=1, keepdims=True)
        agreement = (part.n_classes * best - 1) / max(part.n_classes - 1, 1)  # 0 at chance level
        easy = posterior * agreement
        return super().initial_counts(part, np.hstack([easy, posterior - easy]))

    def n_floats(self, annotations: Annotations) -> int:
        return 2 * super().n_floats(annotations)
