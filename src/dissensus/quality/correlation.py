"""How far the classes that annotators give follow the items.

An annotator's labels y are compared with probabilities B[i, k] of the classes of their items that
do not depend on the annotator: the shares of the others' labels, or the known class. With
p[k], the share of class k in the labels, and Bc, B minus its mean over the annotator's items,

    T = Σ_i Bc[i, y_i]                                     what the labels gain from the items
    V = n/(n - 1) Σ_i [Σ_k p_k Bc[i, k]² - (Σ_k p_k Bc[i, k])²]    its variance if they are permuted
    F = n (1 - Σ_k p_k²) Σ_i Σ_k Bc[i, k]²
    r = T / sqrt(F),   e = 1 + F / V

r is a correlation with variance 1/(e - 1) when the labels ignore the items. With two classes it is
Pearson's and e = n; with K classes, e is up to (K - 1) n. Favourite classes do not change its
expectation.

A fitted model would weigh the others, but its parameters have seen the annotator's labels: in
crowds of guessers, correlations with a leave-one-out posterior of `dawid-skene-map` are 1.5
standard deviations above 0 on average, those with shares of labels are not.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ..base.probability import normalize
from ..base.arrays import Floats, Integers
from ..answers.annotations import Annotations

Mask = npt.NDArray[np.bool_]
Chunks = Iterable[tuple[Integers, Floats]]  # positions of annotations, (annotation, class)

_STEP = 2**16  # annotations in memory at a time


class ClassCorrelation(NamedTuple):
    """Correlations of labels and items; NaN where labels or items are all alike."""

    correlation: Floats  # (annotator)
    size: Floats  # (annotator): e, the number of labels that a correlation counts like
    n_labels: Integers  # (annotator): that were compared
    n_minor: Floats  # (annotator): labels outside the commonest class, by them or by the others


def known_chunks(annotations: Annotations, known: Integers) -> Iterator[tuple[Integers, Floats]]:
    """Yield positions of annotations of items whose class is known, and these classes."""
    rows, item = np.eye(annotations.n_classes), annotations.item
    positions = np.flatnonzero(known[item] >= 0)
    for first in range(0, len(positions), _STEP):
        now = positions[first : first + _STEP]
        yield now, rows[known[item[now]]]


def class_correlation(annotations: Annotations, compared: Mask, chunks: Chunks) -> ClassCorrelation:
    """Return the correlation of every annotator's labels with probabilities of the classes.

    Parameters
    ----------
    annotations
        The annotations.
    compared
        Which of them are compared: (annotation).
    chunks
        Their positions, some at a time, and the probabilities of the classes of their items.
    """
    n_annotators, n_classes = annotations.n_annotators, annotations.n_classes
    cell = (
        annotations.annotator[compared].astype(np.int64) * n_classes + annotations.label[compared]
    )
    given = np.bincount(cell, minlength=n_annotators * n_classes).astype(float)
    given = given.reshape(n_annotators, n_classes)
    share, n = normalize(given), given.sum(axis=1)
    first, second = np.zeros((2, n_annotators, n_classes))  # sums of B and B² over the items
    own, crossed = np.zeros((2, n_annotators))
    for positions, probability in chunks:
        annotator = annotations.annotator[positions]
        for k in range(n_classes):
            column = probability[:, k]
            first[:, k] += np.bincount(annotator, column, n_annotators)
            second[:, k] += np.bincount(annotator, column**2, n_annotators)
        gained = probability[np.arange(len(positions)), annotations.label[positions]]
        own += np.bincount(annotator, gained, n_annotators)
        expected = np.einsum("ik,ik->i", probability, share[annotator])
        crossed += np.bincount(annotator, expected**2, n_annotators)
    with np.errstate(invalid="ignore", divide="ignore"):
        squares = second - first**2 / n[:, None]  # Σ_i Bc[i, k]²
        level = np.einsum("ak,ak->a", share, first)
        gain = own - level
        within = np.einsum("ak,ak->a", share, squares) - (crossed - level**2 / n)
        variance = n / (n - 1) * within
        scale = n * (1 - np.einsum("ak,ak->a", share, share)) * squares.sum(axis=1)
        defined = (n > 1) & (scale > 1e-9 * n) & (variance > 1e-12 * n)
        correlation = np.where(defined, np.clip(gain / np.sqrt(scale), -1, 1), np.nan)
        size = np.where(defined, 1 + scale / variance, np.nan)
    minor = [n - counts.max(axis=1, initial=0.0) for counts in (given, first)]
    return ClassCorrelation(correlation, size, n.astype(np.int64), np.minimum(*minor))


def log_typical(
    annotations: Annotations, chunks: Chunks, counts: Floats, judged: Mask, label: Integers
) -> Floats:
    """Return how well a typical annotator explains that somebody always gives one class.

    The sum of log(1/2 + q/2) over the items of every annotator, where q is the probability that
    the others' pooled confusion matrix gives the class: (annotator), 0 for those not judged.

    Parameters
    ----------
    annotations, chunks
        The annotations, and the probabilities of the classes of their items.
    counts
        Labels by true class: (annotator, true class, given class).
    judged
        Which annotators to judge: (annotator).
    label
        The class that each of them always gives: (annotator).
    """
    rows = np.arange(annotations.n_annotators)
    given = counts.sum(axis=0)[:, label].T - counts[rows, :, label]  # (annotator, true class)
    true = counts.sum(axis=(0, 2)) - counts.sum(axis=2)
    q = (given + 0.5) / (true + 0.5 * annotations.n_classes)
    total = np.zeros(annotations.n_annotators)
    for positions, probability in chunks:
        kept = judged[annotations.annotator[positions]]
        annotator = annotations.annotator[positions[kept]]
        expected = np.einsum("ik,ik->i", probability[kept], q[annotator])
        total += np.bincount(annotator, np.log(0.5 + 0.5 * expected), len(total))
    return total
