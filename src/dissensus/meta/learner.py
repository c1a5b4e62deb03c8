"""What is trained: an embedding and a way to adapt, on episodes; or a classifier of all classes.

The loss of an episode is that of its queries after adapting to its support, so the embedding learns
to be adapted. Batch normalisation takes the statistics of the whole pool while training, and
running ones in use: a query is classified alike whatever stands beside it.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from ..nn.batches import Batch
from ..nn.learner import Learner
from .adapter import Adapter
from .embedding import Embedding
from .episodes import Episodes
from .losses import Clean, QueryLoss

__all__ = ["ClassLearner", "EpisodeLearner"]

_FASTER = 5.0  # the few numbers of an adapter learn at so many times the rate


class EpisodeLearner(Learner):
    """An embedding that is trained to be adapted."""

    def __init__(
        self, embedding: Embedding, adapter: Adapter, lr: float, loss: QueryLoss | None = None
    ) -> None:
        super().__init__()
        self.embedding, self.adapter = embedding, adapter
        self.query_loss, self.lr = loss or Clean(), lr

    def loss(self, batch: Episodes) -> Tensor:
        log_truth, task = self.adapter.classify(self.embedding, batch)
        return self.query_loss(log_truth, batch, task)

    def weight(self, batch: Episodes) -> int:
        return batch.query.numel()

    def groups(self) -> list[dict[str, Any]]:
        return [
            {"params": list(self.embedding.parameters())},
            {"params": list(self.adapter.parameters()), "lr": _FASTER * self.lr},
        ]


class ClassLearner(Learner):
    """An embedding under a linear classifier of all source classes."""

    def __init__(self, embedding: Embedding, n_classes: int) -> None:
        super().__init__()
        self.embedding = embedding
        self.head = nn.Linear(embedding.width, n_classes)

    def log_truth(self, x: Tensor) -> Tensor:
        return self.head(self.embedding(x)).float().log_softmax(dim=1)

    def loss(self, batch: Batch) -> Tensor:
        return torch.nn.functional.nll_loss(self.log_truth(batch.x)[batch.row], batch.label)
