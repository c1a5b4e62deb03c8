"""Pairwise agreement of annotators on their common items.

Cohen's kappa takes chance agreement from the label marginals of each annotator on common items,
Scott's pi from both together. Only pairs with a common item are stored. An annotator who labelled
an item more than once counts once there, with a fraction of a vote for each label. Every two labels
on one item are summed for pairs of annotators (`CoAnnotations`), so the cost grows with the label
pairs of items. Means over pairs say how people agree with people, models with models, and across.

    J. Cohen. A coefficient of agreement for nominal scales. Educ. Psychol. Measurement 20, 1960.
    J. Cohen. Weighted kappa. Psychological Bulletin 70, 1968.
    W. A. Scott. Reliability of content analysis. Public Opinion Quarterly 19, 1955.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np
from scipy import sparse

from ..answers.annotations import Annotations
from ..base.arrays import Array, Floats, Integers
from ..base.names import Names
from ..base.storage import as_plain, as_rows
from ..base.tables import Table
from ..errors import OptionError
from ..result import Result
from .coefficients import corrected
from .statistics import Difference, WeightsLike, repeats_previous, weights_to_difference

if TYPE_CHECKING:
    from ..pages.sections import Section

_MOST = 2**28  # label pairs, and numbers in memory
_PIECE = 2**22
_DENSE = 2**24  # cells up to which pairs are looked up in a full table
_MOST_ORDERED = 300  # annotators up to which the order of leaves is optimal
_WIDE = 5000  # annotators up to which a full matrix is allowed


def label_pairs(size: Integers, step: int) -> Iterator[tuple[Integers, Integers]]:
    """Yield the positions of every two labels of an item, about `step` pairs at a time.

    Labels are sorted by item, and `size` counts the labels of every item.

    >>> [(left.tolist(), right.tolist()) for left, right in label_pairs(np.array([3, 1, 2]), 9)]
    [([0, 0, 1, 4], [1, 2, 2, 5])]
    """
    size = size.astype(np.int64)
    n_labels = int(size.sum())
    start = np.repeat(np.cumsum(size) - size, size)
    later = np.repeat(size, size) - 1 - (np.arange(n_labels) - start)  # labels after this one
    cumulative = np.cumsum(later)
    first, n_yielded = 0, 0
    while first < n_labels and n_yielded < cumulative[-1]:
        last = max(int(np.searchsorted(cumulative, n_yielded + step, "right")), first + 1)
        earlier = np.repeat(np.arange(first, last), later[first:last])
        offset = (
            np.repeat(cumulative[first:last] - later[first:last], later[first:last]) - n_yielded
        )
        yield earlier, earlier + 1 + np.arange(len(earlier)) - offset
        first, n_yielded = last, n_yielded + len(earlier)


class PairIndex:
    """Positions of pairs of annotators, which are in ascending order."""

    def __init__(self, first: Integers, second: Integers, n_annotators: int) -> None:
        self._keys, self._n = first * n_annotators + second, n_annotators
        self._table: Integers | None = None
        if n_annotators**2 <= _DENSE:
            self._table = np.full(n_annotators**2, -1)
            self._table[self._keys] = np.arange(len(self._keys))

    def find(self, first: Array, second: Array) -> Integers:
        """Return the positions of pairs, -1 for those that are not indexed."""
        key = first.astype(np.int64) * self._n + second
        if self._table is not None:
            return self._table[key]
        if len(self._keys) == 0:
            return np.full(len(key), -1)
        position = np.minimum(np.searchsorted(self._keys, key), len(self._keys) - 1)
        return np.where(self._keys[position] == key, position, -1)


def co_annotating(labelled: sparse.csr_array[Any, Any], least: int) -> tuple[Integers, Integers]:
    """Return the pairs of annotators with `least` common items, from (item, annotator).

    The second annotator has the larger code, and pairs are in ascending order.
    """
    common = sparse.triu(labelled.T @ labelled, k=1).tocoo()
    enough = common.data >= least
    first, second = (common.coords[axis][enough].astype(np.int64) for axis in (0, 1))
    order = np.lexsort((second, first))
    return first[order], second[order]


class CoAnnotations:
    """Label pairs of different annotators on one item, summed for every pair of annotators."""

    def __init__(
        self, annotations: Annotations, difference: Difference, min_overlap: int = 1
    ) -> None:
        self.annotations, self.difference, self.min_overlap = annotations, difference, min_overlap
        size = annotations.labels_per_item.astype(np.int64)
        n_pairs = int((size * (size - 1) // 2).sum())
        if n_pairs > _MOST:
            raise OptionError(
                f"{n_pairs:,} pairs of labels are too many to compare "
                f"(at most {_MOST:,}); keep fewer annotators, or take fleiss or alpha"
            )
        starts = np.flatnonzero(~repeats_previous(annotations))
        repeats = np.diff(np.append(starts, len(annotations)))
        self._vote = np.repeat(1 / repeats, repeats)  # (annotation)
        labelled: sparse.csr_array[Any, Any] = sparse.csr_array(
            (np.ones(len(starts)), (annotations.item[starts], annotations.annotator[starts])),
            shape=(annotations.n_items, annotations.n_annotators),
        )
        self.one, self.other = co_annotating(labelled, 1)
        if len(self.one) * annotations.n_classes > _MOST:
            raise OptionError(
                f"{len(self.one):,} pairs of annotators with {annotations.n_classes} classes do "
                "not fit into memory; keep fewer annotators, or take fleiss or alpha"
            )
        self._index = PairIndex(self.one, self.other, annotations.n_annotators)
        self._whole = self._summed(None)
        self.overlap = np.round(self._whole[0], 9)  # (pair): items in common

    def _label_pairs(self) -> Iterator[tuple[Integers, Integers, Integers]]:
        """Yield pairs of annotations of one item, and their pair of different annotators."""
        annotator = self.annotations.annotator
        for left, right in label_pairs(self.annotations.labels_per_item, _PIECE):
            pair = self._index.find(annotator[left], annotator[right])
            differ = pair >= 0
            yield left[differ], right[differ], pair[differ]

    def _summed(self, times: Floats | None) -> tuple[Floats, Floats, Floats, Floats]:
        """Return overlap, differences, and the labels of both on common items: (pair[, class])."""
        n, k = len(self.one), self.annotations.n_classes
        overlap, differing = np.zeros((2, n))
        sides = np.zeros((2, n * k))
        weight = None if times is None else times[self.annotations.item]
        for left, right, pair in self._label_pairs():
            vote = self._vote[left] * self._vote[right]
            if weight is not None:
                vote = vote * weight[left]
            labels = [self.annotations.label[side].astype(np.int64) for side in (left, right)]
            overlap += np.bincount(pair, vote, n)
            differing += np.bincount(pair, vote * self.difference.cells(*labels), n)
            for side, label in zip(sides, labels, strict=True):
                side += np.bincount(pair * k + label, vote, n * k)
        return overlap, differing, sides[0].reshape(n, k), sides[1].reshape(n, k)

    def values(self, measure: str, times: Floats | None = None) -> tuple[Floats, Floats]:
        """Return the agreement of every pair and its standard error; items count `times` each."""
        overlap, differing, left, right = self._whole if times is None else self._summed(times)
        with np.errstate(invalid="ignore", divide="ignore"):
            differing = differing / overlap
            left, right = left / overlap[:, None], right / overlap[:, None]
            if measure == "percent":
                expected = np.ones_like(differing)
            elif measure == "scott":
                mean = (left + right) / 2
                expected = (mean * self.difference.toward(mean)).sum(axis=-1)
            else:
                expected = (left * self.difference.toward(right)).sum(axis=-1)
            value = corrected(differing, expected)
            error = np.sqrt(np.maximum(differing * (1 - differing), 0) / overlap) / expected
        enough = (overlap > 0) & (self.overlap >= self.min_overlap)
        return np.where(enough, value, np.nan), np.where(enough, error, np.nan)

    def influence(self, measure: str) -> Floats:
        """Return how far the mean over pairs would move if an item counted more: (item).

        For two annotators the root of the summed squares is the standard error of Fleiss, Cohen
        and Everitt (1969).
        """
        overlap, differing, left_given, right_given = self._whole
        if measure == "scott":
            left_given = right_given = (left_given + right_given) / 2
        left_expected = self.difference.toward(right_given)  # (pair, class)
        right_expected = self.difference.toward(left_given)
        total = (left_given * left_expected).sum(axis=-1)
        has_value = (total > 0) & (self.overlap >= self.min_overlap)
        with np.errstate(invalid="ignore", divide="ignore"):
            base = np.where(has_value, differing / total, 0)
            slope = np.where(has_value, overlap / total, 0)
        n_values = int((~np.isnan(self.values(measure)[0])).sum())
        out = np.zeros(self.annotations.n_items)
        item = self.annotations.item
        for left, right, pair in self._label_pairs():
            left_label, right_label = (
                self.annotations.label[side].astype(np.int64) for side in (left, right)
            )
            scaled = (overlap * base)[pair]
            with np.errstate(invalid="ignore", divide="ignore"):
                expected = left_expected[pair, left_label] + right_expected[pair, right_label]
                expected = np.where(has_value[pair], expected / total[pair], 0)
            moved = (
                base[pair]
                + slope[pair] * self.difference.cells(left_label, right_label)
                - scaled * expected
            )
            vote = self._vote[left] * self._vote[right]
            out -= np.bincount(item[left], vote * moved, minlength=len(out))
        return out / max(n_values, 1)


PairMeasure = Literal["cohen", "percent", "scott"]


@dataclass(frozen=True, eq=False, repr=False)
class Pairs(Result):
    """Agreement of every two annotators with a common item.

    Attributes
    ----------
    one, other
        The two annotators by code, `one` below `other`.
    overlap
        Items that both labelled.
    value
        Agreement; NaN for fewer than `min_overlap` common items.
    error
        Large-sample standard error: (pair).
    """

    annotators: Names
    measure: str
    one: Integers  # (pair)
    other: Integers  # (pair)
    overlap: Floats  # (pair)
    value: Floats  # (pair)
    error: Floats  # (pair)
    min_overlap: int

    def __len__(self) -> int:
        return len(self.one)

    def __repr__(self) -> str:
        return f"<Pairs: {len(self)} with common items, mean {self.measure} {self.mean:.3f}>"

    @property
    def tables(self) -> Mapping[str, Table]:
        """The pairs, least agreement first."""
        return {"pairs": self._columns()}

    def sections(self) -> tuple[Section, ...]:
        """Return the pairs as a matrix, or those who agree least, and their mean."""
        from .sections import pairs_sections

        return pairs_sections(self)

    @property
    def known(self) -> Any:
        """Which pairs have a value."""
        return ~np.isnan(self.value)

    @property
    def mean(self) -> float:
        """The mean over pairs with a value, each counting the same."""
        return float(self.value[self.known].mean()) if self.known.any() else math.nan

    def matrix(self) -> Floats:
        """Return the values as a full matrix, 1 on its diagonal: (annotator, annotator)."""
        n = len(self.annotators)
        if n > _WIDE:
            raise OptionError(f"a matrix of {n} annotators is too large (at most {_WIDE})")
        out = np.full((n, n), np.nan)
        out[self.one, self.other] = out[self.other, self.one] = self.value
        np.fill_diagonal(out, 1.0)
        return out

    def order(self) -> Integers:
        """Return annotators with a value, those who agree next to each other, by code.

        The order is that of average linkage, where 1 minus agreement is a distance; pairs without a
        value have the mean of the average distances of both.
        """
        from scipy.cluster import hierarchy
        from scipy.spatial.distance import squareform

        distance = 1 - self.matrix()
        np.fill_diagonal(distance, np.nan)
        paired = np.flatnonzero(~np.isnan(distance).all(axis=1))
        if len(paired) < 3:
            return paired
        distance = distance[np.ix_(paired, paired)]
        has_value = ~np.isnan(distance)
        mean = np.where(has_value, distance, 0).sum(axis=1) / has_value.sum(axis=1)
        distance = np.maximum(np.where(has_value, distance, (mean[:, None] + mean) / 2), 0)
        np.fill_diagonal(distance, 0)
        best = len(paired) <= _MOST_ORDERED
        tree = hierarchy.linkage(
            squareform(distance, checks=False), "average", optimal_ordering=best
        )
        return paired[hierarchy.leaves_list(tree)]

    def rows(self) -> list[dict[str, Any]]:
        """Return a table of the pairs, least agreement first, undefined last."""
        return as_rows(self._columns())

    def as_dict(self) -> dict[str, Any]:
        """Return the pairs as rows, and what was measured."""
        content = {"measure": self.measure, "min_overlap": self.min_overlap, "mean": self.mean}
        return as_plain(content) | {"pairs": self.rows()}

    def _columns(self) -> dict[str, Array]:
        order = np.argsort(self.value, kind="stable")
        return {
            "one": self.annotators[self.one[order]],
            "other": self.annotators[self.other[order]],
            "items": self.overlap[order],
            "value": self.value[order],
            "error": self.error[order],
        }


def pairwise(
    annotations: Annotations,
    measure: PairMeasure = "cohen",
    *,
    weights: WeightsLike = "identity",
    min_overlap: int | None = None,
    shrinkage: float = 0.0,
) -> Pairs:
    """Return the agreement of all co-annotating pairs of annotators.

    Parameters
    ----------
    measure
        `cohen`, `scott` or `percent`.
    weights
        A name of weights, or a matrix: (class, class).
    min_overlap
        Pairs with fewer common items have no value; by default 5, or 10 beyond four classes.
    shrinkage
        Shrink values towards 0 as if there were this many more common items without agreement
        beyond chance.

    Examples
    --------
    >>> annotations = Annotations.from_matrix([[0, 0, 1], [1, 1, 1], [0, 0, 0], [1, 0, 1]])
    >>> pairwise(annotations, min_overlap=1).matrix()[0]
    array([1. , 0.5, 0.5])
    """
    if measure not in ("cohen", "percent", "scott"):
        raise OptionError(f"no measure {measure!r} of pairs; there are cohen, percent, scott")
    if shrinkage < 0:
        raise OptionError(f"shrinkage = {shrinkage}, but it must be at least 0")
    least = min_overlap if min_overlap is not None else (5 if annotations.n_classes <= 4 else 10)
    pairs = CoAnnotations(annotations, weights_to_difference(weights, annotations.classes), least)
    value, error = pairs.values(measure)
    shrunk = pairs.overlap / (pairs.overlap + shrinkage)
    return Pairs(
        annotators=annotations.annotators,
        measure=measure,
        one=pairs.one,
        other=pairs.other,
        overlap=pairs.overlap,
        value=value * shrunk,
        error=error * shrunk,
        min_overlap=least,
    )


def cohen_kappa(
    annotations: Annotations, *, weights: WeightsLike = "identity", min_overlap: int = 1
) -> float:
    """Return Cohen's kappa; of more than two annotators, the mean over pairs (Light's kappa)."""
    return pairwise(annotations, "cohen", weights=weights, min_overlap=min_overlap).mean


def scott_pi(
    annotations: Annotations, *, weights: WeightsLike = "identity", min_overlap: int = 1
) -> float:
    """Return Scott's pi; of more than two annotators, the mean over pairs."""
    return pairwise(annotations, "scott", weights=weights, min_overlap=min_overlap).mean


class KindAgreement(NamedTuple):
    """Agreement of the pairs of annotators of some kinds."""

    between: str  # people, models, or people and models
    pairs: int
    percent: float
    kappa: float


def agreement_by_kind(
    annotations: Annotations, weights: WeightsLike | None = None
) -> tuple[KindAgreement, ...]:
    """Return agreement among people, among models and across; nothing where kinds are not mixed.

    >>> annotations = Annotations.from_columns(
    ...     "abcdef" * 3, ["ann"] * 6 + ["bob"] * 6 + ["model:m"] * 6, "011010" "011011" "111010"
    ... ).with_kinds()
    >>> [(one.between, one.pairs, round(one.percent, 2)) for one in agreement_by_kind(annotations)]
    [('people', 1, 0.83), ('people and models', 2, 0.75)]
    """
    if not annotations.mixed_kinds:
        return ()
    model = annotations.is_kind("model")
    code = annotations.is_kind("code")
    weights = annotations.scale if weights is None else weights
    percent = pairwise(annotations, "percent", weights=weights, min_overlap=5)
    kappa = pairwise(annotations, "cohen", weights=weights, min_overlap=5)
    n_models = model[percent.one].astype(int) + model[percent.other]
    usable = ~(code[percent.one] | code[percent.other]) & percent.known
    out = []
    for count, name in enumerate(("people", "people and models", "models")):
        of_kinds = usable & (n_models == count)
        if of_kinds.any():
            values = kappa.value[of_kinds]
            defined = values[~np.isnan(values)]
            mean = float(defined.mean()) if len(defined) else float("nan")
            out.append(
                KindAgreement(
                    name, int(of_kinds.sum()), float(percent.value[of_kinds].mean()), mean
                )
            )
    return tuple(out)
