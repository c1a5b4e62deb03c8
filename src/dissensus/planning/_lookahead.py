"""Lookahead posteriors: possible posteriors of items once their pending labels have arrived.

An item with pending labels has several possible posteriors, one for every sequence of answers, each
with its probability. The information of one more answer is the mean over them; it decreases with
pending labels, so that a plan does not spend everything on one item. The sixteen most probable
sequences are kept.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from .._probability import normalize
from .._relation import Floats, Integers
from ._information import entropy, expected_accuracy, information
from .policy import NoiseModel

_BRANCHES = 16  # sequences of answers of an item
_PIECE = 2**21  # numbers in memory at a time
_Of = Callable[[Floats, Integers], Floats]  # of (pair, branch, class) and annotators


class Lookahead:
    """Possible posteriors of items."""

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
        step = max(1, _PIECE // (_BRANCHES * n_classes**2))
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
            step = max(1, _PIECE // (n_classes**2 * width))
            for start in range(0, len(some), step):
                now = some[start : start + step]
                if count:
                    rows = self.row[item[now]]
                    posterior, weight = self.branch[rows, :width], self.weight[rows, :width]
                    out[now] = (weight * of(posterior, annotator[now])).sum(axis=1)
                else:
                    out[now] = of(self.posterior[item[now]][:, None], annotator[now])[:, 0]
        return out
