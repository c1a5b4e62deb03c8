"""The steps that methods for masks have in common: pixels that are alike, one mask per item."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from ..base.names import as_names
from ..base.arrays import Array, Floats, Integers
from ..answers.masks import Masks, Segments, runs_of
from ..consensus_base import ConsensusContext, ConsensusMethod
from .aggregation import Consensus


class Pixels(NamedTuple):
    """Ranges of pixels that are alike, and the answers to them."""

    segments: Segments
    on: sparse.csr_array[Any, Any]  # (segment, answer): whether it is inside the answer's mask
    known: Floats  # (segment): 1 inside gold, 0 outside, NaN without gold
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
        return np.where(np.isnan(self.known), inside, self.known)


class Soft(NamedTuple):
    """What a method for masks infers."""

    inside: Floats  # (segment): probability to be inside
    params: dict[str, Array] = {}  # noqa: RUF012 - never written to
    trace: tuple[float, ...] = ()
    converged: bool = True


@dataclass(frozen=True, kw_only=True)
class MaskMethod(ConsensusMethod):
    """A method that gives every pixel a probability to be inside."""

    @abstractmethod
    def soft(self, fit: ConsensusContext, pixels: Pixels) -> Soft:
        """Return the probability of every segment to be inside."""

    def infer(self, fit: ConsensusContext) -> Consensus:
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
        return self.result(
            fit, table, {"iou": mean}, params=soft | params, trace=trace, converged=converged
        )


def pixels_of(answers: Masks, gold: Masks | None) -> Pixels:
    """Return ranges of pixels that are alike in all answers and in gold."""
    if gold is None:
        segments = answers.segments()
        unknown = np.full(len(segments.item), np.nan)
        return Pixels(segments, segments.on, unknown, answers.item.astype(int), answers.n_items)
    both = Masks.from_codes(
        np.concatenate([answers.item, gold.item]),
        np.concatenate([answers.annotator.astype(int), np.full(len(gold), answers.n_annotators)]),
        items=answers.items,
        annotators=answers.n_annotators + 1,
        starts=np.concatenate([answers.starts, answers.starts[-1] + gold.starts[1:]]),
        runs=np.concatenate([answers.runs, gold.runs]),
        size=answers.size,
    )
    segments = both.segments()
    is_gold = both.annotator == answers.n_annotators
    inside = segments.on @ is_gold.astype(float)
    known = np.where(gold.labels_per_item[segments.item] > 0, inside, np.nan)
    on = segments.on[:, np.flatnonzero(~is_gold)]
    return Pixels(segments, on, known, answers.item.astype(int), answers.n_items)


def soft_mask(result: Consensus, item: str) -> Floats:
    """Return the probability of every pixel of an item to be inside: (row, column)."""
    answers: Any = result.answers
    code = int(np.flatnonzero(answers.items == item)[0])
    rows = result.params["soft_item"] == code
    flat = np.repeat(result.params["soft_value"][rows], result.params["soft_length"][rows])
    height, width = answers.size[code]
    return flat.reshape(width, height).T


def _items_table(fit: ConsensusContext, pixels: Pixels, inside: Floats) -> dict[str, Array]:
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
