"""Label distribution learning: an oracle that sees what everybody said.

    loss = -Σ_k q_ik log p_k(x_i),   q_i the shares of the annotators of item i

It says how well distributions can be foreseen from the inputs by one who may learn from them; what
recovers them from one label should be measured by it, and by the people themselves.

    X. Geng. Label distribution learning. IEEE TKDE 28(7), 2016.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from ..params import Count
from ._base import Shown, Views
from ._networks import Networks, OnVectors

__all__ = ["Ldl"]


@dataclass(frozen=True, kw_only=True)
class Ldl(OnVectors):
    """Networks that learn the shares of the annotators: an oracle.

    Parameters
    ----------
    n
        How many networks, each on its own sample of the items.
    """

    oracle: ClassVar[bool] = True

    n: Count = 10

    def learn(self, views: Views, shown: Shown) -> Networks:
        from ._nets.sample_weights import alike, bagged

        share = bagged(self.n, len(views), shown.seed)
        if self.n == 1:
            share = alike(1, len(views), 0.1, shown.seed)
        return self.heads(views, shown, share, annotations=shown.annotations)
