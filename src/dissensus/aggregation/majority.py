"""Majority vote: the class with most votes, with a stated rule for ties."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from ..base.probability import TIE, normalize
from ..base.arrays import Floats, Integers
from ..answers.annotations import Part
from ..method import FitContext
from .votes import VoteAggregator


@dataclass(frozen=True, kw_only=True)
class Majority(VoteAggregator):
    """The class with most votes.

    Majority vote: the class with most votes, with a stated rule for ties.

    Random ties use one random number per item, so neither the order of rows nor ties elsewhere
    change them. For scores, prefer the expectation over ties (`evaluate` gives it) to one draw.

        label[i] = argmax_t Σ_a 1(annotator a labels item i as t)

    When it fails: All votes count the same, so a few prolific spammers or annotators with a common
    bias decide items that better annotators got right; with an even number of votes many items are
    tied.

    Parameters
    ----------
    ties
        Which of several tied classes: one at `random` (by the seed), the `first`, none
        (`abstain`), the most common among all labels (`prior`), or the posterior split over
        `all` of them, with the first as the label.

    Examples
    --------
    >>> from dissensus import Annotations
    >>> labels = ["dog", "dog", "cat", "cat", "dog"]
    >>> annotations = Annotations.from_columns("aaabb", "xyzxy", labels)
    >>> Majority(ties="abstain").fit(annotations).labels.tolist()
    ['dog', None]
    """

    ties: Literal["random", "first", "abstain", "prior", "all"] = "random"

    def part_posterior(self, part: Part, params: Any) -> Floats:
        votes = part.votes()
        return normalize(_leading(votes).astype(float)) if self.ties == "all" else normalize(votes)

    def decide(self, fit: FitContext, posterior: Floats, params: Any) -> Integers:
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
    """Return the classes with most votes, tied ones included: (item, class)."""
    return votes >= votes.max(axis=1, keepdims=True) - TIE
