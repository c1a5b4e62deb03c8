"""Files that other programs write meanwhile: which of their rows did not count yet.

New rows are told from those that count already by marks of how far a file was read, also where it
has another name now, begins as another one, or has a last line that may still go on.
"""

from __future__ import annotations

import csv
import io
import json
import os
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from hashlib import blake2b
from itertools import accumulate
from pathlib import Path
from typing import NamedTuple

import numpy as np
import polars as pl

from ..errors import DataError
from ..formats.columns import NEEDED, find_columns
from ..formats.frames import names_of
from ..formats.long_tables import as_texts, without_gaps
from ..formats.sources import Source, with_format
from ..formats.tables import column_names, read_columns
from .annotation_log import AnnotationBatch

_IDS = ["id", "annotation_id", "answer_id", "label_uid", "assignment_id"]
_TEXT = ("csv", "tsv")
_ATTEMPTS = 20  # to read a file that changes meanwhile
_SWALLOWED = "swallowed rows"  # lines within a quoted field that look like rows
_MARKED = b"\n\xef\xbb\xbf"  # a byte order mark at the beginning of a line


class Mark(NamedTuple):
    """How far a file was read, and what shows whether it still is the same file."""

    rows: int  # of lines that have ended
    first: str  # digest of the first row
    all: str  # digest of all of them
    last: list[str | None] | None = None  # the row of a last line without an end, if it counts


class NewRows(NamedTuple):
    """The rows of a file that did not count yet, and what there is to say about it."""

    batch: AnnotationBatch | None = None  # if there is anything to store
    marks: Mapping[str, Mark | None] = {}  # by the name of a file; `None` for one that is gone
    gone: Sequence[Sequence[str | None]] = ()  # rows that counted until their line went on
    last: Sequence[str | None] | None = None  # the last row of the batch, if its line may go on
    is_other: bool = False  # whether it is another file than the one of this name before
    origin: str | None = None  # the file that it begins as
    is_moved: bool = False  # whether that file is gone
    skipped: int = 0  # rows that counted as those of that file
    unfinished: str | None = None  # the last line, if it does not count
    is_unclear: bool = False  # whether it may be the beginning of a file that is elsewhere now
    left_out: Mapping[str, int] = {}
    swallowing: str | None = None  # where quoted fields hold what looks like rows

    @property
    def sentences(self) -> list[str]:
        """What is unusual about the rows."""
        out = []
        if self.is_other:
            out.append(
                "another file than the one of this name before; all of it is read, and what was "
                "read before stays"
            )
        if self.origin is not None and self.is_moved:
            out.append(
                f"goes on as {self.origin}, which it begins as; {self.skipped} rows count there"
            )
        elif self.origin is not None:
            out.append(
                f"begins as {self.origin}; {self.skipped} rows are a copy and do not count again"
            )
        if self.gone:
            out.append("a line has gone on after its row was read; the row is replaced")
        if self.swallowing is not None:
            out.append(self.swallowing)
        if self.left_out:
            parts = [
                f"{count} {kind.removesuffix('s') if count == 1 else kind}"
                for kind, count in self.left_out.items()
            ]
            out.append(f"left out: {', '.join(parts)}")
        return out


class _Table(NamedTuple):
    """The rows of a file; the last one may be that of a line without an end."""

    source: Source
    frame: pl.DataFrame  # by role
    texts: pl.DataFrame  # the same as names
    ended: int  # rows of lines that have ended
    last_line: str | None  # the line without an end, for messages
    joints: Mapping[str, Sequence[int]]  # rows before or within which something was left out
    swallowing: str | None = None

    def counted(self, mark: Mark) -> int | None:
        """Return how many rows count already by a mark; `None` if it is that of another file."""
        if self.texts.height < mark.rows or _digest(self.texts.head(mark.rows)) != mark.all:
            return None
        return mark.rows + (mark.last is not None and self.row(mark.rows) == mark.last)

    def row(self, position: int) -> list[str | None] | None:
        """Return a row as names, if there is one."""
        return list(self.texts.row(position)) if position < self.texts.height else None


def new_rows(
    path: Path,
    earlier: Mark | None = None,
    columns: Mapping[str, str] | None = None,
    missing: str = "error",
    *,
    alike: Callable[[str], Mapping[str, Mark]] = lambda _: {},
    settled: bool = True,
    final: bool = True,
) -> NewRows:
    """Return the rows of a file that did not count yet.

    A last line without an end may still be being written: it counts if it has all its fields and
    the file is `settled`. A file that begins as another one continues it: for the digest of a first
    row, `alike` returns marks by the name of their file. Otherwise a file that begins with another
    row than before is another file, and all its rows are new. One that may be the beginning of a
    file which is gone is read only if that is `final`: perhaps the other has a new name.
    """
    table = _read(path, columns, settled=settled)
    if not isinstance(table, _Table):
        return NewRows(unfinished=table)
    name, first, ended = path.name, _digest(table.texts.head(1)), table.ended
    own = None if earlier is None else table.counted(earlier)
    marks_alike = {file: mark for file, mark in alike(first).items() if file != name}
    origin, start = _origin(path, table, marks_alike, columns)
    if (
        not final
        and own is None
        and any(
            start < ended < mark.rows and not (path.parent / file).exists()
            for file, mark in marks_alike.items()
        )
    ):
        return NewRows(is_unclear=True)
    if start <= (own or 0):
        origin, start = None, own or 0
    replaced = earlier if own is None else None  # of another file of this name
    empty = _digest(table.texts.clear())
    if replaced is not None and origin is None and first in (replaced.first, empty):
        raise DataError(
            f"{path}: {replaced.rows} rows were read before, and now they are others; files may "
            "only grow, and a new file needs a new name"
        )
    is_moved = origin is not None and not (path.parent / origin).exists()
    counts = [(earlier, own), (marks_alike[origin] if origin and is_moved else None, start)]
    gone = [mark.last for mark, rows in counts if mark and mark.last and rows == mark.rows]
    stop = table.texts.height if settled else max(ended, start)
    unfinished = table.last_line if stop == ended else None
    # The last row of a copy counts as that of the other file.
    is_own = start <= ended or is_moved or (own or 0) > ended
    last = table.row(ended) if stop > ended and is_own else None
    mark = Mark(ended, first, _digest(table.texts.head(ended)), last)
    if mark == earlier or not (earlier or mark.rows or mark.last):
        return NewRows(unfinished=unfinished)
    marks: dict[str, Mark | None] = {name: mark}
    if replaced is not None:  # its rows may have another name now
        marks[f"{name}/{replaced.first}"] = replaced
    if origin is not None and is_moved:
        marks[origin] = None
    batch, left_out = _batch(table, start, stop, missing)
    return NewRows(
        batch=batch,
        marks=marks,
        gone=gone,
        last=table.row(ended) if start <= ended < stop else None,
        is_other=replaced is not None and origin is None,
        origin=origin and origin.partition("/")[0],
        is_moved=is_moved,
        skipped=start - (own or 0),
        unfinished=unfinished,
        left_out=left_out,
        swallowing=table.swallowing if _SWALLOWED in left_out else None,
    )


def beginnings(
    path: Path, columns: Mapping[str, str] | None, alike: Callable[[str], Mapping[str, Mark]]
) -> set[str]:
    """Return the names of the files that a file begins as."""
    table = _read(path, columns)
    if not isinstance(table, _Table):
        return set()
    marks = alike(_digest(table.texts.head(1)))
    return {name for name, mark in marks.items() if table.counted(mark)}


def _read(
    path: Path, columns: Mapping[str, str] | None, *, settled: bool = True
) -> _Table | str | None:
    """Return the rows of a file; `None` if it is empty, its only line if that may go on."""
    raw = _read_whole(path)
    if not raw:
        return None
    source = _with_format(str(path), raw)
    body, last, joints = b"", b"", dict[str, list[int]]()
    if source.format in (*_TEXT, "jsonl"):
        if source.packed:  # the lines of a packed file have ended
            source = replace(source, content=f"{source.text()}\n".encode(), packed=False)
        body, joints = _without_joints(source)
        size = _size_of_ended(body, source)
        body, last = body[:size], body[size:].rstrip(b"\r")
        if not body and not settled:
            return _shown(last, 1)
        source = replace(source, content=body or last)
    present, column_of = column_names(source), dict(columns or {})
    is_row = bool(body) and _is_row(last, source, len(present))
    if is_row:
        source = replace(source, content=body + last)
    free = [column for column in present if column not in column_of.values()]
    name = column_of.pop("id", next((column for column in free if column.lower() in _IDS), None))
    roles = find_columns(
        [column for column in present if column != name], NEEDED, column_of, source.name
    )
    header = {role: roles[role] for role in NEEDED} | ({"id": name} if name else {})
    frame = read_columns(source, list(header.values()))
    frame = as_texts(frame.select(pl.col(column).alias(role) for role, column in header.items()))
    texts = frame.select(names_of(column).alias(column.name) for column in frame.iter_columns())
    ended = texts.height - (is_row or (bool(last) and texts.height == 1 and not body))
    is_waiting = last.strip() and (body or texts.height)  # a header alone is no row
    last_line = _shown(last, body.count(b"\n") + 1) if is_waiting else None
    if ended < texts.height and None in texts.row(-1)[: len(NEEDED)]:
        frame, texts = frame.head(ended), texts.head(ended)
    swallowed, swallowing = _swallowed(source, joints.get("repeated headers", ()))
    return _Table(
        source=source,
        frame=frame,
        texts=texts,
        ended=ended,
        last_line=last_line,
        joints=joints | {_SWALLOWED: swallowed},
        swallowing=swallowing,
    )


def _with_format(name: str, raw: bytes) -> Source:
    """Return a file with its format; the last line may end within a character."""
    try:
        return with_format(Source(name, raw, "csv"))
    except DataError:
        body = raw[: raw.rfind(b"\n") + 1]
        if not body:
            raise
        source = with_format(Source(name, body, "csv"))
        return replace(source, content=raw) if source.content == body else source


def _read_whole(path: Path) -> bytes:
    """Return the content of a file; if it grows meanwhile, what was there at first."""
    for _ in range(_ATTEMPTS):
        with path.open("rb") as file:
            before = os.fstat(file.fileno())
            raw = file.read()
            after = os.fstat(file.fileno())
            if (before.st_size, before.st_ctime_ns) == (after.st_size, after.st_ctime_ns):
                return raw
            file.seek(0)
            if file.read(len(raw)) == raw:
                return raw
    raise DataError(f"{path}: changes while it is read")


def _without_joints(source: Source) -> tuple[bytes, dict[str, list[int]]]:
    """Return a text without what joined files leave within it, and the rows where that was.

    These are byte order marks, and lines that repeat the header.
    """
    raw = source.content if isinstance(source.content, bytes) else source.content.read_bytes()
    marked: list[int] = []  # lines
    repeats: list[int] = []
    if _MARKED in raw:
        parts = raw.split(_MARKED)
        marked = list(accumulate(part.count(b"\n") + 1 for part in parts[:-1]))
        raw = b"\n".join(parts)
    header = _header(raw)
    if source.format in _TEXT and header and b"\n" + header in raw:
        lines = raw.split(b"\n")
        repeats = [n for n, line in enumerate(lines) if n and line.rstrip(b"\r") == header]
        if lines[-1].rstrip(b"\r") == header:
            lines.append(b"")  # the row before it has ended
        repeated = set(repeats)
        raw = b"\n".join(line for n, line in enumerate(lines) if n not in repeated)
    offset = 1 if source.format in _TEXT else 0  # the line of the first row
    joints = {
        "byte order marks": [n - offset - bisect_left(repeats, n) for n in marked],
        "repeated headers": [n - offset - bisect_left(repeats, n) for n in repeats],
    }
    return raw, joints


def _swallowed(source: Source, headers: Sequence[int]) -> tuple[list[int], str | None]:
    """Return the rows that hold lines which look like rows, once for each, and a note about them.

    `headers` are the rows before which a header was taken out of the text.
    """
    faults = next(iter(source.faults), None)
    if faults is None or not faults.swallowed or not isinstance(source.content, bytes):
        return [], None
    quotes = [line.count(b'"') for line in source.content.split(b"\n")]
    is_end = np.cumsum(quotes) % 2 == 0  # of a row
    rows, fields = list[int](), list[tuple[int, int]]()
    for first, last in faults.swallowed:
        row = int(is_end[: first - 1].sum()) - 1
        n_headers = bisect_right(headers, row)
        rows += [row] * (last - first)
        fields.append((first + n_headers, last + n_headers))
    return rows, replace(faults, swallowed=tuple(fields)).swallowing


def _header(raw: bytes) -> bytes:
    return raw.partition(b"\n")[0].rstrip(b"\r").removeprefix(_MARKED[1:])


def _size_of_ended(text: bytes, source: Source) -> int:
    """Return how much of a text is lines that have ended, with all that they quote."""
    size = text.rfind(b"\n") + 1
    if source.format not in _TEXT or text.count(b'"', 0, size) % 2 == 0:
        return size
    lines = io.StringIO(text[:size].decode(errors="replace"), newline="\n")
    rows, n_lines = csv.reader(lines, delimiter=source.separator, strict=True), 0
    try:
        for _ in rows:
            n_lines = rows.line_num
    except csv.Error as problem:
        if "unexpected end of data" in str(problem):  # a quote that is not closed
            return sum(len(line) + 1 for line in text.split(b"\n", n_lines)[:n_lines])
    return size


def _is_row(line: bytes, source: Source, width: int) -> bool:
    """Return whether a line without an end has all its fields, and is no beginning of a header."""
    try:
        text = line.decode()
        if source.format == "jsonl":
            return isinstance(json.loads(text), dict)
        if isinstance(source.content, bytes) and _header(source.content).startswith(line):
            return False
        lines = io.StringIO(text, newline="\n")
        rows = list(csv.reader(lines, delimiter=source.separator, strict=True))
    except (ValueError, RecursionError, csv.Error):
        return False
    return [len(row) for row in rows] == [width]


def _shown(line: bytes, number: int) -> str:
    text = line.decode(errors="replace")
    return f"line {number} is not finished ({text if len(text) <= 60 else f'{text[:59]}…'!r})"


def _origin(
    path: Path, table: _Table, marks: Mapping[str, Mark], columns: Mapping[str, str] | None
) -> tuple[str | None, int]:
    """Return which other file this one begins as, and how many of its rows count there."""
    longest = (0, False, "")
    for name, mark in marks.items():
        file = path.parent / name
        count = table.counted(mark)
        if count is None and 0 < table.ended < mark.rows and file.is_file():
            with suppress(DataError, OSError):  # perhaps it is still being copied
                original = _read(file, columns)
                ended = table.texts.head(table.ended)
                if isinstance(original, _Table) and original.texts.head(table.ended).equals(ended):
                    is_same = original.row(table.ended) == table.row(table.ended) is not None
                    count = table.ended + is_same
        longest = max(longest, (count or 0, not file.exists(), name))
    return (longest[2], longest[0]) if longest[0] else (None, 0)


def _batch(
    table: _Table, start: int, stop: int, missing: str
) -> tuple[AnnotationBatch, dict[str, int]]:
    """Return some rows, and how many of which kind are left out."""
    if missing == "error":  # all rows, for the number of the line
        without_gaps(table.frame.head(stop), missing, table.source)
    rows = table.frame.slice(start, max(stop - start, 0))
    left_out = {
        kind: sum(start <= row < stop for row in where) for kind, where in table.joints.items()
    }
    rows = rows.filter(~pl.all_horizontal(pl.col(role).is_null() for role in NEEDED))
    whole = without_gaps(rows, missing)
    left_out["incomplete rows"] = rows.height - whole.height
    texts = [names_of(whole[role]).to_list() for role in whole.columns]
    batch = AnnotationBatch(
        texts[0], texts[1], texts[2], ids=texts[3] if len(texts) > 3 else None, notes={}
    )
    return batch, {name: count for name, count in left_out.items() if count}


def _digest(texts: pl.DataFrame) -> str:
    return blake2b(texts.write_csv(include_header=False).encode(), digest_size=12).hexdigest()
