"""Residual networks of transformers, trained here or with torchvision's published weights.

    K. He, X. Zhang, S. Ren, J. Sun. Deep residual learning for image recognition. CVPR 2016.
    arXiv:1512.03385

Images of up to 64 pixels skip the first two halvings.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, Literal

from torch import Tensor, nn

from ...params import Count, Settings
from .inputs import Inputs
from .encoders_base import ImageEncoder
from .weights import load_encoder

_SMALL = 64
_BLOCKS = {18: (2, 2, 2, 2), 34: (3, 4, 6, 3), 50: (3, 4, 6, 3)}
_LAYER = re.compile(r"encoder\.stages\.(\d+)\.layers\.(\d+)\.(?:shortcut|layer\.(\d+))\.(\w+)(.*)")


@dataclass(frozen=True, kw_only=True)
class ResNetSettings(Settings):
    """A residual network.

    Parameters
    ----------
    depth
        Number of layers.
    size
        Side of the images, in pixels.
    weights
        A file of weights with torchvision's names, `.safetensors` or `.pth` (only tensors are read
        from it), or `imagenet` for the published ones; random without.
    """

    depth: Literal[18, 34, 50] = 18
    size: Count = 224
    weights: str | None = None

    def build(self, inputs: Inputs | None) -> ResNet:  # noqa: ARG002
        """Return the encoder."""
        encoder = ResNet(self.depth, self.size)
        return load_encoder(encoder, encoder.body, self.weights, "fc.", torchvision_name)


class ResNet(ImageEncoder):
    """A residual network without its last layer."""

    def __init__(self, depth: int, size: int) -> None:
        from transformers import ResNetConfig, ResNetModel
        from transformers.models.resnet.modeling_resnet import ResNetConvLayer

        super().__init__(size)
        self.name = f"resnet{depth}[size={size}]"
        wider, kind = (4, "bottleneck") if depth >= 50 else (1, "basic")
        widths = [64 * 2**stage * wider for stage in range(4)]
        self.width = widths[-1]
        config = ResNetConfig(depths=list(_BLOCKS[depth]), hidden_sizes=widths, layer_type=kind)
        self.body: Any = ResNetModel(config)
        if size <= _SMALL:
            stem: Any = self.body.embedder
            stem.embedder, stem.pooler = ResNetConvLayer(3, 64, kernel_size=3), nn.Identity()
            weight = stem.embedder.convolution.weight
            nn.init.kaiming_normal_(weight, mode="fan_out", nonlinearity="relu")

    def patches(self, x: Tensor) -> Tensor:
        """Return the last feature map: (item, feature, row, column)."""
        return self.body(pixel_values=x).last_hidden_state


def torchvision_name(name: str) -> str:
    """Return torchvision's name of a weight of transformers.

    >>> torchvision_name("encoder.stages.1.layers.0.layer.1.normalization.bias")
    'layer2.0.bn2.bias'
    """
    name = name.replace("embedder.embedder.convolution", "conv1")
    name = name.replace("embedder.embedder.normalization", "bn1")
    match = _LAYER.match(name)
    if match is None:
        return name
    stage, block, layer, kind, rest = match.groups()
    norm = kind == "normalization"
    part = f"{'bn' if norm else 'conv'}{int(layer) + 1}" if layer else f"downsample.{int(norm)}"
    return f"layer{int(stage) + 1}.{block}.{part}{rest}"
