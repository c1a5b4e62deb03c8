"""The formats that can be written: one table, used by the command, the docs and the tests."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from difflib import get_close_matches
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import NamedTuple

import numpy as np

from ..answers.annotations import SCALES, Annotations
from ..base.files import is_stream
from ..errors import DataError, OptionError
from .content import Content, Writable, content_of, is_id
from .reading import Reading
from .scales import scale_of_labels
from .sources import FORMATS, format_for

_TABLES = ("csv", "tsv", "parquet", "arrow", "jsonl")


@dataclass(frozen=True)
class Target:
    """A format to write.

    Attributes
    ----------
    home
        The module with `answers(content)`, where results can be written `results(content)`, and
        where a format has limits of its own `clashes(content)`; none for plain tables and JSON.
    summary
        What it is, for help and docs.
    kinds
        How it can be written; the first unless the ending shows another.
    holds
        What it has room for: items without labels (`unlabelled`), classes nobody used (`unused`),
        `repeats`, `gold`, `texts`, and scales by their names.
    columns
        Which carried columns it has room for; all of them if `None`.
    results
        Whether results can be written.
    """

    home: str | None
    summary: str
    kinds: tuple[str, ...]
    holds: frozenset[str] = frozenset()
    columns: tuple[str, ...] | None = ()
    results: bool = True

    @property
    def module(self) -> ModuleType:
        """The module that writes it."""
        return import_module(f".{self.home}", __package__)


TARGETS = {
    "long": Target(
        None,
        "a table with a row for each label, or for each item of a result",
        (*_TABLES, "json"),
        frozenset({"repeats"}),
        None,
    ),
    "nested": Target(
        None,
        "JSON, {item: {annotator: label}}",
        ("json",),
        frozenset({"unlabelled", "repeats"}),
        results=False,
    ),
    "wide": Target(
        "wide",
        "a table with a row for each item and a column for each annotator (cleanlab)",
        _TABLES,
        frozenset({"unlabelled"}),
        results=False,
    ),
    "crowd-kit": Target(
        None, "a table of task, worker, label", _TABLES, frozenset({"repeats"}), None
    ),
    "label-studio": Target(
        "tools.label_studio_tasks",
        "tasks with annotations, or with predictions for a result",
        ("json",),
        frozenset({"unlabelled", "repeats", "gold", "texts", "ordinal", "interval"}),
        ("duration", "time", "source"),
    ),
    "argilla": Target(
        "tools.argilla",
        "records with responses, or with suggestions for a result",
        ("json", "jsonl"),
        frozenset({"unlabelled", "repeats", "texts", "ordinal"}),
        ("source",),
    ),
    "huggingface": Target(
        "tools.huggingface",
        "a table with a row for each item and lists of labels and annotators",
        ("parquet", "jsonl"),
        frozenset({"unlabelled", "repeats", "gold", "texts"}),
        None,
    ),
    "huggingface-folder": Target(
        "tools.huggingface_folders",
        "a folder with such tables by split, class names and a card",
        ("folder",),
        frozenset({"unlabelled", "unused", "repeats", "gold", "texts"}),
        None,
    ),
    "peerannot": Target(
        "tools.peerannot",
        "a folder with answers.json and metadata.json",
        ("folder",),
        frozenset({"unlabelled", "unused", "repeats", "gold", *SCALES}),
        results=False,
    ),
}


class AnswerTarget(NamedTuple):
    """A labelling tool's format for answers of other kinds than classes.

    Its module has `body(content, lost)`, one file for all annotators, and where annotators have
    files of their own `bodies(content, lost)`; what cannot be held is added to `lost`.
    """

    home: str
    summary: str
    kinds: tuple[str, ...]
    ending: str
    per_annotator: bool = True

    @property
    def module(self) -> ModuleType:
        """The module that writes it."""
        return import_module(f".{self.home}", __package__)


ANSWER_TARGETS = {
    "conll": AnswerTarget(
        "tools.conll",
        "tokens with tags: a column for each annotator, or a folder with a file of each",
        ("spans",),
        ".conll",
    ),
    "coco": AnswerTarget(
        "tools.coco",
        "images and annotations of one annotator, or a folder with a file of each",
        ("boxes", "masks"),
        ".json",
    ),
    "label-studio": AnswerTarget(
        "tools.label_studio_tasks",
        "tasks with annotations, or with predictions for a consensus",
        ("spans", "boxes", "points", "sets", "texts"),
        ".json",
        per_annotator=False,
    ),
}


class Destination(NamedTuple):
    """The format, kind of file and compression of a file to write."""

    target: str
    kind: str  # csv, parquet, …, or folder
    compression: str


def destination_of(
    what: Writable,
    path: str | Path,
    format: str | None = None,  # noqa: A002
) -> Destination:
    """Return the format for a path, as given or by its ending.

    `format` is one of the targets, or the kind of file for a long table.
    """
    if format is None and isinstance(what, Annotations) and goes_to_folder(path):
        return Destination("peerannot", "folder", "uncompressed")
    if format is None and str(path) == "-":
        return Destination("long", "csv", "uncompressed")
    if format is None or format in _TABLES or format == "json":
        kind, compression = format_for(path, format)
        if kind == "npy":
            raise DataError(f"{path}: arrays are read, not written; choose another ending")
        nested = kind == "json" and isinstance(what, Annotations)
        return Destination("nested" if nested else "long", kind, compression)
    if format not in TARGETS:
        known = [*TARGETS, *_TABLES, "json"]
        near = get_close_matches(format, known, 1)
        hint = f"did you mean {near[0]}?" if near else f"there are {', '.join(known)}"
        raise OptionError(f"no format {format!r} to write; {hint}")
    return _by_ending(path, format)


def _by_ending(path: str | Path, name: str) -> Destination:
    kinds = TARGETS[name].kinds
    if str(path) == "-" or kinds == ("folder",):
        if str(path) == "-" and kinds[0] in ("folder", "parquet"):
            raise OptionError(f"{name} is written to a {kinds[0]}, not to standard output")
        return Destination(name, kinds[0], "uncompressed")
    try:
        kind, compression = format_for(path)
    except DataError:  # an ending of its own
        return Destination(name, kinds[0], format_for(path, "csv")[1])
    if kind not in kinds:
        endings = " or ".join(f".{FORMATS[one][0]}" for one in kinds)
        raise DataError(f"{path}: {name} is written as {endings}")
    return Destination(name, kind, compression)


def goes_to_folder(path: str | Path, format: str | None = None) -> bool:  # noqa: A002
    """Return whether annotations written there make a folder."""
    if format is not None:
        return format in TARGETS and TARGETS[format].kinds == ("folder",)
    return (
        str(path) != "-"
        and not is_stream(path)
        and (str(path).endswith("/") or Path(path).is_dir() or not Path(path).suffix)
    )


def losses(
    what: Writable | Reading,
    path: str | Path,
    format: str | None = None,  # noqa: A002
) -> list[str]:
    """Return, one sentence each, what the target cannot hold."""
    content = content_of(what)
    destination = destination_of(content.what, path, format)
    target = TARGETS[destination.target]
    sentences = [] if content.is_result else list(_lost_answers(content, target, destination))
    for name, values in (("gold", content.gold), ("the texts", content.texts)):
        if values and name.removeprefix("the ") not in target.holds:
            room = f"{destination.target} has no place for it"
            sentences.append(f"{name} of {len(values)} items left out: {room}")
    if content.is_result and destination.target in ("label-studio", "argilla"):
        sentences.append(
            "only the probability of the label itself is written, not those of other classes"
        )
    unread = what.unread if isinstance(what, Reading) else ()
    if unread:
        remedy = f"--columns {unread[0]}={unread[0]} carries one along"
        sentences.append(f"columns not read: {', '.join(unread)}; {remedy}")
    if target.home and hasattr(target.module, "clashes"):
        sentences += target.module.clashes(content)
    return sentences


def _lost_characters(annotations: Annotations, destination: Destination) -> Iterator[str]:
    """Yield what readers of text tables take for damage."""
    if destination.kind not in ("csv", "tsv"):
        return
    names = [
        *(f"\n{name}" for name in annotations.items.tolist()),  # the first in its line
        *annotations.annotators.tolist(),
        *annotations.classes.tolist(),
    ]
    odd = sum("\0" in name or "\n\ufeff" in name for name in names)
    if odd:
        yield (
            f"{odd} names hold NUL characters or byte order marks, which are left out when a "
            f"{destination.kind} file is read"
        )


def _lost_answers(content: Content, target: Target, destination: Destination) -> Iterator[str]:
    annotations = content.annotations
    unlabelled = int((annotations.labels_per_item == 0).sum())
    if unlabelled and "unlabelled" not in target.holds:
        yield f"{unlabelled} items without labels are left out: a table has no row for them"
    if isinstance(annotations, Annotations):
        yield from _lost_characters(annotations, destination)
        yield from _lost_scale(content, annotations, target)
    if isinstance(annotations, Annotations) and "unused" not in target.holds:
        unused = annotations.n_classes - len(np.unique(annotations.label))
        plain = destination.target in ("long", "nested")
        named = destination.kind if plain else destination.target
        if unused:
            yield (
                f"{unused} classes that nobody used are not written: "
                f"{named} does not declare classes"
            )
    lost = [name for name in annotations.columns if not _has_room(content, target, name)]
    if lost:
        yield f"columns left out: {', '.join(lost)}"
    if destination.target == "peerannot" and annotations.repeats.any():
        yield "repeated labels are written as lists, which peerannot itself does not read"


def _lost_scale(content: Content, annotations: Annotations, target: Target) -> Iterator[str]:
    """Yield that labels will look like those of another scale, if they will."""
    typed = content.kind == "ordinal" and all(map(is_id, annotations.classes.tolist()))
    typed |= content.kind == "numeric" or target.home == "tools.peerannot"
    if len(annotations) == 0 or (typed and annotations.scale in target.holds):
        return
    found = scale_of_labels(annotations).scale
    if found != annotations.scale:
        yield (
            f"that the scale is {annotations.scale} is not written: the labels look {found}; "
            f"--scale {annotations.scale} says it when they are read"
        )


def _has_room(content: Content, target: Target, name: str) -> bool:
    if target.columns is None:
        return True
    values = content.annotations.columns[name]
    if name == "time" and values.dtype.kind != "M":
        return False
    if name == "confidence" and "source" in target.columns:  # models report a score
        person = ~np.array(content.by_model, dtype=bool)
        return values.dtype.kind == "f" and bool(np.isnan(values[person]).all())
    return name in target.columns
