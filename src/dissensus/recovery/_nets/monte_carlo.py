"""A network asked several times, with random numbers that follow from a seed."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from ..._relation import Floats
from ...nn.batches import Source
from .members import Members

__all__ = ["drawn"]


def drawn(network: Members, x: Tensor | Source, passes: int, seed: int) -> Floats:
    """Return what a network believes when it is asked as while training: (pass, item, class)."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        network.train()
        try:
            return np.concatenate([network.believe(x) for _ in range(passes)])
        finally:
            network.eval()
