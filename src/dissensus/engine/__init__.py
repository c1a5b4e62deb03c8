"""Where parts of the data are worked on.

A method describes work on one part of the items; an engine runs it over all of them and adds up
what comes back. Anything that keeps the `Engine` contract can carry every additive method.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

import numpy as np

from .local import Local

if TYPE_CHECKING:
    from ..annotations import Annotations, Part

__all__ = ["Engine", "Local", "add"]

Result = TypeVar("Result")


class Engine(Protocol):
    """What a method needs of a place to run on."""

    def cut(self, said: Annotations) -> list[tuple[int, int]]:
        """Return the ranges of items to work on, one after the other."""
        ...

    def each(self, work: Callable[[Part], Result], parts: Sequence[Part]) -> Iterable[Result]:
        """Yield what the work makes of every part, in the order of the parts."""
        ...


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
