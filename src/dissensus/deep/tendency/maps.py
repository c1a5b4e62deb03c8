"""Attention maps: where every annotator's query attends to, over patches, words or frames.

The attention weights of an annotator's query over the tokens of an item, averaged over heads,
layers and fits, are a map that sums to one. A token for the whole image and special tokens of a
text are left out; the queries that summarize a frame are summed.

Attention shows where the network looked, not why it predicted a label: tokens can get attention
without being used, and information can come by way of other queries. `faithfulness.py` measures how
far maps can be trusted.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from math import isqrt
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor

from ...base.arrays import Floats, Integers
from ...errors import MethodError
from ..nn.features import Features
from .base import Tendency
from .query_heads import FrameLayer
from .qformer import Output
from .qumatl import QueryTendency, QuestionTendency

Layers = Literal["mean", "last", "penultimate", "rollout"]
Kind = Literal["patches", "frames", "tokens", "words"]
_BATCH = 32  # items at a time


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
    shown = np.arange(model.n_annotators) if annotator is None else np.asarray(annotator)
    codes, columns = query_codes(tendency, shown), np.arange(len(shown))
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
        every = model.nets[fit].qformer.shape.cross_every
        tokens = torch.cat([_over_layers(output, layers, every) for output in outputs])
        values.append(tokens.double().numpy())
        if raw:
            every_layer = torch.cat([torch.stack(each.cross, dim=1) for each in outputs])
            weights.append(every_layer.numpy()[:, :, :, columns])
    image = not all_tokens and _without_padding(features)
    mean, shape, kind = _arrange(np.mean(values, axis=0), model.nets[0].tokens, image)
    return Maps(mean[:, columns], shape, kind, shown, weights)


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
    for first in (0, 1):  # a token for the whole image, if any, is the first
        side = isqrt(n_tokens - first)
        if image and side > 1 and side**2 == n_tokens - first:
            rest = values[:, :, first:]
            return rest / rest.sum(axis=2, keepdims=True), (side, side), "patches"
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
