"""Features on disk, found by content: nothing is computed twice, in whatever company it comes.

    <folder>/<encoder and kind>/<shard>/   notes.json   encoder, kind, items, axes of a row
                                           keys.npy     (item): hashes of content
                                           sizes.npy    (item): rows of an item
                                           values.bin   (row of any item, …): 32-bit floats

An item has one row, its vector, or one for every token or frame. Shards are never changed: those
of several commands stand side by side. One that cannot be read counts as absent.
"""

from __future__ import annotations

import json
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from math import prod
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from .arrays import Array, Integers
from .files import atomic_folder, cache_folder

KEY = "S16"  # a hash of content
_FILES = ("notes.json", "keys.npy", "sizes.npy", "values.bin")
Rows = npt.NDArray[np.float32]


class StoreSize(NamedTuple):
    """What the cache holds of one encoder."""

    encoder: str
    kind: str  # vectors or tokens
    n_items: int
    n_bytes: int


class _Shard(NamedTuple):
    keys: Array  # (item)
    start: Integers  # (item): its first row
    size: Integers  # (item): its rows
    values: Any  # (row, …): a memory map


class StoredRows:
    """Rows of some items, padded with zeros to the longest: (item, row, …), read when indexed."""

    def __init__(self, shards: list[_Shard], shard: Integers, position: Integers) -> None:
        self.values = [part.values for part in shards]
        self.shard = shard  # (item)
        self.start, self.size = np.zeros((2, len(shard)), np.int64)
        for index, part in enumerate(shards):
            in_shard = shard == index
            self.start[in_shard], self.size[in_shard] = (
                column[position[in_shard]] for column in (part.start, part.size)
            )
        # Other shards may hold other shapes: images have patches, videos frames of patches.
        inner = shards[int(shard[0])].values.shape[1:] if len(shard) else (0,)
        self.shape = len(shard), int(self.size.max(initial=0)), *inner
        self.ndim = len(self.shape)

    def __len__(self) -> int:
        return len(self.shard)

    def __getitem__(self, items: Any, /) -> Rows:
        """Return the rows of items, or with a second index, `[items, :n]`, the first of them."""
        items, row_slice = items if isinstance(items, tuple) else (items, slice(None))
        rows, n_rows = np.arange(len(self))[items], np.arange(self.shape[1])[row_slice].size
        shape = n_rows, *self.shape[2:]
        out = np.zeros((rows.size, *shape), np.float32)
        for index, item in enumerate(rows.ravel().tolist()):
            start, size = self.start[item], min(self.size[item], n_rows)
            out[index, :size] = self.values[self.shard[item]][start : start + size]
        return out.reshape(*rows.shape, *shape)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        return self[:] if dtype is None else self[:].astype(dtype)

    @property
    def mask(self) -> npt.NDArray[np.bool_]:
        """Whether a row is no padding: the same axes without the last."""
        filled = np.arange(self.shape[1]) < self.size[:, None]
        inner = (1,) * (self.ndim - 3)
        return np.broadcast_to(filled.reshape(*filled.shape, *inner), self.shape[:-1])


class FeatureStore:
    """The features of one encoder, of one kind."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def shards(self) -> list[_Shard]:
        """Return what is there; in the order of names."""
        folders = sorted(self.folder.iterdir()) if self.folder.is_dir() else []
        return [shard for folder in folders if (shard := _open(folder)) is not None]

    def missing(self, keys: Array) -> Integers:
        """Return the first item of every content that is not there."""
        unique, positions = np.unique(keys, return_index=True)
        stored = [shard.keys for shard in self.shards()]
        return positions[~np.isin(unique, np.concatenate(stored))] if stored else positions

    def find(self, keys: Array) -> StoredRows:
        """Return the rows of items, all of which are there."""
        shards = self.shards()
        if not len(keys):
            return StoredRows(shards, *np.zeros((2, 0), np.int64))
        all_keys = np.concatenate([shard.keys for shard in shards])
        size = np.array([len(shard.keys) for shard in shards])
        order = np.argsort(all_keys, kind="stable")
        positions = order[np.searchsorted(all_keys, keys, sorter=order)]
        shard = np.repeat(np.arange(len(shards)), size)[positions]
        return StoredRows(shards, shard, positions - (np.cumsum(size) - size)[shard])

    @contextmanager
    def writing(self, encoder: str, kind: str) -> Iterator[_Writer]:
        """Yield a writer of a new shard, which is there afterwards."""
        with atomic_folder(self.folder / secrets.token_hex(8), _FILES) as draft:
            writer = _Writer(draft)
            try:
                yield writer
            finally:
                writer.file.close()
            writer.end({"encoder": encoder, "kind": kind})


class _Writer:
    """A shard while it is written."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.file = (folder / "values.bin").open("wb")
        self.keys: list[Array] = []
        self.sizes: list[int] = []
        self.inner: tuple[int, ...] = (0,)

    def add(self, keys: Array, rows: list[Rows]) -> None:
        """Add items: the rows of each, (row, …)."""
        self.keys.append(keys)
        for item_rows in rows:
            self.sizes.append(len(item_rows))
            self.inner = item_rows.shape[1:]
            self.file.write(np.ascontiguousarray(item_rows, dtype="<f4").data)

    def end(self, notes: dict[str, Any]) -> None:
        """Write everything but the values."""
        np.save(self.folder / "keys.npy", np.concatenate(self.keys))
        np.save(self.folder / "sizes.npy", np.array(self.sizes, np.int64))
        notes = notes | {"items": len(self.sizes), "axes": self.inner}
        (self.folder / "notes.json").write_text(json.dumps(notes), encoding="utf-8")


def feature_folder() -> Path:
    """Return the folder of the cache of features."""
    return cache_folder() / "features"


def store_sizes(folder: Path | None = None) -> list[StoreSize]:
    """Return what the cache holds, by encoder and kind."""
    totals: dict[tuple[str, str], list[int]] = {}
    for path in sorted((folder or feature_folder()).glob("**/notes.json")):
        try:
            notes = json.loads(path.read_text(encoding="utf-8"))
            size = sum(file.stat().st_size for file in path.parent.iterdir())
        except (OSError, ValueError):  # removed meanwhile, or damaged
            continue
        name = str(notes.get("encoder")), str(notes.get("kind", "of an earlier version"))
        total = totals.setdefault(name, [0, 0])
        total[0] += int(notes.get("items", 0))
        total[1] += size
    return [StoreSize(*name, *total) for name, total in totals.items()]


def empty_store(folder: Path | None = None) -> None:
    """Remove all features."""
    shutil.rmtree(folder or feature_folder(), ignore_errors=True)


def _open(folder: Path) -> _Shard | None:
    """Return a shard, or nothing if it is unfinished or damaged."""
    try:
        notes = json.loads((folder / "notes.json").read_text(encoding="utf-8"))
        keys = np.load(folder / "keys.npy", allow_pickle=False)
        size = np.load(folder / "sizes.npy", allow_pickle=False)
        shape = int(size.sum()), *(int(axis) for axis in notes["axes"])
        path = folder / "values.bin"
        if keys.dtype != KEY or len(keys) != len(size) or path.stat().st_size != 4 * prod(shape):
            return None
        values: Any = np.zeros(shape, np.float32)
        if prod(shape):
            values = np.memmap(path, "<f4", "r", shape=shape)
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return _Shard(keys, np.cumsum(size) - size, size, values)
