"""How the learning rate changes: a function of the step alone, so it needs no state.

`multistep` multiplies by `lr_decay` at every milestone (an epoch), `cosine` falls from one to
zero along half a cosine, `warmup-cosine` first rises in a line.
"""

from __future__ import annotations

from math import cos, pi
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .settings import Training

__all__ = ["lr_factor"]


def lr_factor(settings: Training, step: int, steps_per_epoch: int) -> float:
    """Return what the learning rate is multiplied with at a step, counted from 0."""
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
