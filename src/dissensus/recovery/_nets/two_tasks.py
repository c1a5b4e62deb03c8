"""Heads with a second task: how much annotators disagree."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from ..._relation import Floats
from ...nn.batches import Batch
from .heads import Heads
from .members import start

__all__ = ["TwoTasks"]


class TwoTasks(Heads):
    """Heads that also say how much annotators disagree, from 0 to 1."""

    spread: Tensor  # (item): how much annotators do

    def __init__(self, n: int, width: int, n_classes: int, **more: Any) -> None:
        super().__init__(n, width, n_classes, **more)
        self.second = start(n, self.shape["hidden"] or width, 1, seed=more.get("seed", 0))
        self.second_bias = nn.Parameter(torch.zeros(n, 1, 1))
        self.task_weight = 0.0

    def aim(self, spread: Floats, weight: float) -> None:
        """Take what the second task is to foresee: (item)."""
        self.register_buffer("spread", torch.as_tensor(spread).to(self.mean), persistent=False)
        self.task_weight = weight

    def likelihoods(self, batch: Batch) -> Tensor:
        if not self.training:
            return super().likelihoods(batch)
        inside = self.inside(batch.x)
        log = torch.baddbmm(self.bias, inside, self.last).log_softmax(dim=-1)
        told = torch.baddbmm(self.second_bias, inside, self.second)[..., 0].sigmoid()
        wrong = (told - self.spread[batch.item]) ** 2
        return log[:, batch.row, batch.label] - self.task_weight * wrong

    @torch.no_grad()
    def disagreement(self, x: Tensor) -> Floats:
        """Return how much annotators disagree, as a mean of the members: (item)."""
        told = torch.baddbmm(self.second_bias, self.inside(x), self.second)[..., 0].sigmoid()
        return told.mean(dim=0).double().numpy()
