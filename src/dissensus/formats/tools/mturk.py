"""Amazon Mechanical Turk, results of a batch: one row for each assignment.

`Input.…` is what was shown, `Answer.…` the answer. A choice is a text, is in
`Answer.question.label`, as one column of true and false for every option, or in the JSON of
`Answer.taskAnswers`. Items are HITs; where the same inputs were published in several HITs, the
inputs are the item. Rejected answers are kept: methods weigh them. Bounding boxes, key points and
entities are questions of their kinds, and an empty list of them is an empty answer.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import polars as pl

from ...errors import DataError
from ..cells import as_texts_of_times
from ..collecting import box, located, point, span
from ..format import Export, Format, Head, Kind, Question
from ..platforms import (
    accepted,
    as_label,
    count_note,
    export_of,
    kind_question,
    named_by_inputs,
    options_of,
    question_of,
    texts_of,
)
from ..sources import Source
from ..tables import read_columns

_MARKED: dict[str, Kind] = {"boundingBoxes": "boxes", "keypoints": "points", "entities": "spans"}
_NEEDED = ("HITId", "WorkerId")
_JSON = "Answer.taskAnswers"
_TRUTH = {"true", "false"}
_SIZE = ".inputImageProperties"
_HOURS = {"UTC": 0, "GMT": 0, "PST": -8, "PDT": -7}  # what MTurk writes

Marked = dict[str, dict[int, dict[str, Any]]]  # question → row → answer with marks
Answered = tuple[list[Any], bool | None]  # answers, and whether several could be chosen


def recognises(head: Head) -> bool:
    """Return whether a table has HITs, workers and answers."""
    answers = any(name.startswith("Answer.") for name in head.names)
    return head.shape == "table" and {*_NEEDED} <= {*head.names} and answers


def read(source: Source) -> Export:
    """Return the answers to every question of a batch."""
    table = read_columns(source, None)
    lacking = [name for name in _NEEDED if name not in table.columns]
    if lacking:
        raise source.fail(f"no column {lacking[0]!r}, which every batch of MTurk has")
    inputs = [name for name in table.columns if name.startswith("Input.")]
    rows = _rows(table, inputs)
    marked: Marked = {}
    in_json = _from_json(source, table, marked) if _JSON in table.columns else {}
    answered_rows = {row for by_row in marked.values() for row in by_row}
    answered_rows |= {
        row
        for answers, _ in in_json.values()
        for row, answer in enumerate(answers)
        if answer is not None
    }
    blank = [row not in answered_rows for row in range(table.height)]  # JSON holds what was asked
    answered = in_json | _from_columns(source, table, marked)
    questions = {
        name: question_of(
            rows, answers, several=is_multiple, asked=blank if name in in_json else None
        )
        for name, (answers, is_multiple) in answered.items()
    }
    was_asked = blank if _JSON in table.columns else None
    questions |= {name: _marks(source, rows, by_row, was_asked) for name, by_row in marked.items()}
    rejected = 0
    if "status" in rows.columns:
        rejected = int((rows["status"].str.to_lowercase() == "rejected").sum())
    notes = count_note(rejected, "kept: rejected answers")
    return export_of(questions, texts_of(rows["item"], table.select(inputs)), notes)


def _rows(table: pl.DataFrame, inputs: Sequence[str]) -> pl.DataFrame:
    """Return item, annotator, time, duration and status."""
    item = table["HITId"]
    if inputs and table.select(inputs).n_unique() < table.select("HITId", *inputs).n_unique():
        item = named_by_inputs(table, inputs)
    columns = {"item": item, "annotator": table["WorkerId"]}
    if "SubmitTime" in table.columns:
        columns["time"] = _times(table["SubmitTime"])
    if "WorkTimeInSeconds" in table.columns:
        columns["duration"] = table["WorkTimeInSeconds"].cast(pl.Float64, strict=False)
    if "AssignmentStatus" in table.columns:
        columns["status"] = table["AssignmentStatus"].fill_null("")
    return pl.DataFrame(columns)


def _times(column: pl.Series) -> pl.Series:
    """Return times such as `Wed Apr 10 10:23:45 PDT 2019` in UTC; texts where one reads otherwise.

    >>> _times(pl.Series(["Wed Apr 10 10:23:45 PDT 2019"])).item()
    datetime.datetime(2019, 4, 10, 17, 23, 45)
    """
    parts = (
        as_texts_of_times(column)
        .str.strip_chars()
        .str.extract_groups(r"^\w{3} (?<day>\w{3} +\d+ [\d:]{8}) (?<zone>[A-Z]+) (?<year>\d{4})$")
    )
    part = parts.struct.field
    local = (part("day") + " " + part("year")).str.to_datetime("%b %e %H:%M:%S %Y", strict=False)
    hours = part("zone").replace_strict(_HOURS, default=None, return_dtype=pl.Int64)
    times = local - (hours * 3_600_000_000).cast(pl.Duration("us"))
    return column if times.null_count() > column.null_count() else times


def _from_columns(source: Source, table: pl.DataFrame, marked: Marked) -> dict[str, Answered]:
    """Return question → answers, from columns; marks are added to `marked`."""
    spread: dict[str, list[str]] = {}
    answered: dict[str, Answered] = {}
    for column in (name for name in table.columns if name.startswith("Answer.")):
        name = column.removeprefix("Answer.")
        prefix, dot, option = name.rpartition(".")
        values = {str(value).lower() for value in table[column].drop_nulls().unique()}
        if column == _JSON or _marks_of_column(source, table[column], marked):
            continue
        if dot and values <= _TRUTH:
            spread.setdefault(prefix, []).append(column)
        else:
            short = prefix if dot and option in ("label", "labels") else name
            answered[short if short not in answered else name] = _split(table[column].to_list())
    for name, columns in spread.items():
        names = [column.removeprefix(f"Answer.{name}.") for column in columns]
        rows = zip(*(table[column].to_list() for column in columns), strict=True)
        free = name if len(names) > 1 or names == ["on"] else f"{name}.{names[0]}"
        answered[free if free not in answered else f"{free} (options)"] = _options(
            [dict(zip(names, row, strict=True)) for row in rows], names
        )
    return answered


def _from_json(source: Source, table: pl.DataFrame, marked: Marked) -> dict[str, Answered]:
    """Return question → answers, from JSON; marks are added to `marked`."""
    by_question: dict[str, dict[int, Any]] = {}
    for row, body in enumerate(table[_JSON].to_list()):
        if not (body or "").strip():
            continue
        content = _loads(source, body, row, _JSON)
        for answers in content if isinstance(content, list) else [content]:
            if not isinstance(answers, dict):
                raise source.fail(f"row {row + 1}: {_JSON} should be a list of objects")
            for name, value in answers.items():
                if _shape_of(value):
                    marked.setdefault(name, {})[row] = value
                    continue
                if isinstance(value, dict) and set(value) in ({"label"}, {"labels"}, {"on"}):
                    value = next(iter(value.values()))  # what form elements wrap around it
                by_question.setdefault(name, {})[row] = value
    answered: dict[str, Answered] = {}
    for name, by_row in by_question.items():
        answers = [by_row.get(row) for row in range(table.height)]
        ticked = [answer if _is_ticked(answer) else None for answer in answers]
        if any(boxes is not None for boxes in ticked):
            names = list(dict.fromkeys(name for boxes in ticked if boxes for name in boxes))
            answered[name] = _options(ticked, names)
        else:
            answered[name] = _split(answers)
    return answered


def _is_ticked(value: Any) -> bool:
    return isinstance(value, dict) and all(isinstance(is_on, bool) for is_on in value.values())


def _options(rows: Sequence[Mapping[str, Any] | None], names: Sequence[str]) -> Answered:
    """Return options that are true or false as answers: one each, unless somebody chose two."""
    ticked = [
        None
        if row is None or all(as_label(value) == "" for value in row.values())
        else [name for name, value in row.items() if accepted(value)]
        for row in rows
    ]
    if len(names) == 1:  # one box to tick
        return [
            None if options is None else "true" if options else "false" for options in ticked
        ], False
    if any(len(options) > 1 for options in ticked if options is not None):
        return ticked, True
    return [options[0] if options else None for options in ticked], False


def _split(answers: Sequence[Any]) -> Answered:
    """Return texts as answers; boxes of one name come with bars between them."""
    lists = any(options_of(answer) is not None for answer in answers)
    if lists or not any(isinstance(answer, str) and "|" in answer for answer in answers):
        return list(answers), None
    labels = map(as_label, answers)
    return [label.split("|") if label else None for label in labels], True


def _loads(source: Source, body: Any, row: int, name: str) -> Any:
    try:
        return json.loads(body)
    except (TypeError, ValueError, RecursionError):
        raise source.fail(f"row {row + 1}: {name} is not JSON") from None


def _marks(
    source: Source, rows: pl.DataFrame, by_row: dict[int, Any], was_asked: Sequence[bool] | None
) -> Question:
    """Return the marks of one question."""
    shape = next(filter(None, map(_shape_of, by_row.values())), "boundingBoxes")
    values: list[Any] = [None] * rows.height
    sizes: dict[str, tuple[int, int]] = {}
    for row, value in by_row.items():
        size = _size_of(value)
        if size is not None and rows["item"][row] is not None:
            sizes[rows["item"][row]] = size
        with located(source, f"row {row + 1}"):
            values[row] = _as_marks(value.get(shape) or [], shape, size)
    return kind_question(rows, values, _MARKED[shape], sizes, was_asked)


def _marks_of_column(source: Source, column: pl.Series, marked: Marked) -> bool:
    """Take a column of marks, or of the size of their images; return whether it is one."""
    name, _, shape = column.name.removeprefix("Answer.").rpartition(".")
    if shape in _MARKED:
        for row, body in enumerate(column.to_list()):
            if body:
                marks = _loads(source, body, row, column.name)
                if not isinstance(marks, list):
                    raise source.fail(f"row {row + 1}: {column.name} should be a list")
                marked.setdefault(name, {}).setdefault(row, {})[shape] = marks
        return True
    if name.endswith(_SIZE):
        for row, side in enumerate(column.to_list()):
            about = marked.setdefault(name.removesuffix(_SIZE), {}).setdefault(row, {})
            if side is not None and str(side).isdecimal():
                about.setdefault(_SIZE[1:], {})[shape] = int(side)
        return True
    return False


def _shape_of(value: Any) -> str | None:
    """Return which of the marks an answer holds; nothing for other answers."""
    if not isinstance(value, dict):
        return None
    return next((name for name in _MARKED if isinstance(value.get(name), list)), None)


def _size_of(value: Any) -> tuple[int, int] | None:
    """Return height and width of the image that an answer is about, where it has them."""
    about = value.get("inputImageProperties")
    if not isinstance(about, dict):
        return None
    height, width = about.get("height"), about.get("width")
    return (height, width) if isinstance(height, int) and isinstance(width, int) else None


def _as_marks(entries: list[Any], shape: str, size: tuple[int, int] | None) -> list[dict[str, Any]]:
    """Return marks as plain values."""
    marks = []
    for entry in entries:
        if not isinstance(entry, dict):
            raise DataError(f"{shape} should be a list of objects")
        label = entry.get("label")
        if shape == "boundingBoxes":
            place = [entry.get(side) for side in ("left", "top", "width", "height")]
            marks.append(box(place, label, size))
        elif shape == "keypoints":
            marks.append(point(entry.get("x"), entry.get("y"), label, size))
        else:
            marks.append(span(entry.get("startOffset"), entry.get("endOffset"), label))
    return marks


FORMAT = Format(
    "mturk", recognises=recognises, read=read, kinds=("sets", "texts", "spans", "boxes", "points")
)
