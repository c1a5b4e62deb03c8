"""What the one training loop trains: a network that knows its loss on a batch."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, ClassVar

from torch import Tensor, nn

__all__ = ["Learner"]


class Learner(nn.Module, ABC):
    """A network with a loss on batches: of annotations (`Batch`), or of another kind that it knows.

    Whatever changes while it learns is a parameter or a (persistent) buffer, for instance
    posteriors of an EM: then a checkpoint holds all of it. Parameters with a row per annotator
    are a `Table`, so that a step costs the same however many annotators there are.
    """

    foresees: ClassVar[str] = "annotations"  # what is held out to choose the epoch, in words
    by_accuracy: bool = False  # choose the epoch by `foreseen`, annotator by annotator

    @abstractmethod
    def loss(self, batch: Any) -> Tensor:
        """Return what to make small on a batch: (), a mean over what `weight` counts."""

    def weight(self, batch: Any) -> int:
        """Return how much a batch counts beside others: its annotations, if not overridden."""
        return len(batch.label)

    def begin(self, examples: Any, epoch: int) -> None:
        """Do what comes before an epoch: an E-step, the end of a warm-up."""

    def stepped(self) -> None:
        """Do what comes after every step: keep a parameter within its limits."""

    def tired(self) -> bool:
        """Return whether to end before all epochs are over, by what the learner itself knows."""
        return False

    def groups(self) -> list[dict[str, Any]]:
        """Return groups of parameters, each with settings of its own (`lr`, `weight_decay`)."""
        return [{"params": list(self.parameters())}]

    def log_truth(self, x: Tensor) -> Tensor:
        """Return log probabilities of the true class: (item, class)."""
        raise NotImplementedError

    def log_probability(self, batch: Any) -> Tensor:
        """Return the log probabilities of the labels that were given: (annotation)."""
        raise NotImplementedError

    def foreseen(self, batch: Any) -> Tensor:
        """Return the labels that are most probable where some were given: (annotation)."""
        raise NotImplementedError
