"""Several measures of the same annotations, computed together.

Items count once each, or with weights: a bootstrap sample, or a jackknife block left out.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np
from scipy import sparse

from .._relation import Floats, Integers
from ..annotations import Annotations
from . import coefficients as of
from .co_annotation import CoAnnotations
from .differences import Difference, WeightsLike, create_difference, weights_to_difference
from .measure import Measure
from .sufficient_statistics import ItemStatistics, without_each
from .votes import Votes, count_votes


class JointMeasures:
    """Several measures of the same annotations, from shared sufficient statistics.

    Parameters
    ----------
    annotations
        The annotations.
    chosen
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
        chosen: Sequence[Measure],
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
        self.chosen = tuple(chosen)
        self._ranked = isinstance(scale, str) and scale == "ordinal"
        self._scale, self._weights, self._min_overlap = scale, weights, min_overlap
        self._votes = votes
        self._by_item = by_item or any(one.formula is None for one in chosen)

    def _difference(self, kind: str) -> Difference:
        """Return the difference behind alpha, the weighted measures, or those without weights."""
        if kind == "plain":
            return create_difference("nominal", self.annotations.classes)
        if kind == "alpha" or self._weights is None:
            return create_difference(self._scale, self.annotations.classes)
        return weights_to_difference(self._weights, self.annotations.classes)

    @property
    def weighting(self) -> Difference:
        """The difference behind the weighted measures."""
        return self._difference("weighted")

    def _kind(self, measure: Measure) -> str:
        if measure.nominal:
            return "plain"
        return "alpha" if measure.name == "alpha" else "weighted"

    @cached_property
    def _statistics(self) -> dict[str, ItemStatistics]:
        """The item statistics for every kind of difference that is needed."""
        kinds = {self._kind(one) for one in self.chosen if not one.by_pairs}
        votes = count_votes(self.annotations) if self._votes is None else self._votes
        if not self._by_item:
            votes = votes.distinct()
        statistics: dict[str, ItemStatistics] = {}
        for kind in sorted(kinds):
            ranked = self._ranked and kind == "alpha"
            same = kind == "weighted" and self._weights is None and not self._ranked
            if same and "alpha" in statistics:
                statistics[kind] = statistics["alpha"]
            else:
                difference = self._difference("plain" if ranked else kind)
                statistics[kind] = ItemStatistics(votes, difference, ranked)
        return statistics

    @cached_property
    def _co_annotations(self) -> CoAnnotations:
        return CoAnnotations(self.annotations, self._difference("weighted"), self._min_overlap)

    @cached_property
    def _given(self) -> sparse.csr_array[Any, Any]:
        """Labels: (annotator and class, item)."""
        whole = self.annotations.part(0, self.annotations.n_items)
        return sparse.csr_array(whole.labels.T.tocsr())

    @property
    def times(self) -> Integers:
        """How many items every row represents; weights are given for rows."""
        if self._statistics:
            return next(iter(self._statistics.values())).votes.times
        return np.ones(self.annotations.n_items, dtype=np.int64)

    @property
    def by_pairs(self) -> bool:
        """Whether some measure is a mean over pairs of annotators."""
        return any(one.by_pairs for one in self.chosen)

    @property
    def overlap(self) -> Floats:
        """Common items of every co-annotating pair of annotators: (pair)."""
        return self._co_annotations.overlap

    @cached_property
    def values(self) -> Floats:
        """The measures, every item counting once: (measure)."""
        if not len(self.annotations):
            return np.full(len(self.chosen), np.nan)
        totals = {kind: statistics.total for kind, statistics in self._statistics.items()}
        return self._compute(totals, None)[:, 0]

    def weighted(self, weights: Floats, *, pairs: bool = True) -> Floats:
        """Return the measures under weights: (measure, weighting), from (weighting, row).

        Without `pairs`, means over pairs of annotators are NaN.
        """
        distinct = {id(one): one for one in self._statistics.values()}
        totals = {key: one.weighted(weights) for key, one in distinct.items()}
        return self._compute(
            {kind: totals[id(one)] for kind, one in self._statistics.items()}, weights, pairs
        )

    def _compute(
        self, totals: dict[str, Any], weights: Floats | None, pairs: bool = True
    ) -> Floats:
        out = []
        for one in self.chosen:
            kind = self._kind(one)
            if one.by_pairs and not pairs and weights is not None:
                out.append(np.full(len(weights), np.nan))
            elif one.by_pairs:
                out.append(self._mean_of_pairs(one.name, weights))
            elif one.formula is None:
                out.append(self._conger(totals[kind], weights))
            else:
                out.append(self._formula(one)(totals[kind], self._statistics[kind].difference))
        return np.stack(out)

    def _formula(self, measure: Measure) -> of.Formula:
        assert measure.formula is not None
        return of.ordinal_alpha if self._ranked and measure.name == "alpha" else measure.formula

    def _mean_of_pairs(self, name: str, weights: Floats | None) -> Floats:
        columns = [None] if weights is None else weights
        values = [self._co_annotations.values(name, times)[0] for times in columns]
        return np.array([_mean(one) for one in values])

    def _marginals(self, weights: Floats | None) -> Floats:
        """Return the label marginals of every annotator: (annotator, weighting, class)."""
        times = np.ones((1, self.annotations.n_items)) if weights is None else weights
        given = self._given @ np.ascontiguousarray(times.T)
        given = given.reshape(
            self.annotations.n_annotators, self.annotations.n_classes, -1
        ).swapaxes(1, 2)
        with np.errstate(invalid="ignore"):
            return given / given.sum(axis=-1, keepdims=True)

    def _conger(self, totals: Any, weights: Floats | None) -> Floats:
        difference = self._statistics["weighted"].difference
        expected, _, _ = of.conger_expected(self._marginals(weights), difference)
        return of.corrected(of.observed(totals), expected)

    def errors(self) -> Floats:
        """Return standard errors where there is a formula, else NaN: (measure)."""
        out = []
        for one in self.chosen:
            if one.linear:
                out.append(of.linearised_error(self._statistics[self._kind(one)], one.expected))
            elif one.by_pairs:
                out.append(float(np.sqrt((self._co_annotations.influence(one.name) ** 2).sum())))
            else:
                out.append(math.nan)
        return np.array(out)

    def without_each(self) -> Floats:
        """Return the measures without one annotator: (measure, annotator)."""
        out = np.full((len(self.chosen), self.annotations.n_annotators), np.nan)
        for kind, one in self._statistics.items():
            for rows, totals in without_each(self.annotations, one.difference, one.with_pairs):
                for position, measure in enumerate(self.chosen):
                    if measure.by_pairs or self._kind(measure) != kind:
                        continue
                    if measure.formula is None:
                        out[position, rows] = self._conger_without(totals, rows)
                    else:
                        out[position, rows] = self._formula(measure)(totals, one.difference)
        for position, measure in enumerate(self.chosen):
            if measure.by_pairs:
                out[position] = self._pairs_without(measure.name)
        return out

    def _conger_without(self, totals: Any, rows: slice) -> Floats:
        """Return Conger's kappa without one annotator, whose share is subtracted."""
        difference = self._statistics["weighted"].difference
        shares = self._marginals(None)[:, 0]
        _, whole, count = of.conger_expected(shares, difference)
        shares = np.nan_to_num(shares)
        alone = (shares * difference.toward(shares)).sum(axis=-1)
        rest = whole - shares[rows]
        left = count - (shares[rows].sum(axis=-1) > 0)
        both = (rest * difference.toward(rest)).sum(axis=-1)
        expected = of.per_pair(both - (alone.sum() - alone[rows]), left)
        return of.corrected(of.observed(totals), expected)

    def _pairs_without(self, name: str) -> Floats:
        pairs, n = self._co_annotations, self.annotations.n_annotators
        value = pairs.values(name)[0]
        known = ~np.isnan(value)
        total, count = np.full(n, value[known].sum()), np.full(n, known.sum())
        for annotator in (pairs.one[known], pairs.other[known]):
            total -= np.bincount(annotator, value[known], minlength=n)
            count -= np.bincount(annotator, minlength=n)
        return np.divide(total, count, out=np.full(n, np.nan), where=count > 0)


def _mean(values: Floats) -> float:
    known = values[~np.isnan(values)]
    return float(known.mean()) if len(known) else math.nan
