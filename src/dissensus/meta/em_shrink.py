"""EM on embeddings with confusion matrices shrunk towards one accuracy each.

An annotator's matrix combines the expected counts with `pooled` pseudo-counts per class of the
matrix of their accuracy alone (see `em-one-coin`):

    given[r, l, k] = (labels[r, l, k] + pooled · coin[r, l, k]) / (Σ_l labels[r, l, k] + pooled)

The accuracy is estimated from the same counts, before the matrix: two levels of a hierarchy fitted
one after the other, not their joint maximum, so the objective may fall a little.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from torch import Tensor

from ..params import Positive
from .adapter import log_parameter
from .em import AnnotatorModel, Em, safe_log
from .em_full import expected_counts
from .em_one_coin import Accuracies, AccuracyParams, EmOneCoin
from .items import Items


class ShrunkenParams(NamedTuple):
    """Confusion matrices, and the accuracies that they are shrunk towards."""

    log_given: Tensor  # (episode, annotator, given, true)
    accuracies: AccuracyParams


class ShrunkenMatrices(AnnotatorModel):
    """Confusion matrices shrunk towards one accuracy each."""

    def __init__(self, c: float, right: float, pooled: float) -> None:
        super().__init__()
        self.coins = Accuracies(c, right)
        self.log_pooled = log_parameter(pooled)

    def update(self, items: Items, posterior: Tensor, last: object) -> ShrunkenParams:
        counts, pooled = expected_counts(items, posterior), self.log_pooled.exp()
        accuracies = self.coins.update(items, posterior, None)
        shrunken = counts + pooled * self.coins.log_given(accuracies).exp()
        given = shrunken / (counts.sum(dim=2, keepdim=True) + pooled)
        return ShrunkenParams(safe_log(given), accuracies)

    def log_given(self, params: ShrunkenParams) -> Tensor:
        return params.log_given

    def log_prior(self, params: ShrunkenParams) -> Tensor:
        coin = self.log_pooled.exp() * self.coins.log_given(params.accuracies).exp()
        n_classes = coin.shape[-1]
        volume = (coin + 1).lgamma().sum(dim=2) - (coin.sum(dim=2) + n_classes).lgamma()
        matrices = (coin * params.log_given).sum(dim=2) - volume  # (episode, annotator, true)
        return matrices.sum(dim=(1, 2)) + self.coins.log_prior(params.accuracies)


@dataclass(frozen=True, kw_only=True)
class EmShrink(EmOneCoin):
    """EM on embeddings, confusion matrices shrunk towards one accuracy per annotator.

    Parameters
    ----------
    c
        Of the accuracy: pseudo-count of every label, for every true class.
    right
        Of the accuracy: additional pseudo-count of the right label.
    pooled
        Pseudo-counts of every class by which a matrix is shrunk.
    """

    pooled: Positive = 10.0

    def build(self, width: int, n_classes: int) -> Em:
        return Em(ShrunkenMatrices(self.c, self.right, self.pooled), self)
