"""Scores of classes, of all items and of bootstrap samples.

Every score comes from sums over items, so a bootstrap over items needs only those sums under
other weights. The weights are multinomial and are drawn for a chunk of items at a time, so that
memory is bounded.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from scipy import sparse

from ..base.names import Names, as_names, text
from ..base.probability import TIE
from ..base.arrays import Array, Floats, Integers
from ..result import Predictions
from .scores import ranks

# Those that need a posterior come last.
CLASS_SCORES = ("accuracy", "accuracy_as_labelled", "macro_f1", "log_loss", "brier", "ece")
DISTANCE = "distance"  # only where classes are ordered

_BINS = 15
_LEAST_PROBABILITY = 1e-15
_CELLS = 2**19  # weights, or probabilities, in memory at a time
_MEANS = ("accuracy", "accuracy_as_labelled", "log_loss", "brier", DISTANCE)  # over items


def true_classes(given: Predictions, truth: Mapping[str, Any]) -> tuple[Integers, Names]:
    """Return every item's true class, -1 where it is unknown, and the names of all classes.

    Classes that only the truth has get the codes after those of the predictions.
    """
    codes = {name: code for code, name in enumerate(given.classes.tolist())}
    true = np.array(
        [
            codes.setdefault(text(truth[item]), len(codes)) if item in truth else -1
            for item in given.items.tolist()
        ],
        dtype=np.int64,
    )
    return true, as_names(list(codes))


def class_scores(
    given: Predictions,
    position: Integers,
    true: Integers,
    classes: Names,
    resamples: int,
    random: np.random.Generator,
) -> dict[str, Floats]:
    """Return every score of all items, followed by those of bootstrap samples."""
    n_classes, rank = len(classes), ranks(classes)
    left = np.full(resamples, len(position))  # draws that remain for later chunks
    step = max(_CELLS // max(resamples, n_classes), 1)
    # (number, sample), all items first
    sums = np.zeros((len(_MEANS) + 2 * n_classes + _BINS, 1 + resamples))
    for start in range(0, len(position), step):
        chunk = slice(start, start + step)
        numbers = _numbers(given, position[chunk], true[chunk], rank)
        size = numbers.shape[0]
        drawn = random.binomial(left, size / (len(position) - start))
        left -= drawn
        cell = random.integers(size, size=drawn.sum())
        cell += np.repeat(np.arange(resamples) * size, drawn)
        weight = np.bincount(cell, minlength=resamples * size).reshape(resamples, size)
        sums[:, 0] += numbers.sum(axis=0)
        sums[:, 1:] += numbers.T @ weight.T.astype(np.float64, order="C")
    scores = _scores(sums.T, n_classes, len(position))
    known = CLASS_SCORES if given.posterior is not None else CLASS_SCORES[:3]
    return {name: scores[name] for name in (*known, *[DISTANCE] * given.ordered)}


def _numbers(
    given: Predictions, position: Integers, true: Integers, rank: Integers
) -> sparse.csr_array[Any, Any]:
    """Return the contribution of every item to the sums: (item, number), mostly zero.

    The columns are one for each mean, two for each class (twice the hits; the occurrences in
    truth and labels), and one for each bin of confidence (accuracy minus confidence). An undecided
    label is as far from the truth as a class can be.
    """
    n_classes = len(rank)
    item, label = np.arange(len(position)), given.label[position]
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
    if given.posterior is None:
        entries.append((item, np.zeros(len(item), np.int64), hit))
    else:
        posterior = np.zeros((len(item), n_classes))  # 0 for classes that only the truth has
        posterior[:, : len(given.classes)] = given.posterior[position]
        best, in_truth = posterior.max(axis=1), posterior[item, true]
        tied = posterior >= best[:, None] - TIE
        right = tied[item, true] / tied.sum(axis=1)
        log_loss = -np.log(np.maximum(in_truth, _LEAST_PROBABILITY))
        posterior[item, true] -= 1
        brier = np.einsum("ik,ik->i", posterior, posterior)
        # Bins are closed above; the small number keeps 0.6 × 15 in its bin whatever its last bit.
        which = np.clip(np.ceil(best * _BINS - 1e-9).astype(np.int64), 1, _BINS) - 1
        for where, mean in ((0, right), (2, log_loss), (3, brier)):
            entries.append((item, np.full(len(item), where), mean))
        entries.append((item, occurs + n_classes + which, right - best))
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
