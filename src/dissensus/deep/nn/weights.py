"""Weights from files of other projects: safetensors, or torch's own format.

The latter is a pickle, and is read with `weights_only=True`: tensors are built, all else refused.

`imagenet` is torchvision's file for a network, from torch's cache (`TORCH_HOME`) or downloaded.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from pickle import UnpicklingError
from typing import Any, TypeVar

import torch
from safetensors.torch import load_file
from torch import nn

from ...base.storage import damage
from ...errors import DataError, OptionError
from .encoders_base import Encoder

E = TypeVar("E", bound=Encoder)

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
        kept = {names.get(k, k): v for k, v in weights.items() if not k.startswith(without)}
    with damage(f"{path}: weights of another network"):
        network.load_state_dict(kept)


def _tensors(path: str) -> Any:
    """Return the tensors of a file in torch's own format."""
    try:
        return torch.load(path, map_location="cpu", weights_only=True)
    except UnpicklingError:  # torch's words advise to run what it holds
        what = "not a file of weights, or one that holds more than tensors"
        raise DataError(f"{path}: {what}; save it as .safetensors") from None
