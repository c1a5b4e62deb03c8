"""Attention of networks compared with the words that annotators highlighted.

A human map is the share of annotators who highlighted a word; a model's map is its attention to
words, summing to one. `map_scores` compares both on one item. `pair_test` asks whether networks
that vote differently also attend elsewhere.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from scipy.stats import rankdata, spearmanr

from .._relation import Floats, Integers
from ..errors import DataError
from .measures import jensen_shannon


class MapScores(NamedTuple):
    """Agreement of a model's map with a human one; NaN if no word or every word is highlighted."""

    auc: float  # how well attention ranks highlighted words first; uniform attention has .5
    ap: float  # average precision of the same ranking
    lift: float  # attention on highlighted words, less their share of all words
    iou: float  # overlap of the m words of most attention with the m highlighted ones
    spearman: float  # rank correlation with the shares


def map_scores(attention: Floats, human: Floats) -> MapScores:
    """Return the scores of one item.

    Parameters
    ----------
    attention
        Attention to every word: (word).
    human
        Share of annotators who highlighted it: (word).
    """
    marked = np.asarray(human) > 0
    size, m = len(marked), int(marked.sum())
    if m in (0, size):
        return MapScores(*[np.nan] * 5)
    total = attention.sum()
    share = attention / total if total > 0 else np.full(size, 1 / size)
    ranks = rankdata(share)
    auc = (ranks[marked].sum() - m * (m + 1) / 2) / (m * (size - m))
    order = np.argsort(-share, kind="stable")
    hits = marked[order]
    ap = float((np.cumsum(hits) / np.arange(1, size + 1))[hits].mean())
    top = np.zeros(size, dtype=bool)
    top[order[:m]] = True
    iou = (top & marked).sum() / (top | marked).sum()
    varied = np.ptp(share) > 0 and np.ptp(human) > 0
    rank = float(spearmanr(share, human).statistic) if varied else np.nan
    return MapScores(float(auc), ap, float(share[marked].sum() - m / size), float(iou), rank)


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
