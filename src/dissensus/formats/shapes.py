"""Shapes that tools draw on images, as ranges of pixels: polygons and run lengths of every coding.

Pixels are numbered column by column, as `Masks` has them. A shape is its ranges of pixels, from
`start` up to `stop`: (range, 2), sorted and apart from each other.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from ..base.arrays import Floats, Integers, count_up
from ..errors import DataError

MOST_PIXELS = 2**28  # of an image
_MOST_CROSSINGS = 2**26  # of a polygon's edges with columns of pixels
_BITS = (32, 5, 4)  # of Label Studio's coding: number of values, bits of a value, of a length


def checked_size(height: Any, width: Any) -> tuple[int, int]:
    """Return height and width as whole numbers; refuse what no image has."""
    try:
        size = int(height), int(width)
    except (TypeError, ValueError, OverflowError):
        raise DataError(f"an image of {height!r:.20} × {width!r:.20} pixels") from None
    if min(size) < 1 or size[0] * size[1] > MOST_PIXELS:
        raise DataError(f"an image of {size[0]} × {size[1]} pixels; at most {MOST_PIXELS} are read")
    return size


def hull(points: Any) -> tuple[float, float, float, float]:
    """Return the smallest upright box around points: x, y, w, h.

    >>> hull([[1, 2], [4, 3]])
    (1.0, 2.0, 3.0, 1.0)
    """
    low, high = np.min(points, axis=0), np.max(points, axis=0)
    return float(low[0]), float(low[1]), float(high[0] - low[0]), float(high[1] - low[1])


def rotated_hull(place: Sequence[float], degrees: float) -> tuple[float, float, float, float]:
    """Return the hull of a box that is turned clockwise around its upper left corner.

    >>> [round(one, 6) for one in rotated_hull((10, 0, 4, 2), 90)]
    [8.0, 0.0, 2.0, 4.0]
    """
    x, y, w, h = place
    if not np.isfinite([*place, degrees]).all():
        raise DataError("a box whose place and rotation are not all finite numbers")
    turn = np.deg2rad(degrees)
    corners = np.array([[0, 0], [w, 0], [w, h], [0, h]])
    back = np.array([[np.cos(turn), np.sin(turn)], [-np.sin(turn), np.cos(turn)]])
    return hull(np.round(corners @ back + [x, y], 9))


def from_polygon(points: Any, size: tuple[int, int]) -> Integers:
    """Return the pixels whose centres are inside a polygon of x, y.

    >>> from_polygon([(0, 0), (2, 0), (2, 1), (0, 1)], (2, 3)).tolist()
    [[0, 1], [2, 3]]
    """
    height, width = size
    try:
        corner: Floats = np.asarray(points, dtype=float).reshape(-1, 2)
    except OverflowError:
        raise DataError("a polygon with a corner that is out of all images") from None
    except (TypeError, ValueError):
        raise DataError("a polygon with a corner that is no number") from None
    if not np.isfinite(corner).all():
        raise DataError("a polygon with a corner that is no number")
    after = np.roll(corner, -1, axis=0)
    low, high = np.minimum(corner, after)[:, 0], np.maximum(corner, after)[:, 0]
    first = np.clip(np.ceil(low - 0.5), 0, width).astype(np.int64)  # columns that an edge crosses
    last = np.clip(np.ceil(high - 0.5), 0, width).astype(np.int64)
    n_columns = last - first
    if n_columns.sum() > _MOST_CROSSINGS:
        raise DataError(f"a polygon of {len(corner)} corners is too complex to be read")
    edge = np.repeat(np.arange(len(corner)), n_columns)
    column = first[edge] + count_up(n_columns)
    run, rise = (after - corner)[edge].T
    y = corner[edge, 1] + (column + 0.5 - corner[edge, 0]) * rise / np.where(run == 0, 1, run)
    order = np.lexsort((y, column))
    row = np.clip(np.ceil(y[order] - 0.5), 0, height).astype(np.int64)
    pixel = (column[order] * height + row).reshape(-1, 2)  # inside from every other crossing
    return union([pixel])


def from_runs(runs: Sequence[Any], size: tuple[int, int]) -> Integers:
    """Return run lengths, column by column with the background first, as ranges of pixels."""
    try:
        lengths = np.array([int(run) for run in runs], dtype=np.int64)
    except (TypeError, ValueError, OverflowError):
        raise DataError("run lengths that are no whole numbers") from None
    total = sum(lengths.tolist())
    if (lengths < 0).any() or total != size[0] * size[1]:
        height, width = size
        pixels = f"{height} × {width} = {height * width} pixels"
        raise DataError(f"run lengths add up to {total}, but the image has {pixels}")
    stop = np.cumsum(lengths)
    return union([np.column_stack([stop - lengths, stop])[1::2]])


def from_pixels(
    inside: Any, size: tuple[int, int], left: int = 0, top: int = 0
) -> Integers:  # inside: (row, column) of a part of the image, from its upper left corner
    """Return a picture of zeros and ones as ranges of pixels."""
    inside = np.asarray(inside, dtype=bool)
    height, width = inside.shape
    if min(left, top) < 0 or left + width > size[1] or top + height > size[0]:
        raise DataError("a mask that reaches out of its image")
    framed = np.zeros((width, height + 2), dtype=np.int8)
    framed[:, 1:-1] = inside.T
    column, border = np.diff(framed, axis=1).nonzero()
    pixel = (left + column) * size[0] + top + border
    return union([pixel.reshape(-1, 2)])


def from_rows(
    runs: Sequence[Any], box: tuple[int, int, int, int], size: tuple[int, int]
) -> Integers:
    """Return run lengths, row by row within a box of left, top, width, height."""
    left, top, width, height = box
    checked_size(height, width)
    ranges = from_runs(runs, (width, height))
    inside = np.zeros(height * width + 1, dtype=np.int8)
    inside[ranges[:, 0]] += 1
    inside[ranges[:, 1]] -= 1
    return from_pixels(np.cumsum(inside[:-1]).reshape(height, width), size, left, top)


def from_packed_counts(text: str, size: tuple[int, int]) -> Integers:
    """Return COCO's compressed run lengths as ranges of pixels.

    Five bits a character, the lowest first; the sixth bit says that more follow. From the fourth
    on a number is the difference from the one before last.

    >>> from_packed_counts("121", (2, 2)).tolist()
    [[1, 3]]
    """
    runs: list[int] = []
    value = shift = 0
    for mark in text:
        bits = ord(mark) - 48
        if not 0 <= bits < 64 or shift > 60:
            raise DataError(f"no compressed run lengths: {text[:20]!r}")
        value |= (bits & 31) << shift
        shift += 5
        if bits & 32:
            continue
        if bits & 16:
            value -= 1 << shift
        runs.append(value + (runs[-2] if len(runs) > 2 else 0))
        value = shift = 0
    if shift:
        raise DataError(f"compressed run lengths that are cut off: {text[:20]!r}")
    return from_runs(runs, size)


def from_brush(coded: Sequence[Any], size: tuple[int, int]) -> Integers:
    """Return Label Studio's coding of a brush as ranges of pixels.

    A stream of bits: the number of values, the bits of a value and four bit widths of lengths;
    then blocks: a bit for "repeated", two bits for the width, a length less one, and one value or
    as many as the length. The values are red, green, blue and alpha of every pixel, row by row;
    a pixel is inside where its alpha is above 0.
    """
    height, width = size
    try:
        bits = np.unpackbits(np.array(coded, dtype=np.uint8))
    except (TypeError, ValueError, OverflowError):
        raise DataError("a brush that is not coded in bytes") from None
    weights = 1 << np.arange(31, -1, -1, dtype=np.int64)
    at = 0

    def number(length: int) -> int:
        nonlocal at
        at += length
        if at > len(bits):
            raise DataError("the coding of a brush is cut off")
        return int(bits[at - length : at] @ weights[32 - length :])

    n_values, of_value = number(_BITS[0]), number(_BITS[1]) + 1
    of_length = [number(_BITS[2]) + 1 for _ in range(4)]
    if n_values != 4 * height * width:
        pixels = f"{height} × {width} pixels"
        raise DataError(f"a brush of {n_values} values, but the image has {pixels} of four")
    values = np.zeros(n_values, dtype=bool)
    n_read = 0
    while n_read < n_values:
        repeated = number(1)
        length = 1 + number(of_length[number(2)])
        if n_read + length > n_values:
            raise DataError("the coding of a brush has more values than its image")
        if repeated:
            values[n_read : n_read + length] = number(of_value) > 0
        else:
            if at + length * of_value > len(bits):
                raise DataError("the coding of a brush is cut off")
            part = bits[at : at + length * of_value].reshape(length, of_value)
            values[n_read : n_read + length] = part.any(axis=1)
            at += length * of_value
        n_read += length
    return from_pixels(values[3::4].reshape(height, width), size)


def union(shapes: Iterable[Integers]) -> Integers:
    """Return the pixels in any of several shapes.

    >>> union([np.array([[4, 6], [0, 2]]), np.array([[1, 3], [6, 6]])]).tolist()
    [[0, 3], [4, 6]]
    """
    ranges = np.concatenate([np.zeros((0, 2), dtype=np.int64), *shapes])
    ranges = ranges[ranges[:, 0] < ranges[:, 1]]
    ranges = ranges[np.argsort(ranges[:, 0], kind="stable")]
    if not len(ranges):
        return ranges
    furthest = np.maximum.accumulate(ranges[:, 1])
    first = np.append(True, ranges[1:, 0] > furthest[:-1])
    last = np.append(first[1:], True)
    return np.column_stack([ranges[first, 0], furthest[last]])


def runs_of(shape: Integers, size: tuple[int, int]) -> list[int]:
    """Return run lengths, column by column with the background first.

    >>> runs_of(np.array([[1, 3]]), (2, 2))
    [1, 2, 1]
    """
    borders = np.concatenate([[0], shape.ravel(), [size[0] * size[1]]])
    runs: list[int] = np.diff(borders).tolist()
    return runs if runs[-1] else runs[:-1]
