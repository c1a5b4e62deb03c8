"""Dawid & Skene (1979): every annotator has a confusion matrix of their own.

The truth of an item is drawn from `prior`; annotator a, seeing an item of class t, says g with
probability `confusion[a, t, g]`, independently of the others. Counts get `smoothing` added: a
Dirichlet(1 + smoothing) prior, so the fit is a MAP estimate and its objective never falls.

    A. P. Dawid, A. M. Skene. Maximum likelihood estimation of observer error-rates using the
    EM algorithm. Applied Statistics 28(1), 1979. doi:10.2307/2346806
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np

from .._relation import Floats, Integers
from ..annotations import Annotations, Part
from ..params import NonNegative
from ._em import EMAggregator, logs, share

__all__ = ["Confusion", "ConfusionAggregator", "Counts", "DawidSkene"]


class Confusion(NamedTuple):
    """What Dawid-Skene learns, as logarithms in the layout that the sparse product wants."""

    log_prior: Floats  # (true class)
    log_given: Floats  # (annotator and given class, true class)

    @property
    def prior(self) -> Floats:
        """How common every class is: (true class)."""
        return np.exp(self.log_prior)

    @property
    def confusion(self) -> Floats:
        """What every annotator makes of every class: (annotator, true class, given class)."""
        n_classes = len(self.log_prior)
        return np.exp(self.log_given).reshape(-1, n_classes, n_classes).swapaxes(1, 2)

    def reindex(self, indices: Integers, n_items: int) -> Confusion:
        """Return the same for other annotators, by their places here; -1 is somebody new."""
        n_classes = len(self.log_prior)
        known = self.log_given.reshape(-1, n_classes, n_classes)
        average = logs(share(np.exp(known).mean(axis=0, keepdims=True), axis=1))
        seated = np.concatenate([known, average])[indices]
        return Confusion(self.log_prior, seated.reshape(-1, n_classes))


class Counts(NamedTuple):
    """What it learns from, expected under the posterior; adds up over parts of the items."""

    true: Floats  # (true class)
    given_true: Floats  # (annotator and given class, true class)


@dataclass(frozen=True, kw_only=True)
class ConfusionAggregator(EMAggregator[Confusion, Counts]):
    """One confusion matrix per annotator; how it follows from counts is left open."""

    learns: ClassVar[type] = Confusion

    def log_joint(self, part: Part, params: Confusion) -> Floats:
        joint = part.labels @ params.log_given
        joint += params.log_prior
        return joint

    def counts(self, part: Part, posterior: Floats) -> Counts:
        return Counts(np.einsum("it->t", posterior), part.labels.T @ posterior)

    def n_numbers(self, annotations: Annotations) -> int:
        cells = annotations.n_annotators * annotations.n_classes**2
        return super().n_numbers(annotations) + 3 * cells

    def confusion(self, params: Confusion) -> Floats:
        return params.confusion

    def quality(self, params: Confusion, agreement: Floats) -> Floats:
        return np.einsum("t,att->a", params.prior, params.confusion)


@dataclass(frozen=True, kw_only=True)
class DawidSkene(ConfusionAggregator):
    """One confusion matrix per annotator, fitted with EM.

    Parameters
    ----------
    smoothing
        Pseudo-count added to every cell; at 0, maximum likelihood.

    Examples
    --------
    >>> from dissensus import Annotations
    >>> annotations = Annotations.from_columns("aaabbb", "xyzxyz", "001110")
    >>> DawidSkene().fit(annotations).labels.tolist()
    ['0', '1']
    """

    smoothing: NonNegative = 0.01

    def update(self, counts: Counts, last: Confusion | None) -> Confusion:
        n_classes = len(counts.true)
        given = share(counts.given_true.reshape(-1, n_classes, n_classes) + self.smoothing, axis=1)
        prior = share(counts.true + self.smoothing)
        return Confusion(logs(prior), logs(given).reshape(-1, n_classes))

    def log_prior(self, params: Confusion) -> float:
        return self.smoothing * float(params.log_prior.sum() + params.log_given.sum())
