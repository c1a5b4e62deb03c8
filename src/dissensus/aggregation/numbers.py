"""The interface of estimators of numbers, and the steps they have in common."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from ..base.arrays import Floats, Integers
from ..answers.numbers import Numbers
from ..errors import DataError
from ..params import Settings
from ..registry import estimators
from ..result import Estimation, gold_values
from ..method import Progress, no_progress


@dataclass(frozen=True)
class NumericContext:
    """Everything that an estimator is given besides its settings."""

    annotations: Numbers
    gold: Floats  # (item): the known value, or NaN
    seed: int = 0
    progress: Progress = no_progress

    @cached_property
    def item(self) -> Integers:
        """The item of every answer."""
        return self.annotations.item.astype(np.int64)

    @cached_property
    def variance(self) -> float:
        """The variance of all answers; 1 where all are the same."""
        return float(self.annotations.value.var()) or 1.0

    @cached_property
    def within(self) -> float:
        """The variance of answers within items; at least a small fraction of that of all."""
        error = self.errors(self.mean(np.ones(len(self.annotations))))
        freedom = len(error) - int((self.annotations.labels_per_item > 0).sum())
        return max(float(error @ error) / max(freedom, 1), 1e-6 * self.variance)

    @cached_property
    def ranked(self) -> Integers:
        """The order of the answers by item and value."""
        return np.lexsort((self.annotations.value, self.item))

    def by_item(self, value: Floats) -> Floats:
        """Return values of answers, summed by item."""
        return np.bincount(self.item, value, minlength=self.annotations.n_items).astype(float)

    def by_annotator(self, value: Floats) -> Floats:
        """Return values of answers, summed by annotator."""
        n_annotators = self.annotations.n_annotators
        return np.bincount(self.annotations.annotator, value, minlength=n_annotators).astype(float)

    def mean(self, weight: Floats) -> Floats:
        """Return the weighted mean of every item; NaN where there is none."""
        return ratio(self.by_item(weight * self.annotations.value), self.by_item(weight))

    def median(self, weight: Floats) -> Floats:
        """Return the weighted median of every item; NaN where there is none.

        Half of the weight lies on either side. Where that leaves an interval, it is its middle.
        """
        value, index = self.annotations.value[self.ranked], self.annotations.index
        part = ratio(weight, self.by_item(weight)[self.item])[self.ranked]
        upto = np.concatenate([[0.0], np.cumsum(part)])  # weight before every answer
        half = upto[index[:-1]] + 0.5
        first, last = index[:-1], np.maximum(index[1:] - 1, 0)
        lower = np.clip(np.searchsorted(upto[1:], half - _HALF), first, last)
        upper = np.clip(np.searchsorted(upto[1:], half + _HALF), first, last)
        median = np.full(self.annotations.n_items, np.nan)
        some = self.annotations.labels_per_item > 0
        median[some] = value[lower[some]] / 2 + value[upper[some]] / 2
        return median

    def keep_gold(self, value: Floats) -> Floats:
        """Return values with gold kept."""
        return np.where(np.isnan(self.gold), value, self.gold)

    def errors(self, value: Floats) -> Floats:
        """Return the difference of every answer from the value of its item."""
        return self.annotations.value - value[self.item]


@dataclass(frozen=True, kw_only=True)
class Estimator(Settings, ABC):
    """A method that infers the values of items from annotators' numbers."""

    side_tables: ClassVar[tuple[str, ...]] = ()  # settings that may name files

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
            Known values, `{item: number}`: they are kept, and methods with parameters learn from
            them.
        seed
            Random seed; no method uses it so far.
        progress
            Called after every iteration with its number and the objective.
        """
        if len(annotations) == 0:
            raise DataError("there is no answer to estimate from")
        known = gold_values(annotations, gold)
        return self.infer(NumericContext(annotations, known, seed, progress or no_progress))

    @abstractmethod
    def infer(self, fit: NumericContext) -> Estimation:
        """Return the result of a fit."""

    def result(
        self,
        fit: NumericContext,
        value: Floats,
        deviation: Floats,
        *,
        weight: Floats | None = None,
        bias: Floats | None = None,
        noise: Floats | None = None,
        trace: tuple[float, ...] = (),
        converged: bool = True,
    ) -> Estimation:
        """Return the result, with gold kept and NaN for items without answers.

        Bias and noise that a method does not estimate are the mean and standard deviation of an
        annotator's errors.
        """
        known, size = ~np.isnan(fit.gold), fit.annotations.labels_per_annotator
        value = fit.keep_gold(np.where(fit.annotations.labels_per_item > 0, value, np.nan))
        deviation = np.where(known, 0.0, np.where(np.isnan(value), np.nan, deviation))
        error = fit.errors(value)
        weight = np.ones(len(size)) if weight is None else weight
        bias = ratio(fit.by_annotator(error), size) if bias is None else bias
        if noise is None:
            squares = fit.by_annotator((error - bias[fit.annotations.annotator]) ** 2)
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


_HALF = 1e-9  # tolerance of one half of the weight


def ratio(part: Floats, whole: Floats | Integers) -> Floats:
    """Divide; NaN where the whole is zero.

    >>> ratio(np.array([1.0, 0.0]), np.array([2.0, 0.0])).tolist()
    [0.5, nan]
    """
    return np.divide(part, whole, out=np.full(np.shape(part), np.nan), where=whole != 0)
