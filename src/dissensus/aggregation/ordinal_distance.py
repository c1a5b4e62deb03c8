"""Ordinal distance: errors are less probable the further a label is from the truth."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal, NamedTuple

import numpy as np
from annotated_types import Interval
from scipy.special import log_softmax

from ..base.probability import normalize, safe_log
from ..base.arrays import Floats, Integers
from ..answers.annotations import Part
from ..params import NonNegative
from ._cuts import blocks
from ._ordinal import OrdinalAggregator
from .dawid_skene import ConfusionModel, Counts

_LOWEST, _HIGHEST = -5.0, 20.0  # range of the sharpness
_STEP = 0.25  # of the grid of shifts


class Sharpness(NamedTuple):
    """Parameters of the model."""

    log_prior: Floats  # (true class)
    sharpness: Floats  # (annotator)
    shift: Floats  # (annotator)

    @property
    def prior(self) -> Floats:
        """Prevalence of the classes: (true class)."""
        return np.exp(self.log_prior)

    def reindex(self, indices: Integers, n_items: int) -> Sharpness:
        """Return the parameters of other annotators by their indices here; -1 is a new one."""
        known = (self.sharpness, self.shift)
        return Sharpness(self.log_prior, *(np.append(one, one.mean())[indices] for one in known))


@dataclass(frozen=True, kw_only=True)
class OrdinalDistance(OrdinalAggregator, ConfusionModel[Sharpness]):
    """One sharpness and shift per annotator for ordered classes, fitted with EM.

    Ordinal distance: errors are less probable the further a label is from the truth.

    The truth of an item is drawn from `prior`. Annotator a gives an item of class t the label g
    with a probability proportional to exp(-sharpness[a] · |t + shift[a] - g|): two parameters per
    annotator instead of a matrix, so that few labels suffice. Sharpness 0 is random guessing, a
    negative one adversarial; a positive shift rates too high. Every cell of an annotator's matrix
    gets `smoothing` added to its count, as in Dawid-Skene. The sharpness is found by Newton's
    method, the shift on a grid; the objective never falls.

        P(label g of a | t) ∝ exp(-sharpness[a] · |t + shift[a] - g|)

    When it fails: On classes without an order, or where one class lies outside it; on s_rel it
    loses 37 points to the best method.

        D. Zhou, Q. Liu, J. C. Platt, C. Meek. Aggregating ordinal labels from crowds by minimax
        conditional entropy. Proceedings of ICML, 2014. (The idea that confusion follows the order;
        the formula is ours.)

    Parameters
    ----------
    distance
        The distance between classes: `absolute` or `squared`.
    most_shift
        Largest shift of an annotator, in classes; 0 for none.
    smoothing
        Pseudo-count added to every cell; 0 is maximum likelihood.

    Examples
    --------
    >>> from dissensus import Annotations
    >>> annotations = Annotations.from_columns("aaabbbccc", "xyzxyzxyz", "001122123")
    >>> OrdinalDistance().fit(annotations).labels.tolist()
    ['0', '2', '2']
    """

    params_type: ClassVar[type] = Sharpness
    matrix_copies: ClassVar[int] = 6

    distance: Literal["absolute", "squared"] = "absolute"
    most_shift: Annotated[float, Interval(ge=0, le=100)] = 1.0
    smoothing: NonNegative = 0.01

    def log_joint(self, part: Part, params: Sharpness) -> Floats:
        n_classes = len(params.log_prior)
        given = self.log_given(params).transpose(2, 1, 0).reshape(-1, n_classes)
        return part.labels @ given + params.log_prior

    def update(self, counts: Counts, last: Sharpness | None) -> Sharpness:
        n_classes = len(counts.true)
        given = counts.given_true.reshape(-1, n_classes, n_classes) + self.smoothing
        start = np.ones(len(given)) if last is None else last.sharpness
        sharpness, shift = np.empty(len(given)), np.empty(len(given))
        for block in blocks(given, len(self._grid)):
            cells = np.ascontiguousarray(given[block].transpose(2, 1, 0))
            sharpness[block], shift[block] = self._best(cells, start[block])
        return Sharpness(safe_log(normalize(counts.true + self.smoothing)), sharpness, shift)

    def _best(self, given: Floats, start: Floats) -> tuple[Floats, Floats]:
        """Return the best sharpness and shift of annotators; all shifts are tried."""
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

    def confusion(self, params: Sharpness) -> Floats:
        return np.exp(self.log_given(params)).transpose(2, 0, 1)

    def log_given(self, params: Sharpness) -> Floats:
        """Return the logarithm of every annotator's confusion: (true, given, annotator)."""
        distance = self._distance(len(params.log_prior), params.shift)
        return _log_given(params.sharpness, distance)

    def _distance(self, n_classes: int, shift: Floats) -> Floats:
        """Return the distance of every label from every truth: (true, given, annotator)."""
        true, given = np.ogrid[:n_classes, :n_classes]
        apart = np.abs((true - given)[:, :, None] + shift)
        return apart**2 if self.distance == "squared" else apart

    @property
    def _grid(self) -> Floats:
        """The shifts to try, by size."""
        steps = int(self.most_shift / _STEP + 1e-9)
        return _STEP * np.array(sorted(range(-steps, steps + 1), key=abs))


def _log_given(sharpness: Floats, distance: Floats) -> Floats:
    return log_softmax(-sharpness * distance, axis=1)


def _sharpen(given: Floats, distance: Floats, start: Floats) -> Floats:
    """Return the most probable sharpness of every annotator, for counts (true, given, annotator).

    The log-likelihood is concave. Newton steps that leave the bracket are replaced by bisection.
    """
    true = given.sum(axis=1)  # (true, annotator)
    missed = np.einsum("tga,tga->a", given, distance)

    def derivatives(sharpness: Floats) -> tuple[Floats, Floats]:
        probability = np.exp(_log_given(sharpness, distance))
        mean = np.einsum("tga,tga->ta", probability, distance)
        spread = np.einsum("tga,tga,tga->ta", probability, distance, distance) - mean**2
        gradient = np.einsum("ta,ta->a", true, mean) - missed
        return gradient, np.maximum(np.einsum("ta,ta->a", true, spread), 1e-300)

    low, high = np.full(len(start), _LOWEST), np.full(len(start), _HIGHEST)
    lowest, highest = derivatives(low)[0] <= 0, derivatives(high)[0] >= 0
    here = np.where(lowest, low, np.where(highest, high, start))
    for _ in range(60):
        gradient, curvature = derivatives(here)
        low, high = np.where(gradient > 0, here, low), np.where(gradient < 0, here, high)
        there = here + np.clip(gradient / curvature, -100, 100)
        there = np.where((there >= low) & (there <= high), there, (low + high) / 2)
        there = np.where(lowest | highest | (gradient == 0), here, there)
        change, here = np.abs(there - here).max(initial=0), there
        if change < 1e-8:  # convergence is quadratic
            break
    return here
