"""Annotators as points in a space of few dimensions, which decide how they differ.

    logits of annotator k = (1 + slope[k]) z(x) + bias[k] + Σ_r e[k, r] F[r] x

The factors F are learned from all annotators, so a few labels are enough to say where somebody
stands; heads of one's own, as in `linear`, need many. Where annotators differ in one thing, say how
soon they take offence at a certain topic, one factor tells it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ..params import Count, NonNegative
from ._shrunk import Spreads
from .linear import Linear

__all__ = ["LowRank"]


@dataclass(frozen=True, kw_only=True)
class LowRank(Linear):
    """Annotators as points in a space of few dimensions.

    Parameters
    ----------
    rank
        How many dimensions.
    factor
        Standard deviation of the prior on factors; `None`: chosen.
    """

    own: NonNegative | None = 0.0
    rank: Count = 3
    factor: NonNegative | None = None

    def start(self, known: bool) -> Spreads:
        return super().start(known)._replace(rank=self.rank, factor=self.factor or 0.0)

    def grid(self, known: bool) -> dict[str, Sequence[float]]:
        more: dict[str, Sequence[float]] = {"factor": (0.0, 0.1, 0.2, 0.4)}
        return super().grid(known) | (more if self.factor is None else {})
