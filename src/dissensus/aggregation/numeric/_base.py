"""What every estimator promises, and the steps that all of them share."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from ..._names import text
from ..._relation import Floats, Integers
from ...answers.numbers import Numbers
from ...errors import DataError
from ...params import Settings
from ...registry import estimators
from .result import Estimation

__all__ = ["Estimator", "Fit", "Progress"]

Progress = Callable[[int, float], None]  # called with the round and the objective


@dataclass(frozen=True)
class Fit:
    """All that an estimator is given besides its settings."""

    annotations: Numbers
    gold: Floats  # (item): the known value, or NaN
    seed: int
    progress: Progress

    @cached_property
    def item(self) -> Integers:
        """The item of every answer."""
        return self.annotations.item.astype(np.int64)

    @cached_property
    def variance(self) -> float:
        """The variance of all answers, the unit of small numbers; 1 where all are the same."""
        return float(self.annotations.value.var()) or 1.0

    @cached_property
    def within(self) -> float:
        """The variance of answers within items; at least a small share of that of all."""
        off = self.off(self.mean(np.ones(len(self.annotations))))
        spare = len(off) - int((self.annotations.labels_per_item > 0).sum())
        return max(float(off @ off) / max(spare, 1), 1e-6 * self.variance)

    @cached_property
    def ranked(self) -> Integers:
        """The answers of every item in the order of their values, as places in the relation."""
        return np.lexsort((self.annotations.value, self.item))

    def by_item(self, value: Floats) -> Floats:
        """Return values of answers, added up for every item."""
        return np.bincount(self.item, value, minlength=self.annotations.n_items).astype(float)

    def by_annotator(self, value: Floats) -> Floats:
        """Return values of answers, added up for every annotator."""
        n_annotators = self.annotations.n_annotators
        return np.bincount(self.annotations.annotator, value, minlength=n_annotators).astype(float)

    def mean(self, weight: Floats) -> Floats:
        """Return the mean of every item under weights of answers; NaN where there is none."""
        return ratio(self.by_item(weight * self.annotations.value), self.by_item(weight))

    def median(self, weight: Floats) -> Floats:
        """Return the median of every item under weights of answers; NaN where there is none.

        Half of the weight lies on either side. Where that leaves a gap, it is its middle.
        """
        value, index = self.annotations.value[self.ranked], self.annotations.index
        part = ratio(weight, self.by_item(weight)[self.item])[self.ranked]
        upto = np.concatenate([[0.0], np.cumsum(part)])  # weight before every answer
        half = upto[index[:-1]] + 0.5
        first, last = index[:-1], np.maximum(index[1:] - 1, 0)
        lower = np.clip(np.searchsorted(upto[1:], half - _HALF), first, last)
        upper = np.clip(np.searchsorted(upto[1:], half + _HALF), first, last)
        found = np.full(self.annotations.n_items, np.nan)
        some = self.annotations.labels_per_item > 0
        found[some] = value[lower[some]] / 2 + value[upper[some]] / 2
        return found

    def keep_gold(self, value: Floats) -> Floats:
        """Return values with the known ones in their places."""
        return np.where(np.isnan(self.gold), value, self.gold)

    def off(self, value: Floats) -> Floats:
        """Return by how much every answer misses the value of its item."""
        return self.annotations.value - value[self.item]


@dataclass(frozen=True, kw_only=True)
class Estimator(Settings, ABC):
    """A way to infer the values of items from the numbers that annotators gave."""

    def fit(
        self,
        annotations: Numbers,
        *,
        gold: Mapping[Any, Any] | None = None,
        seed: int = 0,
        progress: Progress | None = None,
    ) -> Estimation:
        """Infer the values.

        Parameters
        ----------
        annotations
            The numbers.
        gold
            Known values, `{item: number}`; they are kept, and methods that learn learn from them.
        seed
            Decides what is random; so far nothing is.
        progress
            Called after every round with its number and the objective.
        """
        if len(annotations) == 0:
            raise DataError("there is no answer to estimate from")
        progress = progress or (lambda _round, _objective: None)
        return self.infer(Fit(annotations, gold_values(annotations, gold), seed, progress))

    @abstractmethod
    def infer(self, fit: Fit) -> Estimation:
        """Return the result of a fit."""

    def conclude(
        self,
        fit: Fit,
        value: Floats,
        deviation: Floats,
        *,
        weight: Floats | None = None,
        bias: Floats | None = None,
        noise: Floats | None = None,
        trace: tuple[float, ...] = (),
        converged: bool = True,
    ) -> Estimation:
        """Return the result, with gold kept and silence left open.

        What a method does not learn about annotators is measured: the mean of what they miss by,
        and how far that scatters.
        """
        known, size = ~np.isnan(fit.gold), fit.annotations.labels_per_annotator
        value = fit.keep_gold(np.where(fit.annotations.labels_per_item > 0, value, np.nan))
        deviation = np.where(known, 0.0, np.where(np.isnan(value), np.nan, deviation))
        off = fit.off(value)
        weight = np.ones(len(size)) if weight is None else weight
        bias = ratio(fit.by_annotator(off), size) if bias is None else bias
        if noise is None:
            squares = fit.by_annotator((off - bias[fit.annotations.annotator]) ** 2)
            noise = np.sqrt(ratio(squares, np.maximum(size - 1, 0)))
        return Estimation(
            estimators.describe(self),
            fit.annotations,
            value,
            deviation,
            np.where(size > 0, weight, np.nan),
            np.where(size > 0, bias, np.nan),
            np.where(size > 0, noise, np.nan),
            trace,
            converged,
        )


_HALF = 1e-9  # weights that miss one half by less than this are one half


def ratio(part: Floats, whole: Floats | Integers) -> Floats:
    """Divide; NaN where the whole is zero.

    >>> ratio(np.array([1.0, 0.0]), np.array([2.0, 0.0])).tolist()
    [0.5, nan]
    """
    return np.divide(part, whole, out=np.full(np.shape(part), np.nan), where=whole != 0)


def gold_values(annotations: Numbers, gold: Mapping[Any, Any] | None) -> Floats:
    """Return the known value of every item, NaN where it is not known.

    Gold about items that nobody was asked about is of no use here and left aside.
    """
    values = np.full(annotations.n_items, np.nan)
    if not gold:
        return values
    position = {name: position for position, name in enumerate(annotations.items.tolist())}
    for item, given in gold.items():
        if text(item) not in position:
            continue
        try:
            number = float(given)
        except (TypeError, ValueError):
            number = math.nan
        if not math.isfinite(number):
            raise DataError(f"gold says {given!r} for item {text(item)!r}, which is not a number")
        values[position[text(item)]] = number
    if np.isnan(values).all():
        raise DataError("gold is given, but for none of the annotated items")
    return values
