"""The rules that turn gradients into steps; tables of annotators get one that walks rows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

from .learner import Learner
from .tables import RowAdam, RowSGD, Table

if TYPE_CHECKING:
    from .settings import Training

__all__ = ["clip", "optimizers_for"]


def optimizers_for(learner: Learner, settings: Training) -> list[torch.optim.Optimizer]:
    """Return the optimisers of a learner; each group remembers its highest learning rate."""
    tables = {id(module.weight) for module in learner.modules() if isinstance(module, Table)}
    dense: list[dict[str, Any]] = []
    rows: list[dict[str, Any]] = []
    for group in learner.groups():
        shared = {"lr": settings.lr, "weight_decay": settings.decay, **group}
        shared["highest"] = shared["lr"]
        wanted = [each for each in group["params"] if each.requires_grad]
        for position, chosen in (
            (dense, [each for each in wanted if id(each) not in tables]),
            (rows, [each for each in wanted if id(each) in tables]),
        ):
            if chosen:
                position.append({**shared, "params": chosen})
    made: list[torch.optim.Optimizer] = []
    if dense:
        made.append(_dense(settings, dense))
    if rows:
        sgd = settings.optimizer == "sgd"
        decoupled = settings.optimizer == "adamw"
        made.append(
            RowSGD(rows, momentum=settings.momentum) if sgd else RowAdam(rows, decoupled=decoupled)
        )
    return made


def clip(optimizers: list[torch.optim.Optimizer], longest: float) -> None:
    """Shorten the gradient of all parameters together, whether dense or of some rows."""
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
    # One kernel for all weights: a third of the time, and much less where they are many and small.
    if settings.optimizer == "sgd":
        return torch.optim.SGD(groups, momentum=settings.momentum, fused=True)
    kind = {"adam": torch.optim.Adam, "adamw": torch.optim.AdamW}[settings.optimizer]
    return kind(groups, fused=True)
