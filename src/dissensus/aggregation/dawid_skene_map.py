"""Dawid & Skene with a prior that annotators are right more often than not."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..base.probability import normalize, safe_log
from ..base.arrays import Floats
from ..params import NonNegative, Probability
from .dawid_skene import Confusion, ConfusionAggregator, Counts


def pseudo_counts(strength: float, accuracy: float, n_classes: int) -> Floats:
    """Return pseudo-counts of an annotator of this accuracy: (given class, true class).

    >>> pseudo_counts(4, 0.7, 3).round(2).tolist()
    [[2.8, 0.6, 0.6], [0.6, 2.8, 0.6], [0.6, 0.6, 2.8]]
    """
    wrong = strength * (1 - accuracy) / max(n_classes - 1, 1)
    counts = np.full((n_classes, n_classes), wrong)
    np.fill_diagonal(counts, strength * accuracy if n_classes > 1 else strength)
    return counts


@dataclass(frozen=True, kw_only=True)
class DawidSkeneMap(ConfusionAggregator):
    """One confusion matrix per annotator with an informative prior, fitted with EM.

    Dawid & Skene with a prior that annotators are right more often than not.

    The model is that of `dawid-skene`. A priori every annotator has `strength` pseudo-counts for
    every true class: a fraction `accuracy` of them on the right label, the rest evenly on the
    others. The matrices are the mode under this Dirichlet(1 + pseudo-counts) prior.

    An annotator with few labels stays near the prior, which matters where there are many classes.
    Of the strengths 0.01, 1, 4 and 16, four was best on average over 23 public data sets.

        confusion[a, t, g] ∝ strength · (accuracy if g = t else (1 - accuracy) / (n_classes - 1))
                             + Σ_i posterior[i, t] · 1(annotator a labels item i as g)

    When it fails: Where most annotators really are worse than guessing, the prior holds the fit on
    the wrong side. Shared errors make it too sure, as all models of independent annotators.

        R. J. Passonneau, B. Carpenter. The benefits of a model of annotation. TACL 2, 2014.
        doi:10.1162/tacl_a_00185

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
    >>> DawidSkeneMap().fit(annotations).quality.round(2).tolist()
    [0.72, 0.72, 0.6]
    """

    strength: NonNegative = 4.0
    accuracy: Probability = 0.7
    prevalence: NonNegative = 1.0

    def update(self, counts: Counts, last: Confusion | None) -> Confusion:
        n_classes = len(counts.true)
        given = counts.given_true.reshape(-1, n_classes, n_classes)
        given = normalize(given + pseudo_counts(self.strength, self.accuracy, n_classes), axis=1)
        prior = normalize(counts.true + self.prevalence)
        return Confusion(safe_log(prior), safe_log(given).reshape(-1, n_classes))

    def log_prior(self, params: Confusion) -> float:
        n_classes = len(params.log_prior)
        pseudo = pseudo_counts(self.strength, self.accuracy, n_classes)
        given = params.log_given.reshape(-1, n_classes, n_classes).sum(axis=0)
        return float(self.prevalence * params.log_prior.sum() + (pseudo * given).sum())
