"""What is believed about items and annotators before more is asked.

The belief about items is the posterior of a fit. Unless one is given, it comes from five rounds
of `hierarchical`, begun at the votes with one more vote spread as all votes are. With one or two
labels per item more rounds can end with everything in one class; an early end does not.

A label teaches about its annotator only as far as other labels have told the truth of its item.
So every label is counted under the posterior without that label, and weighs as much as that
posterior is sure:

    without[t]           ∝ posterior[i, t] / confusion[a, t, label]
    weight               = 1 - entropy of without / log n_classes
    counts[a, t, label] += weight * without[t]

Variational counts take a label on an item that nobody else has labelled for full evidence that
its annotator is right; these take it for none. Everybody begins with four counts for every class:
half of them on what seven in ten would say, half where the crowd puts its labels.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from .._probability import normalize
from .._relation import Array, Floats, Integers
from ..aggregation import aggregate
from ..aggregation.dawid_skene_map import pseudo_counts
from ..annotations import Annotations
from ..heldout import confusion_from_posterior
from ..registry import aggregators
from ..result import Aggregation
from ._information import entropy

__all__ = ["METHOD", "PosteriorState", "fit", "posterior_state"]

METHOD = "hierarchical[max_iter=5]"
_STRENGTH, _ACCURACY = 4.0, 0.7  # of what is believed of somebody new
_TINY = 1e-12


@dataclass(frozen=True, eq=False)
class PosteriorState:
    """What is believed before more is asked."""

    annotations: Annotations
    posterior: Floats  # (item, class)
    counts: Floats  # (annotator, true class, given class): of Dirichlets
    probabilities: Floats | None = None  # (item, class): what a classifier says

    @cached_property
    def confusion(self) -> Floats:
        """What annotators make of every class, in the mean: (annotator, true, given)."""
        return normalize(self.counts)

    @cached_property
    def known_pairs(self) -> Integers:
        """Pairs that are known already, in ascending order: item * n_annotators + annotator."""
        return pair_keys(
            self.annotations.item, self.annotations.annotator, self.annotations.n_annotators
        )

    def accuracy(self) -> float:
        """Return the share of items whose best class is expected to be the true one."""
        return float(self.posterior.max(axis=1).mean()) if len(self.posterior) else 1.0

    def on(self, items: Integers) -> PosteriorState:
        """Return the same about some of the items."""
        return replace(
            self,
            annotations=self.annotations.take(items),
            posterior=self.posterior[items],
            probabilities=None if self.probabilities is None else self.probabilities[items],
        )


def fit(annotations: Annotations, seed: int = 0) -> Aggregation:
    """Return a fit that also holds with one or two labels per item."""
    votes = annotations.votes()
    spread = normalize(votes.sum(axis=0))
    return aggregate(annotations, METHOD, start=normalize(votes + spread), seed=seed)


def posterior_state(
    annotations: Annotations,
    result: Aggregation | None = None,
    probabilities: Floats | None = None,
    seed: int = 0,
) -> PosteriorState:
    """Return what a result lets one expect of items and annotators."""
    found = fit(annotations, seed) if result is None else result
    return PosteriorState(annotations, np.asarray(found.posterior), _evidence(found), probabilities)


def pair_keys(item: Array, annotator: Array, n_annotators: int) -> Integers:
    """Return one number for every pair of an item and an annotator."""
    return item.astype(np.int64) * n_annotators + annotator


def _evidence(result: Aggregation) -> Floats:
    """Return counts of what annotators make of every class, nobody judged by their own label."""
    annotations = result.annotations
    n_classes = annotations.n_classes
    confusion = aggregators.create(result.method).confusion(result.params)
    if confusion is None:
        confusion = confusion_from_posterior(result)
    given = confusion[annotations.annotator, :, annotations.label]  # (annotation, true class)
    log = np.log(np.maximum(result.posterior[annotations.item], _TINY)) - np.log(
        np.maximum(given, _TINY)
    )
    log -= log.max(axis=1, keepdims=True, initial=-np.inf)
    without = normalize(np.exp(log))
    without *= (1 - entropy(without) / max(np.log(n_classes), _TINY))[:, None]
    cell = annotations.annotator * np.int64(n_classes) + annotations.label
    size = annotations.n_annotators * n_classes
    given = np.stack([np.bincount(cell, column, minlength=size) for column in without.T], axis=1)
    counts = given.reshape(annotations.n_annotators, n_classes, n_classes).swapaxes(1, 2)
    usual = pseudo_counts(1, _ACCURACY, n_classes).T
    crowd = normalize(counts.sum(axis=0) + usual)
    return counts + _STRENGTH * (usual + crowd) / 2
