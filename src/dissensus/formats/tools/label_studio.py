"""Label Studio: JSON with all annotations of a task, JSON-MIN, CSV and TSV.

Every control (`from_name`) is a question. Choices, ratings, numbers, taxonomies and pairwise
choices about a whole task are classes or numbers; several choices in any answer make the question
one of several options. Labels in texts and sounds are spans, rectangles boxes, key points points,
polygons and brushes masks, text areas texts, rankers and pairwise choices between two named things
rankings; percents become pixels. A submitted annotation without a mark is an empty answer. An
annotator is an email address, or an id where the export has no more. Cancelled annotations are left
out; those marked as ground truth are gold and also somebody's label. Predictions are answers by
`model:<version>`; the column source distinguishes models from people.
"""

from __future__ import annotations

from typing import Any

from msgspec import Struct, field

from ...base.names import text
from ...errors import DataError
from ..collecting import Collected, QuestionAnswers, describe, joined
from .label_studio_marks import OtherResults
from ..marked import About
from ..format import Export, Head, head_of
from ..json_records import records
from ..sources import Source

FLAT = ("annotator", "annotation_id", "lead_time")  # columns of a flat export
_PATH = " / "  # between the steps of a taxonomy
_NOBODY = "without an annotator"
_REGION = ("start", "x", "points", "vertices", "rle", "ranges", "sequence")


class Value(Struct, gc=False):
    """The value of a control, and the region of the item if only a part of it is meant."""

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
    end: Any = None
    offsets: Any = field(default=None, name="globalOffsets")
    paragraph: Any = field(default=None, name="startOffset")
    y: Any = None
    width: Any = None
    height: Any = None
    rotation: Any = None
    radius: Any = field(default=None, name="radiusX")
    labels: Any = None
    hypertextlabels: Any = None
    timeserieslabels: Any = None
    rectanglelabels: Any = None
    keypointlabels: Any = None
    polygonlabels: Any = None
    brushlabels: Any = None
    ranker: Any = None
    text: Any = None


class Result(Struct, gc=False):
    """One control's answer."""

    from_name: str | None = None
    type: str | None = None
    value: Value | None = None
    item_index: Any = None
    original_width: Any = None
    original_height: Any = None


class Person(Struct, gc=False):
    """An annotator, where the export has more than the id."""

    id: int | str | None = None
    email: str | None = None


class Annotation(Struct, gc=False):
    """The answers of one annotator to a task."""

    result: list[Result] | None = None
    completed_by: int | str | Person | None = None
    was_cancelled: bool | None = False
    skipped: bool | None = False
    ground_truth: bool | None = False
    lead_time: float | None = None
    created_at: str | int | float | None = None


class Prediction(Struct, gc=False):
    """The answers of one model to a task."""

    result: list[Result] | None = None
    model_version: str | int | float | None = None
    score: float | None = None


class Task(Struct, gc=False):
    """An item with its annotations and predictions."""

    id: int | str | float | None = None
    data: Any = None
    annotations: list[Annotation] | None = None
    completions: list[Annotation] | None = None
    predictions: list[Prediction | int] | None = None


def recognises(head: Head) -> bool:
    """Return whether records have data and annotations with results, or a flat export's columns."""
    return is_flat(head) or head.all_records(_is_task)


def is_flat(head: Head) -> bool:
    """Return whether records or columns are those of a flat export."""
    if head.shape not in ("records", "table"):
        return False
    rows = [head.names] if head.shape == "table" else [tuple(one) for one in head.records]
    return bool(rows) and all(set(FLAT) <= set(row) for row in rows)


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
    head = head_of(source)
    if head is not None and is_flat(head):
        from .label_studio_flat import read as read_flat

        return read_flat(source)
    collected = Collected()
    for number, task in records(source, Task):
        item = collected.items.name(task.id, describe(task.data))
        if item is None:
            raise source.fail(f"task {number}: neither an id nor any data")
        try:
            for annotation in task.annotations or task.completions or ():
                _add(collected, item, task.data, annotation)
            for prediction in task.predictions or ():
                if isinstance(prediction, Prediction):  # some exports have only its number
                    _add_prediction(collected, item, task.data, prediction)
        except DataError as problem:
            raise source.fail(f"task {number}: {problem}") from None
    if not (collected.questions or collected.others) and collected.left_out[None, _NOBODY]:
        raise source.fail("no annotation has an annotator; export it with completed_by")
    return collected.export()


def _add(collected: Collected, item: str, data: Any, annotation: Annotation) -> None:
    """Add the answers of one annotator to one task."""
    annotator = _name_of(annotation.completed_by)
    if annotation.was_cancelled or annotation.skipped:
        collected.leave_out("cancelled", item, annotator)
        return
    if annotator is None:
        collected.leave_out(_NOBODY, item)
        return
    about = About(annotation.created_at, annotation.lead_time)
    collected.submitted[item, annotator] = about
    if not annotation.result:
        collected.blank.add((item, annotator))
    others = OtherResults(collected, item, data)
    for result in annotation.result or ():
        if others.take(result):
            continue
        label = _label(collected, result)
        if label is None:
            continue
        answers: QuestionAnswers = collected[result.from_name or ""]
        answers.add(item, annotator, label, annotation.created_at, annotation.lead_time)
        if annotation.ground_truth:
            answers.add_gold(item, label)
    others.add(annotator, about, gold=bool(annotation.ground_truth))


def _name_of(by: int | str | Person | None) -> str | None:
    """Return the name of an annotator, if there is one."""
    if isinstance(by, Person):
        by = by.email or by.id
    if by is None or by == "":
        return None
    return by if type(by) is str else str(by)


def _add_prediction(collected: Collected, item: str, data: Any, prediction: Prediction) -> None:
    version = prediction.model_version
    name = "model" if version is None or version == "" else f"model:{text(version)}"
    about = About(confidence=prediction.score, model=True)
    others = OtherResults(collected, item, data)
    for result in prediction.result or ():
        if others.take(result):
            continue
        label = _label(collected, result)
        if label is not None:
            collected[result.from_name or ""].add_model(item, version, label, prediction.score)
    if prediction.result == []:
        collected.submitted[item, name] = about
    others.add(name, about)


def _label(collected: Collected, result: Result) -> str | None:
    """Return the label of one control for the whole task; anything else is counted."""
    value, name = result.value, result.from_name
    if name is None or value is None:
        collected.left["relations and results without a control"] += 1
        return None
    options = options_of(value)
    if options is None:
        collected.left["regions of other kinds"] += 1
        return None
    if result.item_index is not None or is_local(value):
        collected.left["answers about regions"] += 1
        return None
    if value.choices is None:
        if value.rating is not None:
            collected[name].kind = "ordinal"
        elif value.number is not None:
            collected[name].kind = "numeric"
    if len(options) != 1:
        collected[name].kind = "multiple"
    return joined(options)


def is_local(value: Value) -> bool:
    """Return whether this is about a span, a box or another part of the item."""
    return any(getattr(value, name) is not None for name in _REGION)


def options_of(value: Value) -> list[str] | None:
    """Return the chosen options, or nothing if this is no choice.

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
