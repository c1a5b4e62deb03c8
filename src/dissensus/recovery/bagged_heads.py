"""Heads over one encoder, each on its own sample of the items.

A bootstrap sample counts an item as often as a Poisson variable of mean one says; the third of the
items that a head never sees tells it when to stop. With `folds`, every head learns all items but
a share that no other leaves out: less different, and each better.
"""

from __future__ import annotations

from dataclasses import dataclass

from ..params import Count
from ._base import Shown, Views
from ._networks import Networks, OnVectors

__all__ = ["BaggedHeads"]


@dataclass(frozen=True, kw_only=True)
class BaggedHeads(OnVectors):
    """Heads over one encoder, each on its own sample of the items.

    Parameters
    ----------
    n
        How many heads.
    folds
        Leave out another part of the items for every head rather than draw a bootstrap.
    """

    n: Count = 10
    folds: bool = False

    def learn(self, views: Views, shown: Shown) -> Networks:
        from ._nets.sample_weights import bagged, folded

        draw = folded if self.folds else bagged
        return self.heads(views, shown, draw(self.n, len(views), shown.seed))
