"""Bayesian classifier combination: Dawid-Skene that knows how much it does not know.

The model is that of `dawid-skene`, with Dirichlet priors on the shares of classes and on every row
of every confusion matrix. Variational Bayes keeps a Dirichlet for each of them instead of a point:
its counts are the prior's pseudo-counts and what is expected under the posterior. Rounds use the
expected logarithms, and the objective is the evidence lower bound. Intervals say where an entry
of a matrix or the quality of an annotator lies. They take the truths of items for independent of
the matrices: about right with good annotators, too narrow with poor ones.

    H.-C. Kim, Z. Ghahramani. Bayesian classifier combination. AISTATS, PMLR 22, 2012.
    E. Simpson, S. Roberts, I. Psorakis, A. Smith. Dynamic Bayesian combination of multiple
    imperfect classifiers. arXiv:1206.1831, 2012.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar, NamedTuple

import numpy as np
from annotated_types import Gt, Lt
from scipy.special import betaincinv

from .._relation import Floats, Integers
from ..annotations import Annotations, Part
from ..params import Positive
from ._dirichlet import expected_logs, log_beta
from ._em import EMAggregator, share
from .dawid_skene import Counts
from .dawid_skene_map import trust

__all__ = ["Bcc", "Beliefs", "Fraction"]

Fraction = Annotated[float, Gt(0), Lt(1)]

_TINY = 1e-300


class Beliefs(NamedTuple):
    """What variational Bayes learns: Dirichlet counts, and the logarithms expected under them.

    A state is a true class; where items also differ in another way, the classes follow each
    other once for every way.
    """

    log_prior: Floats  # (state)
    log_given: Floats  # (annotator and given class, state)
    true: Floats  # (state): counts
    given_true: Floats  # (annotator and given class, state): counts
    base: Floats  # (given class, state): the pseudo-counts that everybody began with
    level: Floats = np.empty((0, 0))  # (item, state): which it is, should its class be true

    @property
    def prior(self) -> Floats:
        """How common every class is, in the mean: (true class)."""
        return self.by_class(share(self.true))

    @property
    def confusion(self) -> Floats:
        """What annotators make of a class, in the mean: (annotator, true class, given class)."""
        return self.by_class(share(self.cells, axis=1) * self._usual).swapaxes(1, 2)

    @property
    def cells(self) -> Floats:
        """The counts of every annotator: (annotator, given class, state)."""
        return self.given_true.reshape(-1, *self.base.shape)

    @property
    def _usual(self) -> Floats:
        """How common every state of a class is: (state)."""
        return share(self.true.reshape(-1, len(self.base)), axis=0).ravel()

    def by_class(self, values: Floats) -> Floats:
        """Return values of states, added up for their classes: (…, true class)."""
        return values.reshape(*values.shape[:-1], -1, len(self.base)).sum(axis=-2)

    def credible(self, level: float = 0.95) -> Floats:
        """Return where every entry lies with this probability: (annotator, state, given class, 2).

        Every entry of a Dirichlet is a Beta by itself.
        """
        counts = self.cells.swapaxes(1, 2)
        return _between(counts, counts.sum(axis=2, keepdims=True) - counts, level)

    def quality(self) -> tuple[Floats, Floats]:
        """Return mean and variance of every annotator's probability of being right."""
        n_classes, n_states = self.base.shape
        state = np.arange(n_states)
        counts = self.cells
        total = counts.sum(axis=1)
        right = counts[:, state % n_classes, state] / total  # (annotator, state)
        spread = right * (1 - right) / (total + 1)
        weight = share(self.true)
        size = self.true.sum()
        mean = right @ weight
        # The shares of the classes are a Dirichlet: E[wₛwₜ] = (n wₛwₜ + [s=t] wₛ) / (n + 1).
        shares = (right**2 @ weight - mean**2) / (size + 1)
        rights = spread @ (weight * (size * weight + 1) / (size + 1))
        return mean, shares + rights

    def reindex(self, indices: Integers, n_items: int) -> Beliefs:
        """Return the same for other annotators, by their places here; -1 is somebody new."""
        known = self.cells
        average = known.mean(axis=0, keepdims=True) if len(known) else self.base[None]
        wide = self.log_given.reshape(known.shape)
        logs = np.concatenate([wide, np.log(share(average, axis=1))])[indices]
        counts = np.concatenate([known, average])[indices]
        flat = (-1, self.base.shape[1])
        level = np.tile(self._usual, (n_items, 1)) if self.level.size else self.level
        return self._replace(
            log_given=logs.reshape(flat), given_true=counts.reshape(flat), level=level
        )


@dataclass(frozen=True, kw_only=True)
class Bcc(EMAggregator[Beliefs, Counts]):
    """One confusion matrix per annotator, all of them uncertain, by variational Bayes.

    Parameters
    ----------
    strength
        How many pseudo-counts every annotator has for every true class.
    accuracy
        The share of them on the right label.
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

    learns: ClassVar[type] = Beliefs

    strength: Positive = 4.0
    accuracy: Fraction = 0.7
    prevalence: Positive = 1.0

    def base(self, n_states: int) -> Floats:
        """Return the pseudo-counts that everybody begins with: (given class, state)."""
        return trust(self.strength, self.accuracy, n_states)

    def log_joint(self, part: Part, params: Beliefs) -> Floats:
        joint = part.labels @ params.log_given
        joint += params.log_prior
        joint[part.blank] = np.log(share(params.true))  # where nothing was said, nothing is lost
        return joint

    def counts(self, part: Part, posterior: Floats) -> Counts:
        return Counts(np.einsum("is->s", posterior), part.labels.T @ posterior)

    def update(self, counts: Counts, last: Beliefs | None) -> Beliefs:
        return self.believed(counts, self.base(len(counts.true)))

    def believed(self, counts: Counts, base: Floats) -> Beliefs:
        """Return the Dirichlets of counts on top of the pseudo-counts."""
        true = counts.true + self.prevalence
        given = counts.given_true.reshape(-1, *base.shape) + base
        log_given = expected_logs(given, axis=1).reshape(counts.given_true.shape)
        return Beliefs(expected_logs(true), log_given, true, given.reshape(log_given.shape), base)

    def log_prior(self, params: Beliefs) -> float:
        """Return minus the divergence of what is believed from the prior."""
        given = params.cells
        expected = params.log_given.reshape(given.shape)
        flat = np.full_like(params.true, self.prevalence)
        gain = log_beta(params.true) - log_beta(flat)
        gain -= (params.true - flat) @ params.log_prior
        gain += log_beta(given, 1).sum() - len(given) * log_beta(params.base, 0).sum()
        gain -= np.einsum("ags,ags->", given - params.base, expected)
        return float(gain)

    def n_numbers(self, annotations: Annotations) -> int:
        cells = annotations.n_annotators * annotations.n_classes**2
        return super().n_numbers(annotations) + 6 * cells

    def confusion(self, params: Beliefs) -> Floats:
        return params.confusion

    def quality(self, params: Beliefs, agreement: Floats) -> Floats:
        return params.quality()[0]

    def interval(self, params: Beliefs, level: float) -> Floats:
        """Return the interval of the Beta that has the mean and variance of the quality."""
        mean, variance = params.quality()
        size = np.maximum(mean * (1 - mean) / np.maximum(variance, _TINY) - 1, _TINY)
        return _between(mean * size, (1 - mean) * size, level)


def _between(ones: Floats, others: Floats, level: float) -> Floats:
    """Return the interval of every Beta that leaves out equally much on both sides: (…, 2)."""
    tail = (1 - level) / 2
    ends = [betaincinv(ones, others, part) for part in (tail, 1 - tail)]
    return np.where((others > 0)[..., None], np.stack(ends, axis=-1), 1.0)
