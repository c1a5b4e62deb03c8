"""Bayesian classifier combination: Dawid-Skene with posterior uncertainty."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar, NamedTuple

import numpy as np
from annotated_types import Gt, Lt
from scipy.special import betaincinv

from ..base.dirichlet import expected_log, log_beta
from ..base.probability import normalize
from ..base.arrays import Floats, Integers
from ..answers.annotations import Part
from ..params import Positive
from .dawid_skene import ConfusionModel, Counts
from .dawid_skene_map import pseudo_counts

Fraction = Annotated[float, Gt(0), Lt(1)]

_TINY = 1e-300


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
        known = self.cells
        average = known.mean(axis=0, keepdims=True) if len(known) else self.base[None]
        wide = self.log_given.reshape(known.shape)
        safe_log = np.concatenate([wide, np.log(normalize(average, axis=1))])[indices]
        counts = np.concatenate([known, average])[indices]
        flat = (-1, self.base.shape[1])
        level = np.tile(self._level_share, (n_items, 1)) if self.level.size else self.level
        return self._replace(
            log_given=safe_log.reshape(flat), given_true=counts.reshape(flat), level=level
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
        given = counts.given_true.reshape(-1, *base.shape) + base
        log_given = expected_log(given, axis=1).reshape(counts.given_true.shape)
        return DirichletPosterior(
            expected_log(true), log_given, true, given.reshape(log_given.shape), base
        )

    def log_prior(self, params: DirichletPosterior) -> float:
        """Return minus the KL divergence of the parameters from their prior."""
        given = params.cells
        expected = params.log_given.reshape(given.shape)
        flat = np.full_like(params.true, self.prevalence)
        gain = log_beta(params.true) - log_beta(flat)
        gain -= (params.true - flat) @ params.log_prior
        gain += log_beta(given, 1).sum() - len(given) * log_beta(params.base, 0).sum()
        gain -= np.einsum("ags,ags->", given - params.base, expected)
        return float(gain)


def _beta_interval(ones: Floats, others: Floats, confidence: float) -> Floats:
    """Return the equal-tailed interval of every Beta distribution: (…, 2)."""
    tail = (1 - confidence) / 2
    ends = [betaincinv(ones, others, part) for part in (tail, 1 - tail)]
    return np.where((others > 0)[..., None], np.stack(ends, axis=-1), 1.0)
