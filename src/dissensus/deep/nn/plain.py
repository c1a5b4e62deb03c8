"""Small encoders: features or pixels as they are, or a few layers."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from ...errors import OptionError
from ...params import Count, Probability, Settings
from .inputs import Arrays, Inputs
from .encoders_base import Encoder, ImageEncoder, Tokens


@dataclass(frozen=True, kw_only=True)
class IdentitySettings(Settings):
    """Features as they are."""

    def build(self, inputs: Inputs | None) -> Identity:
        """Return the encoder."""
        return Identity(n_features_of(inputs, "identity"))


@dataclass(frozen=True, kw_only=True)
class MlpSettings(Settings):
    """A few layers over features.

    Parameters
    ----------
    hidden
        Width of every layer.
    layers
        Number of layers.
    dropout
        Dropout after every layer.
    """

    hidden: Count = 128
    layers: Count = 1
    dropout: Probability = 0.0

    def build(self, inputs: Inputs | None) -> Mlp:
        """Return the encoder."""
        return Mlp(n_features_of(inputs, "mlp"), self)


@dataclass(frozen=True, kw_only=True)
class PatchesSettings(Settings):
    """Squares of an image, pixel by pixel.

    Parameters
    ----------
    size
        Side of the images, in pixels.
    side
        Side of a square; remainders at the edges are cut off.
    """

    size: Count = 64
    side: Count = 8

    def build(self, inputs: Inputs | None) -> Patches:  # noqa: ARG002
        """Return the encoder."""
        if self.side > self.size:
            raise OptionError(f"side = {self.side}, but an image has {self.size} pixels only")
        return Patches(self.size, self.side)


class Identity(Encoder):
    """Features as they are."""

    name = "identity"

    def __init__(self, width: int) -> None:
        super().__init__()
        self.n_features = self.width = width

    def prepare(self, inputs: Inputs) -> Tensor:
        """Return one row of numbers per item."""
        width = n_features_of(inputs, self.name)
        if width != self.n_features:
            raise OptionError(f"{width} features per item, but the encoder takes {self.n_features}")
        assert isinstance(inputs, Arrays)
        return inputs.values.flatten(1)

    def tokens(self, x: Tensor) -> Tokens:
        """Return the features as those of a single token."""
        return Tokens(self(x)[:, None], torch.ones(len(x), 1, dtype=torch.bool, device=x.device))

    def forward(self, x: Tensor) -> Tensor:
        """Return the features: (item, feature)."""
        return x


class Mlp(Identity):
    """A few layers over features."""

    name = "mlp"

    def __init__(self, n_features: int, settings: MlpSettings) -> None:
        super().__init__(n_features)
        layers: list[nn.Module] = []
        for width in [n_features, *[settings.hidden] * (settings.layers - 1)]:
            layers += [nn.Linear(width, settings.hidden), nn.ReLU(), nn.Dropout(settings.dropout)]
        self.body = nn.Sequential(*layers)
        self.width = settings.hidden

    def forward(self, x: Tensor) -> Tensor:
        """Return the last layer: (item, feature)."""
        return self.body(x)


class Patches(ImageEncoder):
    """Squares of an image, pixel by pixel; it has no weights."""

    pretrained = True

    def __init__(self, size: int, side: int) -> None:
        super().__init__(size, (0.5,) * 3, (0.25,) * 3)
        self.name, self.side = f"patches[size={size},side={side}]", side
        self.width = 3 * side**2

    def patches(self, x: Tensor) -> Tensor:
        """Return the pixels of every square: (item, feature, row, column)."""
        across = self.size // self.side
        flat = nn.functional.unfold(x, self.side, stride=self.side)  # (item, feature, square)
        return flat.reshape(len(x), self.width, across, across)


def n_features_of(inputs: Inputs | None, name: str) -> int:
    """Return how many numbers an item has."""
    if not isinstance(inputs, Arrays):
        kind = "nothing" if inputs is None else inputs.kind
        raise OptionError(f"{name} takes features, but it was given {kind}; name an encoder")
    return inputs.values[:1].numel() if len(inputs) else 0
