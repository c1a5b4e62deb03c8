"""Masks: every pixel is inside or outside, by the masks of several annotators.

Pixels that lie in the same masks are alike, so methods work on ranges of them. A method gives each
a probability to be inside, by a model of sensitivity and specificity (STAPLE) or by a vote in which
masks close to the consensus weigh more; the rest, from gold to tables, is shared.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np
from scipy import sparse

from ..answers.masks import Masks, Segments, runs_of
from ..base.arrays import Array, Floats, Integers
from ..base.iteration import iterate, objective_settles
from ..base.names import as_names
from ..method import FitContext, Method
from ..params import Count, NonNegative
from .aggregation import AnswerAggregation

_LEAST = 1e-9  # of probabilities
_LEAST_WEIGHT = 1e-6  # weight of a mask


class Pixels(NamedTuple):
    """Ranges of pixels that are alike, and the answers to them."""

    segments: Segments
    on: sparse.csr_array[Any, Any]  # (segment, answer): whether it is inside the answer's mask
    gold: Floats  # (segment): 1 inside gold, 0 outside, NaN without gold
    item: Integers  # (answer)
    n_items: int

    def by_item(self, value: Array) -> Floats:
        """Return values of segments, summed by item."""
        return np.bincount(self.segments.item, value, minlength=self.n_items).astype(float)

    def iou(self, inside: Array) -> Floats:
        """Return intersection over union of every answer with a mask: (answer)."""
        pixels = self.segments.length * inside
        shared, area = self.on.T @ pixels, self.on.T @ self.segments.length
        union = area + self.by_item(pixels)[self.item] - shared
        return np.divide(shared, union, out=np.ones(len(union)), where=union > 0)

    def with_gold(self, inside: Floats) -> Floats:
        """Return probabilities to be inside, with gold kept."""
        return np.where(np.isnan(self.gold), inside, self.gold)


class Soft(NamedTuple):
    """What a method for masks infers."""

    inside: Floats  # (segment): probability to be inside
    params: dict[str, Array] = {}  # noqa: RUF012 - never written to
    trace: tuple[float, ...] = ()
    converged: bool = True


@dataclass(frozen=True, kw_only=True)
class MaskMethod(Method[Masks, AnswerAggregation]):
    """A method that gives every pixel a probability to be inside."""

    @abstractmethod
    def soft(self, fit: FitContext[Masks], pixels: Pixels) -> Soft:
        """Return the probability of every segment to be inside."""

    def infer(self, fit: FitContext[Masks]) -> AnswerAggregation:
        pixels = pixels_of(fit.answers, fit.gold)
        inside, params, trace, converged = self.soft(fit, pixels)
        inside = pixels.with_gold(inside)
        iou, answers = pixels.iou(inside > 0.5), fit.answers
        total = np.bincount(answers.annotator, iou, minlength=answers.n_annotators)
        with np.errstate(invalid="ignore"):  # NaN without answers
            mean = total / answers.labels_per_annotator
        soft = {
            "soft_item": pixels.segments.item,
            "soft_length": pixels.segments.length,
            "soft_value": inside,
        }
        table = _items_table(fit, pixels, inside)
        return AnswerAggregation.of(
            self, fit, table, {"iou": mean}, params=soft | params, trace=trace, converged=converged
        )


def pixels_of(answers: Masks, gold: Masks | None) -> Pixels:
    """Return ranges of pixels that are alike in all answers and in gold."""
    if gold is None:
        segments = answers.segments()
        unknown = np.full(len(segments.item), np.nan)
        return Pixels(
            segments=segments,
            on=segments.on,
            gold=unknown,
            item=answers.item.astype(int),
            n_items=answers.n_items,
        )
    with_gold = Masks.from_codes(
        np.concatenate([answers.item, gold.item]),
        np.concatenate([answers.annotator.astype(int), np.full(len(gold), answers.n_annotators)]),
        items=answers.items,
        annotators=answers.n_annotators + 1,
        starts=np.concatenate([answers.starts, answers.starts[-1] + gold.starts[1:]]),
        runs=np.concatenate([answers.runs, gold.runs]),
        size=answers.size,
    )
    segments = with_gold.segments()
    is_gold = with_gold.annotator == answers.n_annotators
    inside = segments.on @ is_gold.astype(float)
    inside_gold = np.where(gold.labels_per_item[segments.item] > 0, inside, np.nan)
    on = segments.on[:, np.flatnonzero(~is_gold)]
    return Pixels(
        segments=segments,
        on=on,
        gold=inside_gold,
        item=answers.item.astype(int),
        n_items=answers.n_items,
    )


def soft_mask(result: AnswerAggregation, item: str) -> Floats:
    """Return the probability of every pixel of an item to be inside: (row, column)."""
    answers: Any = result.answers
    code = int(np.flatnonzero(answers.items == item)[0])
    rows = result.params["soft_item"] == code
    flat = np.repeat(result.params["soft_value"][rows], result.params["soft_length"][rows])
    height, width = answers.size[code]
    return flat.reshape(width, height).T


def _items_table(fit: FitContext[Masks], pixels: Pixels, inside: Floats) -> dict[str, Array]:
    """Return one mask per item; its confidence is the mean over pixels that are contested."""
    answers, segments = fit.answers, pixels.segments
    contested = segments.length * ((inside > 0) & (inside < 1))
    sure = pixels.by_item(contested * np.maximum(inside, 1 - inside))
    n_contested = pixels.by_item(contested)
    answered = np.flatnonzero((answers.labels_per_item > 0) | fit.known)
    runs = runs_of(segments, inside > 0.5, answers.n_items)
    texts = [" ".join(map(str, runs[item])) for item in answered]
    confidence = np.where(n_contested > 0, sure / np.maximum(n_contested, 1), 1.0)
    return {
        "item": answers.items[answered],
        "counts": as_names(texts),
        "confidence": confidence[answered],
        "area": pixels.by_item(segments.length * (inside > 0.5))[answered].astype(np.int64),
        "n_answers": answers.labels_per_item[answered],
    }


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

    def soft(self, fit: FitContext[Masks], pixels: Pixels) -> Soft:
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
            log_in = np.where(pixels.gold == 0, -np.inf, log_in)
            log_out = np.where(pixels.gold == 1, -np.inf, log_out)
            evidence = np.logaddexp(log_in, log_out)
            inside = np.exp(log_in - evidence)
            objective = float(weight @ evidence)
            return State(rate(weight * inside), 1 - rate(weight * (1 - inside)), inside, objective)

        good = np.full(len(item), 0.99999)
        start = State(good, good, np.zeros(len(where)), np.nan)
        state, trace, converged = iterate(
            start,
            advance,
            objective_settles(self.tol),
            max_iter=self.max_iter,
            progress=fit.progress,
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


@dataclass(frozen=True, kw_only=True)
class WeightedMasks(MaskMethod):
    """A vote over pixels, weighted by intersection over union with the consensus.

    Weighted masks: a vote over pixels, in which masks close to the consensus weigh more.

    The soft mask is the weighted share of masks that hold a pixel; the consensus is where it
    exceeds one half. A mask weighs its intersection over union with the consensus, to a power,
    found for every image on its own: a mask that is far off hardly counts.

        soft[pixel] = Σ_a w[a] mask[a, pixel] / Σ_a w[a],   w[a] = IoU(mask[a], soft > ½)**power

    When it fails: Where most masks of an image share an error, such as a border drawn too wide, the
    consensus has it. With two masks per image it is close to their intersection or union.

    Parameters
    ----------
    power
        Power of the intersection over union; 0 is the plain vote.
    rounds
        Number of times that weights and consensus are computed.

    Examples
    --------
    >>> from dissensus.answers import Masks
    >>> masks = Masks.from_columns("aaa", "xyz", ["1 2 1", "1 3", "0 1 2 1"], size={"a": (2, 2)})
    >>> WeightedMasks().fit(masks).items["counts"].tolist()
    ['1 3']
    """

    power: NonNegative = 4.0
    rounds: Count = 10

    def soft(self, fit: FitContext[Masks], pixels: Pixels) -> Soft:
        weight = np.ones(len(pixels.item))  # (answer)
        for _ in range(self.rounds):
            inside = self._share(pixels, weight)
            weight = pixels.iou(pixels.with_gold(inside) > 0.5) ** self.power + _LEAST_WEIGHT
        return Soft(self._share(pixels, weight), {"weight": weight})

    def _share(self, pixels: Pixels, weight: Floats) -> Floats:
        """Return the share of the weight that is inside: (segment)."""
        total = np.bincount(pixels.item, weight, minlength=pixels.n_items)[pixels.segments.item]
        share = (pixels.on @ weight) / np.where(total > 0, total, 1.0)
        return np.clip(share, 0.0, 1.0)
