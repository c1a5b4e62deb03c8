"""The content of an export, and how the beginning of a file shows which tool wrote it.

A format is a module with two functions: `recognises(head)` looks at the beginning of a file, and
`read(source)` returns an `Export`. File names never decide; the content does.
"""

from __future__ import annotations

import json
import re
import zipfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from itertools import islice
from pathlib import Path
from types import ModuleType
from typing import Any, Literal

import polars as pl

from ..answers.left_out import LeftOut
from .columns import NEEDED, plain_name
from .sources import DAMAGED, Source
from .tables import column_names, first_lines, first_rows

Kind = Literal[
    "single",
    "multiple",
    "ordinal",
    "numeric",
    "sets",
    "rankings",
    "texts",
    "spans",
    "boxes",
    "points",
    "masks",
]

INVERTED = "peerannot-inverted"
# Format → module. The first that recognises a file reads it, so the most particular come first.
TOOLS: dict[str, str] = {
    "label-studio": "tools.label_studio",
    "cvat": "tools.cvat",
    "coco": "tools.coco",
    "brat": "tools.brat",
    "conll": "tools.conll",
    "prodigy": "tools.prodigy",
    "argilla": "tools.argilla",
    "potato": "tools.potato",
    "lewidi": "tools.research_sets",
    "doccano": "tools.doccano",
    "inspect": "tools.inspect_ai",
    "mlflow": "tools.mlflow",
    "langfuse": "tools.mlflow_langfuse",
    "promptfoo": "tools.promptfoo",
    "openai-evals": "tools.promptfoo_openai",
    "alt-test": "tools.alt_test",
    "mturk": "tools.mturk",
    "toloka": "tools.toloka",
    "appen": "tools.toloka_appen",
    "zooniverse": "tools.zooniverse",
    "huggingface": "tools.huggingface",
    "votes": "votes",
    "wide": "wide",
    "headerless": "long_tables",
    INVERTED: "tools.peerannot",
}
# Tools with other kinds of answers than classes and numbers → those kinds.
TOOL_KINDS: dict[str, tuple[Kind, ...]] = {
    "label-studio": ("sets", "rankings", "texts", "spans", "boxes", "points", "masks"),
    "cvat": ("sets", "boxes", "points", "masks"),
    "coco": ("boxes", "masks"),
    "brat": ("spans",),
    "conll": ("spans",),
    "prodigy": ("sets", "texts", "spans", "boxes", "masks"),
    "argilla": ("sets", "rankings", "texts", "spans"),
    "potato": ("sets", "texts"),
    "lewidi": ("sets",),
    "doccano": ("sets", "spans", "boxes"),
    "mturk": ("sets", "texts", "spans", "boxes", "points"),
    "toloka": ("sets", "texts"),
    "appen": ("sets", "texts"),
    "zooniverse": ("sets", "texts", "boxes", "points", "masks"),
    "huggingface": ("sets",),
}
# Columns that only an export has: a table without them is read as a long table at once.
_OF_EXPORTS = re.compile(
    r"_|INPUT:|OUTPUT:|ASSIGNMENT:|Answer\.|HITId$|annotation_id$|classification_id$|subject_ids$"
    r"|.*\.(responses|suggestion)$|.*:::"
)
_MOST = 20  # records to look at
_MOST_ROWS = 200  # of a table
_MOST_FILES = 10_000  # of a folder
_CHUNK = 2**16  # characters to begin with
MARK = "|"  # between the options of one answer with several
NONE = "(none)"  # several options could be chosen, and none was


@dataclass(frozen=True, eq=False)
class Question:
    """The answers to one question.

    Attributes
    ----------
    answers
        A long table: item, annotator, label, and any columns to carry along (time, duration,
        confidence, kind of annotator, split). Several options in one label are in the order of
        their names with `|` between them. Of a kind in `answers.KINDS` there are no labels but
        values.
    kind
        One class, several at once, classes in order, numbers, or a kind in `answers.KINDS`.
    classes
        All classes, in order, where the export declares them.
    gold
        Known classes: item → label; of a kind in `answers.KINDS`, item → value.
    values
        One plain value per row of `answers`, as `Answers.from_values` takes them; an empty list
        is an empty answer.
    sizes
        Height and width of images in pixels: item → (height, width).
    left_out
        Answers that were not read, and items and annotators without any.
    """

    answers: pl.DataFrame
    kind: Kind = "single"
    classes: tuple[str, ...] | None = None
    gold: Mapping[str, Any] = field(default_factory=dict)
    values: Sequence[Any] = ()
    sizes: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    left_out: LeftOut = field(default_factory=LeftOut)


@dataclass(frozen=True, eq=False)
class Export:
    """The questions of an export with their answers, and the texts of its items.

    Attributes
    ----------
    questions
        Questions by name.
    texts
        A table of item and text (or a link to an image), if the export has them.
    notes
        A sentence each: what was left out, and how many.
    unread
        Columns of a long table that have no role.
    """

    questions: Mapping[str, Question]
    texts: pl.DataFrame | None = None
    notes: tuple[str, ...] = ()
    unread: tuple[str, ...] = ()


@dataclass(frozen=True)
class Head:
    """The beginning of a file.

    Attributes
    ----------
    shape
        `records` (a JSON list or JSON lines), `object` (one JSON object), `table` (columns),
        `archive` (a zip of files), `folder`, or `xml`.
    names
        Columns of a table, keys of the first record, keys of the object, files of the archive,
        JSON files of the folder or files of the folders in it, tags of the XML's beginning.
    first
        The first records; of an object, its first values, one less than keys if the last of them
        is too long; of a table, its first rows.
    lines
        The first lines of a table of texts, field by field, its header included.
    raw
        The first lines of a table of texts as they are; of an object, its beginning.
    """

    shape: Literal["records", "object", "table", "archive", "folder", "xml"]
    names: tuple[str, ...]
    first: tuple[Any, ...]
    lines: tuple[tuple[str, ...], ...] = ()
    raw: tuple[str, ...] = ()

    @property
    def records(self) -> tuple[dict[str, Any], ...]:
        """The first records or values that are objects themselves."""
        return tuple(value for value in self.first if isinstance(value, dict))

    @property
    def whole(self) -> dict[str, Any]:
        """The beginning of a single object."""
        return dict(zip(self.names, self.first, strict=False))

    def all_records(self, test: Callable[[dict[str, Any]], bool]) -> bool:
        """Return whether the single object, or all of the first records, pass a test."""
        if self.shape == "object":
            return test(self.whole)
        return self.shape == "records" and bool(self.records) and all(map(test, self.records))

    def is_long(self) -> bool:
        """Return whether this is a long table, with no sign of a tool in its columns."""
        if self.shape not in ("table", "records") or any(map(_OF_EXPORTS.match, self.names)):
            return False
        plain = [plain_name(name) for name in self.names]
        if any(sum(name in names for name in plain) != 1 for names in NEEDED.values()):
            return False
        return not any(
            isinstance(value, (list, dict))
            for row in self.first
            if isinstance(row, dict)
            for value in row.values()
        )


def tool(name: str) -> ModuleType:
    """Return the module that reads a format."""
    return import_module(f".{TOOLS[name]}", __package__)


def parse(source: Source, name: str) -> Export:
    """Return the content of a tool's file."""
    return tool(name).read(source)


def tool_of(head: Head) -> str | None:
    """Return which tool wrote a file that begins like this, if any is recognised."""
    return next((name for name in TOOLS if tool(name).recognises(head)), None)


def head_of(source: Source) -> Head | None:
    """Return the beginning of a file; nothing for arrays."""
    match source.format:
        case "csv" | "tsv":
            header, *rows = first_lines(source, _MOST_ROWS) or [()]
            records = tuple(dict(zip(header, row, strict=False)) for row in rows)
            raw = tuple(source.lines(_MOST_ROWS))
            return Head("table", header, records, lines=(header, *rows), raw=raw)
        case "xml":
            tags = re.findall(r"<([A-Za-z_][\w.-]*)", source.beginning(_CHUNK))
            return Head("xml", tuple(dict.fromkeys(tags)), ())
        case "parquet" | "arrow" | "dataset":
            return Head("table", tuple(column_names(source)), tuple(first_rows(source, _MOST)))
        case "jsonl":
            return _records(_elements("[" + "\n".join(source.lines(_MOST)), _MOST))
        case "json":
            return _json(source)
        case "folder":
            files = islice(_inner_files(Path(str(source.content))), _MOST_FILES)
            return Head("folder", tuple(files), ())
        case "zip":
            try:
                with source.file() as file, zipfile.ZipFile(file) as archive:
                    return Head("archive", tuple(archive.namelist()), ())
            except DAMAGED as problem:
                raise source.fail(f"damaged zip ({problem})") from None
    return None


def _inner_files(folder: Path) -> Iterator[str]:
    """Yield the JSON files here, and one and two folders below, by their path from here."""
    for pattern in ("*.json", "*/*.json", "*/*.jsonl", "*/*/*.json", "*/*/*.jsonl"):
        yield from (path.relative_to(folder).as_posix() for path in folder.glob(pattern))


def _records(values: list[Any]) -> Head:
    names = tuple(values[0]) if values and isinstance(values[0], dict) else ()
    return Head("records", names, tuple(values))


def _json(source: Source) -> Head:
    """Return the first elements of a list, or the first entries of an object."""
    size = _CHUNK
    while True:
        text = source.beginning(size).lstrip("\ufeff \t\r\n")
        values = _elements(text, 2 * _MOST if text.startswith("{") else _MOST)
        if len(values) > 1 or len(text) < size // 2:
            break
        size *= 8
    if not text.startswith("{"):
        return _records(values)
    return Head("object", tuple(map(str, values[::2])), tuple(values[1::2]), raw=(text,))


def _elements(text: str, most: int) -> list[Any]:
    """Return the first values of a list, or the first keys and values of an object, in turn."""
    decoder, position = json.JSONDecoder(), 1
    values: list[Any] = []
    while len(values) < most:
        while position < len(text) and text[position] in " \t\r\n,:":
            position += 1
        try:
            value, position = decoder.raw_decode(text, position)
        except (ValueError, RecursionError):
            break
        values.append(value)
    return values
