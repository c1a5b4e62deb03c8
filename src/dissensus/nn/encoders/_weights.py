"""Weights from files: safetensors, or torch's own format read without running anything.

`imagenet` stands for the file that torchvision has for a network. It is taken from torch's cache
(`TORCH_HOME`), and fetched only if it is not there.
"""

from __future__ import annotations

from pathlib import Path
from pickle import UnpicklingError

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import nn

from ...errors import DataError, OptionError

__all__ = ["load_weights", "weights_file"]

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


def weights_file(network: str, weights: str) -> str:
    """Return the file of weights that is meant for a network; of `imagenet`, the published one."""
    if weights != "imagenet":
        return weights
    name = _FILES[network]
    kept = Path(torch.hub.get_dir()) / "checkpoints" / name
    if not kept.exists():
        kept.parent.mkdir(parents=True, exist_ok=True)
        mark = name.rpartition("-")[2].removesuffix(".pth")  # how its SHA-256 begins
        try:
            torch.hub.download_url_to_file(_PUBLISHED + name, str(kept), mark, progress=False)
        except (OSError, RuntimeError) as problem:
            raise OptionError(
                f"{network}: its published weights cannot be had ({problem}); put {name} into "
                f"{kept.parent}, or take an encoder whose weights come inside a package"
            ) from None
    return str(kept)


def load_weights(network: nn.Module, path: str, without: tuple[str, ...] = ()) -> None:
    """Fill a network from a file; names that begin so are left out, all others have to fit."""
    try:
        if path.endswith(".safetensors"):
            found = load_file(path)
        else:
            found = torch.load(path, map_location="cpu", weights_only=True)
        network.load_state_dict(
            {name: value for name, value in found.items() if not name.startswith(without)}
        )
    except (OSError, SafetensorError, UnpicklingError, EOFError, AttributeError) as problem:
        first = str(problem).splitlines()[0]
        raise DataError(f"{path}: not a file of weights ({first})") from None
    except RuntimeError as problem:
        first = " ".join(str(problem).split())[:160]
        raise DataError(f"{path}: weights of another network ({first})") from None
