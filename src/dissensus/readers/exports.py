"""What an export of a labelling tool holds, and how a file's beginning tells which tool wrote it.

A format is a module with two functions: `recognises(head)` looks at the beginning of a file, and
`read(source)` returns an `Export`. Names never decide; the content does.
"""

from __future__ import annotations

import json
import zipfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from importlib import import_module
from types import ModuleType
from typing import Any, Literal

import polars as pl

from ..errors import DataError
from .sources import Source

__all__ = ["TOOLS", "Export", "Head", "Kind", "Question", "head_of", "tool", "tool_of"]

Kind = Literal["single", "multiple", "ordinal", "numeric"]

# Format → module. The first that recognises a file reads it, so the most particular come first.
TOOLS: dict[str, str] = {
    "label-studio": "dissensus.readers.label_studio",
    "prodigy": "dissensus.readers.prodigy",
    "argilla": "dissensus.readers.argilla",
    "lewidi": "dissensus.readers.lewidi",
    "doccano": "dissensus.readers.doccano",
    "mturk": "dissensus.readers.mturk",
    "toloka": "dissensus.readers.toloka",
    "appen": "dissensus.readers.appen",
    "zooniverse": "dissensus.readers.zooniverse",
    "huggingface": "dissensus.readers.huggingface",
    "votes": "dissensus.readers.votes",
    "wide": "dissensus.readers.wide",
    "headerless": "dissensus.readers.headerless",
    "peerannot-inverted": "dissensus.readers.inverted",
}

_MOST = 20  # records to look at
_MOST_ROWS = 200  # of a table
_CHUNK = 2**16  # characters to begin with
MARK = "|"  # between the options of one answer with several


@dataclass(frozen=True, eq=False)
class Question:
    """The answers to one question.

    Attributes
    ----------
    answers
        A long table: item, annotator, label, and any columns to carry along (time, duration,
        confidence, kind of annotator, split). Several options in one label stand in the order of
        their names with `|` between them.
    kind
        One class, several at once, classes in order, or numbers.
    classes
        All classes there are, in order, where the export declares them.
    gold
        Known classes: item → label.
    """

    answers: pl.DataFrame
    kind: Kind = "single"
    classes: tuple[str, ...] | None = None
    gold: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class Export:
    """Everything that was found in a file.

    Attributes
    ----------
    questions
        What was asked, by name.
    texts
        What the items are: a table of item and text (or a link to an image), if it is there.
    notes
        A sentence each: what was left out, and how many.
    """

    questions: Mapping[str, Question]
    texts: pl.DataFrame | None = None
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Head:
    """The beginning of a file.

    Attributes
    ----------
    shape
        `records` (a JSON list or JSON lines), `object` (one JSON object), `table` (columns), or
        `archive` (a zip of files).
    names
        Columns of a table, keys of the first record, keys of the object, files of the archive.
    first
        The first records; of an object, its first values; of a table, its first rows.
    lines
        The first lines of a table of texts, field by field, its header included.
    """

    shape: Literal["records", "object", "table", "archive"]
    names: tuple[str, ...]
    first: tuple[Any, ...]
    lines: tuple[tuple[str, ...], ...] = ()

    @property
    def records(self) -> tuple[dict[str, Any], ...]:
        """The first records or values that are objects themselves."""
        return tuple(one for one in self.first if isinstance(one, dict))


def tool(name: str) -> ModuleType:
    """Return the module that reads a format."""
    return import_module(TOOLS[name])


def tool_of(head: Head) -> str | None:
    """Return which tool wrote a file that begins like this, if any is recognised."""
    return next((name for name in TOOLS if tool(name).recognises(head)), None)


def head_of(source: Source) -> Head | None:
    """Return the beginning of a file; nothing for arrays and for what cannot be looked into."""
    match source.format:
        case "zip":
            return Head("archive", tuple(_members(source)), ())
        case "jsonl":
            return _records(list(_parsed(line for line in source.lines(_MOST) if line.strip())))
        case "json":
            return _json(source)
        case "csv" | "tsv" | "parquet" | "arrow":
            return _table(source)
    return None


def _records(found: list[Any]) -> Head:
    names = dict.fromkeys(name for one in found[:1] if isinstance(one, dict) for name in one)
    return Head("records", tuple(names), tuple(found))


def _parsed(lines: Iterator[str]) -> Iterator[Any]:
    for line in lines:
        try:
            yield json.loads(line)
        except (ValueError, RecursionError):
            return


def _json(source: Source) -> Head:
    """Return the first elements of a list, or the first entries of an object."""
    size = _CHUNK
    while True:
        text = source.beginning(size).lstrip("\ufeff \t\r\n")
        head = _entries(text) if text.startswith("{") else _records(_elements(text))
        if head.first or len(text) < size // 2:
            return head
        size *= 8


def _elements(text: str) -> list[Any]:
    found: list[Any] = []
    position = 1
    while len(found) < _MOST:
        position = _skip(text, position)
        try:
            one, position = json.JSONDecoder().raw_decode(text, position)
        except (ValueError, RecursionError):
            break
        found.append(one)
    return found


def _entries(text: str) -> Head:
    names: list[str] = []
    values: list[Any] = []
    position = 1
    decoder = json.JSONDecoder()
    while len(values) < _MOST:
        try:
            name, position = decoder.raw_decode(text, _skip(text, position))
            value, position = decoder.raw_decode(text, _skip(text, position))
        except (ValueError, RecursionError):
            break
        names.append(str(name))
        values.append(value)
    return Head("object", tuple(names), tuple(values))


def _skip(text: str, position: int) -> int:
    while position < len(text) and text[position] in " \t\r\n,:":
        position += 1
    return position


def _table(source: Source) -> Head:
    from .tables import column_names, first_lines, first_rows

    if source.format in ("parquet", "arrow"):
        return Head("table", tuple(column_names(source)), tuple(first_rows(source, _MOST)))
    header, *rows = first_lines(source, _MOST_ROWS) or [()]
    first = tuple(dict(zip(header, row, strict=False)) for row in rows)
    return Head("table", header, first, (header, *rows))


def _members(source: Source) -> list[str]:
    try:
        with source.file() as file, zipfile.ZipFile(file) as archive:
            return archive.namelist()
    except (zipfile.BadZipFile, OSError, ValueError, NotImplementedError) as problem:
        raise DataError(f"{source.name}: damaged zip ({problem})") from None
