"""How much every member weighs every item: (member, item); zero is held out."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from ..._relation import Array

__all__ = ["alike", "bagged", "folded"]


def alike(n: int, n_items: int, held: float, seed: int) -> Tensor:
    """Return weights of members that learn the same items and hold out the same share."""
    share = np.ones(n_items)
    share[np.random.default_rng([seed, 0x5E1D]).permutation(n_items)[: round(held * n_items)]] = 0
    return _tensor(np.tile(share, (n, 1)))


def folded(n: int, n_items: int, seed: int) -> Tensor:
    """Return weights of members each of which holds out another nth, or fifth, of the items."""
    fold = np.random.default_rng([seed, 0xF01D]).permutation(n_items) % max(n, 5)
    return _tensor((fold != np.arange(n)[:, None]).astype(np.float64))


def bagged(n: int, n_items: int, seed: int) -> Tensor:
    """Return weights as a bootstrap gives them: Poisson with mean one, drawn for every member."""
    return _tensor(np.random.default_rng([seed, 0xBA6]).poisson(1.0, (n, n_items)))


def _tensor(share: Array) -> Tensor:
    return torch.tensor(share, dtype=torch.get_default_dtype())
