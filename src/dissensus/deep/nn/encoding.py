"""What a network takes as inputs, and the part of it that is an encoder.

Features of a frozen encoder are computed once per input and cached; an encoder that is trained is
part of the network.
"""

from __future__ import annotations

from copy import deepcopy
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from ...base.progress import Progress
from ...errors import OptionError
from .batches import Source, chunks
from .encoders import Encoder, encoder_for
from .features import features_of
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
