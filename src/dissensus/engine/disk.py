"""Threads of one machine over parts that are files: what does not fit into memory.

Every round reads the shards one after the other, as many at a time as there are threads. Work
that was ended is taken up where it was: chunks are read again unless all were, and shards that
are whole stay. `io/shard_files.py` says what lies where.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from shutil import rmtree
from typing import Any, TypeVar

from ..sharded.shard_files import Stored, append, made, room
from .local import Local

__all__ = ["Disk"]

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
        """Yield what the work makes of every part, in the order of the parts."""
        with room(self.folder):
            yield from super().each(partial(_loaded, work), parts)

    def exchange(
        self,
        split: Callable[[Any], Sequence[Any]],
        chunks: Sequence[Any],
        n_shards: int,
        join: Callable[[Sequence[Any]], Any],
        progress: Callable[[int], None],
    ) -> list[Stored]:
        """Return the shards that pieces of all chunks make."""
        folder = Path(self.folder)
        with room(self.folder):
            if not (folder / "spilled").exists():
                rmtree(folder / "spill", ignore_errors=True)
                (folder / "spill").mkdir(parents=True)
                for done, pieces in enumerate(self.each(split, chunks), 1):
                    for position, piece in enumerate(pieces):
                        append(folder / "spill" / f"{position:05}", piece)
                    progress(done)
                (folder / "spilled").touch()
            return list(self.each(partial(made, folder, join), range(n_shards)))

    def position(self, shards: Sequence[Stored], starts: Sequence[int]) -> list[Stored]:
        """Return the shards, each with the number of items before it."""
        return [replace(shard, start=start) for shard, start in zip(shards, starts, strict=True)]


def _loaded(work: Callable[[Any], Result], part: Any) -> Result:
    return work(part.load() if isinstance(part, Stored) else part)
