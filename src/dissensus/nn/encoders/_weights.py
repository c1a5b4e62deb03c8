"""Weights from files: safetensors, or torch's own format read without running anything."""

from __future__ import annotations

from pickle import UnpicklingError

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import nn

from ...errors import DataError

__all__ = ["load_weights"]


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
