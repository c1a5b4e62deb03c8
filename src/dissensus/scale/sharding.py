"""From chunks of rows to shards of items: all rows of an item are in the same shard.

No list of all items is ever needed: the shard of an item follows from a hash of its name, and
within a shard items have numbers of their own. Only annotators and classes have global codes, from
a survey of all chunks. Items are ordered by shard, and within a shard by natural order of names.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import polars as pl

from ..answers.annotations import Part
from ..base.arrays import Codes, Floats, Integers, smallest_dtype, sort
from ..base.names import Names, abbreviate, as_names, code
from ..errors import DataError
from ..formats.long_tables import code_columns
from .parquet_files import Chunk

_ITEM_SEED = 20_261_116  # of the hash that assigns items to shards
_DENSE = 2**26  # numbers within such a range are looked up in an array


@dataclass(frozen=True, eq=False)
class Survey:
    """The different annotators and labels of some rows; surveys add up."""

    annotators: pl.Series
    labels: pl.Series

    def __add__(self, other: Survey) -> Survey:
        return Survey(
            pl.concat([self.annotators, other.annotators]).unique(),
            pl.concat([self.labels, other.labels]).unique(),
        )


def survey(chunk: Chunk) -> Survey:
    """Return the annotators and labels of a chunk."""
    rows = chunk.read(("annotator", "label"))
    return Survey(rows["annotator"].unique(), rows["label"].unique())


@dataclass(frozen=True, eq=False)
class Dictionary:
    """The codes of annotators and classes, the same for all shards, and gold."""

    annotators: Names
    classes: Names
    whole: Mapping[str, bool]  # whether names are whole numbers, by role
    gold: Mapping[str, int]  # item → class

    def codes(self, rows: pl.DataFrame, role: str) -> Codes:
        """Return the codes of annotators or labels."""
        names = self.annotators if role == "annotator" else self.classes
        kind = smallest_dtype(len(names))
        if not self.whole[role]:
            return rows[role].cast(self._texts[role]).to_physical().to_numpy().astype(kind)
        numbers, position = self._numbers[role]
        values = rows[role].to_numpy()
        if len(numbers) and numbers[-1] - numbers[0] < _DENSE:
            return position[values - numbers[0]].astype(kind)
        return position[np.searchsorted(numbers, values)].astype(kind)

    @cached_property
    def _texts(self) -> dict[str, pl.Enum]:
        tables = (("annotator", self.annotators), ("label", self.classes))
        return {
            role: pl.Enum(pl.Series(names.tolist(), dtype=pl.String))
            for role, names in tables
            if not self.whole[role]
        }

    @cached_property
    def _numbers(self) -> dict[str, tuple[Integers, Integers]]:
        """Whole numbers in order with their codes; if their range is small, codes of all of it."""
        tables = {}
        for role, names in (("annotator", self.annotators), ("label", self.classes)):
            if self.whole[role]:
                whole = [name.lstrip("-").isdecimal() for name in names.tolist()]
                position = np.flatnonzero(whole)
                values = names[position].astype(np.int64)
                order = np.argsort(values)
                values, position = values[order], position[order]
                if len(values) and values[-1] - values[0] < _DENSE:
                    dense = np.zeros(values[-1] - values[0] + 1, dtype=np.int64)
                    dense[values - values[0]] = position
                    position = dense
                tables[role] = (values, position)
        return tables

    def __getstate__(self) -> dict[str, Any]:
        state = {name: value for name, value in vars(self).items() if not name.startswith("_")}
        return state | {"annotators": self.annotators.tolist(), "classes": self.classes.tolist()}

    def __setstate__(self, state: dict[str, Any]) -> None:
        for name, value in state.items():
            restored = as_names(value) if name in ("annotators", "classes") else value
            object.__setattr__(self, name, restored)


def dictionary_of(
    surveyed: Survey,
    whole: Mapping[str, bool],
    *,
    classes: Sequence[Any] | None = None,
    gold: Mapping[str, str] | None = None,
    source: str = "",
) -> Dictionary:
    """Return the codes of surveyed names, with classes as declared and gold coded."""
    annotators, labels = (_names(values) for values in (surveyed.annotators, surveyed.labels))
    names = labels if classes is None else as_names(classes)
    positions = {name: position for position, name in enumerate(names.tolist())}
    for label in labels.tolist():
        if label not in positions:
            raise DataError(
                f"{source}: label {label!r} is not among the classes {abbreviate(names)}"
            )
    for item, label in (gold or {}).items():
        if label not in positions:
            raise DataError(
                f"gold says {label!r} for item {item!r}, which is not among the classes "
                f"{abbreviate(names)}",
                remedy="declare it with {}",
                classes=...,
            )
    gold_codes = {item: positions[label] for item, label in (gold or {}).items()}
    return Dictionary(annotators, names, dict(whole), gold_codes)


def _names(values: pl.Series) -> Names:
    return code(values.to_list() if values.dtype == pl.String else values.to_numpy())[1]


def split(chunk: Chunk, dictionary: Dictionary, n_shards: int) -> list[pl.DataFrame]:
    """Return the rows of a chunk, coded, as one table for every shard."""
    rows = chunk.read()
    shard = (rows["item"].hash(_ITEM_SEED) % n_shards).to_numpy().astype(smallest_dtype(n_shards))
    order = np.argsort(shard, kind="stable")  # a radix sort, as there are few shards
    bounds = np.searchsorted(shard[order], np.arange(n_shards + 1)).tolist()
    coded = pl.DataFrame(
        {
            "item": rows["item"],
            "annotator": dictionary.codes(rows, "annotator"),
            "label": dictionary.codes(rows, "label"),
        }
    )[order]
    return [
        coded.slice(bounds[position], bounds[position + 1] - bounds[position])
        for position in range(n_shards)
    ]


@dataclass(frozen=True, eq=False)
class Shard(Part):
    """A part with the names of its items, or the file that holds them."""

    items: pl.Series | str = ""  # (item): numbers or texts

    def __getstate__(self) -> dict[str, Any]:
        return vars(self) | {"ones": None, "labels": None}  # both are quickly rebuilt

    def __setstate__(self, state: dict[str, Any]) -> None:
        full = state | {"ones": ones(len(state["label"]))}
        vars(self).update({name: value for name, value in full.items() if name != "labels"})

    @property
    def names(self) -> pl.Series:
        """The names of its items, as texts."""
        if isinstance(self.items, str):
            return pl.read_ipc(self.items)["item"].cast(pl.String)
        return self.items.cast(pl.String)


def join(pieces: Sequence[pl.DataFrame], dictionary: Dictionary, start: int = 0) -> Shard:
    """Return the shard joined from pieces of all chunks; its items are counted from `start`."""
    rows = pl.concat([_empty(dictionary), *pieces])
    sizes = [len(dictionary.annotators), len(dictionary.classes)]
    codes = [rows[role].to_numpy() for role in ("annotator", "label")]
    key, size, names = _keys(rows["item"])
    del rows
    (key, annotator, label), _ = sort([key, *codes], [size, *sizes], keep_order=False)
    begins = np.flatnonzero(np.diff(key)) + 1
    index = np.concatenate([[0], begins, [len(key)]]) if len(key) else np.zeros(1, dtype=np.int64)
    items = names(key[index[:-1]])
    return Shard(
        start=start,
        stop=start + len(items),
        index=index,
        annotator=annotator,
        label=label,
        ones=ones(len(label)),
        n_annotators=sizes[0],
        n_classes=sizes[1],
        gold=_gold(items, dictionary.gold),
        items=items,
    )


_ONES: list[Floats] = [np.ones(0)]


def ones(size: int) -> Floats:
    """Return so many ones, over memory that all shards of a process share."""
    held = _ONES[0]  # another thread may replace it
    if len(held) < size:
        held = _ONES[0] = np.ones(size)
    return held[:size]


def _keys(items: pl.Series) -> tuple[Codes, int, Callable[[Codes], pl.Series]]:
    """Return keys of items in natural order, a bound on them, and the function that names them."""
    if items.dtype == pl.String:
        codes, texts = code_columns(items.to_frame("item"))["item"]
        return codes, len(texts), lambda key: pl.Series("item", texts[key].tolist(), pl.String)
    values = items.to_numpy()
    least = int(values.min()) if len(values) else 0
    size = int(values.max()) - least + 1 if len(values) else 0
    if size < 2**40:  # so that a key and two codes are one number, and quickly sorted
        offset = (values - least).astype(np.uint64)
        return offset, size, lambda key: pl.Series("item", key.astype(np.int64) + least)
    numbers, position = np.unique(values, return_inverse=True)
    return (
        position.astype(smallest_dtype(len(numbers))),
        len(numbers),
        lambda key: pl.Series("item", numbers[key]),
    )


def _empty(dictionary: Dictionary) -> pl.DataFrame:
    kinds: dict[str, Any] = {"item": pl.Int64 if dictionary.whole["item"] else pl.String}
    for role, names in (("annotator", dictionary.annotators), ("label", dictionary.classes)):
        kinds[role] = pl.Series(np.empty(0, dtype=smallest_dtype(len(names)))).dtype
    return pl.DataFrame(schema=kinds)


def _gold(items: pl.Series, gold: Mapping[str, int]) -> Integers | None:
    if not gold:
        return None
    table = pl.DataFrame({"item": list(gold), "gold": list(gold.values())})
    names = items.cast(pl.String).to_frame("item")
    coded = names.join(table, on="item", how="left", maintain_order="left")
    return coded["gold"].fill_null(-1).to_numpy().astype(np.int64)
