"""From Parquet files to labels, without ever holding all of them."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from .._files import atomic_folder
from ..aggregation import machine_memory
from ..engine import Local
from ..engine.disk import Disk
from ..result import Table, pack_params
from ..sharded.chunks import chunks_of, find_files, rows_in
from ..sharded.pieces import gathering, is_address, one_file, write_columns
from ..sharded.shard_files import room
from .coding import Exchange, code_files
from .fitting import Outcome, additive, fit_shards
from .work import Rounds, fingerprint, working

__all__ = ["Labelled", "aggregate_files", "fits", "work_folder"]

_ROW = 120  # bytes that reading and coding a row takes where all are in memory
_SORTED = 320  # bytes that a row takes while its shard is sorted
_LARGEST = 8_000_000  # rows of a shard: more win no time
_CHUNK = 2**21
_SMALL = 150_000  # rows that are not worth a second shard

Progress = Callable[[str, int, int], None]  # what is done, how much of it, of how much


class Labelled(NamedTuple):
    """What was learned, and the table of annotators."""

    outcome: Outcome
    annotators: Table

    def save(self, folder: str | Path) -> None:
        """Write what was learned to a folder: annotators as Parquet, parameters, and the trace."""
        one = self.outcome
        told = {"method": one.method, "trace": one.trace, "converged": one.converged}
        told |= {"n_items": one.annotations.n_items, "n_labels": len(one.annotations)}
        told |= {"classes": one.annotations.classes.tolist()}
        with atomic_folder(folder) as target:
            write_columns(self.annotators, target / "annotators.parquet")
            np.savez(target / "params.npz", **pack_params(one.params))
            (target / "result.json").write_text(json.dumps(told), encoding="utf-8")


def fits(rows: int, memory: int | None = None) -> bool:
    """Return whether so many rows can be read and coded in memory; by default half of it all."""
    limit = memory or machine_memory() // 2
    return not limit or rows * _ROW <= limit


def aggregate_files(
    paths: Sequence[str],
    method: str = "dawid-skene",
    output: str | None = None,
    *,
    engine: Exchange | None = None,
    columns: Mapping[str, str] | None = None,
    classes: Sequence[Any] | None = None,
    gold: Mapping[str, str] | None = None,
    missing: str = "error",
    memory: int | None = None,
    threads: int | None = None,
    work: str | None = None,
    resume: bool = False,
    seed: int = 0,
    progress: Progress = lambda *_: None,
    on_round: Callable[[int, float], None] = lambda *_: None,
) -> Labelled:
    """Write the labels of all items in Parquet files, and return what was learned.

    Parameters
    ----------
    paths
        Files, folders, patterns, or addresses of object stores.
    method
        An additive method, as the registry writes it.
    output
        A folder for pieces, or one file; by default standard output, as CSV.
    engine
        A cluster; by default the threads of this machine over files in the work folder.
    memory
        Bytes to stay below, roughly; by default half of what the machine has.
    work
        Folder for what is worked on, by default beside the output. It goes when all went well.
    resume
        Take up work that was ended, from its last round.
    """
    additive(method)  # before anything is computed
    one_file(output)
    memory = memory or machine_memory() // 2 or 2**32
    files = find_files(paths)
    asked: dict[str, Any] = {
        "columns": dict(columns or {}),
        "classes": list(map(str, classes or ())),
    }
    asked |= {"gold": dict(gold or {}), "missing": missing, "method": method, "seed": seed}
    cores = Local(threads).cores if engine is None else engine.cores
    total = rows_in(files)
    sizes = _sizes(memory, Local(threads).cores)
    n_shards = max(-(-total // sizes.shard), cores if total > _SMALL else 1)
    most = sizes.chunk if engine is None else _LARGEST  # fewer chunks are fewer tasks
    chunk = min(most, max(-(-total // cores), 2**9))
    rows = chunks_of(files, columns, rows=chunk, missing=missing)
    asked |= {"shards": n_shards if engine is None else 0}  # a cluster makes them anew
    with working(
        work or work_folder(output), fingerprint(files, **asked), resume=resume
    ) as position:
        folder = position[0]
        here = engine or Disk(threads=threads, folder=str(folder))
        with room(folder):
            annotations = code_files(
                rows, here, n_shards=n_shards, classes=classes, gold=gold, progress=progress
            )
            outcome = fit_shards(
                annotations,
                method,
                here,
                seed=seed,
                kept=Rounds(folder),
                memory=memory,
                progress=on_round,
            )
        with room(output or folder), gathering(output, folder) as pieces:
            table = outcome.write(pieces, lambda done: progress("labelling", done, n_shards))
    return Labelled(outcome, table)


class _Sizes(NamedTuple):
    chunk: int
    shard: int


def _sizes(memory: int, threads: int) -> _Sizes:
    """Return how many rows to read, and to sort, at a time."""
    shard = min(max(memory // (threads * _SORTED), 2**9), _LARGEST)
    return _Sizes(min(max(shard // 2, 2**9), _CHUNK), shard)


def work_folder(output: str | None) -> str | None:
    """Return the folder beside the output in which work is kept; nothing beside a stream."""
    if output is None or output == "-" or is_address(output):
        return None
    target = Path(output.rstrip("/"))
    return str(target.with_name(f".{target.name}.work"))
