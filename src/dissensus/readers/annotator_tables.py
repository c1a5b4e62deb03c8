"""What is known of annotators, from a table: one row each."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from .._names import text
from .columns import NEEDED, find_columns
from .sources import open_source
from .tables import column_names, read_columns

__all__ = ["read_annotators"]


def read_annotators(path: str | Path) -> dict[str, dict[str, Any]]:
    """Return annotator → column → value; empty cells are `None`."""
    source = open_source(path)
    present = column_names(source)
    known = [*NEEDED["annotator"], "id", "name"]
    column = find_columns(present, {"annotator": known}, None, source.name)["annotator"]
    frame = read_columns(source, present)
    out: dict[str, dict[str, Any]] = {}
    for row in frame.iter_rows(named=True):
        name = row.pop(column)
        if name is None:
            raise source.fail("a row without an annotator; name them all")
        if text(name) in out:
            raise source.fail(f"annotator {text(name)!r} has two rows; keep one")
        out[text(name)] = row
    return out
