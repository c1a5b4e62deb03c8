"""Threads of one machine over shards in files, for data that do not fit into memory.

Every round reads the shards one after the other, as many at a time as there are threads.
Interrupted work is resumed: chunks are read again unless all were, and complete shards stay.
`sharded/shard_files.py` describes the files.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from shutil import rmtree
from typing import Any, TypeVar

from ..base.local import Count, Join, Local, Split
from .shard_files import ShardFiles, append, disk_space, write_shard

Result = TypeVar("Result")


@dataclass(frozen=True)
class Disk(Local):
    """Threads of this process over files in a folder.

    Parameters
    ----------
    folder
        Where the files are.
    """

    folder: str = "."

    def each(self, work: Callable[[Any], Result], parts: Sequence[Any]) -> Iterator[Result]:
        """Yield the result of the work for every part, in the order of the parts."""
        with disk_space(self.folder):
            yield from super().each(partial(_loaded, work), parts)

    def exchange(
        self, split: Split, chunks: Sequence[Any], n_shards: int, join: Join, progress: Count
    ) -> list[ShardFiles]:
        """Return the files of the shards joined from pieces of all chunks."""
        folder = Path(self.folder)
        with disk_space(self.folder):
            if not (folder / "spilled").exists():
                rmtree(folder / "spill", ignore_errors=True)
                (folder / "spill").mkdir(parents=True)
                for done, pieces in enumerate(self.each(split, chunks), 1):
                    for position, piece in enumerate(pieces):
                        append(folder / "spill" / f"{position:05}", piece)
                    progress(done)
                (folder / "spilled").touch()
            return list(self.each(partial(write_shard, folder, join), range(n_shards)))

    def number(self, shards: Sequence[ShardFiles], starts: Sequence[int]) -> list[ShardFiles]:
        """Return the shards, each with the number of items before it."""
        return [replace(shard, start=start) for shard, start in zip(shards, starts, strict=True)]


def _loaded(work: Callable[[Any], Result], part: Any) -> Result:
    return work(part.load() if isinstance(part, ShardFiles) else part)
