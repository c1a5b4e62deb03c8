"""What an answer tells: about the truth of an item, and about who gave it. In nats.

An item is of class t with probability `posterior[t]`; somebody who sees class t says g with
probability `matrix[t, g]`. What their answer tells about the truth is

    information = entropy of (belief @ matrix) - belief @ noise

with `noise[t]` the entropy of row t. Where a matrix is itself uncertain, with Dirichlet rows, the
entropies expected under it take the place of the entropies of its mean. The answer then tells
more: the difference is what it tells about the annotator.

    N. Houlsby, F. Huszár, Z. Ghahramani, M. Lengyel. Bayesian active learning for classification
    and preference learning. arXiv:1112.5745, 2011.
"""

from __future__ import annotations

import numpy as np
from scipy.special import psi, xlogy

from .._relation import Floats

__all__ = [
    "entropy",
    "expected_accuracy",
    "expected_entropy",
    "information",
    "information_table",
]

_PIECE = 2**22  # numbers to hold at a time


def entropy(probabilities: Floats) -> Floats:
    """Return the entropy of distributions along the last axis.

    >>> entropy(np.array([[0.5, 0.5], [1.0, 0.0]])).round(4).tolist()
    [0.6931, 0.0]
    """
    return np.maximum(-xlogy(probabilities, probabilities).sum(axis=-1), 0.0)


def expected_entropy(counts: Floats) -> Floats:
    """Return the entropy that is expected under Dirichlets along the last axis.

    >>> expected_entropy(np.array([[1.0, 1.0], [1e6, 1e6]])).round(4).tolist()
    [0.5, 0.6931]
    """
    total = counts.sum(axis=-1)
    return psi(total + 1) - (counts / total[..., None] * psi(counts + 1)).sum(axis=-1)


def information(posterior: Floats, matrix: Floats, noise: Floats) -> Floats:
    """Return what every answer tells: (answer).

    Of each answer are given the belief (answer, class), what its annotator makes of every class
    (answer, true class, given class), and how much of that is noise (answer, true class).

    >>> sure = np.eye(2)[None]
    >>> information(np.array([[0.5, 0.5]]), sure, entropy(sure)).round(4).tolist()
    [0.6931]
    """
    given = np.einsum("...t,...tg->...g", posterior, matrix)
    return np.maximum(entropy(given) - np.einsum("...t,...t->...", posterior, noise), 0.0)


def information_table(posterior: Floats, matrix: Floats, noise: Floats) -> Floats:
    """Return what answers of all annotators tell under every belief: (belief, annotator)."""
    n_annotators, n_classes, _ = matrix.shape
    wide = matrix.swapaxes(0, 1).reshape(n_classes, -1)  # (true, annotator and given)
    out = np.empty((len(posterior), n_annotators))
    step = max(1, _PIECE // max(wide.shape[1], 1))
    for first in range(0, len(posterior), step):
        some = posterior[first : first + step]
        given = (some @ wide).reshape(len(some), n_annotators, n_classes)
        out[first : first + step] = entropy(given) - some @ noise.T
    return np.maximum(out, 0.0)


def expected_accuracy(posterior: Floats, matrix: Floats) -> Floats:
    """Return the probability that the best class after an answer is the true one: (answer).

    >>> expected_accuracy(np.array([[0.5, 0.5]]), np.array([[[0.8, 0.2], [0.2, 0.8]]])).tolist()
    [0.8]
    """
    return (posterior[..., :, None] * matrix).max(axis=-2).sum(axis=-1)
