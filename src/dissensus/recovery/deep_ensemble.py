"""n networks that share nothing: other starts, order, dropout and held-out items.

B. Lakshminarayanan, A. Pritzel, C. Blundell. Simple and scalable predictive uncertainty
estimation using deep ensembles. NeurIPS 2017.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .._relation import Floats
from ..params import Count
from ._base import Kept, Recovery, Shown, Views
from ._networks import Networks, OnVectors, Share

__all__ = ["DeepEnsemble"]


class Several(Recovery):
    """Recoveries side by side; their members are its members."""

    def __init__(self, parts: list[Networks]) -> None:
        self.parts = parts

    def members(self, views: Views) -> Floats:
        return np.concatenate([part.members(views) for part in self.parts])

    def kept(self) -> Kept:
        told = [part.kept() for part in self.parts]
        arrays = {
            f"{position}.{name}": value
            for position, one in enumerate(told)
            for name, value in one.arrays.items()
        }
        return Kept({"parts": [one.notes for one in told]}, arrays)


@dataclass(frozen=True, kw_only=True)
class DeepEnsemble(OnVectors):
    """The mean of networks trained one by one.

    Parameters
    ----------
    n
        How many networks.
    held_out
        Share of the items that each holds out to choose its epoch.
    """

    n: Count = 5
    held_out: Share = 0.1

    def learn(self, views: Views, shown: Shown) -> Several:
        from ._nets.sample_weights import alike

        parts = []
        for member in range(self.n):
            seed = shown.seed + 7919 * member  # of its own, also beside other seeds
            share = alike(1, len(views), self.held_out, seed)
            parts.append(self.heads(views, shown, share, seed=seed))
        return Several(parts)

    def restore(self, kept: Kept) -> Several:
        from ._nets.heads import Heads

        parts = []
        for position, notes in enumerate(kept.notes["parts"]):
            mine = {
                name.partition(".")[2]: value
                for name, value in kept.arrays.items()
                if name.partition(".")[0] == str(position)
            }
            parts.append(Networks(Heads(**notes).load(mine)))
        return Several(parts)
