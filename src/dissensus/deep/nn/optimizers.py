"""Optimizers and learning-rate schedules; tables of annotators get row-wise optimizers.

The learning rate is a function of the step alone, so it needs no state. `multistep` multiplies by
`lr_decay` at every milestone (an epoch), `cosine` falls from one to zero along half a cosine,
`warmup-cosine` rises linearly first.
"""

from __future__ import annotations

from math import cos, pi
from typing import TYPE_CHECKING, Any

import torch

from .learner import Learner
from .tables import RowAdam, RowSGD, Table

if TYPE_CHECKING:
    from .settings import Training


def optimizers_for(learner: Learner, settings: Training) -> list[torch.optim.Optimizer]:
    """Return the optimizers of a learner; each group keeps its highest learning rate."""
    tables = {id(module.weight) for module in learner.modules() if isinstance(module, Table)}
    dense: list[dict[str, Any]] = []
    rows: list[dict[str, Any]] = []
    for group in learner.groups():
        shared = {"lr": settings.lr, "weight_decay": settings.decay, **group}
        shared["highest"] = shared["lr"]
        trained = [each for each in group["params"] if each.requires_grad]
        for groups, is_table in ((dense, False), (rows, True)):
            params = [each for each in trained if (id(each) in tables) == is_table]
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
    params = [p for each in optimizers for group in each.param_groups for p in group["params"]]
    params = [p for p in params if p.grad is not None]
    for p in params:
        p.grad = p.grad.coalesce() if p.grad.is_sparse else p.grad
    values = [p.grad.values() if p.grad.is_sparse else p.grad for p in params]
    if not values:
        return
    length = torch.stack([value.double().norm() for value in values]).norm()
    if length > longest:
        for p in params:
            p.grad = p.grad * float(longest / length)


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
