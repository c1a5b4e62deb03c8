"""How far an annotator's labels follow the items, and how far they are from a spammer's.

Classes y of an annotator are compared with probabilities B[i, k] of the classes of their items that
do not depend on the annotator: the shares of the others' labels, or the known class. With
p[k], the share of class k in the labels, and Bc, B minus its mean over the annotator's items,

    T = Σ_i Bc[i, y_i]                                     what the labels gain from the items
    V = n/(n - 1) Σ_i [Σ_k p_k Bc[i, k]² - (Σ_k p_k Bc[i, k])²]    its variance if they are permuted
    F = n (1 - Σ_k p_k²) Σ_i Σ_k Bc[i, k]²
    r = T / sqrt(F),   e = 1 + F / V

r is a correlation with variance 1/(e - 1) when the labels ignore the items. With two classes it is
Pearson's and e = n; with K classes, e is up to (K - 1) n. Favourite classes do not change its
expectation. Correlations of numbers are computed within all groups at once.

A fitted model would weigh the others, but its parameters have seen the annotator's labels: in
crowds of guessers, correlations with a leave-one-out posterior of `dawid-skene-map` are 1.5
standard deviations above 0 on average, those with shares of labels are not.

The labels of a spammer do not depend on the truth: all rows of the confusion matrix are equal,
1·vᵀ. The nearest such matrix has the mean row as v, so the squared distance to it, relative to its
maximum, is the spam score

    score = Σ_t Σ_g (confusion[t, g] - mean_t confusion[t, g])² / (n_classes - 1)

0 for a spammer, 1 for a hammer. It is also 1 for an annotator who permutes the classes, and whose
labels are as informative; trace and accuracy separate the two. Mutual information measures in nats
how informative a label is, given the class prior.

With few labels the score of the estimated matrix is too high, hence an interval: rows have
Dirichlet posteriors, the mean and variance of the score are exact, and a Beta distribution with
these moments approximates it closely.

    V. C. Raykar, S. Yu. Ranking annotators for crowdsourced labeling tasks. Advances in Neural
    Information Processing Systems 24, 2011.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.special import betaincinv, entr

from ..answers.annotations import Annotations
from ..base.arrays import Floats, Integers
from ..base.probability import normalize
from .label_scores import sum_by

Mask = npt.NDArray[np.bool_]
Chunks = Iterable[tuple[Integers, Floats]]  # positions of annotations, (annotation, class)

PRIOR = 1.0  # pseudo-counts of a row of a confusion matrix, spread evenly over the given classes
_STEP = 2**16  # annotations in memory at a time
_CELLS = 2**22  # numbers in memory at a time


class ClassCorrelation(NamedTuple):
    """Correlations of labels and items; NaN where labels or items are all alike."""

    correlation: Floats  # (annotator)
    size: Floats  # (annotator): e, the number of labels that a correlation counts like
    n_labels: Integers  # (annotator): that were compared
    n_minor: Floats  # (annotator): labels outside the commonest class, by them or by the others


def known_chunks(annotations: Annotations, gold: Integers) -> Iterator[tuple[Integers, Floats]]:
    """Yield positions of annotations of items whose class is known, and these classes."""
    rows, item = np.eye(annotations.n_classes), annotations.item
    positions = np.flatnonzero(gold[item] >= 0)
    for start in range(0, len(positions), _STEP):
        part = positions[start : start + _STEP]
        yield part, rows[gold[item[part]]]


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
    label_counts = np.bincount(cell, minlength=n_annotators * n_classes).astype(float)
    label_counts = label_counts.reshape(n_annotators, n_classes)
    share, n = normalize(label_counts), label_counts.sum(axis=1)
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
    minor = [n - counts.max(axis=1, initial=0.0) for counts in (label_counts, first)]
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
    label_counts = (
        counts.sum(axis=0)[:, label].T - counts[rows, :, label]
    )  # (annotator, true class)
    true = counts.sum(axis=(0, 2)) - counts.sum(axis=2)
    q = (label_counts + 0.5) / (true + 0.5 * annotations.n_classes)
    total = np.zeros(annotations.n_annotators)
    for positions, probability in chunks:
        of_judged = judged[annotations.annotator[positions]]
        annotator = annotations.annotator[positions[of_judged]]
        expected = np.einsum("ik,ik->i", probability[of_judged], q[annotator])
        total += np.bincount(annotator, np.log(0.5 + 0.5 * expected), len(total))
    return total


def rating_correlations(group: Integers, x: Floats, y: Floats, n_groups: int) -> Floats:
    """Return the mean of Pearson's and Spearman's correlation within every group."""
    of_ranks = correlations(group, within_ranks(group, x), within_ranks(group, y), n_groups)
    return (correlations(group, x, y, n_groups) + of_ranks) / 2


def correlations(group: Integers, x: Floats, y: Floats, n_groups: int) -> Floats:
    """Return the correlation within every group; NaN where a variable is constant.

    >>> x, y = np.array([1.0, 2, 3, 5]), np.array([2.0, 4, 6, 1])
    >>> correlations(np.array([0, 0, 0, 1]), x, y, 2).round(3).tolist()
    [1.0, nan]
    """
    count = np.maximum(np.bincount(group, minlength=n_groups), 1)
    x, y = (values - (sum_by(group, values, n_groups) / count)[group] for values in (x, y))
    xx, xy, yy = (sum_by(group, values, n_groups) for values in (x * x, x * y, y * y))
    norm = np.sqrt(xx * yy)
    flat = norm <= 1e-12 * count
    return np.where(flat, np.nan, np.clip(xy / np.where(flat, 1, norm), -1, 1))


def within_ranks(group: Integers, values: Floats) -> Floats:
    """Return the rank of every value within its group, the mean rank of equal values.

    >>> within_ranks(np.array([0, 0, 0, 1]), np.array([5.0, 2, 5, 7])).tolist()
    [1.5, 0.0, 1.5, 0.0]
    """
    order = np.lexsort((values, group))
    sorted_group, sorted_values = group[order], values[order]
    new_group = np.ones(len(order), dtype=bool)
    new_group[1:] = sorted_group[1:] != sorted_group[:-1]
    start = np.maximum.accumulate(np.where(new_group, np.arange(len(order)), 0))
    tied = new_group.copy()
    tied[1:] |= sorted_values[1:] != sorted_values[:-1]
    run = np.cumsum(tied) - 1
    begins = np.flatnonzero(tied)
    middle = begins + (np.diff(begins, append=len(order)) - 1) / 2
    ranks = np.empty(len(order))
    ranks[order] = middle[run] - start if len(order) else ranks
    return ranks


class Interval(NamedTuple):
    """The mean of a score and its credible interval."""

    mean: Floats  # (annotator)
    low: Floats  # (annotator)
    high: Floats  # (annotator)


def spam_score(confusion: Floats, *, squared: bool = True) -> Floats:
    """Return how far every annotator is from a spammer: (annotator), between 0 and 1.

    `squared=False` gives the distance instead of its square. With a single class the score is NaN.

    >>> spam_score(np.array([[[1.0, 0], [0, 1]], [[0.9, 0.1], [0.9, 0.1]], [[0, 1], [1, 0]]]))
    array([1., 0., 1.])
    """
    n_classes = confusion.shape[-1]
    if n_classes < 2:
        return np.full(len(confusion), np.nan)
    away = confusion - confusion.mean(axis=1, keepdims=True)
    score = np.einsum("atg,atg->a", away, away) / (n_classes - 1)
    return score if squared else np.sqrt(score)


def trace(confusion: Floats, prior: Floats | None = None, *, normalized: bool = False) -> Floats:
    """Return the trace of every confusion matrix: (annotator), between 0 and the number of classes.

    Normalized it is the mean recall over the classes. With a `prior` (true class), it is the
    probability of a correct label.

    >>> trace(np.array([[[0.9, 0.1], [0.3, 0.7]]]), np.array([0.75, 0.25])).round(3)
    array([0.85])
    """
    right = np.einsum("att->at", confusion)
    if prior is not None:
        return right @ prior
    return right.mean(axis=1) if normalized else right.sum(axis=1)


def mutual_information(confusion: Floats, prior: Floats) -> Floats:
    """Return the mutual information of label and truth in nats: (annotator).

    >>> mutual_information(np.array([[[0.0, 1.0], [1.0, 0.0]]]), np.array([0.5, 0.5])).round(4)
    array([0.6931])
    """
    marginal = np.einsum("t,atg->ag", prior, confusion)
    lost = np.einsum("t,atg->a", prior, entr(confusion))
    return np.maximum(entr(marginal).sum(axis=1) - lost, 0.0)


def spam_interval(counts: Floats, *, prior: float = PRIOR, confidence: float = 0.9) -> Interval:
    """Return credible intervals of the spam scores.

    Parameters
    ----------
    counts
        Expected counts under the posterior: (annotator, true class, given class).
    prior
        Pseudo-counts of every row, spread evenly over the given classes.
    confidence
        The probability that an interval covers.
    """
    n_annotators, n_classes, _ = counts.shape
    out = np.full((3, n_annotators), np.nan)
    tail = np.array([[(1 - confidence) / 2], [(1 + confidence) / 2]])
    step = max(1, _CELLS // max(n_classes, 1) ** 3)
    for start in range(0, n_annotators if n_classes > 1 else 0, step):
        part = slice(start, start + step)
        mean, variance = spam_moments(counts[part] + prior / n_classes)
        mean = np.clip(mean, 1e-12, 1 - 1e-12)
        size = np.maximum(mean * (1 - mean) / np.maximum(variance, 1e-18) - 1, 1e-6)
        out[:, part] = np.stack([mean, *betaincinv(mean * size, (1 - mean) * size, tail)])
    return Interval(*out)


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

    def spread(left: Floats, right: Floats) -> Floats:
        """Return the covariance of left·y and right·y."""
        product = _dot(mean * left, right) - _dot(mean, left) * _dot(mean, right)
        return product / (total + 1)

    square = rows * (rows + 1)  # moments are these over rising powers of the total
    second = square.sum(axis=2)
    power2 = total * (total + 1)
    power3, power4 = power2 * (total + 2), power2 * (total + 2) * (total + 3)
    third = rows * (second[:, :, None] + 2 * (rows + 1)) / power3[:, :, None]  # E[x_g |x|²]
    third -= mean * (second / power2)[:, :, None]  # the covariance of x_g and |x|²
    fourth = second**2 + (square * ((rows + 2) * (rows + 3) - square)).sum(axis=2)
    length = fourth / power4 - (second / power2) ** 2  # the variance of |x|²
    length += 4 * spread(mean, mean) - 4 * _dot(third, mean)  # … and of |y|²
    mixed = _dot(third, away) - 2 * spread(mean, away)  # the covariance of away·y and |y|²
    variance = (4 * spread(away, away) + 4 * part * mixed + part**2 * length).sum(axis=1)

    flat = 1 / (total + 1)
    cross = np.einsum("atg,aug->atu", mean, mean)
    skew = np.einsum("atg,aug->atu", mean, mean**2)
    traces = (cross - skew - skew.swapaxes(1, 2) + cross**2) * flat[:, :, None] * flat[:, None, :]
    pairs = (traces.sum(axis=(1, 2)) - np.einsum("att->a", traces)) / 2
    variance += 4 * pairs / n_classes**2

    error = (1 - _dot(mean, mean)) / (total + 1)  # E|y|²
    expected = (_dot(away, away) + part * error).sum(axis=1)
    return expected / (n_classes - 1), variance / (n_classes - 1) ** 2


def _dot(left: Floats, right: Floats) -> Floats:
    return np.einsum("atg,atg->at", left, right)
