"""Several measures of the same annotations, computed together, and their bootstrap intervals.

Items count once each, or with weights: a bootstrap sample, or a jackknife block left out. Items are
resampled, each with all its labels; single labels never, since that would break the pairs within
items. A bootstrap sample is a weight for every row, and measures take many samples at once. Where
many items have equal counts, their weights are drawn together, which is equivalent and cheaper.

    B. Efron. Better bootstrap confidence intervals. J. Am. Stat. Association 82, 1987.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from typing import Any, Literal, NamedTuple

import numpy as np
from scipy import sparse
from scipy.special import ndtr, ndtri

from ..answers.annotations import Annotations
from ..base.arrays import Floats, Integers
from ..errors import OptionError
from . import coefficients
from .coefficients import Measure
from .pairs import CoAnnotations
from .statistics import (
    Difference,
    ItemStatistics,
    SufficientStatistics,
    Votes,
    WeightsLike,
    count_votes,
    create_difference,
    weights_to_difference,
    without_each,
)

_CELLS = 2**22
_ALIKE = 20  # drawing the weight of a row costs as much as drawing this many items
_BLOCKS = 200


class Resampling(NamedTuple):
    """Settings of confidence intervals from bootstrap samples of items."""

    resamples: int = 1000
    confidence: float = 0.95
    interval: str = "percentile"
    seed: int = 0
    progress: Callable[[int, int], None] | None = None

    def check(self) -> None:
        """Refuse impossible settings."""
        if self.resamples < 0 or self.resamples == 1:
            raise OptionError(f"resamples = {self.resamples}, but it must be 0 or at least 2")
        if not 0 < self.confidence < 1:
            raise OptionError(f"confidence = {self.confidence}, but it must be above 0 and below 1")
        if self.interval not in ("percentile", "bca"):
            raise OptionError(f"no interval {self.interval!r}; there are percentile and bca")

    def advance(self, n_done: int) -> None:
        """Report how many samples are done."""
        if self.progress is not None:
            self.progress(n_done, self.resamples)


class JointMeasures:
    """Several measures of the same annotations, from shared sufficient statistics.

    Parameters
    ----------
    annotations
        The annotations.
    measures
        The measures.
    scale
        Of alpha: nominal, ordinal, interval, ratio, or a matrix of differences.
    weights
        Of all others: names of weights, or a matrix; by default those of the scale.
    min_overlap
        Pairs of annotators with fewer common items do not count.
    by_item
        Keep one row per item, also for items with equal label counts.
    votes
        Label counts, where they are known; the annotations then only declare the classes.
    """

    def __init__(
        self,
        annotations: Annotations,
        measures: Sequence[Measure],
        *,
        scale: WeightsLike = "nominal",
        weights: WeightsLike | None = None,
        min_overlap: int = 1,
        by_item: bool = False,
        votes: Votes | None = None,
    ) -> None:
        labelled = annotations.labels_per_item > 0
        self.annotations = (
            annotations if labelled.all() else annotations.take(np.flatnonzero(labelled))
        )
        self.measures = tuple(measures)
        self.by_pairs = any(measure.by_pairs for measure in measures)  # some are means over pairs
        self._scale, self._weights, self._min_overlap = scale, weights, min_overlap
        votes = count_votes(self.annotations) if votes is None else votes
        if (
            not by_item
            and not self.by_pairs
            and all(measure.name != "conger" for measure in measures)
        ):
            votes = votes.distinct()
        self.times = votes.times  # (row): how many items it represents; weights are for rows
        ranked = isinstance(scale, str) and scale == "ordinal"
        self._statistics: dict[str, ItemStatistics] = {}
        for kind in sorted({measure.kind for measure in measures if not measure.by_pairs}):
            if (
                kind == "weighted"
                and weights is None
                and not ranked
                and "alpha" in self._statistics
            ):
                self._statistics[kind] = self._statistics["alpha"]
            else:
                by_rank = ranked and kind == "alpha"
                difference = self.difference("plain" if by_rank else kind)
                self._statistics[kind] = ItemStatistics(votes, difference, by_rank)

    def difference(self, kind: str) -> Difference:
        """Return the difference behind alpha, the weighted measures, or those without weights."""
        if kind == "plain":
            return create_difference("nominal", self.annotations.classes)
        if kind == "alpha" or self._weights is None:
            return create_difference(self._scale, self.annotations.classes)
        return weights_to_difference(self._weights, self.annotations.classes)

    @cached_property
    def co_annotations(self) -> CoAnnotations:
        """The co-annotated items of every pair of annotators."""
        return CoAnnotations(self.annotations, self.difference("weighted"), self._min_overlap)

    @cached_property
    def _labels(self) -> sparse.csr_array[Any, Any]:
        """Labels: (annotator and class, item)."""
        whole = self.annotations.part(0, self.annotations.n_items)
        return sparse.csr_array(whole.labels.T.tocsr())

    @cached_property
    def values(self) -> Floats:
        """The measures, every item counting once: (measure)."""
        if not len(self.annotations):
            return np.full(len(self.measures), np.nan)
        return self.weighted(None)[:, 0]

    def weighted(self, weights: Floats | None, *, pairs: bool = True) -> Floats:
        """Return the measures under weights: (measure, weighting), from (weighting, row).

        Without `pairs`, means over pairs of annotators are NaN.
        """
        totals: dict[int, SufficientStatistics] = {}
        out = []
        for measure in self.measures:
            if measure.by_pairs and weights is not None and not pairs:
                out.append(np.full(len(weights), np.nan))
                continue
            if measure.by_pairs:
                values = [
                    self.co_annotations.values(measure.name, times)[0]
                    for times in ([None] if weights is None else weights)
                ]
                defined = [row[~np.isnan(row)] for row in values]
                out.append(np.array([row.mean() if len(row) else np.nan for row in defined]))
                continue
            statistics = self._statistics[measure.kind]
            if id(statistics) not in totals:
                totals[id(statistics)] = statistics.weighted(weights)
            if measure.name == "conger":
                out.append(self._conger(totals[id(statistics)], weights))
            else:
                out.append(_value(measure, totals[id(statistics)], statistics))
        return np.stack(out)

    def _marginals(self, weights: Floats | None) -> Floats:
        """Return the label marginals of every annotator: (annotator, weighting, class)."""
        times = np.ones((1, self.annotations.n_items)) if weights is None else weights
        counts = self._labels @ np.ascontiguousarray(times.T)
        counts = counts.reshape(
            self.annotations.n_annotators, self.annotations.n_classes, -1
        ).swapaxes(1, 2)
        with np.errstate(invalid="ignore"):
            return counts / counts.sum(axis=-1, keepdims=True)

    def _conger(self, totals: Any, weights: Floats | None) -> Floats:
        difference = self._statistics["weighted"].difference
        expected, _, _ = coefficients.conger_expected(self._marginals(weights), difference)
        return coefficients.corrected(totals.observed, expected)

    def errors(self) -> Floats:
        """Return standard errors where there is a formula, else NaN: (measure)."""
        out = []
        for measure in self.measures:
            if measure.expected is not None or measure.name == "percent":
                out.append(
                    coefficients.linearised_error(self._statistics[measure.kind], measure.expected)
                )
            elif measure.by_pairs:
                out.append(float(np.sqrt((self.co_annotations.influence(measure.name) ** 2).sum())))
            else:
                out.append(math.nan)
        return np.array(out)

    def without_each(self) -> Floats:
        """Return the measures without one annotator: (measure, annotator)."""
        out = np.full((len(self.measures), self.annotations.n_annotators), np.nan)
        for kind, statistics in self._statistics.items():
            for rows, totals in without_each(
                self.annotations, statistics.difference, statistics.with_pairs
            ):
                for position, measure in enumerate(self.measures):
                    if measure.by_pairs or measure.kind != kind:
                        continue
                    if measure.name == "conger":
                        out[position, rows] = self._conger_without(totals, rows)
                    else:
                        out[position, rows] = _value(measure, totals, statistics)
        for position, measure in enumerate(self.measures):
            if measure.by_pairs:
                out[position] = self._pairs_without(measure.name)
        return out

    def _conger_without(self, totals: Any, rows: slice) -> Floats:
        """Return Conger's kappa without one annotator, whose share is subtracted."""
        difference = self._statistics["weighted"].difference
        shares = self._marginals(None)[:, 0]
        _, whole, count = coefficients.conger_expected(shares, difference)
        shares = np.nan_to_num(shares)
        own = (shares * difference.toward(shares)).sum(axis=-1)
        remaining = whole - shares[rows]
        n_remaining = count - (shares[rows].sum(axis=-1) > 0)
        total = (remaining * difference.toward(remaining)).sum(axis=-1)
        expected = coefficients.per_pair(total - (own.sum() - own[rows]), n_remaining)
        return coefficients.corrected(totals.observed, expected)

    def _pairs_without(self, name: str) -> Floats:
        pairs, n = self.co_annotations, self.annotations.n_annotators
        value = pairs.values(name)[0]
        has_value = ~np.isnan(value)
        total, count = np.full(n, value[has_value].sum()), np.full(n, has_value.sum())
        for annotator in (pairs.one[has_value], pairs.other[has_value]):
            total -= np.bincount(annotator, value[has_value], minlength=n)
            count -= np.bincount(annotator, minlength=n)
        return np.divide(total, count, out=np.full(n, np.nan), where=count > 0)


def _value(measure: Measure, totals: SufficientStatistics, statistics: ItemStatistics) -> Floats:
    """Return a measure of sufficient statistics, one number for every weighting."""
    difference = statistics.difference
    if measure.expected is not None:
        expected, _ = measure.expected(totals.shares, difference)
        return coefficients.corrected(totals.observed, expected)
    assert measure.formula is not None
    formula = coefficients.ordinal_alpha if statistics.with_pairs else measure.formula
    return formula(totals, difference)


IntervalKind = Literal["percentile", "bca"]


class Interval(NamedTuple):
    """Bounds, and the number of samples without a value."""

    low: float
    high: float
    dropped: int


def draws(times: Integers, resamples: int, seed: int) -> Iterator[Floats]:
    """Yield bootstrap weights of rows, several samples at a time: (sample, row)."""
    rng = np.random.default_rng(seed)
    rows, n = len(times), int(times.sum())
    step = max(min(_CELLS // max(rows, 1), 64), 1)
    row_of = np.repeat(np.arange(rows, dtype=np.int32), times)
    for start in range(0, resamples, step):
        count = min(step, resamples - start)
        if rows * _ALIKE < n:
            yield rng.multinomial(n, times / n, size=count).astype(np.float64)
            continue
        drawn = np.empty((count, rows))
        for sample in drawn:
            items = rng.integers(n, size=n, dtype=np.int32 if n < 2**31 else np.int64)
            sample[:] = np.bincount(items if rows == n else row_of[items], minlength=rows)
        yield drawn


def blocks(times: Integers, seed: int) -> Floats:
    """Return weights that leave out one block of items each: (block, row).

    With no more items than blocks, this is the jackknife.
    """
    n = int(times.sum())
    count = min(n, _BLOCKS, max(_CELLS * 8 // max(len(times), 1), 20))  # memory is bounded
    block = np.random.default_rng(seed).permutation(n) % max(count, 1)
    cell = block * len(times) + np.repeat(np.arange(len(times)), times)
    lost = np.bincount(cell, minlength=len(times) * count).reshape(count, len(times))
    return (times - lost).astype(np.float64)


def interval_of(
    value: float, drawn: Floats, confidence: float, left_out: Floats | None = None
) -> Interval:
    """Return the interval of a value from its bootstrap distribution.

    With jackknife values it is BCa, corrected for bias and acceleration; otherwise between the
    percentiles.
    """
    values = drawn[~np.isnan(drawn)]
    dropped = len(drawn) - len(values)
    if len(values) < 2 or math.isnan(value):
        return Interval(math.nan, math.nan, dropped)
    bounds = np.array([(1 - confidence) / 2, (1 + confidence) / 2])
    if left_out is not None:
        bounds = _corrected(bounds, value, values, left_out)
    low, high = np.quantile(values, bounds)
    return Interval(float(low), float(high), dropped)


def _corrected(bounds: Floats, value: float, values: Floats, left_out: Floats) -> Floats:
    below = ((values < value).mean() + (values <= value).mean()) / 2
    limit = 0.5 / len(values)
    bias = ndtri(np.clip(below, limit, 1 - limit))
    away = np.nanmean(left_out) - left_out[~np.isnan(left_out)]
    scale = 6 * (away**2).sum() ** 1.5
    skew = (away**3).sum() / scale if scale > 0 else 0.0
    z = bias + ndtri(bounds)
    return ndtr(bias + z / (1 - skew * z))
