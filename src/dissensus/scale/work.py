"""The folder of work that may be ended and taken up again: whose it is, and how far it came.

    run.json        what is worked on; work on something else is not taken up
    rounds-0.npz    parameters and trace after the last round of the first start
    *               shards, see `engine/disk.py`

The operating system holds a lock for as long as the process lives, however it ends.
"""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from shutil import rmtree
from typing import Any

import numpy as np

from .._files import atomic_file
from ..aggregation import Fitted
from ..errors import DissensusError, OptionError
from ..result import pack_params, unpack_params

__all__ = ["Rounds", "fingerprint", "locked", "working"]


@dataclass(frozen=True)
class Rounds:
    """The last round of every start, in a folder."""

    folder: Path

    def load(self, kind: type | None, attempt: int) -> Fitted | None:
        """Return what was found until the last round of an attempt; `None` where nothing was."""
        path = self._path(attempt)
        if not path.exists():
            return None
        with np.load(path, allow_pickle=False) as stored:
            arrays = dict(stored)
        trace, converged = tuple(arrays.pop("trace").tolist()), bool(arrays.pop("converged"))
        arrays = {name.removeprefix("params."): value for name, value in arrays.items()}
        return Fitted(unpack_params(kind, arrays), trace, converged)

    def save(self, found: Fitted, attempt: int) -> None:
        """Keep what was found so far; what was kept before stands until this is whole."""
        learned = {f"params.{name}": value for name, value in pack_params(found.params).items()}
        with atomic_file(self._path(attempt)) as draft, draft.open("wb") as file:
            np.savez(file, trace=found.trace, converged=found.converged, **learned)

    def _path(self, attempt: int) -> Path:
        return self.folder / f"rounds-{attempt}.npz"


def fingerprint(files: tuple[str, ...], **told: Any) -> dict[str, Any]:
    """Return what tells one piece of work from another: files as they are, and what was asked."""
    seen = []
    for file in files:
        with suppress(OSError):
            found = Path(file).stat()
            seen.append([str(Path(file).resolve()), found.st_size, found.st_mtime_ns])
            continue
        seen.append([file, 0, 0])
    return json.loads(json.dumps({"files": seen, **told}, default=str))


@contextmanager
def working(
    folder: str | Path | None, what: Mapping[str, Any], *, resume: bool
) -> Iterator[tuple[Path, bool]]:
    """Yield a folder to work in and whether it holds earlier work; it goes when all went well."""
    if folder is None:
        with tempfile.TemporaryDirectory(prefix="dissensus-") as made:
            yield Path(made), False
        return
    path = Path(folder)
    path.mkdir(parents=True, exist_ok=True)
    with locked(path):
        note = path / "run.json"
        earlier = _read(note)
        if earlier is None and any(file.name != "run.lock" for file in path.iterdir()):
            raise OptionError(f"{path}: holds something else; name another folder with --work")
        if resume and earlier is not None and earlier != what:
            raise OptionError(
                f"{path}: work on other files, or with other options; leave out --resume to begin "
                "anew"
            )
        if not resume or earlier is None:
            _empty(path)
            with atomic_file(note) as draft:
                draft.write_text(json.dumps(what), encoding="utf-8")
        try:
            yield path, resume and earlier is not None
        except DissensusError:
            if not any(path.glob("rounds-*")):  # nothing that would be worth its room
                _remove(path)
            raise
        _remove(path)


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Hold a folder, as long as this process lives."""
    try:
        import fcntl
    except ImportError:  # where the system knows no such locks
        yield
        return
    with (folder / "run.lock").open("w", encoding="ascii") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise OptionError(f"{folder}: another run works there") from None
        file.write(str(os.getpid()))
        yield


def _read(note: Path) -> Any:
    try:
        return json.loads(note.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None


def _remove(folder: Path) -> None:
    _empty(folder)
    with suppress(OSError):
        (folder / "run.lock").unlink()
        folder.rmdir()


def _empty(folder: Path) -> None:
    """Remove all but the lock."""
    for path in folder.iterdir():
        if path.is_dir():
            rmtree(path)
        elif path.name != "run.lock":
            path.unlink()
