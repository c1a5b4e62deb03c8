"""Every annotator of numbers beside the mean of the others, with a word.

| word | when |
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

from .._relation import Floats, Integers, Relation
from ..answers.numbers import Numbers

__all__ = ["WIDE", "Standing", "scatter_of_items", "standing"]

FEW, ENOUGH = 5, 10  # answers for a verdict, and for one on a correlation
FOLLOWS = 0.3
SHIFTED = 0.25  # of the usual scatter
WIDE = 2.0  # times the usual scatter


class Standing(NamedTuple):
    """Every annotator beside the mean of the others; NaN where nobody else was heard."""

    answers: Integers  # (annotator): on items that others answered, too
    shift: Floats  # mean difference to the others
    scatter: Floats  # standard deviation of these differences
    follows: Floats  # correlation with the others
    verdict: list[str]


def _sums(annotations: Relation, value: Floats) -> Floats:
    """Return values of answers, added up for every item."""
    total = np.concatenate([[0.0], np.cumsum(value)])
    return total[annotations.index[1:]] - total[annotations.index[:-1]]


def scatter_of_items(annotations: Numbers) -> Floats:
    """Return the standard deviation of the answers on every item; NaN below two."""
    size = annotations.labels_per_item.astype(float)
    middle = float(annotations.value.mean())
    value = annotations.value - middle
    with np.errstate(invalid="ignore", divide="ignore"):
        mean = _sums(annotations, value) / size
        squares = _sums(annotations, (value - mean[annotations.item]) ** 2)
        return np.where(size > 1, np.sqrt(squares / (size - 1)), np.nan)


def standing(annotations: Numbers) -> Standing:
    """Return every annotator beside the mean of the others on the same items."""
    value = annotations.value - float(annotations.value.mean())
    size = annotations.labels_per_item[annotations.item]
    heard = size > 1
    who, given = annotations.annotator[heard], value[heard]
    others = (_sums(annotations, value)[annotations.item][heard] - given) / (size[heard] - 1)

    def added(values: Floats) -> Floats:
        return np.bincount(who, values, annotations.n_annotators).astype(float)

    count = added(np.ones(len(given)))
    with np.errstate(invalid="ignore", divide="ignore"):
        mine, theirs = added(given) / count, added(others) / count
        shift = mine - theirs
        off = given - others - shift[who]
        scatter = np.where(count > 1, np.sqrt(added(off**2) / (count - 1)), np.nan)
        apart = given - mine[who], others - theirs[who]
        spread = np.sqrt(added(apart[0] ** 2) * added(apart[1] ** 2))
        follows = np.where(spread > 0, added(apart[0] * apart[1]) / spread, np.nan)
    return Standing(
        count.astype(np.int64), shift, scatter, follows, _verdicts(count, shift, scatter, follows)
    )


def _verdicts(count: Floats, shift: Floats, scatter: Floats, follows: Floats) -> list[str]:
    known = scatter[(count >= FEW) & np.isfinite(scatter)]
    usual = float(np.median(known)) if len(known) else math.nan
    with np.errstate(invalid="ignore", divide="ignore"):
        # Fisher's transformation of a correlation is nearly normal.
        bounded = np.clip(np.nan_to_num(follows), -0.999999, 0.999999)
        high = np.tanh(np.arctanh(bounded) + 1.96 / np.sqrt(np.maximum(count - 3, 1)))
        error = scatter / np.sqrt(count)
        clear = (np.abs(shift) > 2 * error) & (np.abs(shift) > SHIFTED * usual)
    rules = (
        (~(count >= FEW), "too few answers to say"),
        ((count >= ENOUGH) & (high < FOLLOWS), "does not follow the others"),
        (clear & (shift > 0), "too high"),
        (clear & (shift < 0), "too low"),
        (scatter > WIDE * usual, "scattered"),
    )
    chosen = np.select([rule for rule, _ in rules], range(len(rules)), default=len(rules))
    words = [*(word for _, word in rules), "fine"]
    return [words[position] for position in chosen.tolist()]
