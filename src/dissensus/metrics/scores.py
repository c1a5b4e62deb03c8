"""Scores of the shared task LeWiDi-2025, beside the Manhattan and Wasserstein distances.

Predictions of single annotators; every item counts once, however many annotators labelled it:

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

import numpy as np
from numpy.typing import ArrayLike

from ..base.names import Names, as_values, indices_of
from ..base.arrays import Array, Floats, Integers
from ..answers.annotations import Annotations
from ..errors import DataError


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
    pair, given = _options(annotations)
    item = pair // annotations.n_annotators
    size = np.bincount(item, minlength=len(p))
    labelled = size > 0
    total = np.stack([np.bincount(item, column, len(p)) for column in given.T], axis=1)
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
    pair, given = _options(annotations)
    guess = np.zeros_like(given)
    positions = (
        indices_of(ours, theirs)
        for ours, theirs in (
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
    known = (item >= 0) & (annotator >= 0) & (option >= 0)
    key = item[known] * np.int64(annotations.n_annotators) + annotator[known]
    row = np.searchsorted(pair, key)
    found = (row < len(pair)) & (pair[np.minimum(row, len(pair) - 1)] == key)
    guess[row[found], option[known][found]] = 1
    wrong = np.abs(guess - given).mean(axis=1)
    return _mean_over_items(pair // annotations.n_annotators, wrong)


def _options(annotations: Annotations) -> tuple[Integers, Floats]:
    """Return pairs of item and annotator, ascending, and which options each gave: (pair, class)."""
    if not len(annotations):
        raise DataError("there is nothing to score: no annotations")
    key = annotations.item * np.int64(annotations.n_annotators) + annotations.annotator
    pair, row = np.unique(key, return_inverse=True)
    given = np.zeros((len(pair), annotations.n_classes))
    given[row, annotations.label] = 1
    return pair, given


def _mean_over_items(item: Array, values: Floats) -> float:
    """Return the mean over items of means over their annotations."""
    size = np.bincount(item)
    some = size > 0
    return float((np.bincount(item, values)[some] / size[some]).mean()) if some.any() else np.nan
