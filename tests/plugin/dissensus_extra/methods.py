"""Two small methods: a lenient vote for classes, and the mean of boxes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from dissensus.aggregation import AnswerAggregation
from dissensus.aggregation.classes import ClassMethod
from dissensus.method import Method
from dissensus.params import Count, Positive


@dataclass(frozen=True, kw_only=True)
class LenientVote(ClassMethod):
    """Votes, with a pseudo-vote for every class that anybody gave the item.

    Parameters
    ----------
    pseudo
        Votes added to every class.
    """

    pseudo: Positive = 0.1

    def part_posterior(self, part: Any, params: Any) -> Any:
        votes = part.votes() + self.pseudo
        return votes / votes.sum(axis=1, keepdims=True)


@dataclass(frozen=True, kw_only=True)
class MeanBox(Method):
    """One box on every image, whose sides are the means of all sides drawn there.

    Parameters
    ----------
    least
        Boxes that are needed.
    """

    kinds = ("boxes",)
    least: Count = 2

    def infer(self, fit: Any) -> Any:
        boxes = fit.answers
        item = boxes.mark_item
        n_boxes = np.bincount(item, minlength=boxes.n_items)
        sides = boxes.corners(boxes.place).T
        total = np.column_stack([np.bincount(item, s, minlength=boxes.n_items) for s in sides])
        marked = np.flatnonzero(n_boxes >= self.least)
        place = boxes.from_corners(total[marked] / n_boxes[marked, None])
        share = np.minimum(n_boxes[marked] / boxes.labels_per_item[marked], 1)
        label = np.zeros(len(marked), dtype=int)
        items = boxes.table_of(marked, place, label) | {"confidence": share}
        return AnswerAggregation.of(self, fit, items, {})
