"""From whatever people have to answers: tables, folders, and exports of labelling tools.

`examine` opens a source and takes its beginning once, asks the formats in order, and parses once:

    source ─▶ Source ─head_of─▶ Head ─▶ records · a tool's export · marks · a long table ─▶ Reading

What a table without a known layout holds is decided in `_of_table`; how its columns were taken is
said by `notes` and `unread` of the `Reading`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from stat import S_ISREG
from typing import Any, cast

import polars as pl

from ..answers import KINDS, Answers
from ..answers.annotations import NUMERIC, Annotations
from ..answers.base import Relation
from ..answers.left_out import LeftOut, with_left_out
from ..errors import DataError, OptionError
from .annotator_files import FILES, read_files
from .answer_records import answers_from_records, kind_of_records
from .collecting import as_labels
from .columns import (
    CARRIED,
    IN_MEMORY,
    LAYOUTS,
    NEEDED,
    NO_LABEL,
    QUESTION,
    ColumnOf,
    column_of_labels,
    find_columns,
    find_layout,
    is_of_kind,
    lists_labels,
    names_people,
    no_label_note,
    plain_name,
)
from .format import INVERTED, TOOLS, Export, Head, Kind, Question, head_of, parse, tool_of
from .frames import as_frame, one_answer_each
from .long_tables import annotations_from, is_no_label, numbers_from
from .options import ReadOptions
from .platforms import chosen, options_of
from .questions import SEVERAL, answers_of, as_sets, as_texts, choose_question, one_question
from .scales import with_scale
from .sources import FORMATS, Source, is_folder, open_source, source_of_table
from .spellings import (
    Joined,
    join_columns,
    join_mapping,
    may_differ,
    spelling_notes,
    with_joined_names,
    with_spelling,
    with_spelling_notes,
)
from .tables import FOLDER, column_names, is_dataset, read_columns, without_empty

_LOOKS = 3  # at a file that others change
_TEXTS = (None, "headerless", "csv", "tsv")  # formats whose columns can be given by number
_TABLES = ("csv", "tsv", "parquet", "arrow", "jsonl", "json")  # that may hold marks
_PLAIN_TABLES = (None, "wide", "headerless", "votes")  # which marks may look like


@dataclass(frozen=True, eq=False)
class Reading:
    """The answers of a source, with the known answers, texts and notes that came with them.

    Attributes
    ----------
    answers
        The answers, of any kind.
    format
        What the file was: `csv`, `label-studio`, `folder`, ….
    question, questions
        Which question was read, and how many answers every question has.
    kind
        Whether a label is one class, several, one of classes in order, or a number; or the kind of
        other answers.
    gold
        Known answers, item → label or value.
    texts
        A table of item and text, if the file has one.
    notes
        What was left out or assumed, a sentence each.
    reason
        Why the labels have their scale.
    unread
        Columns of a long table that have no role.
    """

    answers: Any
    format: str
    question: str | None = None
    questions: Mapping[str, int] = field(default_factory=dict)
    kind: Kind = "single"
    gold: Mapping[str, Any] = field(default_factory=dict)
    texts: pl.DataFrame | None = None
    notes: tuple[str, ...] = ()
    reason: str = ""
    unread: tuple[str, ...] = ()

    @property
    def annotations(self) -> Annotations:
        """The answers as classes, also numbers; an error if they are of another kind."""
        if self.answers.kind in KINDS:
            raise DataError(_needs_classes(self.question, self.answers.kind))
        return self.answers.as_classes()


def read(source: Any, options: ReadOptions | None = None, **keywords: Any) -> Any:
    """Return what is in a file, folder or table: annotations, or answers of another kind.

    Parameters
    ----------
    source
        A path to a table (csv, tsv, parquet, arrow, jsonl, json; text also as .gz or .zst), to an
        export of a labelling tool, to a folder with `answers.json`, or `-` for standard input; a
        polars, pandas or Arrow table; `{item: {annotator: label}}`; or a mapping of column names
        to columns.
    options, **keywords
        How to read it: a `ReadOptions`, or its `kind`, `format`, `question`, `columns`, `classes`,
        `missing`, `scale`, `duplicates`, `spelling`, `assigned` and `inputs` as keywords.

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
    return examine(source, options, **keywords).answers


def examine(source: Any, options: ReadOptions | None = None, **keywords: Any) -> Reading:
    """Return answers of any kind with the gold, texts and notes of their file; as `read`.

    A folder of a tool's files, or a list of paths, has a file for each annotator. Of several
    questions, classes come first where neither a question nor a kind is given.
    """
    options = replace(options or ReadOptions(), **keywords)
    if isinstance(source, Reading):
        return source
    if isinstance(source, Relation):
        return _in_memory(source, options)
    reading = _unchanged(source, lambda: _examined(source, options))
    if reading.answers.kind in KINDS:
        return reading
    reading = replace(reading, answers=reading.annotations.with_kinds())
    reading = with_scale(reading, options.scale, reorder=options.classes is None, source=source)
    if options.kind == "sets":
        return with_spelling(as_sets(reading), options.spelling)
    return reading


def _in_memory(answers: Any, options: ReadOptions) -> Reading:
    """Return answers that are in memory already, on another scale or in one spelling if asked."""
    joins = options.spelling == "join"
    if isinstance(answers, Answers):
        reading = Reading(answers, "answers", kind=cast(Kind, answers.kind))
        return with_joined_names(reading) if joins else reading
    reading = Reading(answers, "annotations", reason="they were given with this scale")
    if options.scale == "auto" and not joins:
        is_coded = answers.kind == Annotations.kind and answers.scale in NUMERIC
        return replace(reading, answers=numbers_from(answers)) if is_coded else reading
    scale = answers.scale if options.scale == "auto" else options.scale
    reading = replace(reading, answers=answers.as_classes())
    reading = with_joined_names(reading) if joins else reading
    is_scaled = reading.annotations.scale == scale and scale not in NUMERIC
    return reading if is_scaled else with_scale(reading, scale)


def _unchanged(source: Any, read: Callable[[], Reading]) -> Reading:
    """Return what is read from files that nobody changes meanwhile, perhaps after a second look.

    A file is opened for its beginning and for its rows, and these would be of different files.
    """
    for _ in range(_LOOKS):
        states = _states(source)
        try:
            reading = read()
        except Exception:
            if _states(source) == states:
                raise
            continue
        if _states(source) == states:
            return reading
    raise DataError("changes while it is read; read a copy of it", where=str(source))


def _states(source: Any) -> list[tuple[int, ...] | None]:
    """Return inode, size and time of each file; nothing for what is no file."""
    states: list[tuple[int, ...] | None] = []
    is_list = isinstance(source, (list, tuple)) and source and isinstance(source[0], (str, Path))
    for path in source if is_list else [source]:
        try:
            stat = Path(path).stat() if isinstance(path, (str, Path)) else None
        except (OSError, ValueError):
            stat = None
        regular = stat is not None and S_ISREG(stat.st_mode)
        states.append((stat.st_ino, stat.st_size, stat.st_mtime_ns) if stat and regular else None)
    return states


def _examined(source: Any, options: ReadOptions) -> Reading:
    if isinstance(source, Mapping) and all(isinstance(part, Mapping) for part in source.values()):
        return _of_mapping(source, options)
    is_list = isinstance(source, (list, tuple)) and bool(source)
    if is_list and all(isinstance(path, (str, Path)) for path in source):
        reading = _of_files(list(source), options)
        if reading is not None:
            return reading
        names = ", ".join(map(str, source))
        raise DataError(f"not files of one of {', '.join(FILES)}", where=names)
    on_disk = isinstance(source, (str, Path))
    inverted = options.format == INVERTED
    if on_disk and is_folder(source) and (Path(source, "answers.json").exists() or inverted):
        _check_for_labels(options, source)
        return _of_folder(source, options, inverted=inverted)
    if not (options.format is None or options.format in FORMATS or options.format in TOOLS):
        names = ", ".join((*FORMATS, *TOOLS))
        where = str(source) if on_disk else IN_MEMORY
        raise DataError(f"no format {options.format!r}; known are {names}", where=where)
    opened = _opened(source, options.format)
    try:
        return _of_source(opened, options)
    except UnicodeEncodeError:  # JSON can name half a character
        raise opened.fail("a text in it is not valid Unicode") from None


def _opened(source: Any, format: str | None) -> Source:  # noqa: A002
    """Return a file, a folder, or a table in memory, to be read."""
    if isinstance(source, Source):
        return source
    if not isinstance(source, (str, Path)):
        return source_of_table(as_frame(source))
    if is_folder(folder := Path(source)):
        return Source(str(source), folder, FOLDER if is_dataset(folder) else "folder")
    return open_source(source, None if format in TOOLS else format)


def _of_source(opened: Source, options: ReadOptions) -> Reading:
    """Return what an open file, folder or table holds: the first format that knows it reads it."""
    is_archive = opened.format in ("folder", "zip") and isinstance(opened.content, Path)
    if is_archive and options.format in (None, *FILES) and not options.columns:
        reading = _of_files(opened.content, options)
        if reading is not None:
            return reading
    head = head_of(opened)
    name = options.format if options.format in TOOLS else None
    if head is not None and options.format is None and not options.columns:
        kind = kind_of_records(head) if head.shape == "records" else None
        if kind is not None and options.kind in (None, kind):
            return _of_records(opened, kind, options)
        name = None if head.is_long() else tool_of(head)
    if head is not None and name in _PLAIN_TABLES and not options.wants_classes:
        reading = _of_marks(opened, head, options)
        if reading is not None:
            return reading
    export = None
    if options.columns and opened.format in ("csv", "tsv") and options.format in _TEXTS:
        from .long_tables import by_number

        export = by_number(opened, options.columns)
        name = name if export is None else "headerless"
    if export is None and name is not None:
        export = parse(opened, name)
    if export is None:
        return _of_table(opened, head, options)
    return _of_export(opened, name or "", export, options)


def _of_table(opened: Source, head: Head | None, options: ReadOptions) -> Reading:
    """Return the labels of a table, array or object that no tool has written."""
    if opened.format == "folder":
        raise opened.fail(
            "no answers.json in this folder, nor files of a known tool; name the file itself"
        )
    _check_for_labels(options, opened.name)
    if opened.format in ("npy", "json", "zip"):
        reading = _whole(opened, options)
        if reading is not None:
            return reading
    columns = options.columns
    if options.wants_classes and not columns and head is not None and head.shape == "table":
        columns = column_of_labels(head.names)
    export = _long_table(opened, columns, head)
    name = opened.format if opened.frame is None else IN_MEMORY
    return _of_export(opened, name, export, options)


def _check_for_labels(options: ReadOptions, where: Any) -> None:
    """Refuse a kind of answers that is not there, and what is for marks where there are labels."""
    if options.kind is not None and options.kind in KINDS and options.kind != "sets":
        layouts = [", ".join(layout.roles) for layout in LAYOUTS if layout.kind == options.kind]
        raise DataError(
            f"no {options.kind} in it; their columns are {' or '.join(layouts)}",
            where=str(where),
            remedy="others are named by {}",
            columns=ColumnOf(ROLE="NAME"),
        )
    if options.assigned is not None:
        raise OptionError(remedy=f"is for marks, and {where} holds classes", assigned=...)


def _of_mapping(answers: Mapping[Any, Any], options: ReadOptions) -> Reading:
    """Return the annotations of `{item: {annotator: label}}`."""
    _check_for_labels(options, answers)
    return _nested(answers, "mapping", "mapping", options)


def _nested(answers: Mapping[Any, Any], name: str, format: str, options: ReadOptions) -> Reading:  # noqa: A002
    joined = Joined()
    if options.spelling == "join":
        answers = join_mapping(answers, joined)
    answers, left_out = one_answer_each(answers, options.duplicates, name, options.missing)
    annotations = Annotations.from_dict(answers, classes=options.classes)
    notes = joined.notes or spelling_notes(annotations)
    return _with_gaps(Reading(with_left_out(annotations, left_out), format, notes=notes))


def _whole(opened: Source, options: ReadOptions) -> Reading | None:
    """Return the annotations of an array or of an object of objects."""
    from .json_records import load
    from .tools.peerannot import is_nested, load_array, orientation_note

    if opened.format == "zip":
        message = "a zip in which no known tool's files are"
        raise opened.fail(message, remedy="unpack it, or say {}", format=...)
    notes: tuple[str, ...] = ()
    try:
        if opened.format == "npy":
            with opened.file() as file:
                annotations = Annotations.from_matrix(load_array(file), classes=options.classes)
            reading = _with_gaps(Reading(with_left_out(annotations, LeftOut()), "npy"))
        else:
            answers = load(opened)
            if not is_nested(answers):
                return None
            reading = _nested(answers, opened.name, opened.format, options)
            notes = orientation_note(reading.answers)
    except DataError as problem:
        raise opened.blame(problem) from None
    if options.question is not None:
        raise one_question(opened, options.question)
    return replace(reading, notes=(*opened.notes, *notes, *reading.notes))


def _with_gaps(reading: Reading) -> Reading:
    """Return a reading whose notes say what was left out."""
    sentences = reading.answers.left_out.sentences
    return replace(reading, notes=(*reading.notes, *sentences)) if sentences else reading


def _of_records(opened: Source, kind: str, options: ReadOptions) -> Reading:
    """Return the answers of JSON records, one object for each."""
    answers = answers_from_records(opened, kind)
    reading = Reading(answers, opened.format, kind=cast(Kind, kind), notes=opened.notes)
    return with_spelling(reading, options.spelling)


def _of_marks(opened: Source, head: Head, options: ReadOptions) -> Reading | None:
    """Return the answers of a table whose columns are those of marks, lists or texts."""
    if head.shape not in ("table", "records") or opened.format not in _TABLES:
        return None
    kind, columns = options.kind, options.columns or {}
    lists = {name for row in head.records for name, value in row.items() if isinstance(value, list)}
    if kind is None and lists and lists_labels(lists, head.names, columns):
        kind = "sets"
    if find_layout(head.names, kind, columns) is None:
        return None
    if kind is None and not names_people(head.names, columns):
        return None  # a wide table, whose annotators may be called x and y
    frame = read_columns(opened, None)
    layout = find_layout(frame.columns, kind, columns)
    if layout is None or (kind is None and not is_of_kind(frame, *layout)):
        return None
    from .answer_tables import answers_from

    answers, notes = answers_from(frame, *layout, options, source=opened)
    reading = Reading(
        answers,
        opened.format if opened.frame is None else opened.name,
        kind=cast(Kind, answers.kind),
        notes=(*opened.notes, *notes),
    )
    return with_spelling(reading, options.spelling)


def _long_table(opened: Source, columns: Mapping[str, str] | None, head: Head | None) -> Export:
    """Return a long table as one nameless question, or those of a column of questions."""
    present, explicit = column_names(opened), dict(columns or {})
    questions = explicit.pop("question", None)
    if questions is None:  # a column of questions, unless it is the only name of the item
        free = [name for name in present if name not in explicit.values()]
        candidates = [name for name in free if plain_name(name) in QUESTION]
        items = [name for name in present if plain_name(name) in NEEDED["item"]]
        has_item = "item" in explicit or bool({*items} - {*candidates})
        questions = candidates[0] if len(candidates) == 1 and has_item else None
    columns_of_rows = [name for name in present if name != questions]
    roles = find_columns(columns_of_rows, NEEDED, explicit, opened.name, optional=CARRIED)
    names = [*roles.values(), *([questions] if questions else [])]
    frame = read_columns(opened, list(dict.fromkeys(names)))
    kind: Kind = "single"
    records = () if head is None or head.shape == "table" else head.records
    is_list = isinstance(frame.schema[roles["label"]], (pl.List, pl.Array))
    if is_list or any(isinstance(row.get(roles["label"]), list) for row in records):
        frame, kind = _with_options(frame, roles["label"]), "sets"
    for role in NEEDED if kind == "single" else ("item", "annotator"):
        if frame.schema[roles[role]].is_nested():
            raise opened.fail(f"{roles[role]!r} holds lists or objects, not a {role}")
    columns_by_role = [pl.col(name).alias(role) for role, name in roles.items()]
    unread = tuple(name for name in present if name not in names)
    if questions is None:
        question = _question(frame.select(columns_by_role), kind)
        return Export({"": question}, unread=unread)
    left_out = LeftOut()
    if frame[questions].null_count():
        frame, left_out = without_empty(frame, opened)
    key = pl.col(questions).cast(pl.String).fill_null("(no question)").alias("question")
    parts = frame.select(key, *columns_by_role).group_by("question", maintain_order=True)
    by_name = {
        str(name): replace(_question(part.drop("question"), kind), left_out=left_out)
        for (name,), part in parts
    }
    return Export(by_name, unread=unread)


def _with_options(frame: pl.DataFrame, label: str) -> pl.DataFrame:
    """Return a table whose lists of labels, or their texts, are lists of names."""
    names: list[list[str] | None] = []
    for value in frame[label].to_list():
        options = options_of(value)
        names.append(None if value is None else chosen([value] if options is None else options))
    return frame.with_columns(pl.Series(label, names, dtype=pl.List(pl.String)))


def _question(rows: pl.DataFrame, kind: Kind) -> Question:
    """Return rows of item, annotator and label as a question; lists of labels are values."""
    if kind != "sets":
        return Question(rows, kind)
    return Question(rows.drop("label"), kind, values=rows["label"].to_list())


def examine_folder(
    folder: str | Path,
    options: ReadOptions | None = None,
    *,
    answers: str | Path = "answers.json",
    metadata: str | Path | None = None,
    n_classes: int | None = None,
) -> Reading:
    """Return the annotations of a data set folder, whose files may have other names."""
    options = options or ReadOptions()
    reading = _of_folder(folder, options, answers=answers, metadata=metadata, n_classes=n_classes)
    return with_scale(reading, options.scale)


def _of_folder(
    folder: str | Path,
    options: ReadOptions,
    *,
    answers: str | Path = "answers.json",
    metadata: str | Path | None = None,
    n_classes: int | None = None,
    inverted: bool = False,
) -> Reading:
    from .tools.peerannot import folder_notes, read_folder, read_metadata

    annotations = read_folder(
        folder,
        answers=answers,
        metadata=metadata,
        n_classes=n_classes,
        classes=options.classes,
        missing=options.missing,
        duplicates=options.duplicates,
        inverted=inverted,
    )
    declared = read_metadata(folder, metadata)
    if n_classes is not None:
        declared["n_classes"] = n_classes
    notes = () if inverted else folder_notes(annotations, declared)
    reading = _with_gaps(Reading(annotations, "folder", notes=notes))
    return with_spelling(reading, options.spelling)


def _of_files(paths: Any, options: ReadOptions) -> Reading | None:
    """Return a question of a tool that has a file for each annotator; nothing for other files."""
    if options.format not in (None, *FILES) or options.columns:
        return None
    files = read_files(paths, options.format)
    if files is None:
        return None
    names = ", ".join(map(str, paths)) if isinstance(paths, list) else str(paths)
    return _of_export(Source(names, Path(), "folder"), *files, options)


def _needs_classes(question: str | None, kind: str) -> str:
    these = "these are" if question is None else f"{question!r} holds"
    return f"{these} {kind}, and classes are needed here"


def _of_export(opened: Source, name: str, export: Export, options: ReadOptions) -> Reading:
    """Return one question of an export: labels, or answers of another kind."""
    question, content, notes = choose_question(opened, name, export, options)
    kind = content.kind
    if kind == "sets" and options.wants_classes:  # each set of options is a class
        content = as_labels(content)
    elif kind in KINDS and options.wants_classes:
        raise opened.fail(_needs_classes(question, content.kind))
    if content.kind == "single" and options.kind == "texts":
        content = as_texts(content)
    reading = Reading(
        None,
        name,
        question,
        questions={title: part.answers.height for title, part in export.questions.items() if title},
        kind=kind,
        gold=content.gold,
        texts=export.texts,
        notes=notes,
        unread=export.unread,
    )
    if kind in KINDS and not options.wants_classes:
        return _with_answers(reading, opened, content, options)
    _check_for_labels(options, opened.name)
    return _with_labels(reading, opened, content, options)


def _with_answers(
    reading: Reading, opened: Source, content: Question, options: ReadOptions
) -> Reading:
    """Return a reading with the answers to a question of another kind than classes."""
    try:
        answers = answers_of(content)
    except DataError as problem:
        raise opened.blame(problem) from None
    several = (SEVERAL,) if content.kind == "sets" else ()
    notes = (*reading.notes, *several, *answers.left_out.sentences)
    kind = cast(Kind, answers.kind)
    reading = replace(reading, answers=answers, kind=kind, gold=dict(content.gold), notes=notes)
    return with_spelling(reading, options.spelling)


def _with_labels(
    reading: Reading, opened: Source, content: Question, options: ReadOptions
) -> Reading:
    """Return a reading with the labels of a question."""
    is_table = reading.question is None  # whose rows are lines of the file
    if not is_table and content.answers.height == 0:
        raise opened.fail(f"nobody answered {reading.question!r}")
    rows, classes, joined = content.answers, options.classes or content.classes, Joined()
    if options.spelling == "join":
        rows = join_columns(rows, joined, classes or ())
        classes = classes and joined.classes(classes)
    try:
        annotations = annotations_from(
            rows,
            columns={column: column for column in rows.columns},
            classes=classes,
            missing=options.missing,
            duplicates=options.duplicates,
            source=opened if is_table else None,
            left_out=content.left_out,
        )
    except DataError as problem:
        raise opened.blame(problem) from None
    notes = (*reading.notes, *_words_for_no_label(annotations, content, is_table, options))
    if annotations.left_out:
        notes += annotations.left_out.sentences
    if len(annotations) == 0 and is_table:
        sentences = annotations.left_out.sentences or ("only a header",)
        raise opened.fail("; ".join(("no labels in it", *sentences)))
    reading = replace(reading, answers=annotations, notes=notes)
    if joined.names:
        gold, texts = joined.gold(reading.gold), joined.table(reading.texts)
        reading = replace(reading, gold=gold, texts=texts, notes=(*notes, *joined.notes))
    items = 2 * annotations.n_items < rows.height or may_differ(rows["item"])  # the faster look
    return with_spelling_notes(reading, items=items)


def _words_for_no_label(
    annotations: Annotations, content: Question, is_table: bool, options: ReadOptions
) -> tuple[str, ...]:
    """Return a note about classes of a table that are words for "no label"."""
    if not is_table or options.missing == "drop" or content.answers.schema["label"] != pl.String:
        return ()
    if NO_LABEL.isdisjoint(map(str.lower, annotations.classes)):
        return ()
    labels = content.answers["label"]
    words = labels.filter(is_no_label(labels)).to_list()
    return no_label_note(words, "classes, unless {} is given", missing="drop")
