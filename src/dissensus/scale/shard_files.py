"""Shards as files, and the rows they are joined from.

spill/00012       rows of shard 12 from all chunks, in blocks, until the shard is written
00012.*.npy       a shard: index, annotator, label, perhaps gold; items in 00012.items
00012.done        the shard is complete
"""

from __future__ import annotations

import io
import struct
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl

from ..base.files import atomic_file, output_errors
from ..base.arrays import Array
from ..base.storage import damage
from ..errors import OutputError
from .sharding import Shard, ones

_LENGTH = struct.Struct("<Q")


@dataclass(frozen=True)
class ShardFiles:
    """The files of a shard."""

    stem: str
    n_items: int
    n_annotators: int
    n_classes: int
    start: int = 0

    def load(self) -> Shard:
        """Return the shard, without the names of its items."""
        with damage(f"{self.stem}: a damaged shard", "; leave out --resume to start again"):
            index, annotator, label = (
                _array(f"{self.stem}.{name}.npy") for name in ("index", "annotator", "label")
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
            _array(gold) if gold.exists() else None,
            f"{self.stem}.items",
        )


def _array(path: str | Path) -> Array:
    """Return a stored array.

    Python 3.11 counts how deep its parser is, which reads the header, over all threads at once.
    """
    try:
        return np.load(path)
    except SystemError:
        return np.load(path)


@contextmanager
def disk_space(folder: str | Path) -> Iterator[None]:
    """Turn the error of a full disk into one line."""
    try:
        with output_errors(folder):
            yield
    except OutputError as problem:
        if not str(problem).endswith(("no space left on device", "quota exceeded")):
            raise
        raise OutputError(f"{problem}; --work names a folder on another disk") from None


def append(path: Path, piece: pl.DataFrame) -> None:
    """Write rows to the end of a file as a block that begins with its length."""
    if not piece.height:
        return
    block = io.BytesIO()
    piece.write_ipc_stream(block)
    with path.open("ab") as file:
        file.write(_LENGTH.pack(len(block.getbuffer())))
        file.write(block.getbuffer())


def blocks(path: Path) -> Iterator[pl.DataFrame]:
    """Yield the blocks of a file, in the order in which they were written."""
    if not path.exists():
        return
    with path.open("rb") as file:
        while head := file.read(_LENGTH.size):
            yield pl.read_ipc_stream(io.BytesIO(file.read(*_LENGTH.unpack(head))))


def write_shard(
    folder: Path, join: Callable[[Sequence[pl.DataFrame]], Shard], number: int
) -> ShardFiles:
    """Return the files of a shard, joined from its rows unless that was done before."""
    stem, spilled = folder / f"{number:05}", folder / "spill" / f"{number:05}"
    note = folder / f"{number:05}.done"
    if not note.exists():
        shard = join(list(blocks(spilled)))
        wide = np.int32 if len(shard.label) < 2**31 else np.int64
        np.save(f"{stem}.index.npy", shard.index.astype(wide))
        np.save(f"{stem}.annotator.npy", shard.annotator)
        np.save(f"{stem}.label.npy", shard.label)
        if shard.gold is not None:
            np.save(f"{stem}.gold.npy", shard.gold)
        assert not isinstance(shard.items, str)
        shard.items.to_frame("item").write_ipc(f"{stem}.items")
        sizes = (shard.stop - shard.start, shard.n_annotators, shard.n_classes)
        with atomic_file(note) as draft:
            draft.write_text(" ".join(map(str, sizes)), encoding="ascii")
        spilled.unlink(missing_ok=True)
    return ShardFiles(str(stem), *map(int, note.read_text(encoding="ascii").split()))
