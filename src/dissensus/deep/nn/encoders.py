"""Encoders by name: networks that turn inputs into vectors.

    efficientnet-lite0, minilm      weights inside packages
    hf:<name or folder>             of Hugging Face
    timm:<name>                     where timm is installed
    resnet18, vgg16-bn, …           random, or from a file of weights
    modellabelme, modelmusic        peerannot's
    conv4, patches, mlp, identity   small ones
    auto                            by the kind of the inputs

Settings are written in brackets, as for methods: `resnet18[size=32]`. Pretrained encoders are
frozen by default; random ones are trained. Every encoder prepares its inputs, and returns a vector
per item and features of its tokens.

Files of weights, also of other projects, are safetensors or in torch's own format. The latter is a
pickle, and is read with `weights_only=True`: tensors are built, all else is refused. `imagenet` is
torchvision's file for a network, from torch's cache (`TORCH_HOME`) or downloaded.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from hashlib import blake2b
from pathlib import Path
from pickle import UnpicklingError
from typing import Any, NamedTuple, Self, TypeVar

import torch
from safetensors.torch import load_file
from torch import Tensor, nn

from ...base.storage import damage
from ...errors import DataError, OptionError
from ...params import describe_fields, format_value
from ...registry import Registry
from .batches import Source
from .inputs import Arrays, Files, Inputs, LoadedFiles

__all__ = ["Encoder", "ImageEncoder", "Tokens", "encoder_for", "encoder_spec", "encoders"]


_MEAN, _STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)  # of ImageNet, by channel
_USUAL = 224  # pixels of encoders with a single size
_PUBLISHED = "https://download.pytorch.org/models/"
_FILES = {
    "resnet18": "resnet18-f37072fd.pth",
    "resnet34": "resnet34-b627a593.pth",
    "resnet50": "resnet50-11ad3fa6.pth",
    "vgg11-bn": "vgg11_bn-6002323d.pth",
    "vgg13-bn": "vgg13_bn-abd245e5.pth",
    "vgg16-bn": "vgg16_bn-6c64b313.pth",
    "vgg19-bn": "vgg19_bn-c79401a0.pth",
}

encoders: Registry[Any] = Registry(
    "encode",
    {
        "efficientnet-lite0": "dissensus.deep.nn.image_encoders:EfficientNetSettings",
        "minilm": "dissensus.deep.nn.huggingface:MinilmSettings",
        "hf": "dissensus.deep.nn.huggingface:HuggingFaceSettings",
        "timm": "dissensus.deep.nn.image_encoders:TimmSettings",
        "resnet": "dissensus.deep.nn.image_encoders:ResNetSettings",
        "vgg-bn": "dissensus.deep.nn.image_encoders:VggSettings",
        "modellabelme": "dissensus.deep.nn.image_encoders:PeerannotSettings",
        "conv4": "dissensus.deep.nn.image_encoders:Conv4Settings",
        "patches": "dissensus.deep.nn.image_encoders:PatchesSettings",
        "mlp": "dissensus.deep.nn.image_encoders:MlpSettings",
        "identity": "dissensus.deep.nn.image_encoders:IdentitySettings",
    },
    {
        "resnet18": "resnet[depth=18]",
        "resnet34": "resnet[depth=34]",
        "resnet50": "resnet[depth=50]",
        "vgg11-bn": "vgg-bn[depth=11]",
        "vgg13-bn": "vgg-bn[depth=13]",
        "vgg16-bn": "vgg-bn[depth=16]",
        "vgg19-bn": "vgg-bn[depth=19]",
        "modelmusic": "modellabelme",
    },
)


class Tokens(NamedTuple):
    """Features of the tokens of every item: words, patches of an image, or of frames."""

    values: Tensor  # (item, token, feature) or (item, frame, token, feature)
    mask: Tensor  # the same axes without the last: whether there is a token


class Encoder(nn.Module, ABC):
    """A network that turns an input into vectors; a frozen one stays in evaluation mode."""

    name: str
    width: int  # of a vector
    pretrained: bool = False
    is_frozen: bool = False
    extent: int = 0  # of an input that is seen: tokens of a text, pixels of a side

    @abstractmethod
    def prepare(self, inputs: Inputs) -> Tensor | Source:
        """Return inputs as the network takes them."""

    @abstractmethod
    def tokens(self, x: Tensor) -> Tokens:
        """Return features of tokens: (item, token, feature)."""

    def forward(self, x: Tensor) -> Tensor:
        """Return one vector per item, by default the mean of its tokens: (item, feature)."""
        values, mask = self.tokens(x)
        weight = mask.to(values)[:, :, None]
        return (values * weight).sum(dim=1) / weight.sum(dim=1).clamp(min=1)

    def freeze(self) -> Self:
        """Freeze its weights."""
        self.is_frozen = True
        self.requires_grad_(False)
        return self.eval()

    def train(self, mode: bool = True) -> Self:
        """Set training mode, unless it is frozen."""
        return super().train(mode and not self.is_frozen)

    def digest(self) -> str:
        """Return a hash of name, weights, and how much of an input is seen."""
        digest = blake2b(f"{self.name} {self.extent}".encode(), digest_size=16)
        for name, value in sorted(self.state_dict().items()):
            digest.update(f"{name} {value.dtype} {tuple(value.shape)}".encode())
            digest.update(value.detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy())
        return digest.hexdigest()


class ImageEncoder(Encoder):
    """An encoder of images of one size, from 0 to 1: (item, 3, size, size).

    Videos are images with one axis more: (item, frame, 3, size, size).
    """

    mean: Tensor
    std: Tensor

    def __init__(
        self, size: int, mean: tuple[float, ...] = _MEAN, std: tuple[float, ...] = _STD
    ) -> None:
        super().__init__()
        self.size = self.extent = size
        self.register_buffer("mean", torch.tensor(mean)[:, None, None], persistent=False)
        self.register_buffer("std", torch.tensor(std)[:, None, None], persistent=False)

    def prepare(self, inputs: Inputs) -> Tensor | Source:
        """Return images of the size that the network takes."""
        if isinstance(inputs, Files):
            return LoadedFiles(inputs, self.size)
        if isinstance(inputs, Arrays) and inputs.values.ndim in (4, 5):
            outer, inner = inputs.values.shape[:-3], inputs.values.shape[-3:]
            flat = _sized(inputs.values.reshape(-1, *inner), self.size, len(self.mean))
            return flat.reshape(*outer, *flat.shape[1:])
        axes = f" with the axes {tuple(inputs.values.shape)}" if isinstance(inputs, Arrays) else ""
        raise OptionError(f"{self.name} takes images, but these are {inputs.kind}{axes}")

    @abstractmethod
    def patches(self, x: Tensor) -> Tensor:
        """Return the last feature map, of standardized images: (item, feature, row, column)."""

    def tokens(self, x: Tensor) -> Tokens:
        """Return features of patches: (item, patch, feature), or (item, frame, patch, feature)."""
        if x.ndim == 5:
            frames = self.tokens(x.flatten(0, 1))
            shape = *x.shape[:2], *frames.mask.shape[1:]
            return Tokens(frames.values.reshape(*shape, -1), frames.mask.reshape(shape))
        values = self.patches((x - self.mean) / self.std).flatten(2).transpose(1, 2)
        return Tokens(values, torch.ones(values.shape[:2], dtype=torch.bool, device=x.device))


def _sized(x: Tensor, size: int, channels: int) -> Tensor:
    if x.shape[1] not in (1, 3) and x.shape[-1] in (1, 3):
        x = x.permute(0, 3, 1, 2)
    if x.shape[1] == 1 and channels == 3:
        x = x.expand(-1, 3, -1, -1)
    if x.shape[1] != channels:
        raise OptionError(f"images of {x.shape[1]} channels, but the encoder takes {channels}")
    if tuple(x.shape[2:]) != (size, size):
        x = nn.functional.interpolate(x, (size, size), mode="bilinear", antialias=True)
    return x


def encoder_for(
    name: str, inputs: Inputs | None = None, *, frozen: bool | None = None, seed: int = 0
) -> Encoder:
    """Return an encoder.

    Parameters
    ----------
    name
        Its name, with settings in brackets.
    inputs
        Inputs to encode; they decide the number of features, and what `auto` means.
    frozen
        Whether it is not trained; by default pretrained ones are frozen.
    seed
        Random seed of weights that are not pretrained.
    """
    if inputs is not None and inputs.kind == "several":
        raise OptionError("inputs of several kinds have no common network; give one kind")
    if name == "auto":
        name = _auto(inputs)
    settings = encoders.create(_as_spec(name))
    with torch.random.fork_rng([]):
        torch.manual_seed(seed)
        encoder: Encoder = settings.build(inputs)
    return encoder.freeze() if (encoder.pretrained if frozen is None else frozen) else encoder


def encoder_spec(
    name: str, inputs: Inputs | None = None, *, size: int | None = None, pretrained: bool = False
) -> str:
    """Return an encoder's specification with size and weights.

    Parameters
    ----------
    name
        Its name; `auto` becomes the one for the kind of inputs.
    inputs
        Inputs to encode.
    size
        Side of the images, in pixels.
    pretrained
        Whether to load published weights, where random ones are the default.

    Examples
    --------
    >>> encoder_spec("ResNet18", size=64)
    'resnet[depth=18,size=64]'
    """
    encoder, settings = encoders.resolve(_as_spec(_auto(inputs) if name == "auto" else name))
    names = {field.name for field in describe_fields(encoders.find(encoder))}
    if size is not None and "size" in names:
        settings = {"size": size} | settings
    elif size not in (None, _USUAL) and inputs is not None and inputs.kind == "images":
        raise OptionError(
            f"{encoder} takes images of one size only", remedy="leave {} out", img_size=...
        )
    if pretrained and "weights" in names:
        settings = {"weights": "imagenet"} | settings
    inner = ",".join(f"{key}={format_value(value)}" for key, value in sorted(settings.items()))
    return f"{encoder}[{inner}]" if inner else encoder


def _as_spec(name: str) -> str:
    """Return `hf:<model>[…]` as `hf[model='<model>',…]`, and the same for timm."""
    library, colon, model_spec = name.partition(":")
    if not colon or library.lower() not in ("hf", "timm"):
        return name
    model, bracket, settings = model_spec.partition("[")
    return f"{library}[model={model!r}{',' + settings if bracket else ']'}"


def _auto(inputs: Inputs | None) -> str:
    if inputs is None:
        raise OptionError("name an encoder: `auto` needs inputs")
    if isinstance(inputs, Arrays):
        return "resnet18" if inputs.values.ndim in (4, 5) else "identity"
    return "minilm" if inputs.kind == "texts" else "efficientnet-lite0"


E = TypeVar("E", bound=Encoder)


def load_encoder(
    encoder: E, network: nn.Module, weights: str | None, without: str, rename: Any = str
) -> E:
    """Return an encoder, with weights for its network from a file if one is named."""
    if weights is not None:
        file = weights_file(encoder.name.partition("[")[0], weights)
        load_weights(network, file, (without,), rename)
        encoder.pretrained = True
    return encoder


def weights_file(network: str, weights: str) -> str:
    """Return the file of weights of a network; for `imagenet`, the published one."""
    if weights != "imagenet":
        return weights
    name = _FILES[network]
    file = Path(torch.hub.get_dir()) / "checkpoints" / name
    if not file.exists():
        file.parent.mkdir(parents=True, exist_ok=True)
        digest = name.rpartition("-")[2].removesuffix(".pth")  # first digits of its SHA-256
        try:
            torch.hub.download_url_to_file(_PUBLISHED + name, str(file), digest, progress=False)
        except (OSError, RuntimeError) as problem:
            raise OptionError(
                f"{network}: its published weights cannot be downloaded ({problem}); put {name} "
                f"into {file.parent}, or use an encoder whose weights are inside a package"
            ) from None
    return str(file)


def load_weights(
    network: nn.Module, path: str, without: tuple[str, ...] = (), rename: Callable[[str], str] = str
) -> None:
    """Load weights from a file.

    Parameters
    ----------
    network
        The network; changed in place.
    path
        A `.safetensors` file, or one in torch's own format.
    without
        Weights whose names begin so are left out; all others have to fit.
    rename
        Name in the network → name in the file.
    """
    with damage(f"{path}: not a file of weights"):
        weights = load_file(path) if path.endswith(".safetensors") else _tensors(path)
        names = {rename(name): name for name in network.state_dict()}
        state = {names.get(k, k): v for k, v in weights.items() if not k.startswith(without)}
    with damage(f"{path}: weights of another network"):
        network.load_state_dict(state)


def _tensors(path: str) -> Any:
    """Return the tensors of a file in torch's own format."""
    try:
        return torch.load(path, map_location="cpu", weights_only=True)
    except UnpicklingError:  # torch's words advise to run what it holds
        content = "not a file of weights, or one that holds more than tensors"
        raise DataError(f"{path}: {content}; save it as .safetensors") from None
