"""How far apart two classes are, from 0 (the same) to 1.

Weights of agreement are 1 minus a difference, so one table serves both the weighted kappas and
Krippendorff's alpha. x is the value of a class, i and j are positions, K is the
number of classes:

    nominal    identity    1 unless they are the same
    linear                 |x - y| / range
    interval   quadratic   (x - y)² / range²
    ordinal                C(|i - j| + 1, 2) / C(K, 2); for alpha, squared differences of
                           mean ranks among the labels given
    ratio                  ((x - y) / (x + y))², over the largest
    circular               sin²(π (x - y) / (range + 1)), over the largest
    bipolar                (x - y)² / ((x + y - 2 least) (2 most - x - y)), over the largest

Classes that are all numbers have their value, others their position: 1, 2, 3 and so on.

    K. L. Gwet. Handbook of inter-rater reliability, 4th edition. 2014.
    K. Krippendorff. Computing Krippendorff's alpha-reliability. 2011.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from ..base.names import Names, as_values
from ..base.arrays import Floats
from ..answers.annotations import SCALES
from ..errors import OptionError
from .votes import Votes

WeightsLike = str | npt.ArrayLike  # the name of a difference or of weights, or a matrix

_OTHER = {"identity": "nominal", "quadratic": "interval"}
_NAMES = (*SCALES, "linear", "circular", "bipolar")
_MOST = 4096  # classes for which a full table is held
_CELLS = 2**22


class Difference(Protocol):
    """A symmetric table d[k, l] with a zero diagonal, never needed as a whole."""

    @property
    def total(self) -> float:
        """The sum of all cells."""

    def within(self, votes: Votes) -> Floats:
        """Return r · d r for the counts r of every row."""

    def toward(self, shares: Floats) -> Floats:
        """Return d p for shares p along the last axis."""

    def cells(self, one: npt.NDArray[Any], other: npt.NDArray[Any]) -> Floats:
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

    def cells(self, one: npt.NDArray[Any], other: npt.NDArray[Any]) -> Floats:
        """Return 1 where classes differ."""
        return (one != other).astype(np.float64)


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

    def cells(self, one: npt.NDArray[Any], other: npt.NDArray[Any]) -> Floats:
        """Return squared differences."""
        return (self.x[one] - self.x[other]) ** 2


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

    def cells(self, one: npt.NDArray[Any], other: npt.NDArray[Any]) -> Floats:
        """Return cells of the table."""
        return self.table[one, other]


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
    one, other = x[:, None], x[None, :]
    if name == "linear":
        return np.abs(one - other) / spread
    if name == "ordinal":
        steps = np.abs(np.subtract.outer(np.arange(len(x)), np.arange(len(x))))
        return steps * (steps + 1) / 2
    if name == "circular":
        return np.sin(np.pi * (one - other) / (spread + 1)) ** 2
    if name == "ratio":
        if (x < 0).any():
            raise OptionError(f"ratio differences need numbers of at least 0, not {x.min():g}")
        below = (one + other) ** 2
    else:
        below = (one + other - 2 * x.min(initial=np.inf)) * (2 * x.max(initial=0) - one - other)
    above = (one - other) ** 2
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
