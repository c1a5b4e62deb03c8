"""One way to read every kind of answers: classes and numbers as annotations, others as answers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

from ..annotations import Annotations
from ..answers import Answers
from ..answers.sets import Sets, split_options
from ..errors import DataError, OptionError
from .answer_records import answers_from_records, kind_of_records
from .answer_tables import answers_from
from .columns import NEEDED, plain_name
from .exports import TOOLS, head_of, tool_of
from .frames import as_frame
from .layouts import CLASSES, Layout, as_kind, find_layout, is_of_kind
from .reading import Reading, examine
from .sources import FORMATS, Source, open_source
from .tables import column_names, read_columns


@dataclass(frozen=True, eq=False)
class AnswerReading:
    """The answers of a file, its format, and notes."""

    answers: Answers
    format: str
    notes: tuple[str, ...] = ()


def read(source: Any, **given: Any) -> Annotations | Answers:
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
        A table about items: height and width of images, or the two sides of comparisons.
    **given
        `format`, `question`, `columns`, `classes`, `missing`, `scale` and `duplicates`, as in
        `readers.examine`.

    Examples
    --------
    >>> read({"a": {"ann": "cat", "bob": "dog"}})
    <Annotations: 2 labels by 2 annotators on 1 items; classes cat, dog>
    >>> table = {"item": ["a", "a"], "annotator": ["x", "y"], "start": [0, 0], "end": [2, 3]}
    >>> read(table)
    <spans: 1 items, 2 annotators, 2 marks>
    """
    found = examine_any(source, **given)
    return found.answers if isinstance(found, AnswerReading) else found.annotations


def examine_any(
    source: Any,
    *,
    kind: str | None = None,
    assigned: str | Path | None = None,
    inputs: str | Path | None = None,
    **given: Any,
) -> Reading | AnswerReading:
    """Return annotations or answers with the notes of their file; parameters as in `read`."""
    if isinstance(source, Answers):
        return AnswerReading(source, "answers")
    chosen = as_kind(kind)
    if chosen in CLASSES:
        return _classes(source, chosen, given)
    options = {"assigned": assigned, "inputs": inputs}
    found = _read_answers(source, chosen, given, options)
    if found is not None:
        return found
    if chosen not in (None, "sets"):
        raise DataError(f"{source}: no {chosen} in it; {_remedy(chosen)}")
    if assigned is not None:
        raise OptionError(f"--assigned is for marks, and {source} holds classes")
    reading = examine(source, **given)
    return _as_sets(reading) if reading.kind == "multiple" or chosen == "sets" else reading


def _classes(source: Any, kind: str, given: dict[str, Any]) -> Reading:
    """Return classes; a column of labels, each with several options, may be among them."""
    if kind != "single" and given.get("scale", "auto") == "auto":
        given = given | {"scale": CLASSES[kind]}
    if isinstance(source, (str, Path)) and not given.get("columns") and Path(source).is_file():
        opened = open_source(source)
        if opened.format in ("csv", "tsv", "parquet", "arrow"):
            names = column_names(opened)
            labels = [name for name in names if plain_name(name) in NEEDED["label"]]
            several = [name for name in names if plain_name(name) == "labels"]
            if several and not labels:
                given = given | {"columns": {"label": several[0]}}
    return examine(source, **given)


def _read_answers(
    source: Any, kind: str | None, given: Mapping[str, Any], options: Mapping[str, Any]
) -> AnswerReading | None:
    """Return the answers in a plain table or in records; nothing if they are classes."""
    settings = {name: given[name] for name in ("missing", "duplicates") if name in given}
    columns = given.get("columns") or {}
    if isinstance(source, (str, Path)):
        opened = _opened(source, kind, given)
        if opened is None:
            return None
        found = _from_file(opened, kind, columns)
        if isinstance(found, Answers):
            return AnswerReading(found, opened.format, opened.notes)
        if found is None:
            return None
        frame, layout, roles = found
        read, notes = answers_from(
            frame, layout, roles, given=columns, source=opened, **options, **settings
        )
        return AnswerReading(read, opened.format, (*opened.notes, *notes))
    if isinstance(source, Annotations) or _is_nested(source):
        return None
    frame = as_frame(source)
    layout_found = find_layout(frame.columns, kind, columns)
    if layout_found is None or (kind is None and not is_of_kind(frame, *layout_found)):
        return None
    read, notes = answers_from(frame, *layout_found, given=columns, **options, **settings)
    return AnswerReading(read, "table", notes)


def _is_nested(source: Any) -> bool:
    """Return whether a mapping is `{item: {annotator: label}}`."""
    return isinstance(source, Mapping) and all(isinstance(v, Mapping) for v in source.values())


def _opened(source: str | Path, kind: str | None, given: Mapping[str, Any]) -> Source | None:
    """Return a plain file, unless its format is that of a tool or it is a folder."""
    wanted = given.get("format")
    if wanted in TOOLS or (str(source) != "-" and Path(source).is_dir()):
        return None
    if str(source) == "-" and kind is None:
        return None  # standard input can be read once: the kind has to be given
    if wanted is not None and wanted not in FORMATS:
        return None  # the error is that of `examine`
    return open_source(source, wanted)


def _from_file(
    opened: Source, kind: str | None, columns: Mapping[str, str]
) -> Answers | tuple[pl.DataFrame, Layout, dict[str, str]] | None:
    """Return the answers of records, or a table with its layout."""
    if opened.format not in ("csv", "tsv", "parquet", "arrow", "jsonl", "json"):
        return None
    head = head_of(opened)
    if opened.format in ("jsonl", "json"):
        of_records = kind_of_records(head) if head is not None else None
        if of_records is not None and kind in (None, of_records):
            return answers_from_records(opened, of_records)
        if head is None or head.shape != "records":
            return None
    names = list(head.names) if head is not None else column_names(opened)
    found = find_layout(names, kind, columns)
    if found is None or (kind is None and head is not None and tool_of(head) is not None):
        return None
    frame = read_columns(opened, None)
    if kind is None and not is_of_kind(frame, *found):
        return None
    return frame, *found


def _as_sets(reading: Reading) -> AnswerReading:
    """Return labels with several options as sets."""
    annotations = reading.annotations
    options = [split_options(name) for name in annotations.classes.tolist()]
    values = [options[code] for code in annotations.label.tolist()]
    names = dict.fromkeys(one for several in options for one in several)
    answers = Sets.from_values(
        annotations.items[annotations.item],
        annotations.annotators[annotations.annotator],
        values,
        items=annotations.items,
        annotators=annotations.annotators,
        options=sorted(names) or None,
    )
    note = "a label may have several options: read as sets; --kind single makes each label a class"
    return AnswerReading(answers, reading.format, (*reading.notes, note))


def _remedy(kind: str) -> str:
    from .layouts import LAYOUTS

    layouts = [", ".join(one.roles) for one in LAYOUTS if one.kind == kind]
    return f"columns of {kind} are {' or '.join(layouts)}; others are named by --columns ROLE=NAME"
