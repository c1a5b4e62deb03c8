"""Distance: classes stand in an order, and annotators miss by a little more often than by a lot.

The truth of an item is drawn from `prior`. Annotator a, seeing an item of class t, says g with a
probability proportional to exp(-sharpness[a] · |t + shift[a] - g|): one number for every annotator
instead of a matrix, so that few labels suffice. At 0 they guess, below they say the opposite; a
positive shift is somebody who rates too high. Every cell of an annotator's matrix gets `smoothing`
added to its count, as in Dawid-Skene. The sharpness is found by Newton's method, the shift on a
grid; the objective never falls.

    D. Zhou, Q. Liu, J. C. Platt, C. Meek. Aggregating ordinal labels from crowds by minimax
    conditional entropy. Proceedings of ICML, 2014. (The idea that confusion follows the order;
    the formula is ours.)
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal, NamedTuple

import numpy as np
from scipy.special import log_softmax

from .._relation import Floats, Integers
from ..annotations import Annotations, Part
from ..params import NonNegative
from ._cuts import blocks
from ._em import EMAggregator, logs, share
from ._ordinal import OrdinalAggregator
from .dawid_skene import Counts

__all__ = ["OrdinalDistance", "Sharpness"]

_LOWEST, _HIGHEST = -5.0, 20.0  # where a sharpness is looked for
_STEP = 0.25  # of the grid of shifts


class Sharpness(NamedTuple):
    """What the model learns."""

    log_prior: Floats  # (true class)
    sharpness: Floats  # (annotator)
    shift: Floats  # (annotator)

    @property
    def prior(self) -> Floats:
        """How common every class is: (true class)."""
        return np.exp(self.log_prior)

    def reindex(self, indices: Integers, n_items: int) -> Sharpness:
        """Return the same for other annotators, by their places here; -1 is somebody new."""
        known = (self.sharpness, self.shift)
        return Sharpness(self.log_prior, *(np.append(one, one.mean())[indices] for one in known))


@dataclass(frozen=True, kw_only=True)
class OrdinalDistance(OrdinalAggregator, EMAggregator[Sharpness, Counts]):
    """One sharpness per annotator for classes in an order, fitted with EM.

    Parameters
    ----------
    distance
        How misses grow over classes: `absolute`, or `squared`, where far ones are rarer still.
    most_shift
        Largest shift of an annotator to try, in classes; 0 for none.
    smoothing
        Pseudo-count added to every cell; at 0, maximum likelihood.

    Examples
    --------
    >>> from dissensus import Annotations
    >>> annotations = Annotations.from_columns("aaabbbccc", "xyzxyzxyz", "001122123")
    >>> OrdinalDistance().fit(annotations).labels.tolist()
    ['0', '2', '2']
    """

    learns: ClassVar[type] = Sharpness

    distance: Literal["absolute", "squared"] = "absolute"
    most_shift: NonNegative = 1.0
    smoothing: NonNegative = 0.01

    def log_joint(self, part: Part, params: Sharpness) -> Floats:
        n_classes = len(params.log_prior)
        given = self.log_given(params).transpose(2, 1, 0).reshape(-1, n_classes)
        return part.labels @ given + params.log_prior

    def counts(self, part: Part, posterior: Floats) -> Counts:
        return Counts(np.einsum("it->t", posterior), part.labels.T @ posterior)

    def update(self, counts: Counts, last: Sharpness | None) -> Sharpness:
        n_classes = len(counts.true)
        given = counts.given_true.reshape(-1, n_classes, n_classes) + self.smoothing
        start = np.ones(len(given)) if last is None else last.sharpness
        sharpness, shift = np.empty(len(given)), np.empty(len(given))
        for block in blocks(given, len(self._grid)):
            cells = np.ascontiguousarray(given[block].transpose(2, 1, 0))
            sharpness[block], shift[block] = self._best(cells, start[block])
        return Sharpness(logs(share(counts.true + self.smoothing)), sharpness, shift)

    def _best(self, given: Floats, start: Floats) -> tuple[Floats, Floats]:
        """Return the best sharpness and shift of annotators: all shifts are tried."""
        times, size = len(self._grid), len(start)
        shift = np.repeat(self._grid, size)  # (shift and annotator)
        cells, distance = np.tile(given, (1, 1, times)), self._distance(len(given), shift)
        sharpness = _sharpen(cells, distance, np.tile(start, times))
        value = np.einsum("tga,tga->a", cells, _log_given(sharpness, distance))
        best = value.reshape(times, -1).argmax(axis=0) * size + np.arange(size)
        return sharpness[best], shift[best]

    def log_prior(self, params: Sharpness) -> float:
        cells = params.log_prior.sum() + self.log_given(params).sum()
        return self.smoothing * float(cells)

    def n_numbers(self, annotations: Annotations) -> int:
        return (
            super().n_numbers(annotations) + 6 * annotations.n_annotators * annotations.n_classes**2
        )

    def confusion(self, params: Sharpness) -> Floats:
        return np.exp(self.log_given(params)).transpose(2, 0, 1)

    def quality(self, params: Sharpness, agreement: Floats) -> Floats:
        return np.einsum("t,att->a", params.prior, self.confusion(params))

    def log_given(self, params: Sharpness) -> Floats:
        """Return the logarithm of every annotator's confusion: (true, given, annotator)."""
        distance = self._distance(len(params.log_prior), params.shift)
        return _log_given(params.sharpness, distance)

    def _distance(self, n_classes: int, shift: Floats) -> Floats:
        """Return how far every label is from every truth: (true, given, annotator)."""
        true, given = np.ogrid[:n_classes, :n_classes]
        apart = np.abs((true - given)[:, :, None] + shift)
        return apart**2 if self.distance == "squared" else apart

    @property
    def _grid(self) -> Floats:
        """The shifts to try, the smallest first."""
        steps = int(self.most_shift / _STEP + 1e-9)
        return _STEP * np.array(sorted(range(-steps, steps + 1), key=abs))


def _log_given(sharpness: Floats, distance: Floats) -> Floats:
    return log_softmax(-sharpness * distance, axis=1)


def _sharpen(given: Floats, distance: Floats, start: Floats) -> Floats:
    """Return the most probable sharpness of every annotator, for counts (true, given, annotator).

    The logarithm of their probability is concave, so its slope tells on which side the best one
    lies. Newton's steps that leave the bracket are replaced by halving it.
    """
    true = given.sum(axis=1)  # (true, annotator)
    missed = np.einsum("tga,tga->a", given, distance)

    def slope_and_bend(sharpness: Floats) -> tuple[Floats, Floats]:
        chance = np.exp(_log_given(sharpness, distance))
        mean = np.einsum("tga,tga->ta", chance, distance)
        spread = np.einsum("tga,tga,tga->ta", chance, distance, distance) - mean**2
        slope = np.einsum("ta,ta->a", true, mean) - missed
        return slope, np.maximum(np.einsum("ta,ta->a", true, spread), 1e-300)

    low, high = np.full(len(start), _LOWEST), np.full(len(start), _HIGHEST)
    lowest, highest = slope_and_bend(low)[0] <= 0, slope_and_bend(high)[0] >= 0
    here = np.where(lowest, low, np.where(highest, high, start))
    for _ in range(60):
        slope, bend = slope_and_bend(here)
        low, high = np.where(slope > 0, here, low), np.where(slope < 0, here, high)
        there = here + np.clip(slope / bend, -100, 100)
        there = np.where((there >= low) & (there <= high), there, (low + high) / 2)
        there = np.where(lowest | highest | (slope == 0), here, there)
        moved, here = np.abs(there - here).max(initial=0), there
        if moved < 1e-8:  # the next step would be as small as its square
            break
    return here
