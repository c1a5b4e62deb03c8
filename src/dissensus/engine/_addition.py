"""Sums of whatever a method counts: tuples of numbers and arrays, field by field."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, TypeVar

import numpy as np

__all__ = ["add"]

Result = TypeVar("Result")


def add(results: Iterable[Result]) -> Result:
    """Add up tuples of numbers and arrays, field by field.

    >>> add([(1, np.ones(2)), (2, np.ones(2))])
    (3, array([2., 2.]))
    """
    each = iter(results)
    total: Any = next(each)
    for result in each:
        total = _plus(total, result)
    return total


def _plus(total: Any, more: Any) -> Any:
    if isinstance(total, tuple):
        fields = [_plus(one, other) for one, other in zip(total, more, strict=True)]
        return type(total)._make(fields) if hasattr(total, "_make") else tuple(fields)
    if isinstance(total, np.ndarray):
        total += more  # in place: these are counts that the work made for us
        return total
    return total + more
