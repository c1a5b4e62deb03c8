"""What networks look at, beside the words that people marked.

A human map is the share of people who marked a word, h_t; a model's map is its attention to words,
summing to one. Scores of one item, each for "marked by at least one":

    auc, ap      how well attention ranks marked words first
    lift         attention on marked words, less their share of all words
    iou          overlap of the m words of most attention with the m marked ones
    spearman     correlation of ranks with h_t

Uniform attention has auc .5 and lift 0; a network of random weights and TF-IDF are the other
controls. Whether networks that vote differently also look elsewhere is tested on pairs of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from scipy.stats import rankdata, spearmanr

from .._relation import Floats, Integers
from ..errors import DataError
from .measures import jensen_shannon

__all__ = [
    "MapScores",
    "PairTest",
    "map_scores",
    "matched_auc",
    "pair_test",
    "tf_idf_maps",
    "to_words",
]


class MapScores(NamedTuple):
    """How near a model's map is to that of people; NaN where nothing or all was marked."""

    auc: float
    ap: float
    lift: float
    iou: float
    spearman: float


def map_scores(attention: Floats, human: Floats) -> MapScores:
    """Return the scores of one item.

    Parameters
    ----------
    attention
        To every word: (word).
    human
        Share of people who marked it: (word).
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


def matched_auc(
    maps: Floats, vote: Integers, human: Floats, annotations: Integers
) -> tuple[float, float]:
    """Return the mean AUC of networks against people of the same label, and of another one.

    Parameters
    ----------
    maps
        Attention of every network to the words of one item: (network, word).
    vote
        What each says: (network).
    human
        Whether people marked a word: (person, word).
    annotations
        What each of them says: (person).
    """
    same: list[float] = []
    other: list[float] = []
    for map_, label in zip(maps, vote, strict=True):
        for mine, into in ((annotations == label, same), (annotations != label, other)):
            if mine.any():
                into.append(map_scores(map_, human[mine].mean(axis=0)).auc)
    return _mean(same), _mean(other)


class PairTest(NamedTuple):
    """Whether networks that vote differently look elsewhere."""

    different: float  # mean divergence of the maps of two networks that vote differently
    equal: float  # of two that vote alike: the noise of starts
    p_value: float
    pairs: tuple[int, int]  # how many of each


def pair_test(
    maps: Sequence[Floats], votes: Integers, *, draws: int = 2000, seed: int = 0
) -> PairTest:
    """Compare maps of networks that vote differently with those of networks that vote alike.

    The test deals the votes of every item anew among the networks.

    Parameters
    ----------
    maps
        Of every item, the attention of every network: (network, word).
    votes
        What each network says of each item: (item, network).
    draws
        How often votes are dealt.
    seed
        Decides how.
    """
    votes = np.asarray(votes)
    if votes.ndim != 2 or len(maps) != len(votes):
        raise DataError(f"{len(maps)} maps, but votes of the shape {votes.shape}")
    one, other = np.triu_indices(votes.shape[1], 1)
    apart = np.stack([jensen_shannon(each[one], each[other]) for each in maps])  # (item, pair)

    def split(given: Integers) -> tuple[float, float, int]:
        differ = given[:, one] != given[:, other]
        if differ.all() or not differ.any():
            return np.nan, np.nan, int(differ.sum())
        return float(apart[differ].mean()), float(apart[~differ].mean()), int(differ.sum())

    different, equal, count = split(votes)
    if np.isnan(different):
        return PairTest(np.nan, np.nan, np.nan, (count, apart.size - count))
    random, as_large = np.random.default_rng(seed), 0
    for _ in range(draws):
        there, here, _ = split(random.permuted(votes, axis=1))
        as_large += there - here >= different - equal - 1e-12
    return PairTest(different, equal, (as_large + 1) / (draws + 1), (count, apart.size - count))


def to_words(attention: Floats, word: Integers) -> Floats:
    """Return attention to words from that to their pieces, summing to one.

    Parameters
    ----------
    attention
        To every piece: (…, piece).
    word
        The word of every piece, -1 for those that belong to none, such as [CLS]: (piece).
    """
    n_words = int(word.max(initial=-1)) + 1
    found = np.zeros((*attention.shape[:-1], n_words))
    for piece in np.flatnonzero(word >= 0):
        found[..., word[piece]] += attention[..., piece]
    total = found.sum(axis=-1, keepdims=True)
    return np.divide(found, total, out=np.full_like(found, 1 / max(n_words, 1)), where=total > 0)


def tf_idf_maps(texts: Sequence[Sequence[str]]) -> list[Floats]:
    """Return for texts of words how telling each word is, summing to one: a map without a model."""
    lists = [[word.casefold() for word in text] for text in texts]
    seen: dict[str, int] = {}
    for words in lists:
        for word in set(words):
            seen[word] = seen.get(word, 0) + 1
    found = []
    for words in lists:
        telling = np.array([np.log((1 + len(lists)) / (1 + seen[word])) + 1 for word in words])
        count = np.array([words.count(word) for word in words])
        found.append(telling * count / max(float((telling * count).sum()), 1e-12))
    return found


def _mean(values: list[float]) -> float:
    known = [value for value in values if not np.isnan(value)]
    return float(np.mean(known)) if known else np.nan
