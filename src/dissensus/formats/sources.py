"""A file and its format, which is recognised from the content: compressed or not, table or JSON.

Gzip and Zstandard are unpacked. A file of a megabyte can be made to unpack to gigabytes; tables
and exports shrink to a fiftieth at most, so what would grow two hundredfold is refused before it
fills the memory.
"""

from __future__ import annotations

import csv
import gzip
import io
import json
import os
import re
import select
import sys
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import IO, Any

import polars as pl

from ..base.files import is_stream, reason
from ..errors import DataError, Message, OutputError, Spell, as_keyword
from .columns import IN_MEMORY
from .line_faults import LineFaults

# Formats by the ending of a file that is to be written; reading looks at the content.
FORMATS = {
    "csv": ("csv",),
    "tsv": ("tsv", "tab"),
    "parquet": ("parquet", "pq"),
    "arrow": ("arrow", "feather", "ipc"),
    "jsonl": ("jsonl", "ndjson"),
    "json": ("json",),
    "npy": ("npy",),
}
COMPRESSED = {"gz": "gzip", "zst": "zstd"}
_MAGIC = {
    b"PK\x03\x04": "zip",
    b"PK\x05\x06": "zip",
    b"PAR1": "parquet",
    b"ARROW1": "arrow",
    b"\xff\xff\xff\xff": "arrow",
    b"\x93NUMPY": "npy",
}
_MARK = b"\xef\xbb\xbf"  # byte order
_UTF_16 = {b"\xff\xfe": "utf-16-le", b"\xfe\xff": "utf-16-be"}
_START = 2**18  # bytes that are kept when a file is opened
_BEGINNING = 2**24  # bytes read to recognise a format
_LONGEST = 400  # characters of a message
_PATIENCE = 10  # seconds that a pipe may wait for somebody to write to it
_SEPARATORS = ",\t;|"
_MOST_GROWTH = 200
_SMALL = 2**26  # bytes that anything may unpack to
GZIP = b"\x1f\x8b"
ZSTD = b"\x28\xb5\x2f\xfd"
_BLOCK = 2**17  # bytes that a block of Zstandard can hold
_CHUNK = 2**20
# What a damaged zip raises.
DAMAGED = (zipfile.BadZipFile, zlib.error, OSError, EOFError, RuntimeError, ValueError)

csv.field_size_limit(2**31 - 1)  # by default a text of 128 KiB is an error


@dataclass(frozen=True)
class Source:
    """The content of a file, of standard input or of a table in memory, and its format."""

    name: str  # for messages
    content: Path | bytes
    format: str
    notes: tuple[str, ...] = ()
    packed: bool = False  # by Zstandard, which polars unpacks
    separator: str = ","  # of columns
    frame: pl.DataFrame | None = None  # a table in memory, instead of content
    start: bytes = field(default=b"", compare=False)  # of a file, so that it is opened once for it
    # What was wrong with its lines when they were last read; at most one.
    faults: list[LineFaults] = field(default_factory=list, compare=False)

    @property
    def stem(self) -> str:
        """The file's name without folders and endings."""
        return Path(self.name).name.split(".")[0] or self.name

    def fail(self, what: str, *, rows: int = 1, remedy: str = "", **instead: Any) -> DataError:
        """Return an error about this source, in one line and not too long."""
        return DataError(_short(what), where=self.name, rows=rows, remedy=remedy, **instead)

    def blame(self, problem: DataError) -> DataError:
        """Return an error about what is in this source, in one line and not too long."""
        message = problem.message
        inside = message.where not in ("", IN_MEMORY, self.name)
        sentence = f"{message.where}: {message.what}" if inside else message.what
        problem.message = replace(message, what=_short(sentence), where=self.name)
        return problem

    def lines(self, most: int | None = None) -> list[str]:
        """Return its lines as text, unpacked; the first ones are quickly read."""
        if most is not None and not self.packed:
            return list(self.first_lines(most))
        try:
            lines = pl.read_lines(self.content, n_rows=most)["line"].to_list()
        except (pl.exceptions.PolarsError, OSError):
            raise self.fail(_undecodable(self)) from None
        lines[:1] = [line.removeprefix("\ufeff") for line in lines[:1]]
        return lines

    def first_lines(self, most: int) -> Iterator[str]:
        """Yield its first lines as text, unpacked; no more is read than is asked for."""
        if self.packed:
            yield from self.lines(most)
            return
        try:
            for number, line in enumerate(islice(self._raw_lines(), most)):
                text = line.decode("utf-8").rstrip("\r\n")
                yield text if number else text.removeprefix("\ufeff")
        except (OSError, UnicodeDecodeError):
            raise self.fail(_undecodable(self)) from None

    def _raw_lines(self) -> Iterator[bytes]:
        """Yield lines, first those of the bytes that were read when the file was opened."""
        if isinstance(self.content, bytes):
            yield from io.BytesIO(self.content)
            return
        is_whole = 0 < len(self.start) < _START
        size = len(self.start) if is_whole else self.start.rfind(b"\n") + 1
        yield from io.BytesIO(self.start[:size])
        if is_whole:
            return
        with self.file() as file:
            file.seek(size)
            remaining = _BEGINNING
            while remaining > 0 and (line := file.readline(remaining)):
                yield line
                remaining -= len(line)

    @cached_property
    def has_odd_bytes(self) -> bool:
        """Whether a text has quotes, NULs, or byte order marks anywhere but at its beginning."""
        if self.packed:
            lines = pl.read_lines(self.content)["line"]
            return bool(lines.str.contains_any(['"', "\0", "\ufeff"]).any())
        whole = isinstance(self.content, Path) and 0 < len(self.start) < _START
        with io.BytesIO(self.start) if whole else self.file() as file:
            rows = file.read(_START).removeprefix(_MARK)
            while rows:
                if b'"' in rows or b"\0" in rows or _MARK[:1] in rows:
                    return True
                rows = file.read(_START)
        return False

    def text(self) -> str:
        """Return all of it as text, unpacked."""
        return "\n".join(self.lines())

    def beginning(self, size: int) -> str:
        """Return about the first `size` characters as text, unpacked."""
        if self.packed:
            return self.text()[:size]
        with self.file() as file:
            raw = file.read(size)
        return raw.decode("utf-8", errors="ignore")  # the last character may be cut in two

    def file(self) -> IO[bytes]:
        """Return it as an open file, as it is."""
        if isinstance(self.content, bytes):
            return io.BytesIO(self.content)
        try:
            return self.content.open("rb")
        except IsADirectoryError:
            raise self.fail("a folder; name a file in it") from None
        except OSError as problem:
            raise self.fail(reason(problem)) from None


def open_source(path: str | Path, format: str | None = None) -> Source:  # noqa: A002
    """Return a file, or standard input for `-`, with its format given or recognised."""
    content: Path | bytes
    name, content = str(path), Path(path)
    try:
        if name == "-":
            name, content = "standard input", sys.stdin.buffer.read()
        elif content.is_fifo():
            content = _from_pipe(content)
        elif is_stream(content):
            content = content.read_bytes()
    except OSError as problem:
        raise DataError(reason(problem), where=name) from None
    return with_format(Source(name, content, format or "csv"), format)


def with_format(source: Source, format: str | None = None) -> Source:  # noqa: A002
    """Return a source with its format given or recognised, unpacked and as UTF-8."""
    source = _started(source)
    if not source.start:
        raise DataError("empty", where=source.name)
    if source.start.startswith((GZIP, ZSTD)):
        is_zstd = source.start.startswith(ZSTD)
        body = unpacked(source.content, source.name)
        source = _started(replace(source, content=body, packed=is_zstd))
    if source.start[:2] in _UTF_16:
        source = _started(replace(source, content=_as_utf_8(source), notes=("written as UTF-16",)))
    head = source.start[: 2**12]
    kind = format or next((kind for magic, kind in _MAGIC.items() if head.startswith(magic)), None)
    if kind is None and not source.packed and re.match(rb"(\xef\xbb\xbf)?\s*\[", head):
        kind = "json"  # before lines are read: all of a list may be on one
    if kind is None and re.match(rb"(\xef\xbb\xbf)?\s*<(\?xml|[A-Za-z])", head):
        kind = "xml"
    if kind in (None, "csv", "tsv") and b"\r" in head and b"\n" not in head:
        source = _with_usual_lines(source)
    if kind not in (None, "csv"):
        return replace(source, format=kind, separator="\t" if kind == "tsv" else ",")
    lines = [line for line in source.lines(50) if line.strip()]
    if kind is None:
        kind = _recognise(source, lines)
    bare = re.sub(r'"[^"]*"', "", lines[0] if lines else "")  # quoted text aside
    separator = max(_SEPARATORS, key=lambda mark: (bare.count(mark), mark == ","))
    return replace(source, format=kind, separator=separator)


def _started(source: Source) -> Source:
    """Return a source with the first bytes of its content."""
    try:
        with source.file() as file:
            return replace(source, start=file.read(_START))
    except OSError as problem:
        raise DataError(reason(problem), where=source.name) from None


def _short(message: str) -> str:
    line = " ".join(message.splitlines())
    return line if len(line) <= _LONGEST else f"{line[:_LONGEST]}…"


class _InLines(Message):
    """A message that counts lines of a file, not rows."""

    def text(self, spell: Spell = as_keyword) -> str:
        """Return the message in one line."""
        n_more = self.rows - 1
        like = f"; {n_more} more lines like this" if n_more > 0 else ""
        return Message(f"{self.what}{like}", self.where, remedies=self.remedies).text(spell)


def in_lines(error: DataError) -> DataError:
    """Return an error whose message counts lines of a file, not rows."""
    message = error.message
    error.message = _InLines(message.what, message.where, message.rows, message.remedies)
    return error


def source_of_table(frame: pl.DataFrame) -> Source:
    """Return a table in memory as a source."""
    return Source(IN_MEMORY, b"", "arrow", frame=frame)


def is_folder(path: str | Path) -> bool:
    """Return whether a path is a folder."""
    return str(path) != "-" and Path(path).is_dir()


def format_for(path: str | Path, format: str | None = None) -> tuple[str, str]:  # noqa: A002
    """Return format and compression for a file to be written, by its ending.

    >>> format_for("labels.csv.gz")
    ('csv', 'gzip')
    """
    parts = Path(path).name.lower().split(".")
    compression = COMPRESSED.get(parts[-1], "uncompressed")
    ending = parts[-2 if compression != "uncompressed" and len(parts) > 1 else -1]
    if Path(path).is_dir():
        raise OutputError("is a folder; name a file", where=str(path))
    if format is None and is_stream(path):
        format = "csv"  # noqa: A001
    if format is None:
        format = next((kind for kind, endings in FORMATS.items() if ending in endings), None)  # noqa: A001
    if format is None:
        endings = ", ".join(f".{endings[0]}" for endings in FORMATS.values())
        raise DataError(f"no format ends in .{ending}; known are {endings}", where=str(path))
    return format, compression


def _as_utf_8(source: Source) -> bytes:
    with source.file() as file:
        raw = file.read()
    try:
        return raw[2:].decode(_UTF_16[raw[:2]]).encode()
    except UnicodeError:
        raise source.fail("not whole as UTF-16; save it again as UTF-8") from None


def _with_usual_lines(source: Source) -> Source:
    """Return a text whose lines end in carriage returns alone, as on old Macs, with usual ends."""
    if source.packed:
        raw = source.text().encode()
    else:
        with source.file() as file:
            raw = file.read()
    if b"\n" in raw:
        return source
    body = raw.replace(b"\r", b"\n")
    return replace(source, content=body, start=body[:_START], packed=False)


def _from_pipe(path: Path) -> bytes:
    """Return what others write to a pipe; refuse one that nobody opens for a while."""
    handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK)  # returns at once, writer or not
    with open(handle, "rb") as pipe:  # noqa: PTH123
        ready, beginning = select.poll(), b""
        ready.register(handle, select.POLLIN)
        if not ready.poll(_PATIENCE * 1000):
            with suppress(BlockingIOError):  # somebody has opened it, and may take their time
                beginning = os.read(handle, 1)
                if not beginning:
                    message = "a pipe that nobody has opened to write to it"
                    raise DataError(message, where=str(path))
        os.set_blocking(handle, True)
        return beginning + pipe.read()


def _recognise(source: Source, lines: list[str]) -> str:
    """Return the format of a text by its first lines."""
    if not lines:
        raise source.fail("empty")
    line = lines[0].strip()
    if line.startswith("["):
        return "json"
    if "\0" in line:
        raise source.fail("NUL characters in its first line; if it is text, save it as UTF-8")
    if not line.startswith("{"):
        return "csv"
    try:
        record = json.loads(line)
    except (ValueError, RecursionError):
        return "json"
    kinds = {type(value) for value in record.values()}
    is_record = dict not in kinds and kinds != {list}  # a record, not an object of columns
    return "jsonl" if len(lines) > 1 or is_record else "json"


def _undecodable(source: Source) -> str:
    """Return where the text stops being UTF-8, or that a packed file is damaged."""
    if source.packed:
        return "cannot be unpacked to UTF-8 text; it is damaged or not text"
    with source.file() as file:
        raw = file.read()
    try:
        raw.decode("utf-8")
    except UnicodeDecodeError as problem:
        line = raw.count(b"\n", 0, problem.start) + 1
        return f"line {line}: not UTF-8; save it again as UTF-8"
    return "cannot be read as text"


def ragged_line(source: Source) -> str | None:
    """Return a message about a line with more or fewer fields than the first one."""
    rows = csv.reader((line + "\n" for line in source.lines()), delimiter=source.separator)
    try:
        width = len(next(filter(None, rows), []))
        for row in rows:
            if row and len(row) != width:
                return f"line {rows.line_num}: {len(row)} fields, but the header has {width}"
    except csv.Error as problem:
        return f"line {rows.line_num}: {problem}"
    return None


def unpacked(content: Path | bytes, name: str) -> Path | bytes:
    """Return the content of a gzip file, or a Zstandard file as it is, unless it grows too much."""
    try:
        raw = content if isinstance(content, bytes) else content.read_bytes()
    except OSError as problem:
        raise DataError(reason(problem), where=name) from None
    if raw.startswith(ZSTD):  # polars unpacks it
        check_blocks(name, raw)
        return content
    body = bytearray()
    try:
        with gzip.open(io.BytesIO(raw)) as file:
            while chunk := file.read(_CHUNK):
                body += chunk
                check_growth(name, len(raw), len(body))
    except (EOFError, OSError, zlib.error):
        raise _damaged(name) from None
    if not body:
        raise DataError("empty", where=name)
    return bytes(body)


def largest(packed: int) -> int:
    """Return how many bytes may come out of a compressed file or an archive."""
    return max(_SMALL, _MOST_GROWTH * packed)


def check_growth(name: str, packed: int, size: int) -> None:
    """Refuse what unpacks to too much."""
    if size > largest(packed):
        most = largest(packed) // 2**20
        raise DataError(f"unpacks to more than {most} MiB; unpack it first", where=name)


def check_blocks(name: str, raw: bytes) -> None:
    """Refuse Zstandard that unpacks to too much, or that was cut off."""
    blocks = _blocks(raw)
    if blocks is None:
        raise _damaged(name)
    check_growth(name, len(raw), blocks * _BLOCK)


def _damaged(name: str) -> DataError:
    return DataError("cannot be unpacked; it is damaged or not text", where=name)


def _blocks(raw: bytes) -> int | None:
    """Return how many blocks of at most 128 KiB are in a Zstandard file, `None` if it is cut off.

    Only the headers are read (RFC 8878, section 3.1.1).
    """
    position, blocks = 0, 0
    while raw[position : position + 4] == ZSTD:
        descriptor = raw[position + 4] if position + 4 < len(raw) else 0
        single, checksum = descriptor >> 5 & 1, descriptor >> 2 & 1
        position += 5 + (not single) + (0, 1, 2, 4)[descriptor & 3]
        position += (single, 2, 4, 8)[descriptor >> 6]
        last = False
        while not last:
            header = int.from_bytes(raw[position : position + 3], "little")
            if position + 3 > len(raw):
                return None
            last, kind, size = bool(header & 1), header >> 1 & 3, header >> 3
            position += 3 + (1 if kind == 1 else size)  # a run is one byte
            blocks += 1
        position += 4 * checksum
    return blocks
