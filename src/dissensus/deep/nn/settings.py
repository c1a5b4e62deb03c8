"""How a network is trained: settings, what has a loss, how the epoch is chosen, and its steps.

A `Learner` is a network with a loss on a batch. The epoch is chosen by a `Criterion`: accuracy,
held-out likelihood, or none (the last epoch). Parameters with a row per annotator get row-wise
optimizers.

The learning rate is a function of the step alone, so it needs no state. `multistep` multiplies by
`lr_decay` at every milestone (an epoch), `cosine` falls from one to zero along half a cosine,
`warmup-cosine` rises linearly first.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, fields
from math import cos, isnan, nan, pi
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, NamedTuple, Self

import numpy as np
import torch
from annotated_types import Ge
from torch import Tensor, nn

from ...errors import MethodError
from ...params import Count, NonNegative, Positive, Probability, Settings
from .batches import Batches, Examples, LabelledInputs, RowAdam, RowSGD, Table, inputs_of

if TYPE_CHECKING:
    from .devices import Devices


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
        names = [field.name for field in fields(cls) if hasattr(settings, field.name)]
        return cls(**{name: getattr(settings, name) for name in names} | changes)

    def __post_init__(self) -> None:
        super().__post_init__()
        if not all(isinstance(epoch, int) and epoch > 0 for epoch in self.milestones):
            raise MethodError(
                f"milestones = {self.milestones!r}, but they must be epochs, at least 1"
            )


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


Sums = tuple[float, float, float]  # of the score, of the log-likelihood, and of the weights


class EpochScore(NamedTuple):
    """How good a learner is after an epoch; the highest score is chosen."""

    score: float
    loss: float | None  # mean negative log-likelihood on the validation split, where known


@dataclass(frozen=True, eq=False)
class Criterion:
    """What the epoch is chosen by."""

    valid: Batches | LabelledInputs | None
    name: str
    description: str

    def score(self, learner: Learner, devices: Devices, size: int) -> EpochScore | None:
        """Return how good a learner is; every process evaluates its share."""
        if self.valid is None:
            return None
        if isinstance(self.valid, LabelledInputs):
            sums = _accuracy(learner, self.valid, devices, size)
        elif learner.by_accuracy:
            sums = _annotator_accuracy(learner, self.valid, devices, size)
        else:
            sums = _likelihood(learner, self.valid, devices, size)
        score, log, count = map(devices.add_up, sums)
        count = max(count, 1.0)
        return EpochScore(score / count, None if isnan(log) else -log / count)


def criterion_for(valid: Batches | LabelledInputs | None, learner: Learner) -> Criterion:
    """Return what the epoch is chosen by."""
    if valid is None:
        return Criterion(None, "", "the last epoch")
    if isinstance(valid, LabelledInputs):
        return Criterion(valid, "accuracy", f"accuracy on {len(valid.x)} items of known truth")
    held_out = valid.describe(learner.held_out_name)
    if learner.by_accuracy:
        return Criterion(valid, "held-out accuracy", f"mean accuracy by annotator on {held_out}")
    if not _has_likelihood(learner, valid):
        return Criterion(valid, "held-out gain", f"minus the loss of {held_out}")
    return Criterion(valid, "held-out log-likelihood", f"log-likelihood of {held_out}")


def _has_likelihood(learner: Learner, valid: Batches) -> bool:
    overridden = type(learner).log_probability is not Learner.log_probability
    return isinstance(valid, Examples) and overridden


def _batches(valid: Batches, devices: Devices, size: int) -> Iterator[Any]:
    """Yield the batches of this process."""
    for number, batch in enumerate(valid.batches(size, 0, 0, shuffle=False)):
        if number % devices.ranks == devices.rank:
            yield devices.move(batch)


def _accuracy(learner: Learner, valid: LabelledInputs, devices: Devices, size: int) -> Sums:
    truth = torch.as_tensor(valid.truth).to(devices.device).long()
    right = count = 0
    total = 0.0
    for start in range(devices.rank * size, len(valid.x), devices.ranks * size):
        items = np.arange(start, min(start + size, len(valid.x)))
        log = learner.log_truth(inputs_of(valid.x, items).to(devices.device))
        true = truth[start : start + size]
        right += int((log.argmax(dim=1) == true).sum())
        total += float(log.double().gather(1, true[:, None]).sum())
        count += len(items)
    return right, total, count


def _annotator_accuracy(learner: Learner, valid: Batches, devices: Devices, size: int) -> Sums:
    """Return the sum of the accuracies of annotators and their number; no likelihood."""
    assert isinstance(valid, Examples)
    labels = torch.from_numpy(valid.annotations.labels_per_annotator).clamp(min=1).double()
    weight = (1 / labels).to(devices.device)  # (annotator): of one of their labels
    score = count = 0.0
    for batch in _batches(valid, devices, size):
        own = weight[batch.annotator]
        score += float((own * (learner.predicted_labels(batch) == batch.label)).sum())
        count += float(own.sum())
    return score, nan, count


def _likelihood(learner: Learner, valid: Batches, devices: Devices, size: int) -> Sums:
    score = count = 0.0
    has_likelihood = _has_likelihood(learner, valid)
    for batch in _batches(valid, devices, size):
        if has_likelihood:
            score += float(learner.log_probability(batch).double().sum())
            count += len(batch.label)
        else:
            weight = learner.weight(batch)
            score, count = score - float(learner.loss(batch)) * weight, count + weight
    return score, score, count


def optimizers_for(learner: Learner, settings: Training) -> list[torch.optim.Optimizer]:
    """Return the optimizers of a learner; each group keeps its highest learning rate."""
    tables = {id(module.weight) for module in learner.modules() if isinstance(module, Table)}
    dense: list[dict[str, Any]] = []
    rows: list[dict[str, Any]] = []
    for group in learner.groups():
        shared = {"lr": settings.lr, "weight_decay": settings.decay, **group}
        shared["highest"] = shared["lr"]
        trained = [param for param in group["params"] if param.requires_grad]
        for groups, is_table in ((dense, False), (rows, True)):
            params = [param for param in trained if (id(param) in tables) == is_table]
            if params:
                groups.append({**shared, "params": params})
    optimizers: list[torch.optim.Optimizer] = [_dense(settings, dense)] if dense else []
    if rows and settings.optimizer == "sgd":
        optimizers.append(RowSGD(rows, momentum=settings.momentum))
    elif rows:
        optimizers.append(RowAdam(rows, decoupled=settings.optimizer == "adamw"))
    return optimizers


def clip(optimizers: list[torch.optim.Optimizer], longest: float) -> None:
    """Clip the norm of the gradient of all parameters, whether dense or sparse."""
    groups = [group for optimizer in optimizers for group in optimizer.param_groups]
    params = [param for group in groups for param in group["params"] if param.grad is not None]
    for param in params:
        param.grad = param.grad.coalesce() if param.grad.is_sparse else param.grad
    values = [param.grad.values() if param.grad.is_sparse else param.grad for param in params]
    if not values:
        return
    length = torch.stack([value.double().norm() for value in values]).norm()
    if length > longest:
        for param in params:
            param.grad = param.grad * float(longest / length)


def _dense(settings: Training, groups: list[dict[str, Any]]) -> torch.optim.Optimizer:
    if settings.optimizer == "radam":
        return torch.optim.RAdam(groups)
    # Fused: a third of the time, and much less with many small weights.
    if settings.optimizer == "sgd":
        return torch.optim.SGD(groups, momentum=settings.momentum, fused=True)
    kind = {"adam": torch.optim.Adam, "adamw": torch.optim.AdamW}[settings.optimizer]
    return kind(groups, fused=True)


def lr_factor(settings: Training, step: int, steps_per_epoch: int) -> float:
    """Return the factor of the learning rate at a step, counted from 0."""
    steps = max(settings.epochs * steps_per_epoch, 1)
    if settings.scheduler == "multistep":
        passed = sum(step >= epoch * steps_per_epoch for epoch in settings.milestones)
        return float(settings.lr_decay**passed)
    if settings.scheduler == "cosine":
        return (1 + cos(pi * step / steps)) / 2
    if settings.scheduler == "warmup-cosine":
        rise = max(round(settings.warmup * steps), 1)
        if step < rise:
            return (step + 1) / rise
        return (1 + cos(pi * (step - rise) / max(steps - rise, 1))) / 2
    return 1.0
