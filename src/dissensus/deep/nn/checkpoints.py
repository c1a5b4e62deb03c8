"""Checkpoints: one safetensors file with notes as JSON in its header; nothing is unpickled.

A checkpoint is written to a draft, synced to disk, and renamed, so a run that is killed meanwhile
leaves the last one intact.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import torch
from safetensors import safe_open
from safetensors.torch import save_file
from torch import Tensor, nn

from ...base.storage import State, damage, with_prefix
from ...errors import DataError

_FORMAT = "1"
Network = TypeVar("Network", bound=nn.Module)


class Checkpoint(NamedTuple):
    """Notes that JSON can hold, and tensors by name."""

    notes: dict[str, Any]
    tensors: dict[str, Tensor]


def network_state(network: nn.Module) -> State:
    """Return the weights of a network."""
    tensors = network.state_dict().items()
    return State({}, {name: value.cpu().numpy() for name, value in tensors})


def load_network(network: Network, state: State) -> Network:
    """Return a network with these weights, in evaluation mode."""
    network.load_state_dict({name: torch.tensor(value) for name, value in state.arrays.items()})
    return network.eval()


def save_checkpoint(path: Path, checkpoint: Checkpoint) -> None:
    """Write a checkpoint and sync it to disk."""
    # Copies, since the format does not allow shared memory.
    tensors = {
        name: value.detach().cpu().clone().contiguous()
        for name, value in checkpoint.tensors.items()
    }
    save_file(tensors, path, metadata={"format": _FORMAT, "notes": json.dumps(checkpoint.notes)})
    with path.open("r+b") as file:
        os.fsync(file.fileno())


def load_checkpoint(path: str | Path) -> Checkpoint:
    """Read a checkpoint."""
    with damage(f"{path}: a damaged checkpoint", "; start again"):
        with safe_open(path, framework="pt") as file:
            notes = file.metadata() or {}
            if notes.get("format") != _FORMAT:
                raise DataError(f"{path}: not a checkpoint of this version of dissensus")
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
        return Checkpoint(json.loads(notes["notes"]), tensors)


def optimizer_tensors(optimizers: list[torch.optim.Optimizer]) -> dict[str, Tensor]:
    """Return the states of optimizers, by names such as `0.3.exp_avg`."""
    return {
        f"{position}.{parameter}.{name}": torch.as_tensor(value)
        for position, optimizer in enumerate(optimizers)
        for parameter, state in optimizer.state_dict()["state"].items()
        for name, value in state.items()
        if value is not None
    }


def restore_optimizers(optimizers: list[torch.optim.Optimizer], tensors: dict[str, Tensor]) -> None:
    """Restore the states of optimizers."""
    for position, optimizer in enumerate(optimizers):
        state: dict[int, dict[str, Tensor]] = {}
        for name, value in with_prefix(str(position), tensors).items():
            parameter, _, key = name.partition(".")
            state.setdefault(int(parameter), {})[key] = value
        groups = optimizer.state_dict()["param_groups"]
        optimizer.load_state_dict({"state": state, "param_groups": groups})
