"""Scores of classes, of numbers and of annotators' own labels, of all items and resampled.

Every score comes from sums over items, so a bootstrap over items needs only those sums under other
weights: how often each item was drawn. For classes the weights are multinomial and are drawn for a
chunk of items at a time, so that memory is bounded. Of numbers, errors and correlations are such
sums, and so are the ranks of Spearman's correlation: the rank of a value is the weight of all
smaller values plus half of that of equal ones.

Predictions of single annotators are scored as in the shared task LeWiDi-2025, beside its Manhattan
and Wasserstein distances; every item counts once, however many annotators labelled it:

    error_rate  mean over items of the share of annotators whose label was not predicted
    anad        average normalized absolute distance, for ordered classes: mean over items of the
                mean distance in steps between label and prediction, divided by the number of
                classes. The organisers' script divides by this number (11 and 6 points), so the
                largest possible value is slightly below 1.

Where annotators give sets of options, each option is a question of its own with the answers no and
yes. The Manhattan distance of an item is the mean over options of |p_yes - q_yes| + |p_no - q_no|;
its error rate is the mean over options and annotators.

    E. Leonardelli et al. LeWiDi-2025 at NLPerspectives: the third edition of the learning with
    disagreements shared task. 2025. arXiv:2510.08460
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse

from ..answers.annotations import Annotations
from ..base.arrays import Array, Floats, Integers
from ..base.names import Names, as_names, as_values, indices_of, text
from ..base.probability import TIE
from ..errors import DataError
from ..result import Predictions

# Those that need a posterior come last.
CLASS_SCORES = ("accuracy", "accuracy_as_labelled", "macro_f1", "log_loss", "brier", "ece")
DISTANCE = "distance"  # only where classes are ordered
_BINS = 15
_LEAST_PROBABILITY = 1e-15
_CELLS = 2**19  # weights, or probabilities, in memory at a time
_MEANS = ("accuracy", "accuracy_as_labelled", "log_loss", "brier", DISTANCE)  # over items
NUMBER_SCORES = ("mae", "rmse", "pearson", "spearman")
_CONSTANT = 1e-12  # relative variance below which values are constant


def ranks(classes: Names) -> Integers:
    """Return the rank of every class: by value where classes are numbers, else by position.

    >>> from dissensus.base.names import as_names
    >>> ranks(as_names(["-1", "1", "0"])).tolist()
    [0, 2, 1]
    """
    value = as_values(classes)
    return np.arange(len(classes)) if value is None else value.argsort().argsort()


def annotator_errors(annotations: Annotations, predicted: Floats) -> dict[str, float]:
    """Return the error rate, and the distance where classes are ordered.

    Parameters
    ----------
    annotations
        The labels.
    predicted
        The predicted label of every annotation as a distribution: (annotation, class); m tied
        classes have 1/m each.

    Examples
    --------
    >>> annotations = Annotations.from_columns("aab", "xyx", "135", classes="12345")
    >>> annotator_errors(annotations, np.eye(5)[[0, 3, 2]])
    {'error_rate': 0.75}
    """
    label = annotations.label.astype(np.int64)
    wrong = 1 - predicted[np.arange(len(label)), label]
    scores = {"error_rate": _mean_over_items(annotations.item, wrong)}
    if annotations.scale == "ordinal":
        rank = ranks(annotations.classes)
        steps = np.abs(rank[label][:, None] - rank)
        distance = (predicted * steps).sum(axis=1) / annotations.n_classes
        scores["anad"] = _mean_over_items(annotations.item, distance)
    return scores


def multilabel_manhattan(p: ArrayLike, annotations: Annotations) -> float:
    """Return the mean Manhattan distance of the probabilities of options.

    Parameters
    ----------
    p
        Probability that an annotator gives an option: (item, class), in the order of
        `annotations.items` and `annotations.classes`; rows need not sum to one.
    annotations
        One row for every option that an annotator gave.

    Examples
    --------
    >>> annotations = Annotations.from_columns("aaa", "xxy", "011")
    >>> multilabel_manhattan([[0.5, 0.5]], annotations)  # x gave both, y the second
    0.5
    """
    p = np.asarray(p, dtype=np.float64)
    shape = (annotations.n_items, annotations.n_classes)
    if p.shape != shape or not ((p >= 0) & (p <= 1)).all():
        raise DataError(f"probabilities of options are (item, class), here {shape}, from 0 to 1")
    pair, options = _options(annotations)
    item = pair // annotations.n_annotators
    size = np.bincount(item, minlength=len(p))
    labelled = size > 0
    total = np.stack([np.bincount(item, column, len(p)) for column in options.T], axis=1)
    share = total[labelled] / size[labelled, None]
    return float(2 * np.abs(p[labelled] - share).mean())


def multilabel_error_rate(predicted: Annotations, annotations: Annotations) -> float:
    """Return the mean error rate of predicted sets of options.

    Parameters
    ----------
    predicted
        One row for every option that an annotator is predicted to give; an annotator without rows
        on an item is predicted to give none.
    annotations
        One row for every option that an annotator gave.

    Examples
    --------
    >>> annotations = Annotations.from_columns("aaa", "xxy", "011")
    >>> multilabel_error_rate(Annotations.from_columns("aa", "xy", "01"), annotations)
    0.25
    """
    pair, options = _options(annotations)
    guess = np.zeros_like(options)
    positions = (
        indices_of(own_names, true_names)
        for own_names, true_names in (
            (predicted.items, annotations.items),
            (predicted.annotators, annotations.annotators),
            (predicted.classes, annotations.classes),
        )
    )
    item, annotator, option = (
        index[codes]
        for index, codes in zip(
            positions, (predicted.item, predicted.annotator, predicted.label), strict=True
        )
    )
    in_both = (item >= 0) & (annotator >= 0) & (option >= 0)
    key = item[in_both] * np.int64(annotations.n_annotators) + annotator[in_both]
    row = np.searchsorted(pair, key)
    has_row = (row < len(pair)) & (pair[np.minimum(row, len(pair) - 1)] == key)
    guess[row[has_row], option[in_both][has_row]] = 1
    wrong = np.abs(guess - options).mean(axis=1)
    return _mean_over_items(pair // annotations.n_annotators, wrong)


def _options(annotations: Annotations) -> tuple[Integers, Floats]:
    """Return pairs of item and annotator, ascending, and which options each gave: (pair, class)."""
    if not len(annotations):
        raise DataError("there is nothing to score: no annotations")
    key = annotations.item * np.int64(annotations.n_annotators) + annotations.annotator
    pair, row = np.unique(key, return_inverse=True)
    options = np.zeros((len(pair), annotations.n_classes))
    options[row, annotations.label] = 1
    return pair, options


def _mean_over_items(item: Array, values: Floats) -> float:
    """Return the mean over items of means over their annotations."""
    size = np.bincount(item)
    labelled = size > 0
    return (
        float((np.bincount(item, values)[labelled] / size[labelled]).mean())
        if labelled.any()
        else np.nan
    )


def true_classes(predictions: Predictions, truth: Mapping[str, Any]) -> tuple[Integers, Names]:
    """Return every item's true class, -1 where it is unknown, and the names of all classes.

    Classes that only the truth has get the codes after those of the predictions.
    """
    codes = {name: code for code, name in enumerate(predictions.classes.tolist())}
    true = np.array(
        [
            codes.setdefault(text(truth[item]), len(codes)) if item in truth else -1
            for item in predictions.items.tolist()
        ],
        dtype=np.int64,
    )
    return true, as_names(list(codes))


def class_scores(
    predictions: Predictions,
    position: Integers,
    true: Integers,
    classes: Names,
    resamples: int,
    random: np.random.Generator,
) -> dict[str, Floats]:
    """Return every score of all items, followed by those of bootstrap samples."""
    n_classes, rank = len(classes), ranks(classes)
    remaining = np.full(resamples, len(position))  # draws that remain for later chunks
    step = max(_CELLS // max(resamples, n_classes), 1)
    # (number, sample), all items first
    sums = np.zeros((len(_MEANS) + 2 * n_classes + _BINS, 1 + resamples))
    for start in range(0, len(position), step):
        chunk = slice(start, start + step)
        numbers = _numbers(predictions, position[chunk], true[chunk], rank)
        size = numbers.shape[0]
        drawn = random.binomial(remaining, size / (len(position) - start))
        remaining -= drawn
        cell = random.integers(size, size=drawn.sum())
        cell += np.repeat(np.arange(resamples) * size, drawn)
        weight = np.bincount(cell, minlength=resamples * size).reshape(resamples, size)
        sums[:, 0] += numbers.sum(axis=0)
        sums[:, 1:] += numbers.T @ weight.T.astype(np.float64, order="C")
    scores = _scores(sums.T, n_classes, len(position))
    names = CLASS_SCORES if predictions.posterior is not None else CLASS_SCORES[:3]
    return {name: scores[name] for name in (*names, *[DISTANCE] * predictions.ordered)}


def _numbers(
    predictions: Predictions, position: Integers, true: Integers, rank: Integers
) -> sparse.csr_array[Any, Any]:
    """Return the contribution of every item to the sums: (item, number), mostly zero.

    The columns are one for each mean, two for each class (twice the hits; the occurrences in
    truth and labels), and one for each bin of confidence (accuracy minus confidence). An undecided
    label is as far from the truth as a class can be.
    """
    n_classes = len(rank)
    item, label = np.arange(len(position)), predictions.label[position]
    farthest = np.maximum(rank[true], n_classes - 1 - rank[true])
    steps = np.where(label < 0, farthest, np.abs(rank[label] - rank[true]))
    hit, labelled = label == true, label >= 0
    n_means, occurs = len(_MEANS), len(_MEANS) + n_classes
    entries: list[tuple[Array, Array, Array]] = [  # item, column, number
        (item, np.full(len(item), 1), hit),
        (item, np.full(len(item), 4), steps),
        (item[hit], n_means + true[hit], np.full(hit.sum(), 2)),
        (item, occurs + true, np.ones(len(item))),
        (item[labelled], occurs + label[labelled], np.ones(labelled.sum())),
    ]
    if predictions.posterior is None:
        entries.append((item, np.zeros(len(item), np.int64), hit))
    else:
        posterior = np.zeros((len(item), n_classes))  # 0 for classes that only the truth has
        posterior[:, : len(predictions.classes)] = predictions.posterior[position]
        best, in_truth = posterior.max(axis=1), posterior[item, true]
        tied = posterior >= best[:, None] - TIE
        right = tied[item, true] / tied.sum(axis=1)
        log_loss = -np.log(np.maximum(in_truth, _LEAST_PROBABILITY))
        posterior[item, true] -= 1
        brier = np.einsum("ik,ik->i", posterior, posterior)
        # Bins are closed above; the small number keeps 0.6 × 15 in its bin whatever its last bit.
        bins = np.clip(np.ceil(best * _BINS - 1e-9).astype(np.int64), 1, _BINS) - 1
        for where, mean in ((0, right), (2, log_loss), (3, brier)):
            entries.append((item, np.full(len(item), where), mean))
        entries.append((item, occurs + n_classes + bins, right - best))
    row, column, number = map(np.concatenate, zip(*entries, strict=True))
    shape = (len(item), n_means + 2 * n_classes + _BINS)
    return sparse.coo_array((number.astype(np.float64), (row, column)), shape=shape).tocsr()


def _scores(sums: Floats, n_classes: int, n_items: int) -> dict[str, Floats]:
    """Return every score of every sample."""
    widths = [len(_MEANS), n_classes, n_classes]
    means, hits, occurrences, gaps = np.split(sums, np.cumsum(widths), axis=1)
    f1 = np.divide(hits, occurrences, out=np.zeros_like(hits), where=occurrences > 0)
    return {
        **dict(zip(_MEANS, means.T / n_items, strict=True)),
        "macro_f1": f1.sum(axis=1) / (occurrences > 0).sum(axis=1),
        "ece": np.abs(gaps).sum(axis=1) / n_items,
    }


def number_scores(
    value: Floats, true: Floats, resamples: int, random: np.random.Generator
) -> dict[str, Floats]:
    """Return every score of all items, followed by those of bootstrap samples.

    A correlation with a constant is NaN.
    """
    size = len(value)
    error = value - true
    errors = np.stack([np.abs(error), error**2])  # (score, item)
    ranks = _Ranks(value), _Ranks(true)
    scores = []
    step = max(_CELLS // size, 1)
    for start in range(0, 1 + resamples, step):
        weight = _drawn(size, min(step, 1 + resamples - start), random)
        if start == 0:
            weight[0] = 1.0  # all items come first
        mae, square = errors @ weight.T / size
        pearson = _correlation(value - value.mean(), true - true.mean(), weight)
        spearman = _correlation(ranks[0].under(weight), ranks[1].under(weight), weight)
        scores.append(np.stack([mae, np.sqrt(square), pearson, spearman]))
    return dict(zip(NUMBER_SCORES, np.concatenate(scores, axis=1), strict=True))


def _drawn(size: int, samples: int, random: np.random.Generator) -> Floats:
    """Return how often every item is drawn: (sample, item)."""
    cell = random.integers(size, size=(samples, size))
    cell += np.arange(samples)[:, None] * size
    return np.bincount(cell.ravel(), minlength=samples * size).reshape(samples, size).astype(float)


class _Ranks:
    """The order of values, for ranks under any weights."""

    def __init__(self, value: Floats) -> None:
        self.order = np.argsort(value, kind="stable")
        sorted_ = value[self.order]
        self.first = np.flatnonzero(np.r_[True, sorted_[1:] != sorted_[:-1]])  # (different value)
        self.group: Integers = np.empty(len(value), np.int64)  # (item): index of its value
        self.group[self.order] = np.repeat(
            np.arange(len(self.first)), np.diff(np.r_[self.first, len(value)])
        )

    def under(self, weight: Floats) -> Floats:
        """Return the centred rank of every item: (sample, item)."""
        weights = np.add.reduceat(weight[:, self.order], self.first, axis=1)  # (sample, value)
        middle = np.cumsum(weights, axis=1) - weights / 2
        return (middle - weight.shape[1] / 2)[:, self.group]


def _correlation(x: Floats, y: Floats, weight: Floats) -> Floats:
    """Return Pearson's correlation under weights: (sample); x and y are roughly centred."""
    size = weight.sum(axis=1)
    mean_x, mean_y, xx, yy, xy = (
        np.vecdot(weight, numbers) / size for numbers in (x, y, x * x, y * y, x * y)
    )
    variance_x, variance_y = xx - mean_x**2, yy - mean_y**2
    varies = (variance_x > _CONSTANT * xx) & (variance_y > _CONSTANT * yy)
    out = np.full(len(size), np.nan)
    root = np.sqrt(variance_x[varies] * variance_y[varies])
    out[varies] = (xy - mean_x * mean_y)[varies] / root
    return np.clip(out, -1, 1)
