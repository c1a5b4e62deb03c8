"""Reading: files, tables and exports of labelling tools in, annotations or answers out."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from .coerce import as_annotations, as_truth

if TYPE_CHECKING:
    from .any_kind import read
    from .long_tables import as_numbers
    from .predictions import read_predictions
    from .reading import Reading, examine, examine_question
    from .scales import kind_of_labels
    from .side_tables import read_truth

__all__ = [
    "Reading",
    "as_annotations",
    "as_numbers",
    "as_truth",
    "examine",
    "examine_question",
    "kind_of_labels",
    "read",
    "read_predictions",
    "read_truth",
]

# Imported on first use: annotations that are already in memory need no reader and no polars.
_HOMES = {
    "Reading": "reading",
    "as_numbers": "long_tables",
    "examine": "reading",
    "examine_question": "reading",
    "kind_of_labels": "scales",
    "read": "any_kind",
    "read_predictions": "predictions",
    "read_truth": "side_tables",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f".{_HOMES[name]}", __name__), name)
