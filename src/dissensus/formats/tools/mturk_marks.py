"""Marks in answers of Mechanical Turk's form elements: boxes, key points and entities."""

from __future__ import annotations

from typing import Any

from ...errors import DataError
from ..marked import box, point, span
from ..format import Kind

MARKED: dict[str, Kind] = {"boundingBoxes": "boxes", "keypoints": "points", "entities": "spans"}


def shape_of(value: Any) -> str | None:
    """Return which of the marks an answer holds; nothing for other answers."""
    if not isinstance(value, dict):
        return None
    return next((name for name in MARKED if isinstance(value.get(name), list)), None)


def size_of(value: Any) -> tuple[int, int] | None:
    """Return height and width of the image that an answer is about, where it has them."""
    about = value.get("inputImageProperties")
    if not isinstance(about, dict):
        return None
    height, width = about.get("height"), about.get("width")
    return (height, width) if isinstance(height, int) and isinstance(width, int) else None


def marks_of(given: list[Any], shape: str, size: tuple[int, int] | None) -> list[dict[str, Any]]:
    """Return marks as plain values."""
    marks = []
    for one in given:
        if not isinstance(one, dict):
            raise DataError(f"{shape} should be a list of objects")
        label = one.get("label")
        if shape == "boundingBoxes":
            place = [one.get(side) for side in ("left", "top", "width", "height")]
            marks.append(box(place, label, size))
        elif shape == "keypoints":
            marks.append(point(one.get("x"), one.get("y"), label, size))
        else:
            marks.append(span(one.get("startOffset"), one.get("endOffset"), label))
    return marks
