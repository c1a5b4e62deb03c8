"""Annotations, numbers, results, tables, arrays and JSON as files, each whole or not there."""

from __future__ import annotations

import gzip
import io
import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import polars as pl

from .._files import atomic_file, write_stdout
from .._panics import without_panics
from .._relation import Array
from .._tables import Tabular
from ..annotations import Annotations
from ..answers import Answers
from ..errors import DataError, OptionError
from ..readers.reading import Reading
from ..readers.sources import FORMATS, format_for
from .cards import Card
from .content import Content, Writable, content_of, frame_of_table, table_of
from .targets import ANSWER_TARGETS, TARGETS, destination_of


def write(
    what: Writable | Reading | Any,
    path: str | Path,
    *,
    format: str | None = None,  # noqa: A002
    gold: Any = None,
    texts: Mapping[str, str] | Any = None,
    reading: Reading | None = None,
    card: Card | None = None,
) -> None:
    """Write annotations or results; the ending gives the format, `-` is standard output as CSV.

    Parameters
    ----------
    what
        Annotations, numbers, answers, a result of any kind, a reading with its gold and texts, or
        what `read` takes. Answers are records in .jsonl and .json, a row per mark elsewhere.
    path
        A file ending in .csv, .tsv, .parquet, .arrow, .jsonl or .json (text also .gz, tables also
        .zst); a folder (no ending, or a slash) gets the layout of peerannot.
    format
        `long`, `nested`, `wide`, `crowd-kit`, `label-studio`, `argilla`, `huggingface`,
        `huggingface-folder` or `peerannot`, or a kind of file where the ending does not show it.
    gold, texts
        Known classes and texts of items, by item, for formats that hold them.
    reading
        For a result, the reading it is based on, for its question, gold and texts.
    card
        For `huggingface-folder`, what its card has beside the data.
    """
    if isinstance(what, Answers):
        _write_answers(what, path, format)
        return
    if isinstance(what, Tabular) and not isinstance(what, Writable):
        write_columns(what._table(), path, format)
        return
    content = content_of(what, gold, texts, reading)
    destination = destination_of(content.what, path, format)
    if destination.kind == "folder":
        more = {"card": card} if destination.target == "huggingface-folder" else {}
        TARGETS[destination.target].module.save(content, path, **more)
        return
    if destination.target in ("long", "crowd-kit"):
        names = {"item": "task", "annotator": "worker"} if destination.target != "long" else {}
        body: Any = table_of(content.what).rename(names, strict=False)
    else:
        body = _body(content, destination.target)
    _save(body, path, destination.kind, destination.compression)


def _write_answers(answers: Answers, path: str | Path, given: str | None) -> None:
    """Write answers for a tool, as records where the file is JSON, or as a long table."""
    from .answers import answers_frame
    from .tool_answers import write_answers

    if given in ANSWER_TARGETS:
        write_answers(answers, path, format=given)
        return
    kind, compression = _kind_of_file(path, given)
    if kind == "npy":
        raise OptionError(f"{path}: answers are written as a table or as JSON")
    body = answers.to_rows() if kind in ("jsonl", "json") else answers_frame(answers)
    _save(body, path, kind, compression)


def _kind_of_file(path: str | Path, given: str | None) -> tuple[str, str]:
    if given is not None and given not in FORMATS:
        known = ", ".join((*FORMATS, *ANSWER_TARGETS))
        raise OptionError(f"--to {given}: answers of this kind are written as {known}")
    if str(path) == "-":
        return given or "csv", "uncompressed"
    return format_for(path, given)


def write_columns(
    columns: Mapping[str, Array],
    path: str | Path,
    format: str | None = None,  # noqa: A002
) -> None:
    """Write columns as a table; the ending gives the format, `-` is standard output as CSV.

    NaN is left empty.
    """
    frame = frame_of_table(columns)
    kind, compression = _kind_of_file(path, format)
    _save(frame, path, kind, compression)


def write_truth(truth: Mapping[str, Any], path: str | Path) -> None:
    """Write known labels as a table of item and label."""
    columns = {"item": list(truth), "label": list(truth.values())}
    write_columns({name: np.array(values) for name, values in columns.items()}, path)


def write_json(path: Path, content: Any, indent: int | None = None) -> None:
    """Write JSON."""
    with atomic_file(path) as draft:
        body = json.dumps(content, indent=indent, ensure_ascii=indent is None)
        draft.write_text(body, encoding="utf-8")


def save_array(path: Path, array: Array) -> None:
    """Write an array."""
    with atomic_file(path) as draft, draft.open("wb") as file:
        np.save(file, array, allow_pickle=False)


def _body(content: Content, name: str) -> Any:
    """Return the table, records or object of a format that is not a long table."""
    if name == "nested" and not content.is_result:
        if not isinstance(content.what, Annotations):
            raise OptionError("nested JSON holds classes, not numbers; write a table")
        return content.what.to_dict()
    target = TARGETS[name]
    if not content.is_result:
        return target.module.answers(content)
    if not target.results:
        others = ", ".join(other for other in TARGETS if TARGETS[other].results)
        raise OptionError(f"{name} is for annotations; a result can be written as {others}")
    return target.module.results(content)


def _save(body: Any, path: str | Path, kind: str, compression: Any) -> None:
    """Write a table, records or one object to a file, whole or not at all, or to standard output.

    Records are written one by one, as a list or a line each.
    """
    frame = body if isinstance(body, pl.DataFrame) else None
    if compression == "zstd" and (frame is None or kind == "json"):
        raise DataError("JSON is written plain or as .gz, not as .zst")
    with atomic_file(path) if str(path) != "-" else nullcontext() as draft:
        file: Any = io.BytesIO() if draft is None else draft.open("wb")
        with file:
            if frame is None:
                _save_json(body, file, kind, compression)
            else:
                with _writable_times(frame, path):
                    _save_frame(frame, file, kind, compression)
            if draft is None:
                write_stdout(file.getvalue())


def _save_frame(frame: pl.DataFrame, file: Any, kind: str, compression: Any) -> None:
    """Write a table."""
    match kind:
        case "json":
            _save_json(frame.iter_rows(named=True), file, kind, compression)
        case "parquet":
            frame.write_parquet(file, compression="zstd")
        case "arrow":
            frame.write_ipc(file)
        case "jsonl":
            frame.write_ndjson(file, compression=compression)
        case _:
            separator = "\t" if kind == "tsv" else ","
            frame.write_csv(file, separator=separator, compression=compression)


@contextmanager
def _writable_times(frame: pl.DataFrame, path: str | Path) -> Iterator[None]:
    """Refuse times that no calendar has, at which polars panics while it writes."""
    if not any(dtype.is_temporal() for dtype in frame.dtypes):
        yield
        return
    try:
        with without_panics():
            yield
    except (pl.exceptions.ComputeError, ValueError, OverflowError):
        raise DataError(f"{path}: a time is out of the years that can be written") from None


def _save_json(body: Any, file: Any, kind: str, compression: str) -> None:
    """Write one object, or records as a list or a line each, one by one."""
    if compression == "gzip":
        with gzip.GzipFile(fileobj=file, mode="wb", mtime=0) as packed:
            _save_json(body, packed, kind, "uncompressed")
        return
    encode = msgspec.json.Encoder().encode
    if isinstance(body, dict):
        file.write(encode(body))
        return
    before, between, after = (b"", b"\n", b"\n") if kind == "jsonl" else (b"[", b",\n", b"]\n")
    file.write(before)
    for number, record in enumerate(body):
        file.write((between if number else b"") + encode(record))
    file.write(after)
