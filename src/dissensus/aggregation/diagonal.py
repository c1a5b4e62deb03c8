"""One accuracy per annotator and true class."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..base.probability import normalize, safe_log
from ..params import NonNegative, Probability
from .dawid_skene import Confusion, ConfusionAggregator, Counts


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
        given = counts.given_true.reshape(-1, n_classes, n_classes)
        right = np.einsum("att->at", given)
        wrong = given.sum(axis=1) - right + self.strength * (1 - self.accuracy)
        both = normalize(np.stack([right + self.strength * self.accuracy, wrong]), axis=0)
        eye = np.eye(n_classes, dtype=bool)
        others = max(n_classes - 1, 1)
        spread = np.where(eye, both[0][:, None, :], both[1][:, None, :] / others)
        return Confusion(safe_log(normalize(counts.true)), safe_log(spread).reshape(-1, n_classes))

    def log_prior(self, params: Confusion) -> float:
        n_classes = len(params.log_prior)
        given = params.log_given.reshape(-1, n_classes, n_classes).sum(axis=0)
        right = np.trace(given)
        wrong = (given.sum() - right) / max(n_classes - 1, 1)
        return float(self.strength * (self.accuracy * right + (1 - self.accuracy) * wrong))
