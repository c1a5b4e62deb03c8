"""Annotators as points in a low-dimensional space of preferences.

    logits of annotator k = (1 + slope[k]) z(x) + bias[k] + Σ_r e[k, r] F[r] x

The factors F are learned from all annotators, so a few labels suffice to place an annotator; heads
of their own, as in `linear`, need many. If annotators differ in one trait, such as how easily a
certain topic offends them, one factor captures it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ..params import Count, NonNegative
from ._shrunk import Priors
from .linear import Linear


@dataclass(frozen=True, kw_only=True)
class LowRank(Linear):
    """Annotators as points in a low-dimensional space.

    Parameters
    ----------
    rank
        Number of dimensions.
    factor
        Prior standard deviation of the factors; `None`: chosen.
    """

    own: NonNegative | None = 0.0
    rank: Count = 3
    factor: NonNegative | None = None

    def start(self, has_metadata: bool) -> Priors:
        return super().start(has_metadata)._replace(rank=self.rank, factor=self.factor or 0.0)

    def grid(self, has_metadata: bool) -> dict[str, Sequence[float]]:
        factor: dict[str, Sequence[float]] = {"factor": (0.0, 0.1, 0.2, 0.4)}
        return super().grid(has_metadata) | (factor if self.factor is None else {})
