"""Majority vote: the class that most annotators named, with a stated rule for ties.

Random ties are drawn from a stream with one number per item, so neither the order of rows nor
ties elsewhere change them. For scores, prefer the expectation over ties (`evaluate` gives it) to
one draw.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from .._relation import Floats, Integers
from ..annotations import Part
from ._base import TIE, Fit, share
from ._votes import VoteAggregator

__all__ = ["Majority"]


@dataclass(frozen=True, kw_only=True)
class Majority(VoteAggregator):
    """The class with most votes.

    Parameters
    ----------
    ties
        Which of several leading classes: one at `random` (by the seed), the `first`, none
        (`abstain`), the one that is more common among all labels (`prior`), or belief split over
        `all` of them, with the first as the label.

    Examples
    --------
    >>> from dissensus import Annotations
    >>> annotations = Annotations.from_columns("aaabb", "xyzxy", ["dog", "dog", "cat", "cat", "dog"])
    >>> Majority(ties="abstain").fit(annotations).labels.tolist()
    ['dog', None]
    """

    ties: Literal["random", "first", "abstain", "prior", "all"] = "random"

    def believe(self, part: Part) -> Floats:
        votes = part.votes
        return share(_leading(votes).astype(float)) if self.ties == "all" else share(votes)

    def decide(self, fit: Fit, posterior: Floats) -> Integers:
        leading = _leading(posterior)
        first = leading.argmax(axis=1)
        tied = np.flatnonzero(np.einsum("ik->i", leading.view(np.uint8), dtype=np.int64) > 1)
        if self.ties == "abstain":
            first[tied] = -1
        if self.ties == "random":
            random = np.random.PCG64(fit.seed)
            random.advance(fit.first)  # one number for each item
            drawn = np.random.Generator(random).random(len(leading))[tied]
            upto = leading[tied].cumsum(axis=1)
            first[tied] = (upto > (drawn * upto[:, -1]).astype(int)[:, None]).argmax(axis=1)
        if self.ties == "prior":
            first[tied] = np.where(leading[tied], fit.labels_per_class, -1).argmax(axis=1)
        return first


def _leading(votes: Floats) -> np.ndarray[tuple[int, int], np.dtype[np.bool_]]:
    """Return which classes of an item no other class beats."""
    return votes >= votes.max(axis=1, keepdims=True) - TIE
