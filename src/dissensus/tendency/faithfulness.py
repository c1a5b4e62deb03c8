"""How far maps of attention can be trusted, in numbers.

deletion        the chance of the foreseen label while the places that a map ranks first are hidden
                one after the other, as the mean over all steps; lower is better
insertion       the same while only these are shown; higher is better
                (both beside places in random order: what any map would give)
randomisation   how far maps move, from 0 to 1, when an annotator gets a query drawn at random; a
                map that stays was never the annotator's
stability       the correlation between maps of fits with different seeds
gradient        the rank correlation with gradient × input, another opinion on what matters
apart           how far the maps of two annotators lie apart on the same item, from 0 to 1
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from itertools import combinations
from math import isnan

import numpy as np
import torch
from scipy.stats import rankdata

from .._relation import Floats, Integers
from ._base import Places, Tendency, Views
from .maps import look, queries_of
from .qumatl import QueryTendency

__all__ = ["Faithfulness", "deletion", "faithfulness", "gradient_maps", "rank_agreement"]

_STEPS = 8


@dataclass(frozen=True)
class Faithfulness:
    """How far maps can be trusted; not a number where it cannot be told."""

    deletion: float
    deletion_by_chance: float
    insertion: float
    insertion_by_chance: float
    randomisation: float
    stability: float
    gradient: float
    apart: float
    n_items: int

    def as_dict(self) -> dict[str, float | None]:
        """Return it for JSON."""
        return {name: None if isnan(value) else value for name, value in asdict(self).items()}


def faithfulness(
    tendency: Tendency,
    views: Views,
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
    views
        Items, of which at most `most` are looked at.
    annotator
        Codes; all if not given.
    most
        Items that are looked at, drawn at random.
    seed
        Decides which, and what else is random.
    """
    rng = np.random.default_rng(seed)
    model = queries_of(tendency)
    codes = np.arange(model.n_annotators) if annotator is None else np.asarray(annotator)
    views = views.take(np.sort(rng.permutation(len(views))[:most]))
    maps = _token_maps(model, views, codes)
    if views.tokens is None or maps.shape[2] < 2:
        none = float("nan")
        return Faithfulness(none, none, none, none, none, none, none, none, len(views))
    chance = rng.random(maps.shape)
    hidden, shown = deletion(tendency, views, codes, maps)
    hidden_chance, shown_chance = deletion(tendency, views, codes, chance)
    fits = [_token_maps(model, views, codes, [net]) for net in range(len(model.nets))]
    pairs = list(combinations(range(len(codes)), 2))
    apart = [_distance(maps[:, one], maps[:, two]) for one, two in pairs]
    return Faithfulness(
        deletion=hidden,
        deletion_by_chance=hidden_chance,
        insertion=shown,
        insertion_by_chance=shown_chance,
        randomisation=_randomised(model, views, codes, seed),
        stability=_mean([_correlation(one, two) for one, two in combinations(fits, 2)]),
        gradient=rank_agreement(fits[0], gradient_maps(model, views, codes)),
        apart=_mean(apart),
        n_items=len(views),
    )


def deletion(
    tendency: Tendency, views: Views, annotator: Integers, maps: Floats
) -> tuple[float, float]:
    """Return the mean chance of foreseen labels with first places hidden, and with only them.

    Parameters
    ----------
    tendency
        The model.
    views
        Items with places.
    annotator
        Codes, as in the maps.
    maps
        (item, annotator, place): places are hidden from the highest down; frames as a whole.
    """
    assert views.tokens is not None
    n_items, n_annotators, n_places = maps.shape
    item = np.repeat(np.arange(n_items), n_annotators)
    who = np.tile(annotator, n_items)
    values, mask = views.tokens.load(item)  # (pair, place, feature)
    flat = mask.reshape(len(item), n_places, -1)  # (pair, place, token of a frame)
    there = flat.any(axis=2)
    ranked = np.where(there, -maps.reshape(-1, n_places), np.inf)
    rank = ranked.argsort(axis=1).argsort(axis=1)  # (pair, place): 0 is hidden first
    count = there.sum(axis=1, keepdims=True)
    label = np.exp(tendency.log_probability(views, item, who)).argmax(axis=1)
    pairs = np.arange(len(item))
    found: list[list[float]] = [[], []]
    for step in range(1, _STEPS + 1):
        first = rank < np.clip(np.rint(step * count / (_STEPS + 1)), 1, count - 1)
        for kept, seen in zip((~first, first), found, strict=True):
            shown = (flat & kept[:, :, None]).reshape(mask.shape)
            cut = Views(views.vectors[item], Places(values, shown))
            chance = np.exp(tendency.log_probability(cut, pairs, who))
            seen.append(float(chance[pairs, label].mean()))
    return _mean(found[0]), _mean(found[1])


def gradient_maps(model: QueryTendency, views: Views, annotator: Integers) -> Floats:
    """Return |gradient × input| of the foreseen label's log-chance: (item, annotator, place)."""
    net = model.nets[0]
    who = torch.from_numpy(np.asarray(annotator, dtype=np.int64))
    seen = net.seen(views.rows[np.arange(len(views))])
    out = []
    for item in range(len(views)):
        values = seen.values[item : item + 1].expand(len(who), *seen.values.shape[1:])
        values = values.clone().requires_grad_(True)
        one = seen._replace(
            vector=seen.vector[item : item + 1].expand(len(who), -1),
            values=values,
            mask=seen.mask[item : item + 1].expand(len(who), *seen.mask.shape[1:]),
        )
        log = net.log_given(one, torch.arange(len(who)), who)
        (grad,) = torch.autograd.grad(log.max(dim=1).values.sum(), values)
        by_token = (grad * values).detach().sum(dim=-1).abs()
        out.append(by_token.flatten(2).sum(dim=2) if by_token.ndim == 3 else by_token)
    return torch.stack(out).double().numpy()


def rank_agreement(one: Floats, two: Floats) -> float:
    """Return the mean rank correlation of maps: (item, annotator, place).

    >>> rank_agreement(np.array([[[1.0, 2.0, 3.0]]]), np.array([[[3.0, 5.0, 9.0]]]))
    1.0
    """
    return _correlation(rankdata(one, axis=2), rankdata(two, axis=2))


def _token_maps(
    model: QueryTendency, views: Views, codes: Integers, fits: list[int] | None = None
) -> Floats:
    """Return maps over the tokens as they are; over frames for videos."""
    return look(model, views, codes, fits=fits, whole=True).values


def _randomised(model: QueryTendency, views: Views, codes: Integers, seed: int) -> float:
    """Return how far maps move when annotators get queries at random."""
    moved = []
    for position, net in enumerate(model.nets):
        before = _token_maps(model, views, codes, [position])
        weight = net.queries.own.weight.data
        kept = weight.clone()
        drawn = torch.randn(kept.shape, generator=torch.Generator().manual_seed(seed))
        try:
            weight.copy_(kept.mean(dim=0) + drawn * kept.std())
            moved.append(_distance(before, _token_maps(model, views, codes, [position])))
        finally:
            weight.copy_(kept)
    return _mean(moved)


def _distance(one: Floats, two: Floats) -> float:
    """Return the mean total variation distance, from 0 to 1."""
    return float(np.abs(one - two).sum(axis=-1).mean() / 2)


def _correlation(one: Floats, two: Floats) -> float:
    one, two = (each - each.mean(axis=2, keepdims=True) for each in (one, two))
    length = np.sqrt((one**2).sum(axis=2) * (two**2).sum(axis=2))
    return float(((one * two).sum(axis=2) / np.maximum(length, 1e-300))[length > 0].mean())


def _mean(values: list[float]) -> float:
    return float(np.mean(values)) if values else float("nan")
