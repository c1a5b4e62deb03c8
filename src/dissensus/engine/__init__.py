"""Where parts of the data are worked on.

A method describes work on one part of the items; an engine runs it over all of them and adds up
what comes back. Anything that keeps the `Engine` contract can carry every additive method. A part
is a `Part`, or what the engine has in its place: a file, or something on another machine.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from ._addition import add
from .local import Local

if TYPE_CHECKING:
    from ..annotations import Annotations

__all__ = ["Engine", "Local", "add"]

Result = TypeVar("Result")


class Engine(Protocol):
    """What a method needs of a place to run on."""

    def cut(self, annotations: Annotations) -> list[tuple[int, int]]:
        """Return the ranges of items to work on, one after the other."""
        ...

    def each(self, work: Callable[[Any], Result], parts: Sequence[Any]) -> Iterable[Result]:
        """Yield what the work makes of every part, in the order of the parts."""
        ...

    def add_up(self, work: Callable[[Any], Result], parts: Sequence[Any]) -> Result:
        """Return what the work makes of every part, added up field by field."""
        ...
