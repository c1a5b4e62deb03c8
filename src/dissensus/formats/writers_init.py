"""Writing: annotations and results in, files in every format out."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .content import Card
    from .pseudonyms import pseudonymise
    from .targets import losses
    from .writing import write, write_answers

__all__ = ["Card", "losses", "pseudonymise", "write", "write_answers"]

_HOMES = {  # imported on first use
    "Card": "content",
    "losses": "targets",
    "pseudonymise": "pseudonyms",
    "write": "writing",
    "write_answers": "writing",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f".{_HOMES[name]}", __package__), name)
