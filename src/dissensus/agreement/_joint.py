"""Several measures of the same annotations, worked out together.

The items count as they are, or under other weights: a draw of items, or one block of them less.
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
from ._co_annotation import Meetings
from ._measures import Measure
from ._statistics import Terms, without_each
from ._votes import Votes, count_votes
from .differences import Difference, Wish, create_difference, weights_to_difference

__all__ = ["Panel"]


class Panel:
    """Several measures of the same annotations.

    Parameters
    ----------
    annotations
        The annotations.
    chosen
        The measures.
    level
        Of alpha: nominal, ordinal, interval, ratio, or a matrix of differences.
    weights
        Of all others: names of weights, or a matrix; by default those of the level.
    min_overlap
        Common items below which a pair of annotators does not count.
    by_item
        Keep one row for every item, also where items look alike.
    votes
        The counts of labels, where they are known and the annotations only say the classes.
    """

    def __init__(
        self,
        annotations: Annotations,
        chosen: Sequence[Measure],
        *,
        level: Wish = "nominal",
        weights: Wish | None = None,
        min_overlap: int = 1,
        by_item: bool = False,
        votes: Votes | None = None,
    ) -> None:
        labelled = annotations.labels_per_item > 0
        self.annotations = (
            annotations if labelled.all() else annotations.take(np.flatnonzero(labelled))
        )
        self.chosen = tuple(chosen)
        self._ranked = isinstance(level, str) and level == "ordinal"
        self._level, self._weights, self._min_overlap = level, weights, min_overlap
        self._votes = votes
        self._by_item = by_item or any(one.formula is None for one in chosen)

    def _difference(self, kind: str) -> Difference:
        """Return the difference behind alpha, the weighted measures, or those without weights."""
        if kind == "plain":
            return create_difference("nominal", self.annotations.classes)
        if kind == "alpha" or self._weights is None:
            return create_difference(self._level, self.annotations.classes)
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
    def _terms(self) -> dict[str, Terms]:
        """The terms of every kind of difference that is needed."""
        kinds = {self._kind(one) for one in self.chosen if not one.by_pairs}
        votes = count_votes(self.annotations) if self._votes is None else self._votes
        if not self._by_item:
            votes = votes.distinct()
        made: dict[str, Terms] = {}
        for kind in sorted(kinds):
            ranked = self._ranked and kind == "alpha"
            same = self._weights is None and not self._ranked and "alpha" in made
            made[kind] = (
                made["alpha"]
                if kind == "weighted" and same
                else Terms(votes, self._difference("plain" if ranked else kind), ranked)
            )
        return made

    @cached_property
    def _meetings(self) -> Meetings:
        return Meetings(self.annotations, self._difference("weighted"), self._min_overlap)

    @cached_property
    def _given(self) -> sparse.csr_array[Any, Any]:
        """What annotators said: (annotator and class, item)."""
        whole = self.annotations.part(0, self.annotations.n_items)
        return sparse.csr_array(whole.labels.T.tocsr())

    @property
    def times(self) -> Integers:
        """How many items every row stands for; weights are given for rows."""
        if self._terms:
            return next(iter(self._terms.values())).votes.times
        return np.ones(self.annotations.n_items, dtype=np.int64)

    @property
    def by_pairs(self) -> bool:
        """Whether some measure looks at all pairs of annotators."""
        return any(one.by_pairs for one in self.chosen)

    @property
    def overlap(self) -> Floats:
        """Items in common for every pair of annotators who met: (pair)."""
        return self._meetings.overlap

    @cached_property
    def values(self) -> Floats:
        """The measures on the items as they are: (measure)."""
        if not len(self.annotations):
            return np.full(len(self.chosen), np.nan)
        sums = {kind: terms.total for kind, terms in self._terms.items()}
        return self._worked_out(sums, None)[:, 0]

    def under(self, weights: Floats, *, pairs: bool = True) -> Floats:
        """Return the measures under weights: (measure, weighting), from (weighting, row).

        Without pairs, measures that look at all pairs of annotators are NaN.
        """
        sums: dict[int, Any] = {}
        for terms in self._terms.values():
            if id(terms) not in sums:
                sums[id(terms)] = terms.under(weights)
        return self._worked_out({k: sums[id(t)] for k, t in self._terms.items()}, weights, pairs)

    def _worked_out(
        self, sums: dict[str, Any], weights: Floats | None, pairs: bool = True
    ) -> Floats:
        out = []
        for one in self.chosen:
            kind = self._kind(one)
            if one.by_pairs and not pairs and weights is not None:
                out.append(np.full(len(weights), np.nan))
            elif one.by_pairs:
                out.append(self._mean_of_pairs(one.name, weights))
            elif one.formula is None:
                out.append(self._conger(sums[kind], weights))
            else:
                formula = of.ordinal_alpha if self._ranked and kind == "alpha" else one.formula
                out.append(formula(sums[kind], self._terms[kind].difference))
        return np.stack(out)

    def _mean_of_pairs(self, name: str, weights: Floats | None) -> Floats:
        columns = [None] if weights is None else weights
        found = [self._meetings.values(name, times)[0] for times in columns]
        return np.array([_mean(one) for one in found])

    def _annotator_shares(self, weights: Floats | None) -> Floats:
        """Return the shares of classes for every annotator: (annotator, weighting, class)."""
        times = np.ones((1, self.annotations.n_items)) if weights is None else weights
        given = self._given @ np.ascontiguousarray(times.T)
        given = given.reshape(
            self.annotations.n_annotators, self.annotations.n_classes, -1
        ).swapaxes(1, 2)
        with np.errstate(invalid="ignore"):
            return given / given.sum(axis=-1, keepdims=True)

    def _conger(self, sums: Any, weights: Floats | None) -> Floats:
        difference = self._terms["weighted"].difference
        expected, _, _ = of.conger_chance(self._annotator_shares(weights), difference)
        return of.corrected(of.seen(sums), expected)

    def errors(self) -> Floats:
        """Return standard errors where there is a formula, else NaN: (measure)."""
        out = []
        for one in self.chosen:
            if one.linear:
                out.append(of.linearised_error(self._terms[self._kind(one)], one.chance))
            elif one.by_pairs:
                out.append(float(np.sqrt((self._meetings.influence(one.name) ** 2).sum())))
            else:
                out.append(math.nan)
        return np.array(out)

    def without_each(self) -> Floats:
        """Return the measures without one annotator: (measure, annotator)."""
        out = np.full((len(self.chosen), self.annotations.n_annotators), np.nan)
        for kind, terms in self._terms.items():
            for who, sums in without_each(self.annotations, terms.difference, terms.with_pairs):
                for position, one in enumerate(self.chosen):
                    if one.by_pairs or self._kind(one) != kind:
                        continue
                    if one.formula is None:
                        out[position, who] = self._conger_without(sums, who)
                        continue
                    ranked = self._ranked and kind == "alpha"
                    formula = of.ordinal_alpha if ranked else one.formula
                    out[position, who] = formula(sums, terms.difference)
        for position, one in enumerate(self.chosen):
            if one.by_pairs:
                out[position] = self._pairs_without(one.name)
        return out

    def _conger_without(self, sums: Any, who: slice) -> Floats:
        """Return Conger's kappa without one annotator, whose part is taken out of the sums."""
        difference = self._terms["weighted"].difference
        shares = self._annotator_shares(None)[:, 0]
        _, whole, count = of.conger_chance(shares, difference)
        shares = np.nan_to_num(shares)
        alone = (shares * difference.toward(shares)).sum(axis=-1)
        rest = whole - shares[who]
        left = count - (shares[who].sum(axis=-1) > 0)
        both = (rest * difference.toward(rest)).sum(axis=-1)
        expected = of.per_pair(both - (alone.sum() - alone[who]), left)
        return of.corrected(of.seen(sums), expected)

    def _pairs_without(self, name: str) -> Floats:
        met, n = self._meetings, self.annotations.n_annotators
        value = met.values(name)[0]
        kept = ~np.isnan(value)
        total, count = np.full(n, value[kept].sum()), np.full(n, kept.sum())
        for who in (met.one[kept], met.other[kept]):
            total -= np.bincount(who, value[kept], minlength=n)
            count -= np.bincount(who, minlength=n)
        return np.divide(total, count, out=np.full(n, np.nan), where=count > 0)


def _mean(values: Floats) -> float:
    kept = values[~np.isnan(values)]
    return float(kept.mean()) if len(kept) else math.nan
