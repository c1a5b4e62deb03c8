"""From whatever people have to `Annotations`: tables, folders, and exports of labelling tools."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from stat import S_ISREG
from typing import Any, cast

import polars as pl

from ..answers import KINDS
from ..answers.annotations import Annotations, Scale
from ..answers.left_out import LeftOut, with_left_out
from ..errors import DataError, Note
from .annotator_files import FILES, read_files
from .collecting import as_labels
from .columns import (
    CARRIED,
    IN_MEMORY,
    NEEDED,
    NO_LABEL,
    QUESTION,
    find_columns,
    no_label_note,
    plain_name,
)
from .format import INVERTED, TOOLS, Export, Kind, Question, head_of, parse, tool_of
from .frames import as_frame, one_answer_each
from .kinds import KindReading, answers_of, as_texts
from .line_faults import faults_of
from .long_tables import annotations_from, is_no_label
from .platforms import chosen, options_of
from .sources import FORMATS, Source, is_folder, open_source, source_of_table
from .spellings import (
    Joined,
    check_way,
    join_columns,
    join_mapping,
    join_names,
    may_differ,
    spelled,
    spelling_notes,
)
from .tables import FOLDER, column_names, is_dataset, read_columns, without_empty

_SCALES: dict[Kind, Scale] = {"sets": "nominal", "ordinal": "ordinal", "numeric": "interval"}
_KINDS: dict[Scale, Kind] = {
    "nominal": "single",
    "ordinal": "ordinal",
    "interval": "numeric",
    "ratio": "numeric",
}
_FIRST = ("single", "sets", "ordinal", "numeric")  # kinds of questions that are read first
_LOOKS = 3  # at a file that others change
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

    @property
    def answers(self) -> Annotations:
        """The annotations, by the name that answers of every kind have."""
        return self.annotations


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
    spelling: str = "keep",
) -> Annotations:
    """Return the annotations in a file, folder or table.

    Parameters
    ----------
    source
        A path to a table (csv, tsv, parquet, arrow, jsonl, json; text also as .gz or .zst), to an
        export of a labelling tool, to a folder with `answers.json`, or `-` for standard input; a
        polars, pandas or Arrow table of the same content; `{item: {annotator: label}}`; or a
        mapping of column names to columns.
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
    spelling
        What to do with names of items, annotators and classes that look like one, such as `cat`
        and `cat` with a space after it: `keep` them apart, or `join` them. The notes of `examine`
        say which there are, and what was joined.

    Rows that were not read are counted in `left_out` of what is returned, which also names items
    and annotators without a label.

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
        spelling=spelling,
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
    spelling: str = "keep",
) -> Reading:
    """Return the annotations with the gold, texts and notes of their file; parameters as `read`."""
    reading = examine_question(
        source,
        format=format,
        question=question,
        columns=columns,
        classes=classes,
        missing=missing,
        scale=scale,
        duplicates=duplicates,
        spelling=spelling,
    )
    if isinstance(reading, KindReading):
        raise DataError(_needs_classes(reading), where=str(source))
    return reading


def examine_question(
    source: Any,
    *,
    kind: str | None = None,
    format: str | None = None,  # noqa: A002
    question: str | None = None,
    columns: Mapping[str, str] | None = None,
    classes: Sequence[Any] | None = None,
    missing: str = "error",
    scale: str = "auto",
    duplicates: str = "count",
    spelling: str = "keep",
) -> Reading | KindReading:
    """Return one question of a file: annotations, or answers of the kind that a tool's export has.

    Classes come first where no question is named and `kind`, one of `answers.KINDS`, is not given.
    A folder of a tool's files, or a list of paths, has a file for each annotator. Other parameters
    are those of `read`.
    """
    check_way(spelling)
    reading: Reading | KindReading
    if isinstance(source, Annotations):
        reading = Reading(source, "annotations", reason="they were given with this scale")
        reading = with_joined_names(reading) if spelling == "join" else reading
        return reading if scale == "auto" else with_scale(reading, scale)
    options = {
        "question": question,
        "classes": classes,
        "missing": missing,
        "duplicates": duplicates,
        "spelling": spelling,
    }
    reading = _unchanged(
        source, lambda: _examine(source, options, format=format, columns=columns, kind=kind)
    )
    if isinstance(reading, KindReading):
        return reading
    reading = replace(reading, annotations=reading.annotations.with_kinds())
    return with_scale(reading, scale, reorder=classes is None)


def _unchanged(source: Any, read: Callable[[], Reading | KindReading]) -> Reading | KindReading:
    """Return what is read from files that nobody changes meanwhile, perhaps after a second look.

    A file is opened several times, for its format, its columns and its rows, and these would be of
    different files.
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


def examine_export(
    source: Source,
    format: str,  # noqa: A002
    *,
    question: str | None = None,
    classes: Sequence[Any] | None = None,
) -> Reading:
    """Return one question of an export of a labelling tool that is open already."""
    export = parse(source, format)
    reading = _choose(source, format, export, question=question, classes=classes)
    if isinstance(reading, KindReading):
        raise source.fail(_needs_classes(reading))
    return with_scale(reading, reorder=classes is None)


def _needs_classes(reading: KindReading) -> str:
    return f"{reading.question!r} holds {reading.answers.kind}, and classes are needed here"


def with_scale(reading: Reading, scale: str = "auto", *, reorder: bool = True) -> Reading:
    """Return a reading whose annotations have a scale; `auto` detects it, with a note.

    Names that are a known sequence are put in order, if `reorder`.
    """
    from .scales import LabelScale, scale_of_labels

    annotations = reading.annotations
    if scale != "auto":
        annotations = annotations.with_scale(cast(Scale, scale))
        kind = _KINDS[annotations.scale] if reading.kind != "sets" else reading.kind
        return replace(reading, annotations=annotations, kind=kind, reason="as requested")
    if reading.kind in _SCALES:
        labels = LabelScale(_SCALES[reading.kind], f"the {reading.format} file declares it")
    elif reading.format == "folder" and annotations.scale != "nominal":
        labels = LabelScale(annotations.scale, "the metadata of the folder say so")
    elif reading.format == "folder":
        labels = LabelScale("nominal", "the labels of a data set folder are class numbers")
    else:
        labels = scale_of_labels(annotations)
    notes = reading.notes
    if labels.scale != "nominal":
        if labels.classes is not None and reorder:
            annotations = annotations.recode(labels.classes)
        annotations = annotations.with_scale(labels.scale)
        ends = " to ".join(annotations.classes[[0, -1]].tolist())
        scale_name = "an ordinal scale" if labels.scale == "ordinal" else "numbers"
        sentence = f"labels {ends} are taken for {scale_name}: {labels.reason}"
        notes += (Note(sentence, remedy="makes them classes", scale="nominal"),)
    return replace(reading, annotations=annotations, notes=notes, reason=labels.reason)


def _examine(
    source: Any,
    options: Mapping[str, Any],
    *,
    format: str | None,  # noqa: A002
    columns: Mapping[str, str] | None,
    kind: str | None,
) -> Reading | KindReading:
    if isinstance(source, Mapping) and all(isinstance(part, Mapping) for part in source.values()):
        return _of_mapping(source, options)
    is_list = isinstance(source, (list, tuple)) and bool(source)
    if is_list and all(isinstance(path, (str, Path)) for path in source):
        return _of_files(list(source), format, kind, options)
    on_disk = isinstance(source, (str, Path))
    inverted = format == INVERTED
    if on_disk and is_folder(source) and (Path(source, "answers.json").exists() or inverted):
        ways = {name: way for name, way in options.items() if name != "question"}
        return examine_folder(source, inverted=inverted, **ways)
    if not (format is None or format in FORMATS or format in TOOLS):
        names = ", ".join((*FORMATS, *TOOLS))
        where = str(source) if on_disk else IN_MEMORY
        raise DataError(f"no format {format!r}; known are {names}", where=where)
    opened = _opened(source, format)
    if opened.format in ("folder", "zip") and format in (None, *FILES) and not columns:
        reading = _of_files(opened.content, format, kind, options)
        if reading is not None:
            return reading
    try:
        name, export = format if format in TOOLS else None, None
        if columns and opened.format in ("csv", "tsv") and format in _TEXTS:
            from .long_tables import by_number

            export = by_number(opened, columns)
            name = name if export is None else "headerless"
        elif format is None and not columns:
            head = head_of(opened)
            name = None if head is None or head.is_long() else tool_of(head)
        if export is None and name is not None:
            export = parse(opened, name)
        if export is None and opened.format == "folder":
            raise opened.fail(
                "no answers.json in this folder, nor files of a known tool; name the file itself"
            )
        if export is None and opened.format in ("npy", "json", "zip"):
            whole = _whole(opened, **options)
            if whole is not None:
                return whole
        export = export or _long_table(opened, columns)
        name = name or (opened.format if on_disk else IN_MEMORY)
        return _choose(opened, name, export, kind=kind, **options)
    except UnicodeEncodeError:  # JSON can name half a character
        raise opened.fail("a text in it is not valid Unicode") from None


def _of_mapping(answers: Mapping[Any, Any], options: Mapping[str, Any]) -> Reading:
    """Return the annotations of `{item: {annotator: label}}`."""
    joined = Joined()
    if options["spelling"] == "join":
        answers = join_mapping(answers, joined)
    answers, left_out = one_answer_each(
        answers, options["duplicates"], "mapping", options["missing"]
    )
    annotations = Annotations.from_dict(answers, classes=options["classes"])
    notes = joined.notes or spelling_notes(annotations)
    return _read(Reading(with_left_out(annotations, left_out), "mapping", notes=notes))


def _opened(source: Any, format: str | None) -> Source:  # noqa: A002
    """Return a file, a folder, or a table in memory, to be read."""
    if not isinstance(source, (str, Path)):
        return source_of_table(as_frame(source))
    if is_folder(source):
        kind = FOLDER if is_dataset(Path(source)) else "folder"
        return Source(str(source), Path(source), kind)
    return open_source(source, None if format in TOOLS else format)


def _whole(
    opened: Source,
    *,
    question: str | None,
    classes: Sequence[Any] | None,
    missing: str,
    duplicates: str,
    spelling: str,
) -> Reading | None:
    """Return the annotations of an array or of an object of objects."""
    from .json_records import load
    from .tools.peerannot import is_nested, load_array, orientation_note

    if opened.format == "zip":
        message = "a zip in which no known tool's files are"
        raise opened.fail(message, remedy="unpack it, or say {}", format=...)
    try:
        if opened.format == "npy":
            with opened.file() as file:
                annotations = Annotations.from_matrix(load_array(file), classes=classes)
            notes: tuple[str, ...] = ()
            left_out = LeftOut()
        else:
            answers = load(opened)
            if not is_nested(answers):
                return None
            joined = Joined()
            answers = join_mapping(answers, joined) if spelling == "join" else answers
            answers, left_out = one_answer_each(answers, duplicates, opened.name, missing)
            annotations = Annotations.from_dict(answers, classes=classes)
            notes = (*orientation_note(annotations), *(joined.notes or spelling_notes(annotations)))
    except DataError as problem:
        raise opened.blame(problem) from None
    if question is not None:
        raise _one_question(opened, question)
    annotations = with_left_out(annotations, left_out)
    return _read(Reading(annotations, opened.format, notes=(*opened.notes, *notes)))


def _read(reading: Reading) -> Reading:
    """Return a reading whose notes say what was left out."""
    sentences = reading.annotations.left_out.sentences
    return replace(reading, notes=(*reading.notes, *sentences)) if sentences else reading


def _long_table(opened: Source, columns: Mapping[str, str] | None) -> Export:
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
    frame, kind = _with_options(frame, roles["label"], opened)
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


def _with_options(frame: pl.DataFrame, label: str, opened: Source) -> tuple[pl.DataFrame, Kind]:
    """Return lists in the column of labels as lists of names, and the kind of the answers."""
    lists = isinstance(frame.schema[label], (pl.List, pl.Array))
    if not lists and opened.format in ("json", "jsonl"):  # whose lists are texts here
        head = head_of(opened)
        lists = head is not None and any(isinstance(row.get(label), list) for row in head.records)
    if not lists:
        return frame, "single"
    names: list[list[str] | None] = []
    for value in frame[label].to_list():
        options = options_of(value)
        names.append(None if value is None else chosen([value] if options is None else options))
    return frame.with_columns(pl.Series(label, names, dtype=pl.List(pl.String))), "sets"


def _question(rows: pl.DataFrame, kind: Kind) -> Question:
    """Return rows of item, annotator and label as a question; lists of labels are values."""
    if kind != "sets":
        return Question(rows, kind)
    return Question(rows.drop("label"), kind, values=rows["label"].to_list())


def examine_folder(
    folder: str | Path,
    *,
    metadata: str | Path | None = None,
    n_classes: int | None = None,
    inverted: bool = False,
    spelling: str = "keep",
    **options: Any,
) -> Reading:
    """Return the annotations of a data set folder, with options of `read_folder`, and notes."""
    from .tools.peerannot import folder_notes, read_folder, read_metadata

    options |= {"metadata": metadata, "n_classes": n_classes, "inverted": inverted}
    annotations, declared = read_folder(folder, **options), read_metadata(folder, metadata)
    if n_classes is not None:
        declared["n_classes"] = n_classes
    notes = () if inverted else folder_notes(annotations, declared)
    reading = _read(Reading(annotations, "folder", notes=notes))
    return with_joined_names(reading) if spelling == "join" else with_spelling_notes(reading)


def with_joined_names(reading: Reading) -> Reading:
    """Return a reading in which names that look like one are one, with a note that counts them."""
    joined = Joined()
    annotations = join_names(reading.annotations, joined)
    gold, texts = joined.gold(reading.gold), joined.table(reading.texts)
    notes = (*reading.notes, *joined.notes)
    return replace(reading, annotations=annotations, gold=gold, texts=texts, notes=notes)


def with_spelling_notes(reading: Reading, *, items: bool = True) -> Reading:
    """Return a reading with a note about names that look like one, if there are any."""
    notes = spelling_notes(reading.annotations, items=items)
    return replace(reading, notes=(*reading.notes, *notes)) if notes else reading


def _counted(kind: Kind) -> str:
    return "labels" if kind in _FIRST else f"answers, {kind}"


def _one_question(opened: Source, question: str) -> DataError:
    remedy = f"{opened.name}: a table of one question, so {{}} cannot be chosen"
    return DataError(remedy=remedy, question=question)


def _of_files(
    paths: Path | bytes | list[str | Path],
    format: str | None,  # noqa: A002
    kind: str | None,
    options: Mapping[str, Any],
) -> Any:
    """Return a question of a tool that has a file for each annotator; nothing for other files."""
    if isinstance(paths, bytes):  # of standard input
        return None
    files = read_files(paths, format)
    is_list = isinstance(paths, list)
    if files is None and not is_list:
        return None
    names = ", ".join(map(str, paths)) if isinstance(paths, list) else str(paths)
    opened = Source(names, Path(), "folder")
    if files is None:
        raise opened.fail(f"not files of one of {', '.join(FILES)}")
    name, export = files
    return _choose(opened, name, export, kind=kind, **options)


def choose_question(
    opened: Source, name: str, export: Export, *, kind: str | None, question: str | None
) -> tuple[str | None, Question, tuple[str, ...]]:
    """Return the title of a question, the question, and notes about the others.

    Classes come first where neither a question nor a kind is given.
    """
    plain = export.questions.get("")  # of a long table, whose rows are lines of the file
    questions = {title: content for title, content in export.questions.items() if title}
    listed = {
        title: f"{title} ({content.answers.height} {_counted(content.kind)})"
        for title, content in questions.items()
    }
    if plain is not None and question is not None:
        raise _one_question(opened, question)
    if plain is None and not questions:
        raise opened.fail(f"a {name} export without any answer to a question")
    if question is not None and question not in questions:
        raise opened.fail(f"no question {question!r}; there are {', '.join(listed.values())}")
    faults = faults_of(opened)
    notes = (*opened.notes, *faults.notes, *export.notes)
    if plain is None and question is None:
        fit = [title for title in questions if kind in (None, questions[title].kind)]
        if kind == "texts" and not fit:
            texts = {
                title: as_texts(content)
                for title, content in questions.items()
                if content.kind == "single"
            }
            questions, fit = questions | texts, list(texts)
        if not fit:
            raise opened.fail(f"no {kind} in it; there are {', '.join(listed.values())}")
        candidates = [title for title in fit if questions[title].kind in _FIRST] or fit
        if len(candidates) > 1:
            message = f"several questions, {', '.join(listed[title] for title in candidates)}"
            raise opened.fail(message, remedy="choose with {}", question="NAME")
        question = candidates[0]
        unread = ", ".join(listed[title] for title in questions if title != question)
        if unread:
            notes += (Note(f"not read: {unread}", remedy="reads one", question="NAME"),)
    content = plain or questions[question or ""]
    return question, replace(content, left_out=faults.left_out + content.left_out), notes


def _choose(
    opened: Source,
    name: str,
    export: Export,
    *,
    kind: str | None = None,
    question: str | None,
    classes: Sequence[Any] | None,
    missing: str = "error",
    duplicates: str = "count",
    spelling: str = "keep",
) -> Reading | KindReading:
    """Return one question of an export."""
    plain = export.questions.get("")  # of a long table, whose rows are lines of the file
    question, content, notes = choose_question(opened, name, export, kind=kind, question=question)
    sizes = {title: part.answers.height for title, part in export.questions.items() if title}
    if plain is None and content.answers.height == 0:
        raise opened.fail(f"nobody answered {question!r}")
    kind_of_question = content.kind
    if content.kind == "sets" and kind != "sets":  # each set of options is a class
        content = as_labels(content)
    elif content.kind in KINDS:
        try:
            answers, spelling_sentences = spelled(answers_of(content), spelling)
        except DataError as problem:
            raise opened.blame(problem) from None
        return KindReading(
            answers,
            name,
            question or "",
            questions=sizes,
            gold=dict(content.gold),
            texts=export.texts,
            notes=(*notes, *answers.left_out.sentences, *spelling_sentences),
        )
    joined, rows, classes = Joined(), content.answers, classes or content.classes
    if spelling == "join":
        rows = join_columns(rows, joined, classes or ())
        classes = classes and joined.classes(classes)
    try:
        annotations = annotations_from(
            rows,
            columns={column: column for column in rows.columns},
            classes=classes,
            missing=missing,
            duplicates=duplicates,
            source=opened if plain else None,
        )
    except DataError as problem:
        raise opened.blame(problem) from None
    annotations = with_left_out(annotations, content.left_out)
    sentences = annotations.left_out.sentences
    if len(annotations) == 0 and plain is not None:
        raise opened.fail("; ".join(("no labels in it", *(sentences or ("only a header",)))))
    if plain is not None and content.answers.schema["label"] == pl.String:
        labels = content.answers["label"]
        unlike = missing == "drop" or NO_LABEL.isdisjoint(map(str.lower, annotations.classes))
        words = [] if unlike else labels.filter(is_no_label(labels)).to_list()
        notes = (*notes, *no_label_note(words, "classes, unless {} is given", missing="drop"))
    reading = Reading(
        annotations,
        name,
        question,
        questions=sizes,
        kind=kind_of_question,
        gold=joined.gold(content.gold),
        texts=joined.table(export.texts),
        notes=(*notes, *sentences, *joined.notes),
        unread=export.unread,
    )
    items = 2 * annotations.n_items < rows.height or may_differ(rows["item"])  # the faster look
    return with_spelling_notes(reading, items=items)
