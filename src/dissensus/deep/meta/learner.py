"""What is trained: an embedding with an adapter, on episodes; or a classifier of all classes.

The loss of an episode is that of its queries after adapting to its support. Batch normalization
uses the statistics of the whole pool in training, and running ones afterwards: the prediction of a
query does not depend on other queries.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from ..nn import Batch, Learner
from .base import AdaptedTasks, Adapter
from .embedding import Embedding
from .episodes import Episodes

_ADAPTER_LR = 5.0  # relative learning rate of the few parameters of an adapter


class EpisodeLearner(Learner):
    """An embedding and an adapter, trained on the loss of the queries."""

    def __init__(self, embedding: Embedding, adapter: Adapter, lr: float) -> None:
        super().__init__()
        self.embedding, self.adapter, self.lr = embedding, adapter, lr

    def loss(self, batch: Episodes) -> Tensor:
        log_truth, tasks = self.adapter.classify(self.embedding, batch)
        return self.query_loss(log_truth, batch, tasks)

    def query_loss(self, log_truth: Tensor, batch: Episodes, tasks: AdaptedTasks | None) -> Tensor:
        """Return the mean loss of queries with these log-probabilities: (episode, query, class)."""
        return -log_truth.gather(2, batch.truth[:, :, None]).mean()

    def weight(self, batch: Episodes) -> int:
        return batch.query.numel()

    def groups(self) -> list[dict[str, Any]]:
        return [
            {"params": list(self.embedding.parameters())},
            {"params": list(self.adapter.parameters()), "lr": _ADAPTER_LR * self.lr},
        ]


class ClassLearner(Learner):
    """An embedding with a linear classifier of all source classes."""

    def __init__(self, embedding: Embedding, n_classes: int) -> None:
        super().__init__()
        self.embedding = embedding
        self.head = nn.Linear(embedding.width, n_classes)

    def log_truth(self, x: Tensor) -> Tensor:
        return self.head(self.embedding(x)).float().log_softmax(dim=1)

    def loss(self, batch: Batch) -> Tensor:
        return torch.nn.functional.nll_loss(self.log_truth(batch.x)[batch.row], batch.label)
