"""Posterior state of items and annotators before more labels are requested.

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

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from ..base.probability import normalize
from ..base.arrays import Array, Floats, Integers
from ..aggregation import aggregate
from ..aggregation.dawid_skene_map import pseudo_counts
from ..answers.annotations import Annotations
from ..aggregation.held_out import confusion_from_posterior
from ..registry import aggregators
from ..result import Aggregation
from .information import entropy

METHOD = "hierarchical[max_iter=5]"
_STRENGTH, _ACCURACY = 4.0, 0.7  # of the prior of an annotator
_TINY = 1e-12


@dataclass(frozen=True, eq=False)
class PosteriorState:
    """Posteriors of items and confusion matrices."""

    annotations: Annotations
    posterior: Floats  # (item, class)
    counts: Floats  # (annotator, true class, given class): of Dirichlets
    result: Aggregation
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


def fit(annotations: Annotations, seed: int = 0) -> Aggregation:
    """Return a fit that is stable with one or two labels per item."""
    votes = annotations.votes()
    spread = normalize(votes.sum(axis=0))
    return aggregate(annotations, METHOD, start=normalize(votes + spread), seed=seed)


def posterior_state(
    annotations: Annotations,
    result: Aggregation | None = None,
    probabilities: Floats | None = None,
    seed: int = 0,
) -> PosteriorState:
    """Return the posterior state of a result."""
    result = result or fit(annotations, seed)
    posterior = np.asarray(result.posterior)
    return PosteriorState(annotations, posterior, _counts(result), result, probabilities)


def pair_keys(item: Array, annotator: Array, n_annotators: int) -> Integers:
    """Return one number for every pair of an item and an annotator."""
    return item.astype(np.int64) * n_annotators + annotator


def _counts(result: Aggregation) -> Floats:
    """Return the counts behind confusion matrices, no label counted under itself."""
    annotations = result.annotations
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
    given = np.stack([np.bincount(cell, column, minlength=size) for column in without.T], axis=1)
    counts = given.reshape(annotations.n_annotators, n_classes, n_classes).swapaxes(1, 2)
    usual = pseudo_counts(1, _ACCURACY, n_classes).T
    pooled = normalize(counts.sum(axis=0) + usual)
    return counts + _STRENGTH * (usual + pooled) / 2
