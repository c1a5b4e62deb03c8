"""From Parquet files to labels, without ever holding all of them in memory."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from ..aggregation import MACHINE_MEMORY
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


def aggregate_files(
    paths: Sequence[str],
    method: str = "dawid-skene",
    output: str | None = None,
    *,
    engine: ShardEngine | None = None,
    columns: Mapping[str, str] | None = None,
    classes: Sequence[Any] | None = None,
    gold: Mapping[str, str] | None = None,
    missing: str = "error",
    scale: str = "auto",
    memory: int | None = None,
    threads: int | None = None,
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
    scale
        The scale of labels, as in `read`; numbers need all annotations in memory.
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
    files = find_files(paths)
    if engine is not None:  # whose workers may be elsewhere
        files = tuple(file if is_address(file) else str(Path(file).resolve()) for file in files)
        output = output if output in (None, "-") or is_address(output) else _absolute(output)
        work = _absolute(work) if work else None
    cores = Local(threads).cores if engine is None else engine.cores
    total = rows_in(files)
    shard_size = min(max(memory // (Local(threads).cores * _SORTED), 2**9), _LARGEST)
    n_shards = max(-(-total // shard_size), cores if total > _SMALL else 1)
    most = _LARGEST  # on a cluster, fewer chunks are fewer tasks
    if engine is None:
        most = min(max(shard_size // 2, 2**9), _CHUNK)
    chunk_size = min(most, max(-(-total // cores), 2**9))
    rows = chunks_of(files, columns, rows=chunk_size, missing=missing)
    run = fingerprint(
        files,
        columns=dict(columns or {}),
        classes=list(map(str, classes or ())),
        gold=dict(gold or {}),
        missing=missing,
        scale=scale,
        method=method,
        seed=seed,
        shards=n_shards if engine is None else 0,  # a cluster builds them again
    )
    with working(work or work_folder(output), run, resume=resume) as folder:
        shard_engine = engine or Disk(threads=threads, folder=str(folder))
        with disk_space(folder):
            annotations = shard_rows(
                rows,
                shard_engine,
                n_shards=n_shards,
                classes=classes,
                gold=gold,
                scale=scale,
                progress=progress,
            )
            fit = fit_shards(
                annotations,
                method,
                shard_engine,
                seed=seed,
                checkpoints=FolderCheckpoints(folder),
                memory=memory,
                progress=on_round,
            )
        with disk_space(output or folder), combining(output, folder) as pieces:
            return fit.write(pieces, lambda n_done: progress("labelling", n_done, n_shards))


def _absolute(path: str) -> str:
    return str(Path(path).absolute()) + ("/" if path.endswith("/") else "")


def work_folder(output: str | None) -> str | None:
    """Return the folder for temporary files next to the output; none for a stream."""
    if output is None or output == "-" or is_address(output):
        return None
    target = Path(output.rstrip("/"))
    return str(target.with_name(f".{target.name}.work"))
