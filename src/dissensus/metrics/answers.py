"""How close answers are to known ones: F1 of marks, and intersection over union of masks.

Every measure is computed item by item, so that intervals can resample items.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from .._relation import Floats, Integers
from ..answers.marks import Marks
from ..answers.masks import Masks
from ..answers.matching import best_match

_TIE = 1e-6  # what similarity counts beside being matched at all


class Found(NamedTuple):
    """Marks that were found, by item."""

    matched: Integers  # (item): marks that match a known one
    given: Integers  # (item)
    known: Integers  # (item)

    @property
    def precision(self) -> float:
        """The share of marks that match a known one."""
        return float(self.matched.sum() / max(self.given.sum(), 1))

    @property
    def recall(self) -> float:
        """The share of known marks that were found."""
        return float(self.matched.sum() / max(self.known.sum(), 1))

    @property
    def f1(self) -> float:
        """The harmonic mean of precision and recall; 1 where there is nothing to find."""
        both = self.given.sum() + self.known.sum()
        return float(2 * self.matched.sum() / both) if both else 1.0

    def take(self, items: Integers) -> Found:
        """Return the counts of these items, which may repeat."""
        return Found(*(count[items] for count in self))


def found_marks(marks: Marks, gold: Marks, least: float = 1.0) -> Found:
    """Return how many marks match known ones one to one, with the same label.

    A match is at least this similar; 1 asks for the same coordinates. Items are those of `marks`;
    of several answers to an item, all marks count.
    """
    gold = marks.align(gold)
    place = np.vstack([marks.place, gold.place])
    item = np.concatenate([marks.mark_item, gold.mark_item])
    who = np.arange(len(item)) >= marks.n_elements
    corners = marks.corners(place)
    pairs = marks.similar_pairs(corners, item, who.astype(np.int64), least)
    one, two = np.minimum(pairs.first, pairs.second), np.maximum(pairs.first, pairs.second)
    names = [marks.classes[marks.label], gold.classes[gold.label]]
    label = np.concatenate(names) if marks.n_elements and gold.n_elements else np.zeros(len(item))
    same = label[one] == label[two]
    one, two, value = one[same], two[same], 1 + _TIE * pairs.similarity[same]
    order = np.argsort(item[one], kind="stable")
    one, two, value = one[order], two[order], value[order]
    matched = best_match(item[one], one, two, value, marks.n_items)
    sizes = [np.bincount(each.mark_item, minlength=marks.n_items) for each in (marks, gold)]
    return Found(np.floor(matched + _TIE / 2).astype(np.int64), *sizes)


def mask_overlaps(masks: Masks, gold: Masks) -> Floats:
    """Return intersection over union with the known mask of every item, NaN without one."""
    gold = masks.align(gold)
    who = np.concatenate([np.zeros(len(masks), np.int64), np.ones(len(gold), np.int64)])
    both = Masks.from_codes(
        np.concatenate([masks.item, gold.item]),
        who,
        items=masks.items,
        annotators=2,
        starts=np.concatenate([masks.starts, masks.starts[-1] + gold.starts[1:]]),
        runs=np.concatenate([masks.runs, gold.runs]),
        size=masks.size,
    )
    first, second = both.within_item_pairs()
    paired = both.annotator[first] != both.annotator[second]
    overlap = np.full(masks.n_items, np.nan)
    overlap[both.item[first[paired]]] = 1 - both.distance(first[paired], second[paired])
    return overlap
