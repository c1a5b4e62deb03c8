"""Batches of annotations in the order of their arrival: one file each, whole or not there."""

from __future__ import annotations

import io
import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import polars as pl

from .._files import atomic_file
from ..errors import DataError
from ..readers.columns import NEEDED, find_columns
from ..readers.long_tables import without_gaps
from ..readers.sources import open_source
from ..readers.tables import column_names, read_columns
from .parquet_files import naming

IDS = ["id", "annotation_id", "answer_id", "label_uid", "assignment_id"]


class AnnotationBatch(NamedTuple):
    """New annotations by name, perhaps with ids, and notes about their source."""

    item: Sequence[str]
    annotator: Sequence[str]
    label: Sequence[str]
    ids: Sequence[str] | None
    notes: dict[str, Any]


def write_batch(path: Path, batch: AnnotationBatch) -> None:
    """Write a batch: a line of notes, then the table."""
    columns = {"item": batch.item, "annotator": batch.annotator, "label": batch.label}
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
    with naming(str(path)), path.open("rb") as file:
        notes = json.loads(file.readline())
        frame = pl.read_ipc_stream(io.BytesIO(file.read()))
    ids = frame["id"].to_list() if "id" in frame.columns else None
    item, annotator, label = (frame[role].to_list() for role in NEEDED)
    return AnnotationBatch(item, annotator, label, ids, notes)


def new_rows(
    path: Path, seen: int, columns: Mapping[str, str] | None = None, missing: str = "error"
) -> AnnotationBatch:
    """Return the rows of a file after the first `seen`; `notes["rows"]` counts them all.

    An incomplete last line is left for the next time: it may still be being written.
    """
    source = open_source(path)
    if source.format in ("csv", "tsv", "jsonl") and isinstance(source.content, Path):
        raw = source.content.read_bytes()
        source = replace(source, content=raw[: raw.rfind(b"\n") + 1])
    if not source.content:
        return AnnotationBatch([], [], [], None, {"rows": seen})
    present = column_names(source)
    given = dict(columns or {})
    name = given.pop("id", next((one for one in present if one.lower() in IDS), None))
    others = [one for one in present if one != name]
    roles = find_columns(others, NEEDED, given, source.name)
    names = {role: roles[role] for role in NEEDED} | ({"id": name} if name else {})
    frame = read_columns(source, list(names.values()))
    if frame.height < seen:
        raise DataError(
            f"{path}: has {frame.height} rows, and {seen} were read before; files may only grow"
        )
    rows = frame.height
    frame = frame.select(pl.col(one).alias(role) for role, one in names.items()).slice(seen)
    frame = without_gaps(frame, missing)
    texts = [frame[role].cast(pl.String).to_list() for role in names]
    return AnnotationBatch(texts[0], texts[1], texts[2], texts[3] if name else None, {"rows": rows})
