"""The base of annotations and numbers: sorted codes, an index, and names.

Rows are sorted by item, then annotator, then answer, whatever the order of the input. Nothing here
is as large as items × annotators.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ._left_out import LeftOut
from ._names import Codes, Names, as_names, code, numbered, smallest_dtype, text
from ._tables import Table, Tabular
from .errors import DataError

Array = npt.NDArray[Any]
Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]

Selection = Iterable[Any] | None  # names, or one truth value for each


class FrozenArrays:
    """Base of frozen dataclasses whose arrays, also those in mappings, cannot be written to."""

    def __post_init__(self) -> None:
        for name, value in list(vars(self).items()):
            if isinstance(value, np.ndarray):
                object.__setattr__(self, name, frozen(value))
            elif isinstance(value, Mapping):
                arrays = {key: frozen(array) for key, array in value.items()}
                object.__setattr__(self, name, MappingProxyType(arrays))


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Relation(Tabular, FrozenArrays):
    """The base of annotations and numbers: which annotator answered on which item."""

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

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Relation) or type(self) is not type(other):
            return NotImplemented
        mine, theirs = (
            {field.name: getattr(one, field.name) for field in fields(one)}
            | {f"columns.{name}": values for name, values in one.columns.items()}
            for one in (self, other)
        )
        for name in ("columns", "left_out"):
            del mine[name], theirs[name]
        return mine.keys() == theirs.keys() and all(
            np.array_equal(one, theirs[name], equal_nan=one.dtype.kind == "f")
            if isinstance(one, np.ndarray)
            else one == theirs[name]
            for name, one in mine.items()
        )

    __hash__ = None  # type: ignore[assignment]


def frozen(array: Array) -> Array:
    """Return an array that cannot be written to, over the same memory."""
    view = array.view()
    view.flags.writeable = False
    return view


def _rebuild(cls: type[Relation], state: dict[str, Any]) -> Relation:
    return cls(**state)


def coded(
    values: Sequence[Any] | Array, declared: Iterable[Any] | None, what: str
) -> tuple[Codes, Names]:
    """Return codes and names; where names are declared, every value has to be one of them."""
    if not isinstance(values, np.ndarray):
        values = list(values)
    gaps = np.flatnonzero(absent(as_array(values)))
    if len(gaps):
        more = f"; {len(gaps) - 1} more rows like this" if len(gaps) > 1 else ""
        raise DataError(f"row {gaps[0] + 1}: no {what}{more}")
    codes, found = code(values)
    if declared is None:
        return codes, found
    names = as_names(declared)
    positions = {name: position for position, name in enumerate(names.tolist())}
    if len(positions) < len(names):
        raise DataError(f"the {what} names that were declared are not all different")
    for name in found.tolist():
        if name not in positions:
            word = "classes" if what == "label" else f"{what}s"
            raise DataError(f"{what} {name!r} is not among the {word} {abbreviate(names)}")
    table = np.array([positions[name] for name in found.tolist()], dtype=smallest_dtype(len(names)))
    return (table[codes] if len(found) else codes), names


def check_lengths(columns: Mapping[str, Sequence[Any] | Array]) -> None:
    """Refuse columns of different length."""
    if len({len(values) for values in columns.values()}) > 1:
        sizes = ", ".join(f"{name} {len(values)}" for name, values in columns.items())
        raise DataError(f"columns of different length: {sizes}")


class Distinct(NamedTuple):
    """Names that are texts, all different, and nobody else's array: there is nothing to check."""

    names: Names


def declared(names: Iterable[Any] | int, what: str) -> Names:
    """Return names, or the numbers up to a count; refuse a name that appears twice."""
    if isinstance(names, int):
        return numbered(names)
    if isinstance(names, Distinct):
        return names.names
    given = as_names(names)
    if len(set(given.tolist())) < len(given):
        twice = Counter(given.tolist()).most_common(1)[0][0]
        raise DataError(f"the {what} {twice!r} appears twice among the names")
    return given


def checked_codes(codes: Any, size: int, what: str) -> Codes:
    """Return codes in the smallest type; refuse those that are no whole numbers below `size`."""
    given = np.asarray(codes)
    if not given.size:
        return given.astype(smallest_dtype(size))
    if given.dtype.kind not in "iub":
        raise DataError(f"{what} codes are whole numbers, but these are {given.dtype}")
    low, high = int(given.min()), int(given.max())
    if low < 0 or high >= size:
        wrong = low if low < 0 else high
        raise DataError(f"the {what} code {wrong} is out of range: there are {size} names")
    return given.astype(smallest_dtype(size), copy=False)


def as_array(values: Any) -> Array:
    """Return values as an array without turning numbers among texts into texts."""
    return values if isinstance(values, np.ndarray) else np.array([*values, None], object)[:-1]


def absent(values: Array) -> npt.NDArray[np.bool_]:
    """Return where a value is missing: NaN, None or the empty text."""
    if values.dtype.kind == "f":
        return np.isnan(values)
    if values.dtype.kind == "O":
        blank = [value is None or value == "" or value != value for value in values.ravel()]
        return np.array(blank, dtype=bool).reshape(values.shape)
    if values.dtype.kind in "UT":
        return np.asarray(values == "", dtype=bool)
    return np.zeros(values.shape, dtype=bool)


def is_sorted(item: Codes, annotator: Codes, label: Codes) -> bool:
    """Return whether rows are sorted."""
    if len(item) > _GLANCE and not is_sorted(item[:_GLANCE], annotator[:_GLANCE], label[:_GLANCE]):
        return False
    tied = np.ones(max(len(item) - 1, 0), dtype=bool)
    for key in (item, annotator, label):
        before, after = key[:-1], key[1:]
        if np.any(tied & (after < before)):
            return False
        tied &= after == before
    return True


def sort(
    codes: list[Codes], sizes: list[int], *, keep_order: bool
) -> tuple[list[Codes], npt.NDArray[np.intp] | None]:
    """Sort by the first code, then the second, then the third, all three in one integer.

    Sorting that integer in place is many times faster than sorting row numbers by it, which is
    only needed when more columns have to follow.
    """
    bits = [max(size - 1, 1).bit_length() for size in sizes]
    if keep_order or sum(bits) > 64:
        order = np.lexsort(codes[::-1])
        return [given[order] for given in codes], order
    key = codes[0].astype(np.uint64)
    for given, width in zip(codes[1:], bits[1:], strict=True):
        key <<= np.uint64(width)
        key |= given
    key.sort()
    out: list[Codes] = []
    for given, width in zip(codes[::-1], bits[::-1], strict=True):
        part = np.empty(len(key), dtype=given.dtype)  # filled piece by piece, without a wide copy
        np.bitwise_and(key, np.uint64(2**width - 1), out=part, casting="unsafe")
        out.insert(0, part)
        if len(out) < len(codes):
            key >>= np.uint64(width)
    return out, None


def ragged_take(starts: Integers, rows: Integers) -> tuple[Integers, Integers]:
    """Return the starts of these rows put one after the other, and the elements they hold.

    Row r holds the elements starts[r]:starts[r + 1].

    >>> ragged_take(np.array([0, 2, 3, 6]), np.array([2, 0]))
    (array([0, 3, 5]), array([3, 4, 5, 0, 1]))
    """
    size = starts[rows + 1] - starts[rows]
    taken = np.concatenate([[0], np.cumsum(size)])
    return taken, np.repeat(starts[rows], size) + count_up(size)


def count_up(sizes: Integers) -> Integers:
    """Return 0, 1, 2 and so on for each of these sizes.

    >>> count_up(np.array([2, 0, 3])).tolist()
    [0, 1, 0, 1, 2]
    """
    ends = np.cumsum(sizes)
    return np.arange(ends[-1] if len(ends) else 0) - np.repeat(ends - sizes, sizes)


def indices_of(names: Names, among: Names) -> Integers:
    """Return the index of every name among others, -1 where it is missing."""
    if np.array_equal(names, among):
        return np.arange(len(names))
    position = {name: code for code, name in enumerate(among.tolist())}
    return np.array([position.get(name, -1) for name in names.tolist()], dtype=np.int64)


def union(names: Names, more: Names) -> Names:
    """Return all names of both, in natural order where the first are in it."""
    new = more[indices_of(more, names) < 0]
    if len(new) == 0:
        return names
    together = [*names.tolist(), *new.tolist()]
    natural = np.array_equal(code(names.tolist())[1], names)
    return code(together)[1] if natural else as_names(together)


def tally(codes: Codes, size: int) -> Integers:
    """Return how often every code occurs, in pieces, because counting converts to wide integers."""
    total = np.zeros(size, dtype=np.int64)
    for start in range(0, len(codes), _PIECE):
        total += np.bincount(codes[start : start + _PIECE], minlength=size)
    return total


_PIECE = 2**23
_GLANCE = 2**12


def chosen(selection: Selection, names: Names, what: str) -> npt.NDArray[np.bool_]:
    """Return a mask of the selected names."""
    if selection is None:
        return np.ones(len(names), dtype=bool)
    given = selection if isinstance(selection, np.ndarray) else list(selection)
    if isinstance(given, np.ndarray) and given.dtype == bool:
        if len(given) != len(names):
            raise DataError(f"{len(given)} truth values for {len(names)} {what} names")
        return given
    selected = {text(name) for name in given}
    unknown = selected - set(names.tolist())
    if unknown:
        raise DataError(f"no {what} {sorted(unknown)[0]!r}; there are {abbreviate(names)}")
    return np.array([name in selected for name in names.tolist()], dtype=bool)


def renumber(kept: npt.NDArray[np.bool_]) -> Integers:
    """Return the new codes of what is kept."""
    return np.cumsum(kept) - 1


def abbreviate(names: Names, most: int = 8) -> str:
    """Return the first names, and how many there are when that is not all."""
    shown = [name if len(name) <= 30 else f"{name[:29]}…" for name in names[:most].tolist()]
    shown = [name if name.isprintable() else repr(name) for name in shown]
    return ", ".join(shown) + (f" … ({len(names)} in all)" if len(names) > most else "")
