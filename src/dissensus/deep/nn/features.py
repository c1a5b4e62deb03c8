"""Inputs → features: one vector per item and, on request, features of its tokens.

    texts, images, arrays ─encoder─▶ Features ─take─▶ Features of some items

Features come from a frozen encoder and are cached on disk (`feature_cache`). Vectors are held in
memory. Token features (of words, patches, or patches of frames) may be larger than that: they stay
on disk until they are loaded. A network takes both as one row of numbers per item, which `Layout`
splits again:

    examples = Examples(features.rows, annotations)
    batch = features.layout.split(batch.x)  # batch.vector, batch.values, batch.mask
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace
from math import prod
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from ...base.progress import Progress
from ...base.arrays import Integers
from ...errors import DataError, OptionError
from .encoders import Encoder, encoder_for
from .feature_cache import cached_features
from .inputs import Arrays, Inputs, as_inputs

_BATCH = 256  # items whose token features are loaded together
Vectors = npt.NDArray[np.float32]


class FeatureBatch(NamedTuple):
    """Features of a batch of items, as `Layout` splits them."""

    vector: Tensor  # (item, feature)
    values: Tensor  # (item, token, token feature) or (item, frame, token, token feature)
    mask: Tensor  # (item, token) or (item, frame, token): whether there is a token


class Layout(NamedTuple):
    """The numbers of a row: the vector, then every token followed by its mask."""

    features: int  # of the vector
    tokens: tuple[int, ...] = ()  # (token) or (frame, token); empty without token features
    token_features: int = 0

    @property
    def width(self) -> int:
        """How many numbers a row has."""
        return self.features + (prod(self.tokens) * (self.token_features + 1) if self.tokens else 0)

    def split(self, x: Tensor) -> FeatureBatch:
        """Return rows as features; without token features the vector is the only token.

        Rows may have more or fewer words or frames than the layout: their width decides.
        """
        vector = x[:, : self.features]
        if not self.tokens:
            return FeatureBatch(vector, vector[:, None], vector.new_ones(len(x), 1).bool())
        inner = *self.tokens[1:], self.token_features + 1
        rest = x[:, self.features :]
        rest = rest.reshape(len(x), rest.shape[1] // prod(inner), *inner)
        return FeatureBatch(vector, rest[..., :-1], rest[..., -1] > 0)


@dataclass(frozen=True, eq=False)
class TokenFeatures:
    """Features of the tokens of every item and their mask, on disk or in memory."""

    values: Any  # (row, token, feature) or (row, frame, token, feature)
    mask: Any  # the same axes, without the last
    selected: Integers | None = None  # (item): rows of these items; all rows by default

    def __post_init__(self) -> None:
        if np.ndim(self.values) not in (3, 4) or np.shape(self.values)[:-1] != np.shape(self.mask):
            raise DataError(
                f"token features with the axes {np.shape(self.values)} and a mask with "
                f"{np.shape(self.mask)}; they are (item, token, feature) or "
                "(item, frame, token, feature), and the mask is the same without the last"
            )

    def __len__(self) -> int:
        return len(self.values) if self.selected is None else len(self.selected)

    @property
    def sizes(self) -> Integers:
        """The number of words or frames of every item: (item)."""
        mask = np.asarray(self.mask) if self.selected is None else self.mask[self.selected]
        there = mask.any(axis=tuple(range(2, mask.ndim)))
        return np.where(there, np.arange(1, there.shape[1] + 1), 0).max(axis=1, initial=0)

    def take(self, items: Integers) -> TokenFeatures:
        """Return the token features of items; nothing is loaded."""
        items = np.asarray(items, dtype=np.int64)
        return replace(self, selected=items if self.selected is None else self.selected[items])

    def load(
        self, items: Any = None, *, trim: bool = False
    ) -> tuple[Vectors, npt.NDArray[np.bool_]]:
        """Return values and mask of items, all by default; trimmed, up to their last token."""
        rows = np.arange(len(self)) if items is None else np.asarray(items, dtype=np.int64)
        rows = rows if self.selected is None else self.selected[rows]
        mask = np.asarray(self.mask[rows], np.bool_)
        if not trim:
            return np.asarray(self.values[rows], np.float32), mask
        there = mask.any(axis=(0, *range(2, mask.ndim)))
        last = int(np.flatnonzero(there).max(initial=0)) + 1
        return np.asarray(self.values[rows, :last], np.float32), mask[:, :last]

    def means(self) -> Vectors:
        """Return the mean over the tokens of every item: (item, feature)."""
        means = [np.zeros((0, np.shape(self.values)[-1]), np.float32)]
        for start in range(0, len(self), _BATCH):
            values, mask = self.load(np.arange(start, min(start + _BATCH, len(self))))
            weight = mask.reshape(len(mask), -1, 1).astype(np.float32)
            values = values.reshape(len(values), weight.shape[1], -1)
            means.append((values * weight).sum(axis=1) / np.maximum(weight.sum(axis=1), 1))
        return np.concatenate(means)


@dataclass(frozen=True, eq=False)
class RawInputs:
    """The inputs and an encoder, for methods that train the encoder."""

    encoder: Encoder
    inputs: Inputs

    def __len__(self) -> int:
        return len(self.inputs)

    def take(self, items: Integers) -> RawInputs:
        """Return the inputs of items."""
        return RawInputs(self.encoder, self.inputs.take(items))


@dataclass(frozen=True, eq=False)
class Features:
    """Features of all items: what was requested of vectors, token features and raw inputs.

    Examples
    --------
    >>> features = features_of(np.eye(3))
    >>> len(features), features.take([0, 2]).vectors.tolist()
    (3, [[1.0, 0.0, 0.0], [0.0, 0.0, 1.0]])
    """

    vectors: Vectors  # (item, feature); without features where none were requested
    tokens: TokenFeatures | None = None
    raw: RawInputs | None = None
    widths: tuple[int, ...] = ()  # of the vectors of every kind, where there are several

    def __post_init__(self) -> None:
        named = {"vectors": self.vectors, "tokens": self.tokens, "raw": self.raw}
        sizes = {name: len(part) for name, part in named.items() if part is not None}
        if len(set(sizes.values())) > 1:
            parts = ", ".join(f"{name} of {size}" for name, size in sizes.items())
            raise DataError(f"features of different numbers of items: {parts}")
        vectors = np.ascontiguousarray(self.vectors, dtype=np.float32)
        if vectors.ndim != 2:
            raise DataError(f"one vector per item is (item, feature), not {vectors.shape}")
        if not np.isfinite(vectors).all():
            item = int(np.flatnonzero(~np.isfinite(vectors).all(axis=1))[0])
            raise DataError(
                f"input {item}: a number is missing or infinite; fill it or leave it out"
            )
        object.__setattr__(self, "vectors", vectors)

    def __len__(self) -> int:
        return len(self.vectors)

    @property
    def parts(self) -> frozenset[str]:
        """Which parts there are, of `vectors`, `tokens` and `raw`."""
        parts: dict[str, Any] = {"vectors": self.vectors if self.vectors.shape[1] else None}
        parts |= {"tokens": self.tokens, "raw": self.raw}
        return frozenset(name for name, part in parts.items() if part is not None)

    def take(self, items: Any) -> Features:
        """Return the features of items."""
        items = np.asarray(items, dtype=np.int64)
        return Features(
            self.vectors[items],
            None if self.tokens is None else self.tokens.take(items),
            None if self.raw is None else self.raw.take(items),
            self.widths,
        )

    def only(self, names: Collection[str]) -> Features:
        """Return these parts and no others."""
        return Features(
            self.vectors if "vectors" in names else self.vectors[:, :0],
            self.tokens if "tokens" in names else None,
            self.raw if "raw" in names else None,
            self.widths if "vectors" in names else (),
        )

    @property
    def layout(self) -> Layout:
        """The numbers of a row."""
        if self.tokens is None:
            return Layout(self.vectors.shape[1])
        shape = np.shape(self.tokens.values)
        return Layout(self.vectors.shape[1], tuple(shape[1:-1]), shape[-1])

    @property
    def rows(self) -> Rows:
        """One row of numbers per item, for networks."""
        return Rows(self)

    @classmethod
    def from_tokens(cls, values: Any, mask: Any = None) -> Features:
        """Return token features, and their means as vectors.

        Parameters
        ----------
        values
            (item, token, feature), or (item, frame, token, feature) of videos.
        mask
            Whether there is a token: the same axes without the last; all by default.
        """
        values = values if hasattr(values, "shape") else np.asarray(values)
        tokens = TokenFeatures(
            values, np.ones(values.shape[:-1], np.bool_) if mask is None else mask
        )
        return cls(tokens.means(), tokens)


@dataclass(frozen=True, eq=False)
class Rows:
    """Vectors and token features as one row of numbers per item: a `Source` for `Examples`."""

    features: Features

    def __len__(self) -> int:
        return len(self.features)

    def __getitem__(self, items: Any, /) -> Tensor:
        codes = np.asarray(items, dtype=np.int64)
        vectors = torch.from_numpy(self.features.vectors[codes])
        if self.features.tokens is None:
            return vectors
        values, mask = map(torch.from_numpy, self.features.tokens.load(codes))
        values = torch.where(mask[..., None], values, 0)
        rest = torch.cat([values, mask[..., None].to(values)], dim=-1)
        return torch.cat([vectors, rest.flatten(1)], dim=1)


def features_of(
    X: Any,
    encoder: str | Encoder = "auto",
    *,
    tokens: bool = False,
    vectors: bool = True,
    raw: bool = False,
    seed: int = 0,
    progress: Progress | None = None,
) -> Features:
    """Return features of inputs, from the cache where they are in it.

    Parameters
    ----------
    X
        Features, inputs, a list of texts or paths, or an array: (item, feature), or
        (item, token, feature); four axes are images, five are videos. Or a dictionary of these:
        their vectors stand side by side.
    encoder
        An encoder or its name; `auto` takes numbers as they are and chooses one for texts and
        images. By name it has to be pretrained, unless `raw` inputs are requested.
    tokens, vectors, raw
        What to return. Without an encoder, arrays of two axes have no token features.
    seed
        Random seed of an encoder without pretrained weights.
    progress
        Called with items done, items in all, and a message.
    """
    if isinstance(X, Features):
        return X
    inputs = as_inputs(X)
    if inputs.kind == "several":
        return _of_several(
            inputs, encoder, tokens=tokens, vectors=vectors, raw=raw, seed=seed, progress=progress
        )
    if isinstance(encoder, str):
        if isinstance(inputs, Arrays) and encoder in ("auto", "identity"):
            if inputs.values.ndim == 3 and not raw:
                return Features.from_tokens(inputs.values.numpy())
            if inputs.values.ndim > 3 and encoder == "auto" and not raw:
                encoder = "efficientnet-lite0"
        encoder = encoder_for(encoder, inputs, frozen=None if raw else True, seed=seed)
        if not (encoder.pretrained or raw or encoder.name == "identity"):
            raise OptionError(
                f"{encoder.name} has no pretrained weights, and nothing trains it here; "
                "name an encoder that has (minilm, efficientnet-lite0, hf:…)"
            )
    inner = RawInputs(encoder, inputs) if raw else None
    if encoder.name == "identity" and isinstance(inputs, Arrays):
        return Features(inputs.values.numpy().reshape(len(inputs), -1), None, inner)
    token = None
    if tokens:
        token = TokenFeatures(*cached_features(encoder, inputs, tokens=True, progress=progress))
    if not vectors:
        return Features(np.zeros((len(inputs), 0), np.float32), token, inner)
    values = cached_features(encoder, inputs, progress=progress).values
    return Features(values, token, inner)


def _of_several(inputs: Any, encoder: Any, **more: Any) -> Features:
    """Return the features of inputs of several kinds."""
    from .several import encoder_of, side_by_side

    parts = inputs.parts.values()
    return side_by_side([features_of(part, encoder_of(part, encoder), **more) for part in parts])
