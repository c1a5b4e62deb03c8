"""The base of answers that are more than one class or number: rows, an index, and elements.

One row is one answer: what one annotator gave for one item. Rows are sorted by item, then
annotator. An answer may be empty: somebody looked and marked nothing, which differs from no answer.
A kind lists its arrays by what they have one entry for, in `by_item`, `by_answer` and
`by_element`, and its codes with their names in `coded_by`; selecting, merging and cutting are then
done here for all kinds.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Self

import numpy as np
import numpy.typing as npt

from ..base.arrays import (
    Array,
    Codes,
    Floats,
    FrozenArrays,
    Integers,
    check_lengths,
    count_up,
    ragged_take,
    renumber,
    smallest_dtype,
    tally,
)
from ..base.names import (
    Names,
    Selection,
    checked_codes,
    chosen,
    coded,
    declared,
    indices_of,
    numbered,
    union,
)
from ..base.tables import Table, Tabular, as_column, gather
from ..errors import DataError
from .left_out import LeftOut

if TYPE_CHECKING:
    import polars as pl

    from .annotations import Annotations

SPECIAL = set(' |;,>=[]{}"\\')  # characters of names that a long table writes as JSON


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Relation(Tabular, FrozenArrays):
    """The base of answers of every kind: which annotator answered on which item."""

    kind: ClassVar[str]
    by_item: ClassVar[tuple[str, ...]] = ()  # fields (item, …) with one row per item
    by_annotator: ClassVar[tuple[str, ...]] = ()  # fields with one entry per annotator, or empty
    by_answer: ClassVar[tuple[str, ...]] = ()  # fields with one entry per answer

    index: Integers  # (item + 1): the answers on item i are at index[i]:index[i + 1]
    annotator: Codes  # (answer)
    items: Names
    annotators: Names
    columns: Mapping[str, Array] = field(default_factory=dict)  # further columns
    left_out: LeftOut = field(default_factory=LeftOut)  # by the reader; not compared

    def __len__(self) -> int:
        return len(self.annotator)

    def _first(self, most: int) -> Table:
        return {
            "item": self.items[self.item[:most]],
            "annotator": self.annotators[self.annotator[:most]],
            "label": self._answers(slice(most)),
            **{name: values[:most] for name, values in self.columns.items()},
        }

    def _answers(self, rows: slice) -> Array:
        """Return some of the answers, by name or as numbers."""
        raise NotImplementedError

    def answer_column(self) -> pl.Series:
        """Return all answers as a column."""
        raise NotImplementedError

    def to_polars(self) -> pl.DataFrame:
        """Return a long polars dataframe, one row for each answer."""
        import polars as pl

        return pl.DataFrame(
            {
                "item": gather(self.items, self.item),
                "annotator": gather(self.annotators, self.annotator),
                "label": self.answer_column(),
                **{name: as_column(values) for name, values in self.columns.items()},
            }
        )

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuild, (type(self), vars(self) | {"columns": dict(self.columns)})

    @property
    def n_items(self) -> int:
        """Number of items, also those without answers."""
        return len(self.items)

    @property
    def n_annotators(self) -> int:
        """Number of annotators, also those without answers."""
        return len(self.annotators)

    @property
    def item(self) -> Codes:
        """The item of every answer, from the index."""
        return np.repeat(
            np.arange(self.n_items, dtype=smallest_dtype(self.n_items)), self.labels_per_item
        )

    @property
    def labels_per_item(self) -> Integers:
        """Number of answers on every item."""
        return np.diff(self.index)

    @property
    def labels_per_annotator(self) -> Integers:
        """Number of answers of every annotator."""
        return tally(self.annotator, self.n_annotators)

    @property
    def repeats(self) -> npt.NDArray[np.bool_]:
        """Whether an answer has the item and annotator of the one before: (answer - 1)."""
        item = self.item
        return (item[1:] == item[:-1]) & (self.annotator[1:] == self.annotator[:-1])

    def _keep(self, items: Selection, annotators: Selection) -> tuple[npt.NDArray[np.bool_], ...]:
        """Return which items, annotators and answers remain when only these are kept."""
        item = chosen(items, self.items, "item")
        annotator = chosen(annotators, self.annotators, "annotator")
        answers = np.repeat(item, self.labels_per_item) & annotator[self.annotator]
        return item, annotator, answers

    def take(self, items: Integers) -> Self:
        """Return the answers on these items, by code; repeated items count repeatedly."""
        index, rows = ragged_take(self.index, items)
        fields = self._rows(rows) | self._items(items) | {"columns": {}}
        return replace(self, index=index, items=numbered(len(items)), **fields)

    def keep(self, kept: npt.NDArray[np.bool_]) -> Self:
        """Return only these answers; items and annotators stay declared."""
        index = np.concatenate([[0], np.cumsum(kept)])[self.index]
        return replace(self, index=index, **self._rows(np.flatnonzero(kept)))

    def subset(self, *, items: Selection = None, annotators: Selection = None) -> Self:
        """Return the answers on these items by these annotators, given as names or as masks."""
        item, annotator, mask = self._keep(items, annotators)
        selected = self.keep(mask)
        index = np.concatenate([[0], np.cumsum(selected.labels_per_item[item])])
        codes = renumber(annotator)[selected.annotator]
        people = [name for name in self.by_annotator if len(getattr(self, name))]
        return replace(
            selected,
            index=index,
            annotator=checked_codes(codes, int(annotator.sum()), "annotator"),
            items=self.items[item],
            annotators=self.annotators[annotator],
            **self._items(np.flatnonzero(item)),
            **{name: getattr(self, name)[annotator] for name in people},
        )

    def _rows(self, rows: Integers | slice) -> dict[str, Any]:
        """Return the fields of these answers."""
        return {
            "annotator": self.annotator[rows],
            "columns": {name: values[rows] for name, values in self.columns.items()},
            **{name: getattr(self, name)[rows] for name in self.by_answer},
        }

    def _items(self, items: Integers | slice) -> dict[str, Any]:
        """Return the fields of these items."""
        return {name: getattr(self, name)[items] for name in self.by_item}

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Relation) or type(self) is not type(other):
            return NotImplemented
        own_fields, other_fields = (
            {field.name: getattr(relation, field.name) for field in fields(relation)}
            | {f"columns.{name}": values for name, values in relation.columns.items()}
            for relation in (self, other)
        )
        for name in ("columns", "left_out"):
            del own_fields[name], other_fields[name]
        return own_fields.keys() == other_fields.keys() and all(
            np.array_equal(value, other_fields[name], equal_nan=value.dtype.kind == "f")
            if isinstance(value, np.ndarray)
            else value == other_fields[name]
            for name, value in own_fields.items()
        )

    __hash__ = None  # type: ignore[assignment]


def _rebuild(cls: type[Relation], state: dict[str, Any]) -> Relation:
    return cls(**state)


class Candidates(NamedTuple):
    """The same question in classes: what might be true of an item, and every answer to it."""

    annotations: Annotations  # its items are the candidates, sorted by the item they belong to
    item: Integers  # (candidate): the item it belongs to
    members: Integers  # (element): the candidate it is in; elements of gold follow the answers'
    gold: Integers | None = None  # (candidate): its class where that is known, or -1


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Answers(Relation, ABC):
    """One row per answer, sorted by item, then annotator; an answer may be empty."""

    value_key: ClassVar[str]  # name of the value in rows: {"item", "annotator", value_key}
    element: ClassVar[str] = ""  # what an answer holds, as a plural: "marks"
    by_element: ClassVar[tuple[str, ...]] = ()  # fields with one entry per element
    coded_by: ClassVar[Mapping[str, str]] = {}  # field of codes → field of their names

    # What a kind defines.

    @classmethod
    @abstractmethod
    def from_values(
        cls,
        item: Sequence[Any] | Array,
        annotator: Sequence[Any] | Array,
        values: Sequence[Any],
        *,
        items: Iterable[Any] | None = None,
        annotators: Iterable[Any] | None = None,
    ) -> Self:
        """Return answers from one plain value per answer, as `values` gives them."""

    @abstractmethod
    def values(self) -> list[Any]:
        """Return every answer as a plain value: numbers, texts, lists and dictionaries."""

    @abstractmethod
    def distance(self, first: Integers, second: Integers) -> Floats:
        """Return distances of pairs of answers, given by their rows: from 0, the same, to 1."""

    @property
    @abstractmethod
    def empty(self) -> npt.NDArray[np.bool_]:
        """Whether an answer is empty: (answer)."""

    @property
    @abstractmethod
    def counts(self) -> str:
        """How many elements and names there are, in words: "35879 marks, 4 labels"."""

    @abstractmethod
    def as_table(self) -> tuple[dict[str, Array], Integers]:
        """Return answers as columns, the first of them `item`, and the answer of every row."""

    @abstractmethod
    def as_answers(self, table: Table) -> Self:
        """Return the items table of a consensus as answers of one annotator, on all items."""

    # What all kinds share.

    @classmethod
    def from_rows(
        cls,
        rows: Iterable[Mapping[str, Any]],
        *,
        items: Iterable[Any] | None = None,
        annotators: Iterable[Any] | None = None,
    ) -> Self:
        """Return answers from one mapping per answer, as `to_rows` gives them."""
        mappings = list(rows)
        needed = ("item", "annotator", cls.value_key)
        for position, row in enumerate(mappings, 1):
            for name in needed:
                if name not in row:
                    raise DataError(f"row {position}: no {name}; an answer has {', '.join(needed)}")
        item, annotator, values = ([row[name] for row in mappings] for name in needed)
        return cls.from_values(item, annotator, values, items=items, annotators=annotators)

    def to_rows(self) -> list[dict[str, Any]]:
        """Return one dictionary per answer: item, annotator and the value."""
        names = self.items[self.item].tolist(), self.annotators[self.annotator].tolist()
        return [
            {"item": item, "annotator": annotator, self.value_key: value}
            for item, annotator, value in zip(*names, self.values(), strict=True)
        ]

    @classmethod
    def from_codes(
        cls,
        item: Array,
        annotator: Array,
        *,
        items: Iterable[Any] | int,
        annotators: Iterable[Any] | int,
        columns: Mapping[str, Array] | None = None,
        **fields: Any,
    ) -> Self:
        """Return answers from codes, in any order, and the fields of the kind."""
        columns = columns or {}
        check_lengths({"item": item, "annotator": annotator, **columns})
        names, people = declared(items, "item"), declared(annotators, "annotator")
        item = checked_codes(item, len(names), "item")
        annotator = checked_codes(annotator, len(people), "annotator")
        unsorted = cls(
            index=np.concatenate([[0], np.cumsum(tally(item, len(names)))]),
            annotator=annotator,
            items=names,
            annotators=people,
            columns=columns,
            **fields,
        )
        return replace(unsorted, **unsorted._rows(np.lexsort((annotator, item))))

    @property
    def summary(self) -> str:
        """The kind and its counts, in one line.

        For example "spans: 2 items, 3 annotators, 4 marks, 2 labels; 20 % of answers are empty".
        """
        counts = f", {self.counts}" if self.counts else ""
        share = self.empty.mean() if len(self) else 0.0
        percent = f"{share:.0%}".replace("%", " %") if share >= 0.005 else "fewer than 1 %"
        blank = f"; {percent} of answers are empty" if share else ""
        sizes = f"{self.n_items} items, {self.n_annotators} annotators"
        return f"{self.kind}: {sizes}{counts}{blank}"

    def __repr__(self) -> str:
        return f"<{self.summary}>"

    def _table(self) -> Table:
        columns, row = self.as_table()
        head = {"item": columns.pop("item"), "annotator": self.annotators[self.annotator][row]}
        return head | columns

    def to_polars(self) -> pl.DataFrame:
        """Return a long polars dataframe; an empty answer is a row without values."""
        names = {"item": self.items[self.item], "annotator": self.annotators[self.annotator]}
        return long_frame(names | self.long_columns())

    def long_columns(self) -> dict[str, Array | list[Any]]:
        """Return the columns of values in a long table: (answer)."""
        return {self.value_key: self.values()}

    def _first(self, most: int) -> Table:
        head = self.keep(np.arange(len(self)) < most)
        return {name: values[:most] for name, values in head._table().items()}

    def within_item_pairs(self) -> tuple[Integers, Integers]:
        """Return the rows of all pairs of answers on the same item, the earlier first."""
        after = np.repeat(self.index[1:], self.labels_per_item) - np.arange(len(self)) - 1
        earlier = np.repeat(np.arange(len(self)), after)
        return earlier, earlier + 1 + count_up(after)

    def part(self, start: int, stop: int) -> Self:
        """Return a range of items, over the same memory."""
        first, last = int(self.index[start]), int(self.index[stop])
        index = self.index[start : stop + 1] - first
        fields = self._rows(slice(first, last)) | self._items(slice(start, stop))
        return replace(self, index=index, items=self.items[start:stop], **fields)

    def parts(self, bounds: Sequence[tuple[int, int]]) -> list[Self]:
        """Return ranges of items, over the same memory."""
        return [self.part(start, stop) for start, stop in bounds]

    def merge(self, more: Self) -> Self:
        """Return these answers and more, matched by name."""
        relations = (self, more)
        items = union(self.items, more.items)
        annotators = union(self.annotators, more.annotators)
        shared = sorted(self.columns.keys() & more.columns.keys())
        fields: dict[str, Any] = {}
        for codes, names in self.coded_by.items():
            fields[names] = union(getattr(self, names), getattr(more, names))
            fields[codes] = np.concatenate(
                [
                    indices_of(getattr(relation, names), fields[names])[getattr(relation, codes)]
                    for relation in relations
                ]
            )
            fields[codes] = checked_codes(fields[codes], len(fields[names]), codes)
        for name in (*self.by_answer, *self.by_element):
            if name not in fields:
                fields[name] = np.concatenate([getattr(relation, name) for relation in relations])
        for name in self.by_item:
            fields[name] = _merge_by_item(relations, items, name)
        return self.from_codes(
            np.concatenate(
                [indices_of(relation.items, items)[relation.item] for relation in relations]
            ),
            np.concatenate(
                [
                    indices_of(relation.annotators, annotators)[relation.annotator]
                    for relation in relations
                ]
            ),
            items=items,
            annotators=annotators,
            columns={
                name: np.concatenate([relation.columns[name] for relation in relations])
                for name in shared
            },
            **fields,
            **self._merged_starts(more),
        )

    def align(self, other: Self) -> Self:
        """Return other answers with the items of these: those on other items are left out."""
        item_here = indices_of(other.items, self.items)
        shared = other.keep(item_here[other.item] >= 0)
        fields = {name: getattr(shared, name) for name in (*self.by_answer, *self.by_element)}
        fields |= {names: getattr(shared, names) for names in self.coded_by.values()}
        fields |= {name: getattr(self, name) for name in self.by_item}
        return self.from_codes(
            item_here[shared.item],
            shared.annotator,
            items=self.items,
            annotators=shared.annotators,
            columns=shared.columns,
            **fields,
            **shared._starts(),
        )

    def _starts(self) -> dict[str, Any]:
        return {}

    def _merged_starts(self, more: Self) -> dict[str, Any]:
        return {}


def long_frame(columns: Mapping[str, Array | list[Any]]) -> pl.DataFrame:
    """Return arrays and lists as a dataframe."""
    import polars as pl

    return pl.DataFrame(
        {
            name: as_column(values) if isinstance(values, np.ndarray) else pl.Series(values)
            for name, values in columns.items()
        }
    )


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Ragged(Answers):
    """Answers that hold any number of elements: marks, options, things in a ranking, runs."""

    starts: Integers  # (answer + 1): the elements of answer a are at starts[a]:starts[a + 1]

    @property
    def sizes(self) -> Integers:
        """Number of elements of every answer."""
        return np.diff(self.starts)

    @property
    def empty(self) -> npt.NDArray[np.bool_]:
        return self.sizes == 0

    @property
    def n_elements(self) -> int:
        """Number of elements of all answers."""
        return int(self.starts[-1])

    @property
    def answer(self) -> Integers:
        """The answer of every element."""
        return np.repeat(np.arange(len(self)), self.sizes)

    def _rows(self, rows: Integers | slice) -> dict[str, Any]:
        fields = super()._rows(rows)
        at: Any
        if isinstance(rows, slice):
            starts = self.starts[rows.start : rows.stop + 1]
            at, starts = slice(int(starts[0]), int(starts[-1])), starts - starts[0]
        else:
            starts, at = ragged_take(self.starts, rows)
        elements = {name: getattr(self, name)[at] for name in self.by_element}
        return fields | elements | {"starts": starts}

    def _starts(self) -> dict[str, Any]:
        return {"starts": self.starts}

    def _merged_starts(self, more: Self) -> dict[str, Any]:
        return {"starts": np.concatenate([self.starts, self.starts[-1] + more.starts[1:]])}


def coded_rows(
    item: Sequence[Any] | Array,
    annotator: Sequence[Any] | Array,
    items: Iterable[Any] | None,
    annotators: Iterable[Any] | None,
) -> dict[str, Any]:
    """Return codes and names of items and annotators, as `from_codes` takes them."""
    item, items = coded(item, items, "item")
    annotator, annotators = coded(annotator, annotators, "annotator")
    return {"item": item, "annotator": annotator, "items": items, "annotators": annotators}


def _merge_by_item(relations: tuple[Answers, ...], items: Names, name: str) -> Array:
    """Return a field of all items; refuse items that have two different values."""
    field = getattr(relations[0], name)
    merged = np.full((len(items), field.shape[1]), np.nan)
    filled = np.zeros(len(items), dtype=bool)
    for relation in relations:
        at, value = indices_of(relation.items, items), getattr(relation, name)
        is_known = ~np.isnan(value).any(axis=1)  # NaN where it is unknown
        at, value = at[is_known], value[is_known]
        clash = filled[at] & (merged[at] != value).any(axis=1)
        if clash.any():
            item = items[at[clash.argmax()]]
            raise DataError(f"item {item!r} has another {name} in the two sets of answers")
        merged[at], filled[at] = value, True
    return merged.astype(field.dtype)
