"""Spam score: how far an annotator is from a spammer, whose labels do not depend on the truth.

All rows of a spammer's confusion matrix are equal, 1·vᵀ. The nearest such matrix has the mean row
as v, so the squared distance to it, relative to its maximum, is

    score = Σ_t Σ_g (confusion[t, g] - mean_t confusion[t, g])² / (n_classes - 1)

0 for a spammer, 1 for a hammer. It is also 1 for an annotator who permutes the classes, and whose
labels are as informative; trace and accuracy separate the two. Mutual information measures in nats
how informative a label is, given the class prior.

With few labels the score of the estimated matrix is too high, hence an interval: rows have
Dirichlet posteriors, the mean and variance of the score are exact, and a Beta distribution with
these moments approximates it closely.

    V. C. Raykar, S. Yu. Ranking annotators for crowdsourced labeling tasks. Advances in Neural
    Information Processing Systems 24, 2011.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.special import betaincinv, entr

from ..base.arrays import Floats

PRIOR = 1.0  # pseudo-counts of a row, spread evenly over the given classes
_CELLS = 2**22  # numbers in memory at a time


class Interval(NamedTuple):
    """The mean of a score and its credible interval."""

    mean: Floats  # (annotator)
    low: Floats  # (annotator)
    high: Floats  # (annotator)


def spam_score(confusion: Floats, *, squared: bool = True) -> Floats:
    """Return how far every annotator is from a spammer: (annotator), between 0 and 1.

    `squared=False` gives the distance instead of its square. With a single class the score is NaN.

    >>> spam_score(np.array([[[1.0, 0], [0, 1]], [[0.9, 0.1], [0.9, 0.1]], [[0, 1], [1, 0]]]))
    array([1., 0., 1.])
    """
    n_classes = confusion.shape[-1]
    if n_classes < 2:
        return np.full(len(confusion), np.nan)
    away = confusion - confusion.mean(axis=1, keepdims=True)
    score = np.einsum("atg,atg->a", away, away) / (n_classes - 1)
    return score if squared else np.sqrt(score)


def trace(confusion: Floats, prior: Floats | None = None, *, normalized: bool = False) -> Floats:
    """Return the trace of every confusion matrix: (annotator), between 0 and the number of classes.

    Normalized it is the mean recall over the classes. With a `prior` (true class), it is the
    probability of a correct label.

    >>> trace(np.array([[[0.9, 0.1], [0.3, 0.7]]]), np.array([0.75, 0.25])).round(3)
    array([0.85])
    """
    right = np.einsum("att->at", confusion)
    if prior is not None:
        return right @ prior
    return right.mean(axis=1) if normalized else right.sum(axis=1)


def mutual_information(confusion: Floats, prior: Floats) -> Floats:
    """Return the mutual information of label and truth in nats: (annotator).

    >>> mutual_information(np.array([[[0.0, 1.0], [1.0, 0.0]]]), np.array([0.5, 0.5])).round(4)
    array([0.6931])
    """
    marginal = np.einsum("t,atg->ag", prior, confusion)
    lost = np.einsum("t,atg->a", prior, entr(confusion))
    return np.maximum(entr(marginal).sum(axis=1) - lost, 0.0)


def spam_interval(counts: Floats, *, prior: float = PRIOR, confidence: float = 0.9) -> Interval:
    """Return credible intervals of the spam scores.

    Parameters
    ----------
    counts
        Expected counts under the posterior: (annotator, true class, given class).
    prior
        Pseudo-counts of every row, spread evenly over the given classes.
    confidence
        The probability that an interval covers.
    """
    n_annotators, n_classes, _ = counts.shape
    out = np.full((3, n_annotators), np.nan)
    tail = np.array([[(1 - confidence) / 2], [(1 + confidence) / 2]])
    step = max(1, _CELLS // max(n_classes, 1) ** 3)
    for first in range(0, n_annotators if n_classes > 1 else 0, step):
        now = slice(first, first + step)
        mean, variance = spam_moments(counts[now] + prior / n_classes)
        mean = np.clip(mean, 1e-12, 1 - 1e-12)
        size = np.maximum(mean * (1 - mean) / np.maximum(variance, 1e-18) - 1, 1e-6)
        out[:, now] = np.stack([mean, *betaincinv(mean * size, (1 - mean) * size, tail)])
    return Interval(*out)


def spam_moments(rows: Floats) -> tuple[Floats, Floats]:
    """Return mean and variance of the score of matrices whose rows are Dirichlet: (annotator).

    A row is its mean m plus an error y; away is how far the mean rows are from their mean. Then
    the score times (n_classes - 1) is

        Σ |away|² + Σ (2 away·y + part |y|²) - 2/n_classes Σ_{t<u} y_t·y_u

    with part = 1 - 1/n_classes. The terms with errors are uncorrelated, and all that is left are
    moments of Dirichlets up to the fourth.
    """
    n_classes = rows.shape[-1]
    total = rows.sum(axis=2)  # (annotator, true class), and so is what follows
    mean = rows / total[:, :, None]
    away = mean - mean.mean(axis=1, keepdims=True)
    part = 1 - 1 / n_classes

    def spread(one: Floats, other: Floats) -> Floats:
        """Return the covariance of one·y and other·y."""
        together = _dot(mean * one, other) - _dot(mean, one) * _dot(mean, other)
        return together / (total + 1)

    square = rows * (rows + 1)  # moments are these over rising powers of the total
    second = square.sum(axis=2)
    power2 = total * (total + 1)
    power3, power4 = power2 * (total + 2), power2 * (total + 2) * (total + 3)
    third = rows * (second[:, :, None] + 2 * (rows + 1)) / power3[:, :, None]  # E[x_g |x|²]
    third -= mean * (second / power2)[:, :, None]  # the covariance of x_g and |x|²
    fourth = second**2 + (square * ((rows + 2) * (rows + 3) - square)).sum(axis=2)
    length = fourth / power4 - (second / power2) ** 2  # the variance of |x|²
    length += 4 * spread(mean, mean) - 4 * _dot(third, mean)  # … and of |y|²
    both = _dot(third, away) - 2 * spread(mean, away)  # the covariance of away·y and |y|²
    variance = (4 * spread(away, away) + 4 * part * both + part**2 * length).sum(axis=1)

    flat = 1 / (total + 1)
    cross = np.einsum("atg,aug->atu", mean, mean)
    skew = np.einsum("atg,aug->atu", mean, mean**2)
    traces = (cross - skew - skew.swapaxes(1, 2) + cross**2) * flat[:, :, None] * flat[:, None, :]
    pairs = (traces.sum(axis=(1, 2)) - np.einsum("att->a", traces)) / 2
    variance += 4 * pairs / n_classes**2

    error = (1 - _dot(mean, mean)) / (total + 1)  # E|y|²
    expected = (_dot(away, away) + part * error).sum(axis=1)
    return expected / (n_classes - 1), variance / (n_classes - 1) ** 2


def _dot(one: Floats, other: Floats) -> Floats:
    return np.einsum("atg,atg->at", one, other)
