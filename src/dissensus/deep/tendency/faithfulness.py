"""Measures of how far attention maps can be trusted.

deletion        the probability of the predicted label while the positions that a map ranks highest
                are masked one after the other, as the mean over all steps; lower is better
insertion       the same while only these are shown; higher is better
                (both compared with a random order)
randomization   the distance, from 0 to 1, that maps move when an annotator gets a random query; a
                map that does not move does not depend on the annotator
stability       the correlation between maps of fits with different seeds
gradient        the rank correlation with gradient × input, another attribution method
distance        the distance between maps of two annotators on the same item, from 0 to 1
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from math import nan

import numpy as np
import torch
from scipy.stats import rankdata

from ...base.plain import as_plain
from ...base.arrays import Floats, Integers
from ..nn.features import FeatureBatch, Features, TokenFeatures
from .base import Tendency
from .maps import attention_maps, query_model
from .qumatl import QueryTendency, QuestionTendency

_STEPS = 8


@dataclass(frozen=True)
class Faithfulness:
    """How far maps can be trusted; NaN for undefined measures."""

    n_items: int
    deletion: float = nan
    deletion_random: float = nan
    insertion: float = nan
    insertion_random: float = nan
    randomization: float = nan
    stability: float = nan
    gradient: float = nan
    distance: float = nan

    def as_dict(self) -> dict[str, float | None]:
        """Return the measures for JSON."""
        measures: dict[str, float | None] = as_plain(self)
        return measures


def faithfulness(
    tendency: Tendency,
    features: Features,
    annotator: Integers | None = None,
    *,
    most: int = 32,
    seed: int = 0,
) -> Faithfulness:
    """Return how far the maps of a model can be trusted.

    Parameters
    ----------
    tendency
        A fitted model with queries.
    features
        Items, of which at most `most` are sampled.
    annotator
        Codes; all by default.
    most
        Maximal number of items.
    seed
        Random seed.
    """
    rng = np.random.default_rng(seed)
    model = query_model(tendency)
    codes = np.arange(model.n_annotators) if annotator is None else np.asarray(annotator)
    asked = tendency.codes(codes) if isinstance(tendency, QuestionTendency) else codes
    features = features.take(np.sort(rng.permutation(len(features))[:most]))
    maps = _token_maps(tendency, features, codes)
    if features.tokens is None or maps.shape[2] < 2:
        return Faithfulness(len(features))
    random_order = rng.random(maps.shape)
    masked, shown = deletion(tendency, features, codes, maps)
    masked_random, shown_random = deletion(tendency, features, codes, random_order)
    fits = [_token_maps(tendency, features, codes, [fit]) for fit in range(len(model.nets))]
    pairs = combinations(range(len(codes)), 2)
    return Faithfulness(
        n_items=len(features),
        deletion=masked,
        deletion_random=masked_random,
        insertion=shown,
        insertion_random=shown_random,
        randomization=_randomization(tendency, features, codes, seed),
        stability=_mean([_correlation(one, two) for one, two in combinations(fits, 2)]),
        gradient=rank_correlation(fits[0], gradient_maps(model, features, asked)),
        distance=_mean([_distance(maps[:, one], maps[:, two]) for one, two in pairs]),
    )


def deletion(
    tendency: Tendency, features: Features, annotator: Integers, maps: Floats
) -> tuple[float, float]:
    """Return the mean probability of predicted labels, for deletion and for insertion.

    Parameters
    ----------
    tendency
        The model.
    features
        Items with token features.
    annotator
        Codes, as in the maps.
    maps
        (item, annotator, position): positions are masked from the highest down; frames as a whole.
    """
    assert features.tokens is not None
    n_items, n_annotators, n_positions = maps.shape
    item = np.repeat(np.arange(n_items), n_annotators)
    codes = np.tile(annotator, n_items)
    values, mask = features.tokens.load(item)  # (pair, position, feature)
    flat = mask.reshape(len(item), n_positions, -1)  # (pair, position, token of a frame)
    present = flat.any(axis=2)
    rank = np.where(present, -maps.reshape(-1, n_positions), np.inf).argsort(axis=1).argsort(axis=1)
    count = present.sum(axis=1, keepdims=True)
    label = tendency.log_probability(features, item, codes).argmax(axis=1)
    pairs = np.arange(len(item))
    probabilities: tuple[list[float], list[float]] = ([], [])
    for step in range(1, _STEPS + 1):
        first = rank < np.clip(np.rint(step * count / (_STEPS + 1)), 1, count - 1)
        for kept, out in zip((~first, first), probabilities, strict=True):
            shown = (flat & kept[:, :, None]).reshape(mask.shape)
            masked = Features(features.vectors[item], TokenFeatures(values, shown))
            log = tendency.log_probability(masked, pairs, codes)
            out.append(float(np.exp(log[pairs, label]).mean()))
    return _mean(probabilities[0]), _mean(probabilities[1])


def gradient_maps(model: QueryTendency, features: Features, annotator: Integers) -> Floats:
    """Return |gradient × input| of the predicted label's log-probability.

    The shape is (item, annotator, position).
    """
    net = model.nets[0]
    codes = torch.from_numpy(np.asarray(annotator, dtype=np.int64))
    batch = net.split(features.rows[np.arange(len(features))])
    out = []
    for item in range(len(features)):
        one = FeatureBatch(
            *(each[item : item + 1].expand(len(codes), *each.shape[1:]) for each in batch)
        )
        values = one.values.clone().requires_grad_(True)
        log = net.log_given(one._replace(values=values), torch.arange(len(codes)), codes)
        (grad,) = torch.autograd.grad(log.max(dim=1).values.sum(), values)
        by_token = (grad * values).detach().sum(dim=-1).abs()
        out.append(by_token.flatten(2).sum(dim=2) if by_token.ndim == 3 else by_token)
    return torch.stack(out).double().numpy()


def rank_correlation(one: Floats, two: Floats) -> float:
    """Return the mean rank correlation of maps: (item, annotator, position).

    >>> rank_correlation(np.array([[[1.0, 2.0, 3.0]]]), np.array([[[3.0, 5.0, 9.0]]]))
    1.0
    """
    return _correlation(rankdata(one, axis=2), rankdata(two, axis=2))


def _token_maps(
    tendency: Tendency, features: Features, codes: Integers, fits: list[int] | None = None
) -> Floats:
    """Return maps over tokens, or over frames."""
    return attention_maps(tendency, features, codes, fits=fits, all_tokens=True).values


def _randomization(tendency: Tendency, features: Features, codes: Integers, seed: int) -> float:
    """Return how far maps move when annotators get random queries."""
    distances = []
    for index, net in enumerate(query_model(tendency).nets):
        before = _token_maps(tendency, features, codes, [index])
        weight = net.queries.own.weight.data
        learned = weight.clone()
        random = torch.randn(learned.shape, generator=torch.Generator().manual_seed(seed))
        try:
            weight.copy_(learned.mean(dim=0) + random * learned.std())
            distances.append(_distance(before, _token_maps(tendency, features, codes, [index])))
        finally:
            weight.copy_(learned)
    return _mean(distances)


def _distance(one: Floats, two: Floats) -> float:
    """Return the mean total variation distance, from 0 to 1."""
    return float(np.abs(one - two).sum(axis=-1).mean() / 2)


def _correlation(one: Floats, two: Floats) -> float:
    one, two = (each - each.mean(axis=2, keepdims=True) for each in (one, two))
    length = np.sqrt((one**2).sum(axis=2) * (two**2).sum(axis=2))
    return float(((one * two).sum(axis=2) / np.maximum(length, 1e-300))[length > 0].mean())


def _mean(values: list[float]) -> float:
    return float(np.mean(values)) if values else nan
