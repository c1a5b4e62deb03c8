"""VGG networks (Simonyan & Zisserman 2015) and peerannot's two small networks on top of one.

    K. Simonyan, A. Zisserman. Very deep convolutional networks for large-scale image recognition.
    ICLR 2015. arXiv:1409.1556

`modellabelme` and `modelmusic` are the same network: the frozen trunk of VGG-16 with batch
normalisation, its 7 × 7 patches through one hidden layer of 128. Weights have torchvision's names.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from torch import Tensor, nn
from torch.nn import functional

from ...params import Count, Probability, Settings
from .inputs import Inputs
from .encoders_base import ImageEncoder
from .weights import load_encoder

_STAGES = {11: (1, 1, 2, 2, 2), 13: (2, 2, 2, 2, 2), 16: (2, 2, 3, 3, 3), 19: (2, 2, 4, 4, 4)}


@dataclass(frozen=True, kw_only=True)
class VggSettings(Settings):
    """A VGG network with batch normalisation.

    Parameters
    ----------
    depth
        Number of layers, with the three that are left out here.
    size
        Side of the images, in pixels.
    weights
        A file of weights with torchvision's names, `.safetensors` or `.pth` (only tensors are read
        from it), or `imagenet` for the published ones; random without.
    """

    depth: Literal[11, 13, 16, 19] = 16
    size: Count = 224
    weights: str | None = None

    def build(self, inputs: Inputs | None) -> Vgg:  # noqa: ARG002
        """Return the encoder."""
        encoder = Vgg(self.depth, self.size)
        return load_encoder(encoder, encoder, self.weights, "classifier.")


@dataclass(frozen=True, kw_only=True)
class PeerannotSettings(Settings):
    """peerannot's network for LabelMe and Music.

    Parameters
    ----------
    size
        Side of the images, in pixels.
    hidden
        Width of the layer above the trunk, which alone is trained.
    dropout
        Dropout of that layer.
    weights
        A file of weights of vgg16_bn with torchvision's names, or `imagenet` for the published
        ones; random without.
    """

    size: Count = 224
    hidden: Count = 128
    dropout: Probability = 0.5
    weights: str | None = None

    def build(self, inputs: Inputs | None) -> ImageEncoder:
        """Return the encoder."""
        trunk = VggSettings(depth=16, size=self.size, weights=self.weights).build(inputs)
        return _Hidden(trunk, self.hidden, self.dropout)


class Vgg(ImageEncoder):
    """The convolutions of a VGG network."""

    width = 512

    def __init__(self, depth: int, size: int) -> None:
        super().__init__(size)
        self.name = f"vgg{depth}-bn[size={size}]"
        layers: list[nn.Module] = []
        width = 3
        for stage, count in enumerate(_STAGES[depth]):
            for _ in range(count):
                out = min(64 * 2**stage, 512)
                layers += [nn.Conv2d(width, out, 3, padding=1), nn.BatchNorm2d(out), nn.ReLU()]
                width = out
            layers.append(nn.MaxPool2d(2, 2))
        self.features = nn.Sequential(*layers)
        for module in self.features:
            if isinstance(module, nn.Conv2d):
                nn.init.kaiming_normal_(module.weight, mode="fan_out", nonlinearity="relu")
                nn.init.zeros_(module.bias)  # type: ignore[arg-type]

    def patches(self, x: Tensor) -> Tensor:
        """Return the last feature map: (item, feature, row, column)."""
        return self.features(x)


class _Hidden(ImageEncoder):
    """A frozen trunk, its patches concatenated, and one hidden layer."""

    def __init__(self, trunk: Vgg, hidden: int, dropout: float) -> None:
        super().__init__(trunk.size)
        self.name, self.width = "modellabelme", hidden
        self.trunk = trunk.freeze()
        self.head = nn.Sequential(nn.Linear(512 * 49, hidden), nn.ReLU(), nn.Dropout(dropout))

    def patches(self, x: Tensor) -> Tensor:
        """Return the last feature map: (item, feature, row, column)."""
        return functional.adaptive_avg_pool2d(self.trunk.patches(x), 7)

    def forward(self, x: Tensor) -> Tensor:
        """Return the hidden layer: (item, feature)."""
        return self.head(self.patches((x - self.mean) / self.std).flatten(1))
