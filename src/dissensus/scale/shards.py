"""Annotations in shards: coded once, then processed round by round, wherever they are.

On disk a shard is files, and so are the rows it is joined from:

    spill/00012       rows of shard 12 from all chunks, in blocks, until the shard is written
    00012.*.npy       a shard: index, annotator, label, perhaps gold; items in 00012.items
    00012.done        the shard is complete
"""

from __future__ import annotations

import io
import struct
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import polars as pl

from ..answers.annotations import Scale
from ..base.arrays import Array, Integers
from ..base.engine import Count, Engine, Join, Split
from ..base.files import atomic_file, output_errors, reason
from ..base.names import Names
from ..base.storage import damage
from ..errors import DataError, OutputError
from ..formats.scales import in_a_row, kind_of_labels, ordered_by, pair_counts
from .parquet_files import Chunks
from .sharding import Shard, dictionary_of, join, ones, split, survey

_LENGTH = struct.Struct("<Q")
_FULL = ("no space left on device", "quota exceeded")  # how the words of a full disk end


class ShardEngine(Engine, Protocol):
    """An engine that can also bring all rows of an item together."""

    @property
    def cores(self) -> int:
        """How many threads it has to work with."""
        ...

    def exchange(
        self, split: Split, chunks: Sequence[Any], n_shards: int, join: Join, progress: Count
    ) -> Sequence[Any]:
        """Return shards, each joined by `join` from the pieces that `split` gives to it."""
        ...

    def number(self, shards: Sequence[Any], starts: Sequence[int]) -> Sequence[Any]:
        """Return the shards, each with the number of items before it."""
        ...


@dataclass(frozen=True, eq=False)
class ShardedAnnotations:
    """Annotations in shards of items that the engine holds.

    Attributes
    ----------
    shards
        What the engine has in the place of parts.
    labels_per_annotator, labels_per_class
        Number of labels of every annotator and of every class.
    n_items, most_items
        Number of items, and of those in the largest shard.
    """

    shards: Sequence[Any]
    annotators: Names
    classes: Names
    labels_per_annotator: Integers
    labels_per_class: Integers
    n_items: int
    most_items: int
    has_gold: bool = False
    scale: Scale = "nominal"

    def __len__(self) -> int:
        return int(self.labels_per_class.sum())

    @property
    def n_annotators(self) -> int:
        """How many annotators there are."""
        return len(self.annotators)

    @property
    def n_classes(self) -> int:
        """How many classes there are."""
        return len(self.classes)


def shard_rows(
    rows: Chunks,
    engine: ShardEngine,
    *,
    n_shards: int,
    classes: Sequence[Any] | None = None,
    gold: Mapping[str, str] | None = None,
    scale: str = "auto",
    progress: Callable[[str, int, int], None] = lambda *_: None,
) -> ShardedAnnotations:
    """Return the rows of files as annotations in shards.

    Three passes: annotators and classes are listed, rows are assigned to shards by a hash of their
    item, shards are sorted. No process ever holds the names of all items.
    """
    chunks, count = rows.chunks, len(rows.chunks)
    dictionary = dictionary_of(
        engine.add_up(survey, chunks), rows.whole, classes=classes, gold=gold, source=rows.files[0]
    )
    numeric = kind_of_labels(dictionary.classes.tolist()).numeric
    if scale in ("interval", "ratio", "numeric") or (scale == "auto" and numeric):
        raise DataError(
            "numbers need all annotations in memory", remedy="allows for more", memory=...
        ).or_else("makes them classes", scale="nominal")
    shards = engine.exchange(
        partial(split, dictionary=dictionary, n_shards=n_shards),
        chunks,
        n_shards=n_shards,
        join=partial(join, dictionary=dictionary),
        progress=lambda n_done: progress("reading", n_done, count),
    )
    declared: Scale = "ordinal" if scale == "ordinal" else "nominal"
    sizes: list[int] = []
    n_classes = len(dictionary.classes)
    labels: list[Any] = [
        np.zeros(size, np.int64) for size in (len(dictionary.annotators), n_classes)
    ]
    detects = scale == "auto" and in_a_row(dictionary.classes)
    labels.append(np.zeros((n_classes, n_classes) if detects else ()))
    for n_done, size in enumerate(engine.each(partial(_size, with_pairs=detects), shards), 1):
        sizes.append(size[0])
        labels = [total + counts for total, counts in zip(labels, size[1:], strict=True)]
        progress("sorting", n_done, n_shards)
    starts = np.concatenate([[0], np.cumsum(sizes)]).tolist()
    return ShardedAnnotations(
        shards=engine.number(shards, starts[:-1]),
        annotators=dictionary.annotators,
        classes=dictionary.classes,
        labels_per_annotator=labels[0],
        labels_per_class=labels[1],
        n_items=starts[-1],
        most_items=max(sizes),
        has_gold=bool(dictionary.gold),
        scale=ordered_by(labels[2]).scale if detects else declared,
    )


def _size(shard: Shard, with_pairs: bool) -> tuple[int, Integers, Integers, Any]:
    """Return the number of items, of labels by annotator and by class, and pairs of labels."""
    return (
        shard.stop - shard.start,
        np.bincount(shard.annotator, minlength=shard.n_annotators),
        np.bincount(shard.label, minlength=shard.n_classes),
        pair_counts(shard.votes()) if with_pairs else 0,
    )


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
        with damage(f"{self.stem}: a damaged shard", "leave out {} to start again", resume=True):
            index, annotator, label = (
                _array(f"{self.stem}.{name}.npy") for name in ("index", "annotator", "label")
            )
        gold = Path(f"{self.stem}.gold.npy")
        return Shard(
            start=self.start,
            stop=self.start + self.n_items,
            index=index,
            annotator=annotator,
            label=label,
            ones=ones(len(label)),
            n_annotators=self.n_annotators,
            n_classes=self.n_classes,
            gold=_array(gold) if gold.exists() else None,
            items=f"{self.stem}.items",
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
        cause = problem.__context__
        is_full = isinstance(cause, Exception) and reason(cause).endswith(_FULL)
        if problem.message.remedies or not is_full:
            raise
        raise problem.or_else("names a folder on another disk", work=...) from None


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
