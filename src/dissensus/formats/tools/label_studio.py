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

from collections.abc import Mapping
from typing import Any

from msgspec import Struct, field

from ...base.names import text
from ...errors import DataError
from ..collecting import (
    About,
    Collected,
    QuestionAnswers,
    box,
    describe,
    length_of,
    located,
    model_name,
    point,
    span,
)
from ..format import Export, Format, Head, Kind, head_of
from ..json_records import records
from ..shapes import checked_size, from_brush, from_polygon, rotated_hull
from ..sources import Source
from .label_studio_tasks import ANSWERS, LABELS

FLAT = ("annotator", "annotation_id", "lead_time")  # columns of a flat export
_PATH = " / "  # between the steps of a taxonomy
_NOBODY = "without an annotator"
_REGION = ("start", "x", "points", "vertices", "rle", "ranges", "sequence")
_LABELS = (
    "labels",
    "hypertextlabels",
    "timeserieslabels",
    "rectanglelabels",
    "keypointlabels",
    "polygonlabels",
    "brushlabels",
)
_SIDES = (("left", "right"), ("1", "2"), ("a", "b"), ("A", "B"), ("0", "1"))  # ends of names


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
    return _is_flat(head) or head.all_records(_is_task)


def _is_flat(head: Head) -> bool:
    """Return whether records or columns are those of a flat export."""
    if head.shape not in ("records", "table"):
        return False
    rows = [head.names] if head.shape == "table" else [tuple(record) for record in head.records]
    return bool(rows) and all(set(FLAT) <= set(row) for row in rows)


def _is_task(record: dict[str, Any]) -> bool:
    if not isinstance(record.get("data"), dict):
        return False
    annotations = [record[name] for name in ("annotations", "completions") if name in record]
    return bool(annotations) and all(
        isinstance(annotation_list, list)
        and all(
            isinstance(annotation, dict) and "result" in annotation
            for annotation in annotation_list
        )
        for annotation_list in annotations
    )


def read(source: Source) -> Export:
    """Return every question of an export."""
    head = head_of(source)
    if head is not None and _is_flat(head):
        from .label_studio_flat import read as read_flat

        return read_flat(source)
    collection = Collected()
    for number, task in records(source, Task):
        item = collection.items.name(task.id, describe(task.data))
        if item is None:
            raise source.fail(f"task {number}: neither an id nor any data")
        with located(source, f"task {number}"):
            for annotation in task.annotations or task.completions or ():
                _add(collection, item, task.data, annotation)
            for prediction in task.predictions or ():
                if isinstance(prediction, Prediction):  # some exports have only its number
                    _add_prediction(collection, item, task.data, prediction)
    if not (collection.questions or collection.others) and collection.left_out[None, _NOBODY]:
        raise source.fail("no annotation has an annotator; export it with completed_by")
    return collection.export()


def _add(collection: Collected, item: str, data: Any, annotation: Annotation) -> None:
    """Add the answers of one annotator to one task."""
    annotator = _name_of(annotation.completed_by)
    if annotation.was_cancelled or annotation.skipped:
        collection.leave_out("cancelled", item, annotator)
        return
    if annotator is None:
        collection.leave_out(_NOBODY, item)
        return
    about = About(annotation.created_at, annotation.lead_time)
    collection.submitted[item, annotator] = about
    if not annotation.result:
        collection.blank.add((item, annotator))
    other_results = _OtherResults(collection, item, data)
    for result in annotation.result or ():
        if other_results.take(result):
            continue
        options = _options(collection, result)
        if options is None:
            continue
        answers: QuestionAnswers = collection[result.from_name or ""]
        answers.add(item, annotator, options, annotation.created_at, annotation.lead_time)
        if annotation.ground_truth:
            answers.add_gold(item, options)
    other_results.add(annotator, about, gold=bool(annotation.ground_truth))


def _name_of(by: int | str | Person | None) -> str | None:
    """Return the name of an annotator, if there is one."""
    if isinstance(by, Person):
        by = by.email or by.id
    if by is None or by == "":
        return None
    return by if type(by) is str else str(by)


def _add_prediction(collection: Collected, item: str, data: Any, prediction: Prediction) -> None:
    version = prediction.model_version
    name = model_name(version)
    about = About(confidence=prediction.score, model=True)
    other_results = _OtherResults(collection, item, data)
    for result in prediction.result or ():
        if other_results.take(result):
            continue
        options = _options(collection, result)
        if options is not None:
            collection[result.from_name or ""].add_model(item, version, options, prediction.score)
    if prediction.result == []:
        collection.submitted[item, name] = about
    other_results.add(name, about)


def _options(collection: Collected, result: Result) -> list[str] | None:
    """Return what one control chose for the whole task; anything else is counted."""
    value, name = result.value, result.from_name
    if name is None or value is None:
        collection.left["relations and results without a control"] += 1
        return None
    options = options_of(value)
    if options is None:
        collection.left["regions of other kinds"] += 1
        return None
    if result.item_index is not None or is_local(value):
        collection.left["answers about regions"] += 1
        return None
    if value.choices is None:
        if value.rating is not None:
            collection[name].kind = "ordinal"
        elif value.number is not None:
            collection[name].kind = "numeric"
    collection[name].several |= len(options) != 1
    return options


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
    for answer in (value.rating, value.number, value.selected):
        if answer is not None:
            return [text(answer)]
    if value.taxonomy is not None:
        return [
            _PATH.join(map(text, path)) if isinstance(path, list) else text(path)
            for path in value.taxonomy
        ]
    return None


class _OtherResults:
    """The answers to questions of other kinds than classes, in one annotation."""

    def __init__(self, collection: Collected, item: str, data: Any) -> None:
        self.collection, self.item, self.data = collection, item, data
        self.by_question: dict[tuple[str, Kind], Any] = {}

    def take(self, result: Result) -> bool:
        """Take a result if it is of such a kind; return whether it is."""
        value, name = result.value, result.from_name
        if value is None or name is None or value.choices is not None:
            return False
        if result.item_index is not None:
            return False
        if value.ranker is not None:
            self.by_question[name, "rankings"] = _ranking(value.ranker)
        elif value.selected is not None and (pair := _compared(self.data)) is not None:
            self.by_question[name, "rankings"] = _comparison(value.selected, pair)
        elif value.text is not None and result.type in ("textarea", "text"):
            if value.start is not None or value.x is not None:
                return False  # a transcript of a region
            parts = value.text if isinstance(value.text, list) else [value.text]
            earlier = self.by_question.get((name, "texts"))
            self.by_question[name, "texts"] = "\n".join(
                [*([earlier] if earlier else []), *map(text, parts)]
            )
        else:
            return self._take_mark(name, result, value)
        return True

    def _take_mark(self, name: str, result: Result, value: Value) -> bool:
        if value.rating is not None or value.number is not None or value.taxonomy is not None:
            return False
        raw_labels: Any = next(
            (candidate for key in _LABELS if (candidate := getattr(value, key)) is not None), []
        )
        labels: list[Any] = raw_labels if isinstance(raw_labels, list) else [raw_labels]
        label = text(labels[0]) if labels else None
        if len(labels) > 1:
            self.collection.left["further labels of one mark"] += len(labels) - 1
        if value.paragraph is not None and value.offsets is None:
            return False
        if value.start is not None or value.offsets is not None:
            self._append(name, "spans", _span(value, label, self.data))
            return True
        if value.sequence is not None or value.radius is not None or value.vertices is not None:
            return False
        kind: Kind
        if value.rle is not None:
            size = self._size(result)
            kind, mark = "masks", (label or "", from_brush(value.rle, size))
        elif value.points is not None:
            size = self._size(result)
            corners = [(_part(x, size[1]), _part(y, size[0])) for x, y in _pairs(value.points)]
            kind, mark = "masks", (label or "", from_polygon(corners, size))
        elif value.x is not None and value.y is not None:
            kind, mark = self._box_or_point(result, value, label)
        else:
            return False
        self._append(name, kind, mark)
        return True

    def _box_or_point(self, result: Result, value: Value, label: str | None) -> tuple[Kind, Any]:
        size = height, width = self._size(result)
        x, y = _part(value.x, width), _part(value.y, height)
        if result.type in ("keypointlabels", "keypoint") or value.height is None:
            return "points", point(x, y, label, size)
        w, h = _part(value.width, width), _part(value.height, height)
        if value.rotation:
            self.collection.left["rotations of boxes, which are read as upright hulls"] += 1
            try:
                turned = rotated_hull((x, y, w, h), float(value.rotation))
            except (TypeError, ValueError, OverflowError):
                raise DataError(f"a rotation of {value.rotation!r:.20} degrees") from None
            return "boxes", box(turned, label)
        return "boxes", box((x, y, w, h), label, size)

    def _size(self, result: Result) -> tuple[int, int]:
        if result.original_width is None or result.original_height is None:
            raise DataError("a mark in percents without original_width and original_height")
        size = checked_size(result.original_height, result.original_width)
        self.collection.add_size(self.item, size)
        return size

    def _append(self, name: str, kind: Kind, mark: Any) -> None:
        self.by_question.setdefault((name, kind), []).append(mark)

    def add(self, annotator: str, about: About, *, gold: bool = False) -> None:
        """Add what was taken as answers of an annotator."""
        for (name, kind), value in self.by_question.items():
            answers = self.collection.of_kind(name, kind)
            answers.add(self.item, annotator, value, about)
            if gold:
                answers.gold[self.item] = value


def _span(value: Value, label: str | None, data: Any) -> dict[str, Any]:
    start, end = value.start, value.end
    if isinstance(value.offsets, Mapping):
        return span(value.offsets.get("start"), value.offsets.get("end"), label)
    body = data.get("text") if isinstance(data, Mapping) else None
    whole = isinstance(start, int) and isinstance(end, int)
    return span(start, end, label, length_of(body) if whole else None)


def _pairs(points: Any) -> list[tuple[Any, Any]]:
    if not isinstance(points, list) or not all(
        isinstance(pair, list) and len(pair) == 2 for pair in points
    ):
        raise DataError("the points of a polygon are pairs of x and y")
    return [(x, y) for x, y in points]


def _part(percent: Any, side: int) -> float:
    try:
        return round(float(percent) * side / 100, 6)  # percents are rounded themselves
    except (TypeError, ValueError, OverflowError):
        raise DataError(f"a coordinate is {percent!r:.20}, not a number") from None


def _ranking(ranking: Any) -> list[Any]:
    """Return the things that were ranked, best first: a list, or lists by bucket."""
    if isinstance(ranking, Mapping):  # buckets: things within one are in order, too
        ranking = [
            option for bucket in ranking.values() if isinstance(bucket, list) for option in bucket
        ]
    if not isinstance(ranking, list):
        raise DataError("a ranking is a list of things")
    return [text(option) for option in ranking]


def _compared(data: Any) -> tuple[str, str] | None:
    """Return the two things that a task compares, if its data name them as a pair.

    >>> _compared({"answer_a": "yes", "answer_b": "no"})
    ('yes', 'no')
    """
    if not isinstance(data, Mapping):
        return None
    for ending, other_ending in _SIDES:
        for name in data:
            if not str(name).endswith(ending):
                continue
            left, right = data[name], data.get(str(name).removesuffix(ending) + other_ending)
            if isinstance(left, str) and isinstance(right, str) and left != right:
                return left, right
    return None


def _comparison(selected: str, pair: tuple[str, str]) -> list[dict[str, Any]]:
    if selected not in ("left", "right"):
        raise DataError(f"a comparison selects left or right, not {selected!r:.20}")
    better = selected == "left"
    return [{"value": pair[0], "rank": 2 - better}, {"value": pair[1], "rank": 1 + better}]


FORMAT = Format(
    "label-studio",
    recognises=recognises,
    read=read,
    kinds=("sets", "rankings", "texts", "spans", "boxes", "points", "masks"),
    labels=LABELS,
    answers=ANSWERS,
)
