"""Every annotator of numbers compared with the mean of the others, with a verdict.

| verdict | when |
|---|---|
| does not follow the others | 10 answers or more, and the correlation with the mean of the others is below 0.3 at the upper end of its 95 % interval |
| too high, too low | mean difference to the others beyond two standard errors and a quarter of the usual scatter |
| scattered | differences to the others scatter more than twice as much as usual |
| too few answers to say | fewer than 5 answers on items that others answered, too |
"""  # noqa: E501

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from .._relation import Floats, Integers
from ..answers.numbers import Numbers

FEW, ENOUGH = 5, 10  # answers for a verdict, and for one on a correlation
UNRELATED = 0.3  # correlation
BIASED = 0.25  # of the usual scatter
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


def annotator_bias(annotations: Numbers) -> AnnotatorBias:
    """Return every annotator compared with the mean of the others on the same items."""
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
    verdict = _verdicts(count, bias, scatter, correlation)
    return AnnotatorBias(count.astype(np.int64), bias, scatter, correlation, verdict)


def _verdicts(count: Floats, bias: Floats, scatter: Floats, correlation: Floats) -> list[str]:
    known = scatter[(count >= FEW) & np.isfinite(scatter)]
    usual = float(np.median(known)) if len(known) else math.nan
    with np.errstate(invalid="ignore", divide="ignore"):
        # Fisher's transformation of a correlation is nearly normal.
        bounded = np.clip(np.nan_to_num(correlation), -0.999999, 0.999999)
        high = np.tanh(np.arctanh(bounded) + 1.96 / np.sqrt(np.maximum(count - 3, 1)))
        error = scatter / np.sqrt(count)
        clear = (np.abs(bias) > 2 * error) & (np.abs(bias) > BIASED * usual)
    rules = {
        "too few answers to say": ~(count >= FEW),
        "does not follow the others": (count >= ENOUGH) & (high < UNRELATED),
        "too high": clear & (bias > 0),
        "too low": clear & (bias < 0),
        "scattered": scatter > WIDE * usual,
    }
    verdicts = [*rules, "fine"]
    chosen = np.select(list(rules.values()), range(len(rules)), default=len(rules))
    return [verdicts[index] for index in chosen.tolist()]
