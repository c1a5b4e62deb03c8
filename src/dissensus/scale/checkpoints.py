"""The work folder of a run that can be interrupted and resumed.

    run.json        inputs and options; a run with others is not resumed, nor one without any
    rounds-0.npz    parameters and trace after the last round of the first start
    *               shards, see `scale/disk.py`

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

from ..base.files import atomic_file, try_lock
from ..base.storage import damage, load_arrays
from ..aggregation import Fitted
from ..errors import DissensusError, OptionError
from ..result import pack_params, unpack_params


@dataclass(frozen=True)
class FolderCheckpoints:
    """The state after the last round of every start, in a folder."""

    folder: Path

    def load(self, kind: type | None, attempt: int) -> Fitted | None:
        """Return the state after the last round of an attempt; `None` where there is none."""
        path = self._path(attempt)
        if not path.exists():
            return None
        with damage(f"{path}: damaged work", "; leave out --resume to start again"):
            arrays = load_arrays(path)
            trace, converged = tuple(arrays.pop("trace").tolist()), bool(arrays.pop("converged"))
            arrays = {name.removeprefix("params."): value for name, value in arrays.items()}
            return Fitted(unpack_params(kind, arrays), trace, converged)

    def save(self, fitted: Fitted, attempt: int) -> None:
        """Store the state; the earlier one stays until this is complete."""
        params = {f"params.{name}": value for name, value in pack_params(fitted.params).items()}
        with atomic_file(self._path(attempt)) as draft, draft.open("wb") as file:
            np.savez(file, trace=fitted.trace, converged=fitted.converged, **params)

    def _path(self, attempt: int) -> Path:
        return self.folder / f"rounds-{attempt}.npz"


def fingerprint(files: tuple[str, ...], **options: Any) -> dict[str, Any]:
    """Return what identifies a run: its files with size and time, and its options."""
    stats = []
    for file in files:
        try:
            stat = Path(file).stat()
            stats.append([str(Path(file).resolve()), stat.st_size, stat.st_mtime_ns])
        except OSError:
            stats.append([file, 0, 0])
    return json.loads(json.dumps({"files": stats, **options}, default=str))


@contextmanager
def working(folder: str | Path | None, run: Mapping[str, Any], *, resume: bool) -> Iterator[Path]:
    """Yield a folder to work in, perhaps with earlier work; it is removed if all went well."""
    if folder is None:
        with tempfile.TemporaryDirectory(prefix="dissensus-") as temporary:
            yield Path(temporary)
        return
    path = Path(folder)
    path.mkdir(parents=True, exist_ok=True)
    with locked(path):
        note = path / "run.json"
        try:
            earlier = json.loads(note.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            earlier = None
        if earlier is None and any(not _is_ours(file.name) for file in path.iterdir()):
            raise OptionError(f"{path}: holds something else; name another folder with --work")
        if resume and earlier and earlier != run:
            raise OptionError(
                f"{path}: work on other files, or with other options; leave out --resume to start "
                "again"
            )
        if not resume or not earlier:
            _empty(path)
            with atomic_file(note) as draft:
                draft.write_text(json.dumps(run), encoding="utf-8")
        try:
            yield path
        except DissensusError:
            if not any(path.glob("rounds-*")):  # nothing to resume from
                _remove(path)
            raise
        _remove(path)


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Hold a lock on a folder, as long as this process lives."""
    with (folder / "run.lock").open("w", encoding="ascii") as file:
        if not try_lock(file.fileno()):
            raise OptionError(f"{folder}: another run works there")
        file.write(str(os.getpid()))
        yield


def _is_ours(name: str) -> bool:
    """Return whether a file can be there before a run is noted: the lock, a killed run's draft."""
    return name == "run.lock" or (name.startswith(".run.json.") and name.endswith(".part"))


def _remove(folder: Path) -> None:
    _empty(folder)
    with suppress(OSError):
        (folder / "run.lock").unlink()
        folder.rmdir()


def _empty(folder: Path) -> None:
    """Remove all but the lock, so that a run that is killed on the way leaves nothing to resume."""
    note = folder / "run.json"
    if note.exists():
        with atomic_file(note) as draft:
            draft.write_text("{}", encoding="utf-8")
    for path in folder.iterdir():
        if path.is_dir():
            rmtree(path)
        elif path.name not in ("run.lock", note.name):
            path.unlink()
    note.unlink(missing_ok=True)
