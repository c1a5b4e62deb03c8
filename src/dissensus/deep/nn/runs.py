"""The folder of a training run: lock, settings, checkpoint, log and curve.

    run.json                settings and what is trained
    run.lock                the process that writes here
    checkpoint.safetensors  the state of the training
    log.csv, log.json       one row per epoch, and the criterion that chose the epoch
    curve.png               the log as a chart: loss and score by epoch, with the chosen epoch

One run at a time writes: the operating system holds the lock until the process ends. The lock
file also names the run; a run that finds another name in it (on a disk without locks, or after
somebody removed the file) stops writing.

A checkpoint is one safetensors file with notes as JSON in its header; nothing is unpickled. It is
written to a draft, synced to disk, and renamed, so a run that is killed meanwhile leaves the last
one intact.
"""

from __future__ import annotations

import csv
import json
import os
import secrets
import socket
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from time import monotonic, sleep
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import torch
from safetensors import safe_open
from safetensors.torch import save_file
from torch import Tensor, nn

from ...base.files import atomic_file, try_lock
from ...base.storage import State, damage, with_prefix
from ...errors import DataError, OptionError

if TYPE_CHECKING:
    from .devices import Devices
    from .settings import Training

_FORMAT = "1"  # of checkpoints
_COLOUR = "#2166ac"  # of curves
_PATIENCE = 10.0  # seconds in which a worker without its launcher ends
_FREE = {"epochs", "patience", "save_every", "devices"}  # may differ when a run is resumed


class Row(NamedTuple):
    """One epoch."""

    epoch: int  # from 1
    loss: float
    score: float | None  # by which the epoch is chosen
    lr: float
    seconds: float
    valid_loss: float | None = None  # mean negative log-likelihood on the validation split


class Run:
    """A folder that this process writes to; without a folder, or in other processes, nothing."""

    def __init__(self, folder: Path | None, name: str = "", *, writes: bool = False) -> None:
        self.folder, self.name, self.writes = folder, name, writes
        self._logged = 0.0

    @property
    def checkpoint(self) -> Path | None:
        """The checkpoint, where there is one."""
        path = None if self.folder is None else self.folder / "checkpoint.safetensors"
        return path if path is not None and path.exists() else None

    @contextmanager
    def writing(self, file: str) -> Iterator[Path]:
        """Yield a draft that becomes the file if this run still owns the folder."""
        assert self.folder is not None
        with atomic_file(self.folder / file) as draft:
            yield draft
            if _owner(self.folder).get("run") != self.name:
                raise self._refusal("another run has taken this folder; this one ends")

    def log(self, rows: Sequence[Row], best: int, chosen_by: str, *, ended: bool = False) -> None:
        """Write the log, at most once a second before the end."""
        if not self.writes or (not ended and monotonic() - self._logged < 1):
            return
        self._logged = monotonic()
        with self.writing("log.csv") as draft, draft.open("w", newline="", encoding="utf-8") as out:
            csv.writer(out).writerows([Row._fields, *rows])
        log = {"chosen by": chosen_by, "best epoch": best, "ended": ended}
        self._write_json("log.json", log | {"epochs": [row._asdict() for row in rows]})

    def end(self, rows: Sequence[Row], best: int, chosen_by: str) -> None:
        """Write the last of the log, and the curve."""
        if not self.writes:
            return
        self.log(rows, best, chosen_by, ended=True)
        with self.writing("curve.png") as draft:
            draft.write_bytes(curve_png(rows, best, chosen_by))

    def describe(self, description: dict[str, Any], resume: bool) -> None:
        """Write what a new run trains, or compare it with the run that is resumed."""
        assert self.folder is not None
        if self.checkpoint is None:
            self._write_json("run.json", description)
            return
        if not resume:
            raise self._refusal("holds a training; resume it, or name a new folder")
        path = self.folder / "run.json"
        with damage(f"{path}: not the settings of a run", "; start again"):
            previous = json.loads(path.read_text(encoding="utf-8"))
            settings, annotations = dict(previous["settings"]), previous["annotations"]
            data = dict(previous.get("data", description["data"]))  # earlier versions have none
        if annotations != description["annotations"]:
            raise self._refusal("learned from other annotations; name a new folder")
        for name in sorted({*data, *description["data"]}):
            if data.get(name) != description["data"].get(name):
                raise self._refusal(f"learned from other {name}; name a new folder")
        if previous.get("about") and previous["about"] != description["about"]:
            raise self._refusal(
                f"a training of {previous['about']}, not of {description['about']}; name a new "
                "folder"
            )
        for name, value in json.loads(json.dumps(description["settings"])).items():
            if name not in _FREE and settings.get(name) != value:
                raise self._refusal(
                    f"began with {name} = {settings.get(name)}, not {value}; resume it so, or "
                    "name a new folder"
                )

    def _refusal(self, message: str) -> OptionError:
        return OptionError(message, where=str(self.folder))

    def _write_json(self, file: str, content: dict[str, Any]) -> None:
        with self.writing(file) as draft:
            draft.write_text(json.dumps(content, indent=1), encoding="utf-8")


@contextmanager
def open_run(
    folder: str | Path | None,
    settings: Training,
    digest: str,
    *,
    resume: bool,
    devices: Devices,
    about: str = "",
    data: Mapping[str, str] | None = None,
) -> Iterator[Run]:
    """Yield a folder that is locked for this run, in the first of several processes."""
    if folder is None:
        yield Run(None)
        return
    folder = Path(folder)
    if devices.rank > 0:
        devices.barrier()  # the first process has checked the folder
        yield Run(folder)
        return
    folder.mkdir(parents=True, exist_ok=True)
    with _locked(folder) as name:
        run = Run(folder, name, writes=True)
        description = {"settings": asdict(settings), "annotations": digest, "about": about}
        run.describe({**description, "data": dict(data or {})}, resume)
        for leftover in folder.glob(".*.part"):
            leftover.unlink()
        devices.barrier()
        yield run


def clear_ended(folder: str | Path) -> None:
    """Remove the checkpoint of a training that has ended; others can still be resumed."""
    folder = Path(folder)
    try:
        ended = json.loads((folder / "log.json").read_text(encoding="utf-8"))["ended"]
    except (OSError, ValueError, KeyError, TypeError):
        return
    if ended is True:
        (folder / "checkpoint.safetensors").unlink(missing_ok=True)


@contextmanager
def _locked(folder: Path) -> Iterator[str]:
    """Hold the lock of a folder and yield the name of this run."""
    with (folder / "run.lock").open("a+", encoding="utf-8") as file:
        until = monotonic() + _PATIENCE
        while not try_lock(file.fileno()):
            if monotonic() > until:
                owner = _owner(folder)
                process = f"process {owner.get('process', 'unknown')} on {owner.get('machine')}"
                raise OptionError(
                    f"another run writes here ({process}); end it, or name another folder",
                    where=str(folder),
                )
            sleep(0.1)
        name = secrets.token_hex(8)
        file.truncate(0)
        json.dump({"run": name, "process": os.getpid(), "machine": socket.gethostname()}, file)
        file.flush()
        yield name


def _owner(folder: Path) -> dict[str, Any]:
    """Return what the lock file says of the run that owns a folder."""
    try:
        owner: dict[str, Any] = json.loads((folder / "run.lock").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return owner


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
                raise DataError("not a checkpoint of this version of dissensus", where=str(path))
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


def curve_png(rows: Sequence[Row], best: int, chosen_by: str) -> bytes:
    """Return the curve of a training as PNG."""
    import vl_convert

    panels = [_panel(rows, "loss", "training loss", best)]
    if rows and rows[0].score is not None:
        panels.append(_panel(rows, "score", chosen_by.split(" of ")[0].split(" on ")[0], best))
    spec = {
        "$schema": "https://vega.github.io/schema/vega-lite/v5.json",
        "background": "white",
        "title": {"text": "Training", "subtitle": f"chosen by {chosen_by}", "anchor": "start"},
        "hconcat": panels,
    }
    return vl_convert.vegalite_to_png(spec, scale=2)


def _panel(rows: Sequence[Row], field: str, title: str, best: int) -> dict[str, Any]:
    values = [{"epoch": row.epoch, field: getattr(row, field)} for row in rows]
    line = {
        "data": {"values": values},
        "mark": {"type": "line", "color": _COLOUR, "point": len(rows) < 3},
        "encoding": {
            "x": {"field": "epoch", "type": "quantitative", "axis": {"tickMinStep": 1}},
            "y": {"field": field, "type": "quantitative", "title": title, "scale": {"zero": False}},
        },
    }
    best_epoch = {
        "data": {"values": [{"epoch": best}]},
        "mark": {"type": "rule", "strokeDash": [6, 4]},
        "encoding": {"x": {"field": "epoch", "type": "quantitative"}},
    }
    return {"width": 320, "height": 240, "layer": [line, best_epoch]}
