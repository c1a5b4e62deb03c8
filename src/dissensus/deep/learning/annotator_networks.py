"""Herde, Huseljic and Sick (2023), MaDL: a network of annotator errors; copies count less."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from ..nn.batches import Batch
from .performance import PerformanceMethod, PerformanceModel
from .base import BuildParts, at_label

_ALPHA, _BETA = 1.25, 0.25
_MODE = (_ALPHA - 1) / _BETA
_LEAST = 1e-5


class MadlModel(PerformanceModel):
    """An annotator network, and weights against copied labels."""

    def __init__(self, context: BuildParts, settings: Madl) -> None:
        super().__init__(context, settings)
        self.gamma = nn.Parameter(torch.tensor(_MODE)) if settings.weights else None

    def crowd_loss(self, log_truth: Tensor, vector: Tensor, batch: Batch) -> Tensor:
        if self.gamma is None:
            return super().crowd_loss(log_truth, vector, batch)
        log = at_label(self.log_given(self.pairs(log_truth, vector, batch)), batch.label)
        here, position = torch.unique(batch.annotator, return_inverse=True)
        weight = weights(self.embedding(here).detach(), self.gamma)[position]
        prior = (_ALPHA - 1) * (self.gamma / _MODE).log() - _BETA * (self.gamma - _MODE)
        return -(weight * log).mean() - prior

    def after_step(self) -> None:
        if self.gamma is not None:
            self.gamma.clamp_(min=_LEAST)


def weights(embedding: Tensor, gamma: Tensor) -> Tensor:
    """Return how much annotators count, one on average and less where they are alike.

    >>> weights(torch.tensor([[0.0], [0.0], [9.0]]), torch.tensor(1.0)).tolist()
    [0.75, 0.75, 1.5]
    """
    apart = (embedding[:, None] - embedding[None]).square().sum(dim=2)
    rare = 1 / torch.exp(-gamma * apart).sum(dim=1)
    return len(embedding) * rare / rare.sum()


@dataclass(frozen=True, kw_only=True)
class Madl(PerformanceMethod):
    """A network of how annotators err; labels of annotators that are alike count less.

    Herde, Huseljic and Sick (2023), MaDL: a network of annotator errors; copies count less.

    The annotator network (`_performance.py`) gives every annotator a confusion matrix, and with
    `instance` one for every annotation. Labels of similar annotators count less, since they may be
    copies:

        k[r, s] = exp(−γ ‖e_r − e_s‖²),   w_r ∝ 1 / Σ_s k[r, s],   Σ_r w_r = number of annotators
        loss = mean of w_j · (−log P(label)) − log Gamma(γ | 1.25, .25)

    The weights send no gradients into the embeddings. They are computed among the annotators of a
    batch, so that the cost of a step does not grow with the number of annotators.

    When it fails: Similar annotators are not always copies: good annotators resemble each other,
    and lose weight for it. With `instance` it overfits small sets, losing 12 points on music.

        M. Herde, D. Huseljic, B. Sick. Multi-annotator deep learning: a probabilistic framework for
        classification. TMLR 2023.

    Parameters
    ----------
    weights
        Whether annotators that are alike count less.
    """

    model = MadlModel

    weights: bool = True
