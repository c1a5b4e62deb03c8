"""How a network is trained."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Annotated, Any, Literal, Self

from annotated_types import Ge

from ...errors import MethodError
from ...params import Count, NonNegative, Positive, Probability, Settings


@dataclass(frozen=True, kw_only=True)
class Training(Settings):
    """How a network is trained.

    Parameters
    ----------
    epochs
        Most passes over the items.
    batch
        Items per step, over all processes.
    optimizer
        Optimizer.
    lr
        Learning rate at its highest.
    momentum
        Momentum of sgd.
    decay
        Weight decay.
    scheduler
        Schedule of the learning rate.
    milestones
        Of multistep: epochs after which the learning rate is multiplied by `lr_decay`.
    lr_decay
        Factor of multistep.
    warmup
        Of warmup-cosine: share of steps in which the learning rate rises.
    clip
        Largest norm of the gradient; 0 for no clipping.
    patience
        Epochs without improvement before training stops; 0 never stops early.
    held_out
        Share of items held out to choose the epoch, without a validation split.
    precision
        32 or bf16 (mixed).
    devices
        Processes; several are started by torchrun.
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

    @classmethod
    def of(cls, settings: Any, **changes: Any) -> Self:
        """Return the training that settings with fields of these names describe."""
        names = [one.name for one in fields(cls) if hasattr(settings, one.name)]
        return cls(**{name: getattr(settings, name) for name in names} | changes)

    def __post_init__(self) -> None:
        super().__post_init__()
        if not all(isinstance(epoch, int) and epoch > 0 for epoch in self.milestones):
            raise MethodError(
                f"milestones = {self.milestones!r}, but they must be epochs, at least 1"
            )
