"""Which labels a reviewer should check next, and how many are wrong in those nobody checked.

A reviewer is right, so checking a label removes its doubt; the items that remove most expected
errors per second come first. Every so often an item is drawn at random instead: how many of the
sure labels are wrong, uncertain ones do not show.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ..base.arrays import Floats, Integers
from .label_errors import Checked, LabelErrors, checked_errors, checks_needed, doubts, label_errors

DRAWN_EVERY = 5  # items of the queue, of which one is drawn at random


@dataclass(frozen=True, eq=False)
class Review:
    """What is left to check.

    Attributes
    ----------
    order
        Items that nobody checked, by code, the most expected errors removed per second first, and
        at last those of which it cannot be told whether they are right.
    errors
        How many of their labels are wrong.
    n_items
        Number of all labelled items that can be judged.
    n_needed
        How many of them to check in this order, so that the target is expected to be reached.
    seconds
        How long these take.
    target
        The share of right labels to reach.
    """

    order: Integers
    errors: LabelErrors
    n_items: int
    n_needed: int
    seconds: float
    target: float

    @property
    def wrong(self) -> tuple[float, float, float]:
        """The expected share of wrong labels among all items, with its 90 % interval."""
        errors, n_items = self.errors, max(self.n_items, 1)
        return errors.expected / n_items, errors.low / n_items, errors.high / n_items

    @property
    def stop(self) -> bool:
        """Whether the target is reached, at the upper end of the interval of wrong labels.

        So many labels must have been checked as would show it without any doubts stated.
        """
        enough = not len(self.order) or self.errors.n_checked >= checks_needed(self.target)
        return enough and self.wrong[2] <= 1 - self.target


def plan_review(
    certainty: Floats,
    unchecked: npt.NDArray[np.bool_],
    *,
    n_items: int | None = None,
    seconds: Floats | None = None,
    checked: Checked | None = None,
    target: float = 0.95,
) -> Review:
    """Return which labels to check, and how many are wrong.

    Parameters
    ----------
    certainty
        Calibrated confidence in every label, NaN where it cannot be told: (item).
    unchecked
        Which labels nobody checked: (item).
    n_items
        Number of labelled items; by default all.
    seconds
        How long it takes to check every item; by default the same for all.
    checked
        Labels that were checked, with the certainty before.
    target
        The share of right labels to reach.

    Examples
    --------
    >>> certainty = np.array([0.99, 0.6, 0.9, 1.0])
    >>> plan_review(certainty, np.array([True, True, True, False])).order.tolist()
    [1, 2, 0]
    """
    codes = np.flatnonzero(unchecked)
    n_items = len(certainty) if n_items is None else n_items
    errors = errors_left(certainty[codes], checked)
    identifiable = ~np.isnan(certainty[codes])
    codes, unidentifiable = codes[identifiable], codes[~identifiable]
    n_items -= len(unidentifiable)
    each = np.ones(len(certainty)) if seconds is None else seconds
    rising = codes[np.argsort(certainty[codes], kind="stable")]
    doubt = doubts(certainty[codes], errors.expected) if len(codes) else np.zeros(0)
    best = np.argsort(-doubt / each[rising], kind="stable")
    order, left = rising[best], doubt.sum() - np.cumsum(doubt[best])
    n_needed = 0
    if len(codes) and doubt.sum() > (1 - target) * n_items:
        n_needed = int(np.argmax(left <= (1 - target) * n_items)) + 1
    spent = float(each[order[:n_needed]].sum())
    return Review(np.concatenate([order, unidentifiable]), errors, n_items, n_needed, spent, target)


def errors_left(certainty: Floats, checked: Checked | None) -> LabelErrors:
    """Return how many labels are wrong that nobody checked."""
    if checked is None or not len(certainty):
        return label_errors(certainty)
    return checked_errors(certainty, checked)


def random_order(items: Sequence[str], seed: int = 0) -> Integers:
    """Return the items by code in a random order that stays the same when others come.

    >>> random_order(["a", "b", "c"]).tolist() == random_order(["a", "b", "c"]).tolist()
    True
    """
    key = seed.to_bytes(8, "big", signed=True)
    names = (one.encode("utf-8", "surrogatepass") for one in items)
    hashes = b"".join(hashlib.blake2b(one, digest_size=8, key=key).digest() for one in names)
    return np.argsort(np.frombuffer(hashes, dtype=">u8"), kind="stable")
