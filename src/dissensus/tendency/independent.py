"""A classifier for every annotator, learned from their labels alone.

Nobody learns from anybody else: with thousands of labels each this is all that is needed, with
forty it is worse than the consensus. One ridge serves all, chosen by annotations on items held out.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ..params import NonNegative, Positive
from ._shrunk import Spreads
from .linear import Linear

__all__ = ["Independent"]

_BIAS = 2.0


@dataclass(frozen=True, kw_only=True)
class Independent(Linear):
    """A classifier for every annotator, learned from their labels alone."""

    shared: Positive | None = 1.0  # there is none: `start` leaves it out
    bias: NonNegative | None = _BIAS
    slope: NonNegative | None = 0.0
    known: NonNegative | None = 0.0

    def start(self, known: bool) -> Spreads:
        spreads = super().start(known)
        return spreads._replace(shared=0.0, level=0.0, own=spreads.own or 0.5)

    def grid(self, known: bool) -> dict[str, Sequence[float]]:
        return {"own": (0.06, 0.12, 0.25, 0.5, 1.0, 2.0)} if self.own is None else {}
