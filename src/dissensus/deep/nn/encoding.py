"""What a network takes as inputs, and the part of it that is an encoder.

Features of a frozen encoder are computed once per input and cached; an encoder that is trained is
part of the network.

Inputs may be of several kinds side by side, texts with features or images with texts:

    as_inputs({"text": texts, "features": numbers})

Every kind has its own encoder. Their vectors stand side by side in one vector per item; token
features, and the encoder that may be tuned, are those of the first kind that has them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from copy import deepcopy
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor, nn

from ...base.arrays import Integers
from ...errors import DataError, OptionError
from ...method import Progress
from .batches import Source, chunks
from .encoders import Encoder, encoder_for
from .features import Features, RawInputs, TokenFeatures, features_of
from .inputs import Arrays, Inputs

_SAMPLE = 2048  # items by which vectors are scaled, where the encoder is trained


@dataclass(frozen=True, eq=False)
class Encoding:
    """An encoder, and whether its features are computed before training."""

    encoder: nn.Module
    cached: bool

    @property
    def name(self) -> str:
        """The encoder's name."""
        return str(getattr(self.encoder, "name", "a network"))

    def prepare(self, inputs: Inputs, progress: Progress | None = None) -> Tensor | Source:
        """Return what the network takes, one per item."""
        if not isinstance(self.encoder, Encoder):  # a network of the user's own
            if not isinstance(inputs, Arrays):
                raise OptionError("a network as encoder takes arrays; name an encoder for these")
            return inputs.values
        if self.cached:
            features = features_of(inputs, self.encoder, progress=progress)
            return torch.from_numpy(features.vectors)
        return self.encoder.prepare(inputs)

    def network(self) -> nn.Module:
        """Return a copy of the encoder to train; the identity where features are cached."""
        return nn.Flatten() if self.cached else deepcopy(self.encoder)

    @torch.no_grad()
    def vectors(self, x: Tensor | Source) -> Tensor:
        """Return the vectors of items, or of a sample, to scale by: (item, feature)."""
        network = self.network().eval()
        size = len(x) if self.cached else min(len(x), _SAMPLE)
        return torch.cat([network(chunk) for chunk in chunks(x, 256, size)])


def encoding_for(
    encoder: str | nn.Module,
    inputs: Inputs,
    seed: int,
    *,
    frozen: bool | None = None,
    augmented: bool = False,
) -> Encoding:
    """Return the encoding by an encoder or its name; augmented inputs cannot be cached."""
    if isinstance(encoder, str):
        encoder = encoder_for(encoder, inputs, frozen=frozen, seed=seed)
    return Encoding(encoder, isinstance(encoder, Encoder) and encoder.is_frozen and not augmented)


@dataclass(frozen=True, eq=False)
class Several(Inputs):
    """Inputs of several kinds, by name."""

    parts: Mapping[str, Inputs]
    kind: ClassVar[str] = "several"

    def __post_init__(self) -> None:
        sizes = {name: len(part) for name, part in self.parts.items()}
        if not sizes or any(isinstance(part, Several) for part in self.parts.values()):
            raise DataError("inputs of several kinds are a dictionary of inputs by name")
        if len(set(sizes.values())) > 1:
            counts = ", ".join(f"{name} of {size}" for name, size in sizes.items())
            raise DataError(f"inputs of different numbers of items: {counts}")

    @property
    def description(self) -> str:
        """The kinds by name."""
        return ", ".join(f"{name}: {part.kind}" for name, part in self.parts.items())

    @property
    def shape(self) -> tuple[int, ...]:
        """Axes of one input of every kind that has them."""
        return tuple(size for part in self.parts.values() for size in part.shape)

    def __len__(self) -> int:
        return len(next(iter(self.parts.values())))

    def take(self, items: Integers) -> Several:
        """Return the inputs of items, by code."""
        return Several({name: part.take(items) for name, part in self.parts.items()})

    def contents(self) -> Iterable[bytes]:
        """Return the hashes of every kind."""
        columns = [part.keys() for part in self.parts.values()]
        return [b"".join(key.tobytes() for key in row) for row in zip(*columns, strict=True)]


def encoder_of(part: Inputs, encoder: Any) -> Any:
    """Return the encoder of one kind: features are taken as they are."""
    is_features = isinstance(part, Arrays) and part.values.ndim == 2
    return "identity" if is_features else encoder


def side_by_side(parts: list[Features]) -> Features:
    """Return the features of several kinds as one."""
    tokens: TokenFeatures | None = next((part.tokens for part in parts if part.tokens), None)
    raw: list[RawInputs] = [part.raw for part in parts if part.raw is not None]
    raw.sort(key=lambda inputs: inputs.encoder.name == "identity")
    return Features(
        np.concatenate([part.vectors for part in parts], axis=1),
        tokens,
        raw[0] if raw else None,
        tuple(part.vectors.shape[1] for part in parts),
    )
