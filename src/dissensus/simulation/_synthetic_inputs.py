"""Inputs of simulated items: patches of colours and stripes, frames, and texts."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._relation import Array, Floats, Integers
from ..errors import OptionError

_SIDE = 8  # pixels of a patch
_FRAME = 16  # pixels of a frame
_VECTOR = 16  # numbers of a patch vector
_CONTRAST = 0.6
_SPAN = 3  # informative words in a row

_FILLERS = "and so then it was there with some of that which they had by the"
_WORDS = (  # of every class
    "dog cat horse sheep rabbit goat",
    "rain snow storm cloud wind frost",
    "violin piano drum trumpet guitar flute",
    "bread cheese soup apple rice butter",
    "bank loan tax coin debt salary",
    "hammer saw drill screw pliers wrench",
)


def rendered(content: Floats, kind: str, blur: float, rng: np.random.Generator) -> Array:
    """Return contents (item, position, feature) as vectors, images or frames, from 0 to 1."""
    n_items, n_positions, n_features = content.shape
    if kind == "patches":
        mixing = rng.standard_normal((n_features, _VECTOR)) / n_features**0.5
        vectors = content @ mixing
        return (vectors + blur * rng.standard_normal(vectors.shape)).astype(np.float32)
    side = _FRAME if kind == "video" else _SIDE
    looks = np.einsum("ipf,fchw->ipchw", content, _patterns(n_features, side))
    looks += blur * rng.standard_normal(looks.shape)
    pixels = (1 / (1 + np.exp(-_CONTRAST * looks))).astype(np.float32)
    if kind == "video":
        return pixels  # (item, frame, channel, row, column)
    across = round(n_positions**0.5)
    grid = pixels.reshape(n_items, across, across, 3, side, side)
    return grid.transpose(0, 3, 1, 4, 2, 5).reshape(n_items, 3, across * side, across * side)


def _patterns(n_features: int, side: int) -> Floats:
    """Return a pattern for every feature: plain red, green and blue, then ever finer stripes."""
    patterns = np.zeros((n_features, 3, side, side))
    at = (np.arange(side) + 0.5) / side
    waves = [(0, 0)] + [(s - down, down) for s in range(1, n_features) for down in range(s + 1)]
    for feature in range(n_features):
        across, down = waves[feature // 3]
        stripes = np.cos(np.pi * down * at)[:, None] * np.cos(np.pi * across * at)
        patterns[feature, feature % 3] = stripes / np.sqrt(np.square(stripes).mean())
    return patterns


def composed(classes: Integers, rng: np.random.Generator) -> tuple[tuple[str, ...], Any]:
    """Return texts with a span of every class (item, span), and which words are of which span.

    >>> composed(np.array([[0, 1]]), np.random.default_rng(0))[0]
    ('that some was was goat rabbit dog by some that cloud frost wind was had which and',)
    """
    fillers, lists = _FILLERS.split(), [words.split() for words in _WORDS]
    if classes.max(initial=0) >= len(lists):
        raise OptionError(f"{classes.max() + 1} classes, but there are words for {len(lists)}")
    texts, spans = [], []
    for row in classes.tolist():
        words: list[str] = []
        span: list[int] = []
        for position, each in enumerate(row):
            for found, number in (
                (rng.choice(fillers, int(rng.integers(1, 5))), -1),
                (rng.choice(lists[each], _SPAN, replace=False), position),
            ):
                words += found.tolist()
                span += [number] * len(found)
        last = rng.choice(fillers, int(rng.integers(1, 5))).tolist()
        texts.append(" ".join([*words, *last]))
        spans.append(span + [-1] * len(last))
    longest = max(map(len, spans), default=0)
    filled = np.full((len(spans), longest), -1)
    for item, span in enumerate(spans):
        filled[item, : len(span)] = span
    return tuple(texts), (filled[:, :, None] == np.arange(classes.shape[1])).astype(float)
