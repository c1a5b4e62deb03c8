"""Four blocks of convolution, the small network of few-shot learning.

O. Vinyals et al. Matching networks for one shot learning. NeurIPS 2016. arXiv:1606.04080
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

from torch import Tensor, nn

from ...errors import OptionError
from ...params import Count, Settings
from .inputs import Inputs
from .encoders_base import ImageEncoder


@dataclass(frozen=True, kw_only=True)
class Conv4Settings(Settings):
    """Four blocks of convolution, normalisation and halving.

    Parameters
    ----------
    size
        Side of the images, in pixels; at least 16.
    channels
        Of the images: 3 for colours, 1 for grey.
    hidden
        Channels of every block.
    """

    size: Count = 84
    channels: Literal[1, 3] = 3
    hidden: Count = 64

    def build(self, inputs: Inputs | None) -> Conv4:  # noqa: ARG002
        """Return the encoder."""
        if self.size < 16:
            raise OptionError(f"size = {self.size}, but four halvings need at least 16")
        return Conv4(self)


class Conv4(ImageEncoder):
    """Four blocks of convolution; the vector is all patches concatenated."""

    def __init__(self, settings: Conv4Settings) -> None:
        half = (0.5,) * settings.channels
        super().__init__(settings.size, half, half)
        self.name = f"conv4[size={settings.size},channels={settings.channels}]"
        widths = [settings.channels, *[settings.hidden] * 4]
        layers: list[nn.Module] = []
        for width, out in pairwise(widths):
            layers += [nn.Conv2d(width, out, 3, padding=1), nn.BatchNorm2d(out)]
            layers += [nn.ReLU(), nn.MaxPool2d(2)]
        self.body = nn.Sequential(*layers)
        self.width = settings.hidden * (settings.size // 16) ** 2

    def patches(self, x: Tensor) -> Tensor:
        """Return the last feature map: (item, feature, row, column)."""
        return self.body(x)

    def forward(self, x: Tensor) -> Tensor:
        """Return all patches concatenated: (item, feature)."""
        return self.patches((x - self.mean) / self.std).flatten(1)
