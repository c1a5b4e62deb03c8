"""Kinds of answers beside one class per item: numbers, sets, rankings, marks, masks, texts.

`Annotations` holds classes. Every other kind but numbers is `Answers`: one row per answer, and an
answer may be empty. `KINDS` has the class of every kind.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any

from .base import Answers, Candidates, Ragged

if TYPE_CHECKING:
    from .marks import Boxes as Boxes
    from .marks import Points as Points
    from .marks import Spans as Spans
    from .masks import Masks as Masks
    from .numbers import Numbers as Numbers

KINDS: Mapping[str, str] = {  # kind → module:Class
    "sets": "sets:Sets",
    "rankings": "rankings:Rankings",
    "texts": "texts:Texts",
    "spans": "marks:Spans",
    "boxes": "marks:Boxes",
    "points": "marks:Points",
    "masks": "masks:Masks",
}

__all__ = [
    "KINDS",
    "Answers",
    "Candidates",
    "Numbers",
    "Ragged",
    "kind_class",
    *(target.partition(":")[2] for target in KINDS.values()),
]

_HOMES = {"Numbers": "numbers"} | {
    target.partition(":")[2]: target.partition(":")[0] for target in KINDS.values()
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f".{_HOMES[name]}", __name__), name)


def kind_class(kind: str) -> type[Answers]:
    """Return the class that holds answers of a kind."""
    module, _, name = KINDS[kind].partition(":")
    return getattr(import_module(f".{module}", __name__), name)
