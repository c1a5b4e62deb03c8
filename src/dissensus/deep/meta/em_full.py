"""EM on embeddings with a confusion matrix for every annotator."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from ...params import Positive
from .base import log_parameter
from .em import AnnotatorModel, Em, EmSettings, safe_log
from .items import Items, normalize


class ConfusionMatrices(AnnotatorModel):
    """One confusion matrix per annotator; the parameters are its logarithm."""

    def __init__(self, c: float, right: float) -> None:
        super().__init__()
        self.log_c, self.log_right = log_parameter(c), log_parameter(right)

    def pseudo_counts(self, n_classes: int) -> Tensor:
        """Return the pseudo-counts of every annotator: (given, true)."""
        c = self.log_c.exp()
        return c + self.log_right.exp() * torch.eye(n_classes, dtype=c.dtype, device=c.device)

    def update(self, items: Items, posterior: Tensor, last: Tensor | None) -> Tensor:
        counts = expected_counts(items, posterior) + self.pseudo_counts(items.n_classes)
        return safe_log(normalize(counts, dim=2))

    def log_given(self, params: Tensor) -> Tensor:
        return params

    def log_prior(self, params: Tensor) -> Tensor:
        return (self.pseudo_counts(params.shape[-1]) * params).sum(dim=(1, 2, 3))


def expected_counts(items: Items, posterior: Tensor) -> Tensor:
    """Return expected counts of labels: (episode, annotator, given, true)."""
    return items.sum_by_label(items.per_annotation(posterior))


@dataclass(frozen=True, kw_only=True)
class EmFull(EmSettings):
    """EM on embeddings, one confusion matrix per annotator.

    EM on embeddings with a confusion matrix for every annotator.

        given[r, ·, k] ~ Dirichlet(1 + C[·, k]),    C[l, k] = c + right · 1(l = k)
        given[r, l, k] = (labels[r, l, k] + C[l, k]) / Σ_l (labels[r, l, k] + C[l, k])

    Ten labels of a class determine an annotator's row to about a tenth, so with few labels the
    prior decides. It is meta-learned with the embedding.

    When it fails: With five labels per annotator and many classes, rows of a matrix are their
    prior, and `em-one-coin` is better. If the target differs from the source tasks, so does the
    prior.

    Parameters
    ----------
    c
        Pseudo-count of every label, for every true class.
    right
        Additional pseudo-count of the right label.
    """

    c: Positive = 0.1
    right: Positive = 1.0

    def build(self, width: int, n_classes: int) -> Em:
        return Em(ConfusionMatrices(self.c, self.right), self)
