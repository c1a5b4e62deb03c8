"""Items as the methods see them: a vector each and, where asked for, vectors of their places.

    texts, images, arrays ─encoder─▶ Views ─take─▶ Views of some items

The encoder learns nothing here; what it makes of the inputs is kept in the user's cache. Vectors
are in memory. Vectors of places (words, patches, patches of frames) may be larger than that: they
stay on the disk until they are asked for, and the mask that says where something is stays beside
them. A network takes both as one row of numbers per item, which its `Layout` takes apart:

    examples = Examples(views.rows, said)
    seen = views.layout.split(batch.x)  # seen.vector, seen.values, seen.mask
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import prod
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from .._progress import Progress
from .._relation import Floats, Integers
from ..errors import DataError, OptionError

if TYPE_CHECKING:
    from torch import Tensor

__all__ = ["Layout", "Places", "Rows", "Seen", "Views"]

_PIECE = 256  # items whose places are looked at together


class Seen(NamedTuple):
    """A batch of rows, taken apart."""

    vector: Tensor  # (item, feature)
    values: Tensor  # (item, place, token feature) or (item, frame, place, token feature)
    mask: Tensor  # (item, place) or (item, frame, place): whether something is there


class Layout(NamedTuple):
    """What the numbers of a row are: the vector, then the places, each with its mask at the end."""

    features: int  # of the vector
    positions: tuple[int, ...] = ()  # (place) or (frame, place); empty where there are none
    token_features: int = 0  # of a place

    @property
    def width(self) -> int:
        """How many numbers a row has."""
        return self.features + (
            prod(self.positions) * (self.token_features + 1) if self.positions else 0
        )

    def split(self, x: Tensor) -> Seen:
        """Return rows taken apart; without places the vector is the only one.

        Rows may have more or fewer words or frames than the layout: it is their width that tells.
        """
        vector = x[:, : self.features]
        if not self.positions:
            return Seen(vector, vector[:, None], vector.new_ones(len(x), 1).bool())
        position = *self.positions[1:], self.token_features + 1
        rest = x[:, self.features :]
        rest = rest.reshape(len(x), rest.shape[1] // prod(position), *position)
        return Seen(vector, rest[..., :-1], rest[..., -1] > 0)


@dataclass(frozen=True, eq=False)
class Places:
    """Vectors of the places of items, with the mask beside them; on the disk or in memory."""

    values: Any  # (item, place, feature) or (item, frame, place, feature): an array, or over a file
    mask: Any  # the same axes, without the last
    chosen: Integers | None = None  # (item): rows that are meant; all, in order, where not told

    def __post_init__(self) -> None:
        if np.ndim(self.values) not in (3, 4) or np.shape(self.values)[:-1] != np.shape(self.mask):
            raise DataError(
                f"places with the axes {np.shape(self.values)} and a mask with "
                f"{np.shape(self.mask)}; they are (item, place, feature) or "
                "(item, frame, place, feature), and the mask is the same without the last"
            )

    def __len__(self) -> int:
        return len(self.values) if self.chosen is None else len(self.chosen)

    def take(self, items: Integers) -> Places:
        """Return the places of items, by code; nothing is read."""
        items = np.asarray(items, dtype=np.int64)
        return replace(self, chosen=items if self.chosen is None else self.chosen[items])

    def load(self, items: Any) -> tuple[npt.NDArray[np.float32], npt.NDArray[np.bool_]]:
        """Return values and mask of items, by code, in memory."""
        rows = np.asarray(items, dtype=np.int64)
        rows = rows if self.chosen is None else self.chosen[rows]
        return np.array(self.values[rows], np.float32), np.array(self.mask[rows], np.bool_)

    def means(self) -> npt.NDArray[np.float32]:
        """Return the mean over the places of every item: (item, feature)."""
        found = [np.zeros((0, np.shape(self.values)[-1]), np.float32)]
        for at in range(0, len(self), _PIECE):
            values, mask = self.load(np.arange(at, min(at + _PIECE, len(self))))
            weight = mask.reshape(len(mask), -1, 1).astype(np.float32)
            values = values.reshape(len(values), weight.shape[1], -1)
            found.append((values * weight).sum(axis=1) / np.maximum(weight.sum(axis=1), 1))
        return np.concatenate(found)


@dataclass(frozen=True, eq=False)
class Rows:
    """Vectors and places as one row of numbers per item: a `Source` for `Examples`."""

    views: Views

    def __len__(self) -> int:
        return len(self.views)

    def __getitem__(self, items: Any, /) -> Tensor:
        import torch

        codes = np.asarray(items, dtype=np.int64)
        vectors = torch.from_numpy(self.views.vectors[codes])
        if self.views.tokens is None:
            return vectors
        values, mask = map(torch.from_numpy, self.views.tokens.load(codes))
        values = torch.where(mask[..., None], values, 0)
        rest = torch.cat([values, mask[..., None].to(values)], dim=-1)
        return torch.cat([vectors, rest.flatten(1)], dim=1)


@dataclass(frozen=True, eq=False)
class Views:
    """Items as the methods see them.

    Examples
    --------
    >>> views = Views.of(np.eye(3))
    >>> len(views), views.take([0, 2]).vectors.tolist()
    (3, [[1.0, 0.0, 0.0], [0.0, 0.0, 1.0]])
    """

    vectors: npt.NDArray[np.float32]  # (item, feature)
    tokens: Places | None = None

    def __post_init__(self) -> None:
        vectors = np.ascontiguousarray(self.vectors, dtype=np.float32)
        if vectors.ndim != 2:
            raise DataError(f"one vector per item is (item, feature), not {vectors.shape}")
        if not np.isfinite(vectors).all():
            at = int(np.flatnonzero(~np.isfinite(vectors).all(axis=1))[0])
            raise DataError(f"input {at}: a number is missing or infinite; fill it or leave it out")
        if self.tokens is not None and len(self.tokens) != len(vectors):
            raise DataError(f"{len(vectors)} vectors, but places of {len(self.tokens)} items")
        object.__setattr__(self, "vectors", vectors)

    def __len__(self) -> int:
        return len(self.vectors)

    def take(self, items: Any) -> Views:
        """Return the views of items, by code."""
        codes = np.asarray(items, dtype=np.int64)
        tokens = None if self.tokens is None else self.tokens.take(codes)
        return Views(self.vectors[codes], tokens)

    @property
    def layout(self) -> Layout:
        """What the numbers of a row are."""
        if self.tokens is None:
            return Layout(self.vectors.shape[1])
        shape = np.shape(self.tokens.values)
        return Layout(self.vectors.shape[1], tuple(shape[1:-1]), shape[-1])

    @property
    def rows(self) -> Rows:
        """One row of numbers per item, for networks."""
        return Rows(self)

    @classmethod
    def of_tokens(cls, values: Any, mask: Any = None) -> Views:
        """Return views of vectors of places, whose mean is the vector of an item.

        Parameters
        ----------
        values
            (item, place, feature), or (item, frame, place, feature) of videos.
        mask
            Whether something is there: the same axes, without the last. All, where not given.
        """
        values = values if hasattr(values, "shape") else np.asarray(values)
        tokens = Places(values, np.ones(values.shape[:-1], np.bool_) if mask is None else mask)
        return cls(tokens.means(), tokens)

    @classmethod
    def of(
        cls,
        given: Any,
        encoder: str = "auto",
        *,
        tokens: bool = False,
        progress: Progress | None = None,
    ) -> Views:
        """Return the views of whatever a user has.

        Parameters
        ----------
        given
            Views, inputs, a list of texts or of paths, an array: (item, feature), or
            (item, place, feature) for places; four axes are images, five are videos.
        encoder
            By name; `auto` takes numbers as they are and finds one that fits texts and images.
        tokens
            Whether places are wanted too.
        progress
            Called with items done and items in all, where an encoder is at work.
        """
        if isinstance(given, Views):
            return given
        axes = getattr(given, "ndim", 0)
        if axes in (2, 3) and encoder in ("auto", "identity"):
            values = np.array(given, dtype=np.float32)
            return cls(values) if axes == 2 else cls.of_tokens(values)
        from ..nn.encoders import encoder_for
        from ..nn.feature_cache import cached_features
        from ..nn.inputs import Arrays, as_inputs

        inputs = as_inputs(given)
        if encoder == "auto" and isinstance(inputs, Arrays) and inputs.values.ndim in (4, 5):
            encoder = "efficientnet-lite0"
        if isinstance(inputs, Arrays) and encoder in ("auto", "identity"):
            return cls.of(inputs.values.numpy())
        made = encoder_for(encoder, inputs, frozen=True)
        if not made.pretrained:
            raise OptionError(
                f"{made.name} knows nothing before it is trained, and nothing trains it here; "
                "name an encoder that does (minilm, efficientnet-lite0, hf:…)"
            )
        if tokens:
            found = cached_features(made, inputs, tokens=True, progress=progress)
            return cls.of_tokens(found.values, found.mask)
        return cls(np.array(cached_features(made, inputs, progress=progress).values))


def check_width(views: Views, width: int) -> None:
    """Say so where vectors are not of the kind that a method has learned from."""
    if views.vectors.shape[1] != width:
        found = views.vectors.shape[1]
        raise DataError(f"vectors of {found} features, but the model has learned from {width}")


def standardised(vectors: npt.NDArray[np.float32]) -> tuple[Floats, Floats]:
    """Return mean and scale of every feature; what never varies is scaled to zero."""
    wide = vectors.astype(np.float64)
    spread = wide.std(axis=0)
    scale = np.divide(1.0, spread, out=np.zeros_like(spread), where=spread > 1e-6)
    return wide.mean(axis=0), scale
