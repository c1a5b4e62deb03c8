"""Bayesian classifier combination: Dawid-Skene with posterior uncertainty.

Every row of every confusion matrix is a Dirichlet instead of a point, fitted by variational Bayes:
around fixed pseudo-counts, or around those of the community an annotator belongs to.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar, NamedTuple

import numpy as np
from annotated_types import Gt, Lt
from scipy.special import betaincinv, psi, zeta

from ..answers.annotations import Annotations, Part
from ..base.arrays import Floats, Integers
from ..base.probability import (
    expected_log,
    log_beta,
    log_normalize,
    negative_kl,
    normalize,
    safe_log,
)
from ..params import Count, NonNegative, Positive
from .dawid_skene import ConfusionModel, Counts, pseudo_counts
from .dswc import Dswc, pooled

Fraction = Annotated[float, Gt(0), Lt(1)]

_TINY = 1e-300
_NEWTON_STEPS = 50
_TOLERANCE = 1e-9  # relative
_INSIDE = 0.9  # how far a step may go towards zero


class DirichletPosterior(NamedTuple):
    """Dirichlet counts, and the expected logarithms under them.

    A state is a true class; in models with several levels of items, the classes repeat once for
    every level.
    """

    log_prior: Floats  # (state)
    log_given: Floats  # (annotator and given class, state)
    true: Floats  # (state): counts
    given_true: Floats  # (annotator and given class, state): counts
    base: Floats  # (given class, state): the prior pseudo-counts
    level: Floats = np.empty((0, 0))  # (item, state): P(level | class)

    @property
    def prior(self) -> Floats:
        """Posterior mean of the prevalence: (true class)."""
        return self.by_class(normalize(self.true))

    @property
    def confusion(self) -> Floats:
        """Posterior mean of the confusion matrices: (annotator, true class, given class)."""
        return self.by_class(normalize(self.cells, axis=1) * self._level_share).swapaxes(1, 2)

    @property
    def cells(self) -> Floats:
        """The counts of every annotator: (annotator, given class, state)."""
        return self.given_true.reshape(-1, *self.base.shape)

    @property
    def _level_share(self) -> Floats:
        """P(state | its class): (state)."""
        return normalize(self.true.reshape(-1, len(self.base)), axis=0).ravel()

    def by_class(self, values: Floats) -> Floats:
        """Return values of states, added up for their classes: (…, true class)."""
        return values.reshape(*values.shape[:-1], -1, len(self.base)).sum(axis=-2)

    def credible(self, confidence: float = 0.95) -> Floats:
        """Return credible intervals of all entries: (annotator, state, given class, 2).

        The marginals of a Dirichlet are Beta distributions.
        """
        counts = self.cells.swapaxes(1, 2)
        return _beta_interval(counts, counts.sum(axis=2, keepdims=True) - counts, confidence)

    def quality(self) -> tuple[Floats, Floats]:
        """Return mean and variance of every annotator's probability of being right."""
        n_classes, n_states = self.base.shape
        state = np.arange(n_states)
        counts = self.cells
        total = counts.sum(axis=1)
        right = counts[:, state % n_classes, state] / total  # (annotator, state)
        variance = right * (1 - right) / (total + 1)
        weight = normalize(self.true)
        size = self.true.sum()
        mean = right @ weight
        # The prevalence is a Dirichlet: E[wₛwₜ] = (n wₛwₜ + [s=t] wₛ) / (n + 1).
        of_prevalence = (right**2 @ weight - mean**2) / (size + 1)
        of_accuracy = variance @ (weight * (size * weight + 1) / (size + 1))
        return mean, of_prevalence + of_accuracy

    def reindex(self, indices: Integers, n_items: int) -> DirichletPosterior:
        """Return the parameters of other annotators by their indices here; -1 is a new one."""
        cells = self.cells
        average = cells.mean(axis=0, keepdims=True) if len(cells) else self.base[None]
        wide = self.log_given.reshape(cells.shape)
        log_given = np.concatenate([wide, np.log(normalize(average, axis=1))])[indices]
        counts = np.concatenate([cells, average])[indices]
        flat = (-1, self.base.shape[1])
        level = np.tile(self._level_share, (n_items, 1)) if self.level.size else self.level
        return self._replace(
            log_given=log_given.reshape(flat), given_true=counts.reshape(flat), level=level
        )


@dataclass(frozen=True, kw_only=True)
class DirichletModel(ConfusionModel[DirichletPosterior]):
    """One Dirichlet for every row of every confusion matrix, by variational Bayes."""

    params_type: ClassVar[type] = DirichletPosterior
    matrix_copies: ClassVar[int] = 6

    def log_joint(self, part: Part, params: DirichletPosterior) -> Floats:
        joint = super().log_joint(part, params)
        joint[part.blank] = np.log(normalize(params.true))  # items without labels keep the prior
        return joint

    def quality(self, params: DirichletPosterior, agreement: Floats) -> Floats:
        return params.quality()[0]

    def interval(self, params: DirichletPosterior, confidence: float) -> Floats:
        """Return the interval of the Beta that has the mean and variance of the quality."""
        mean, variance = params.quality()
        size = np.maximum(mean * (1 - mean) / np.maximum(variance, _TINY) - 1, _TINY)
        return _beta_interval(mean * size, (1 - mean) * size, confidence)


@dataclass(frozen=True, kw_only=True)
class Bcc(DirichletModel):
    """One confusion matrix per annotator, by variational Bayes.

    Bayesian classifier combination: Dawid-Skene with posterior uncertainty.

    The model is that of `dawid-skene`, with Dirichlet priors on the prevalence of classes and on
    every row of every confusion matrix. Variational Bayes infers a Dirichlet for each of them
    instead of a point; the objective is the evidence lower bound. Credible intervals of matrix
    entries and of annotators' quality follow from it. The mean-field approximation makes them about
    right for good annotators and too narrow for poor ones.

        confusion[a, t, ·] ~ Dirichlet(pseudo-counts[t, ·]),   prior ~ Dirichlet
        log posterior[i, t] = E log prior[t] + Σ_a E log confusion[a, t, label of a on i] + constant

    When it fails: As `dawid-skene` where annotators share errors. Intervals of poor annotators are
    too narrow, since mean field ignores that the truth and the matrices are uncertain together.

        H.-C. Kim, Z. Ghahramani. Bayesian classifier combination. AISTATS, PMLR 22, 2012.
        E. Simpson, S. Roberts, I. Psorakis, A. Smith. Dynamic Bayesian combination of multiple
        imperfect classifiers. arXiv:1206.1831, 2012.

    Parameters
    ----------
    strength
        Pseudo-counts of every annotator for every true class.
    accuracy
        The fraction of them on the right label.
    prevalence
        Pseudo-count of every class.

    Examples
    --------
    >>> from dissensus import Annotations
    >>> annotations = Annotations.from_columns("aaabbb", "xyzxyz", "001110")
    >>> result = Bcc().fit(annotations)
    >>> result.interval.round(2).tolist()
    [[0.43, 0.95], [0.43, 0.95], [0.26, 0.86]]
    """

    strength: Positive = 4.0
    accuracy: Fraction = 0.7
    prevalence: Positive = 1.0

    def base(self, n_states: int) -> Floats:
        """Return the prior pseudo-counts: (given class, state)."""
        return pseudo_counts(self.strength, self.accuracy, n_states)

    def update(self, counts: Counts, last: DirichletPosterior | None) -> DirichletPosterior:
        return self.posterior_params(counts, self.base(len(counts.true)))

    def posterior_params(self, counts: Counts, base: Floats) -> DirichletPosterior:
        """Return the Dirichlets with these counts added to the prior."""
        true = counts.true + self.prevalence
        cells = counts.given_true.reshape(-1, *base.shape) + base
        log_given = expected_log(cells, axis=1).reshape(counts.given_true.shape)
        return DirichletPosterior(
            log_prior=expected_log(true),
            log_given=log_given,
            true=true,
            given_true=cells.reshape(log_given.shape),
            base=base,
        )

    def log_prior(self, params: DirichletPosterior) -> float:
        """Return minus the KL divergence of the parameters from their prior."""
        cells = params.cells
        expected = params.log_given.reshape(cells.shape)
        flat = np.full_like(params.true, self.prevalence)
        gain = log_beta(params.true) - log_beta(flat)
        gain -= (params.true - flat) @ params.log_prior
        gain += log_beta(cells, 1).sum() - len(cells) * log_beta(params.base, 0).sum()
        gain -= np.einsum("ags,ags->", cells - params.base, expected)
        return float(gain)


def _beta_interval(right: Floats, wrong: Floats, confidence: float) -> Floats:
    """Return the equal-tailed interval of every Beta distribution: (…, 2)."""
    tail = (1 - confidence) / 2
    ends = [betaincinv(right, wrong, part) for part in (tail, 1 - tail)]
    return np.where((wrong > 0)[..., None], np.stack(ends, axis=-1), 1.0)


class Communities(NamedTuple):
    """Dirichlet counts, and the expected logarithms under them."""

    true: Floats  # (true class): counts
    size: Floats  # (community): counts
    given_true: Floats  # (annotator, given class, true class): counts
    member: Floats  # (annotator, community): membership probabilities
    base: Floats  # (community, given class, true class): pseudo-counts of its members
    log_given: Floats  # (annotator and given class, true class)

    @property
    def prior(self) -> Floats:
        """Posterior mean of the prevalence: (true class)."""
        return normalize(self.true)

    @property
    def log_prior(self) -> Floats:
        """Expected logarithm of the prevalence: (true class)."""
        return expected_log(self.true)

    @property
    def community_confusion(self) -> Floats:
        """Confusion matrices of the communities: (community, true class, given class)."""
        return normalize(self.base.swapaxes(1, 2))

    @property
    def confusion(self) -> Floats:
        """Posterior mean of the confusion matrices: (annotator, true class, given class)."""
        return normalize(self.given_true.swapaxes(1, 2))

    def reindex(self, indices: Integers, n_items: int) -> Communities:
        """Return the parameters of other annotators by their indices here; -1 is a new one."""
        weight = normalize(self.size)
        member = np.concatenate([self.member, weight[None]])[indices]
        average = np.tensordot(weight, self.base, 1)[None]
        cells = np.concatenate([self.given_true, average])[indices]
        log_given = expected_log(cells, axis=1).reshape(-1, len(self.true))
        return self._replace(given_true=cells, member=member, log_given=log_given)


@dataclass(frozen=True, kw_only=True)
class Cbcc(ConfusionModel[Communities]):
    """Confusion matrices drawn around those of communities, by variational Bayes.

    Community-based BCC (after Venanzi et al. 2014): annotators resemble their community.

    Annotator a belongs to one of `L` communities, and every row of their confusion matrix is drawn
    around that of the community: Dirichlet(strength · matrix[c, t, :]). Annotators with few labels
    borrow from their community. A large strength makes this `dswc-vb`; one community makes it a
    hierarchical `bcc`. The original draws scores from a normal distribution and uses message
    passing; Dirichlets have closed-form updates.

    Mean-field variational Bayes over truth, membership, matrices and shares maximizes the evidence
    lower bound. The matrices of the communities are points; `imagined` annotators of middling
    accuracy keep them away from zero.

        confusion[a, t, ·] ~ Dirichlet(strength · matrix[community of a, t, ·])

    When it fails: With few annotators there is nothing to form communities of, and it takes many
    times as long as `hierarchical`, which is as accurate on public sets.

        M. Venanzi, J. Guiver, G. Kazai, P. Kohli, M. Shokouhi. Community-based Bayesian aggregation
        models for crowdsourcing. WWW 2014. doi:10.1145/2566486.2567989

    Parameters
    ----------
    L
        Number of communities.
    strength
        Pseudo-counts of a community's prior for every true class.
    concentration
        Pseudo-count of every community.
    prevalence
        Pseudo-count of every class.
    imagined
        Number of imagined members of every community, right at least half of the time.

    Examples
    --------
    >>> from dissensus import Annotations
    >>> annotations = Annotations.from_columns("aaabbb", "xyzxyz", "001110")
    >>> Cbcc().fit(annotations).labels.tolist()
    ['0', '1']
    """

    params_type: ClassVar[type] = Communities
    matrix_copies: ClassVar[int] = 6

    max_iter: Count = 1000
    tol: NonNegative = 1e-7
    L: Count = 3
    strength: Positive = 10.0
    concentration: Positive = 1.0
    prevalence: Positive = 1.0
    imagined: Positive = 1.0

    def log_joint(self, part: Part, params: Communities) -> Floats:
        joint = super().log_joint(part, params)
        joint[part.blank] = np.log(params.prior)  # items without labels keep the prior
        return joint

    def update(self, counts: Counts, last: Communities | None) -> Communities:
        n_classes = len(counts.true)
        if last is None:
            member = Dswc(L=self.L).first(counts).member
            start = pooled(counts.given_true, member) + np.exp(_middling(n_classes))
            base = self.strength * normalize(start, axis=1)
        else:
            member, base = last.member, last.base
        cells = counts.given_true.reshape(-1, n_classes, n_classes) + np.tensordot(member, base, 1)
        log_given = expected_log(cells, axis=1)
        if last is not None:
            member = self._membership(log_given, last)
            base = self._community_base(log_given, member, base)
        return Communities(
            true=counts.true + self.prevalence,
            size=member.sum(axis=0) + self.concentration,
            given_true=cells,
            member=member,
            base=base,
            log_given=log_given.reshape(-1, n_classes),
        )

    def log_prior(self, params: Communities) -> float:
        """Return the terms of the bound that do not depend on the labels."""
        n_classes = len(params.true)
        log_given = params.log_given.reshape(-1, n_classes, n_classes)
        log_density = (
            _log_density(log_given, params.base)
            + expected_log(params.size)
            - safe_log(params.member)
        )
        own = np.vdot(params.given_true - 1, log_given) - log_beta(params.given_true, 1).sum()
        imagined = self.imagined * _log_density(_middling(n_classes)[None], params.base).sum()
        return (
            float((params.member * log_density).sum() - own + imagined)
            + negative_kl(params.true, np.array(self.prevalence))
            + negative_kl(params.size, np.array(self.concentration))
        )

    def n_floats(self, annotations: Annotations) -> int:
        return super().n_floats(annotations) + annotations.n_annotators * self.L

    def _membership(self, log_given: Floats, last: Communities) -> Floats:
        joint = _log_density(log_given, last.base) + expected_log(last.size)
        return log_normalize(joint - joint.max(axis=1, keepdims=True))[1]  # densities may be large

    def _community_base(self, log_given: Floats, member: Floats, base: Floats) -> Floats:
        """Return the best pseudo-counts of communities with these members."""
        total = np.tensordot(member.T, log_given, 1) + self.imagined * _middling(len(base[0]))
        mean = total / (member.sum(axis=0) + self.imagined)[:, None, None]
        return _fit_dirichlet(mean, base)


def _middling(n_classes: int) -> Floats:
    """Return the log matrix of an imagined annotator: (given class, true class)."""
    return np.log(normalize(0.5 + np.eye(n_classes), axis=0))


def _log_density(log_given: Floats, base: Floats) -> Floats:
    """Return the log density of matrices under communities: (annotator, community)."""
    n_communities = len(base)
    flat = log_given.reshape(len(log_given), -1)
    log_density = flat @ (base - 1).reshape(n_communities, -1).T
    return log_density - log_beta(base, axis=1).sum(axis=1)


def _fit_dirichlet(mean: Floats, base: Floats) -> Floats:
    """Return the counts of the most probable Dirichlets along axis 1, with the sum of `base`.

    The counts x maximise sum(x * mean - gammaln(x)), which is concave, with their sum fixed.
    Newton's method starts from `base` and stays positive; at the end psi(x) is `mean` minus a shift
    for every sum.
    """
    counts = base
    for _ in range(_NEWTON_STEPS):
        gradient = mean - psi(counts)
        inverse = 1 / zeta(2, counts)  # 1 / psi'(counts)
        shift = (gradient * inverse).sum(axis=1, keepdims=True)
        shift /= inverse.sum(axis=1, keepdims=True)
        step = (gradient - shift) * inverse
        worst = (-step / counts).max(axis=1, keepdims=True)  # from 1 on, a count would vanish
        counts = counts + step / np.maximum(1.0, worst / _INSIDE)
        if (np.abs(step) <= _TOLERANCE * counts).all():
            break
    return counts
