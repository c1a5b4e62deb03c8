"""Information of an answer, and the posterior state before it: what a plan knows.

The mutual information of an answer with the truth of an item and with the annotator is in nats. An
item is of class t with probability `posterior[t]`; the annotator then answers g with probability
`matrix[t, g]`. The mutual information of answer and truth is

    information = entropy of (posterior @ matrix) - posterior @ noise

with `noise[t]` the entropy of row t. Where the matrix is itself uncertain, with Dirichlet rows, its
expected entropies replace the entropies of its mean; the difference is information about the
annotator.

    N. Houlsby, F. Huszár, Z. Ghahramani, M. Lengyel. Bayesian active learning for classification
    and preference learning. arXiv:1112.5745, 2011.

The posterior of items is that of a fit: by default five iterations of `hierarchical`, started at
the votes with one more vote spread as all votes are. With one or two labels per item more
iterations can put everything into one class; early stopping does not.

A label is informative about its annotator only as far as other labels determine the truth of its
item. So every label is counted under the posterior without that label, weighted by its certainty:

    without[t]           ∝ posterior[i, t] / confusion[a, t, label]
    weight               = 1 - entropy of without / log n_classes
    counts[a, t, label] += weight * without[t]

Variational counts take the only label of an item for full evidence that its annotator is right;
these take it for none. The prior is four counts for every class: half of them of an annotator with
accuracy 0.7, half distributed as the labels of all annotators.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from scipy.special import psi, xlogy

from ..aggregation import aggregate
from ..aggregation.aggregation import ClassAggregation
from ..aggregation.dawid_skene import pseudo_counts
from ..aggregation.held_out import confusion_from_posterior
from ..answers.annotations import Annotations
from ..base.arrays import Array, Floats, Integers
from ..base.probability import normalize
from ..registry import aggregators

if TYPE_CHECKING:
    from .policies import NoiseModel

METHOD = "hierarchical[max_iter=5]"

_PIECE = 2**22  # numbers in memory at a time, for all annotators
_CELLS = 2**21  # … and for pairs
_BRANCHES = 16  # sequences of answers of an item
_STRENGTH, _ACCURACY = 4.0, 0.7  # of the prior of an annotator
_TINY = 1e-12
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
    for start in range(0, len(posterior), step):
        part = posterior[start : start + step]
        answer = (part @ wide).reshape(len(part), n_annotators, n_classes)
        out[start : start + step] = entropy(answer) - part @ noise.T
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
        weight = np.zeros((len(new), _BRANCHES))
        weight[:, 0] = 1.0
        branch = np.repeat(self.posterior[new][:, None], _BRANCHES, axis=1)
        self.weight = np.concatenate([self.weight, weight])
        self.branch = np.concatenate([self.branch, branch])
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
        likeliest = np.argsort(-probability, axis=1)[:, :_BRANCHES]
        self.weight[rows] = normalize(np.take_along_axis(probability, likeliest, axis=1))
        self.branch[rows] = normalize(np.take_along_axis(joint, likeliest[:, :, None], axis=1))

    def _mean(self, item: Integers, annotator: Integers, of: _Of) -> Floats:
        """Return the mean of a function over the possible posteriors, pair by pair."""
        out = np.empty(len(item))
        n_classes = self.posterior.shape[1]
        pending = self.pending[item]
        for count in np.unique(pending).tolist():
            positions = np.flatnonzero(pending == count)
            width = min(n_classes**count, _BRANCHES)  # no more sequences than that
            step = max(1, _CELLS // (n_classes**2 * width))
            for start in range(0, len(positions), step):
                part = positions[start : start + step]
                if count:
                    rows = self.row[item[part]]
                    posterior, weight = self.branch[rows, :width], self.weight[rows, :width]
                    out[part] = (weight * of(posterior, annotator[part])).sum(axis=1)
                else:
                    out[part] = of(self.posterior[item[part]][:, None], annotator[part])[:, 0]
        return out


@dataclass(frozen=True, eq=False)
class PosteriorState:
    """Posteriors of items and confusion matrices."""

    annotations: Annotations
    posterior: Floats  # (item, class)
    counts: Floats  # (annotator, true class, given class): of Dirichlets
    result: ClassAggregation
    probabilities: Floats | None = None  # (model, item, class): of classifiers

    @cached_property
    def confusion(self) -> Floats:
        """Mean confusion matrices: (annotator, true, given)."""
        return normalize(self.counts)

    @cached_property
    def known_pairs(self) -> Integers:
        """Labelled pairs in ascending order: item * n_annotators + annotator."""
        return pair_keys(
            self.annotations.item, self.annotations.annotator, self.annotations.n_annotators
        )

    def accuracy(self) -> float:
        """Return the share of items whose best class is expected to be the true one."""
        return float(self.posterior.max(axis=1).mean()) if len(self.posterior) else 1.0

    def take(self, items: Integers) -> PosteriorState:
        """Return the state of some of the items."""
        return replace(
            self,
            annotations=self.annotations.take(items),
            posterior=self.posterior[items],
            probabilities=None if self.probabilities is None else self.probabilities[:, items],
        )


def fit(annotations: Annotations, seed: int = 0) -> ClassAggregation:
    """Return a fit that is stable with one or two labels per item."""
    votes = annotations.votes()
    spread = normalize(votes.sum(axis=0))
    return aggregate(annotations, METHOD, start=normalize(votes + spread), seed=seed)


def posterior_state(
    annotations: Annotations,
    result: ClassAggregation | None = None,
    probabilities: Floats | None = None,
    seed: int = 0,
) -> PosteriorState:
    """Return the posterior state of a result."""
    result = result or fit(annotations, seed)
    posterior = np.asarray(result.posterior)
    return PosteriorState(
        annotations, posterior, counts=_counts(result), result=result, probabilities=probabilities
    )


def pair_keys(item: Array, annotator: Array, n_annotators: int) -> Integers:
    """Return one number for every pair of an item and an annotator."""
    return item.astype(np.int64) * n_annotators + annotator


def _counts(result: ClassAggregation) -> Floats:
    """Return the counts behind confusion matrices, no label counted under itself."""
    annotations = result.answers
    n_classes = annotations.n_classes
    confusion = aggregators.create(result.method).confusion(result.params)
    if confusion is None:
        confusion = confusion_from_posterior(annotations, result.posterior)
    likelihood = confusion[annotations.annotator, :, annotations.label]  # (annotation, true)
    log = np.log(np.maximum(result.posterior[annotations.item], _TINY))
    log -= np.log(np.maximum(likelihood, _TINY))
    log -= log.max(axis=1, keepdims=True, initial=-np.inf)
    without = normalize(np.exp(log))
    without *= (1 - entropy(without) / max(np.log(n_classes), _TINY))[:, None]
    cell = annotations.annotator * np.int64(n_classes) + annotations.label
    size = annotations.n_annotators * n_classes
    cells = np.stack([np.bincount(cell, column, minlength=size) for column in without.T], axis=1)
    counts = cells.reshape(annotations.n_annotators, n_classes, n_classes).swapaxes(1, 2)
    usual = pseudo_counts(1, _ACCURACY, n_classes).T
    pooled = normalize(counts.sum(axis=0) + usual)
    return counts + _STRENGTH * (usual + pooled) / 2
