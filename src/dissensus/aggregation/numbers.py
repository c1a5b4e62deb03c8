"""Aggregation of numbers: the values of items from the numbers of several annotators.

`NumberMethod` is the interface of all methods for numbers, `NumberContext` what they compute from
the answers: sums, means and medians by item, errors by annotator. The methods here treat all
annotators alike; those that weigh them are in `truth_discovery` and `gaussian`.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, Any, ClassVar

import numpy as np
from annotated_types import Interval

from ..answers.gold import gold_values
from ..answers.numbers import Numbers
from ..base.arrays import Floats, Integers
from ..method import FitContext, Method
from .aggregation import NumberAggregation

_HALF = 1e-9  # tolerance of one half of the weight


@dataclass(frozen=True, kw_only=True)
class NumberContext(FitContext[Numbers]):
    """What a method for numbers is given: gold as values."""

    gold: Floats  # (item): the known value, or NaN

    @cached_property
    def item(self) -> Integers:
        """The item of every answer."""
        return self.answers.item.astype(np.int64)

    @cached_property
    def variance(self) -> float:
        """The variance of all answers; 1 where all are the same."""
        return float(self.answers.value.var()) or 1.0

    @cached_property
    def within(self) -> float:
        """The variance of answers within items; at least a small fraction of that of all."""
        error = self.errors(self.mean(np.ones(len(self.answers))))
        freedom = len(error) - int((self.answers.labels_per_item > 0).sum())
        return max(float(error @ error) / max(freedom, 1), 1e-6 * self.variance)

    @cached_property
    def ranked(self) -> Integers:
        """The order of the answers by item and value."""
        return np.lexsort((self.answers.value, self.item))

    def by_item(self, value: Floats) -> Floats:
        """Return values of answers, summed by item."""
        return np.bincount(self.item, value, minlength=self.answers.n_items).astype(float)

    def by_annotator(self, value: Floats) -> Floats:
        """Return values of answers, summed by annotator."""
        n_annotators = self.answers.n_annotators
        return np.bincount(self.answers.annotator, value, minlength=n_annotators).astype(float)

    def mean(self, weight: Floats) -> Floats:
        """Return the weighted mean of every item; NaN where there is none."""
        return ratio(self.by_item(weight * self.answers.value), self.by_item(weight))

    def median(self, weight: Floats) -> Floats:
        """Return the weighted median of every item; NaN where there is none.

        Half of the weight lies on either side. Where that leaves an interval, it is its middle.
        """
        value, index = self.answers.value[self.ranked], self.answers.index
        part = ratio(weight, self.by_item(weight)[self.item])[self.ranked]
        cumulative = np.concatenate([[0.0], np.cumsum(part)])  # weight before every answer
        half = cumulative[index[:-1]] + 0.5
        first, last = index[:-1], np.maximum(index[1:] - 1, 0)
        lower = np.clip(np.searchsorted(cumulative[1:], half - _HALF), first, last)
        upper = np.clip(np.searchsorted(cumulative[1:], half + _HALF), first, last)
        median = np.full(self.answers.n_items, np.nan)
        answered = self.answers.labels_per_item > 0
        median[answered] = value[lower[answered]] / 2 + value[upper[answered]] / 2
        return median

    def keep_gold(self, value: Floats) -> Floats:
        """Return values with gold kept."""
        return np.where(np.isnan(self.gold), value, self.gold)

    def values_settle(self, tol: float) -> Callable[[list[float], Any, Any], bool]:
        """Return the test of convergence that looks at values, in deviations of the answers."""
        answered = self.answers.labels_per_item > 0

        def settled(_trace: list[float], state: Any, last: Any) -> bool:
            change = np.mean((state.value - last.value)[answered] ** 2)
            return bool(change <= tol**2 * self.variance)

        return settled

    def errors(self, value: Floats) -> Floats:
        """Return the difference of every answer from the value of its item."""
        return self.answers.value - value[self.item]


@dataclass(frozen=True, kw_only=True)
class NumberMethod(Method[Numbers, NumberAggregation]):
    """A method that infers the values of items from annotators' numbers."""

    kinds: ClassVar[tuple[str, ...]] = ("numbers",)
    gold_is_labels: ClassVar[bool] = True

    def context(
        self, answers: Numbers, *, gold: Any, start: Any, features: Floats | None, **given: Any
    ) -> NumberContext:
        base = super().context(answers, gold=None, start=start, features=features, **given)
        return NumberContext(**vars(base) | {"gold": gold_values(answers, gold)})

    @abstractmethod
    def infer(self, fit: NumberContext) -> NumberAggregation:
        """Return the result of a fit."""

    def result(
        self,
        fit: NumberContext,
        value: Floats,
        deviation: Floats,
        *,
        weight: Floats | None = None,
        bias: Floats | None = None,
        noise: Floats | None = None,
        trace: tuple[float, ...] = (),
        converged: bool = True,
    ) -> NumberAggregation:
        """Return the result, with gold kept and NaN for items without answers.

        Bias and noise that a method does not estimate are the mean and standard deviation of an
        annotator's errors.
        """
        is_gold, size = ~np.isnan(fit.gold), fit.answers.labels_per_annotator
        value = fit.keep_gold(np.where(fit.answers.labels_per_item > 0, value, np.nan))
        deviation = np.where(is_gold, 0.0, np.where(np.isnan(value), np.nan, deviation))
        error = fit.errors(value)
        weight = np.ones(len(size)) if weight is None else weight
        bias = ratio(fit.by_annotator(error), size) if bias is None else bias
        if noise is None:
            squares = fit.by_annotator((error - bias[fit.answers.annotator]) ** 2)
            noise = np.sqrt(ratio(squares, np.maximum(size - 1, 0)))
        return NumberAggregation(
            method=self.spec_for("numbers"),
            answers=fit.answers,
            value=value,
            deviation=deviation,
            weight=np.where(size > 0, weight, np.nan),
            bias=np.where(size > 0, bias, np.nan),
            noise=np.where(size > 0, noise, np.nan),
            trace=trace,
            converged=converged,
        )


def ratio(part: Floats, whole: Floats | Integers) -> Floats:
    """Divide; NaN where the whole is zero.

    >>> ratio(np.array([1.0, 0.0]), np.array([2.0, 0.0])).tolist()
    [0.5, nan]
    """
    return np.divide(part, whole, out=np.full(np.shape(part), np.nan), where=whole != 0)


@dataclass(frozen=True, kw_only=True)
class Mean(NumberMethod):
    """The mean of an item's answers.

    Mean: every answer has the same weight.

    The standard error is that of the item's own answers, so it needs at least two.

        value[i] = mean of the answers to i

    When it fails: One outlier moves it as far as it likes, and an annotator who is always too high
    moves all of their items.

    Examples
    --------
    >>> from dissensus import Numbers
    >>> annotations = Numbers.from_columns("aaab", "xyzx", [1, 2, 6, 4])
    >>> Mean().fit(annotations).value.tolist()
    [3.0, 4.0]
    """

    def infer(self, fit: NumberContext) -> NumberAggregation:
        size = fit.answers.labels_per_item
        value = fit.mean(np.ones(len(fit.answers)))
        squares = fit.by_item(fit.errors(value) ** 2)
        deviation = np.sqrt(ratio(squares, size * np.maximum(size - 1, 0)))
        return self.result(fit, value, deviation)


@dataclass(frozen=True, kw_only=True)
class Median(NumberMethod):
    """The median of an item's answers; of an even number, the mean of the middle two.

    Median: robust against a few outliers.

        value[i] = median of the answers to i

    When it fails: With two answers it is the mean. It ignores annotators' biases and their
    precision, so with exact and sloppy annotators it wastes the exact ones.

    Examples
    --------
    >>> from dissensus import Numbers
    >>> annotations = Numbers.from_columns("aaabb", "xyzxy", [1, 2, 60, 4, 5])
    >>> Median().fit(annotations).value.tolist()
    [2.0, 4.5]
    """

    def infer(self, fit: NumberContext) -> NumberAggregation:
        value = fit.median(np.ones(len(fit.answers)))
        return self.result(fit, value, np.full(len(value), np.nan))


@dataclass(frozen=True, kw_only=True)
class TrimmedMean(NumberMethod):
    """The mean of an item's middle answers.

    Trimmed mean: the mean of an item's answers without the highest and lowest.

    The standard error is that of Tukey and McLaughlin, from winsorized answers.

        value[i] = mean of the answers to i without the highest and lowest share `trim`

    When it fails: With fewer than 1 / trim answers to an item nothing is cut, and it is the mean.
    Biases of annotators remain.

        J. W. Tukey, D. H. McLaughlin. Less vulnerable confidence and significance procedures for
        location based on a single sample: trimming/Winsorization 1. Sankhyā A 25(3), 1963.

    Parameters
    ----------
    trim
        Fraction of the answers that is left out at either end, rounded down to whole answers.

    Examples
    --------
    >>> from dissensus import Numbers
    >>> annotations = Numbers.from_columns("aaaaa", "vwxyz", [1, 2, 3, 4, 90])
    >>> TrimmedMean(trim=0.2).fit(annotations).value.tolist()
    [3.0]
    """

    trim: Annotated[float, Interval(ge=0, lt=0.5)] = 0.1

    def infer(self, fit: NumberContext) -> NumberAggregation:
        annotations, item = fit.answers, fit.item
        size = annotations.labels_per_item
        cut = np.floor(self.trim * size + 1e-9).astype(np.int64)  # (item): left out at either end
        first, last = annotations.index[:-1] + cut, annotations.index[1:] - 1 - cut
        position = np.arange(len(annotations))
        ranked = annotations.value[fit.ranked]  # the items stand in the same order
        inside = (position >= first[item]) & (position <= last[item])
        value = ratio(fit.by_item(ranked * inside), size - 2 * cut)
        winsorized = ranked[np.clip(position, first[item], last[item])]
        centre = ratio(fit.by_item(winsorized), size)
        squares = fit.by_item((winsorized - centre[item]) ** 2)
        share = ratio(size - 2.0 * cut, size)
        variance = ratio(squares, size * np.maximum(size - 1, 0))
        return self.result(fit, value, np.sqrt(variance) / share)
