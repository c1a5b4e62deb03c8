"""EM on embeddings with a confusion matrix for every annotator.

    given[r, ·, k] ~ Dirichlet(1 + C[·, k]),    C[l, k] = c + right · 1(l = k)
    given[r, l, k] = (said[r, l, k] + C[l, k]) / Σ_l (said[r, l, k] + C[l, k])

With ten labels of a class an annotator's row is known to about a tenth, so with few labels the
prior decides. It is learned with the embedding.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from ..params import Positive
from .adapter import logarithm
from .em import Annotators, Em, MapRule, logs
from .items import Items, share

__all__ = ["Confusions", "EmFull", "counted"]


class Confusions(Annotators):
    """One confusion matrix per annotator; what is learned is its logarithm."""

    def __init__(self, c: float, right: float) -> None:
        super().__init__()
        self.log_c, self.log_right = logarithm(c), logarithm(right)

    def pseudo(self, n_classes: int) -> Tensor:
        """Return the pseudo-counts of everybody: (given, true)."""
        c = self.log_c.exp()
        return c + self.log_right.exp() * torch.eye(n_classes, dtype=c.dtype, device=c.device)

    def update(self, items: Items, posterior: Tensor, last: Tensor | None) -> Tensor:
        return logs(share(counted(items, posterior) + self.pseudo(items.n_classes), dim=2))

    def log_given(self, crowd: Tensor) -> Tensor:
        return crowd

    def log_prior(self, crowd: Tensor) -> Tensor:
        return (self.pseudo(crowd.shape[-1]) * crowd).sum(dim=(1, 2, 3))


def counted(items: Items, posterior: Tensor) -> Tensor:
    """Return how often who said what of which class: (episode, annotator, given, true)."""
    return items.by_annotations(items.per_annotation(posterior))


@dataclass(frozen=True, kw_only=True)
class EmFull(MapRule):
    """EM on embeddings, one confusion matrix per annotator.

    Parameters
    ----------
    c
        Pseudo-count of every label, whatever is true.
    right
        More pseudo-counts of the right label.
    """

    c: Positive = 0.1
    right: Positive = 1.0

    def build(self, width: int, n_classes: int) -> Em:
        return Em(self.classes(), Confusions(self.c, self.right), self)
