"""Prodigy: JSON lines as `prodigy db-out` writes them, a line for each answer.

An item is an input (`_input_hash`), an annotator is `_annotator_id`, or else `_session_id`. A task
with options is the question `choice`, whose answer is what was accepted. A task with a label is a
yes/no question named by that label, answered accept or reject; without a label it is named by its
view. Ignored answers are left out. Marked texts and images are the questions `spans`, `boxes` and
`masks` (polygons, where the size of the image is there), answers in a field `texts`; accepted
without a mark, they are empty answers.
"""

from __future__ import annotations

from typing import Any, Literal

from msgspec import Struct, field

from ...base.names import text
from ...errors import DataError
from ..collecting import About, Collected, box, describe, length_of, span
from ..format import Export, Format, Head, Kind
from ..json_records import records
from ..shapes import checked_size, from_polygon, hull
from ..sources import Source

_MARKS = ("_input_hash", "_task_hash", "_session_id", "_annotator_id", "_view_id")
_BINARY = ("accept", "reject")
_INPUTS = ("text", "html", "image", "audio", "video")
_NOBODY = "without an annotator"


class Choice(Struct, gc=False):
    """One of the options of a choice."""

    id: str | int | float | bool | None = None


class Config(Struct, gc=False):
    """The settings of the task."""

    choice_style: str | None = None


class Answered(Struct, gc=False):
    """A task and the answer of one annotator."""

    answer: Literal["accept", "reject", "ignore"] | None = None
    text: Any = None
    html: Any = None
    image: Any = None
    audio: Any = None
    video: Any = None
    label: Any = None
    accept: list[str | int | float | bool | None] | None = None
    options: list[Choice] | None = None
    config: Config | None = None
    spans: list[Any] | None = None
    relations: Any = None
    audio_spans: list[Any] | None = None
    user_input: Any = None
    width: Any = None
    height: Any = None
    input_hash: int | str | None = field(default=None, name="_input_hash")
    session: str | int | None = field(default=None, name="_session_id")
    annotator: str | int | None = field(default=None, name="_annotator_id")
    view: str | None = field(default=None, name="_view_id")
    time: float | None = field(default=None, name="_timestamp")


def recognises(head: Head) -> bool:
    """Return whether records have an answer (accept, reject, ignore) and a hash or session."""
    answers = (*_BINARY, "ignore")
    return head.all_records(
        lambda record: record.get("answer") in answers and any(mark in record for mark in _MARKS)
    )


def read(source: Source) -> Export:
    """Return every question of an export."""
    collection = Collected()
    for number, answered in records(source, Answered):
        inputs = {name: getattr(answered, name) for name in _INPUTS}
        item = collection.items.name(answered.input_hash, describe(inputs))
        if item is None:
            raise source.fail(f"line {number}: neither an _input_hash nor a text")
        by = answered.annotator if answered.annotator not in (None, "") else answered.session
        if answered.answer is None or answered.answer == "ignore":
            collection.leave_out("ignored", item, None if by is None else text(by))
        elif by is None or by == "":
            collection.leave_out(_NOBODY, item)
        else:
            try:
                _add(collection, answered, item, text(by))
            except (DataError, TypeError, ValueError) as problem:
                raise source.fail(f"line {number}: {problem}") from None
    if not (collection.questions or collection.others) and collection.left_out[None, _NOBODY]:
        raise source.fail("no answer has an annotator (_annotator_id or _session_id)")
    return collection.export()


def _add(collection: Collected, answered: Answered, item: str, by: str) -> None:
    """Add one answer to the question it belongs to."""
    if answered.accept is not None or answered.options:
        if answered.answer == "reject":
            collection.leave_out("rejected", item, by)
            return
        answers = collection["choice"]
        accepted = [option for option in answered.accept or () if option is not None]
        answers.several |= bool(answered.config and answered.config.choice_style == "multiple")
        for option in answered.options or ():
            if option.id is not None:
                answers.classes.setdefault(text(option.id))
        answers.add(item, by, accepted, answered.time)
    elif answered.spans or answered.audio_spans or _is_manual(answered.view):
        if answered.answer == "reject":
            collection.leave_out("rejected", item, by)
            return
        _add_marks(collection, answered, item, by)
    elif answered.relations or answered.view == "relations":
        collection.leave_out("with relations only", item, by)
    elif answered.view == "text_input":
        written = answered.user_input if isinstance(answered.user_input, str) else ""
        collection.of_kind("texts", "texts").add(item, by, written, About(answered.time))
    else:
        name = (
            answered.label
            if isinstance(answered.label, str) and answered.label
            else answered.view or "answer"
        )
        answers = collection[name]
        answers.classes.update(dict.fromkeys(_BINARY))
        answers.add(item, by, [answered.answer or ""], answered.time)


def _is_manual(view: str | None) -> bool:
    return view is not None and (view.endswith("_manual") or view in ("ner", "spans"))


def _add_marks(collection: Collected, answered: Answered, item: str, by: str) -> None:
    """Add the spans, boxes and polygons of an answer, also where there are none."""
    size = None
    if answered.width is not None and answered.height is not None:
        size = checked_size(answered.height, answered.width)
        collection.add_size(item, size)
    marks: dict[Kind, list[Any]] = {}
    image = answered.image is not None or answered.view == "image_manual"
    marks["boxes" if image else "spans"] = []
    for mark in (answered.spans or []) + (answered.audio_spans or []):
        if not isinstance(mark, dict):
            raise DataError("spans are objects with start and end, or with points")
        label = mark.get("label")
        if not image:
            length = None if answered.audio_spans else length_of(answered.text)
            marks["spans"].append(span(mark.get("start"), mark.get("end"), label, length))
            continue
        if mark.get("type") in ("polygon", "freehand") and size is not None:
            shape = from_polygon(_corners(mark), size)
            marks.setdefault("masks", []).append((label or "", shape))
        elif mark.get("width") is not None and mark.get("height") is not None:
            place = [mark.get(side) for side in ("x", "y", "width", "height")]
            marks["boxes"].append(box(place, label, size))
        else:
            marks["boxes"].append(box(hull(_corners(mark)), label, size))
    for kind, marks_of_kind in marks.items():
        collection.of_kind(kind, kind).add(item, by, marks_of_kind, About(answered.time))


def _corners(mark: dict[str, Any]) -> list[Any]:
    points = mark.get("points")
    if not isinstance(points, list) or not points:
        raise DataError("a mark without points")
    if not all(isinstance(point, list) and len(point) == 2 for point in points):
        raise DataError("points are pairs of x and y")
    return points


FORMAT = Format(
    "prodigy", recognises=recognises, read=read, kinds=("sets", "texts", "spans", "boxes", "masks")
)
