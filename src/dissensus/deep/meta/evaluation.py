"""Scores of an adapter on episodes: accuracy with its interval, log-loss and calibration."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn

from ...base.arrays import Floats
from ..nn.batches import chunks
from .base import Adapter
from .episodes import Episodes
from .tasks import Tasks

_BATCH = 512  # inputs embedded at a time


@dataclass(frozen=True, eq=False)
class Scores:
    """Scores of the queries of every episode."""

    accuracy: Floats  # (episode): accuracy on its queries
    log_loss: Floats  # (episode)
    confidence: Floats  # (query of all episodes): of the predicted class
    right: Floats  # (query of all episodes): 1 if the prediction is right, else 0

    @property
    def mean(self) -> float:
        """The mean accuracy."""
        return float(self.accuracy.mean())

    @property
    def half(self) -> float:
        """Half of the 95 % interval of the mean accuracy, over episodes."""
        return float(1.96 * self.accuracy.std(ddof=1) / len(self.accuracy) ** 0.5)

    def __add__(self, other: Scores) -> Scores:
        pairs = zip(vars(self).values(), vars(other).values(), strict=True)
        return Scores(*(np.concatenate(pair) for pair in pairs))


@torch.no_grad()
def score(
    adapter: Adapter, batches: Iterable[Episodes], embedding: nn.Module | None = None
) -> Scores:
    """Return the scores of the queries of episodes.

    Parameters
    ----------
    adapter
        The adapter.
    batches
        Episodes, one pool at a time.
    embedding
        The embedding network; without it the inputs are embeddings.
    """
    network = nn.Identity() if embedding is None else embedding
    scores = [_scores_of(adapter.classify(network, batch)[0], batch.truth) for batch in batches]
    return sum(scores[1:], start=scores[0])


def _scores_of(log_truth: Tensor, truth: Tensor) -> Scores:
    log_loss = -log_truth.gather(2, truth[:, :, None])[:, :, 0].double()
    best = log_truth.max(dim=2)
    right = (best.indices == truth).double()
    return Scores(
        right.mean(dim=1).numpy(),
        log_loss.mean(dim=1).numpy(),
        best.values.double().exp().flatten().numpy(),
        right.flatten().numpy(),
    )


@torch.no_grad()
def embedded(embedding: nn.Module, tasks: Tasks) -> Tasks:
    """Return the same tasks with their embeddings as inputs."""
    embedding.eval()
    vectors = [embedding(x).float() for x in chunks(tasks.x, _BATCH)]
    return Tasks(torch.cat(vectors), tasks.label, tasks.task, annotations=tasks.annotations)
