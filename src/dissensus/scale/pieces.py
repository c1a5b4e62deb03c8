"""The work of a run on disk: pieces of labels, and what an interrupted run is resumed from.

Labels are written in pieces and combined into the output: a folder of them, one file, or a stream.
Meanwhile the work folder holds

    run.json        inputs and options; a run with others is not resumed, nor one without any
    rounds-0.npz    parameters and trace after the last round of the first start
    *               shards, see `shards.py`

The operating system holds a lock on it for as long as the process lives, however it ends.
"""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from shutil import move, rmtree
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from ..aggregation.aggregation import pack_params, unpack_params
from ..base.arrays import Floats, Integers
from ..base.files import atomic_file, atomic_folder, check_folder, is_stream, try_lock, write_stdout
from ..base.names import Names
from ..base.storage import damage, load_arrays, with_prefix
from ..errors import DissensusError, OptionError
from ..formats.sources import format_for
from ..method import Fitted

_SINKS: dict[str, Callable[[pl.LazyFrame, Path], None]] = {
    "parquet": lambda rows, path: rows.sink_parquet(path, compression="zstd"),
    "csv": lambda rows, path: rows.sink_csv(path),
    "tsv": lambda rows, path: rows.sink_csv(path, separator="\t"),
    "arrow": lambda rows, path: rows.sink_ipc(path),
    "jsonl": lambda rows, path: rows.sink_ndjson(path),
}

PIECES = ("part-*.parquet",)  # in a folder of labels


def is_address(path: str) -> bool:
    """Return whether a path is an address of an object store."""
    return "://" in path


def one_file(output: str | None) -> str | None:
    """Return the format of an output that is one file; `None` for a folder or a stream."""
    if output is None or output == "-" or is_address(output):
        return None
    name = Path(output).name
    if output.endswith("/") or Path(output).is_dir() or not ("." in name or is_stream(output)):
        return None
    kind, compression = format_for(output)
    if kind not in _SINKS or compression != "uncompressed":
        raise OptionError(
            f"{output}: labels of many items go to a folder, or to a file ending in "
            ".parquet, .csv, .tsv, .arrow or .jsonl"
        )
    return kind


def check_pieces(output: str | None) -> None:
    """Refuse an output that cannot be written, before anything is computed."""
    if one_file(output) is None and output not in (None, "-") and not is_address(str(output)):
        check_folder(str(output), PIECES)


@contextmanager
def combining(output: str | None, work: Path) -> Iterator[str]:
    """Yield a folder for pieces; the output appears only if all went well.

    An object store has no renaming: pieces are written in place, and `_SUCCESS` after them.
    """
    if output is not None and is_address(output):
        yield output.rstrip("/")
        import fsspec

        with fsspec.open(f"{output.rstrip('/')}/_SUCCESS", "wb") as file:
            file.write(b"")
        return
    kind, pieces = one_file(output), work / "pieces"
    rmtree(pieces, ignore_errors=True)
    pieces.mkdir()
    yield str(pieces)
    files = sorted(pieces.glob("part-*.parquet"))
    if kind is not None and output is not None:
        with atomic_file(output) as draft:
            _SINKS[kind](pl.scan_parquet(files), draft)
        return
    if output is not None and output != "-":
        with atomic_folder(output, PIECES) as draft:
            for file in files:
                move(file, draft / file.name)
        return
    for position, file in enumerate(files):
        write_stdout(pl.read_parquet(file).write_csv(include_header=not position).encode())


def write_piece(
    folder: str,
    start: int,
    *,
    items: pl.Series,
    label: Integers,
    posterior: Floats,
    classes: Names,
    identifiable: npt.NDArray[np.bool_],
) -> None:
    """Write the labels of some items, the first of which has the number `start`.

    The confidence is null where it cannot be told.
    """
    undecided = pl.Series(label < 0)
    codes = np.where(label < 0, posterior.argmax(axis=1), label)
    confidence = np.take_along_axis(posterior, codes[:, None], axis=1)[:, 0]
    names = pl.Series(classes.tolist(), dtype=pl.String).gather(codes)
    frame = pl.DataFrame(
        {
            "item": items,
            "label": names.set(undecided, None),
            "confidence": pl.Series(confidence).set(pl.Series(~identifiable), None),
            **{f"p:{name}": posterior[:, k] for k, name in enumerate(classes.tolist())},
        }
    )
    path = f"{folder}/part-{start:015}.parquet"
    if is_address(path):
        frame.write_parquet(path, compression="zstd")
        return
    with atomic_file(path) as draft:
        frame.write_parquet(draft, compression="zstd")


@dataclass(frozen=True)
class FolderCheckpoints:
    """The state after the last round of every start, in a folder."""

    folder: Path

    def load(self, kind: type | None, attempt: int) -> Fitted | None:
        """Return the state after the last round of an attempt; `None` where there is none."""
        path = self._path(attempt)
        if not path.exists():
            return None
        with damage(f"{path}: damaged work", "leave out {} to start again", resume=True):
            arrays = load_arrays(path)
            trace, converged = tuple(arrays.pop("trace").tolist()), bool(arrays.pop("converged"))
            return Fitted(unpack_params(kind, with_prefix("params", arrays)), trace, converged)

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
            raise OptionError(
                "holds something else",
                where=str(path),
                remedy="name another folder with {}",
                work=...,
            )
        if resume and earlier and earlier != run:
            raise OptionError(
                "work on other files, or with other options",
                where=str(path),
                remedy="leave out {} to start again",
                resume=True,
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
