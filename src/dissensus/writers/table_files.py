"""Tables, arrays and JSON as files, each whole or not there."""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import IO, Any

import numpy as np
import polars as pl

from .._files import atomic_file
from .._relation import Array
from ..readers.sources import format_for


def write_columns(columns: Mapping[str, Array], path: str | Path) -> None:
    """Write columns as a table; the ending gives the format, `-` is standard output as CSV.

    NaN is left empty.
    """
    frame = pl.DataFrame({name: as_column(values) for name, values in columns.items()})
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


def write_truth(truth: Mapping[str, Any], path: str | Path) -> None:
    """Write known labels as a table of item and label."""
    columns = {"item": list(truth), "label": list(truth.values())}
    write_columns({name: np.array(values) for name, values in columns.items()}, path)


def write_frame(frame: pl.DataFrame, file: IO[bytes], kind: str, compression: Any) -> None:
    """Write a table to an open file."""
    match kind:
        case "parquet":
            frame.write_parquet(file, compression="zstd")
        case "arrow":
            frame.write_ipc(file)
        case "jsonl":
            frame.write_ndjson(file, compression=compression)
        case "json":
            file.write(json.dumps(frame.to_dicts(), ensure_ascii=False).encode())
        case _:
            separator = "\t" if kind == "tsv" else ","
            frame.write_csv(file, separator=separator, compression=compression)


def as_column(values: np.ndarray[Any, Any]) -> pl.Series:
    """Return an array as a column."""
    return pl.Series(values.tolist() if values.dtype.kind == "T" else values)


def write_json(path: Path, content: Any, indent: int | None = None) -> None:
    """Write JSON."""
    with atomic_file(path) as draft:
        body = json.dumps(content, indent=indent, ensure_ascii=indent is None)
        draft.write_text(body, encoding="utf-8")


def save_array(path: Path, array: np.ndarray[Any, Any]) -> None:
    """Write an array."""
    with atomic_file(path) as draft, draft.open("wb") as file:
        np.save(file, array, allow_pickle=False)
