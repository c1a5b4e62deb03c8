"""Scores of single labels, and sums and medians over annotations that such scores are made of.

How well labels fit probabilities of the classes (Northcutt, Jiang & Chuang 2021): with P the
probabilities of an item and k the label,

    self_confidence              P[k]
    normalized_margin            (P[k] - the highest of the others + 1) / 2
    confidence_weighted_entropy  log(1 + x) / x, x = entropy(P) / (log(n_classes) P[k])

Adjusted probabilities account for unequal classes: P less the mean confidence in every class, over
the items with this label, shifted and normalized. Low scores are doubtful labels.

    C. G. Northcutt, L. Jiang, I. L. Chuang. Confident learning: estimating uncertainty in dataset
    labels. Journal of Artificial Intelligence Research 70, 2021. doi:10.1613/jair.1.12125

The most frequent label of an item breaks ties as CROWDLAB does.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np
import numpy.typing as npt
from scipy.special import xlogy

from ..answers.annotations import Annotations
from ..answers.base import Relation
from ..base.arrays import Array, Floats, Integers
from ..errors import OptionError
from ..metrics.statistics import repeats_previous

Score = Literal["self_confidence", "normalized_margin", "confidence_weighted_entropy"]

_TIE = 1e-12  # scores closer than this are equal
_LEAST = 1e-6  # of divisors
_LEAST_CONFIDENCE = 2e-6  # of the mean confidence in a class
_ABSENT = 2.0  # confidence in a class without labels: above any probability


def sum_by(positions: Array, values: Array, size: int) -> Floats:
    """Return the sum of the values in every group."""
    return np.bincount(positions, values, minlength=size).astype(np.float64, copy=False)


def by_item(annotations: Relation, values: Array) -> Floats:
    """Return values of annotations summed for every item: (item)."""
    return sum_by(annotations.item, values, annotations.n_items)


def by_annotator(annotations: Relation, values: Array) -> Floats:
    """Return values of annotations summed for every annotator: (annotator)."""
    return sum_by(annotations.annotator, values, annotations.n_annotators)


def by_cell(annotations: Annotations, values: Array) -> Floats:
    """Return values of annotations summed for every class of an item: (item, class)."""
    n_items, n_classes = annotations.n_items, annotations.n_classes
    cell = annotations.item * np.int64(n_classes) + annotations.label
    return sum_by(cell, values, n_items * n_classes).reshape(n_items, n_classes)


def median_by(group: Array, values: Floats, n_groups: int) -> Floats:
    """Return the median of the values in every group; NaN for empty groups.

    >>> median_by(np.array([0, 2, 0, 2, 2]), np.array([1.0, 5, 2, 4, 9]), 3).tolist()
    [1.5, nan, 5.0]
    """
    values = values[np.lexsort((values, group))]
    count = np.bincount(group, minlength=n_groups)
    filled = count > 0
    start, size = (np.cumsum(count) - count)[filled], count[filled]
    median = np.full(n_groups, np.nan)
    median[filled] = (values[start + (size - 1) // 2] + values[start + size // 2]) / 2
    return median


def agreement_with_others(annotations: Annotations) -> Floats:
    """Return the share of others' labels on an annotator's items that equal theirs: (annotator).

    NaN for annotators who share no item with anybody. Repeated labels of an annotator on an item
    are not compared with each other.

    >>> annotations = Annotations.from_columns("aaabbc", "xyzxyw", "001011")
    >>> agreement_with_others(annotations).round(2).tolist()
    [nan, 0.33, 0.33, 0.0]
    """
    new = ~repeats_previous(annotations)
    own = _run_lengths(new)
    equal_to_previous = np.diff(annotations.label.astype(np.int64), prepend=-1) == 0
    same_own = _run_lengths(new | ~equal_to_previous)
    equal_others = annotations.votes()[annotations.item, annotations.label] - same_own
    compared = by_annotator(annotations, annotations.labels_per_item[annotations.item] - own)
    nothing = np.full(annotations.n_annotators, np.nan)
    return np.divide(
        by_annotator(annotations, equal_others), compared, where=compared > 0, out=nothing
    )


def majority(annotations: Annotations, posterior: Floats) -> Integers:
    """Return the most frequent label of every item, -1 where there is none: (item).

    Ties are broken by the posterior (item, class), then by the rarer class, then by how often the
    annotators who gave it agree with clear majorities, then by the order of classes.
    """
    votes = annotations.votes()
    label = votes.argmax(axis=1)
    tied = np.flatnonzero((votes == votes.max(axis=1, keepdims=True)).sum(axis=1) > 1)
    tied = tied[annotations.labels_per_item[tied] > 0]
    if len(tied):
        likely = _narrow(votes[tied] == votes[tied].max(axis=1, keepdims=True), posterior[tied])
        likely = _narrow(likely, np.broadcast_to(-votes.sum(axis=0), likely.shape))
        label[tied] = likely.argmax(axis=1)
        still = likely.sum(axis=1) > 1
        if still.any():
            rows = tied[still]
            quality = _annotator_quality(annotations, label, tied, rows) / np.maximum(
                votes[rows], 1
            )
            label[rows] = _narrow(likely[still], quality).argmax(axis=1)
    return np.where(annotations.labels_per_item > 0, label, -1)


def best(posterior: Floats, otherwise: Integers) -> Integers:
    """Return the best class of every item; in a tie, or without a label, the other one."""
    top = posterior.max(axis=1, keepdims=True)
    is_tied = (posterior >= top - _TIE).sum(axis=1) > 1
    return np.where(is_tied | (otherwise < 0), otherwise, posterior.argmax(axis=1))


def worst_class(
    annotations: Annotations, agrees: npt.NDArray[np.bool_], quality: Floats
) -> Integers:
    """Return the least precise class of every annotator, -1 for none: (annotator).

    Ties: the class given most often, then that on the items of best quality, the first.
    """
    n_classes = annotations.n_classes
    cells = annotations.annotator * np.int64(n_classes) + annotations.label

    def summed(values: Array) -> Floats:
        return sum_by(cells, values, annotations.n_annotators * n_classes).reshape(-1, n_classes)

    n_labels = summed(np.ones(len(annotations)))
    often = np.maximum(n_labels, 1)
    worst = _narrow(n_labels > 0, -summed(agrees) / often)
    worst = _narrow(worst, n_labels)
    worst = _narrow(worst, summed(quality) / often)
    return np.where(worst.any(axis=1), worst.argmax(axis=1), -1)


def _annotator_quality(
    annotations: Annotations, label: Integers, tied: Integers, rows: Integers
) -> Floats:
    """Return the summed quality of the annotators behind every class of some items."""
    clear = np.ones(annotations.n_items, dtype=bool)
    clear[tied] = False
    counted = clear[annotations.item]
    n_labels = by_annotator(annotations, counted)
    agreed = by_annotator(annotations, counted & (label[annotations.item] == annotations.label))
    agreement = np.divide(agreed, n_labels, where=n_labels > 0, out=np.zeros(len(n_labels)))
    agreement[n_labels == 0] = agreement[n_labels > 0].mean() if counted.any() else 0.0
    few = annotations.take(rows)
    return by_cell(few, agreement[few.annotator])


def _narrow(among: npt.NDArray[np.bool_], score: Floats) -> npt.NDArray[np.bool_]:
    """Return which of the candidates in every row have the highest score."""
    score = np.where(among, score, -np.inf)
    return among & (score >= score.max(axis=1, keepdims=True) - _TIE)


def _run_lengths(starts: npt.NDArray[np.bool_]) -> Integers:
    """Return for every position the length of its run."""
    length = np.diff(np.flatnonzero(starts), append=len(starts))
    return np.repeat(length, length)


@dataclass(frozen=True)
class LabelScore:
    """A score of labels, with or without adjusted probabilities."""

    method: Score = "self_confidence"
    adjust_pred_probs: bool = False

    @classmethod
    def of(cls, options: Mapping[str, Any]) -> LabelScore:
        """Return the score that cleanlab's options describe."""
        unknown = [name for name in options if name not in cls.__dataclass_fields__]
        if unknown:
            raise OptionError(
                f"label_quality_score_kwargs has no {unknown[0]!r}; there are method, "
                "adjust_pred_probs"
            )
        score = cls(**options)
        if score.method not in get_args(Score):
            methods = ", ".join(get_args(Score))
            raise OptionError(f"method = {score.method!r}, but it must be one of {methods}")
        if score.adjust_pred_probs and score.method == "confidence_weighted_entropy":
            raise OptionError("confidence_weighted_entropy takes no adjusted probabilities")
        return score

    def __call__(
        self, posterior: Floats, row: Array, label: Array, group: Array, n_groups: int
    ) -> Floats:
        """Return the scores of labels of rows of a posterior; classes are adjusted by group.

        >>> p = np.array([[0.5, 0.25, 0.25]])
        >>> zero = np.array([0])
        >>> LabelScore("normalized_margin")(p, zero, zero, zero, 1).tolist()
        [0.625]
        """
        if self.method == "self_confidence" and not self.adjust_pred_probs:
            return posterior[row, label]
        probabilities, n = posterior[row], np.arange(len(row))
        if self.adjust_pred_probs:
            probabilities = _adjusted(probabilities, label, group, n_groups)
        own = probabilities[n, label]
        if self.method == "self_confidence":
            return own
        if self.method == "normalized_margin":
            probabilities[n, label] = -np.inf
            return (own - probabilities.max(axis=1, initial=-np.inf) + 1) / 2
        n_classes = probabilities.shape[1]
        entropy = -xlogy(probabilities, probabilities).sum(axis=1) / np.log(max(n_classes, 2))
        weighted = entropy / np.maximum(own, _LEAST)
        return np.log(weighted + 1) / np.maximum(weighted, _LEAST)


def _adjusted(probabilities: Floats, label: Array, group: Array, n_groups: int) -> Floats:
    """Return probabilities less the mean confidence of their group in every class."""
    n_classes = probabilities.shape[1]
    cell = group * np.int64(n_classes) + label
    n_labels = sum_by(cell, np.ones(len(label)), n_groups * n_classes)
    total = sum_by(cell, probabilities[np.arange(len(label)), label], n_groups * n_classes)
    confidence = np.full(len(n_labels), _ABSENT)
    np.divide(total, n_labels, out=confidence, where=n_labels > 0)
    confidence = np.maximum(confidence, _LEAST_CONFIDENCE).reshape(n_groups, n_classes)
    probabilities = probabilities - confidence[group] + confidence.max(axis=1)[group, None]
    return probabilities / probabilities.sum(axis=1, keepdims=True)
