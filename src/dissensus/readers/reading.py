"""From whatever people have to `Annotations`: tables, folders, and exports of labelling tools."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, cast

import polars as pl

from ..annotations import Annotations, Scale
from ..errors import DataError
from .columns import CARRIED, NEEDED, NO_LABEL, QUESTION, find_columns, no_label_note, plain_name
from .dataset_folders import FOLDER, is_dataset
from .exports import INVERTED, TOOLS, Export, Kind, Question, head_of, tool, tool_of
from .frames import as_frame, one_answer_each
from .long_tables import annotations_from, is_no_label
from .sources import FORMATS, Source, is_folder, open_source
from .tables import column_names, read_columns

_SCALES: dict[Kind, Scale] = {"multiple": "nominal", "ordinal": "ordinal", "numeric": "interval"}
_KINDS: dict[Scale, Kind] = {
    "nominal": "single",
    "ordinal": "ordinal",
    "interval": "numeric",
    "ratio": "numeric",
}
_TEXTS = (None, "headerless", "csv", "tsv")  # formats whose columns can be given by number


@dataclass(frozen=True, eq=False)
class Reading:
    """The annotations of a file, with the gold labels, texts and notes that came with them.

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
        A table of item and text, if the file has one.
    notes
        What was left out or assumed, a sentence each.
    reason
        Why the annotations have their scale.
    unread
        Columns of a long table that have no role.
    """

    annotations: Annotations
    format: str
    question: str | None = None
    questions: Mapping[str, int] = field(default_factory=dict)
    kind: Kind = "single"
    gold: Mapping[str, str] = field(default_factory=dict)
    texts: pl.DataFrame | None = None
    notes: tuple[str, ...] = ()
    reason: str = ""
    unread: tuple[str, ...] = ()


def read(
    source: Any,
    *,
    format: str | None = None,  # noqa: A002
    question: str | None = None,
    columns: Mapping[str, str] | None = None,
    classes: Sequence[Any] | None = None,
    missing: str = "error",
    scale: str = "auto",
    duplicates: str = "count",
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
        The format, if it should not be recognised from the content.
    question
        Which question, if there are several.
    columns
        Which column is which, `{"item": …, "annotator": …, "label": …}`, where their names are not
        known ones; numbers from 1 for a table without a header. Further entries are carried along
        under their key.
    classes
        All classes, in order, where labels may not show them all.
    missing
        What to do with rows that lack an item, annotator or label: `error` or `drop`.
    scale
        The scale of the labels: nominal, ordinal, interval (or numeric) or ratio; `auto` detects
        it, see `readers.scales`.
    duplicates
        What to do where an annotator labelled an item more than once: `count` all labels, keep the
        `first` or `last`, or `error`.

    Examples
    --------
    >>> read({"a": {"ann": "cat", "bob": "dog"}})
    <Annotations: 2 labels by 2 annotators on 1 items; classes cat, dog>
    """
    return examine(
        source,
        format=format,
        question=question,
        columns=columns,
        classes=classes,
        missing=missing,
        scale=scale,
        duplicates=duplicates,
    ).annotations


def examine(
    source: Any,
    *,
    format: str | None = None,  # noqa: A002
    question: str | None = None,
    columns: Mapping[str, str] | None = None,
    classes: Sequence[Any] | None = None,
    missing: str = "error",
    scale: str = "auto",
    duplicates: str = "count",
) -> Reading:
    """Return the annotations with the gold, texts and notes of their file; parameters as `read`."""
    if isinstance(source, Annotations):
        reading = Reading(source, "annotations", reason="they were given with this scale")
        return reading if scale == "auto" else with_scale(reading, scale)
    reading = _examine(source, format, question, columns, classes, missing, duplicates)
    reading = replace(reading, annotations=reading.annotations.with_kinds())
    return with_scale(reading, scale, reorder=classes is None)


def examine_export(
    source: Source,
    format: str,  # noqa: A002
    *,
    question: str | None = None,
    classes: Sequence[Any] | None = None,
) -> Reading:
    """Return one question of an export of a labelling tool that is open already."""
    export = tool(format).read(source)
    reading = _choose(source, format, export, question, classes, "error", "count")
    return with_scale(reading, reorder=classes is None)


def with_scale(reading: Reading, scale: str = "auto", *, reorder: bool = True) -> Reading:
    """Return a reading whose annotations have a scale; `auto` detects it, with a note.

    Names that are a known sequence are put in order, if `reorder`.
    """
    from .scales import LabelScale, scale_of_labels

    annotations = reading.annotations
    if scale != "auto":
        annotations = annotations.with_scale(cast(Scale, scale))
        kind = _KINDS[annotations.scale] if reading.kind != "multiple" else reading.kind
        return replace(reading, annotations=annotations, kind=kind, reason="as requested")
    if reading.kind in _SCALES:
        found = LabelScale(_SCALES[reading.kind], f"the {reading.format} file declares it")
    elif reading.format == "folder":
        found = LabelScale("nominal", "the labels of a data set folder are class numbers")
    else:
        found = scale_of_labels(annotations)
    notes = reading.notes
    if found.scale != "nominal":
        if found.classes is not None and reorder:
            annotations = annotations.recode(found.classes)
        annotations = annotations.with_scale(found.scale)
        ends = " to ".join(annotations.classes[[0, -1]].tolist())
        what = "an ordinal scale" if found.scale == "ordinal" else "numbers"
        remedy = "--scale nominal makes them classes"
        notes += (f"labels {ends} are taken for {what}: {found.reason}; {remedy}",)
    return replace(reading, annotations=annotations, notes=notes, reason=found.reason)


def _examine(
    source: Any,
    format: str | None,  # noqa: A002
    question: str | None,
    columns: Mapping[str, str] | None,
    classes: Sequence[Any] | None,
    missing: str,
    duplicates: str,
) -> Reading:
    if isinstance(source, Mapping) and all(isinstance(one, Mapping) for one in source.values()):
        answers = one_answer_each(source, duplicates, "mapping")
        return Reading(Annotations.from_dict(answers, classes=classes), "mapping")
    if not isinstance(source, (str, Path)):
        annotations = annotations_from(
            as_frame(source),
            columns=columns,
            classes=classes,
            missing=missing,
            duplicates=duplicates,
        )
        return Reading(annotations, "table")
    if is_folder(source) and (Path(source, "answers.json").exists() or format == INVERTED):
        inverted = format == INVERTED
        return examine_folder(source, inverted=inverted, classes=classes, duplicates=duplicates)
    if format is not None and format not in (*TOOLS, *FORMATS):
        known = ", ".join((*FORMATS, *TOOLS))
        raise DataError(f"{source}: no format {format!r}; known are {known}")
    if is_folder(source):
        kind = FOLDER if is_dataset(Path(source)) else "folder"
        opened = Source(str(source), Path(source), kind)
    else:
        opened = open_source(source, None if format in TOOLS else format)
    try:
        name, export = format if format in TOOLS else None, None
        if columns and opened.format in ("csv", "tsv") and format in _TEXTS:
            from .headerless import by_number

            export = by_number(opened, columns)
            name = name if export is None else "headerless"
        elif format is None and not columns:
            head = head_of(opened)
            name = None if head is None or head.is_long() else tool_of(head)
        if export is None and name is not None:
            export = tool(name).read(opened)
        if export is None and opened.format == "folder":
            raise opened.fail(
                "no answers.json in this folder, nor files of a known tool; name the file itself"
            )
        if export is None and opened.format in ("npy", "json", "zip"):
            whole = _whole(opened, question, classes, duplicates)
            if whole is not None:
                return whole
        export = export or _long_table(opened, columns)
        given = (question, classes, missing, duplicates)
        return _choose(opened, name or opened.format, export, *given)
    except UnicodeEncodeError:  # JSON can name half a character
        raise opened.fail("a text in it is not valid Unicode") from None


def _whole(
    opened: Source, question: str | None, classes: Sequence[Any] | None, duplicates: str
) -> Reading | None:
    """Return the annotations of an array or of an object of objects."""
    from .folders import is_nested, load_array, orientation_note
    from .json_records import load

    if opened.format == "zip":
        raise opened.fail("a zip in which no known tool's files are; unpack it, or say --format")
    try:
        if opened.format == "npy":
            with opened.file() as file:
                annotations = Annotations.from_matrix(load_array(file), classes=classes)
            notes: tuple[str, ...] = ()
        else:
            answers = load(opened)
            if not is_nested(answers):
                return None
            answers = one_answer_each(answers, duplicates, opened.name)
            annotations = Annotations.from_dict(answers, classes=classes)
            notes = orientation_note(annotations)
    except DataError as problem:
        raise opened.fail(str(problem).removeprefix(f"{opened.name}: ")) from None
    if question is not None:
        raise _one_question(opened, question)
    return Reading(annotations, opened.format, notes=(*opened.notes, *notes))


def _long_table(opened: Source, columns: Mapping[str, str] | None) -> Export:
    """Return a long table as one nameless question, or those of a column of questions."""
    present, given = column_names(opened), dict(columns or {})
    questions = given.pop("question", None)
    if questions is None:  # a column of questions, unless it is the only name of the item
        named = [n for n in present if plain_name(n) in QUESTION and n not in given.values()]
        items = [n for n in present if plain_name(n) in NEEDED["item"] and n not in named]
        questions = named[0] if len(named) == 1 and ("item" in given or items) else None
    others = [name for name in present if name != questions]
    roles = find_columns(others, NEEDED, given, opened.name, CARRIED)
    names = [*roles.values(), *([questions] if questions else [])]
    frame = read_columns(opened, list(dict.fromkeys(names)))
    columns_by_role = [pl.col(name).alias(role) for role, name in roles.items()]
    unread = tuple(name for name in present if name not in names)
    if questions is None:
        return Export({"": Question(frame.select(columns_by_role))}, unread=unread)
    key = pl.col(questions).cast(pl.String).fill_null("(no question)").alias("question")
    parts = frame.select(key, *columns_by_role).group_by("question", maintain_order=True)
    by_name = {str(name): Question(part.drop("question")) for (name,), part in parts}
    return Export(by_name, unread=unread)


def examine_folder(
    folder: str | Path,
    *,
    metadata: str | Path | None = None,
    n_classes: int | None = None,
    inverted: bool = False,
    **given: Any,
) -> Reading:
    """Return the annotations of a data set folder, with options of `read_folder`, and notes."""
    from .folders import folder_notes, read_folder, read_metadata

    given |= {"metadata": metadata, "n_classes": n_classes, "inverted": inverted}
    annotations, known = read_folder(folder, **given), read_metadata(folder, metadata)
    if n_classes is not None:
        known["n_classes"] = n_classes
    notes = () if inverted else folder_notes(annotations, known)
    return Reading(annotations, "folder", notes=notes)


def _one_question(opened: Source, question: str) -> DataError:
    return opened.fail(f"a table of one question, so --question {question} cannot be chosen")


def _choose(
    opened: Source,
    name: str,
    export: Export,
    question: str | None,
    classes: Sequence[Any] | None,
    missing: str,
    duplicates: str,
) -> Reading:
    """Return one question of an export as annotations."""
    plain = export.questions.get("")  # of a long table, whose rows are lines of the file
    sizes = {one: answers.answers.height for one, answers in export.questions.items() if one}
    known = ", ".join(f"{one} ({size} labels)" for one, size in sizes.items())
    if plain is not None and question is not None:
        raise _one_question(opened, question)
    if plain is None and not sizes:
        raise opened.fail(f"a {name} export without any answer to a question")
    if question is None and len(sizes) > 1:
        raise opened.fail(f"several questions, {known}; choose with --question NAME")
    if question is not None and question not in sizes:
        raise opened.fail(f"no question {question!r}; there are {known}")
    if plain is None:
        question = question if question is not None else next(iter(sizes))
    chosen = plain or export.questions[question or ""]
    if plain is None and chosen.answers.height == 0:
        raise opened.fail(f"nobody answered {question!r}")
    try:
        annotations = annotations_from(
            chosen.answers,
            columns={column: column for column in chosen.answers.columns},
            classes=classes or chosen.classes,
            missing=missing,
            duplicates=duplicates,
            source=opened if plain else None,
        )
    except DataError as problem:
        raise opened.fail(
            str(problem).removeprefix(f"{opened.name}: ").removeprefix("table: ")
        ) from None
    if len(annotations) == 0 and plain is not None:
        raise opened.fail("no labels in it, only a header")
    notes = (*opened.notes, *export.notes)
    if plain is not None and plain.answers.schema["label"] == pl.String:
        given = plain.answers["label"]
        unlike = missing != "drop" and NO_LABEL.isdisjoint(map(str.lower, annotations.classes))
        outcome = "left out" if missing == "drop" else "classes, unless --missing drop is given"
        words = [] if unlike else given.filter(is_no_label(given)).to_list()
        notes = (*notes, *no_label_note(words, outcome))
    found = (name, question, sizes, chosen.kind, dict(chosen.gold), export.texts, notes)
    return Reading(annotations, *found, unread=export.unread)
