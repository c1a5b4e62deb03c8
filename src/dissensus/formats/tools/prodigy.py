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
from ..collecting import About, Collected, box, describe, joined, length_of, span
from ..format import Export, Head, Kind
from ..json_records import records
from ..shapes import checked_size, from_polygon, hull
from ..sources import Source

_MARKS = ("_input_hash", "_task_hash", "_session_id", "_annotator_id", "_view_id")
_BINARY = ("accept", "reject")
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
    collected = Collected()
    for number, one in records(source, Answered):
        inputs = {"text": one.text, "html": one.html, "image": one.image, "audio": one.audio}
        item = collected.items.name(one.input_hash, describe({**inputs, "video": one.video}))
        if item is None:
            raise source.fail(f"line {number}: neither an _input_hash nor a text")
        by = one.annotator if one.annotator not in (None, "") else one.session
        if one.answer is None or one.answer == "ignore":
            collected.leave_out("ignored", item, None if by is None else text(by))
        elif by is None or by == "":
            collected.leave_out(_NOBODY, item)
        else:
            try:
                _add(collected, one, item, text(by))
            except (DataError, TypeError, ValueError) as problem:
                raise source.fail(f"line {number}: {problem}") from None
    if not (collected.questions or collected.others) and collected.left_out[None, _NOBODY]:
        raise source.fail("no answer has an annotator (_annotator_id or _session_id)")
    return collected.export()


def _add(collected: Collected, one: Answered, item: str, by: str) -> None:
    """Add one answer to the question it belongs to."""
    if one.accept is not None or one.options:
        if one.answer == "reject":
            collected.leave_out("rejected", item, by)
            return
        answers = collected["choice"]
        chosen = [option for option in one.accept or () if option is not None]
        if len(chosen) > 1 or (one.config and one.config.choice_style == "multiple"):
            answers.kind = "multiple"
        for option in one.options or ():
            if option.id is not None:
                answers.classes.setdefault(text(option.id))
        answers.add(item, by, joined(chosen), one.time)
    elif one.spans or one.audio_spans or _is_manual(one.view):
        if one.answer == "reject":
            collected.leave_out("rejected", item, by)
            return
        _add_marks(collected, one, item, by)
    elif one.relations or one.view == "relations":
        collected.leave_out("with relations only", item, by)
    elif one.view == "text_input":
        given = one.user_input if isinstance(one.user_input, str) else ""
        collected.of_kind("texts", "texts").add(item, by, given, About(one.time))
    else:
        name = one.label if isinstance(one.label, str) and one.label else one.view or "answer"
        answers = collected[name]
        answers.classes.update(dict.fromkeys(_BINARY))
        answers.add(item, by, one.answer or "", one.time)


def _is_manual(view: str | None) -> bool:
    return view is not None and (view.endswith("_manual") or view in ("ner", "spans"))


def _add_marks(collected: Collected, one: Answered, item: str, by: str) -> None:
    """Add the spans, boxes and polygons of an answer, also where there are none."""
    size = None
    if one.width is not None and one.height is not None:
        size = checked_size(one.height, one.width)
        collected.add_size(item, size)
    marks: dict[Kind, list[Any]] = {}
    image = one.image is not None or one.view == "image_manual"
    marks["boxes" if image else "spans"] = []
    for given in (one.spans or []) + (one.audio_spans or []):
        if not isinstance(given, dict):
            raise DataError("spans are objects with start and end, or with points")
        label = given.get("label")
        if not image:
            length = None if one.audio_spans else length_of(one.text)
            marks["spans"].append(span(given.get("start"), given.get("end"), label, length))
            continue
        if given.get("type") in ("polygon", "freehand") and size is not None:
            shape = from_polygon(_corners(given), size)
            marks.setdefault("masks", []).append((label or "", shape))
        elif given.get("width") is not None and given.get("height") is not None:
            place = [given.get(side) for side in ("x", "y", "width", "height")]
            marks["boxes"].append(box(place, label, size))
        else:
            marks["boxes"].append(box(hull(_corners(given)), label, size))
    for kind, found in marks.items():
        collected.of_kind(kind, kind).add(item, by, found, About(one.time))


def _corners(given: dict[str, Any]) -> list[Any]:
    points = given.get("points")
    if not isinstance(points, list) or not points:
        raise DataError("a mark without points")
    if not all(isinstance(one, list) and len(one) == 2 for one in points):
        raise DataError("points are pairs of x and y")
    return points
