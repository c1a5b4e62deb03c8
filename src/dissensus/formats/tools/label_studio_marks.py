"""Label Studio's controls that are no classes: marks, masks, texts and rankings of one annotation.

Coordinates of images are percents of their size, which every result has with it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ...base.names import text
from ...errors import DataError
from ..collecting import Collected
from ..marked import About, box, length_of, point, span
from ..shapes import checked_size, from_brush, from_polygon, rotated_hull
from ..format import Kind

if TYPE_CHECKING:
    from .label_studio import Result, Value

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


class OtherResults:
    """The answers to questions of other kinds than classes, in one annotation."""

    def __init__(self, collected: Collected, item: str, data: Any) -> None:
        self.collected, self.item, self.data = collected, item, data
        self.found: dict[tuple[str, Kind], Any] = {}

    def take(self, result: Result) -> bool:
        """Take a result if it is of such a kind; return whether it is."""
        value, name = result.value, result.from_name
        if value is None or name is None or value.choices is not None:
            return False
        if result.item_index is not None:
            return False
        if value.ranker is not None:
            self.found[name, "rankings"] = _ranking(value.ranker)
        elif value.selected is not None and (pair := _compared(self.data)) is not None:
            self.found[name, "rankings"] = _comparison(value.selected, pair)
        elif value.text is not None and result.type in ("textarea", "text"):
            if value.start is not None or value.x is not None:
                return False  # a transcript of a region
            parts = value.text if isinstance(value.text, list) else [value.text]
            before = self.found.get((name, "texts"))
            self.found[name, "texts"] = "\n".join(
                [*([before] if before else []), *map(text, parts)]
            )
        else:
            return self._take_mark(name, result, value)
        return True

    def _take_mark(self, name: str, result: Result, value: Value) -> bool:
        if value.rating is not None or value.number is not None or value.taxonomy is not None:
            return False
        given: Any = next((one for key in _LABELS if (one := getattr(value, key)) is not None), [])
        labels: list[Any] = given if isinstance(given, list) else [given]
        label = text(labels[0]) if labels else None
        if len(labels) > 1:
            self.collected.left["further labels of one mark"] += len(labels) - 1
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
            self.collected.left["rotations of boxes, which are read as upright hulls"] += 1
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
        self.collected.add_size(self.item, size)
        return size

    def _append(self, name: str, kind: Kind, mark: Any) -> None:
        self.found.setdefault((name, kind), []).append(mark)

    def add(self, annotator: str, about: About, *, gold: bool = False) -> None:
        """Add what was taken as answers of an annotator."""
        for (name, kind), value in self.found.items():
            answers = self.collected.of_kind(name, kind)
            answers.add(self.item, annotator, value, about)
            if gold:
                answers.gold[self.item] = value


def _span(value: Value, label: str | None, data: Any) -> dict[str, Any]:
    start, end = value.start, value.end
    if isinstance(value.offsets, Mapping):
        return span(value.offsets.get("start"), value.offsets.get("end"), label)
    shown = data.get("text") if isinstance(data, Mapping) else None
    whole = isinstance(start, int) and isinstance(end, int)
    return span(start, end, label, length_of(shown) if whole else None)


def _pairs(points: Any) -> list[tuple[Any, Any]]:
    if not isinstance(points, list) or not all(
        isinstance(one, list) and len(one) == 2 for one in points
    ):
        raise DataError("the points of a polygon are pairs of x and y")
    return [(x, y) for x, y in points]


def _part(percent: Any, side: int) -> float:
    try:
        return round(float(percent) * side / 100, 6)  # percents are rounded themselves
    except (TypeError, ValueError, OverflowError):
        raise DataError(f"a coordinate is {percent!r:.20}, not a number") from None


def _ranking(given: Any) -> list[Any]:
    """Return the things that were ranked, best first: a list, or lists by bucket."""
    if isinstance(given, Mapping):  # buckets: things within one are in order, too
        given = [thing for bucket in given.values() if isinstance(bucket, list) for thing in bucket]
    if not isinstance(given, list):
        raise DataError("a ranking is a list of things")
    return [text(thing) for thing in given]


def _compared(data: Any) -> tuple[str, str] | None:
    """Return the two things that a task compares, if its data name them as a pair.

    >>> _compared({"answer_a": "yes", "answer_b": "no"})
    ('yes', 'no')
    """
    if not isinstance(data, Mapping):
        return None
    for one, other in _SIDES:
        for name in data:
            if not str(name).endswith(one):
                continue
            left, right = data[name], data.get(str(name).removesuffix(one) + other)
            if isinstance(left, str) and isinstance(right, str) and left != right:
                return left, right
    return None


def _comparison(selected: str, pair: tuple[str, str]) -> list[dict[str, Any]]:
    if selected not in ("left", "right"):
        raise DataError(f"a comparison selects left or right, not {selected!r:.20}")
    better = selected == "left"
    return [{"value": pair[0], "rank": 2 - better}, {"value": pair[1], "rank": 1 + better}]
