"""Names and their integer codes.

Names are in natural order: as numbers where all of them are numbers, as texts otherwise. So the
codes do not depend on the order of rows.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from .errors import DataError

Names = npt.NDArray[Any]  # of Python strings; `None` only where a label is undecided
Codes = npt.NDArray[np.unsignedinteger[Any]]

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
    known = sorted(set(texts))
    if all(re.match(NUMBER, name) and math.isfinite(float(name)) for name in known):
        known.sort(key=float)
    lookup = {name: position for position, name in enumerate(known)}
    dtype = smallest_dtype(len(known))
    return np.fromiter(map(lookup.__getitem__, texts), dtype, len(texts)), as_names(known)


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


def smallest_dtype(count: int) -> np.dtype[np.unsignedinteger[Any]]:
    """Return the smallest unsigned type for codes below `count`."""
    return np.min_scalar_type(max(count - 1, 0))
