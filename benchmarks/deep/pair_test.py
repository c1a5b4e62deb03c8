"""What heads attend to, and whether those that vote differently attend elsewhere."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import torch

from dissensus import DataError
from dissensus.base.arrays import Floats, Integers
from dissensus.deep.nn import Features
from dissensus.deep.recovery.base import jensen_shannon


class PairTest(NamedTuple):
    """Whether networks that vote differently attend elsewhere."""

    different: float  # mean divergence of the maps of two networks that vote differently
    equal: float  # of two that vote alike
    p_value: float
    pairs: tuple[int, int]  # number of each


def pair_test(
    maps: Sequence[Floats], votes: Integers, *, draws: int = 2000, seed: int = 0
) -> PairTest:
    """Compare maps of networks that vote differently with those of networks that vote alike.

    A permutation test: the votes of every item are permuted among the networks.

    Parameters
    ----------
    maps
        For every item, the attention of every network: (network, word).
    votes
        Label of every network: (item, network).
    draws
        Number of permutations.
    seed
        Random seed.
    """
    votes = np.asarray(votes)
    if votes.ndim != 2 or len(maps) != len(votes):
        raise DataError(f"{len(maps)} maps, but votes of the shape {votes.shape}")
    one, other = np.triu_indices(votes.shape[1], 1)
    divergence = np.stack([jensen_shannon(each[one], each[other]) for each in maps])  # (item, pair)

    def split(votes: Integers) -> tuple[float, float, int]:
        differ = votes[:, one] != votes[:, other]
        if differ.all() or not differ.any():
            return np.nan, np.nan, int(differ.sum())
        means = float(divergence[differ].mean()), float(divergence[~differ].mean())
        return *means, int(differ.sum())

    different, equal, count = split(votes)
    pairs = count, divergence.size - count
    if np.isnan(different):
        return PairTest(np.nan, np.nan, np.nan, pairs)
    random, as_large = np.random.default_rng(seed), 0
    for _ in range(draws):
        permuted = split(random.permuted(votes, axis=1))
        as_large += permuted[0] - permuted[1] >= different - equal - 1e-12
    return PairTest(different, equal, (as_large + 1) / (draws + 1), pairs)


@torch.no_grad()
def attention_of(model: Any, features: Features) -> Floats:
    """Return the attention of fitted `attention-heads` to tokens: (member, item, token)."""
    source = model.network.inputs_from(features)
    n_tokens, parts = np.shape(source.tokens.mask)[1], []
    for start in range(0, len(source), 256):
        part = model.network.attend(source[np.arange(start, min(start + 256, len(source)))])
        parts.append(torch.nn.functional.pad(part, (0, n_tokens - part.shape[2])))
    return torch.cat(parts, dim=1).double().numpy()
