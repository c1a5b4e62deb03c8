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
from ..annotations import Annotations
from ..errors import DataError, OptionError
from ..readers.reading import Reading
from .content import Content, Writable, content_of, table_of
from .table_files import write_frame
from .targets import TARGETS, Destination, destination_of


def write(
    what: Writable | Reading,
    path: str | Path,
    *,
    format: str | None = None,  # noqa: A002
    gold: Mapping[str, str] | None = None,
    texts: Mapping[str, str] | pl.DataFrame | None = None,
    reading: Reading | None = None,
) -> None:
    """Write annotations or results; the ending gives the format, `-` is standard output as CSV.

    Parameters
    ----------
    what
        Annotations, numbers, a result, or a reading with its gold and texts.
    path
        A file ending in .csv, .tsv, .parquet, .arrow, .jsonl or .json (text also .gz, tables also
        .zst); a folder (no ending, or a slash) gets the layout of peerannot.
    format
        `long`, `nested`, `wide`, `crowd-kit`, `label-studio`, `argilla`, `huggingface` or
        `peerannot`, or a kind of file where the ending does not show it.
    gold, texts
        Known classes and texts of items, by item, for formats that hold them.
    reading
        For a result, the reading it is based on, for its question, gold and texts.
    """
    content = content_of(what, gold, texts, reading)
    destination = destination_of(content.what, path, format)
    if destination.kind == "folder":
        from .folders import save

        save(content, path)
        return
    body = _body(content, destination.target)
    if str(path) == "-":
        buffer = io.BytesIO()
        _save(body, buffer, destination)
        sys.stdout.buffer.write(buffer.getvalue())
        sys.stdout.buffer.flush()
        return
    with atomic_file(path) as draft, draft.open("wb") as file:
        _save(body, file, destination)


def _body(content: Content, name: str) -> Any:
    """Return a table, records one by one, or one object."""
    if name == "nested" and not content.is_result:
        if not isinstance(content.what, Annotations):
            raise OptionError("nested JSON holds classes, not numbers; write a table")
        return content.what.to_dict()
    target = TARGETS[name]
    if name in ("long", "crowd-kit"):
        names = {"item": "task", "annotator": "worker"} if name == "crowd-kit" else {}
        return table_of(content.what).rename(names, strict=False)
    if not content.is_result:
        return target.module.answers(content)
    if not target.results:
        others = ", ".join(other for other in TARGETS if TARGETS[other].results)
        raise OptionError(f"{name} is for annotations; a result can be written as {others}")
    return target.module.results(content)


def _save(body: Any, file: IO[bytes], destination: Destination) -> None:
    if isinstance(body, pl.DataFrame) and destination.kind != "json":
        write_frame(body, file, destination.kind, destination.compression)
        return
    if destination.compression == "zstd":
        raise DataError("JSON is written plain or as .gz, not as .zst")
    if isinstance(body, pl.DataFrame):
        body = body.iter_rows(named=True)
    if destination.compression == "gzip":
        with gzip.GzipFile(fileobj=file, mode="wb", mtime=0) as packed:
            _save_json(body, packed, destination.kind)
    else:
        _save_json(body, file, destination.kind)


def _save_json(body: Any, file: IO[bytes] | gzip.GzipFile, kind: str) -> None:
    """Write one object, or records as a list or a line each, one by one."""
    encode = msgspec.json.Encoder().encode
    if isinstance(body, dict):
        file.write(encode(body))
        return
    records: Iterable[Any] = body
    before, between, after = (b"", b"\n", b"\n") if kind == "jsonl" else (b"[", b",\n", b"]\n")
    file.write(before)
    for number, record in enumerate(records):
        if number:
            file.write(between)
        file.write(encode(record))
    file.write(after)
