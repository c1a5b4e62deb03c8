"""Zooniverse, the classifications of a project: one row for each, with JSON in its columns.

`annotations` lists the tasks that were answered: T0, T1, …. A text is a choice, a list of texts
are several, and a list of `choice` or `label` objects comes from a survey or a drop-down. Tasks
combined in one are one level deeper. Marks drawn on a picture are boxes (rectangles, circles as
their hulls), points or masks (polygons, where the metadata have the size of the picture); where
others drew, an empty list is an empty answer. Texts people wrote are texts. Who was not logged in
has a name made from the address; else the address or the session identifies the annotator.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import polars as pl

from ...errors import DataError
from ..collecting import box, located, point
from ..format import Export, Format, Head, Kind, Question
from ..platforms import (
    as_label,
    count_note,
    durations,
    export_of,
    kind_question,
    question_of,
    times_of,
)
from ..shapes import checked_size, from_polygon, runs_of, union
from ..sources import Source
from ..tables import read_columns

_NEEDED = ("classification_id", "annotations", "subject_ids")
_SHOWN = ("text", "filename", "file", "image", "image_name", "url", "name")

ByTask = dict[str, dict[int, Any]]  # task → row → answer


def recognises(head: Head) -> bool:
    """Return whether a table has classifications of subjects."""
    return head.shape == "table" and {*_NEEDED} <= {*head.names}


def read(source: Source) -> Export:
    """Return the answers to every task of every workflow."""
    table = read_columns(source, None)
    lacking = [name for name in _NEEDED if name not in table.columns]
    if lacking:
        raise source.fail(f"no column {lacking[0]!r}, which every classification has")
    metadata = _objects(source, table, "metadata")
    rows = _rows(table, metadata)
    answered, marked, blank, drawn = _answers(source, table)
    tasks = {row for by_row in (*answered.values(), *marked.values()) for row in by_row}

    def asked(name: str) -> list[bool]:
        """Return which rows have the task without a value, or no task with one."""
        without = blank.get(name, set())
        return [row in without or row not in tasks for row in range(table.height)]

    questions: dict[str, Question] = {}
    sizes = {
        item: size
        for item, about in zip(rows["item"].to_list(), metadata, strict=True)
        if (size := _size_of(about)) is not None and item is not None
    }
    for name, by_task in marked.items():
        values = {row: value for row, value in answered.pop(name, {}).items() if value == []}
        marks, unread = _marks_of_task(source, {**values, **by_task}, rows["item"].to_list(), sizes)
        drawn += unread
        for kind, by_kind in marks.items():
            free = name if len(marks) == 1 else f"{name} ({kind})"
            marks_of_rows = [by_kind.get(row) for row in range(table.height)]
            people = rows.drop("expert")
            questions[free] = kind_question(people, marks_of_rows, kind, sizes, asked=asked(name))
    for name, by_row in answered.items():
        answers = [by_row.get(row) for row in range(table.height)]
        question = question_of(rows, answers, asked=asked(name))
        table_of = question.answers.drop("expert")
        questions[name] = replace(question, answers=table_of, gold=_gold(question))
    questions = {name: questions[name] for name in sorted(questions, key=_in_order)}
    notes = count_note(drawn, "left out: marks of other shapes, and answers of other kinds")
    return export_of(questions, _texts(source, table), notes)


def _rows(table: pl.DataFrame, metadata: list[Any]) -> pl.DataFrame:
    """Return item, annotator, whether this is gold, time and duration."""
    names = [column for column in ("user_name", "user_id", "user_ip") if column in table.columns]
    session = pl.Series([as_label(about.get("session")) for about in metadata], dtype=pl.String)
    columns = [*(table[name] for name in names), session]
    annotator = pl.select(pl.coalesce(column.replace("", None) for column in columns)).to_series()
    expert = pl.repeat(False, table.height, eager=True)
    if "gold_standard" in table.columns:
        expert = table["gold_standard"].fill_null("").str.to_lowercase() == "true"
    rows = {"item": table["subject_ids"], "annotator": annotator, "expert": expert}
    if "created_at" in table.columns:
        rows["time"] = times_of(table["created_at"])
    started, finished = (
        times_of(pl.Series([as_label(about.get(key)) for about in metadata], dtype=pl.String))
        for key in ("started_at", "finished_at")
    )
    if started.null_count() < len(started):
        rows["duration"] = durations(started, finished)
    return pl.DataFrame(rows)


def _gold(question: Question) -> dict[str, Any]:
    """Return the first answer to each item that was made as gold standard."""
    gold: dict[str, Any] = {}
    rows = question.answers.select("item", "expert").iter_rows()
    for (item, is_expert), content in zip(rows, question.contents(), strict=True):
        if is_expert:
            gold.setdefault(item, content)
    return gold


def _answers(
    source: Source, table: pl.DataFrame
) -> tuple[ByTask, ByTask, dict[str, set[int]], int]:
    """Return answers, marks, rows without a value, and how many answers are of other kinds."""
    flows = table["workflow_id"].to_list() if "workflow_id" in table.columns else [None]
    many = len(set(flows)) > 1
    answered: ByTask = {}
    marked: ByTask = {}
    blank: dict[str, set[int]] = {}
    drawn = 0
    for row, tasks in enumerate(_parsed(source, table["annotations"])):
        if not isinstance(tasks, list):
            raise source.fail(f"row {row + 1}: annotations should be a list of tasks")
        for task, value in _tasks(tasks):
            name = f"{flows[row]}:{task}" if many else task
            answer = _answer(value)
            if answer is None and _are_marks(value):
                marked.setdefault(name, {})[row] = value
            elif answer is None and value in (None, ""):
                blank.setdefault(name, set()).add(row)
            elif answer is None:
                drawn += 1
            else:
                answered.setdefault(name, {})[row] = answer
    ordered = {name: answered[name] for name in sorted(answered, key=_in_order)}
    return ordered, {name: marked[name] for name in sorted(marked, key=_in_order)}, blank, drawn


def _tasks(tasks: list[Any], deeper: bool = True) -> Iterator[tuple[str, Any]]:
    """Yield the tasks that were answered, those inside a combination too."""
    for task in tasks:
        if not (isinstance(task, dict) and "task" in task):
            continue
        value = task.get("value")
        if deeper and isinstance(value, list) and value and all(map(_is_task, value)):
            yield from _tasks(value, deeper=False)
        else:
            yield as_label(task["task"]), value


def _is_task(part: Any) -> bool:
    return isinstance(part, dict) and "task" in part and "value" in part


def _answer(value: Any) -> Any:
    """Return a choice, or a list of them; nothing for what cannot be a class."""
    if isinstance(value, (str, bool, int, float)):
        return value
    if not isinstance(value, list):
        return None
    if all(isinstance(part, str) for part in value):
        return value
    for key in ("choice", "label"):  # of a survey, of a drop-down
        if all(isinstance(part, dict) and isinstance(part.get(key), str) for part in value):
            names = list(dict.fromkeys(part[key] for part in value))
            return names if len(names) > 1 else names[0]
    return None


def _in_order(name: str) -> tuple[str, int, str]:
    flow, _, task = name.rpartition(":")
    number = task[1:]
    return flow, int(number) if number.isdecimal() and len(number) < 9 else -1, task


def _texts(source: Source, table: pl.DataFrame) -> pl.DataFrame | None:
    """Return item and text, as far as the subject's data have one."""
    if "subject_data" not in table.columns:
        return None
    subjects = table.unique("subject_ids", maintain_order=True)
    texts: dict[str, str] = {}
    for item, data in zip(
        subjects["subject_ids"], _objects(source, subjects, "subject_data"), strict=True
    ):
        for about in data.values():
            if not isinstance(about, dict):
                continue
            plain = {str(key).strip("#!/ ").casefold(): value for key, value in about.items()}
            body = next((plain[key] for key in _SHOWN if plain.get(key)), None)
            if isinstance(body, str) and item is not None:
                texts.setdefault(item, body)
    if not texts:
        return None
    return pl.DataFrame({"item": list(texts), "text": list(texts.values())})


def _objects(source: Source, table: pl.DataFrame, column: str) -> list[dict[str, Any]]:
    if column not in table.columns:
        return [{}] * table.height
    parsed = list(_parsed(source, table[column]))
    return [value if isinstance(value, dict) else {} for value in parsed]


def _parsed(source: Source, column: pl.Series) -> Iterator[Any]:
    for row, body in enumerate(column.to_list()):
        try:
            yield json.loads(body) if body else []
        except (ValueError, RecursionError):
            raise source.fail(f"row {row + 1}: {column.name} is not JSON") from None


def _are_marks(value: Any) -> bool:
    """Return whether an answer is a list of marks drawn on a picture."""
    return (
        isinstance(value, list)
        and bool(value)
        and all(isinstance(mark, dict) and ("tool" in mark or "x" in mark) for mark in value)
    )


def _size_of(metadata: Mapping[str, Any]) -> tuple[int, int] | None:
    """Return height and width of the first picture of a subject, where they are known."""
    dimensions = metadata.get("subject_dimensions")
    picture = dimensions[0] if isinstance(dimensions, list) and dimensions else None
    if not isinstance(picture, dict):
        return None
    try:
        return checked_size(picture.get("naturalHeight"), picture.get("naturalWidth"))
    except DataError:
        return None


def _marks_of_task(
    source: Source,
    by_row: Mapping[int, list[Any]],
    items: Sequence[str],
    sizes: Mapping[str, tuple[int, int]],
) -> tuple[dict[Kind, dict[int, Any]], int]:
    """Return kind → row → marks, and how many marks have other shapes."""
    marks: dict[Kind, dict[int, Any]] = {}
    unread = 0
    for row, drawings in by_row.items():
        size = sizes.get(items[row])
        for drawing in drawings:
            with located(source, f"row {row + 1}"):
                kind, mark = _mark(drawing, size)
            if kind is None:
                unread += 1
            else:
                marks.setdefault(kind, {}).setdefault(row, []).append(mark)
    for kind, by_kind in marks.items():
        for row in by_row:
            by_kind.setdefault(row, [])
        if kind == "masks":
            sized = {row: shapes for row, shapes in by_kind.items() if items[row] in sizes}
            marks[kind] = {r: _mask(shapes, sizes[items[r]]) for r, shapes in sized.items()}
    return marks, unread


def _mark(drawing: Mapping[str, Any], size: tuple[int, int] | None) -> tuple[Kind | None, Any]:
    label = drawing.get("tool_label", drawing.get("tool"))
    place = [drawing.get(name) for name in ("x", "y", "width", "height")]
    if None not in place:
        return "boxes", box(place, label, size)
    if isinstance(drawing.get("points"), list) and size is not None:
        corners = [(p.get("x"), p.get("y")) for p in drawing["points"] if isinstance(p, dict)]
        if len(corners) < 3 or not all(isinstance(v, (int, float)) for c in corners for v in c):
            raise DataError("a polygon whose points are not at least three of x and y")
        return "masks", from_polygon(corners, size)
    x, y, r = drawing.get("x"), drawing.get("y"), drawing.get("r")
    if x is None or y is None or "points" in drawing:
        return None, None
    if r is not None:
        around = point(x, y) | {"r": box((0, 0, r, r))["w"]}
        left_side, top, r = around["x"] - around["r"], around["y"] - around["r"], around["r"]
        return "boxes", box((left_side, top, 2 * r, 2 * r), label)
    return "points", point(x, y, label, size)


def _mask(shapes: list[Any], size: tuple[int, int]) -> dict[str, Any]:
    return {"size": list(size), "counts": runs_of(union(shapes), size)}


FORMAT = Format(
    "zooniverse",
    recognises=recognises,
    read=read,
    kinds=("sets", "texts", "boxes", "points", "masks"),
)
