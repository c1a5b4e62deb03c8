"""Information of an answer about the truth of an item and about the annotator, in nats.

An item is of class t with probability `posterior[t]`; the annotator then answers g with probability
`matrix[t, g]`. The mutual information of answer and truth is

    information = entropy of (posterior @ matrix) - posterior @ noise

with `noise[t]` the entropy of row t. Where the matrix is itself uncertain, with Dirichlet rows, its
expected entropies replace the entropies of its mean; the difference is information about the
annotator.

    N. Houlsby, F. Huszár, Z. Ghahramani, M. Lengyel. Bayesian active learning for classification
    and preference learning. arXiv:1112.5745, 2011.
"""

from __future__ import annotations

import numpy as np
from scipy.special import psi, xlogy

from .._relation import Floats

_PIECE = 2**22  # numbers in memory at a time


def entropy(probabilities: Floats) -> Floats:
    """Return the entropy of distributions along the last axis.

    >>> entropy(np.array([[0.5, 0.5], [1.0, 0.0]])).round(4).tolist()
    [0.6931, 0.0]
    """
    return np.maximum(-xlogy(probabilities, probabilities).sum(axis=-1), 0.0)


def expected_entropy(counts: Floats) -> Floats:
    """Return the expected entropy under Dirichlets along the last axis.

    >>> expected_entropy(np.array([[1.0, 1.0], [1e6, 1e6]])).round(4).tolist()
    [0.5, 0.6931]
    """
    total = counts.sum(axis=-1)
    return psi(total + 1) - (counts / total[..., None] * psi(counts + 1)).sum(axis=-1)


def information(posterior: Floats, matrix: Floats, noise: Floats) -> Floats:
    """Return the information of answers: (answer).

    From the posterior (answer, class), the annotator's confusion matrix (answer, true class, given
    class), and its noise (answer, true class).

    >>> sure = np.eye(2)[None]
    >>> information(np.array([[0.5, 0.5]]), sure, entropy(sure)).round(4).tolist()
    [0.6931]
    """
    answer = np.einsum("...t,...tg->...g", posterior, matrix)
    return np.maximum(entropy(answer) - np.einsum("...t,...t->...", posterior, noise), 0.0)


def information_table(posterior: Floats, matrix: Floats, noise: Floats) -> Floats:
    """Return the information of all annotators under every posterior: (posterior, annotator)."""
    n_annotators, n_classes, _ = matrix.shape
    wide = matrix.swapaxes(0, 1).reshape(n_classes, -1)  # (true, annotator and given)
    out = np.empty((len(posterior), n_annotators))
    step = max(1, _PIECE // max(wide.shape[1], 1))
    for first in range(0, len(posterior), step):
        some = posterior[first : first + step]
        answer = (some @ wide).reshape(len(some), n_annotators, n_classes)
        out[first : first + step] = entropy(answer) - some @ noise.T
    return np.maximum(out, 0.0)


def expected_accuracy(posterior: Floats, matrix: Floats) -> Floats:
    """Return the probability that the best class after an answer is the true one: (answer).

    >>> expected_accuracy(np.array([[0.5, 0.5]]), np.array([[[0.8, 0.2], [0.2, 0.8]]])).tolist()
    [0.8]
    """
    return (posterior[..., :, None] * matrix).max(axis=-2).sum(axis=-1)
