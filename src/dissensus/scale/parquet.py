"""From Parquet files to labels, without ever holding all of them in memory."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from ..aggregation.classes import MACHINE_MEMORY
from ..base.engine import Local
from .fitting import Disk, ShardedFit, additive, fit_shards
from .parquet_files import chunks_of, find_files, rows_in
from .pieces import FolderCheckpoints, check_pieces, combining, fingerprint, is_address, working
from .shards import ShardEngine, disk_space, shard_rows

_ROW = 120  # bytes for reading and coding a row in memory
_SORTED = 320  # bytes for a row while its shard is sorted
_LARGEST = 8_000_000  # rows of a shard: more save no time
_CHUNK = 2**21
_SMALL = 150_000  # rows that are not worth a second shard

Progress = Callable[[str, int, int], None]  # stage, done, total


def fits(rows: int, memory: int | None = None) -> bool:
    """Return whether so many rows fit into memory, by default into half of the machine's."""
    limit = memory or MACHINE_MEMORY // 2
    return not limit or rows * _ROW <= limit


@dataclass(frozen=True, kw_only=True)
class RowReading:
    """How rows become annotations.

    Parameters
    ----------
    columns
        The columns of items, annotators and labels by role; by default recognised by their names.
    classes
        All classes in order, where they are declared.
    gold
        Known labels, `{item: label}`.
    missing
        What becomes of incomplete rows: `error` or `drop`.
    scale
        The scale of labels, as in `read`; numbers need all annotations in memory.
    """

    columns: Mapping[str, str] | None = None
    classes: Sequence[Any] | None = None
    gold: Mapping[str, str] | None = None
    missing: str = "error"
    scale: str = "auto"


def aggregate_files(
    paths: Sequence[str],
    method: str = "dawid-skene",
    output: str | None = None,
    *,
    reading: RowReading = RowReading(),
    engine: ShardEngine | None = None,
    memory: int | None = None,
    work: str | None = None,
    resume: bool = False,
    seed: int = 0,
    progress: Progress = lambda *_: None,
    on_round: Callable[[int, float], None] = lambda *_: None,
) -> ShardedFit:
    """Write the labels of all items in Parquet files, and return the fit.

    Parameters
    ----------
    paths
        Files, folders, patterns, or addresses of object stores.
    method
        An additive method, as the registry writes it.
    output
        A folder for pieces, or one file; by default standard output, as CSV.
    reading
        How rows become annotations.
    engine
        A cluster; by default the threads of this machine over files in the work folder.
    memory
        Bytes to stay below, roughly; by default half of what the machine has.
    work
        Folder for temporary files, by default next to the output; removed if all went well.
    resume
        Resume interrupted work from its last round.
    seed
        Random seed.
    progress
        Called with stage, done and total.
    on_round
        Called with the number and the objective of every round.
    """
    additive(method)  # before anything is computed
    check_pieces(output)
    memory = memory or MACHINE_MEMORY // 2 or 2**32
    engine = engine or Disk()
    files, on_disk = find_files(paths), isinstance(engine, Disk)
    if not on_disk:  # workers may be elsewhere
        files = tuple(file if is_address(file) else str(Path(file).resolve()) for file in files)
        output = output if output in (None, "-") or is_address(output) else _absolute(output)
        work = _absolute(work) if work else None
    n_shards, chunk_size = _sizes(rows_in(files), memory, engine)
    run = fingerprint(
        files,
        columns=dict(reading.columns or {}),
        classes=list(map(str, reading.classes or ())),
        gold=dict(reading.gold or {}),
        missing=reading.missing,
        scale=reading.scale,
        method=method,
        seed=seed,
        shards=n_shards if on_disk else 0,  # a cluster builds them again
    )
    rows = chunks_of(files, reading.columns, rows=chunk_size, missing=reading.missing)
    with working(work or work_folder(output), run, resume=resume) as folder:
        if isinstance(engine, Disk):
            engine = replace(engine, folder=str(folder))
        with disk_space(folder):
            annotations = shard_rows(
                rows,
                engine,
                n_shards=n_shards,
                classes=reading.classes,
                gold=reading.gold,
                scale=reading.scale,
                progress=progress,
            )
            fit = fit_shards(
                annotations,
                method,
                engine,
                seed=seed,
                checkpoints=FolderCheckpoints(folder),
                memory=memory,
                progress=on_round,
            )
        with disk_space(output or folder), combining(output, folder) as pieces:
            return fit.write(pieces, lambda n_done: progress("labelling", n_done, n_shards))


def _sizes(n_rows: int, memory: int, engine: ShardEngine) -> tuple[int, int]:
    """Return how many shards there are, and the rows of a chunk."""
    on_disk, cores = isinstance(engine, Disk), engine.cores
    here = cores if on_disk else min(cores, Local().cores)
    shard_size = min(max(memory // (here * _SORTED), 2**9), _LARGEST)
    n_shards = max(-(-n_rows // shard_size), cores if n_rows > _SMALL else 1)
    # On a cluster, fewer chunks are fewer tasks.
    most = min(max(shard_size // 2, 2**9), _CHUNK) if on_disk else _LARGEST
    return n_shards, min(most, max(-(-n_rows // cores), 2**9))


def _absolute(path: str) -> str:
    return str(Path(path).absolute()) + ("/" if path.endswith("/") else "")


def work_folder(output: str | None) -> str | None:
    """Return the folder for temporary files next to the output; none for a stream."""
    if output is None or output == "-" or is_address(output):
        return None
    target = Path(output.rstrip("/"))
    return str(target.with_name(f".{target.name}.work"))
