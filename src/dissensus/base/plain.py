"""Values as JSON has them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np

_PLAIN = {str, int, bool, type(None)}


def as_plain(value: Any) -> Any:
    """Return dictionaries, lists and numbers only, with `None` for NaN and infinity.

    >>> as_plain({"a": np.array([1.0, np.nan]), "b": (True, "x")})
    {'a': [1.0, None], 'b': [True, 'x']}
    """
    match value:
        case float():
            return value if math.isfinite(value) else None
        case np.ndarray() | np.generic():
            return as_plain(value.tolist())
        case list() if set(map(type, value)) <= _PLAIN:
            return list(value)
        case Mapping():
            return {name: as_plain(part) for name, part in value.items()}
        case tuple() if hasattr(value, "_asdict"):
            return as_plain(value._asdict())
        case tuple() | list():
            return [as_plain(part) for part in value]
    if is_dataclass(value) and not isinstance(value, type):
        return {field.name: as_plain(getattr(value, field.name)) for field in fields(value)}
    return value


def as_rows(table: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return a table of columns as rows.

    >>> as_rows({"a": np.array([1, 2]), "b": np.array([0.5, np.nan])})
    [{'a': 1, 'b': 0.5}, {'a': 2, 'b': None}]
    """
    columns = [as_plain(column) for column in table.values()]
    return [dict(zip(table, row, strict=True)) for row in zip(*columns, strict=True)]
