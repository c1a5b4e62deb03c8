"""Label counts of items, differences of classes, and the sums that measures of agreement need.

A difference says how far apart two classes are, from 0 (the same) to 1. Weights of agreement are 1
minus a difference, so one table serves both the weighted kappas and Krippendorff's alpha. x is the
value of a class, i and j are positions, K is the number of classes:

    nominal    identity    1 unless they are the same
    linear                 |x - y| / range
    interval   quadratic   (x - y)² / range²
    ordinal                C(|i - j| + 1, 2) / C(K, 2); for alpha, squared differences of
                           mean ranks among the labels given
    ratio                  ((x - y) / (x + y))², over the largest
    circular               sin²(π (x - y) / (range + 1)), over the largest
    bipolar                (x - y)² / ((x + y - 2 least) (2 most - x - y)), over the largest

Classes that are all numbers have their value, others their position: 1, 2, 3 and so on.

Most measures need only the label counts of items (`Votes`): cells with a vote are stored, so the
size is that of the annotations, and `distinct` merges items with equal counts into one row, which
makes resampling cheap. Every item contributes a row to the sufficient statistics, so another
weighting of the items (a resample, or one annotator less) is another sum of the same rows:
`ItemStatistics.weighted` for weights, `without_each` for annotators. With r the label counts of an
item, m their sum and d the difference of classes:

    units     1 with a label                  paired    1 with two labels or more
    spread    r · d r / (m (m - 1))           differ    r · d r / (m - 1)
    share     r / m                           labels    r, where m > 1
    pairs     (r r' - diag r) / (m - 1): the coincidences, only where ranks define the difference

    K. L. Gwet. Handbook of inter-rater reliability, 4th edition. 2014.
    K. Krippendorff. Computing Krippendorff's alpha-reliability. 2011.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt
from scipy import sparse

from ..answers.annotations import SCALES, Annotations
from ..answers.base import Relation
from ..base.arrays import Floats, Integers
from ..base.names import Names, as_values
from ..errors import OptionError

_ROOM = 8  # cells per label up to which counting in a full table is cheaper than sorting
_OTHER = {"identity": "nominal", "quadratic": "interval"}
_NAMES = (*SCALES, "linear", "circular", "bipolar")
_MOST = 4096  # classes for which a full table is held
_CELLS = 2**22
_FULL = 96  # columns up to which a dense matrix is multiplied
_MAX_PAIRS = 2**24


@dataclass(frozen=True, eq=False)
class Votes:
    """Label counts, one row for an item or for all items with equal counts.

    Dense where that is not much larger than the labels, else sparse.
    """

    counts: Floats | sparse.csr_array[Any, Any]  # (row, class)
    times: Integers  # (row): how many items have these counts

    @property
    def n_classes(self) -> int:
        """The number of classes."""
        return self.counts.shape[1]

    @cached_property
    def table(self) -> sparse.csr_array[Any, Any]:
        """The counts as a sparse table: (row, class)."""
        return sparse.csr_array(self.counts)

    @cached_property
    def size(self) -> Floats:
        """The number of labels: (row)."""
        return self.counts @ np.ones(self.n_classes)

    @property
    def squares(self) -> Floats:
        """Sums of squared counts: (row)."""
        if isinstance(self.counts, np.ndarray):
            return np.einsum("ij,ij->i", self.counts, self.counts)
        return np.asarray(self.table.power(2).sum(axis=1), dtype=np.float64)

    def around(self, values: Floats, center: Floats) -> Floats:
        """Return squared distances from the center of a row, summed over labels: (row)."""
        if isinstance(self.counts, np.ndarray):
            return np.einsum("ij,ij->i", self.counts, (values - center[:, None]) ** 2)
        away = self.table.copy()
        row_center = np.repeat(center, np.diff(away.indptr))
        away.data = away.data * (values[away.indices] - row_center) ** 2
        return np.asarray(away.sum(axis=1), dtype=np.float64)

    def coincidences(self, weights: Floats) -> Floats:
        """Return the weighted sum of outer products of the counts: (class, class)."""
        if isinstance(self.counts, np.ndarray):
            return self.counts.T @ (self.counts * weights[:, None])
        return (self.table.T @ sparse.diags_array(weights) @ self.table).toarray()

    def distinct(self) -> Votes:
        """Return every row once, in an order that does not depend on the order of items."""
        # A sum of random 64-bit numbers identifies a row; the probability that two of 10^6 rows
        # collide is 3e-8.
        mark = np.random.default_rng(0).integers(2**63, size=self.n_classes, dtype=np.uint64)
        cells = mark[self.table.indices] * self.table.data.astype(np.uint64)
        total = np.concatenate([np.zeros(1, np.uint64), np.cumsum(cells, dtype=np.uint64)])
        name = total[self.table.indptr[1:]] - total[self.table.indptr[:-1]]
        _, row_of, position = np.unique(name, return_index=True, return_inverse=True)
        times = np.bincount(position, self.times, minlength=len(row_of)).astype(np.int64)
        return Votes(self.table[row_of], times)


def count_votes(annotations: Annotations) -> Votes:
    """Return the counts of every item, also of those without labels."""
    width = annotations.n_classes
    cell = np.repeat(np.arange(annotations.n_items) * np.int64(width), annotations.labels_per_item)
    cell += annotations.label
    times = np.ones(annotations.n_items, dtype=np.int64)
    if annotations.n_items * width <= _ROOM * len(annotations):
        counts = np.bincount(cell, minlength=annotations.n_items * width)
        return Votes(counts.reshape(annotations.n_items, width).astype(np.float64), times)
    cells, counts = np.unique(cell, return_counts=True)
    row, label = np.divmod(cells, max(width, 1))
    index = np.zeros(annotations.n_items + 1, dtype=np.int64)
    np.cumsum(np.bincount(row, minlength=annotations.n_items), out=index[1:])
    table: sparse.csr_array[Any, Any] = sparse.csr_array(
        (counts.astype(np.float64), label, index), shape=(annotations.n_items, width)
    )
    return Votes(table, times)


def repeats_previous(annotations: Relation) -> npt.NDArray[np.bool_]:
    """Return whether a label is by the same annotator on the same item as the one before.

    >>> repeats_previous(Annotations.from_columns("aab", "xxx", "010")).tolist()
    [False, True, False]
    """
    repeats = np.zeros(len(annotations), dtype=bool)
    item, annotator = annotations.item, annotations.annotator
    repeats[1:] = (item[1:] == item[:-1]) & (annotator[1:] == annotator[:-1])
    return repeats


WeightsLike = str | npt.ArrayLike  # the name of a difference or of weights, or a matrix


class Difference(Protocol):
    """A symmetric table d[k, l] with a zero diagonal, never needed as a whole."""

    @property
    def total(self) -> float:
        """The sum of all cells."""

    def within(self, votes: Votes) -> Floats:
        """Return r · d r for the counts r of every row."""

    def toward(self, shares: Floats) -> Floats:
        """Return d p for shares p along the last axis."""

    def cells(self, first: npt.NDArray[Any], second: npt.NDArray[Any]) -> Floats:
        """Return d for pairs of classes."""


@dataclass(frozen=True, eq=False)
class Nominal:
    """Classes are the same or not."""

    n_classes: int

    @property
    def total(self) -> float:
        """How many pairs of classes differ."""
        return float(self.n_classes * (self.n_classes - 1))

    def within(self, votes: Votes) -> Floats:
        """Return how many ordered pairs of labels differ."""
        return votes.size**2 - votes.squares

    def toward(self, shares: Floats) -> Floats:
        """Return the share of all other classes."""
        return shares.sum(axis=-1, keepdims=True) - shares

    def cells(self, first: npt.NDArray[Any], second: npt.NDArray[Any]) -> Floats:
        """Return 1 where classes differ."""
        return (first != second).astype(np.float64)


@dataclass(frozen=True, eq=False)
class Squared:
    """Squared differences between numbers, computed from moments."""

    x: Floats  # (class): around 0, range 1

    @property
    def total(self) -> float:
        """The sum of all squared differences."""
        return float(2 * (len(self.x) * (self.x**2).sum() - self.x.sum() ** 2))

    def within(self, votes: Votes) -> Floats:
        """Return the sum of squared differences over ordered pairs of labels."""
        center = votes.counts @ self.x / np.maximum(votes.size, 1)
        return 2 * votes.size * votes.around(self.x, center)  # without cancellation

    def toward(self, shares: Floats) -> Floats:
        """Return for every class the mean squared difference to the shares."""
        first = (shares @ self.x)[..., None]
        second = (shares @ self.x**2)[..., None]
        return shares.sum(axis=-1, keepdims=True) * self.x**2 - 2 * first * self.x + second

    def cells(self, first: npt.NDArray[Any], second: npt.NDArray[Any]) -> Floats:
        """Return squared differences."""
        return (self.x[first] - self.x[second]) ** 2


@dataclass(frozen=True, eq=False)
class Tabled:
    """Any table."""

    table: Floats  # (class, class)

    @cached_property
    def total(self) -> float:
        """The sum of all cells."""
        return float(self.table.sum())

    def within(self, votes: Votes) -> Floats:
        """Return r · d r, a few rows at a time."""
        out = np.zeros(len(votes.times))
        step = max(_CELLS // max(votes.n_classes, 1), 1)
        for start in range(0, len(out), step):
            rows = votes.counts[start : start + step]
            full = rows if isinstance(rows, np.ndarray) else rows.toarray()
            out[start : start + step] = np.einsum("ij,ij->i", full @ self.table, full)
        return out

    def toward(self, shares: Floats) -> Floats:
        """Return d p."""
        return shares @ self.table

    def cells(self, first: npt.NDArray[Any], second: npt.NDArray[Any]) -> Floats:
        """Return cells of the table."""
        return self.table[first, second]


def class_values(classes: Names) -> tuple[Floats, bool]:
    """Return the values of classes, and whether these are only their positions.

    >>> import numpy as np
    >>> class_values(np.array(["1", "2", "10"]))
    (array([ 1.,  2., 10.]), False)
    >>> class_values(np.array(["good", "bad"]))
    (array([1., 2.]), True)
    """
    values = as_values(classes)
    return (np.arange(1.0, len(classes) + 1), True) if values is None else (values, False)


def create_difference(weights: WeightsLike, classes: Names) -> Difference:
    """Return a difference by the name of a scale or of weights, or from a matrix of differences."""
    if not isinstance(weights, str):
        return Tabled(_scaled(_checked(np.asarray(weights, dtype=np.float64), len(classes))))
    name = _OTHER.get(weights, weights)
    if name not in _NAMES:
        raise OptionError(f"no scale or weights {weights!r}; there are {', '.join(_NAMES)}")
    if name == "nominal":
        return Nominal(len(classes))
    x = class_values(classes)[0]
    spread = float(np.ptp(x)) if len(x) > 1 else 1.0
    if name == "interval":
        return Squared((x - (x.min() if len(x) else 0)) / spread - 0.5)
    if len(x) > _MOST:
        raise OptionError(
            f"{len(x)} classes are too many for {weights} differences (at most {_MOST}); "
            "interval has no such limit"
        )
    return Tabled(_scaled(_table(name, x, spread)))


def weights_to_difference(weights: WeightsLike, classes: Names) -> Difference:
    """Return a difference by the name of weights, or from a matrix of weights."""
    if isinstance(weights, str):
        return create_difference(weights, classes)
    return Tabled(_checked(1 - np.asarray(weights, dtype=np.float64), len(classes)))


def _table(name: str, x: Floats, spread: float) -> Floats:
    row, column = x[:, None], x[None, :]
    if name == "linear":
        return np.abs(row - column) / spread
    if name == "ordinal":
        steps = np.abs(np.subtract.outer(np.arange(len(x)), np.arange(len(x))))
        return steps * (steps + 1) / 2
    if name == "circular":
        return np.sin(np.pi * (row - column) / (spread + 1)) ** 2
    if name == "ratio":
        if (x < 0).any():
            raise OptionError(f"ratio differences need numbers of at least 0, not {x.min():g}")
        below = (row + column) ** 2
    else:
        below = (row + column - 2 * x.min(initial=np.inf)) * (2 * x.max(initial=0) - row - column)
    above = (row - column) ** 2
    return np.divide(above, below, out=np.zeros_like(above), where=below != 0)


def _scaled(table: Floats) -> Floats:
    most = float(table.max(initial=0))
    return table / most if most > 0 else table


def _checked(table: Floats, n_classes: int) -> Floats:
    if table.shape != (n_classes, n_classes):
        shape = " × ".join(map(str, table.shape))
        raise OptionError(f"a matrix of {shape} for {n_classes} classes; give one row for each")
    if not np.isfinite(table).all() or not np.allclose(table, table.T, rtol=1e-9, atol=1e-12):
        raise OptionError("a matrix of weights or differences must be finite and symmetric")
    if np.abs(np.diagonal(table)).max(initial=0) > 1e-12:
        raise OptionError("a class differs by 0 from itself (weight 1), but the diagonal does not")
    return table


class SufficientStatistics(NamedTuple):
    """Sums over items, for one or more weightings of them."""

    units: Floats  # (weighting): items with a label
    paired: Floats  # (weighting): items with two labels or more
    observed: Floats  # (weighting): mean difference between two labels of an item, NaN without
    differ: Floats  # (weighting): summed, with every label counting once
    shares: Floats  # (weighting, class): mean class proportions
    labels: Floats  # (weighting, class): labels on items with a pair
    pairs: Floats  # (weighting, class, class): coincidences

    @classmethod
    def from_columns(cls, columns: Floats, n_classes: int) -> SufficientStatistics:
        """Cut the columns: (weighting, column)."""
        share, labels, pairs = np.split(columns[:, 4:], [n_classes, 2 * n_classes], axis=1)
        units, paired, spread, differ = columns[:, :4].T
        pairs = pairs.reshape(len(columns), n_classes, -1)
        with np.errstate(invalid="ignore", divide="ignore"):
            observed = np.where(paired > 0, spread / paired, np.nan)
            return cls(
                units=units,
                paired=paired,
                observed=observed,
                differ=differ,
                shares=share / units[:, None],
                labels=labels,
                pairs=pairs,
            )


class ItemStatistics:
    """What every row of votes adds to the sums."""

    def __init__(self, votes: Votes, difference: Difference, with_pairs: bool = False) -> None:
        self.votes, self.difference, self.with_pairs = votes, difference, with_pairs
        size = votes.size
        spread, differ, self._per_label = np.zeros((3, len(size)))
        np.divide(difference.within(votes), size - 1, out=differ, where=size > 1)
        np.divide(differ, size, out=spread, where=size > 1)
        np.divide(1.0, size, out=self._per_label, where=size > 0)
        # Units, paired, spread and differ: (row, 4).
        self.scalars = np.stack([size > 0, size > 1, spread, differ], axis=1).astype(np.float64)

    @cached_property
    def total_columns(self) -> Floats:
        """The sums over all items: (column)."""
        size, counts = self.votes.size, self.votes.counts
        times = self.votes.times.astype(np.float64)
        parts = [times @ self.scalars, (times * self._per_label) @ counts]
        parts.append((times * (size > 1)) @ counts)
        if self.with_pairs:
            scale = np.divide(times, size - 1, out=np.zeros(len(size)), where=size > 1)
            parts.append((self.votes.coincidences(scale) - np.diag(scale @ counts)).ravel())
        return np.concatenate(parts)

    @cached_property
    def columns(self) -> Floats | sparse.csr_array[Any, Any]:
        """All contributions: (row, column); dense where there are few columns."""
        votes = self.votes
        blocks = [sparse.csr_array(self.scalars)]
        for scale in (self._per_label, (votes.size > 1).astype(float)):
            blocks.append(sparse.csr_array(sparse.diags_array(scale) @ votes.table))
        if self.with_pairs:
            blocks.append(self._pairs)
        if sum(block.shape[1] for block in blocks) <= _FULL:
            return np.hstack([block.toarray() for block in blocks])
        return sparse.csr_array(sparse.hstack(blocks, format="csr"))

    @cached_property
    def _pairs(self) -> sparse.csr_array[Any, Any]:
        """Coincidences of every row: (row, class and class)."""
        votes, k = self.votes, self.votes.n_classes
        if k * k > _MAX_PAIRS:
            raise OptionError(f"{k} classes are too many for ordinal differences; take interval")
        cells = np.diff(votes.table.indptr)  # of every row
        row = np.repeat(np.arange(len(cells)), cells**2)
        # Cell c of a row is combined with all cells of this row in turn.
        left = np.repeat(np.arange(len(votes.table.data)), np.repeat(cells, cells))
        begin = np.cumsum(cells**2) - cells**2
        right = votes.table.indptr[row] + (np.arange(len(row)) - begin[row]) % np.maximum(
            cells[row], 1
        )
        count = votes.table.data
        joint = count[left] * count[right] - np.where(left == right, count[left], 0)
        scale = np.divide(1, votes.size - 1, out=np.zeros(len(cells)), where=votes.size > 1)
        label = votes.table.indices.astype(np.int64)
        return sparse.csr_array(
            sparse.coo_array(
                (joint * scale[row], (row, label[left] * k + label[right])),
                shape=(len(cells), k * k),
            )
        )

    def weighted(self, weights: Floats | None = None) -> SufficientStatistics:
        """Return the sums under weights (weighting, row), or over all items."""
        sums = self.total_columns[None] if weights is None else weights @ self.columns
        return SufficientStatistics.from_columns(sums, self.votes.n_classes)


def without_each(
    annotations: Annotations, difference: Difference, with_pairs: bool = False
) -> Iterator[tuple[slice, SufficientStatistics]]:
    """Yield the sums without one annotator, for a range of annotators at a time.

    Only the items of an annotator change.
    """
    all_votes = count_votes(annotations)
    whole = ItemStatistics(all_votes, difference, with_pairs)
    own, item, annotator = own_votes(annotations)
    n_columns = len(whole.total_columns)
    step = max(_CELLS * 4 // n_columns, 1)
    for first in range(0, annotations.n_annotators, step):
        last = min(first + step, annotations.n_annotators)
        change = np.zeros((last - first, n_columns))
        own_rows = np.flatnonzero((annotator >= first) & (annotator < last))
        few = max(_CELLS // (4 * min(n_columns, _FULL)), 1)
        for start in range(0, len(own_rows), few):
            rows = own_rows[start : start + few]
            before = all_votes.table[item[rows]]
            after = sparse.csr_array(before - own[rows])
            after.eliminate_zeros()
            once = np.ones(len(rows), dtype=np.int64)
            new, old = (
                ItemStatistics(Votes(table, once), difference, with_pairs).columns
                for table in (after, before)
            )
            whose = sparse.csr_array(
                (np.ones(len(rows)), (annotator[rows] - first, np.arange(len(rows)))),
                shape=(last - first, len(rows)),
            )
            added = whose @ (new - old)
            change += added if isinstance(added, np.ndarray) else added.toarray()
        changed = whole.total_columns + change
        yield slice(first, last), SufficientStatistics.from_columns(changed, annotations.n_classes)


def own_votes(annotations: Annotations) -> tuple[sparse.csr_array[Any, Any], Any, Any]:
    """Return label counts for every annotated pair of item and annotator, with their codes."""
    item, annotator = annotations.item.astype(np.int64), annotations.annotator.astype(np.int64)
    new = ~repeats_previous(annotations)
    begin = np.append(np.flatnonzero(new), len(annotations))
    own: sparse.csr_array[Any, Any] = sparse.csr_array(
        (np.ones(len(annotations)), annotations.label.astype(np.int64), begin),
        shape=(len(begin) - 1, annotations.n_classes),
    )
    own.sum_duplicates()
    return own, item[new], annotator[new]
