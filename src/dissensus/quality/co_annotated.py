"""Evidence of copying for every pair of annotators, from the items that both labelled.

The cost grows with the label pairs of items. Labels that an annotator gave to an item more than
once are left out.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from ..base.probability import normalize
from ..base.arrays import Array, Floats, Integers
from ..aggregation.dawid_skene_map import pseudo_counts
from ..metrics.co_annotation import PairIndex, co_annotating, label_pairs
from ..metrics.votes import repeats_previous
from ..answers.annotations import Annotations
from .leave_one_out import LeaveOneOut

# Shares of copied labels that are tried.
_SHARES = np.array([0.01, 0.02, 0.04, 0.07, *np.arange(0.1, 0.95, 0.1), 0.15, 0.97])
_STRENGTH, _ACCURACY = 1.0, 0.7  # of the prior on confusion matrices
_CELLS = 2**18  # numbers in memory at a time


class CoAnnotatedPairs(NamedTuple):
    """Pairs of annotators with enough common items, and the labels to compare."""

    rows: Integers  # (row): positions of annotations, by item
    size: Integers  # (item): how many rows it has
    one: Integers  # (pair)
    other: Integers  # (pair)
    sampled: float  # share of the items


class PairEvidence(NamedTuple):
    """Agreement of every pair compared with independence, under one consensus."""

    common: Integers
    equal: Integers
    errors: Integers
    expected: Floats
    deviation: Floats
    expected_errors: Floats
    share: Floats
    z: Floats


def find_co_annotated(
    annotations: Annotations, min_common: int, max_label_pairs: int, seed: int
) -> CoAnnotatedPairs:
    """Return the pairs to compare: labels given once, by annotators with enough of them."""
    item = annotations.item.astype(np.int64)
    again = repeats_previous(annotations)
    once = ~again & ~np.append(again[1:], False)[: len(again)]
    labels = np.bincount(annotations.annotator[once], minlength=annotations.n_annotators)
    once &= (labels >= min_common)[annotations.annotator]
    size = np.bincount(item[once], minlength=annotations.n_items)
    share = min(max_label_pairs / max(int((size * (size - 1) // 2).sum()), 1), 1.0)
    if share < 1:
        chosen = np.random.default_rng(seed).random(annotations.n_items) < share
        once &= chosen[item]
        size = np.where(chosen, size, 0)
    rows = np.flatnonzero(once)
    start = np.concatenate([[0], np.cumsum(size)])
    labelled: sparse.csr_array[Any, Any] = sparse.csr_array(
        (np.ones(len(rows), dtype=np.int32), annotations.annotator[rows].astype(np.int32), start),
        shape=(annotations.n_items, annotations.n_annotators),
    )
    return CoAnnotatedPairs(rows, size, *co_annotating(labelled, min_common), share)


class PairStatistics:
    """Sums over the label pairs of every pair of annotators, under one consensus."""

    def __init__(
        self, annotations: Annotations, leave_out: LeaveOneOut, pairs: CoAnnotatedPairs
    ) -> None:
        n_classes = annotations.n_classes
        prior = pseudo_counts(_STRENGTH, _ACCURACY, n_classes).T
        # (annotator, true class, given class)
        confusion = normalize(leave_out.comparison.counts + prior)
        self.annotations, self.leave_out = annotations, leave_out
        # The probability that both give one label: (pair, true class).
        self.same = np.empty((len(pairs.one), n_classes))
        step = max(1, _CELLS // n_classes**2)
        for first in range(0, len(pairs.one), step):
            now = slice(first, first + step)
            one, other = confusion[pairs.one[now]], confusion[pairs.other[now]]
            self.same[now] = np.einsum("ptg,ptg->pt", one, other)
        self.given = np.ascontiguousarray(confusion.swapaxes(1, 2)).reshape(-1, n_classes)
        self.sums = np.zeros((6, len(pairs.one)))
        self.fit = np.zeros((len(_SHARES), len(pairs.one)))

    def add(self, one: Integers, other: Integers, pair: Integers) -> None:
        """Add label pairs: the positions of both annotations, and the pair of annotators."""
        annotations, n_pairs = self.annotations, len(self.same)
        posterior = self.leave_out.without_pair(one, other)  # (label pair, true class)
        label, best = annotations.label[one], posterior.argmax(axis=1)
        same = label == annotations.label[other]
        expected = np.einsum("mt,mt->m", posterior, self.same[pair])
        right = self.probability(one, best)
        right *= self.probability(other, best)
        wrong = expected - np.einsum("mt,mt->m", posterior, right)
        variance = expected * (1 - expected)
        values = (np.ones(len(pair)), same, same & (label != best), expected, variance, wrong)
        for position, value in enumerate(values):
            self.sums[position] += np.bincount(pair, value, minlength=n_pairs)
        left, right = (self.probability(side[same], label[same]) for side in (one, other))
        either = np.einsum("mt,mt->m", posterior[same], left + right) / 2
        # How much more probable an equal label is as a copy than independently.
        gain = either / np.einsum("mt,mt,mt->m", posterior[same], left, right) - 1
        for position, copied in enumerate(_SHARES):
            fit = np.log1p(copied * gain)
            self.fit[position] += np.bincount(pair[same], fit, minlength=n_pairs)

    def probability(self, position: Integers, label: Array) -> Floats:
        """Return the probability of labels for every true class: (annotation, true class)."""
        annotator = self.annotations.annotator[position].astype(np.int64)
        return self.given.take(annotator * self.annotations.n_classes + label, axis=0)

    def evidence(self) -> PairEvidence:
        """Return the evidence for copying."""
        common, equal, errors = (np.round(value).astype(np.int64) for value in self.sums[:3])
        fit = self.fit + np.log1p(-_SHARES)[:, None] * (common - equal)
        z = np.sqrt(2 * np.maximum(fit.max(axis=0), 0.0))
        copied = np.where(z > 0, _SHARES[fit.argmax(axis=0)], 0.0)
        expected, variance, wrong = self.sums[3:]
        return PairEvidence(common, equal, errors, expected, np.sqrt(variance), wrong, copied, z)


def pair_evidence(
    annotations: Annotations,
    leave_outs: list[LeaveOneOut],
    pairs: CoAnnotatedPairs,
    progress: Callable[[int, int], None],
) -> list[PairEvidence]:
    """Return how well a share of copied labels explains every pair, under every consensus."""
    statistics = [PairStatistics(annotations, one, pairs) for one in leave_outs]
    index = PairIndex(pairs.one, pairs.other, annotations.n_annotators)
    done, total = 0, int((pairs.size * (pairs.size - 1) // 2).sum())
    step = max(1, _CELLS // annotations.n_classes, len(pairs.one))
    for left, right in label_pairs(pairs.size, step):
        one, other = pairs.rows[left], pairs.rows[right]
        pair = index.find(annotations.annotator[one], annotations.annotator[other])
        known = np.flatnonzero(pair >= 0)
        for each in statistics:
            each.add(one[known], other[known], pair[known])
        done += len(left)
        progress(done, total)
    return [each.evidence() for each in statistics]
