"""Attention maps, where every annotator's query attends to, and how far they can be trusted.

The attention weights of an annotator's query over the tokens of an item (patches, words or frames),
averaged over heads, layers and fits, are a map that sums to one. A token for the whole image and
special tokens of a text are left out; the queries that summarize a frame are summed.

Attention shows where the network looked, not why it predicted a label: tokens can get attention
without being used, and information can come by way of other queries. `faithfulness` measures how
far maps can be trusted:

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

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from math import isqrt, nan
from typing import Any, Literal

import numpy as np
import torch
from scipy.stats import rankdata
from torch import Tensor

from ...base.arrays import Floats, Integers
from ...base.storage import as_plain
from ...errors import MethodError
from ..nn.features import FeatureBatch, Features, TokenFeatures
from .base import Tendency
from .qformer import Output
from .query_heads import FrameLayer
from .qumatl import QueryTendency, QuestionTendency

Layers = Literal["mean", "last", "penultimate", "rollout"]
Kind = Literal["patches", "frames", "tokens", "words"]
_BATCH = 32  # items at a time
_STEPS = 8  # in which positions are masked


@dataclass(frozen=True, eq=False)
class Maps:
    """Attention maps of items by annotator."""

    values: Floats  # (item, annotator, position): sums to one
    shape: tuple[int, ...]  # of the positions: (row, column), (frame) or (token)
    kind: Kind
    annotator: Integers  # (annotator): codes
    raw: list[Floats]  # by fit, if requested: (item, layer, head, annotator, token)

    def __len__(self) -> int:
        return len(self.values)


def query_model(tendency: Tendency) -> QueryTendency:
    """Return the query model that a fitted model is or contains."""
    model = _find(tendency)
    if model is None:
        raise MethodError("a model without queries has no attention; fit it with query or qumatl")
    return model


def query_codes(tendency: Tendency, annotator: Integers) -> Integers:
    """Return the codes of annotators' queries; of several questions, those of the chosen one."""
    if isinstance(tendency, QuestionTendency) and tendency.joint.method.offsets:
        return tendency.codes(annotator)
    return annotator


def _find(value: Any) -> QueryTendency | None:
    """Return the first query model in a value."""
    if isinstance(value, QueryTendency):
        return value
    inner: Any = vars(value) if isinstance(value, Tendency) else value
    inner = tuple(inner.values()) if isinstance(inner, dict) else inner
    return next(filter(None, map(_find, inner)), None) if isinstance(inner, (list, tuple)) else None


def attention_maps(
    tendency: Tendency,
    features: Features,
    annotator: Integers | None = None,
    *,
    layers: Layers = "mean",
    raw: bool = False,
    fits: Sequence[int] | None = None,
    all_tokens: bool = False,
) -> Maps:
    """Return attention maps of items.

    Parameters
    ----------
    tendency
        A fitted model with queries.
    features
        The items.
    annotator
        Codes; all by default.
    layers
        The mean over layers with cross-attention, the last or last but one of them, or attention
        rollout through all.
    raw
        Whether to keep the weights of every layer and head.
    fits
        Which of the fits; the mean over all by default.
    all_tokens
        Whether to keep tokens that stand for the whole item.
    """
    model = query_model(tendency)
    annotators = np.arange(model.n_annotators) if annotator is None else np.asarray(annotator)
    codes, columns = query_codes(tendency, annotators), np.arange(len(annotators))
    if layers == "rollout":  # through the queries of all annotators
        codes, columns = np.arange(model.nets[0].n_queries), codes
        if columns.max(initial=0) >= len(codes):
            raise MethodError("rollout is undefined for annotators added after training")
    values: list[Floats] = []
    weights: list[Floats] = []
    starts = range(0, len(features), _BATCH)
    batches = [features.take(np.arange(len(features))[start : start + _BATCH]) for start in starts]
    for fit in range(len(model.nets)) if fits is None else fits:
        outputs = [model.attention(batch, codes, fit) for batch in batches]
        cross_every = model.nets[fit].qformer.shape.cross_every
        tokens = torch.cat([_over_layers(output, layers, cross_every) for output in outputs])
        values.append(tokens.double().numpy())
        if raw:
            every_layer = torch.cat([torch.stack(output.cross, dim=1) for output in outputs])
            weights.append(every_layer.numpy()[:, :, :, columns])
    image = not all_tokens and _without_padding(features)
    mean, shape, kind = _arrange(np.mean(values, axis=0), model.nets[0].tokens, image)
    return Maps(values=mean[:, columns], shape=shape, kind=kind, annotator=annotators, raw=weights)


def _without_padding(features: Features) -> bool:
    if features.tokens is None:
        return False
    mask, selected = features.tokens.mask, features.tokens.selected
    return bool(np.all(mask if selected is None else mask[selected]))


def _over_layers(output: Output, layers: Layers, cross_every: int) -> Tensor:
    """Return weights over tokens: (item, annotator, token)."""
    if layers == "last":
        return output.cross[-1].mean(dim=1)
    if layers == "penultimate":
        if len(output.cross) < 2:
            raise MethodError("a model of one layer has no last but one; use last")
        return output.cross[-2].mean(dim=1)
    if layers == "mean":
        return torch.stack(output.cross).mean(dim=(0, 2))
    rollout = torch.zeros_like(output.cross[0][:, 0])  # (item, query, token)
    for layer in range(cross_every * len(output.cross)):
        if layer < len(output.own):
            rollout = rollout / 2 + output.own[layer].mean(dim=1) @ rollout / 2
        if layer % cross_every == 0:
            rollout = rollout / 2 + output.cross[layer // cross_every].mean(dim=1) / 2
    return rollout / rollout.sum(dim=2, keepdim=True)


def _arrange(values: Floats, layer: Any, image: bool) -> tuple[Floats, tuple[int, ...], Kind]:
    """Return weights over patches of a grid, frames, or tokens in a row."""
    n_tokens = values.shape[2]
    if isinstance(layer, FrameLayer):
        n_queries = layer.queries.shape[1]
        frames = values.reshape(*values.shape[:2], n_tokens // n_queries, n_queries).sum(axis=3)
        return frames, (frames.shape[2],), "frames"
    for n_special in (0, 1):  # a token for the whole image, if any, is the first
        side = isqrt(n_tokens - n_special)
        if image and side > 1 and side**2 == n_tokens - n_special:
            patches = values[:, :, n_special:]
            return patches / patches.sum(axis=2, keepdims=True), (side, side), "patches"
    return values, (n_tokens,), "tokens"


def word_spans(text: str) -> list[tuple[int, int]]:
    """Return start and end of every word.

    >>> word_spans("so it is.")
    [(0, 2), (3, 5), (6, 9)]
    """
    return [match.span() for match in re.finditer(r"\S+", text)]


def word_maps(maps: Maps, texts: Sequence[str], tokenizer: Any, length: int) -> list[Floats]:
    """Return maps over the words of every text: (annotator, word).

    Tokens of a word are summed; special tokens are left out.
    """
    out = []
    for item, text in enumerate(texts):
        encoded = tokenizer(text, truncation=True, max_length=length, return_offsets_mapping=True)
        starts = [start for start, _ in word_spans(text)]
        values = np.zeros((maps.values.shape[1], len(starts)))
        for token, (start, end) in enumerate(encoded["offset_mapping"]):
            if end > start:
                word = int(np.searchsorted(starts, start, side="right")) - 1
                values[:, word] += maps.values[item, :, token]
        out.append(values / np.maximum(values.sum(axis=1, keepdims=True), 1e-12))
    return out


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
    joint_codes = tendency.codes(codes) if isinstance(tendency, QuestionTendency) else codes
    features = features.take(np.sort(rng.permutation(len(features))[:most]))
    maps = _token_maps(tendency, features, codes)
    if features.tokens is None or maps.shape[2] < 2:
        return Faithfulness(len(features))
    random_order = rng.random(maps.shape)
    masked, inserted = deletion(tendency, features, codes, maps)
    masked_random, inserted_random = deletion(tendency, features, codes, random_order)
    fits = [_token_maps(tendency, features, codes, [fit]) for fit in range(len(model.nets))]
    pairs = combinations(range(len(codes)), 2)
    return Faithfulness(
        n_items=len(features),
        deletion=masked,
        deletion_random=masked_random,
        insertion=inserted,
        insertion_random=inserted_random,
        randomization=_randomization(tendency, features, codes, seed),
        stability=_mean([_correlation(first, second) for first, second in combinations(fits, 2)]),
        gradient=rank_correlation(fits[0], gradient_maps(model, features, joint_codes)),
        distance=_mean([_distance(maps[:, first], maps[:, second]) for first, second in pairs]),
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
        top = rank < np.clip(np.rint(step * count / (_STEPS + 1)), 1, count - 1)
        for visible, out in zip((~top, top), probabilities, strict=True):
            visible_mask = (flat & visible[:, :, None]).reshape(mask.shape)
            masked = Features(features.vectors[item], TokenFeatures(values, visible_mask))
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
        pairs = FeatureBatch(
            *(part[item : item + 1].expand(len(codes), *part.shape[1:]) for part in batch)
        )
        values = pairs.values.clone().requires_grad_(True)
        log = net.log_given(pairs._replace(values=values), torch.arange(len(codes)), codes)
        (grad,) = torch.autograd.grad(log.max(dim=1).values.sum(), values)
        by_token = (grad * values).detach().sum(dim=-1).abs()
        out.append(by_token.flatten(2).sum(dim=2) if by_token.ndim == 3 else by_token)
    return torch.stack(out).double().numpy()


def rank_correlation(first: Floats, second: Floats) -> float:
    """Return the mean rank correlation of maps: (item, annotator, position).

    >>> rank_correlation(np.array([[[1.0, 2.0, 3.0]]]), np.array([[[3.0, 5.0, 9.0]]]))
    1.0
    """
    return _correlation(rankdata(first, axis=2), rankdata(second, axis=2))


def _token_maps(
    tendency: Tendency, features: Features, codes: Integers, fits: list[int] | None = None
) -> Floats:
    """Return maps over tokens, or over frames."""
    return attention_maps(tendency, features, codes, fits=fits, all_tokens=True).values


def _randomization(tendency: Tendency, features: Features, codes: Integers, seed: int) -> float:
    """Return how far maps move when annotators get random queries."""
    distances = []
    for index, net in enumerate(query_model(tendency).nets):
        learned_maps = _token_maps(tendency, features, codes, [index])
        weight = net.queries.own.weight.data
        learned = weight.clone()
        random = torch.randn(learned.shape, generator=torch.Generator().manual_seed(seed))
        try:
            weight.copy_(learned.mean(dim=0) + random * learned.std())
            distances.append(
                _distance(learned_maps, _token_maps(tendency, features, codes, [index]))
            )
        finally:
            weight.copy_(learned)
    return _mean(distances)


def _distance(first: Floats, second: Floats) -> float:
    """Return the mean total variation distance, from 0 to 1."""
    return float(np.abs(first - second).sum(axis=-1).mean() / 2)


def _correlation(first: Floats, second: Floats) -> float:
    first, second = (values - values.mean(axis=2, keepdims=True) for values in (first, second))
    length = np.sqrt((first**2).sum(axis=2) * (second**2).sum(axis=2))
    return float(((first * second).sum(axis=2) / np.maximum(length, 1e-300))[length > 0].mean())


def _mean(values: list[float]) -> float:
    return float(np.mean(values)) if values else nan
