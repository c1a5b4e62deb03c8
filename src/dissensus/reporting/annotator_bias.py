"""Every annotator of numbers compared with the mean of the others; verdicts are `identify`'s."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from .._relation import Floats, Integers
from ..answers.numbers import Numbers
from ..identification import identify

WIDE = 2.0  # times the usual scatter


class AnnotatorBias(NamedTuple):
    """Every annotator compared with the mean of the others; NaN without others."""

    n_answers: Integers  # (annotator): on items that others answered, too
    bias: Floats  # mean difference to the others
    scatter: Floats  # standard deviation of these differences
    correlation: Floats  # with the others
    verdict: list[str]


def _item_sums(annotations: Numbers, value: Floats) -> Floats:
    """Return sums over the answers of every item."""
    total = np.concatenate([[0.0], np.cumsum(value)])
    return total[annotations.index[1:]] - total[annotations.index[:-1]]


def scatter_of_items(annotations: Numbers) -> Floats:
    """Return the standard deviation of the answers on every item; NaN below two."""
    size = annotations.labels_per_item.astype(float)
    value = annotations.value - float(annotations.value.mean())
    with np.errstate(invalid="ignore", divide="ignore"):
        mean = _item_sums(annotations, value) / size
        squares = _item_sums(annotations, (value - mean[annotations.item]) ** 2)
        return np.where(size > 1, np.sqrt(squares / (size - 1)), np.nan)


def annotator_bias(annotations: Numbers, known: Any = None) -> AnnotatorBias:
    """Return every annotator compared with the mean of the others on the same items.

    Verdicts also use known values, `{item: value}`.
    """
    value = annotations.value - float(annotations.value.mean())
    size = annotations.labels_per_item[annotations.item]
    shared = size > 1
    annotator, own = annotations.annotator[shared], value[shared]
    others = (_item_sums(annotations, value)[annotations.item][shared] - own) / (size[shared] - 1)

    def sums(values: Floats) -> Floats:
        return np.bincount(annotator, values, annotations.n_annotators).astype(float)

    count = sums(np.ones(len(own)))
    with np.errstate(invalid="ignore", divide="ignore"):
        own_mean, others_mean = sums(own) / count, sums(others) / count
        bias = own_mean - others_mean
        residual = own - others - bias[annotator]
        scatter = np.where(count > 1, np.sqrt(sums(residual**2) / (count - 1)), np.nan)
        x, y = own - own_mean[annotator], others - others_mean[annotator]
        norm = np.sqrt(sums(x**2) * sums(y**2))
        correlation = np.where(norm > 0, sums(x * y) / norm, np.nan)
    verdict = identify(annotations, gold=known).verdict.tolist()
    return AnnotatorBias(count.astype(np.int64), bias, scatter, correlation, verdict)
