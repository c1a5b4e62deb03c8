"""EM on embeddings with confusion matrices that are drawn towards one coin each.

An annotator's matrix is what was counted and `pooled` pseudo-counts per class of the matrix that
their rate of being right alone would give (see `em-one-coin`):

    given[r, l, k] = (said[r, l, k] + pooled · coin[r, l, k]) / (Σ_l said[r, l, k] + pooled)

The coin is found from the same counts, before the matrix. That is two levels of a hierarchy fitted
one after the other, not a maximum of both, so the objective may fall a little.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from torch import Tensor

from ..params import Positive
from .adapter import logarithm
from .em import Annotators, Em, MapRule, logs
from .em_full import counted
from .em_one_coin import Coins, OneCoins
from .items import Items

__all__ = ["EmShrink", "Shrunken"]


class Leaning(NamedTuple):
    """What is learned of the annotators: matrices, and the coins that they lean on."""

    log_given: Tensor  # (episode, annotator, given, true)
    coins: Coins


class Shrunken(Annotators):
    """Confusion matrices drawn towards one coin each."""

    def __init__(self, c: float, right: float, pooled: float) -> None:
        super().__init__()
        self.coins = OneCoins(c, right)
        self.log_pooled = logarithm(pooled)

    def update(self, items: Items, posterior: Tensor, last: Leaning | None) -> Leaning:
        annotations, pooled = counted(items, posterior), self.log_pooled.exp()
        coins = self.coins.update(items, posterior, None)
        leaning = annotations + pooled * self.coins.log_given(coins).exp()
        return Leaning(logs(leaning / (annotations.sum(dim=2, keepdim=True) + pooled)), coins)

    def log_given(self, crowd: Leaning) -> Tensor:
        return crowd.log_given

    def log_prior(self, crowd: Leaning) -> Tensor:
        coin = self.log_pooled.exp() * self.coins.log_given(crowd.coins).exp()
        n_classes = coin.shape[-1]
        volume = (coin + 1).lgamma().sum(dim=2) - (coin.sum(dim=2) + n_classes).lgamma()
        matrices = (coin * crowd.log_given).sum(dim=2) - volume  # (episode, annotator, true)
        return matrices.sum(dim=(1, 2)) + self.coins.log_prior(crowd.coins)


@dataclass(frozen=True, kw_only=True)
class EmShrink(MapRule):
    """EM on embeddings, confusion matrices drawn towards one coin per annotator.

    Parameters
    ----------
    c
        Of the coin: pseudo-count of every label, whatever is true.
    right
        Of the coin: more pseudo-counts of the right label.
    pooled
        Pseudo-counts of every class by which a matrix is drawn towards its coin.
    """

    steps: int = 5
    c: Positive = 0.1
    right: Positive = 1.0
    pooled: Positive = 10.0

    def build(self, width: int, n_classes: int) -> Em:
        return Em(self.classes(), Shrunken(self.c, self.right, self.pooled), self)
