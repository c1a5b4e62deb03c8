"""How a network is trained."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

from annotated_types import Ge

from ..errors import MethodError
from ..params import Count, NonNegative, Positive, Probability, Settings

__all__ = ["Training"]


@dataclass(frozen=True, kw_only=True)
class Training(Settings):
    """How a network is trained.

    Parameters
    ----------
    epochs
        How often every item is seen, at most.
    batch
        Items per step, over all processes.
    optimizer
        Which rule turns gradients into steps.
    lr
        Learning rate at its highest.
    momentum
        Of sgd: what is left of the last step.
    decay
        Weight decay.
    scheduler
        How the learning rate changes.
    milestones
        Of multistep: epochs after which the learning rate is multiplied by `lr_decay`.
    lr_decay
        Of multistep.
    warmup
        Of warmup-cosine: the share of steps in which the learning rate rises.
    clip
        Longest gradient; 0 leaves all as they are.
    patience
        Epochs without a better one before training ends; 0 goes on to the last.
    held_out
        Share of items held out to choose the epoch, where no truth is given for that.
    precision
        32 or bf16; weights have 32 bits in both.
    devices
        Processes; more than one have to be started by torchrun.
    seed
        Random seed.
    save_every
        Steps between checkpoints, where a folder is given.
    """

    epochs: Count = 50
    batch: Count = 64
    optimizer: Literal["adam", "adamw", "radam", "sgd"] = "adam"
    lr: Positive = 1e-3
    momentum: Probability = 0.9
    decay: NonNegative = 0.0
    scheduler: Literal["constant", "multistep", "cosine", "warmup-cosine"] = "constant"
    milestones: tuple = (50,)  # type: ignore[type-arg] # of epochs
    lr_decay: Positive = 0.1
    warmup: Probability = 0.1
    clip: NonNegative = 0.0
    patience: Annotated[int, Ge(0)] = 0
    held_out: Probability = 0.1
    precision: Literal["32", "bf16"] = "32"
    devices: Count = 1
    seed: Annotated[int, Ge(0)] = 0
    save_every: Count = 200

    def __post_init__(self) -> None:
        super().__post_init__()
        if not all(isinstance(epoch, int) and epoch > 0 for epoch in self.milestones):
            raise MethodError(
                f"milestones = {self.milestones!r}, but they must be epochs, at least 1"
            )
