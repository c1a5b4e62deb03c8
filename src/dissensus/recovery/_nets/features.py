"""Views of inputs through an encoder: only those that a method asks for are computed."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

import numpy as np

from ..._progress import Progress
from ..._relation import Array, Integers
from ...nn.encoders import Encoder
from ...nn.feature_cache import cached_features
from ...nn.inputs import Arrays, Inputs
from .._base import Places, Views

__all__ = ["Raw", "views_of"]


@dataclass(frozen=True, eq=False)
class Raw:
    """Inputs as they are, and the encoder that would read them."""

    encoder: Encoder
    inputs: Inputs

    def __len__(self) -> int:
        return len(self.inputs)

    def take(self, items: Integers) -> Raw:
        """Return the inputs of items, by code."""
        return Raw(self.encoder, self.inputs.take(items))


def views_of(
    encoder: Encoder, inputs: Inputs, wanted: Collection[str], progress: Progress | None = None
) -> Views:
    """Return views of inputs; vectors come from those of places where both are wanted.

    Plain vectors are taken as they are, and have no places.
    """
    raw = Raw(encoder, inputs) if "raw" in wanted else None
    if encoder.name == "identity" and isinstance(inputs, Arrays):
        return Views(inputs.values.numpy().reshape(len(inputs), -1), None, raw)
    positions = None
    if "places" in wanted:
        found = cached_features(encoder, inputs, tokens=True, progress=progress)
        positions = Places(found.values, np.asarray(found.mask))
    if "vectors" not in wanted:
        return Views(None, positions, raw)
    if positions is not None and type(encoder).forward is Encoder.forward:
        return Views(_means(positions), positions, raw)
    vectors = cached_features(encoder, inputs, progress=progress)
    return Views(np.asarray(vectors.values), positions, raw)


def _means(positions: Places) -> Array:
    """Return the mean of every item's places, as encoders do: (item, feature)."""
    found = np.empty((len(positions.values), positions.values.shape[2]), dtype=np.float32)
    for at in range(0, len(found), 256):
        here = slice(at, at + 256)
        weight = positions.mask[here].astype(np.float32)[:, :, None]
        total = (np.asarray(positions.values[here]) * weight).sum(axis=1)
        found[here] = total / np.maximum(weight.sum(axis=1), 1)
    return found
