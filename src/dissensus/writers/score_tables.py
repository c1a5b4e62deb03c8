"""Tables of scores as files."""

from __future__ import annotations

import io
import sys
from collections.abc import Mapping
from pathlib import Path

import polars as pl

from .._files import atomic_file
from .._relation import Array
from ..readers.sources import format_for
from ..readers.tables import write_frame

__all__ = ["write_columns"]


def write_columns(columns: Mapping[str, Array], path: str | Path) -> None:
    """Write columns as a table; the ending tells the format, `-` is standard output as CSV.

    What is not a number is left empty.
    """
    frame = pl.DataFrame(
        {
            name: pl.Series(values.tolist() if values.dtype.kind == "T" else values)
            for name, values in columns.items()
        }
    )
    frame = frame.with_columns(pl.selectors.float().fill_nan(None))
    if str(path) == "-":
        body = io.BytesIO()
        write_frame(frame, body, "csv", "uncompressed")
        sys.stdout.buffer.write(body.getvalue())
        sys.stdout.buffer.flush()
        return
    kind, compression = format_for(path)
    with atomic_file(path) as draft, draft.open("wb") as file:
        write_frame(frame, file, kind, compression)
