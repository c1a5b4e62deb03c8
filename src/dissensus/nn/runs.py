"""The folder of a training: lock, settings, checkpoint, log and curve.

    run.json                the settings and what was learned from
    run.lock                who writes here
    checkpoint.safetensors  where it stands
    log.csv, log.json       one row per epoch, and what the epoch was chosen by
    curve.png               the same as a picture

One run at a time writes: the operating system holds the lock for as long as the process lives,
however it ends. The lock's file also names the run; a run that finds another's name in it (where
a disk knows no locks, or somebody has removed the file) writes nothing more.
"""

from __future__ import annotations

import csv
import json
import os
import secrets
import socket
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from time import monotonic, sleep
from typing import TYPE_CHECKING, Any, NamedTuple

from .._files import atomic_file
from ..errors import DataError, OptionError

if TYPE_CHECKING:
    from .devices import Devices
    from .settings import Training

__all__ = ["Row", "Run", "clear_ended", "opened"]

_PATIENCE = 10.0  # seconds in which a worker without its launcher ends
_FREE = {"epochs", "patience", "save_every", "devices"}  # may differ when a run is resumed


class Row(NamedTuple):
    """One epoch."""

    epoch: int  # from 1
    loss: float
    score: float | None  # by which the epoch is chosen
    lr: float
    seconds: float
    valid_loss: float | None = None  # mean surprise at what the epoch is chosen by


class Run:
    """A folder that this process writes; without a folder, or in other processes, nothing."""

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
        """Yield a place to write to; it takes its name if this run still owns the folder."""
        assert self.folder is not None
        with atomic_file(self.folder / file) as draft:
            yield draft
            self.check()

    def check(self) -> None:
        """Fail if another run has taken the folder."""
        assert self.folder is not None
        try:
            owner = json.loads((self.folder / "run.lock").read_text(encoding="utf-8"))["run"]
        except (OSError, ValueError, KeyError):
            owner = None
        if owner != self.name:
            raise OptionError(f"{self.folder}: another run has taken this folder; this one ends")

    def log(self, rows: Sequence[Row], best: int, words: str, *, ended: bool = False) -> None:
        """Write the log, at most once a second while it goes on."""
        if not self.writes or (not ended and monotonic() - self._logged < 1):
            return
        self._logged = monotonic()
        with self.writing("log.csv") as draft, draft.open("w", newline="", encoding="utf-8") as out:
            writer = csv.writer(out)
            writer.writerow(Row._fields)
            writer.writerows(rows)
        told = {
            "chosen by": words,
            "best epoch": best,
            "ended": ended,
            "epochs": [row._asdict() for row in rows],
        }
        with self.writing("log.json") as draft:
            draft.write_text(json.dumps(told, indent=1), encoding="utf-8")

    def end(self, rows: Sequence[Row], best: int, words: str) -> None:
        """Write the last of the log, and the curve."""
        if not self.writes:
            return
        self.log(rows, best, words, ended=True)
        from .curves import curve_png

        with self.writing("curve.png") as draft:
            draft.write_bytes(curve_png(rows, best, words))


@contextmanager
def opened(
    folder: str | Path | None,
    settings: Training,
    digest: str,
    resume: bool,
    devices: Devices,
    about: str = "",
) -> Iterator[Run]:
    """Yield a folder that is locked for this run, in the first of several processes."""
    if folder is None:
        yield Run(None)
        return
    folder = Path(folder)
    if devices.rank > 0:
        devices.barrier()  # the first process has looked at the folder
        yield Run(folder)
        return
    folder.mkdir(parents=True, exist_ok=True)
    with _locked(folder) as name:
        run = Run(folder, name, writes=True)
        told = {"settings": asdict(settings), "annotations": digest, "about": about}
        _agree(run, told, resume)
        for leftover in folder.glob(".*.part"):
            leftover.unlink()
        devices.barrier()
        yield run


def clear_ended(folder: str | Path) -> None:
    """Make room where a training has ended; one that has not is left, to be resumed."""
    folder = Path(folder)
    try:
        ended = json.loads((folder / "log.json").read_text(encoding="utf-8"))["ended"]
    except (OSError, ValueError, KeyError, TypeError):
        return
    if ended is True:
        (folder / "checkpoint.safetensors").unlink(missing_ok=True)


def _agree(run: Run, told: dict[str, Any], resume: bool) -> None:
    """Write what a new run is about, or compare it with what the old one was."""
    assert run.folder is not None
    path = run.folder / "run.json"
    if run.checkpoint is None:
        with run.writing("run.json") as draft:
            draft.write_text(json.dumps(told, indent=1), encoding="utf-8")
        return
    if not resume:
        raise OptionError(f"{run.folder}: holds a training; resume it, or name a new folder")
    try:
        before = json.loads(path.read_text(encoding="utf-8"))
        settings = before["settings"]
        known = before["annotations"]
    except (OSError, ValueError, KeyError, TypeError) as problem:
        raise DataError(f"{path}: not the settings of a run ({problem}); start again") from None
    if known != told["annotations"]:
        raise OptionError(f"{run.folder}: learned from other annotations; name a new folder")
    if before.get("about", "") != told["about"]:
        raise OptionError(
            f"{run.folder}: a training of {before.get('about')}, not of {told['about']}; "
            "name a new folder"
        )
    for name, value in json.loads(json.dumps(told["settings"])).items():
        if name not in _FREE and settings.get(name) != value:
            raise OptionError(
                f"{run.folder}: began with {name} = {settings.get(name)}, not {value}; "
                "resume it so, or name a new folder"
            )


@contextmanager
def _locked(folder: Path) -> Iterator[str]:
    """Hold the lock of a folder and yield the name of this run."""
    name = secrets.token_hex(8)
    path = folder / "run.lock"
    handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
    try:
        until = monotonic() + _PATIENCE
        while not _lock(handle):
            if monotonic() > until:
                raise OptionError(
                    f"{folder}: another run writes here ({_owner(path)}); end it, or name "
                    "another folder"
                )
            sleep(0.1)
        who = {"run": name, "process": os.getpid(), "machine": socket.gethostname()}
        os.ftruncate(handle, 0)
        os.lseek(handle, 0, os.SEEK_SET)
        os.write(handle, json.dumps(who).encode())
        yield name
    finally:
        os.close(handle)


def _owner(path: Path) -> str:
    try:
        who = json.loads(path.read_text(encoding="utf-8"))
        return f"process {who['process']} on {who['machine']}"
    except (OSError, ValueError, KeyError):
        return "process unknown"


if sys.platform == "win32":
    import msvcrt

    def _lock(handle: int) -> bool:
        """Take the lock if nobody has it; it lies far behind the text, which stays readable."""
        try:
            os.lseek(handle, 2**30, os.SEEK_SET)
            msvcrt.locking(handle, msvcrt.LK_NBLCK, 1)
        except OSError:
            return False
        return True

else:
    import fcntl

    def _lock(handle: int) -> bool:
        """Take the lock if nobody has it."""
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            return False
        return True
