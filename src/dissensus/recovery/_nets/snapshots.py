"""Snapshots of one network, one after every fall of the learning rate."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import torch

from ...annotations import Annotations
from .._base import Shown, Views
from .heads import Heads
from .members import taught
from .sample_weights import alike

if TYPE_CHECKING:
    from ..snapshot import Snapshot

__all__ = ["caught"]


def caught(settings: Snapshot, views: Views, annotations: Annotations, shown: Shown) -> Heads:
    """Return the snapshots as members of one network."""
    assert views.vectors is not None
    sizes = {"hidden": settings.hidden, "dropout": settings.dropout}
    sizes["input_dropout"] = settings.input_dropout
    width = int(np.prod(views.vectors.shape[1:]))
    one = Heads(1, width, shown.n_classes, **sizes, seed=shown.seed)  # type: ignore[arg-type]
    all_of = Heads(settings.n, width, shown.n_classes, **sizes)  # type: ignore[arg-type]
    x, nothing_held = one.see(views), alike(1, len(views), 0.0, 0)
    for fall in range(settings.n):
        taught(
            one, x, annotations, nothing_held, seed=shown.seed + fall, scheduler="cosine",
            progress=shown.progress, **settings.training(len(views) * settings.n),
        )  # fmt: skip
        with torch.no_grad():
            for mine, theirs in zip(one.parameters(), all_of.parameters(), strict=True):
                theirs[fall] = mine[0]
    all_of.mean, all_of.scale = one.mean, one.scale
    return all_of.eval()
