"""From whatever people have to `Annotations`: tables, folders, and exports of labelling tools."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import polars as pl

from ..annotations import Annotations
from ..errors import DataError
from .columns import CARRIED, NEEDED, find_columns, question_column
from .exports import TOOLS, Export, Kind, Question, head_of, tool, tool_of
from .folders import is_folder, load_array, read_folder, read_metadata
from .headerless import by_number
from .inverted import looks_inverted
from .records import parse
from .sources import FORMATS, Source, open_source
from .tables import annotations_from, column_names, read_columns

__all__ = ["Reading", "examine", "read"]


@dataclass(frozen=True, eq=False)
class Reading:
    """Annotations, and what else was found with them.

    Attributes
    ----------
    annotations
        The annotations.
    format
        What the file was: `csv`, `label-studio`, `folder`, ….
    question, questions
        Which question was read, and how many labels every question has.
    kind
        Whether a label is one class, several, one of classes in order, or a number.
    gold
        Known classes, item → label.
    texts
        What the items are: a table of item and text, if it is there.
    notes
        What was left out or assumed, a sentence each.
    """

    annotations: Annotations
    format: str
    question: str | None = None
    questions: Mapping[str, int] = field(default_factory=dict)
    kind: Kind = "single"
    gold: Mapping[str, str] = field(default_factory=dict)
    texts: pl.DataFrame | None = None
    notes: tuple[str, ...] = ()


def read(
    source: Any,
    *,
    format: str | None = None,  # noqa: A002
    question: str | None = None,
    columns: Mapping[str, str] | None = None,
    classes: Sequence[Any] | None = None,
    missing: str = "error",
) -> Annotations:
    """Return the annotations in a file, folder or table.

    Parameters
    ----------
    source
        A path to a table (csv, tsv, parquet, arrow, jsonl, json; text also as .gz or .zst), to an
        export of a labelling tool, to a folder with `answers.json`, or `-` for standard input; a
        polars, pandas or Arrow table; `{item: {annotator: label}}`; or a mapping of column names
        to columns.
    format
        The format, where its content does not tell.
    question
        Which question, where several were asked.
    columns
        Which column is which, `{"item": …, "annotator": …, "label": …}`, where the names do not
        tell; numbers from 1 where there are no names. Further entries are carried along under
        their key.
    classes
        All classes there are, in order, where labels may not show them all.
    missing
        What to do with rows that lack an item, annotator or label: `error` or `drop`.

    Examples
    --------
    >>> read({"a": {"ann": "cat", "bob": "dog"}})
    <Annotations: 2 labels by 2 annotators on 1 items; classes cat, dog>
    """
    return examine(
        source, format=format, question=question, columns=columns, classes=classes, missing=missing
    ).annotations


def examine(
    source: Any,
    *,
    format: str | None = None,  # noqa: A002
    question: str | None = None,
    columns: Mapping[str, str] | None = None,
    classes: Sequence[Any] | None = None,
    missing: str = "error",
) -> Reading:
    """Return the annotations with gold, texts and notes found beside them; words as in `read`."""
    if isinstance(source, Annotations):
        return Reading(source, "annotations")
    if isinstance(source, Mapping) and all(isinstance(one, Mapping) for one in source.values()):
        return Reading(Annotations.from_dict(source, classes=classes), "mapping")
    if not isinstance(source, (str, Path)):
        annotations = annotations_from(source, columns=columns, classes=classes, missing=missing)
        return Reading(annotations, "table")
    if is_folder(source):
        return _folder(source, format, classes)
    if format is not None and format not in (*TOOLS, *FORMATS):
        known = ", ".join((*FORMATS, *TOOLS))
        raise DataError(f"{source}: no format {format!r}; known are {known}")
    opened = open_source(source, None if format in TOOLS else format)
    try:
        return _examine(opened, format, question, columns, classes, missing)
    except UnicodeEncodeError:  # JSON can name half a character
        raise opened.fail("a text in it is not valid Unicode") from None


def _examine(
    opened: Source,
    format: str | None,  # noqa: A002
    question: str | None,
    columns: Mapping[str, str] | None,
    classes: Sequence[Any] | None,
    missing: str,
) -> Reading:
    name = format if format in TOOLS else None
    if columns and opened.format in ("csv", "tsv") and format in (None, "headerless", "csv", "tsv"):
        found = by_number(opened, columns)
        if found is not None:
            return _choose(opened, "headerless", found, question, classes, missing)
    if name is None and format is None and not columns:
        head = head_of(opened)
        name = None if head is None else tool_of(head)
    if name is not None:
        return _choose(opened, name, tool(name).read(opened), question, classes, missing)
    if opened.format in ("npy", "zip", "json"):
        whole = _whole(opened, classes)
        if whole is not None and question is not None:
            raise _one_question(opened, question)
        if whole is not None:
            return whole
    return _table(opened, question, columns, classes, missing)


def _whole(opened: Source, classes: Sequence[Any] | None) -> Reading | None:
    """Return the annotations of an array or of an object of objects."""
    if opened.format == "npy":
        with opened.file() as file:
            matrix = load_array(file, opened.name)
        try:
            return Reading(Annotations.from_matrix(matrix, classes=classes), "npy")
        except DataError as problem:
            raise opened.fail(str(problem)) from None
    if opened.format == "zip":
        raise opened.fail("a zip in which no known tool's files are; unpack it, or say --format")
    found = parse(opened, opened.text(), None)
    if not isinstance(found, dict) or not all(isinstance(one, dict) for one in found.values()):
        return None
    annotations = _nested(found, classes, opened.name)
    return Reading(annotations, opened.format, notes=(*opened.notes, *_turn_note(annotations, {})))


def _table(
    opened: Source,
    question: str | None,
    columns: Mapping[str, str] | None,
    classes: Sequence[Any] | None,
    missing: str,
) -> Reading:
    """Return the annotations of a long table, with one question or with a column that tells."""
    present = column_names(opened)
    asks = question_column(present, columns)
    if asks is None and question is not None:
        raise _one_question(opened, question)
    told = {role: name for role, name in (columns or {}).items() if role != "question"}
    others = [name for name in present if name != asks]
    roles = find_columns(others, NEEDED, told, opened.name, CARRIED)
    wanted = dict.fromkeys([*roles.values(), *([asks] if asks else [])])
    frame = read_columns(opened, list(wanted))
    if asks is not None:
        named = pl.col(asks).cast(pl.String).fill_null("(no question)").alias("question")
        parts = frame.select(named, *(pl.col(one).alias(role) for role, one in roles.items()))
        questions = {
            str(name): Question(part.drop("question"))
            for (name,), part in parts.group_by("question", maintain_order=True)
        }
        return _choose(opened, opened.format, Export(questions), question, classes, missing)
    annotations = annotations_from(
        frame, columns=roles, classes=classes, missing=missing, source=opened
    )
    if len(annotations) == 0:
        raise opened.fail("no labels in it, only a header")
    return Reading(annotations, opened.format, notes=opened.notes)


def _folder(source: str | Path, format: str | None, classes: Sequence[Any] | None) -> Reading:  # noqa: A002
    inverted = format == "peerannot-inverted"
    annotations = read_folder(source, classes=classes, inverted=inverted)
    return Reading(
        annotations,
        "folder",
        notes=() if inverted else _turn_note(annotations, read_metadata(source)),
    )


def _turn_note(annotations: Annotations, metadata: Mapping[str, Any]) -> tuple[str, ...]:
    labelled = annotations.items[annotations.labels_per_item > 0].tolist()
    if not looks_inverted(labelled, annotations.annotators.tolist(), metadata):
        return ()
    return ("the outer names look like annotators; --format peerannot-inverted turns them",)


def _one_question(opened: Source, question: str) -> DataError:
    return opened.fail(f"a table of one question, so --question {question} cannot be chosen")


def _choose(
    opened: Source,
    name: str,
    found: Export,
    question: str | None,
    classes: Sequence[Any] | None,
    missing: str,
) -> Reading:
    """Return one question of an export as annotations."""
    sizes = {known: one.answers.height for known, one in found.questions.items()}
    told = ", ".join(f"{known} ({size} labels)" for known, size in sizes.items())
    if not sizes:
        raise opened.fail(f"a {name} export without any answer to a question")
    if question is None and len(sizes) > 1:
        raise opened.fail(f"several questions, {told}; choose with --question NAME")
    if question is not None and question not in sizes:
        raise opened.fail(f"no question {question!r}; there are {told}")
    chosen = question if question is not None else next(iter(sizes))
    asked: Question = found.questions[chosen]
    if asked.answers.height == 0:
        raise opened.fail(f"nobody answered {chosen!r}")
    roles = {column: column for column in asked.answers.columns}
    try:
        annotations = annotations_from(
            asked.answers, columns=roles, classes=classes or asked.classes, missing=missing
        )
    except DataError as problem:
        raise opened.fail(str(problem).removeprefix("table: ")) from None
    notes = (*opened.notes, *found.notes)
    return Reading(
        annotations, name, chosen, sizes, asked.kind, dict(asked.gold), found.texts, notes
    )


def _nested(found: Mapping[str, Any], classes: Any, name: str) -> Annotations:
    try:
        return Annotations.from_dict(found, classes=classes)
    except DataError as problem:
        raise DataError(f"{name}: {problem}") from None
