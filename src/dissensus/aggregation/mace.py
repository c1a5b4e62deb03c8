"""MACE (Hovy et al. 2013): annotators know the truth or spam.

Annotator a knows the truth of an item with probability `competence[a]` and gives it as the label;
otherwise the label is drawn from a spamming strategy `strategy[a]`, independently of the item. The
cost of an iteration does not depend on the number of classes. Variational Bayes infers a Beta and
a Dirichlet for every annotator and maximizes the evidence lower bound; EM maximizes the smoothed
likelihood.

    P(label g of a on i | t) = competence[a] · 1(g = t) + (1 - competence[a]) · strategy[a, g]

When it fails: Errors do not depend on the true class, so systematic confusion of two classes is
taken for spam. On very unequal classes a strategy of answering the common class looks like
competence: 84 % on d_product, where votes have 90 %.

    D. Hovy, T. Berg-Kirkpatrick, A. Vaswani, E. Hovy. Learning whom to trust with MACE.
    NAACL-HLT, 2013.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal, NamedTuple

import numpy as np
from scipy.special import betaincinv

from ..answers.annotations import Annotations, Part
from ..base.arrays import Floats, Integers
from ..base.probability import expected_log, negative_kl, normalize, safe_log
from ..params import NonNegative, Positive
from .em import EM, Expected

_LEAST = -690.0  # no label is less probable than this, in logarithms


class Competence(NamedTuple):
    """Parameters of MACE: counts including those of the prior, and the prevalence."""

    known: Floats  # (annotator, 2): labels that were known, labels that were spammed
    spammed: Floats  # (annotator, given class)
    prior: Floats  # (true class)

    @property
    def competence(self) -> Floats:
        """The probability that an annotator knows the truth: (annotator)."""
        return normalize(self.known)[:, 0]

    @property
    def strategy(self) -> Floats:
        """Label distributions when spamming: (annotator, given class)."""
        return normalize(self.spammed)

    def reindex(self, indices: Integers, n_items: int) -> Competence:
        """Return the parameters of other annotators by their indices here; -1 is a new one."""
        known_counts, spammed_counts = (
            np.concatenate([counts, counts.mean(axis=0, keepdims=True)])[indices]
            for counts in (self.known, self.spammed)
        )
        return Competence(known_counts, spammed_counts, self.prior)


class Counts(NamedTuple):
    """Expected sufficient statistics; they add up over parts of the items."""

    true: Floats  # (true class)
    known_labels: Floats  # (annotator)
    spammed: Floats  # (annotator, given class)


@dataclass(frozen=True, kw_only=True)
class Mace(EM[Competence, Counts]):
    """Competence and spamming strategy of every annotator, by variational Bayes or EM.

    Parameters
    ----------
    method
        `vb`, variational Bayes, or `em`.
    prevalence
        Whether the prevalence of classes is `uniform` or `estimated`. With a rare class, `uniform`
        may mistake its labels for spamming.
    smoothing
        For `em`: pseudo-count of a strategy, split over the classes; a known and a spammed label
        count as much as one class.
    known_prior
        For `vb`: pseudo-count of a known label.
    spammed_prior
        For `vb`: pseudo-count of a spammed label; by default that of a known one.
    strategy_prior
        For `vb`: pseudo-count of every class in a strategy.

    Examples
    --------
    >>> from dissensus import Annotations
    >>> annotations = Annotations.from_columns("aaabbbcccddd", "xyz" * 4, "010110010111")
    >>> result = Mace().fit(annotations)
    >>> result.labels.tolist()
    ['0', '1', '0', '1']
    >>> result.params.competence.round(1).tolist()
    [0.8, 0.1, 0.6]
    """

    params_type: ClassVar[type] = Competence

    method: Literal["vb", "em"] = "vb"
    prevalence: Literal["uniform", "estimated"] = "uniform"
    smoothing: NonNegative = 0.01
    known_prior: Positive = 0.5
    spammed_prior: Positive | None = None
    strategy_prior: Positive = 10.0

    def log_joint(self, part: Part, params: Competence) -> Floats:
        return _joint(part, params.prior, *self._weights(part, params))

    def e_step(self, part: Part, params: Competence) -> Expected:
        truly, spammed = self._weights(part, params)
        joint = _joint(part, params.prior, truly, spammed)
        evidence, posterior = self.normalize_joint(joint, part.allowed)
        posterior[part.blank] = 0.0
        return Expected(evidence, _counts(part, posterior, truly / (truly + spammed)))

    def counts(self, part: Part, posterior: Floats) -> Counts:
        """Return counts for a start: competence one half, uniform strategies."""
        return _counts(part, posterior, part.n_classes / (part.n_classes + 1))

    def update(self, counts: Counts, last: Competence | None) -> Competence:
        known_base, strategy_base = self._base(len(counts.true))
        all_spammed = counts.spammed.sum(axis=1)
        known_counts = np.stack([counts.known_labels, all_spammed], axis=1) + known_base
        flat = self.prevalence == "uniform"
        prior = normalize(np.ones_like(counts.true) if flat else counts.true)
        return Competence(known_counts, counts.spammed + strategy_base, prior)

    def log_prior(self, params: Competence) -> float:
        known_base, strategy_base = self._base(len(params.prior))
        if self.method == "vb":
            divergence = negative_kl(params.known, known_base)
            return divergence + negative_kl(params.spammed, np.array(strategy_base))
        log_known, log_strategy = _log_share(params.known), _log_share(params.spammed)
        return float((known_base * log_known).sum() + strategy_base * log_strategy.sum())

    def quality(self, params: Competence, agreement: Floats) -> Floats:
        """Return the probability of being right, by competence or by luck."""
        return _right(params, params.competence)

    def interval(self, params: Competence, confidence: float) -> Floats | None:
        if self.method == "em":
            return None
        tail = np.array([(1 - confidence) / 2, (1 + confidence) / 2])
        ends = betaincinv(params.known[:, :1], params.known[:, 1:], tail)  # (annotator, 2)
        return np.stack([_right(params, end) for end in ends.T], axis=1)

    def confusion(self, params: Competence) -> Floats:
        competence = params.competence[:, None, None]
        return competence * np.eye(len(params.prior)) + (1 - competence) * params.strategy[:, None]

    def n_floats(self, annotations: Annotations) -> int:
        return super().n_floats(annotations) + 3 * annotations.n_annotators * annotations.n_classes

    def _base(self, n_classes: int) -> tuple[Floats, float]:
        """Return the pseudo-counts of a known and a spammed label, and of a class."""
        if self.method == "em":
            return np.full(2, self.smoothing / n_classes), self.smoothing / n_classes
        spammed = self.known_prior if self.spammed_prior is None else self.spammed_prior
        return np.array([self.known_prior, spammed]), self.strategy_prior

    def _weights(self, part: Part, params: Competence) -> tuple[Floats, Floats]:
        """Return the probability of every label if it is known and true, and if it is spammed."""
        log = expected_log if self.method == "vb" else _log_share
        log_known, strategy = log(params.known), log(params.spammed)  # expected logs, or logs
        spammed = np.maximum(log_known[:, 1:] + strategy, _LEAST)
        return np.exp(log_known[part.annotator, 0]), np.exp(spammed[part.annotator, part.label])


def _joint(part: Part, prior: Floats, truly: Floats, spammed: Floats) -> Floats:
    joint = part.votes(np.log1p(truly / spammed))
    joint += part.by_item(np.log(spammed))[:, None]
    joint += safe_log(prior)
    return joint


def _counts(part: Part, posterior: Floats, knows: Floats | float) -> Counts:
    """Return counts; `knows` is the probability that a true label was known."""
    known_labels = part.given_posterior(posterior) * knows
    cell = part.annotator.astype(np.intp) * part.n_classes + part.label
    spammed = np.bincount(cell, 1 - known_labels, minlength=part.n_annotators * part.n_classes)
    return Counts(
        np.einsum("it->t", posterior),
        part.by_annotator(known_labels),
        spammed.astype(float).reshape(part.n_annotators, part.n_classes),
    )


def _right(params: Competence, competence: Floats) -> Floats:
    return competence + (1 - competence) * (params.strategy @ params.prior)


def _log_share(counts: Floats) -> Floats:
    return safe_log(normalize(counts))
