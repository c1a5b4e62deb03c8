"""Threads of one machine over parts that are files: what does not fit into memory.

    spill/00012       rows of shard 12 from all chunks, in blocks, until the shard is made
    spilled           all chunks have been read
    00012.*.npy       a shard: index, annotator, label, perhaps gold; items in 00012.items
    00012.made        a shard is whole

Every round reads the shards one after the other, as many at a time as there are threads. Work
that was ended is taken up where it was: chunks are read again unless all were, shards that are
whole stay.
"""

from __future__ import annotations

import errno
import io
import os
import struct
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from shutil import rmtree
from typing import Any, TypeVar

import numpy as np
import polars as pl

from ..errors import DataError
from ..io.sharding import Shard, ones
from .local import Local

__all__ = ["Disk", "Stored"]

Result = TypeVar("Result")
_LENGTH = struct.Struct("<Q")


@dataclass(frozen=True)
class Stored:
    """A shard in files."""

    stem: str
    n_items: int
    n_annotators: int
    n_classes: int
    start: int = 0

    def load(self) -> Shard:
        """Return the shard, without the names of its items."""
        index, annotator, label = (
            np.load(f"{self.stem}.{name}.npy") for name in ("index", "annotator", "label")
        )
        gold = Path(f"{self.stem}.gold.npy")
        return Shard(
            self.start,
            self.start + self.n_items,
            index,
            annotator,
            label,
            ones(len(label)),
            self.n_annotators,
            self.n_classes,
            np.load(gold) if gold.exists() else None,
            f"{self.stem}.items",
        )


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
        split: Callable[[Any], Sequence[pl.DataFrame]],
        chunks: Sequence[Any],
        n_shards: int,
        join: Callable[[Sequence[pl.DataFrame]], Shard],
        tell: Callable[[int], None],
    ) -> list[Stored]:
        """Return the shards that pieces of all chunks make."""
        folder = Path(self.folder)
        with room(self.folder):
            if not (folder / "spilled").exists():
                rmtree(folder / "spill", ignore_errors=True)
                (folder / "spill").mkdir(parents=True)
                for done, pieces in enumerate(self.each(split, chunks), 1):
                    for place, piece in enumerate(pieces):
                        _append(folder / "spill" / f"{place:05}", piece)
                    tell(done)
                (folder / "spilled").touch()
            return list(self.each(partial(_made, folder, join), range(n_shards)))

    def place(self, shards: Sequence[Stored], starts: Sequence[int]) -> list[Stored]:
        """Return the shards, each with the number of items before it."""
        return [replace(shard, start=start) for shard, start in zip(shards, starts, strict=True)]


@contextmanager
def room(folder: str | Path) -> Iterator[None]:
    """Tell of a full disk in one line."""
    try:
        yield
    except (OSError, pl.exceptions.ComputeError) as problem:
        full = getattr(problem, "errno", None) in (errno.ENOSPC, errno.EDQUOT)
        if full or "No space left" in str(problem):
            raise DataError(
                f"{folder}: no space left on this disk; --work names a folder on another"
            ) from None
        raise


def _loaded(work: Callable[[Any], Result], part: Any) -> Result:
    return work(part.load() if isinstance(part, Stored) else part)


def _append(path: Path, piece: pl.DataFrame) -> None:
    """Write rows to the end of a file as a block that begins with its length."""
    if not piece.height:
        return
    block = io.BytesIO()
    piece.write_ipc_stream(block)
    with path.open("ab") as file:
        file.write(_LENGTH.pack(block.tell()))
        file.write(block.getbuffer())


def _blocks(path: Path) -> Iterator[pl.DataFrame]:
    if not path.exists():
        return
    with path.open("rb") as file:
        while head := file.read(_LENGTH.size):
            yield pl.read_ipc_stream(io.BytesIO(file.read(*_LENGTH.unpack(head))))


def _made(folder: Path, join: Callable[[Sequence[pl.DataFrame]], Shard], place: int) -> Stored:
    """Return a shard in files, made from its rows unless it was made before."""
    stem, spilled = folder / f"{place:05}", folder / "spill" / f"{place:05}"
    note = folder / f"{place:05}.made"
    if not note.exists():
        shard = join(list(_blocks(spilled)))
        wide = np.int32 if len(shard.label) < 2**31 else np.int64
        np.save(f"{stem}.index.npy", shard.index.astype(wide))
        np.save(f"{stem}.annotator.npy", shard.annotator)
        np.save(f"{stem}.label.npy", shard.label)
        if shard.gold is not None:
            np.save(f"{stem}.gold.npy", shard.gold)
        assert not isinstance(shard.items, str)
        shard.items.to_frame("item").write_ipc(f"{stem}.items")
        sizes = (shard.stop - shard.start, shard.n_annotators, shard.n_classes)
        draft = Path(f"{stem}.making")
        draft.write_text(" ".join(map(str, sizes)), encoding="ascii")
        os.replace(draft, note)  # noqa: PTH105
        spilled.unlink(missing_ok=True)
    return Stored(str(stem), *map(int, note.read_text(encoding="ascii").split()))
