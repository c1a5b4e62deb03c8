"""STAPLE: every pixel is inside or outside, and every mask has a sensitivity and a specificity."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np

from ..base.iteration import iterate, relative_change_below
from ..base.arrays import Floats
from ..answers.masks import Masks
from ..params import Count, NonNegative
from ..consensus_base import ConsensusContext
from .masks import MaskMethod, Pixels, Soft

_LEAST = 1e-9  # of probabilities


class State(NamedTuple):
    """The parameters and the probabilities under the parameters before."""

    sensitivity: Floats  # (answer)
    specificity: Floats  # (answer)
    inside: Floats  # (segment)
    objective: float


@dataclass(frozen=True, kw_only=True)
class Staple(MaskMethod):
    """Dawid-Skene over the pixels of every image.

    STAPLE: every pixel is inside or outside, and every mask has a sensitivity and a specificity.

    This is Dawid-Skene over the pixels of one image: mask j holds a pixel with probability
    `sensitivity[j]` if it is inside, and leaves it out with probability `specificity[j]` if it is
    not. The prior of being inside is the share of marked pixels and stays fixed. Neighbouring
    pixels are not independent, so the probabilities are too sure; and they depend on the frame,
    because every pixel that all leave out raises the specificities.

        P(inside | masks) ∝ prior Π_j sensitivity[j] or 1 - sensitivity[j]

    When it fails: Small objects in large frames: specificities are all close to one, and one mask
    may decide. Probabilities are too sure, since pixels are not independent.

        S. K. Warfield, K. H. Zou, W. M. Wells. Simultaneous truth and performance level estimation
        (STAPLE). IEEE Transactions on Medical Imaging 23(7), 2004. doi:10.1109/TMI.2004.828354

    Parameters
    ----------
    frame
        Which pixels count: those of the whole image, of the smallest box around all masks, or
        those that are contested.
    max_iter
        Maximum number of iterations.
    tol
        Relative change of the objective below which the fit has converged.

    Examples
    --------
    >>> masks = Masks.from_columns("aaa", "xyz", ["1 2 1", "1 3", "0 1 2 1"], size={"a": (2, 2)})
    >>> Staple().fit(masks).params["sensitivity"].round(2).tolist()
    [1.0, 1.0, 0.0]
    """

    frame: Literal["image", "box", "contested"] = "image"
    max_iter: Count = 200
    tol: NonNegative = 1e-8

    def soft(self, fit: ConsensusContext, pixels: Pixels) -> Soft:
        weight = self._weight(fit.answers, pixels)  # (segment): pixels that count
        where, item, on = pixels.segments.item, pixels.item, pixels.on
        n_looked = np.bincount(item, minlength=pixels.n_items)
        share = pixels.by_item(weight * (on @ np.ones(len(item))))
        share /= np.maximum(pixels.by_item(weight) * n_looked, 1)
        prior = np.clip(share, _LEAST, 1 - _LEAST)[where]

        def log_given(on_rate: Floats) -> Floats:
            """Return the log probability of all answers to a segment."""
            off = np.bincount(item, np.log1p(-on_rate), minlength=pixels.n_items)
            return off[where] + on @ (np.log(on_rate) - np.log1p(-on_rate))

        def rate(inside: Floats) -> Floats:
            """Return how often every mask holds pixels of this weight."""
            total = pixels.by_item(inside)[item]
            held = np.divide(on.T @ inside, total, out=np.full(len(item), 0.5), where=total > 0)
            return np.clip(held, _LEAST, 1 - _LEAST)

        def advance(last: State) -> State:
            log_in = np.log(prior) + log_given(last.sensitivity)
            log_out = np.log1p(-prior) + log_given(1 - last.specificity)
            log_in = np.where(pixels.known == 0, -np.inf, log_in)
            log_out = np.where(pixels.known == 1, -np.inf, log_out)
            evidence = np.logaddexp(log_in, log_out)
            inside = np.exp(log_in - evidence)
            objective = float(weight @ evidence)
            return State(rate(weight * inside), 1 - rate(weight * (1 - inside)), inside, objective)

        good = np.full(len(item), 0.99999)
        first = State(good, good, np.zeros(len(where)), np.nan)
        state, trace, converged = iterate(
            first,
            advance,
            lambda values, _state, _last: relative_change_below(values, self.tol),
            self.max_iter,
            fit.progress,
        )
        params = {"sensitivity": state.sensitivity, "specificity": state.specificity}
        return Soft(state.inside, params, trace, converged)

    def _weight(self, answers: Masks, pixels: Pixels) -> Floats:
        """Return how many pixels of every segment count."""
        length, where = pixels.segments.length.astype(float), pixels.segments.item
        n_inside = pixels.on @ np.ones(len(pixels.item))
        if self.frame == "contested":
            return length * (n_inside > 0) * (n_inside < answers.labels_per_item[where])
        if self.frame == "image":
            return length
        outside = length * (n_inside == 0)
        around = _box_area(answers) - pixels.by_item(length - outside)
        return np.where(
            n_inside == 0, outside * _ratio(around, pixels.by_item(outside))[where], length
        )


def _box_area(answers: Masks) -> Floats:
    """Return the number of pixels of the smallest box around all masks of an item."""
    answer, start, stop = answers.intervals
    item = answers.item.astype(np.int64)[answer]
    height = answers.size[item, 0]
    first, last = start // height, (stop - 1) // height  # columns
    top = np.where(first == last, start % height, 0)
    bottom = np.where(first == last, (stop - 1) % height, height - 1)
    sides = []
    for values, best in (
        (first, np.minimum),
        (last, np.maximum),
        (top, np.minimum),
        (bottom, np.maximum),
    ):
        side = np.full(answers.n_items, np.iinfo(np.int64).max if best is np.minimum else -1)
        best.at(side, item, values)
        sides.append(side)
    width, tall = sides[1] - sides[0] + 1, sides[3] - sides[2] + 1
    return np.where(sides[1] >= 0, width * tall, 0).astype(float)


def _ratio(part: Floats, whole: Floats) -> Floats:
    return np.divide(part, whole, out=np.zeros(len(part)), where=whole > 0)
