"""Arrays: their types, frozen ones, and sorted codes with an index."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

import numpy as np
import numpy.typing as npt

from ..errors import DataError

Array = npt.NDArray[Any]
Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]
Codes = npt.NDArray[np.unsignedinteger[Any]]

_PIECE = 2**23  # elements that are counted at once
_GLANCE = 2**12  # rows that show most unsorted tables to be unsorted


class FrozenArrays:
    """Base of frozen dataclasses whose arrays, also those in mappings, cannot be written to."""

    def __post_init__(self) -> None:
        for name, value in list(vars(self).items()):
            if isinstance(value, np.ndarray):
                object.__setattr__(self, name, frozen(value))
            elif isinstance(value, Mapping):
                arrays = {key: frozen(array) for key, array in value.items()}
                object.__setattr__(self, name, MappingProxyType(arrays))


def frozen(array: Array) -> Array:
    """Return an array that cannot be written to, over the same memory."""
    view = array.view()
    view.flags.writeable = False
    return view


def check_lengths(columns: Mapping[str, Sequence[Any] | Array]) -> None:
    """Refuse columns of different length."""
    if len({len(values) for values in columns.values()}) > 1:
        sizes = ", ".join(f"{name} {len(values)}" for name, values in columns.items())
        raise DataError(f"columns of different length: {sizes}")


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
        return [column[order] for column in codes], order
    key = codes[0].astype(np.uint64)
    for column, width in zip(codes[1:], bits[1:], strict=True):
        key <<= np.uint64(width)
        key |= column
    key.sort()
    out: list[Codes] = []
    for column, width in zip(codes[::-1], bits[::-1], strict=True):
        part = np.empty(len(key), dtype=column.dtype)  # filled piece by piece, without a wide copy
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
    new_starts = np.concatenate([[0], np.cumsum(size)])
    return new_starts, np.repeat(starts[rows], size) + count_up(size)


def count_up(sizes: Integers) -> Integers:
    """Return 0, 1, 2 and so on for each of these sizes.

    >>> count_up(np.array([2, 0, 3])).tolist()
    [0, 1, 0, 1, 2]
    """
    ends = np.cumsum(sizes)
    return np.arange(ends[-1] if len(ends) else 0) - np.repeat(ends - sizes, sizes)


def tally(codes: Codes, size: int) -> Integers:
    """Return how often every code occurs, in pieces, because counting converts to wide integers."""
    total = np.zeros(size, dtype=np.int64)
    for start in range(0, len(codes), _PIECE):
        total += np.bincount(codes[start : start + _PIECE], minlength=size)
    return total


def renumber(mask: npt.NDArray[np.bool_]) -> Integers:
    """Return the new codes of what is kept."""
    return np.cumsum(mask) - 1


def smallest_dtype(count: int) -> np.dtype[np.unsignedinteger[Any]]:
    """Return the smallest unsigned type for codes below `count`."""
    return np.min_scalar_type(max(count - 1, 0))
