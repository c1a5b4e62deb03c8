"""How far an annotator is from a spammer, who does not look at the items at all.

A spammer says the same whatever the truth is: all rows of the confusion matrix are equal, 1·vᵀ. The
nearest such matrix has the mean row as v, so the squared distance to it, over its largest value, is

    score = Σ_t Σ_g (confusion[t, g] - mean_t confusion[t, g])² / (n_classes - 1)

0 for a spammer, 1 for a hammer. It is 1 as well for somebody who mixes up classes consistently: his
labels tell just as much. Trace and accuracy tell the two apart, and mutual information says in nats
how much a label tells, for classes as common as they are.

With few labels the score of the counted matrix is too high. So there is an interval: rows are
Dirichlet with the counts and a prior. Mean and variance of the score are then known exactly, and a
Beta with these moments is close to its distribution; draws can be had instead.

    V. C. Raykar, S. Yu. Ranking annotators for crowdsourced labeling tasks. Advances in Neural
    Information Processing Systems 24, 2011.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.special import betaincinv, entr

from .._relation import Floats

__all__ = ["PRIOR", "Interval", "mutual_information", "spam_interval", "spam_score", "trace"]

PRIOR = 1.0  # pseudo-counts of a row, spread evenly over the given classes
_CELLS = 2**22  # numbers to hold at a time


class Interval(NamedTuple):
    """Where a score lies: its mean, and the ends of an interval."""

    mean: Floats  # (annotator)
    low: Floats  # (annotator)
    high: Floats  # (annotator)


def spam_score(confusion: Floats, *, squared: bool = True) -> Floats:
    """Return how far every annotator is from a spammer: (annotator), between 0 and 1.

    Some texts print the distance instead of its square; `squared=False` gives that. With a single
    class there is nothing to tell apart, and the score is NaN.

    >>> spam_score(np.array([[[1.0, 0], [0, 1]], [[0.9, 0.1], [0.9, 0.1]], [[0, 1], [1, 0]]]))
    array([1., 0., 1.])
    """
    n_classes = confusion.shape[-1]
    if n_classes < 2:
        return np.full(len(confusion), np.nan)
    away = confusion - confusion.mean(axis=1, keepdims=True)
    score = np.einsum("atg,atg->a", away, away) / (n_classes - 1)
    return score if squared else np.sqrt(score)


def trace(confusion: Floats, prior: Floats | None = None, *, normalised: bool = False) -> Floats:
    """Return the trace of every confusion matrix: (annotator), between 0 and the number of classes.

    Normalised it is the mean share of right labels over the classes. With a `prior` (true class),
    classes count as common as they are: the probability of being right.

    >>> trace(np.array([[[0.9, 0.1], [0.3, 0.7]]]), np.array([0.75, 0.25])).round(3)
    array([0.85])
    """
    right = np.einsum("att->at", confusion)
    if prior is not None:
        return right @ prior
    return right.mean(axis=1) if normalised else right.sum(axis=1)


def mutual_information(confusion: Floats, prior: Floats) -> Floats:
    """Return how many nats a label of every annotator tells about the truth: (annotator).

    >>> mutual_information(np.array([[[0.0, 1.0], [1.0, 0.0]]]), np.array([0.5, 0.5])).round(4)
    array([0.6931])
    """
    annotations = np.einsum("t,atg->ag", prior, confusion)  # how common every label is
    # A sum of entropies: 0 log 0 is 0.
    lost = np.einsum("t,atg->a", prior, entr(confusion))
    return np.maximum(entr(annotations).sum(axis=1) - lost, 0.0)


def spam_interval(
    counts: Floats,
    *,
    prior: float = PRIOR,
    level: float = 0.9,
    draws: int = 0,
    seed: int = 0,
) -> Interval:
    """Return where the spam score of every annotator lies with a probability.

    Parameters
    ----------
    counts
        How often every annotator gave which label to which true class, expected under a belief:
        (annotator, true class, given class).
    prior
        Pseudo-counts of every row, spread evenly over the given classes.
    level
        The probability.
    draws
        How many matrices to draw of every annotator; with 0, a Beta with the exact moments.
    seed
        Decides the draws.
    """
    n_annotators, n_classes, _ = counts.shape
    out = np.full((3, n_annotators), np.nan)
    if n_classes > 1:
        rng = np.random.default_rng(seed)
        step = max(1, _CELLS // (n_classes**2 * max(draws, n_classes)))
        for first in range(0, n_annotators, step):
            now = slice(first, first + step)
            rows = counts[now] + prior / n_classes
            out[:, now] = _drawn(rows, draws, level, rng) if draws else _fitted(rows, level)
    return Interval(*out)


def _drawn(rows: Floats, draws: int, level: float, rng: np.random.Generator) -> Floats:
    matrices = rng.standard_gamma(rows, size=(draws, *rows.shape))
    matrices /= np.maximum(matrices.sum(axis=-1, keepdims=True), 1e-300)
    n_classes = rows.shape[-1]
    score = spam_score(matrices.reshape(-1, n_classes, n_classes)).reshape(draws, -1)
    ends = np.quantile(score, [(1 - level) / 2, (1 + level) / 2], axis=0)
    return np.stack([score.mean(axis=0), *ends])


def _fitted(rows: Floats, level: float) -> Floats:
    mean, variance = spam_moments(rows)
    mean = np.clip(mean, 1e-12, 1 - 1e-12)
    size = np.maximum(mean * (1 - mean) / np.maximum(variance, 1e-18) - 1, 1e-6)
    tail = np.array([[(1 - level) / 2], [(1 + level) / 2]])
    return np.stack([mean, *betaincinv(mean * size, (1 - mean) * size, tail)])


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
