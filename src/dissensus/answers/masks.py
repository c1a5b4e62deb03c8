"""Masks: which pixels of an image belong to something, as run lengths.

Runs go column by column and start with the background, as in COCO: "3 2 5" is three pixels outside,
two inside, five outside. Masks are compared as intervals of pixels; they are never unpacked.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
import numpy.typing as npt
from scipy import sparse

from ..base.arrays import Array, Floats, Integers, check_lengths, count_up, ragged_take
from ..base.names import as_names, text
from ..base.tables import Table
from ..errors import DataError
from .base import Ragged, coded_rows

_BATCH = 2**22  # intervals to compare at once


class Intervals(NamedTuple):
    """The pixels inside masks, from `start` up to `stop`, by answer."""

    answer: Integers
    start: Integers
    stop: Integers


class Segments(NamedTuple):
    """Ranges of pixels that are alike in every answer to their item, sorted by item and pixel."""

    item: Integers
    start: Integers  # the first pixel
    length: Integers  # number of pixels
    on: sparse.csr_array[Any, Any]  # (segment, answer): whether it is inside the answer's mask


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Masks(Ragged):
    """Masks of images, one per answer.

    Examples
    --------
    >>> masks = Masks.from_columns("aa", "xy", ["1 2 1", "1 3"], size={"a": (2, 2)})
    >>> masks
    <masks: 1 items, 2 annotators>
    >>> masks.distance(np.array([0]), np.array([1])).round(3).tolist()
    [0.333]
    >>> masks.pixels(1).astype(int).tolist()
    [[0, 1], [1, 1]]
    """

    kind: ClassVar[str] = "masks"
    value_key: ClassVar[str] = "mask"
    element: ClassVar[str] = "runs"
    by_element: ClassVar[tuple[str, ...]] = ("runs",)
    by_item: ClassVar[tuple[str, ...]] = ("size",)

    runs: Integers  # (run): number of pixels; outside, inside, outside and so on
    size: Integers  # (item, 2): height and width

    @classmethod
    def from_columns(
        cls,
        item: Sequence[Any] | Array,
        annotator: Sequence[Any] | Array,
        counts: Sequence[Any],
        *,
        size: Mapping[Any, Sequence[int]],
        items: Iterable[Any] | None = None,
        annotators: Iterable[Any] | None = None,
    ) -> Self:
        """Return masks from run lengths, lists or texts with blanks between.

        `size` has height and width by item. Run lengths that are empty are a mask without pixels.
        """
        check_lengths({"item": item, "annotator": annotator, "counts": counts})
        rows = coded_rows(item, annotator, items, annotators)
        sizes = {text(name): pair for name, pair in size.items()}
        names = rows["items"].tolist()
        unknown = [name for name in names if name not in sizes]
        if unknown:
            raise DataError(f"item {unknown[0]!r} has no size; give height and width of every item")
        shape = np.array([sizes[name] for name in names], dtype=np.int64).reshape(-1, 2)
        runs = [_as_runs(count, position) for position, count in enumerate(counts, 1)]
        area = shape.prod(axis=1)[rows["item"]]
        runs = [mask_runs or [int(pixels)] for mask_runs, pixels in zip(runs, area, strict=True)]
        flat = np.array([run for mask_runs in runs for run in mask_runs], dtype=np.int64)
        starts = np.concatenate(
            [[0], np.cumsum([len(mask_runs) for mask_runs in runs], dtype=np.int64)]
        )
        _check_sums(flat, starts, shape[rows["item"]])
        return cls.from_codes(**rows, starts=starts, runs=flat, size=shape)

    @classmethod
    def from_values(
        cls,
        item: Sequence[Any] | Array,
        annotator: Sequence[Any] | Array,
        values: Sequence[Any],
        *,
        items: Iterable[Any] | None = None,
        annotators: Iterable[Any] | None = None,
    ) -> Self:
        sizes: dict[str, tuple[int, int]] = {}
        for position, (name, mask) in enumerate(zip(item, values, strict=True), 1):
            if not isinstance(mask, Mapping) or not {"size", "counts"} <= mask.keys():
                raise DataError(f"row {position}: a mask has size, height and width, and counts")
            pair = tuple(mask["size"])
            if sizes.setdefault(text(name), pair) != pair:
                raise DataError(f"row {position}: item {text(name)!r} has masks of several sizes")
        counts = [mask["counts"] for mask in values]
        return cls.from_columns(
            item, annotator, counts, size=sizes, items=items, annotators=annotators
        )

    @property
    def counts(self) -> str:
        return ""

    @property
    def empty(self) -> npt.NDArray[np.bool_]:
        return self.area == 0

    @property
    def area(self) -> Integers:
        """Number of pixels inside every mask."""
        inside = count_up(self.sizes) % 2 == 1
        return np.bincount(self.answer[inside], self.runs[inside], len(self)).astype(np.int64)

    @property
    def intervals(self) -> Intervals:
        """The pixels inside the masks."""
        stop = np.cumsum(self.runs)
        stop -= np.repeat((stop - self.runs)[self.starts[:-1]], self.sizes)
        inside = (count_up(self.sizes) % 2 == 1) & (self.runs > 0)
        return Intervals(self.answer[inside], (stop - self.runs)[inside], stop[inside])

    def pixels(self, answer: int) -> npt.NDArray[np.bool_]:
        """Return one mask as an image: (row, column)."""
        runs = self.runs[self.starts[answer] : self.starts[answer + 1]]
        height, width = self.size[self.item[answer]]
        return np.repeat(np.arange(len(runs)) % 2 == 1, runs).reshape(width, height).T

    def values(self) -> list[Any]:
        size = self.size[self.item].tolist()
        runs = [self.runs[a:b].tolist() for a, b in pairwise(self.starts)]
        return [
            {"size": pair, "counts": mask_runs} for pair, mask_runs in zip(size, runs, strict=True)
        ]

    def long_columns(self) -> dict[str, Array | list[Any]]:
        """Return runs, and the size of the image: (answer)."""
        height, width = self.size[self.item].T
        counts = [
            None if empty else " ".join(map(str, value["counts"]))
            for empty, value in zip(self.empty.tolist(), self.values(), strict=True)
        ]
        return {"counts": counts, "height": height, "width": width}

    def as_table(self) -> tuple[dict[str, Array], Integers]:
        counts = [" ".join(map(str, value["counts"])) for value in self.values()]
        table = {"item": self.items[self.item], "counts": as_names(counts), "area": self.area}
        return table, np.arange(len(self))

    def as_answers(self, table: Table) -> Self:
        counts_of = dict(zip(table["item"].tolist(), table["counts"].tolist(), strict=True))
        names = self.items.tolist()
        size = dict(zip(names, self.size.tolist(), strict=True))
        annotator, counts = ["consensus"] * len(names), [counts_of.get(name, "") for name in names]
        return self.from_columns(names, annotator, counts, size=size, items=self.items)

    def distance(self, first: Integers, second: Integers) -> Floats:
        """Return 1 - intersection over union; two masks without pixels are the same."""
        shared, area, intervals = np.zeros(len(first)), self.area, self.intervals
        n_intervals = np.bincount(intervals.answer, minlength=len(self))
        step = max(1, _BATCH // max(1, int(n_intervals.max(initial=1))))
        for start in range(0, len(first), step):
            batch = slice(start, start + step)
            shared[batch] = self._shared(first[batch], second[batch], intervals, n_intervals)
        union = area[first] + area[second] - shared
        return np.where(union > 0, 1 - shared / np.maximum(union, 1), 0.0)

    def _shared(
        self, first: Integers, second: Integers, intervals: Intervals, n_intervals: Integers
    ) -> Floats:
        """Return the number of pixels inside both masks of every pair."""
        _, start, stop = intervals
        _, at = ragged_take(np.concatenate([[0], np.cumsum(n_intervals)]), second)
        pair = np.repeat(np.arange(len(first)), n_intervals[second])
        mask = first[pair]
        inside = self._inside(intervals, mask, stop[at])
        inside -= self._inside(intervals, mask, start[at])
        return np.bincount(pair, inside, minlength=len(first)).astype(float)

    def _inside(self, intervals: Intervals, answer: Integers, pixel: Integers) -> Integers:
        """Return how many pixels before this one are inside a mask."""
        of, start, stop = intervals
        width = int(self.size.prod(axis=1).max(initial=0)) + 1
        last = np.searchsorted(of * width + start, answer * width + pixel, side="right") - 1
        within = np.concatenate([[0], np.cumsum(stop - start)])
        first = np.searchsorted(of, answer)
        whole = within[np.maximum(last, first)] - within[first]
        at = np.maximum(last, 0)
        partly = np.minimum(pixel, stop[at]) - start[at]
        return np.where(last >= first, whole + partly, 0)

    def segments(self) -> Segments:
        """Return ranges of pixels that are alike in every answer to their item."""
        answer, start, stop = self.intervals
        item, pixels = self.item.astype(np.int64), self.size.prod(axis=1)
        width = int(pixels.max(initial=0)) + 1
        base = item[answer] * width
        border = np.concatenate([base + start, base + stop, np.arange(self.n_items) * width])
        key = np.unique(border)
        key = key[key % width < pixels[key // width]]  # not after the last pixel
        where, begin = key // width, key % width
        follows = np.append(where[1:] == where[:-1], False)
        length = np.where(follows, np.append(begin[1:], 0), pixels[where]) - begin
        low, high = np.searchsorted(key, base + start), np.searchsorted(key, base + stop)
        covered = high - low
        rows = np.repeat(low, covered) + count_up(covered)
        entries = np.ones(len(rows))
        shape = (len(key), len(self))
        on = sparse.csr_array((entries, (rows, np.repeat(answer, covered))), shape=shape)
        return Segments(where, begin, length, on)


def _as_runs(counts: Any, position: int) -> list[int]:
    """Return run lengths as whole numbers, or say in which row they are none."""
    if isinstance(counts, str):
        counts = counts.split()
    try:
        runs = [int(run) for run in (() if counts is None else counts)]
    except (TypeError, ValueError):
        raise DataError(f"row {position}: counts are whole numbers, here {counts!r:.40}") from None
    if any(run < 0 for run in runs):
        raise DataError(f"row {position}: counts are at least 0, but one is {min(runs)}")
    return runs


def _check_sums(runs: Integers, starts: Integers, size: Integers) -> None:
    """Refuse run lengths that do not fill their image."""
    cumulative = np.concatenate([[0], np.cumsum(runs)])
    total = cumulative[starts[1:]] - cumulative[starts[:-1]]
    wrong = total != size.prod(axis=1)
    if wrong.any():
        row = int(wrong.argmax())
        height, width = size[row]
        raise DataError(
            f"row {row + 1}: the counts add up to {total[row]}, but the image has "
            f"{height} × {width} = {height * width} pixels; counts start with the background"
        )


def runs_of(segments: Segments, inside: npt.NDArray[np.bool_], n_items: int) -> list[list[int]]:
    """Return the run lengths of one mask per item, given which segments are inside."""
    out: list[list[int]] = []
    bounds = np.searchsorted(segments.item, np.arange(n_items + 1))
    for start, stop in pairwise(bounds):
        value, length = inside[start:stop], segments.length[start:stop]
        change = np.flatnonzero(np.diff(value, prepend=False))
        cuts = np.concatenate([[0], np.cumsum(length)])
        ends = np.append(cuts[change], cuts[-1])
        out.append(np.diff(ends, prepend=0).tolist())
    return out
