"""Residual networks (He et al. 2016), with torchvision's names for their weights.

    K. He, X. Zhang, S. Ren, J. Sun. Deep residual learning for image recognition. CVPR 2016.
    arXiv:1512.03385

Images up to 64 pixels go without the first halvings, which would leave nothing of them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from torch import Tensor, nn

from ...params import Count, Settings
from ..inputs import Inputs
from ._base import ImageEncoder
from ._weights import load_weights, weights_file

__all__ = ["ResNet", "ResNetSettings"]

_SMALL = 64
_BLOCKS = {18: (2, 2, 2, 2), 34: (3, 4, 6, 3), 50: (3, 4, 6, 3)}


@dataclass(frozen=True, kw_only=True)
class ResNetSettings(Settings):
    """A residual network.

    Parameters
    ----------
    depth
        How many layers.
    size
        Side of the images, in pixels.
    weights
        A file of weights with torchvision's names, `.safetensors` or `.pth`, or `imagenet` for the
        published ones; at random without.
    """

    depth: Literal[18, 34, 50] = 18
    size: Count = 224
    weights: str | None = None

    def build(self, inputs: Inputs | None) -> ResNet:  # noqa: ARG002
        """Return the encoder."""
        made = ResNet(self.depth, self.size)
        if self.weights is not None:
            file = weights_file(f"resnet{self.depth}", self.weights)
            load_weights(made, file, without=("fc.",))
            made.pretrained = True
        return made


class ResNet(ImageEncoder):
    """A residual network without its last layer."""

    def __init__(self, depth: int, size: int) -> None:
        super().__init__(size)
        self.name = f"resnet{depth}[size={size}]"
        block = _Bottleneck if depth >= 50 else _Basic
        small = size <= _SMALL
        self.conv1 = nn.Conv2d(
            3, 64, 3 if small else 7, 1 if small else 2, 1 if small else 3, bias=False
        )
        self.bn1 = nn.BatchNorm2d(64)
        self.maxpool = nn.Identity() if small else nn.MaxPool2d(3, 2, 1)
        width = 64
        for position, count in enumerate(_BLOCKS[depth]):
            inner = 64 * 2**position
            layers = []
            for number in range(count):
                stride = 2 if position and not number else 1
                layers.append(block(width, inner, stride))
                width = inner * block.wider
            setattr(self, f"layer{position + 1}", nn.Sequential(*layers))
        self.width = width
        for module in self.modules():
            if isinstance(module, nn.Conv2d):
                nn.init.kaiming_normal_(module.weight, mode="fan_out", nonlinearity="relu")

    def patches(self, x: Tensor) -> Tensor:
        """Return the map of the last layer: (item, feature, row, column)."""
        x = self.maxpool(self.bn1(self.conv1(x)).relu())
        for position in range(1, 5):
            x = getattr(self, f"layer{position}")(x)
        return x


class _Residual(nn.Module):
    """x plus what a few layers make of it."""

    wider: int
    downsample: nn.Module

    def body(self, x: Tensor) -> Tensor:
        """Return what is added."""
        raise NotImplementedError

    def shortcut(self, width: int, out: int, stride: int) -> None:
        """Make what x goes through where its sizes change."""
        self.downsample = nn.Identity()
        if stride > 1 or width != out:
            conv = nn.Conv2d(width, out, 1, stride, bias=False)
            self.downsample = nn.Sequential(conv, nn.BatchNorm2d(out))

    def forward(self, x: Tensor) -> Tensor:
        """Return the sum, without what is below zero."""
        return (self.downsample(x) + self.body(x)).relu()


class _Basic(_Residual):
    wider = 1

    def __init__(self, width: int, inner: int, stride: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(width, inner, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(inner)
        self.conv2 = nn.Conv2d(inner, inner, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(inner)
        self.shortcut(width, inner, stride)

    def body(self, x: Tensor) -> Tensor:
        return self.bn2(self.conv2(self.bn1(self.conv1(x)).relu()))


class _Bottleneck(_Residual):
    wider = 4

    def __init__(self, width: int, inner: int, stride: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(width, inner, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(inner)
        self.conv2 = nn.Conv2d(inner, inner, 3, stride, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(inner)
        self.conv3 = nn.Conv2d(inner, 4 * inner, 1, bias=False)
        self.bn3 = nn.BatchNorm2d(4 * inner)
        self.shortcut(width, 4 * inner, stride)

    def body(self, x: Tensor) -> Tensor:
        x = self.bn1(self.conv1(x)).relu()
        return self.bn3(self.conv3(self.bn2(self.conv2(x)).relu()))
