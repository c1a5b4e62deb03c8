"""Where every annotator looks: the attention of their queries over patches, words or frames.

The weights with which the query of an annotator looks at the places of an item, averaged over
heads, layers and fits, are a map that sums to one. A token for the whole image is left out of it,
and so are the marks at the ends of a text; the queries that sum up one frame are added up.

Attention says where the network looked, not why it answered as it did: places can be looked at
without any use, and what is used can come by way of other queries. `faithfulness.py` tells how far
a map can be trusted.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import isqrt
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor

from .._relation import Floats, Integers
from ..errors import MethodError
from ._base import Tendency, Views
from ._entrance import FrameEntrance
from .qformer import Asked
from .qumatl import QueryTendency

__all__ = ["Maps", "Over", "look", "queries_of", "word_maps", "word_spans"]

Over = Literal["mean", "last", "rollout"]
_BATCH = 32  # items looked at together


@dataclass(frozen=True, eq=False)
class Maps:
    """Where annotators look in items."""

    values: Floats  # (item, annotator, place): sums to one
    shape: tuple[int, ...]  # of the places: (row, column), (frame) or (place)
    kind: Literal["patches", "frames", "places", "words"]
    annotator: Integers  # (annotator): codes
    raw: list[Floats]  # by fit, if asked for: (item, layer, head, annotator, token)

    def __len__(self) -> int:
        return len(self.values)


def queries_of(tendency: Tendency) -> QueryTendency:
    """Return the query model that a fitted model is or holds."""
    found = _queries_in(tendency)
    if found is None:
        raise MethodError("a model without queries looks nowhere; fit it with query or qumatl")
    return found


def _queries_in(held: Any) -> QueryTendency | None:
    """Return the first query model in a model, or in what it holds."""
    if isinstance(held, QueryTendency):
        return held
    inside: Any = ()
    if isinstance(held, Tendency):
        inside = vars(held).values()
    elif isinstance(held, (list, tuple, dict)):
        inside = held.values() if isinstance(held, dict) else held
    return next(filter(None, map(_queries_in, inside)), None)


def look(
    tendency: Tendency,
    views: Views,
    annotator: Integers | None = None,
    *,
    over: Over = "mean",
    raw: bool = False,
    fits: Sequence[int] | None = None,
    whole: bool = False,
) -> Maps:
    """Return where annotators look in items.

    Parameters
    ----------
    tendency
        A fitted model with queries.
    views
        The items.
    annotator
        Codes; all if not given.
    over
        The mean over layers, the last one, or all of them one after the other (rollout).
    raw
        Whether to keep the weights of every layer and head.
    fits
        Which of the fits; the mean over all if not given.
    whole
        Whether to keep tokens that stand for the whole item.
    """
    model = queries_of(tendency)
    codes = np.arange(model.n_annotators) if annotator is None else np.asarray(annotator)
    if over == "rollout":
        return _picked(_look(model, views, _core(model, codes), over, raw, fits, whole), codes)
    return _look(model, views, codes, over, raw, fits, whole)


def _look(
    model: QueryTendency,
    views: Views,
    codes: Integers,
    over: Over,
    raw: bool,
    fits: Sequence[int] | None,
    whole: bool,
) -> Maps:
    found: list[Floats] = []
    kept: list[Floats] = []
    for net in range(len(model.nets)) if fits is None else fits:
        parts = [
            model.looked(views.take(np.arange(at, min(at + _BATCH, len(views)))), codes, net)
            for at in range(0, len(views), _BATCH)
        ]
        asks = model.nets[net].asks
        assert asks is not None
        every = asks.shape.cross_every
        found.append(torch.cat([_over(part, over, every) for part in parts]).double().numpy())
        if raw:
            kept.append(torch.cat([torch.stack(part.cross, dim=1) for part in parts]).numpy())
    alike = not whole and _alike(views)
    values, shape, kind = _placed(np.mean(found, axis=0), model.nets[0].entrance, alike)
    return Maps(values, shape, kind, codes, kept)


def _alike(views: Views) -> bool:
    """Return whether all items have all places."""
    if views.tokens is None:
        return False
    mask, chosen = views.tokens.mask, views.tokens.chosen
    return bool(np.all(mask if chosen is None else mask[chosen]))


def _over(part: Asked, over: Over, cross_every: int) -> Tensor:
    """Return weights over tokens: (item, annotator, token)."""
    if over == "last":
        return part.cross[-1].mean(dim=1)
    if over == "mean":
        return torch.stack(part.cross).mean(dim=(0, 2))
    gone = torch.zeros_like(part.cross[0][:, 0])  # (item, query, token)
    for layer in range(cross_every * len(part.cross)):
        if layer < len(part.own):  # what others have seen comes along
            gone = gone / 2 + part.own[layer].mean(dim=1) @ gone / 2
        if layer % cross_every == 0:
            gone = gone / 2 + part.cross[layer // cross_every].mean(dim=1) / 2
    return gone / gone.sum(dim=2, keepdim=True)


def _core(model: QueryTendency, codes: Integers) -> Integers:
    """Return all annotators that see each other, which rollout has to follow."""
    n_core = model.nets[0].sizes.n_core
    if codes.max(initial=0) >= n_core:
        raise MethodError("rollout is of the annotators that the model was trained with")
    return np.arange(n_core)


def _picked(maps: Maps, codes: Integers) -> Maps:
    raw = [each[:, :, :, codes] for each in maps.raw]
    return replace(maps, values=maps.values[:, codes], annotator=codes, raw=raw)


def _placed(
    values: Floats, entrance: Any, alike: bool
) -> tuple[Floats, tuple[int, ...], Literal["patches", "frames", "places"]]:
    """Return weights over what people see: patches of a grid, frames, or places in a row."""
    n_tokens = values.shape[2]
    if isinstance(entrance, FrameEntrance):
        n_queries = entrance.queries.shape[1]
        frames = values.reshape(*values.shape[:2], n_tokens // n_queries, n_queries).sum(axis=3)
        return frames, (frames.shape[2],), "frames"
    for first in (0, 1):  # a token for the whole image comes first, where there is one
        side = isqrt(n_tokens - first)
        if alike and side > 1 and side**2 == n_tokens - first:
            rest = values[:, :, first:]
            return rest / rest.sum(axis=2, keepdims=True), (side, side), "patches"
    return values, (n_tokens,), "places"


def word_spans(text: str) -> list[tuple[int, int]]:
    """Return where the words of a text begin and end.

    >>> word_spans("so it is.")
    [(0, 2), (3, 5), (6, 9)]
    """
    return [match.span() for match in re.finditer(r"\S+", text)]


def word_maps(maps: Maps, texts: Sequence[str], tokenizer: Any, length: int) -> list[Floats]:
    """Return, for every text, where annotators look among its words: (annotator, word).

    Parts of a word are added up; marks that are no part of the text are left out.
    """
    found = []
    for item, text in enumerate(texts):
        told = tokenizer(text, truncation=True, max_length=length, return_offsets_mapping=True)
        words = word_spans(text)
        begins = [begin for begin, _ in words]
        out = np.zeros((maps.values.shape[1], len(words)))
        for position, (begin, end) in enumerate(told["offset_mapping"]):
            if end > begin:
                word = int(np.searchsorted(begins, begin, side="right")) - 1
                out[:, word] += maps.values[item, :, position]
        found.append(out / np.maximum(out.sum(axis=1, keepdims=True), 1e-12))
    return found
