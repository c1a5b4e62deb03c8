"""EM on embeddings with one number for every annotator: how often they are right.

Whatever is true, annotator r is right with probability right[r]; errors are spread evenly.

    right[r] = (Σ_k said[r, k, k] + c + right) / (Σ said[r] + K c + right)

With few labels per annotator a whole confusion matrix costs more than this simplification does,
even where errors are not even.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

from ..params import Positive
from .adapter import logarithm
from .em import Annotators, Em, MapRule, logs
from .em_full import counted
from .items import Items

__all__ = ["Coins", "EmOneCoin", "OneCoins", "coin_matrix", "rights"]


class Coins(NamedTuple):
    """What is learned of the annotators."""

    log_right: Tensor  # (episode, annotator)
    log_wrong: Tensor  # (episode, annotator): of every single wrong label
    n_classes: int


class OneCoins(Annotators):
    """One probability of being right per annotator."""

    def __init__(self, c: float, right: float) -> None:
        super().__init__()
        self.log_c, self.log_right = logarithm(c), logarithm(right)

    def update(self, items: Items, posterior: Tensor, last: Coins | None) -> Coins:
        right, wrong = rights(counted(items, posterior))
        more, less = self._pseudo(items.n_classes)
        chance = (right + more) / (right + wrong + more + less)
        others = max(items.n_classes - 1, 1)
        return Coins(logs(chance), logs((1 - chance) / others), items.n_classes)

    def log_given(self, crowd: Coins) -> Tensor:
        return coin_matrix(crowd.log_right, crowd.log_wrong, crowd.n_classes)

    def log_prior(self, crowd: Coins) -> Tensor:
        more, less = self._pseudo(crowd.n_classes)
        return (more * crowd.log_right + less * crowd.log_wrong).sum(dim=1)

    def _pseudo(self, n_classes: int) -> tuple[Tensor, Tensor]:
        """Return the pseudo-counts of right and of wrong labels."""
        c = self.log_c.exp()
        return c + self.log_right.exp(), (n_classes - 1) * c


def rights(annotations: Tensor) -> tuple[Tensor, Tensor]:
    """Return expected counts of right and of wrong labels: (episode, annotator) each."""
    right = annotations.diagonal(dim1=2, dim2=3).sum(dim=2)
    return right, (annotations.sum(dim=(2, 3)) - right).clamp(min=0)


def coin_matrix(right: Tensor, wrong: Tensor, n_classes: int) -> Tensor:
    """Return matrices of two values each: (episode, annotator, given, true)."""
    eye = torch.eye(n_classes, dtype=torch.bool, device=right.device)
    return torch.where(eye, right[:, :, None, None], wrong[:, :, None, None])


@dataclass(frozen=True, kw_only=True)
class EmOneCoin(MapRule):
    """EM on embeddings, one probability of being right per annotator.

    Parameters
    ----------
    c
        Pseudo-count of every label, whatever is true.
    right
        More pseudo-counts of the right label.
    """

    steps: int = 5
    c: Positive = 0.1
    right: Positive = 1.0

    def build(self, width: int, n_classes: int) -> Em:
        return Em(self.classes(), OneCoins(self.c, self.right), self)
