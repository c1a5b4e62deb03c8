"""The formats that can be written: one table, walked by the command, the docs and the tests."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from difflib import get_close_matches
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import NamedTuple

import numpy as np

from ..annotations import Annotations
from ..answers.numbers import Numbers
from ..errors import DataError, OptionError
from ..readers.reading import Reading
from ..readers.sources import FORMATS, format_for
from .content import Content, What, content_of

__all__ = ["TARGETS", "Place", "Target", "goes_to_folder", "losses", "place_of"]

_TABLES = ("csv", "tsv", "parquet", "arrow", "jsonl")


@dataclass(frozen=True)
class Target:
    """A format to write.

    Attributes
    ----------
    home
        The module with `answers(content)` and, where results can be written, `results(content)`.
        Both return a table, records one by one, or one object.
    summary
        What it is, for help and docs.
    kinds
        How it can be written; the first unless the ending tells.
    holds
        What it has room for: items without labels (`silent`), classes nobody used (`unused`),
        `repeats`, `gold`, `texts`.
    columns
        Which carried columns it has room for; all of them if `None`.
    """

    home: str
    summary: str
    kinds: tuple[str, ...]
    holds: frozenset[str] = frozenset()
    columns: tuple[str, ...] | None = ()

    @property
    def module(self) -> ModuleType:
        """The module that writes it."""
        return import_module(f".{self.home}", __package__)


TARGETS = {
    "long": Target(
        "to_long",
        "a table with a row for each label, or for each item of a result",
        (*_TABLES, "json"),
        frozenset({"repeats"}),
        None,
    ),
    "nested": Target(
        "to_nested",
        "JSON, {item: {annotator: label}}",
        ("json",),
        frozenset({"silent", "repeats"}),
    ),
    "wide": Target(
        "to_wide",
        "a table with a row for each item and a column for each annotator (cleanlab)",
        _TABLES,
        frozenset({"silent"}),
    ),
    "crowd-kit": Target(
        "to_crowdkit", "a table of task, worker, label", _TABLES, frozenset({"repeats"}), None
    ),
    "label-studio": Target(
        "to_label_studio",
        "tasks with annotations, or with predictions for a result",
        ("json",),
        frozenset({"silent", "repeats", "gold", "texts"}),
        ("duration", "time", "source"),
    ),
    "argilla": Target(
        "to_argilla",
        "records with responses, or with suggestions for a result",
        ("json", "jsonl"),
        frozenset({"silent", "repeats", "texts"}),
        ("source",),
    ),
    "huggingface": Target(
        "to_huggingface",
        "a table with a row for each item and lists of labels and annotators",
        ("parquet", "jsonl"),
        frozenset({"silent", "repeats", "gold", "texts"}),
        None,
    ),
    "peerannot": Target(
        "to_peerannot",
        "a folder with answers.json and metadata.json",
        ("folder",),
        frozenset({"silent", "unused", "repeats", "gold"}),
    ),
}


class Place(NamedTuple):
    """Where and how something is written."""

    target: str
    kind: str  # csv, parquet, …, or folder
    compression: str


def place_of(what: What, path: str | Path, format: str | None = None) -> Place:  # noqa: A002
    """Return the format for a path, as told or as its ending tells.

    `format` is one of the targets, or the kind of file for a long table.
    """
    if format is None and isinstance(what, Annotations) and goes_to_folder(path):
        return Place("peerannot", "folder", "uncompressed")
    if format is None and str(path) == "-":
        return Place("long", "csv", "uncompressed")
    if format is None or format in _TABLES or format == "json":
        kind, compression = format_for(path, format)
        if kind == "npy":
            raise DataError(f"{path}: arrays are read, not written; choose another ending")
        nested = kind == "json" and isinstance(what, Annotations)
        return Place("nested" if nested else "long", kind, compression)
    if format not in TARGETS:
        known = [*TARGETS, *_TABLES, "json"]
        near = get_close_matches(format, known, 1)
        hint = f"did you mean {near[0]}?" if near else f"there are {', '.join(known)}"
        raise OptionError(f"no format {format!r} to write; {hint}")
    return _ending(path, format)


def _ending(path: str | Path, name: str) -> Place:
    kinds = TARGETS[name].kinds
    if str(path) == "-" or kinds == ("folder",):
        if str(path) == "-" and kinds[0] in ("folder", "parquet"):
            raise OptionError(f"{name} is written to a {kinds[0]}, not to standard output")
        return Place(name, kinds[0], "uncompressed")
    try:
        kind, compression = format_for(path)
    except DataError:  # an ending of its own
        return Place(name, kinds[0], format_for(path, "csv")[1])
    if kind not in kinds:
        told = " or ".join(f".{FORMATS[one][0]}" for one in kinds)
        raise DataError(f"{path}: {name} is written as {told}")
    return Place(name, kind, compression)


def goes_to_folder(path: str | Path, format: str | None = None) -> bool:  # noqa: A002
    """Return whether annotations written there make a folder."""
    if format is not None:
        return format == "peerannot"
    return str(path) != "-" and (
        str(path).endswith("/") or Path(path).is_dir() or not Path(path).suffix
    )


def losses(
    what: What | Reading,
    path: str | Path,
    format: str | None = None,  # noqa: A002
) -> list[str]:
    """Return, one sentence each, what the target cannot hold."""
    content = content_of(what)
    position = place_of(content.what, path, format)
    target = TARGETS[position.target]
    told = list(_beside(content, target, position))
    if not content.is_result:
        told = [*_answers(content, target, position), *told]
    elif position.target in ("label-studio", "argilla"):
        told.append("only the belief in the label itself is written, not in other classes")
    if hasattr(target.module, "clashes"):
        told += target.module.clashes(content)
    return told


def _answers(content: Content, target: Target, position: Place) -> Iterator[str]:
    annotations = content.annotations
    silent = int((annotations.labels_per_item == 0).sum())
    if silent and "silent" not in target.holds:
        yield f"{silent} items without labels are left out: a table has no row for them"
    if isinstance(annotations, Annotations) and "unused" not in target.holds:
        unused = annotations.n_classes - len(np.unique(annotations.label))
        named = position.kind if position.target in ("long", "nested") else position.target
        if unused:
            yield (
                f"{unused} classes that nobody used are not written: "
                f"{named} does not declare classes"
            )
    lost = [name for name in annotations.columns if not _has_room(content, target, name)]
    if lost:
        yield f"columns left out: {', '.join(lost)}"
    if position.kind == "folder" and _repeats(annotations):
        yield "repeated labels are written as lists, which peerannot itself does not read"


def _beside(content: Content, target: Target, position: Place) -> Iterator[str]:
    for name, values in (("gold", content.gold), ("texts", content.texts)):
        if values and name not in target.holds:
            word = "gold" if name == "gold" else "the texts"
            yield f"{word} of {len(values)} items left out: {position.target} has no place for it"


def _has_room(content: Content, target: Target, name: str) -> bool:
    if target.columns is None:
        return True
    values = content.annotations.columns[name]
    if name == "time" and values.dtype.kind != "M":
        return False
    if name == "confidence" and "source" in target.columns:  # models say how sure they are
        person = ~np.array(content.by_model(), dtype=bool)
        return values.dtype.kind == "f" and bool(np.isnan(values[person]).all())
    return name in target.columns


def _repeats(annotations: Annotations | Numbers) -> bool:
    same_item = np.diff(annotations.item.astype(np.int64)) == 0
    return bool(np.any(same_item & (np.diff(annotations.annotator.astype(np.int64)) == 0)))
