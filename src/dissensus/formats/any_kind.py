"""One way to read every kind of answers: classes and numbers as annotations, others as answers."""

from __future__ import annotations

import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import polars as pl

from ..answers import Answers, kind_class
from ..answers.annotations import Annotations
from ..base.files import is_stream
from ..errors import DataError, Note, OptionError
from .annotator_files import FILES, read_files
from .columns import (
    CLASSES,
    LAYOUTS,
    NEEDED,
    ColumnOf,
    as_kind,
    find_layout,
    is_of_kind,
    parse_columns,
    plain_name,
)
from .format import TOOLS, Export, Head, head_of, keep, parse, tool_of
from .frames import as_frame, names_of
from .kinds import answers_of, has_answers
from .questions import answers_from_records, kind_of_records
from .reading import Reading, choose_question, examine
from .sources import FORMATS, Source, open_source, source_of_table
from .spellings import check_way, spelled
from .tables import column_names, read_columns

_SEVERAL = Note(
    "a label may have several options: read as sets",
    remedy="makes each label a class",
    kind="single",
)


@dataclass(frozen=True, eq=False)
class AnswerReading:
    """The answers of a file, its format, and notes."""

    answers: Answers
    format: str
    notes: tuple[str, ...] = ()


def read(source: Any, **options: Any) -> Annotations | Answers:
    """Return what is in a file, folder or table: annotations, or answers of another kind.

    Parameters
    ----------
    source
        A path to a table (csv, tsv, parquet, arrow, jsonl, json; text also as .gz or .zst), to an
        export of a labelling tool, to a folder with `answers.json`, or `-` for standard input; a
        polars, pandas or Arrow table; `{item: {annotator: label}}`; or a mapping of column names
        to columns.
    kind
        The kind, if it should not be recognised by the columns: `single`, `ordinal`, `numeric`,
        `sets`, `rankings`, `spans`, `boxes`, `points`, `masks` or `texts`.
    assigned
        A table of item and annotator: those without a mark have looked and marked nothing.
    inputs
        A table about items: height and width of images, or both sides of comparisons.
    **options
        `format`, `question`, `columns`, `classes`, `missing`, `scale`, `duplicates` and
        `spelling`, as in `readers.examine`.

    Rows that were not read are counted in `left_out` of what is returned, by reason; it also names
    the items and annotators without a label.

    Examples
    --------
    >>> read({"a": {"ann": "cat", "bob": "dog"}})
    <Annotations: 2 labels by 2 annotators on 1 items; classes cat, dog>
    >>> table = {"item": ["a", "a"], "annotator": ["x", "y"], "start": [0, 0], "end": [2, 3]}
    >>> read(table)
    <spans: 1 items, 2 annotators, 2 marks>
    """
    reading = examine_any(source, **options)
    return reading.answers if isinstance(reading, AnswerReading) else reading.annotations


def examine_any(
    source: Any,
    *,
    kind: str | None = None,
    assigned: str | Path | None = None,
    inputs: str | Path | None = None,
    **options: Any,
) -> Reading | AnswerReading:
    """Return annotations or answers with the notes of their file; parameters as in `read`."""
    kind = as_kind(kind)
    answers = examine_answers(source, kind=kind, assigned=assigned, inputs=inputs, **options)
    if answers is not None:
        return answers
    if kind in CLASSES:
        if kind != "single" and options.get("scale", "auto") == "auto":
            options["scale"] = CLASSES[kind]
        columns = options.get("columns") or parse_columns(column_of_labels(source))
        options["columns"] = columns or None
    reading = examine(source, **options)
    has_options = reading.kind == "sets" and kind is None
    if has_options or kind == "sets":
        return with_spelling(as_sets(reading), options.get("spelling", "keep"))
    return reading


def examine_answers(
    source: Any,
    *,
    kind: str | None = None,
    assigned: str | Path | None = None,
    inputs: str | Path | None = None,
    **options: Any,
) -> AnswerReading | None:
    """Return answers that are more than a class or number; nothing for those. As in `read`."""
    spelling = options.get("spelling", "keep")
    check_way(spelling)
    if isinstance(source, Answers):
        reading = AnswerReading(source, "answers")
        return with_spelling(reading, spelling) if spelling == "join" else reading
    kind = as_kind(kind)
    if kind in CLASSES:
        return None
    try:
        return _examined(source, options, kind=kind, assigned=assigned, inputs=inputs)
    except UnicodeEncodeError:  # JSON can name half a character
        raise DataError("a text in it is not valid Unicode", where=str(source)) from None


def _examined(
    source: Any,
    options: Mapping[str, Any],
    *,
    kind: str | None,
    assigned: str | Path | None,
    inputs: str | Path | None,
) -> AnswerReading | None:
    table_options = {"assigned": assigned, "inputs": inputs}
    ways = ("missing", "duplicates", "spelling")
    table_options |= {name: options[name] for name in ways if name in options}
    reading = _from_files(source, kind, options) if _are_paths(source) else None
    if reading is not None:
        pass
    elif isinstance(source, (str, Path)):
        opened = _opened(source, kind, options)
        reading = None if opened is None else _from_file(opened, kind, options, table_options)
    elif isinstance(source, Annotations) or _is_nested(source):
        reading = None
    else:
        opened = source_of_table(as_frame(source))
        reading = _from_file(opened, kind, options, table_options)
    if reading is None and kind not in (None, "sets"):
        layouts = [", ".join(layout.roles) for layout in LAYOUTS if layout.kind == kind]
        raise DataError(
            f"no {kind} in it; their columns are {' or '.join(layouts)}",
            where=str(source),
            remedy="others are named by {}",
            columns=ColumnOf(ROLE="NAME"),
        )
    if reading is None and assigned is not None:
        raise OptionError(remedy=f"is for marks, and {source} holds classes", assigned=...)
    return None if reading is None else with_spelling(reading, options.get("spelling", "keep"))


def with_spelling(reading: AnswerReading, spelling: str) -> AnswerReading:
    """Return answers as `spelling` says, with a note about names that look like one."""
    answers, notes = spelled(reading.answers, spelling)
    return replace(reading, answers=answers, notes=(*reading.notes, *notes))


def column_of_labels(source: Any) -> str | None:
    """Return `label=NAME` for a table whose only labels are in a column of several options."""
    if not isinstance(source, (str, Path)) or not Path(source).is_file():
        return None
    opened = open_source(source)
    if opened.format not in ("csv", "tsv", "parquet", "arrow"):
        return None
    names = column_names(opened)
    labels = [name for name in names if plain_name(name) in NEEDED["label"]]
    lists = [name for name in names if plain_name(name) == "labels"]
    return f"label={lists[0]}" if lists and not labels else None


def _is_nested(source: Any) -> bool:
    """Return whether a mapping is `{item: {annotator: label}}`."""
    return isinstance(source, Mapping) and all(isinstance(v, Mapping) for v in source.values())


def _opened(source: str | Path, kind: str | None, options: Mapping[str, Any]) -> Source | None:
    """Return a file; nothing for a folder, or for a format that is not known."""
    format_name = options.get("format")
    if str(source) == "-" or is_stream(source):
        # A pipe can be read once, so the kind has to be given.
        return None if kind is None else open_source(source, format_name)
    if Path(source).is_dir() or not (
        format_name is None or format_name in FORMATS or format_name in TOOLS
    ):
        return None  # the error is that of `examine`
    return open_source(source, None if format_name in TOOLS else format_name)


def _from_file(
    opened: Source, kind: str | None, options: Mapping[str, Any], table_options: Mapping[str, Any]
) -> AnswerReading | None:
    """Return the answers in records, in an export, or in a table; nothing for classes."""
    format_name, columns = options.get("format"), options.get("columns") or {}
    head = head_of(opened)
    if format_name is None and not columns and head is not None:
        of_records = kind_of_records(head)
        if of_records is not None and kind in (None, of_records):
            answers = answers_from_records(opened, of_records)
            return AnswerReading(answers, opened.format, opened.notes)
    name = format_name if format_name in TOOLS else None
    if format_name is None and head is not None and not columns and not head.is_long():
        name = tool_of(head)
    if name is not None:
        reading = _from_export(opened, name, kind, options.get("question"))
        if reading is not None or name not in ("wide", "headerless", "votes"):
            return reading
    tables = ("csv", "tsv", "parquet", "arrow", "jsonl", "json")
    if head is None or head.shape not in ("table", "records") or opened.format not in tables:
        return None
    if kind is None and _lists_labels(head, columns):
        kind = "sets"
    if find_layout(head.names, kind, columns) is None:
        return None
    if kind is None and not _names_people(head.names, columns):
        return None  # a wide table, whose annotators may be called x and y
    frame = read_columns(opened, None)
    layout = find_layout(frame.columns, kind, columns)
    if layout is None or (kind is None and not is_of_kind(frame, *layout)):
        return None
    from .answer_tables import answers_from

    answers, notes = answers_from(
        frame, *layout, named_columns=columns, source=opened, **table_options
    )
    format_name = opened.format if opened.frame is None else opened.name
    return AnswerReading(answers, format_name, (*opened.notes, *notes))


def _lists_labels(head: Head, columns: Mapping[str, str]) -> bool:
    """Return whether the labels of a long table are lists, and so several options at once."""
    labels = [columns["label"]] if "label" in columns else head.names
    names = [name for name in labels if name in columns.values() or _is_label(name)]
    people = _names_people(head.names, columns)
    return people and any(isinstance(row.get(name), list) for row in head.records for name in names)


def _is_label(name: str) -> bool:
    return plain_name(name) in NEEDED["label"]


def _names_people(names: Sequence[str], columns: Mapping[str, str]) -> bool:
    """Return whether a table has columns of items and annotators."""
    plain = {plain_name(name) for name in names}
    return all(
        role in columns or not plain.isdisjoint(NEEDED[role]) for role in ("item", "annotator")
    )


def _from_export(
    opened: Source, name: str, kind: str | None, question: str | None
) -> AnswerReading | None:
    """Return the answers to a question of an export; nothing if they are classes."""
    export = parse(opened, name)
    reading = _of_export(opened, name, export, kind=kind, question=question)
    if reading is None:
        keep(opened, name, export)
    return reading


def _of_export(
    opened: Source, name: str, export: Export, *, kind: str | None, question: str | None
) -> AnswerReading | None:
    title, content, notes = choose_question(opened, name, export, kind=kind, question=question)
    if not has_answers(content):
        return None
    if kind not in (None, content.kind, "sets"):
        raise opened.fail(f"{title!r} asks for {content.kind}, not {kind}")
    if content.kind == "sets":
        notes += (_SEVERAL,)
    try:
        answers = answers_of(content)
    except DataError as problem:
        raise opened.blame(problem) from None
    return AnswerReading(answers, name, (*notes, *answers.left_out.sentences))


def _from_files(
    source: str | Path | Sequence[str | Path], kind: str | None, options: Mapping[str, Any]
) -> AnswerReading | None:
    """Return the answers of a tool that has a file for each annotator."""
    format_name = options.get("format")
    if format_name not in (None, *FILES) or options.get("columns"):
        return None
    files = read_files(source, format_name)
    if files is None:
        return None
    names = ", ".join(map(str, source)) if isinstance(source, (list, tuple)) else str(source)
    opened = Source(names, Path(), "folder")
    return _of_export(opened, *files, kind=kind, question=options.get("question"))


def _are_paths(source: Any) -> bool:
    """Return whether these are several paths, a folder without `answers.json`, or a zip."""
    if isinstance(source, (list, tuple)):
        return bool(source) and all(isinstance(path, (str, Path)) for path in source)
    if not isinstance(source, (str, Path)) or str(source) == "-":
        return False
    path = Path(source)
    if path.is_dir():
        return not (path / "answers.json").exists()
    return path.is_file() and zipfile.is_zipfile(path)


def as_sets(reading: Reading) -> AnswerReading:
    """Return labels with several options, `a|b`, as sets."""
    from ..answers.sets import Sets, split_options

    annotations = reading.annotations
    options = [split_options(name) for name in annotations.classes.tolist()]
    answers = Sets.from_values(
        annotations.items[annotations.item],
        annotations.annotators[annotations.annotator],
        [options[code] for code in annotations.label.tolist()],
        items=annotations.items,
        annotators=annotations.annotators,
    )
    answers = replace(answers, left_out=annotations.left_out)
    return AnswerReading(answers, reading.format, (*reading.notes, _SEVERAL))


def read_known(
    path: str | Path, kind: str, inputs: str | Path | None = None
) -> Answers | dict[str, float]:
    """Return known answers of a kind from a file without annotators, or the scores of things.

    Sets may also be written as item, label, present. A row without values is an empty answer.
    """
    opened = open_source(path)
    head = head_of(opened)
    if head is not None and head.shape == "records" and kind_class(kind).value_key in head.names:
        return answers_from_records(opened, kind, annotator="truth")
    frame = read_columns(opened, None)
    plain = {plain_name(name): name for name in frame.columns}
    layout = find_layout(frame.columns, kind)
    if kind == "rankings" and "score" in plain and (layout is None or "thing" in plain):
        return _thing_scores(frame, plain, opened)
    if kind == "sets" and "present" in plain and "labels" not in plain:
        frame = _present(frame, plain)
        layout = find_layout(frame.columns, kind)
    if layout is None:
        raise opened.fail(f"no {kind} in it, by its columns {', '.join(frame.columns)}")
    from .answer_tables import answers_from

    return answers_from(frame, *layout, source=opened, annotator="truth", inputs=inputs)[0]


def kind_of_known(path: str | Path) -> str | None:
    """Return the kind of the answers in a file without annotators; nothing for classes."""
    opened = open_source(path)
    head = head_of(opened)
    if head is None or head.shape not in ("table", "records"):
        return None
    if head.shape == "records" and (kind := kind_of_records(head, annotator="truth")) is not None:
        return kind
    plain = {plain_name(name) for name in head.names}
    if {"thing", "score"} <= plain:
        return "rankings"
    layout = find_layout(head.names)
    if layout is None or not is_of_kind(read_columns(opened, None), *layout):
        return None
    return layout[0].kind


def _thing_scores(frame: pl.DataFrame, plain: dict[str, str], opened: Source) -> dict[str, float]:
    names = [plain[name] for name in ("thing", *NEEDED["item"]) if name in plain]
    if not names:
        raise opened.fail("scores without a column of things")
    score = frame[plain["score"]].cast(pl.Float64, strict=False)
    if score.is_null().any() or not score.is_finite().all():
        raise opened.fail("every thing needs a score, a number")
    return dict(zip(names_of(frame[names[0]]).to_list(), score.to_list(), strict=True))


def _present(frame: pl.DataFrame, plain: dict[str, str]) -> pl.DataFrame:
    """Return item, label, present as item and a list of labels."""
    item = next(plain[name] for name in NEEDED["item"] if name in plain)
    is_present = frame[plain["present"]].cast(pl.String).is_in(["1", "1.0", "true", "True"])
    label = names_of(frame[plain["label"]])
    table = pl.DataFrame({"item": names_of(frame[item]), "labels": label.set(~is_present, None)})
    return table.group_by("item", maintain_order=True).agg(pl.col("labels").drop_nulls())
