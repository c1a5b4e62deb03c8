"""Inputs of several kinds side by side: texts with features, images with texts.

    as_inputs({"text": texts, "features": numbers})

Every kind has its own encoder. Their vectors stand side by side in one vector per item; token
features, and the encoder that may be tuned, are those of the first kind that has them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from ...base.arrays import Integers
from ...errors import DataError
from .features import Features, RawInputs, TokenFeatures
from .inputs import Arrays, Inputs


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
            named = ", ".join(f"{name} of {size}" for name, size in sizes.items())
            raise DataError(f"inputs of different numbers of items: {named}")

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
        each = [part.keys() for part in self.parts.values()]
        return [b"".join(key.tobytes() for key in keys) for keys in zip(*each, strict=True)]


def encoder_of(part: Inputs, encoder: Any) -> Any:
    """Return the encoder of one kind: features are taken as they are."""
    numbers = isinstance(part, Arrays) and part.values.ndim == 2
    return "identity" if numbers else encoder


def side_by_side(parts: list[Features]) -> Features:
    """Return the features of several kinds as one."""
    tokens: TokenFeatures | None = next((one.tokens for one in parts if one.tokens), None)
    raw: list[RawInputs] = [one.raw for one in parts if one.raw is not None]
    raw.sort(key=lambda one: one.encoder.name == "identity")
    return Features(
        np.concatenate([one.vectors for one in parts], axis=1),
        tokens,
        raw[0] if raw else None,
        tuple(one.vectors.shape[1] for one in parts),
    )
