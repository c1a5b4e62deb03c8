"""Label Studio: JSON with all annotations of a task, JSON-MIN, CSV and TSV.

Every control (`from_name`) is a question. Choices, ratings, numbers, taxonomies and pairwise
choices about a whole task are read; several choices in any answer make the question one of several
options. An annotator is an email address, or an id where the export has no more. Cancelled
annotations are left out; those marked as ground truth are gold and still somebody's label.
Predictions are answers by `model:<version>`, with the column source telling models from people.
"""

from __future__ import annotations

from typing import Any

from msgspec import Struct

from .._names import text
from . import _label_studio_flat as flat
from ._answers import Answers, Gathered, describe, joined
from ._json import records
from .exports import Export, Head
from .sources import Source

__all__ = ["read", "recognises"]

_PATH = " / "  # between the steps of a taxonomy


class Value(Struct, gc=False):
    """What a control holds, and where on the item, if only a part of it is meant."""

    choices: list[Any] | str | None = None
    rating: float | int | str | None = None
    number: float | int | str | None = None
    taxonomy: list[Any] | None = None
    selected: str | None = None
    start: Any = None
    x: Any = None
    points: Any = None
    vertices: Any = None
    rle: Any = None
    ranges: Any = None
    sequence: Any = None


class Result(Struct, gc=False):
    """One control's answer."""

    from_name: str | None = None
    type: str | None = None
    value: Value | None = None
    item_index: Any = None


class Person(Struct, gc=False):
    """An annotator, where the export has more than the id."""

    id: int | str | None = None
    email: str | None = None


class Annotation(Struct, gc=False):
    """Everything one annotator said about a task."""

    result: list[Result] | None = None
    completed_by: int | str | Person | None = None
    was_cancelled: bool | None = False
    skipped: bool | None = False
    ground_truth: bool | None = False
    lead_time: float | None = None
    created_at: str | int | float | None = None


class Prediction(Struct, gc=False):
    """Everything one model said about a task."""

    result: list[Result] | None = None
    model_version: str | int | float | None = None
    score: float | None = None


class Task(Struct, gc=False):
    """An item with all that was said about it."""

    id: int | str | float | None = None
    data: Any = None
    annotations: list[Annotation] | None = None
    completions: list[Annotation] | None = None
    predictions: list[Prediction | int] | None = None


def recognises(head: Head) -> bool:
    """Return whether records have data and annotations with results, or a flat export's columns."""
    if flat.recognises(head):
        return True
    if head.shape == "object":
        return _is_task(dict(zip(head.names, head.first, strict=False)))
    return head.shape == "records" and bool(head.records) and all(map(_is_task, head.records))


def _is_task(record: dict[str, Any]) -> bool:
    if not isinstance(record.get("data"), dict):
        return False
    annotations = [record[name] for name in ("annotations", "completions") if name in record]
    return bool(annotations) and all(
        isinstance(one, list)
        and all(isinstance(given, dict) and "result" in given for given in one)
        for one in annotations
    )


def read(source: Source) -> Export:
    """Return every question of an export."""
    if flat.is_flat(source):
        return flat.read(source)
    found = Gathered()
    for number, task in records(source, Task):
        item = found.items.name(task.id, describe(task.data))
        if item is None:
            raise source.fail(f"task {number}: neither an id nor any data")
        for annotation in task.annotations or task.completions or ():
            _take(found, item, annotation)
        for prediction in task.predictions or ():
            if isinstance(prediction, Prediction):  # some exports have only its number
                _take_prediction(found, item, prediction)
    if not found.questions and found.left[_NOBODY]:
        raise source.fail("no annotation says who made it; export it with completed_by")
    return found.export()


_NOBODY = "annotations that do not say who made them"


def _take(found: Gathered, item: str, annotation: Annotation) -> None:
    """Take what one annotator said about one task."""
    by = annotation.completed_by
    if annotation.was_cancelled or annotation.skipped:
        found.left["cancelled annotations"] += 1
        return
    if not annotation.result:
        found.left["annotations without an answer"] += 1
        return
    if isinstance(by, Person):
        by = by.email or by.id
    if by is None or by == "":
        found.left[_NOBODY] += 1
        return
    for result in annotation.result:
        label = _label(found, result)
        if label is None:
            continue
        answers: Answers = found[result.from_name or ""]
        who = by if type(by) is str else str(by)
        answers.add(item, who, label, annotation.created_at, annotation.lead_time)
        if annotation.ground_truth:
            answers.know(item, label)


def _take_prediction(found: Gathered, item: str, prediction: Prediction) -> None:
    for result in prediction.result or ():
        label = _label(found, result)
        if label is not None:
            answers = found[result.from_name or ""]
            answers.add_model(item, prediction.model_version, label, prediction.score)


def _label(found: Gathered, result: Result) -> str | None:
    """Return what one control says about the whole task; anything else is counted."""
    value, name = result.value, result.from_name
    if name is None or value is None:
        found.left["relations and results without a control"] += 1
        return None
    options = options_of(value)
    if options is None:
        prose = result.type in ("textarea", "text")
        found.left["answers in free text" if prose else "spans, boxes and other regions"] += 1
        return None
    if result.item_index is not None or _is_local(value):
        found.left["answers about regions"] += 1
        return None
    if value.choices is None:
        if value.rating is not None:
            found[name].kind = "ordinal"
        elif value.number is not None:
            found[name].kind = "numeric"
    if len(options) != 1:
        found[name].kind = "multiple"
    return joined(options)


def _is_local(value: Value) -> bool:
    """Return whether this is about a span, a box or another part of the item."""
    return (
        value.start is not None
        or value.x is not None
        or value.points is not None
        or value.vertices is not None
        or value.rle is not None
        or value.ranges is not None
        or value.sequence is not None
    )


def options_of(value: Value) -> list[str] | None:
    """Return what was chosen, or nothing where this is no kind of choice.

    >>> options_of(Value(choices=["b", "a"])), options_of(Value(taxonomy=[["x", "y"], ["z"]]))
    (['b', 'a'], ['x / y', 'z'])
    """
    if value.choices is not None:
        return value.choices if isinstance(value.choices, list) else [value.choices]
    for one in (value.rating, value.number, value.selected):
        if one is not None:
            return [text(one)]
    if value.taxonomy is not None:
        return [
            _PATH.join(map(text, path)) if isinstance(path, list) else text(path)
            for path in value.taxonomy
        ]
    return None
