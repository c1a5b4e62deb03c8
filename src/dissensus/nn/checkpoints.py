"""Checkpoints: one safetensors file with the notes as JSON in its head; nothing is unpickled.

One file cannot be half of another. It is written beside its place, pushed to the disk, and then
takes the name of the last one, so a run that is killed in the middle leaves the last one whole.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any, NamedTuple

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor

from .._serialization import with_prefix
from ..errors import DataError

__all__ = [
    "Checkpoint",
    "load_checkpoint",
    "optimizer_tensors",
    "restore_optimizers",
    "save_checkpoint",
]

_FORMAT = "1"


class Checkpoint(NamedTuple):
    """What a file holds: tensors by name, and what JSON can say."""

    notes: dict[str, Any]
    tensors: dict[str, Tensor]


def save_checkpoint(path: Path, kept: Checkpoint) -> None:
    """Write a checkpoint and wait until the disk has it."""
    # Weights that two layers share are one memory, which the format does not allow: copies.
    tensors = {
        name: value.detach().cpu().clone().contiguous() for name, value in kept.tensors.items()
    }
    save_file(tensors, path, metadata={"format": _FORMAT, "notes": json.dumps(kept.notes)})
    with path.open("r+b") as file:
        os.fsync(file.fileno())


def load_checkpoint(path: str | Path) -> Checkpoint:
    """Read a checkpoint."""
    try:
        with safe_open(path, framework="pt") as file:
            notes = file.metadata() or {}
            if notes.get("format") != _FORMAT:
                raise DataError(f"{path}: not a checkpoint of dissensus, or of another version")
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
        return Checkpoint(json.loads(notes["notes"]), tensors)
    except (OSError, SafetensorError, KeyError, json.JSONDecodeError) as problem:
        raise DataError(f"{path}: not a whole checkpoint ({problem}); start again") from None


def optimizer_tensors(optimizers: list[torch.optim.Optimizer]) -> dict[str, Tensor]:
    """Return what optimisers remember, by names such as `0.3.exp_avg`."""
    return {
        f"{position}.{parameter}.{name}": torch.as_tensor(value)
        for position, optimizer in enumerate(optimizers)
        for parameter, kept in optimizer.state_dict()["state"].items()
        for name, value in kept.items()
        if value is not None
    }


def restore_optimizers(optimizers: list[torch.optim.Optimizer], tensors: dict[str, Tensor]) -> None:
    """Give optimisers back what they remembered."""
    for position, optimizer in enumerate(optimizers):
        state: dict[int, dict[str, Tensor]] = {}
        for name, value in with_prefix(str(position), tensors).items():
            parameter, _, what = name.partition(".")
            state.setdefault(int(parameter), {})[what] = value
        groups = optimizer.state_dict()["param_groups"]
        optimizer.load_state_dict({"state": state, "param_groups": groups})
