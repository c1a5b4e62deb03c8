"""Inputs → features: one vector per item and, on request, features of its tokens.

    texts, images, arrays ─encoder─▶ Features ─take─▶ Features of some items

Vectors are held in memory. Token features (of words, patches, or patches of frames) may be larger
than that: they stay on disk until they are loaded. A network takes both as one row of numbers per
item, which `Layout` splits again:

    examples = Examples(features.rows, annotations)
    batch = features.layout.split(batch.x)  # batch.vector, batch.values, batch.mask

Features of a frozen encoder are computed once per content and cached on disk (`feature_folder`).
The key is the content of an input and the weights of the encoder: a renamed file, another order or
another split of the same texts hits the cache, a changed text does not. Texts are encoded in
batches of similar length, without padding of note. With token features their means are kept too,
where those are what the encoder returns. Token features are written batch by batch and
memory-mapped.
"""

from __future__ import annotations

from collections.abc import Collection
from contextlib import ExitStack
from dataclasses import dataclass, replace
from hashlib import blake2b
from math import prod
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from ...base.arrays import Array, Integers
from ...base.feature_store import FeatureStore, StoredRows, feature_folder
from ...errors import DataError, OptionError
from ...method import Progress
from .batches import Source
from .encoders import Encoder, encoder_for
from .inputs import Arrays, Inputs, as_inputs, check_finite
from .media import Videos

_SHARD = 2048  # items that are kept together; what was encoded before an interruption stays
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
        tokens = x[:, self.features :]
        tokens = tokens.reshape(len(x), tokens.shape[1] // prod(inner), *inner)
        return FeatureBatch(vector, tokens[..., :-1], tokens[..., -1] > 0)


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
        filled = mask.any(axis=tuple(range(2, mask.ndim)))  # (item, word or frame)
        return np.where(filled, np.arange(1, filled.shape[1] + 1), 0).max(axis=1, initial=0)

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
        filled = mask.any(axis=(0, *range(2, mask.ndim)))  # (word or frame)
        length = int(np.flatnonzero(filled).max(initial=0)) + 1
        return np.asarray(self.values[rows, :length], np.float32), mask[:, :length]

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
        parts = {"vectors": self.vectors, "tokens": self.tokens, "raw": self.raw}
        sizes = {name: len(part) for name, part in parts.items() if part is not None}
        if len(set(sizes.values())) > 1:
            counts = ", ".join(f"{name} of {size}" for name, size in sizes.items())
            raise DataError(f"features of different numbers of items: {counts}")
        vectors = np.ascontiguousarray(self.vectors, dtype=np.float32)
        if vectors.ndim != 2:
            raise DataError(f"one vector per item is (item, feature), not {vectors.shape}")
        check_finite(vectors)
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
        tokens = torch.cat([values, mask[..., None].to(values)], dim=-1)
        return torch.cat([vectors, tokens.flatten(1)], dim=1)


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
    raw_inputs = RawInputs(encoder, inputs) if raw else None
    if encoder.name == "identity" and isinstance(inputs, Arrays):
        return Features(inputs.values.numpy().reshape(len(inputs), -1), None, raw_inputs)
    token_features = None
    if tokens:
        token_features = TokenFeatures(
            *cached_features(encoder, inputs, tokens=True, progress=progress)
        )
    if not vectors:
        return Features(np.zeros((len(inputs), 0), np.float32), token_features, raw_inputs)
    values = cached_features(encoder, inputs, progress=progress).values
    return Features(values, token_features, raw_inputs)


def _of_several(inputs: Any, encoder: Any, **options: Any) -> Features:
    """Return the features of inputs of several kinds."""
    from .encoding import encoder_of, side_by_side

    parts = inputs.parts.values()
    return side_by_side([features_of(part, encoder_of(part, encoder), **options) for part in parts])


class CachedFeatures(NamedTuple):
    """Arrays over the files of the cache, read where they are indexed."""

    values: Any  # (item, feature), (item, token, feature) or (item, frame, token, feature)
    mask: Any | None = None  # of token features: the same axes without the last


def cached_features(
    encoder: Encoder,
    inputs: Inputs,
    *,
    tokens: bool = False,
    batch: int = 16,
    folder: str | Path | None = None,
    progress: Progress | None = None,
) -> CachedFeatures:
    """Return features of inputs, from the cache where they are in it.

    Parameters
    ----------
    encoder
        Used as if frozen.
    inputs
        Inputs of all items.
    tokens
        Features of words or patches rather than one vector per item.
    batch
        Items per step.
    folder
        Folder of the cache; the user's by default.
    progress
        Called with items done, items to encode, and a message.
    """
    keys, digest = inputs.keys(), encoder.digest()
    root = feature_folder() if folder is None else Path(folder)
    stores = {
        kind: FeatureStore(
            root / blake2b(f"2 {digest} {kind}".encode(), digest_size=12).hexdigest()
        )
        for kind in ("vectors", "tokens")
    }
    kinds = ["tokens"] if tokens else ["vectors"]
    missing = stores[kinds[0]].missing(keys)
    if tokens and type(encoder).forward is Encoder.forward:
        kinds.append("vectors")
    if len(missing):
        unencoded = inputs.take(missing)
        size = max(batch // _n_frames(inputs), 1)
        targets = {kind: stores[kind] for kind in kinds}
        _encode(encoder, unencoded, keys[missing], targets, batch=size, progress=progress)
    rows = stores[kinds[0]].find(keys)
    if tokens:
        return CachedFeatures(rows, rows.mask)
    return CachedFeatures(_vectors_of(rows, encoder.width))


def _vectors_of(rows: StoredRows, width: int) -> Array:
    return rows[:][:, 0] if len(rows) else np.zeros((0, width), np.float32)


@torch.inference_mode()
def _encode(
    encoder: Encoder,
    inputs: Inputs,
    keys: Array,
    stores: dict[str, FeatureStore],
    *,
    batch: int,
    progress: Progress | None,
) -> None:
    """Write features, the longest inputs first."""
    source: Tensor | Source = encoder.prepare(inputs)
    order = np.arange(len(inputs))
    if (sizes := getattr(source, "sizes", None)) is not None:
        order = np.argsort(-sizes, kind="stable")
    training = encoder.training
    encoder.eval()
    n_encoded = 0
    for place in range(0, len(order), _SHARD):
        shard = order[place : place + _SHARD]
        with ExitStack() as stack:
            writers = {
                kind: stack.enter_context(store.writing(encoder.name, kind))
                for kind, store in stores.items()
            }
            for start in range(0, len(shard), batch):
                items = shard[start : start + batch]
                rows = _rows(encoder, source[torch.from_numpy(items)], stores)
                for kind, writer in writers.items():
                    writer.add(keys[items], rows[kind])
                n_encoded += len(items)
                if progress is not None:
                    message = f"{n_encoded:,} of {len(inputs):,} inputs encoded"
                    progress(n_encoded, len(inputs), message)
    encoder.train(training)


def _rows(encoder: Encoder, x: Tensor, kinds: Any) -> dict[str, list[Any]]:
    """Return the rows of every item, by kind."""
    if "tokens" not in kinds:
        return {"vectors": [vector[None] for vector in _vectors(encoder, x).float().numpy()]}
    values, mask = (tensor.numpy() for tensor in encoder.tokens(x))
    if mask.ndim == 2:
        rows = [value[is_token] for value, is_token in zip(values, mask, strict=True)]
    else:
        rows = list(values)  # every frame has all its patches
    flat = [row.reshape(-1, values.shape[-1]) for row in rows]
    vectors = [tokens.sum(axis=0, keepdims=True) / max(len(tokens), 1) for tokens in flat]
    return {"tokens": rows, "vectors": vectors}


def _n_frames(inputs: Inputs) -> int:
    """Return how many images an item is."""
    if isinstance(inputs, Videos):
        return inputs.frames
    return inputs.values.shape[1] if isinstance(inputs, Arrays) and inputs.values.ndim == 5 else 1


def _vectors(encoder: Encoder, x: Tensor) -> Tensor:
    """Return one vector per item; of a video, the mean over its frames."""
    if x.ndim < 5:
        return encoder(x)
    return encoder(x.flatten(0, 1)).reshape(*x.shape[:2], -1).mean(dim=1)
