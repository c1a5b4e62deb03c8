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

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
from scipy.special import psi, xlogy

from ..base.probability import normalize
from ..base.arrays import Floats, Integers

if TYPE_CHECKING:
    from .policy import NoiseModel

_PIECE = 2**22  # numbers in memory at a time, for all annotators
_CELLS = 2**21  # … and for pairs
_BRANCHES = 16  # sequences of answers of an item
_Of = Callable[[Floats, Integers], Floats]  # of (pair, branch, class) and annotators


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


class Lookahead:
    """Possible posteriors of items once their pending labels have arrived.

    An item with pending labels has several possible posteriors, one for every sequence of answers,
    each with its probability. The information of one more answer is the mean over them; it
    decreases with pending labels, so that a plan does not spend everything on one item. The sixteen
    most probable sequences are kept.
    """

    def __init__(self, posterior: Floats) -> None:
        n_items, n_classes = posterior.shape
        self.posterior = posterior  # (item, class): without pending labels
        self.pending = np.zeros(n_items, dtype=np.int64)  # (item): pending labels
        self.remaining_entropy = entropy(posterior)  # (item): expected
        self.row = np.full(n_items, -1)  # (item): its row below
        self.weight = np.empty((0, _BRANCHES))  # (row, branch)
        self.branch = np.empty((0, _BRANCHES, n_classes))  # (row, branch, class)

    def information(self, item: Integers, annotator: Integers, noise_model: NoiseModel) -> Floats:
        """Return the expected information of answers: (pair)."""

        def gain(posterior: Floats, annotator: Integers) -> Floats:
            return information(
                posterior,
                noise_model.matrix[annotator][:, None],
                noise_model.noise[annotator][:, None],
            )

        return self._mean(item, annotator, gain)

    def accuracy(self, item: Integers) -> Floats:
        """Return the expected probability that the best class is the true one: (pair)."""
        return self._mean(item, item, lambda posterior, _: posterior.max(axis=-1))

    def accuracy_after(self, item: Integers, annotator: Integers, matrix: Floats) -> Floats:
        """Return the same after one more answer: (pair)."""
        return self._mean(
            item,
            annotator,
            lambda posterior, annotator: expected_accuracy(posterior, matrix[annotator][:, None]),
        )

    def request(self, item: Integers, annotator: Integers, matrix: Floats) -> None:
        """Add a pending label for each of these distinct items."""
        self.pending[item] += 1
        new = item[self.row[item] < 0]
        self.row[new] = len(self.weight) + np.arange(len(new))
        first = np.zeros((len(new), _BRANCHES))
        first[:, 0] = 1.0
        same = np.repeat(self.posterior[new][:, None], _BRANCHES, axis=1)
        self.weight = np.concatenate([self.weight, first])
        self.branch = np.concatenate([self.branch, same])
        n_classes = self.posterior.shape[1]
        step = max(1, _CELLS // (_BRANCHES * n_classes**2))
        for start in range(0, len(item), step):
            rows = self.row[item[start : start + step]]
            self._branch(rows, matrix[annotator[start : start + step]])
            remaining_entropy = (self.weight[rows] * entropy(self.branch[rows])).sum(axis=1)
            self.remaining_entropy[item[start : start + step]] = remaining_entropy

    def _branch(self, rows: Integers, matrix: Floats) -> None:
        # (row, branch, given class, true class), then branches and given classes as one axis
        joint = self.branch[rows][:, :, None] * matrix.swapaxes(1, 2)[:, None]
        joint = joint.reshape(len(rows), -1, matrix.shape[1])
        probability = joint.sum(axis=2)
        probability *= np.repeat(self.weight[rows], matrix.shape[2], axis=1)
        kept = np.argsort(-probability, axis=1)[:, :_BRANCHES]
        self.weight[rows] = normalize(np.take_along_axis(probability, kept, axis=1))
        self.branch[rows] = normalize(np.take_along_axis(joint, kept[:, :, None], axis=1))

    def _mean(self, item: Integers, annotator: Integers, of: _Of) -> Floats:
        """Return the mean of a function over the possible posteriors, pair by pair."""
        out = np.empty(len(item))
        n_classes = self.posterior.shape[1]
        pending = self.pending[item]
        for count in np.unique(pending).tolist():
            some = np.flatnonzero(pending == count)
            width = min(n_classes**count, _BRANCHES)  # no more sequences than that
            step = max(1, _CELLS // (n_classes**2 * width))
            for start in range(0, len(some), step):
                now = some[start : start + step]
                if count:
                    rows = self.row[item[now]]
                    posterior, weight = self.branch[rows, :width], self.weight[rows, :width]
                    out[now] = (weight * of(posterior, annotator[now])).sum(axis=1)
                else:
                    out[now] = of(self.posterior[item[now]][:, None], annotator[now])[:, 0]
        return out
