"""What a format is, what it reads, and how the beginning of a file shows which tool wrote it.

A tool is a file that ends with `FORMAT = Format(name, …)` and functions for what it can do:
`recognises(head)` looks at the beginning of a file, `read(source)` returns an `Export`, and targets
say how it is written. File names never decide; the content does.
"""

from __future__ import annotations

import json
import re
import zipfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field
from functools import cached_property
from importlib import import_module
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeVar

import polars as pl

from ..answers.left_out import LeftOut
from ..registry import load_plug_ins
from .columns import NEEDED, plain_name
from .sources import DAMAGED, FORMATS, Source
from .tables import column_names, first_lines, first_rows

if TYPE_CHECKING:
    from .annotator_files import AnnotatorFile
    from .content import AnswerContent, Content

Kind = Literal[
    "single", "ordinal", "numeric", "sets", "rankings", "texts", "spans", "boxes", "points", "masks"
]

Part = TypeVar("Part")

INVERTED = "peerannot-inverted"
# Format → module:attribute, by default FORMAT. The first that recognises a file reads it, so the
# most particular come first.
_BUILT_IN = {
    "long": "targets:LONG",
    "nested": "targets:NESTED",
    "crowd-kit": "targets:CROWD_KIT",
    "label-studio": "tools.label_studio",
    "cvat": "tools.cvat",
    "coco": "tools.coco",
    "brat": "tools.brat",
    "conll": "tools.conll",
    "prodigy": "tools.prodigy",
    "argilla": "tools.argilla",
    "potato": "tools.potato",
    "lewidi": "tools.lewidi",
    "doccano": "tools.doccano",
    "inspect": "tools.inspect_ai",
    "mlflow": "tools.mlflow",
    "langfuse": "tools.langfuse",
    "promptfoo": "tools.promptfoo",
    "openai-evals": "tools.openai_evals",
    "alt-test": "tools.alt_test",
    "mturk": "tools.mturk",
    "toloka": "tools.toloka",
    "appen": "tools.appen",
    "zooniverse": "tools.zooniverse",
    "huggingface": "tools.huggingface",
    "huggingface-folder": "tools.huggingface_folders",
    "votes": "votes",
    "wide": "wide",
    "headerless": "long_tables",
    INVERTED: "tools.peerannot:INVERTED",
    "peerannot": "tools.peerannot",
}
TABLES = ("csv", "tsv", "parquet", "arrow", "jsonl")  # kinds of files that hold a table
_PLUG_INS = "dissensus.formats"  # the group of entry points
# Columns that only an export has: a table without them is read as a long table at once.
_OF_EXPORTS = re.compile(
    r"_|INPUT:|OUTPUT:|ASSIGNMENT:|Answer\.|HITId$|annotation_id$|classification_id$|subject_ids$"
    r"|.*\.(responses|suggestion)$|.*:::"
)
_MOST = 20  # records to look at
_MOST_ROWS = 200  # of a table
_MOST_FILES = 10_000  # of a folder
_CHUNK = 2**16  # characters to begin with


@dataclass(frozen=True, eq=False)
class Question:
    """The answers to one question.

    Attributes
    ----------
    answers
        A long table: item, annotator, label, and any columns to carry along (time, duration,
        confidence, kind of annotator, split). Of a kind in `answers.KINDS` there are no labels but
        values.
    kind
        One class, classes in order, numbers, or a kind in `answers.KINDS`; several options at once
        are sets.
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

    def contents(self) -> list[Any]:
        """Return the label or value of every answer."""
        return self.answers["label"].to_list() if "label" in self.answers else list(self.values)


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


@dataclass(frozen=True, kw_only=True)
class Target:
    """How a format is written.

    Attributes
    ----------
    summary
        What it is, for help and docs.
    kinds
        How it can be written; the first unless the ending shows another.
    write
        Returns what is to be in the file: a table, records, one object, or text.
    save
        Writes a folder, where `kinds` is that alone.
    holds
        What it has room for: items without labels (`unlabelled`), classes nobody used (`unused`),
        `repeats`, `gold`, `texts`, and scales by their names.
    columns
        Which carried columns it has room for; all of them if `None`.
    results
        Whether results can be written.
    clashes
        Returns what else is lost, a sentence each.
    """

    summary: str
    kinds: tuple[str, ...]
    write: Callable[[Content], Any] | None = None
    save: Callable[[Content, str | Path], None] | None = None
    holds: frozenset[str] = frozenset()
    columns: tuple[str, ...] | None = ()
    results: bool = True
    clashes: Callable[[Content], list[str]] | None = None


@dataclass(frozen=True, kw_only=True)
class AnswerTarget:
    """How a format is written that holds answers of other kinds than classes.

    Attributes
    ----------
    summary
        What it is, for help and docs.
    kinds
        Kinds of answers that it holds.
    ending
        The ending of its files.
    write
        Returns one file for all annotators; what it cannot hold is added to a list.
    write_each
        Yields a file for each annotator, where they have files of their own.
    """

    summary: str
    kinds: tuple[str, ...]
    ending: str
    write: Callable[[AnswerContent, list[str]], str]
    write_each: Callable[[AnswerContent, list[str]], Iterator[str]] | None = None


@dataclass(frozen=True)
class Format:
    """A format: what can read, recognise and write it, each of which may be lacking.

    Attributes
    ----------
    name
        As `--format` and `--to` have it.
    recognises
        Return whether a file begins as one of this format; without, it is read on request.
    read
        Return the export in a file.
    read_files
        Return the export in files of an annotator each.
    kinds
        Kinds of answers that it reads, beside classes and numbers.
    labels
        How classes, numbers and results are written.
    answers
        How answers of other kinds are written.
    """

    name: str
    _: KW_ONLY
    recognises: Callable[[Head], bool] | None = None
    read: Callable[[Source], Export] | None = None
    read_files: Callable[[Sequence[AnnotatorFile]], Export] | None = None
    kinds: tuple[Kind, ...] = ()
    labels: Target | None = None
    answers: AnswerTarget | None = None


class Formats(Mapping[str, Format]):
    """All formats by name, imported on first use: those of this package, and plug-ins.

    A plug-in is an entry point of the group `dissensus.formats`: its name, and `module:FORMAT`. It
    never hides a name that comes with the package. What other packages offer is looked up where a
    name is not known, where no other format recognises a file, and where all are listed.
    """

    @cached_property
    def others(self) -> Mapping[str, Format]:
        """Plug-ins by name."""
        offered = load_plug_ins(_PLUG_INS, {*_BUILT_IN, *FORMATS})
        return {name: plug_in for name, plug_in in offered if isinstance(plug_in, Format)}

    def __getitem__(self, name: str) -> Format:
        if name not in _BUILT_IN:
            if name is None or name in FORMATS:
                raise KeyError(name)
            return self.others[name]
        module, _, attribute = _BUILT_IN[name].partition(":")
        built_in: Format = getattr(import_module(f".{module}", __package__), attribute or "FORMAT")
        return built_in

    def __iter__(self) -> Iterator[str]:
        yield from _BUILT_IN
        yield from self.others

    def __len__(self) -> int:
        return len(_BUILT_IN) + len(self.others)


class Parts(Mapping[str, Part]):
    """One part of all formats that have it, by name."""

    def __init__(self, field: str) -> None:
        self._field = field

    def __getitem__(self, name: str) -> Part:
        part: Part | None = getattr(formats[name], self._field)
        if part is None:
            raise KeyError(name)
        return part

    def __iter__(self) -> Iterator[str]:
        return (name for name in formats if getattr(formats[name], self._field) is not None)

    def __len__(self) -> int:
        return sum(1 for _ in self)


formats = Formats()
TOOLS: Parts[Callable[[Source], Export]] = Parts("read")
TARGETS: Parts[Target] = Parts("labels")
ANSWER_TARGETS: Parts[AnswerTarget] = Parts("answers")


def parse(source: Source, name: str) -> Export:
    """Return the content of a tool's file."""
    return TOOLS[name](source)


def tool_of(head: Head) -> str | None:
    """Return which tool wrote a file that begins like this, if any is recognised."""
    for name in formats:
        recognises = formats[name].recognises
        if recognises is not None and recognises(head):
            return name
    return None


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
