"""Where labels and results go: the format for a path, what it cannot hold, and plain tables."""

from __future__ import annotations

from collections.abc import Iterator
from difflib import get_close_matches
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ..answers.annotations import SCALES, Annotations
from ..base.files import is_stream
from ..errors import DataError, Note, OptionError
from .columns import ColumnOf
from .content import Content, Writable, content_of, is_id
from .format import TABLES, TARGETS, Format, Target
from .reading import Reading
from .scales import scale_of_labels
from .sources import FORMATS, format_for


def _nested(content: Content) -> dict[str, Any]:
    """Return {item: {annotator: label}}."""
    if content.labels_of_classes is None or content.is_result:
        raise OptionError("nested JSON holds classes, not numbers; write a table")
    return content.labels_of_classes.to_dict()


LONG = Format(
    "long",
    labels=Target(
        summary="a table with a row for each label, or for each item of a result",
        kinds=(*TABLES, "json"),
        write=lambda content: content.what.to_polars(),
        holds=frozenset({"repeats"}),
        columns=None,
    ),
)
NESTED = Format(
    "nested",
    labels=Target(
        summary="JSON, {item: {annotator: label}}",
        kinds=("json",),
        write=_nested,
        holds=frozenset({"unlabelled", "repeats"}),
        results=False,
    ),
)
CROWD_KIT = Format(
    "crowd-kit",
    labels=Target(
        summary="a table of task, worker, label",
        kinds=TABLES,
        write=lambda content: content.what.to_polars().rename(
            {"item": "task", "annotator": "worker"}, strict=False
        ),
        holds=frozenset({"repeats"}),
        columns=None,
    ),
)


class Destination(NamedTuple):
    """The format, kind of file and compression of a file to write."""

    target: str
    kind: str  # csv, parquet, …, or folder
    compression: str


def destination_of(
    content: Writable,
    path: str | Path,
    format: str | None = None,  # noqa: A002
) -> Destination:
    """Return the format for a path, as given or by its ending.

    `format` is one of the targets, or the kind of file for a long table.
    """
    if format is None and isinstance(content, Annotations) and goes_to_folder(path):
        return Destination("peerannot", "folder", "uncompressed")
    if format is None and str(path) == "-":
        return Destination("long", "csv", "uncompressed")
    if format is None or format in TABLES or format == "json":
        kind, compression = format_for(path, format)
        if kind == "npy":
            message = "arrays are read, not written; choose another ending"
            raise DataError(message, where=str(path))
        nested = kind == "json" and isinstance(content, Annotations)
        return Destination("nested" if nested else "long", kind, compression)
    if format not in TARGETS:
        names = [*TARGETS, *TABLES, "json"]
        near = get_close_matches(format, names, 1)
        hint = f"did you mean {near[0]}?" if near else f"there are {', '.join(names)}"
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
        endings = " or ".join(f".{FORMATS.get(ending, [ending])[0]}" for ending in kinds)
        raise DataError(f"{name} is written as {endings}", where=str(path))
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
    unread = what.unread if isinstance(what, Reading) else ()
    if unread:
        sentence, example = f"columns not read: {', '.join(unread)}", {unread[0]: unread[0]}
        sentences.append(Note(sentence, remedy="carries one along", columns=ColumnOf(example)))
    return sentences if target.clashes is None else [*sentences, *target.clashes(content)]


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
    classes = content.labels_of_classes
    if classes is not None:
        yield from _lost_characters(classes, destination)
        yield from _lost_scale(content, classes, target)
    if classes is not None and "unused" not in target.holds:
        unused = classes.n_classes - len(np.unique(classes.label))
        plain = destination.target in ("long", "nested")
        writer = destination.kind if plain else destination.target
        if unused:
            yield (
                f"{unused} classes that nobody used are not written: "
                f"{writer} does not declare classes"
            )
    lost = [name for name in annotations.columns if not _has_room(content, target, name)]
    if lost:
        yield f"columns left out: {', '.join(lost)}"


def _lost_scale(content: Content, annotations: Annotations, target: Target) -> Iterator[str]:
    """Yield that labels will look like those of another scale, if they will."""
    typed = content.kind == "ordinal" and all(map(is_id, annotations.classes.tolist()))
    typed |= content.kind == "numeric" or {*SCALES} <= target.holds
    if len(annotations) == 0 or (typed and annotations.scale in target.holds):
        return
    scale = scale_of_labels(annotations).scale
    if scale != annotations.scale:
        yield Note(
            f"that the scale is {annotations.scale} is not written: the labels look {scale}",
            remedy="says it when they are read",
            scale=annotations.scale,
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
