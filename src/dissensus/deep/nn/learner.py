"""What the training loop trains: a network with a loss on a batch."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, ClassVar

from torch import Tensor, nn


class Learner(nn.Module, ABC):
    """A network with a loss on batches of annotations (`Batch`), or of another kind it knows.

    Whatever changes in training is a parameter or a persistent buffer, for instance posteriors of
    an EM, so that a checkpoint holds all of it. Parameters with a row per annotator are a `Table`,
    so that the cost of a step does not depend on the number of annotators.
    """

    held_out_name: ClassVar[str] = "annotations"  # what is held out to choose the epoch
    by_accuracy: bool = False  # choose the epoch by `predicted_labels`, averaged over annotators

    @abstractmethod
    def loss(self, batch: Any) -> Tensor:
        """Return the loss on a batch: (), a mean over what `weight` counts."""

    def weight(self, batch: Any) -> int:
        """Return the weight of a batch, by default its number of annotations."""
        return len(batch.label)

    def begin(self, examples: Any, epoch: int) -> None:
        """Prepare an epoch: an E-step, the end of a warm-up."""

    def after_step(self) -> None:
        """Do what follows every step, for instance clamp a parameter."""

    def should_stop(self) -> bool:
        """Return whether to stop before the last epoch, by the learner's own criterion."""
        return False

    def groups(self) -> list[dict[str, Any]]:
        """Return groups of parameters, each with its own settings (`lr`, `weight_decay`)."""
        return [{"params": list(self.parameters())}]

    def log_truth(self, x: Tensor) -> Tensor:
        """Return log-probabilities of the true class: (item, class)."""
        raise NotImplementedError

    def log_probability(self, batch: Any) -> Tensor:
        """Return log-probabilities of the labels that were given: (annotation)."""
        raise NotImplementedError

    def predicted_labels(self, batch: Any) -> Tensor:
        """Return the most probable label for every annotation: (annotation)."""
        raise NotImplementedError
