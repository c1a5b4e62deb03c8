"""EM on embeddings with one number for every annotator: their accuracy."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

from ...params import Count
from .base import log_parameter
from .em import AnnotatorModel, Em, safe_log
from .em_full import EmFull, expected_counts
from .items import Items


class AccuracyParams(NamedTuple):
    """Log-probabilities of right labels and of each wrong one."""

    log_right: Tensor  # (episode, annotator)
    log_wrong: Tensor  # (episode, annotator)
    n_classes: int


class Accuracies(AnnotatorModel):
    """One accuracy per annotator."""

    def __init__(self, c: float, right: float) -> None:
        super().__init__()
        self.log_c, self.log_right = log_parameter(c), log_parameter(right)

    def update(self, items: Items, posterior: Tensor, last: object) -> AccuracyParams:
        right, wrong = right_and_wrong(expected_counts(items, posterior))
        more, less = self._pseudo_counts(items.n_classes)
        accuracy = (right + more) / (right + wrong + more + less)
        others = max(items.n_classes - 1, 1)
        return AccuracyParams(
            safe_log(accuracy), safe_log((1 - accuracy) / others), items.n_classes
        )

    def log_given(self, params: AccuracyParams) -> Tensor:
        return coin_matrix(params.log_right, params.log_wrong, params.n_classes)

    def log_prior(self, params: AccuracyParams) -> Tensor:
        more, less = self._pseudo_counts(params.n_classes)
        return (more * params.log_right + less * params.log_wrong).sum(dim=1)

    def _pseudo_counts(self, n_classes: int) -> tuple[Tensor, Tensor]:
        """Return the pseudo-counts of right and of wrong labels."""
        c = self.log_c.exp()
        return c + self.log_right.exp(), (n_classes - 1) * c


def right_and_wrong(counts: Tensor) -> tuple[Tensor, Tensor]:
    """Return expected counts of right and of wrong labels: (episode, annotator) each."""
    right = counts.diagonal(dim1=2, dim2=3).sum(dim=2)
    return right, (counts.sum(dim=(2, 3)) - right).clamp(min=0)


def coin_matrix(right: Tensor, wrong: Tensor, n_classes: int) -> Tensor:
    """Return matrices of two values each: (episode, annotator, given, true)."""
    eye = torch.eye(n_classes, dtype=torch.bool, device=right.device)
    return torch.where(eye, right[:, :, None, None], wrong[:, :, None, None])


@dataclass(frozen=True, kw_only=True)
class EmOneCoin(EmFull):
    """EM on embeddings, one accuracy per annotator.

    EM on embeddings with one number for every annotator: their accuracy.

    Whatever the true class, annotator r is right with probability accuracy[r]; errors are uniform.

        accuracy[r] = (Σ_k labels[r, k, k] + c + right) / (Σ labels[r] + K c + right)

    With few labels per annotator a full confusion matrix costs more than this simplification does,
    even where errors are not uniform.

    When it fails: Annotators who confuse two particular classes; an embedding that does not
    separate the classes of the target takes the labels of neighbours for evidence.
    """

    steps: Count = 5

    def build(self, width: int, n_classes: int) -> Em:
        return Em(Accuracies(self.c, self.right), self)
