"""Annotations, numbers and results as files, in any of the formats of `targets`."""

from __future__ import annotations

import gzip
import io
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import IO, Any

import msgspec
import polars as pl

from .._files import atomic_file
from ..errors import DataError, OptionError
from ..readers.reading import Reading
from ..readers.sources import format_for
from ..readers.tables import write_frame
from .content import Content, What, content_of, table_of
from .targets import TARGETS, Place, goes_to_folder, losses, place_of

__all__ = ["goes_to_folder", "losses", "table_of", "write", "write_truth"]


def write(
    what: What | Reading,
    path: str | Path,
    *,
    format: str | None = None,  # noqa: A002
    gold: Mapping[str, str] | None = None,
    texts: Mapping[str, str] | pl.DataFrame | None = None,
    beside: Reading | None = None,
) -> None:
    """Write annotations or results; the ending tells the format, `-` is standard output as CSV.

    Parameters
    ----------
    what
        Annotations, numbers, a result, or a reading with what was found beside the annotations.
    path
        A file ending in .csv, .tsv, .parquet, .arrow, .jsonl or .json (text also .gz, tables also
        .zst); a folder (no ending, or a slash) gets the layout of peerannot.
    format
        `long`, `nested`, `wide`, `crowd-kit`, `label-studio`, `argilla`, `huggingface` or
        `peerannot`, or a kind of file where the ending does not tell.
    gold, texts
        Known classes and what the items are, by item, for formats that hold them.
    beside
        For a result, the reading that it was made from: its question, gold and texts go along.
    """
    content = content_of(what, gold, texts, beside)
    position = place_of(content.what, path, format)
    if position.kind == "folder":
        TARGETS[position.target].module.save(content, path)
        return
    made = _made(content, position.target)
    if str(path) == "-":
        body = io.BytesIO()
        _save(made, body, position)
        sys.stdout.buffer.write(body.getvalue())
        sys.stdout.buffer.flush()
        return
    with atomic_file(path) as draft, draft.open("wb") as file:
        _save(made, file, position)


def write_truth(truth: Mapping[str, Any], path: str | Path) -> None:
    """Write known labels as a table of item and label."""
    kind, compression = format_for(path)
    frame = pl.DataFrame({"item": list(truth), "label": list(truth.values())})
    with atomic_file(path) as draft, draft.open("wb") as file:
        write_frame(frame, file, kind, compression)


def _made(content: Content, name: str) -> Any:
    """Return a table, records one by one, or one object."""
    module = TARGETS[name].module
    if not content.is_result:
        return module.answers(content)
    if not hasattr(module, "results"):
        others = ", ".join(other for other in TARGETS if hasattr(TARGETS[other].module, "results"))
        raise OptionError(f"{name} is for annotations; a result can be written as {others}")
    return module.results(content)


def _save(made: Any, file: IO[bytes], position: Place) -> None:
    if isinstance(made, pl.DataFrame) and position.kind != "json":
        write_frame(made, file, position.kind, position.compression)
        return
    if position.compression == "zstd":
        raise DataError("JSON is written plain or as .gz, not as .zst")
    if isinstance(made, pl.DataFrame):
        made = made.iter_rows(named=True)
    if position.compression == "gzip":
        with gzip.GzipFile(fileobj=file, mode="wb", mtime=0) as packed:
            _save_json(made, packed, position.kind)
    else:
        _save_json(made, file, position.kind)


def _save_json(made: Any, file: IO[bytes] | gzip.GzipFile, kind: str) -> None:
    """Write one object, or records as a list or a line each, piece by piece."""
    encode = msgspec.json.Encoder().encode
    if isinstance(made, dict):
        file.write(encode(made))
        return
    records: Iterable[Any] = made
    before, between, after = (b"", b"\n", b"\n") if kind == "jsonl" else (b"[", b",\n", b"]\n")
    file.write(before)
    for position, record in enumerate(records):
        if position:
            file.write(between)
        file.write(encode(record))
    file.write(after)
