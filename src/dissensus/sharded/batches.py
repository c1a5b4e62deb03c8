"""Batches of annotations in the order of their arrival: one file each, whole or not there."""

from __future__ import annotations

import io
import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from hashlib import blake2b
from pathlib import Path
from typing import Any, NamedTuple

import polars as pl

from .._files import atomic_file
from .._panics import without_panics
from .._serialization import damage
from ..errors import DataError
from ..readers.columns import NEEDED, find_columns
from ..readers.frames import names_of
from ..readers.long_tables import as_texts, without_gaps
from ..readers.sources import open_source
from ..readers.tables import column_names, read_columns

IDS = ["id", "annotation_id", "answer_id", "label_uid", "assignment_id"]


class AnnotationBatch(NamedTuple):
    """New annotations by name, perhaps with ids, and notes about their source."""

    item: Sequence[str]
    annotator: Sequence[str]
    label: Sequence[str]
    ids: Sequence[str | None] | None
    notes: dict[str, Any]


def write_batch(path: Path, batch: AnnotationBatch) -> None:
    """Write a batch: a line of notes, then the table."""
    columns: dict[str, Sequence[Any]] = {
        "item": batch.item,
        "annotator": batch.annotator,
        "label": batch.label,
    }
    if batch.ids is not None:
        columns["id"] = batch.ids
    body = io.BytesIO()
    frame = pl.DataFrame({name: list(values) for name, values in columns.items()})
    frame.cast(pl.String).write_ipc_stream(body, compression="lz4")
    with atomic_file(path) as draft, draft.open("wb") as file:
        file.write(json.dumps(batch.notes).encode() + b"\n")
        file.write(body.getbuffer())


def read_batch(path: Path) -> AnnotationBatch:
    """Read a batch that `write_batch` wrote."""
    with damage(f"{path}: a damaged batch of a stream"), without_panics(), path.open("rb") as file:
        notes = json.loads(file.readline())
        frame = pl.read_ipc_stream(io.BytesIO(file.read()))
        frame.select("item", "annotator", "label")
        dict(notes["seen"])
    ids = frame["id"].to_list() if "id" in frame.columns else None
    item, annotator, label = (frame[role].to_list() for role in NEEDED)
    return AnnotationBatch(item, annotator, label, ids, notes)


class Mark(NamedTuple):
    """How far a file was read, and what shows whether it still is the same file."""

    rows: int
    first: str  # digest of the first row
    all: str  # digest of all of them


def new_rows(
    path: Path,
    seen: Mark | None = None,
    columns: Mapping[str, str] | None = None,
    missing: str = "error",
) -> AnnotationBatch:
    """Return the rows of a file that were not seen; `notes` hold the new mark, if there are any.

    An incomplete last line is left for the next time: it may still be being written. A file that
    begins with another row is another file, and read from its beginning (`notes["other"]`).
    """
    source = open_source(path)
    if source.format in ("csv", "tsv", "jsonl") and isinstance(source.content, Path):
        raw = source.content.read_bytes()
        source = replace(source, content=raw[: raw.rfind(b"\n") + 1])
    if not source.content:
        return AnnotationBatch([], [], [], None, {})
    present, given = column_names(source), dict(columns or {})
    free = [one for one in present if one not in given.values()]
    name = given.pop("id", next((one for one in free if one.lower() in IDS), None))
    roles = find_columns([one for one in present if one != name], NEEDED, given, source.name)
    names = {role: roles[role] for role in NEEDED} | ({"id": name} if name else {})
    frame = read_columns(source, list(names.values()))
    frame = as_texts(frame.select(pl.col(one).alias(role) for role, one in names.items()))
    start = 0 if seen is None or _is_other(frame, seen, path) else seen.rows
    if frame.height <= start:
        return AnnotationBatch([], [], [], None, {})
    mark = Mark(frame.height, _digest(frame.head(1)), _digest(frame))
    if missing == "error":
        without_gaps(frame, missing, source)  # all of them, for the number of the line
    new = without_gaps(frame.slice(start), missing)
    texts = [names_of(new[role]).to_list() for role in names]
    notes = {"mark": list(mark), "other": seen is not None and not start}
    return AnnotationBatch(texts[0], texts[1], texts[2], texts[3] if name else None, notes)


def _is_other(frame: pl.DataFrame, seen: Mark, path: Path) -> bool:
    """Return whether a file is another than the one that was seen; refuse one that was changed."""
    if frame.height >= seen.rows and _digest(frame.head(seen.rows)) == seen.all:
        return False
    if frame.height == 0 or _digest(frame.head(1)) == seen.first:
        raise DataError(
            f"{path}: {seen.rows} rows were read before, and now they are others; files may only "
            "grow, and a new file needs a new name"
        )
    return True


def _digest(frame: pl.DataFrame) -> str:
    rows = frame.select(names_of(column).alias(column.name) for column in frame.iter_columns())
    return blake2b(rows.write_csv(include_header=False).encode(), digest_size=12).hexdigest()
