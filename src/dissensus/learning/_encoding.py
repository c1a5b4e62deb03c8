"""From what a user has to what the classifier takes.

An encoder that learns nothing is asked once per input, and its vectors are kept on the disk; one
that learns is part of the classifier.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from copy import deepcopy
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from ..nn.batches import Source, inputs_of
from ..nn.encoders import Encoder, encoder_for
from ..nn.features import features
from ..nn.inputs import as_inputs

__all__ = ["Encoding", "encoding_for", "pieces"]

Progress = Callable[[int, int], None]  # items done, items in all

_LOOK = 2048  # items by which vectors are scaled, where an encoder has to make them


@dataclass(frozen=True, eq=False)
class Encoding:
    """An encoder, and whether its vectors are made before training."""

    encoder: nn.Module
    before: bool

    def prepare(self, given: Any, progress: Progress | None = None) -> Tensor | Source:
        """Return what the classifier takes, one per item; vectors are told as they are made."""
        inputs = as_inputs(given)
        if not isinstance(self.encoder, Encoder):
            return inputs.values  # type: ignore[attr-defined] # a network of the user's own
        if self.before:
            return features(self.encoder, inputs, progress=progress)
        return self.encoder.prepare(inputs)

    def network(self) -> nn.Module:
        """Return the part that is trained, a new copy; without a part, the vectors as they are."""
        return nn.Flatten() if self.before else deepcopy(self.encoder)

    @torch.no_grad()
    def vectors(self, x: Tensor | Source) -> Tensor:
        """Return the vectors of some items, to scale by: (item, feature)."""
        network = self.network().eval()
        few = len(x) if self.before else min(len(x), _LOOK)
        return torch.cat([network(piece) for piece in pieces(x, 256, few)])


def encoding_for(
    encoder: str | nn.Module,
    given: Any,
    seed: int,
    *,
    frozen: bool | None = None,
    changing: bool = False,
) -> Encoding:
    """Return the encoding by an encoder's name, or by a network.

    Inputs that change while training, as images may, are encoded anew in every step.
    """
    if isinstance(encoder, str):
        encoder = encoder_for(encoder, as_inputs(given), frozen=frozen, seed=seed)
    return Encoding(encoder, isinstance(encoder, Encoder) and encoder.is_frozen and not changing)


def pieces(x: Tensor | Source, size: int, stop: int | None = None) -> Iterator[Tensor]:
    """Yield inputs a few at a time."""
    stop = len(x) if stop is None else stop
    for at in range(0, stop, size):
        yield inputs_of(x, np.arange(at, min(at + size, stop)))
