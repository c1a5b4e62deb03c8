"""Names and their integer codes.

Names are in natural order: as numbers where all of them are numbers, as texts otherwise. So the
codes do not depend on the order of rows.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ..errors import DataError
from .arrays import Array, Codes, Integers, smallest_dtype

Names = npt.NDArray[Any]  # of Python strings; `None` only where a label is undecided

# A name that is a number; the readers use the same pattern in polars.
NUMBER = r"^[+-]?[0-9]+(\.[0-9]+)?([eE][+-]?[0-9]{1,3})?$"


def as_names(names: Iterable[Any]) -> Names:
    """Return texts as a new array; numbers are written as people write them."""
    if isinstance(names, np.ndarray) and names.dtype.kind in "OUT":
        texts = names.tolist()
    else:
        texts = list(names)
    if not set(map(type, texts)) <= {str}:
        texts = [text(name) for name in texts]
    if not _encodable("".join(texts)):
        wrong = next(name for name in texts if not _encodable(name))
        raise DataError(f"the name {wrong!r} is not valid text")
    return np.array(texts, dtype=object)


def _encodable(name: str) -> bool:
    """Return whether a text can be written to a file: it holds no half of a surrogate pair."""
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True


def numbered(count: int) -> Names:
    """Return the names 0, 1, 2 and so on."""
    return np.array([str(number) for number in range(count)], dtype=object)


def decode(names: Names, codes: npt.NDArray[np.signedinteger[Any]]) -> Names:
    """Return the names of codes, `None` where a code is negative."""
    if len(names) == 0:
        return np.full(len(codes), None, dtype=object)
    decoded = names[codes]
    decoded[codes < 0] = None
    return decoded


def text(name: object) -> str:
    """Return a value as the name it gives: 3.0 is 3, and True is true, as files have it."""
    if isinstance(name, (bool, np.bool_)):
        return str(name).lower()
    if isinstance(name, (float, np.floating)) and float(name).is_integer():
        return str(int(name))
    return str(name)


def code(values: Sequence[Any] | npt.NDArray[Any]) -> tuple[Codes, Names]:
    """Return the code of every value and the names in natural order.

    >>> codes, names = code(["b", "a", "b"])
    >>> codes.tolist(), names.tolist()
    ([1, 0, 1], ['a', 'b'])
    >>> code([10, 9.0, "2"])[1].tolist()
    ['2', '9', '10']
    """
    if isinstance(values, np.ndarray) and values.dtype.kind in "iu":
        unique, codes = np.unique(values, return_inverse=True)
        return codes.astype(smallest_dtype(len(unique))), as_names(unique)
    texts = values.tolist() if isinstance(values, np.ndarray) else values
    if not (texts and all(type(value) is str for value in texts)):
        texts = [text(value) for value in texts]
    names = sorted(set(texts))
    if all(re.match(NUMBER, name) and math.isfinite(float(name)) for name in names):
        names.sort(key=float)
    lookup = {name: position for position, name in enumerate(names)}
    dtype = smallest_dtype(len(names))
    return np.fromiter(map(lookup.__getitem__, texts), dtype, len(texts)), as_names(names)


def as_values(names: Names) -> npt.NDArray[np.float64] | None:
    """Return the values of names that are different numbers; nothing if they are not.

    >>> as_values(as_names(["1", "2.5"]))
    array([1. , 2.5])
    """
    texts = names.tolist()
    if not texts or not all(re.match(NUMBER, name) for name in texts):
        return None
    values = np.array([float(name) for name in texts])
    different = np.isfinite(values).all() and len(np.unique(values)) == len(values)
    return values if different else None


Selection = Iterable[Any] | None  # names, or one truth value for each


def coded(
    values: Sequence[Any] | Array, declared: Iterable[Any] | None, role: str
) -> tuple[Codes, Names]:
    """Return codes and names; where names are declared, every value has to be one of them."""
    if not isinstance(values, np.ndarray):
        values = list(values)
    gaps = np.flatnonzero(absent(as_array(values)))
    if len(gaps):
        raise DataError(f"row {gaps[0] + 1}: no {role}", rows=len(gaps))
    codes, used_names = code(values)
    if declared is None:
        return codes, used_names
    names = as_names(declared)
    positions = {name: position for position, name in enumerate(names.tolist())}
    if len(positions) < len(names):
        raise DataError(f"the {role} names that were declared are not all different")
    for name in used_names.tolist():
        if name not in positions:
            word = "classes" if role == "label" else f"{role}s"
            raise DataError(f"{role} {name!r} is not among the {word} {abbreviate(names)}")
    table = np.array(
        [positions[name] for name in used_names.tolist()], dtype=smallest_dtype(len(names))
    )
    return (table[codes] if len(used_names) else codes), names


class Distinct(NamedTuple):
    """Names that are texts, all different, and nobody else's array: there is nothing to check."""

    names: Names


def declared(names: Iterable[Any] | int, role: str) -> Names:
    """Return names, or the numbers up to a count; refuse a name that appears twice."""
    if isinstance(names, int):
        return numbered(names)
    if isinstance(names, Distinct):
        return names.names
    texts = as_names(names)
    if len(set(texts.tolist())) < len(texts):
        twice = Counter(texts.tolist()).most_common(1)[0][0]
        raise DataError(f"the {role} {twice!r} appears twice among the names")
    return texts


def checked_codes(codes: Any, size: int, role: str) -> Codes:
    """Return codes in the smallest type; refuse those that are no whole numbers below `size`."""
    numbers = np.asarray(codes)
    if not numbers.size:
        return numbers.astype(smallest_dtype(size))
    if numbers.dtype.kind not in "iub":
        raise DataError(f"{role} codes are whole numbers, but these are {numbers.dtype}")
    low, high = int(numbers.min()), int(numbers.max())
    if low < 0 or high >= size:
        wrong = low if low < 0 else high
        raise DataError(f"the {role} code {wrong} is out of range: there are {size} names")
    return numbers.astype(smallest_dtype(size), copy=False)


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


def indices_of(names: Names, among: Names) -> Integers:
    """Return the index of every name among others, -1 where it is missing."""
    if np.array_equal(names, among):
        return np.arange(len(names))
    position = {name: code for code, name in enumerate(among.tolist())}
    return np.array([position.get(name, -1) for name in names.tolist()], dtype=np.int64)


def union(names: Names, extra: Names) -> Names:
    """Return all names of both, in natural order where the first are in it."""
    new = extra[indices_of(extra, names) < 0]
    if len(new) == 0:
        return names
    all_names = [*names.tolist(), *new.tolist()]
    natural = np.array_equal(code(names.tolist())[1], names)
    return code(all_names)[1] if natural else as_names(all_names)


def chosen(selection: Selection, names: Names, role: str) -> npt.NDArray[np.bool_]:
    """Return a mask of the selected names."""
    if selection is None:
        return np.ones(len(names), dtype=bool)
    choice = selection if isinstance(selection, np.ndarray) else list(selection)
    if isinstance(choice, np.ndarray) and choice.dtype == bool:
        if len(choice) != len(names):
            raise DataError(f"{len(choice)} truth values for {len(names)} {role} names")
        return choice
    selected = {text(name) for name in choice}
    unknown = selected - set(names.tolist())
    if unknown:
        raise DataError(f"no {role} {sorted(unknown)[0]!r}; there are {abbreviate(names)}")
    return np.array([name in selected for name in names.tolist()], dtype=bool)


def abbreviate(names: Names, most: int = 8) -> str:
    """Return the first names, and how many there are when that is not all."""
    short = [name if len(name) <= 30 else f"{name[:29]}…" for name in names[:most].tolist()]
    short = [name if name.isprintable() else repr(name) for name in short]
    return ", ".join(short) + (f" … ({len(names)} in all)" if len(names) > most else "")
