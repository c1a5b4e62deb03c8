"""Dawid & Skene (1979): every annotator has a confusion matrix of their own."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple, TypeVar

import numpy as np

from ..base.probability import normalize, safe_log
from ..base.arrays import Floats, Integers
from ..answers.annotations import Annotations, Part
from ..params import NonNegative
from .em import EMAggregator

Params = TypeVar("Params", bound=Any)


class Confusion(NamedTuple):
    """Parameters of Dawid-Skene, as logarithms in the layout of the sparse product."""

    log_prior: Floats  # (true class)
    log_given: Floats  # (annotator and given class, true class)

    @property
    def prior(self) -> Floats:
        """Prevalence of the classes: (true class)."""
        return np.exp(self.log_prior)

    @property
    def confusion(self) -> Floats:
        """Confusion matrices: (annotator, true class, given class)."""
        n_classes = len(self.log_prior)
        return np.exp(self.log_given).reshape(-1, n_classes, n_classes).swapaxes(1, 2)

    def reindex(self, indices: Integers, n_items: int) -> Confusion:
        """Return the parameters of other annotators by their indices here; -1 is a new one."""
        n_classes = len(self.log_prior)
        known = self.log_given.reshape(-1, n_classes, n_classes)
        average = safe_log(normalize(np.exp(known).mean(axis=0, keepdims=True), axis=1))
        log_given = np.concatenate([known, average])[indices]
        return Confusion(self.log_prior, log_given.reshape(-1, n_classes))


class Counts(NamedTuple):
    """Expected sufficient statistics; they add up over parts of the items."""

    true: Floats  # (true class)
    given_true: Floats  # (annotator and given class, true class)


@dataclass(frozen=True, kw_only=True)
class ConfusionModel(EMAggregator[Params, Counts]):
    """A model with one confusion matrix per annotator, given as `log_prior` and `log_given`."""

    matrix_copies: ClassVar[int] = 3  # arrays of the size of all matrices in memory at once

    def log_joint(self, part: Part, params: Params) -> Floats:
        joint = part.labels @ params.log_given
        joint += params.log_prior
        return joint

    def counts(self, part: Part, posterior: Floats) -> Counts:
        return Counts(np.einsum("it->t", posterior), part.labels.T @ posterior)

    def n_floats(self, annotations: Annotations) -> int:
        cells = annotations.n_annotators * annotations.n_classes**2
        return annotations.n_items * annotations.n_classes + self.matrix_copies * cells


@dataclass(frozen=True, kw_only=True)
class ConfusionAggregator(ConfusionModel[Confusion]):
    """One confusion matrix per annotator, as a point estimate."""

    params_type: ClassVar[type] = Confusion


@dataclass(frozen=True, kw_only=True)
class DawidSkene(ConfusionAggregator):
    """One confusion matrix per annotator, fitted with EM.

    Dawid & Skene (1979): every annotator has a confusion matrix of their own.

    The truth of an item is drawn from `prior`; annotator a gives an item of class t the label g
    with probability `confusion[a, t, g]`, independently of the others. Counts get `smoothing`
    added: a Dirichlet(1 + smoothing) prior, so the fit is a MAP estimate and its objective never
    falls.

        P(labels of i, t) = prior[t] · Π_a confusion[a, t, label of a on i]
        posterior[i, t] ∝ P(labels of i, t)
        confusion[a, t, g] ∝ smoothing + Σ_i posterior[i, t] · 1(annotator a labels item i as g)

    When it fails: With few labels per annotator and many classes a matrix has more cells than
    labels, and classes may merge: `dawid-skene-map` and `hierarchical` are safer. Annotators who
    copy each other or fail on the same items break the independence; the posterior is then far too
    sure.

        A. P. Dawid, A. M. Skene. Maximum likelihood estimation of observer error-rates using the
        EM algorithm. Applied Statistics 28(1), 1979. doi:10.2307/2346806

    Parameters
    ----------
    smoothing
        Pseudo-count added to every cell; 0 is maximum likelihood.

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
        given = counts.given_true.reshape(-1, n_classes, n_classes) + self.smoothing
        log_given = safe_log(normalize(given, axis=1)).reshape(-1, n_classes)
        return Confusion(safe_log(normalize(counts.true + self.smoothing)), log_given)

    def log_prior(self, params: Confusion) -> float:
        return self.smoothing * float(params.log_prior.sum() + params.log_given.sum())
