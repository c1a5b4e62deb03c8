"""Engines: where the parts of the data are processed.

A method describes work on one part of the items; an engine runs it over all of them and adds up
the results. Anything that fulfils the `Engine` protocol can run every additive method. A part is a
`Part`, or what the engine has instead: a file, or something on another machine.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from .local import Local, add

if TYPE_CHECKING:
    from ..answers.base import Relation

__all__ = ["Engine", "Local", "add"]

Result = TypeVar("Result")


class Engine(Protocol):
    """Something that runs work over parts of the items."""

    def cut(self, annotations: Relation) -> list[tuple[int, int]]:
        """Return the ranges of items to work on, one after the other."""
        ...

    def each(self, work: Callable[[Any], Result], parts: Sequence[Any]) -> Iterable[Result]:
        """Yield the result of the work for every part, in the order of the parts."""
        ...

    def add_up(self, work: Callable[[Any], Result], parts: Sequence[Any]) -> Result:
        """Return the results of the work for all parts, added up field by field."""
        ...
