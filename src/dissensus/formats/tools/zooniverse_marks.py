"""Marks that Zooniverse's drawing tools make: rectangles, circles, points and polygons."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ...errors import DataError
from ..marked import box, point
from ..shapes import checked_size, from_polygon, runs_of, union
from ..format import Kind
from ..sources import Source


def are_marks(value: Any) -> bool:
    """Return whether an answer is a list of marks drawn on a picture."""
    return (
        isinstance(value, list)
        and bool(value)
        and all(isinstance(one, dict) and ("tool" in one or "x" in one) for one in value)
    )


def size_of(metadata: Mapping[str, Any]) -> tuple[int, int] | None:
    """Return height and width of the first picture of a subject, where they are known."""
    shown = metadata.get("subject_dimensions")
    first = shown[0] if isinstance(shown, list) and shown else None
    if not isinstance(first, dict):
        return None
    try:
        return checked_size(first.get("naturalHeight"), first.get("naturalWidth"))
    except DataError:
        return None


def marks_of_task(
    source: Source,
    by_row: Mapping[int, list[Any]],
    items: Sequence[str],
    sizes: Mapping[str, tuple[int, int]],
) -> tuple[dict[Kind, dict[int, Any]], int]:
    """Return kind → row → marks, and how many marks have other shapes."""
    found: dict[Kind, dict[int, Any]] = {}
    unread = 0
    for row, given in by_row.items():
        size = sizes.get(items[row])
        for one in given:
            try:
                kind, mark = _mark(one, size)
            except DataError as problem:
                raise source.fail(f"row {row + 1}: {problem}") from None
            if kind is None:
                unread += 1
            else:
                found.setdefault(kind, {}).setdefault(row, []).append(mark)
    for kind, by_kind in found.items():
        for row in by_row:
            by_kind.setdefault(row, [])
        if kind == "masks":
            known = {row: shapes for row, shapes in by_kind.items() if items[row] in sizes}
            found[kind] = {r: _mask(shapes, sizes[items[r]]) for r, shapes in known.items()}
    return found, unread


def _mark(one: Mapping[str, Any], size: tuple[int, int] | None) -> tuple[Kind | None, Any]:
    label = one.get("tool_label", one.get("tool"))
    place = [one.get(name) for name in ("x", "y", "width", "height")]
    if None not in place:
        return "boxes", box(place, label, size)
    if isinstance(one.get("points"), list) and size is not None:
        corners = [(p.get("x"), p.get("y")) for p in one["points"] if isinstance(p, dict)]
        if len(corners) < 3 or not all(isinstance(v, (int, float)) for c in corners for v in c):
            raise DataError("a polygon whose points are not at least three of x and y")
        return "masks", from_polygon(corners, size)
    x, y, r = one.get("x"), one.get("y"), one.get("r")
    if x is None or y is None or "points" in one:
        return None, None
    if r is not None:
        around = point(x, y) | {"r": box((0, 0, r, r))["w"]}
        left, top, r = around["x"] - around["r"], around["y"] - around["r"], around["r"]
        return "boxes", box((left, top, 2 * r, 2 * r), label)
    return "points", point(x, y, label, size)


def _mask(shapes: list[Any], size: tuple[int, int]) -> dict[str, Any]:
    return {"size": list(size), "counts": runs_of(union(shapes), size)}
