"""SeedBERT's rule on one frozen encoder: n heads that differ by their random start alone.

The heads see the same vectors, the same label and the same loss; strict, also the same order and
the same dropout. Twenty times and more cheaper than `seedbert`, which tunes a copy of the encoder
for each. A linear head trained to its end would reach the one optimum from every start, so the
votes of such heads collapse; what diversity there is comes from hidden layers and an early end.
"""

from __future__ import annotations

from dataclasses import dataclass

from ..params import Count
from ._base import Shown, Views
from ._networks import Networks, OnVectors, Share

__all__ = ["SharedHeads"]


@dataclass(frozen=True, kw_only=True)
class SharedHeads(OnVectors):
    """Heads over one encoder that differ by their random start.

    Parameters
    ----------
    n
        How many heads.
    strict
        The same dropout for all of them; otherwise each has its own.
    held_out
        Share of the items that all hold out to choose their epoch.
    """

    n: Count = 10
    strict: bool = True
    held_out: Share = 0.1

    def learn(self, views: Views, shown: Shown) -> Networks:
        from ._nets.sample_weights import alike

        share = alike(self.n, len(views), self.held_out, shown.seed)
        return self.heads(views, shown, share, strict=self.strict)
