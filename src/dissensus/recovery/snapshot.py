"""One network caught several times on its way: the learning rate falls to zero and jumps up again.

Every fall ends near a minimum, and every jump leads to another one. It costs one training.

    G. Huang, Y. Li, G. Pleiss, Z. Liu, J. E. Hopcroft, K. Q. Weinberger. Snapshot ensembles: train
    1, get M for free. ICLR 2017.
"""

from __future__ import annotations

from dataclasses import dataclass

from ..params import Count
from ._base import Shown, Views
from ._networks import Networks, OnVectors, labelled_once

__all__ = ["Snapshot"]


@dataclass(frozen=True, kw_only=True)
class Snapshot(OnVectors):
    """The mean of one network at the ends of several falls of the learning rate.

    Parameters
    ----------
    n
        How many falls.
    epochs
        Of one fall.
    """

    n: Count = 5
    epochs: Count = 4

    def learn(self, views: Views, shown: Shown) -> Networks:
        from ._nets.snapshots import caught

        annotations = labelled_once(shown.label, shown.n_classes)
        return Networks(caught(self, views, annotations, shown))
