"""Marks: spans in texts, boxes and points in images, each perhaps with a label.

A mark is a row of coordinates. Spans are half-open; boxes are given by their upper left corner,
width and height. Within an answer marks are sorted, so their order in a file does not matter.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
import numpy.typing as npt

from ..base.arrays import Array, Codes, Floats, Integers, check_lengths, count_up
from ..base.names import (
    Names,
    abbreviate,
    absent,
    as_array,
    as_names,
    code,
    coded,
    indices_of,
    text,
)
from ..base.tables import Table, as_column
from ..errors import DataError
from .base import Candidates, Ragged, coded_rows, long_frame
from .matching import Pairs, batches, best_match, match_marks, overlapping, span_candidates

if TYPE_CHECKING:
    import polars as pl

_UNLABELLED = ""
_REACH = 0.03  # standard deviation of a point, as a fraction of the image's diagonal
_FAR = 3.0  # standard deviations beyond which points are not similar


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Marks(Ragged):
    """The base of spans, boxes and points: any number of marks per answer."""

    element: ClassVar[str] = "marks"
    by_element: ClassVar[tuple[str, ...]] = ("place", "label")
    coded_by: ClassVar[Mapping[str, str]] = {"label": "classes"}
    of_text: ClassVar[bool] = False  # true ones do not overlap; errors are not distances
    coordinates: ClassVar[tuple[str, ...]]
    sides: ClassVar[tuple[str, ...]]  # names of the corners' coordinates

    place: Floats  # (mark, coordinate)
    label: Codes  # (mark)
    classes: Names  # one empty name where marks have no labels

    @classmethod
    @abstractmethod
    def wrong(cls, place: Floats) -> tuple[Array, str]:
        """Return which coordinates cannot be, and what they have to be."""

    def corners(self, place: Floats) -> Floats:
        """Return the coordinates of marks by side, which can be compared and averaged."""
        return place

    @abstractmethod
    def from_corners(self, corners: Floats) -> Floats:
        """Return the coordinates of marks with these sides."""

    @abstractmethod
    def similarity(self, first: Floats, second: Floats, item: Integers) -> Floats:
        """Return how similar pairs of corners on items are: from 0 to 1, the same."""

    @abstractmethod
    def extent(self, corners: Floats, item: Integers) -> tuple[Floats, Floats]:
        """Return an interval for every mark; only marks whose intervals meet can be similar."""

    @classmethod
    def _from_columns(
        cls,
        item: Sequence[Any] | Array,
        annotator: Sequence[Any] | Array,
        place: Mapping[str, Sequence[Any] | Array],
        label: Sequence[Any] | Array | None,
        *,
        items: Iterable[Any] | None,
        annotators: Iterable[Any] | None,
        classes: Iterable[Any] | None,
        **fields: Any,
    ) -> Self:
        columns = {"item": item, "annotator": annotator, **place}
        check_lengths(columns | ({} if label is None else {"label": label}))
        coordinates = np.column_stack([_as_numbers(values, n) for n, values in place.items()])
        marked = cls._marked(coordinates)
        codes, names = _labels(label, marked, classes)
        rows = coded_rows(item, annotator, items, annotators)
        return cls._from_marks(
            rows, marked, place=coordinates[marked], label=codes, classes=names, **fields
        )

    @classmethod
    def _from_marks(
        cls,
        rows: dict[str, Any],
        marked: npt.NDArray[np.bool_],
        place: Floats,
        label: Codes | Integers,
        classes: Names,
        **fields: Any,
    ) -> Self:
        """Return answers from rows that hold a mark, or none where the answer is empty."""
        key = rows["item"].astype(np.int64) * max(len(rows["annotators"]), 1) + rows["annotator"]
        answers, row_of, answer = np.unique(key, return_index=True, return_inverse=True)
        order = np.lexsort((label, *place.T[::-1], answer[marked]))
        sizes = np.bincount(answer[marked], minlength=len(answers))
        return cls.from_codes(
            rows["item"][row_of],
            rows["annotator"][row_of],
            items=rows["items"],
            annotators=rows["annotators"],
            starts=np.concatenate([[0], np.cumsum(sizes)]),
            place=place[order],
            label=label[order],
            classes=classes,
            **fields,
        )

    @classmethod
    def from_values(
        cls,
        item: Sequence[Any] | Array,
        annotator: Sequence[Any] | Array,
        values: Sequence[Any],
        *,
        items: Iterable[Any] | None = None,
        annotators: Iterable[Any] | None = None,
        classes: Iterable[Any] | None = None,
    ) -> Self:
        check_lengths({"item": item, "annotator": annotator, cls.value_key: values})
        for position, marks in enumerate(values, 1):
            if not isinstance(marks, (list, tuple)) or not all(isinstance(m, dict) for m in marks):
                raise DataError(
                    f"row {position}: {cls.value_key} are a list of marks with "
                    f"{', '.join(cls.coordinates)}; an empty list is an empty answer"
                )
        sizes = [max(len(marks), 1) for marks in values]
        rows = np.repeat(np.arange(len(sizes)), sizes)
        marks = [mark for value in values for mark in (value or [{}])]
        place = {name: [mark.get(name) for mark in marks] for name in cls.coordinates}
        label = [mark.get("label") for mark in marks]
        item, annotator = as_array(item)[rows], as_array(annotator)[rows]
        return cls._from_columns(
            item, annotator, place, label, items=items, annotators=annotators, classes=classes
        )

    @classmethod
    def _marked(cls, place: Floats) -> npt.NDArray[np.bool_]:
        """Return which rows hold a mark; refuse marks that cannot be."""
        missing = np.isnan(place)
        marked: npt.NDArray[np.bool_] = np.asarray(~missing.all(axis=1))
        partly = marked & missing.any(axis=1)
        if partly.any():
            row = int(partly.argmax())
            names = ", ".join(np.array(cls.coordinates)[missing[row]])
            raise DataError(f"row {row + 1}: a mark without {names}; an empty answer has none")
        bad, remedy = cls.wrong(place)
        bad = marked & (bad | ~np.isfinite(place).all(axis=1))
        if bad.any():
            row = int(bad.argmax())
            coordinates = ", ".join(
                f"{n} {v:g}" for n, v in zip(cls.coordinates, place[row], strict=True)
            )
            raise DataError(f"row {row + 1}: no mark can be at {coordinates}; {remedy}")
        return marked

    @property
    def labelled(self) -> bool:
        """Whether marks have labels."""
        return self.classes.tolist() != [_UNLABELLED]

    @property
    def counts(self) -> str:
        labels = f", {len(self.classes)} labels" if self.labelled else ""
        return f"{self.n_elements} marks{labels}"

    @property
    def mark_item(self) -> Integers:
        """The item of every mark."""
        return self.item.astype(np.int64)[self.answer]

    def values(self) -> list[Any]:
        plain = [_plain(column) for column in self.place.T]
        names = [*self.coordinates]
        if self.labelled:
            plain.append(self.classes[self.label].tolist())
            names.append("label")
        marks = [
            {name: value for name, value in zip(names, mark, strict=True) if value != _UNLABELLED}
            for mark in zip(*plain, strict=True)
        ]
        return [marks[a:b] for a, b in pairwise(self.starts)]

    def as_table(self) -> tuple[dict[str, Array], Integers]:
        return self.table_of(self.mark_item, self.place, self.label), self.answer

    def table_of(self, item: Integers, place: Floats, label: Integers | Codes) -> dict[str, Array]:
        """Return columns for marks on these items."""
        table: dict[str, Array] = {"item": self.items[item]}
        table |= dict(zip(self.coordinates, place.T, strict=True))
        return table | ({"label": self.classes[label]} if self.labelled else {})

    def to_polars(self) -> pl.DataFrame:
        """Return a long table, which has a row without values for every empty answer."""
        import polars as pl

        table, answer = self.as_table()
        bare = np.flatnonzero(self.empty)
        rows = np.concatenate([answer, bare])
        order = np.argsort(rows, kind="stable")
        item = self.item[rows[order]]
        annotator = self.annotator[rows[order]]
        frame = long_frame({"item": self.items[item], "annotator": self.annotators[annotator]})
        for name, values in table.items():
            if name != "item":
                column = as_column(values).extend(pl.Series([None] * len(bare), dtype=pl.Null))
                frame = frame.with_columns(column.gather(order).alias(name))
        return frame.with_columns(self._size_columns(item))

    def _size_columns(self, item: Codes) -> list[pl.Series]:
        """Return the columns of the sizes of images, where a place needs them: (row)."""
        return []

    def as_answers(self, table: Table) -> Self:
        item = indices_of(table["item"], self.items) if len(table["item"]) else np.zeros(0, int)
        bare = np.setdiff1d(np.arange(self.n_items), item)
        marked = np.arange(len(item) + len(bare)) < len(item)
        rows = {"item": np.concatenate([item, bare]), "annotator": np.zeros(len(marked), np.uint8)}
        rows |= {"items": self.items, "annotators": as_names(["consensus"])}
        place = np.column_stack([table[name].astype(float) for name in self.coordinates])
        label = np.zeros(len(item), np.int64)
        if self.labelled and len(item):
            label = indices_of(table["label"], self.classes)
        fields = {name: getattr(self, name) for name in self.by_item}
        return self._from_marks(
            rows, marked, place=place, label=label, classes=self.classes, **fields
        )

    def distance(self, first: Integers, second: Integers) -> Floats:
        """Return 1 - 2 Σ m / (n1 + n2), with m on the best match of marks with the same label."""
        return np.clip(1 - self._matched(first, second, lambda similarity: similarity), 0.0, 1.0)

    def _matched(
        self, first: Integers, second: Integers, weigh: Callable[[Floats], Floats]
    ) -> Floats:
        """Return 2 Σ w / (n1 + n2), with the weights w of similarities on the best match.

        Two answers without marks are the same: 1.
        """
        matched = np.zeros(len(first))
        corners, item = self.corners(self.place), self.item.astype(np.int64)
        for batch in batches(self.sizes[first] * self.sizes[second]):
            pair, left, right = self.mark_pairs(first[batch], second[batch])
            similarity = self.similarity(corners[left], corners[right], item[first[batch][pair]])
            weight = weigh(similarity)
            near = (weight > 0) & (self.label[left] == self.label[right])
            matched[batch] = best_match(
                pair[near], left[near], right[near], value=weight[near], n_pairs=len(first[batch])
            )
        n_marks = self.sizes[first] + self.sizes[second]
        return np.where(n_marks > 0, 2 * matched / np.maximum(n_marks, 1), 1.0)

    def mark_pairs(self, first: Integers, second: Integers) -> tuple[Integers, Integers, Integers]:
        """Return every pair of marks of pairs of answers: the pair of answers, and both marks."""
        n_second = self.sizes[second]
        cells = self.sizes[first] * n_second
        pair, at = np.repeat(np.arange(len(first)), cells), count_up(cells)
        left = self.starts[first][pair] + at // np.maximum(n_second[pair], 1)
        right = self.starts[second][pair] + at % np.maximum(n_second[pair], 1)
        return pair, left, right

    def f1(self, first: Integers, second: Integers, least: float) -> Floats:
        """Return the F1 of pairs of answers: marks match if they are at least this similar."""
        return self._matched(first, second, lambda value: (value >= least).astype(float))

    def similar_pairs(
        self, corners: Floats, item: Integers, annotator: Integers, least: float
    ) -> Pairs:
        """Return the pairs of marks of different annotators that are at least this similar."""
        pieces = []
        for left, right in overlapping(*self.extent(corners, item), item):
            value = self.similarity(corners[left], corners[right], item[left])
            near = (value >= least) & (annotator[left] != annotator[right])
            pieces.append(Pairs(left[near], right[near], value[near]))
        return Pairs(*(np.concatenate(column) for column in zip(*pieces, strict=True)))

    def label_codes(self, gold: Self) -> Integers:
        """Return the labels of known marks in the codes of these; refuse other labels."""
        codes = indices_of(gold.classes, self.classes)[gold.label]
        if (codes < 0).any():
            name, labels = gold.classes[gold.label[codes.argmin()]], abbreviate(self.classes)
            raise DataError(f"gold has the label {name!r}, which is not among the labels {labels}")
        return codes

    def match(self, least: float = 0.3, gold: Self | None = None) -> Candidates:
        """Return one candidate for every group of similar marks, marked by somebody or not."""
        return match_marks(self, least, gold)

    def candidates(self, gold: Self | None = None) -> Candidates:
        """Return candidates and every answer to them, with those of known items decided."""
        return self.match(gold=gold)


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Spans(Marks):
    """Spans of texts: from `start` up to, but without, `end`; tokens or characters.

    Examples
    --------
    >>> spans = Spans.from_columns(
    ...     ["a", "a", "a", "b"], ["x", "x", "y", "y"],
    ...     [0, 4, 4, None], [2, 6, 5, None], label=["PER", "LOC", "LOC", None],
    ... )
    >>> spans
    <spans: 2 items, 2 annotators, 3 marks, 2 labels; 33 % of answers are empty>
    >>> spans.to_rows()[1]
    {'item': 'a', 'annotator': 'y', 'spans': [{'start': 4, 'end': 5, 'label': 'LOC'}]}
    """

    kind: ClassVar[str] = "spans"
    of_text: ClassVar[bool] = True
    value_key: ClassVar[str] = "spans"
    coordinates: ClassVar[tuple[str, ...]] = ("start", "end")
    sides: ClassVar[tuple[str, ...]] = ("start", "end")

    @classmethod
    def from_columns(
        cls,
        item: Sequence[Any] | Array,
        annotator: Sequence[Any] | Array,
        start: Sequence[Any] | Array,
        end: Sequence[Any] | Array,
        label: Sequence[Any] | Array | None = None,
        *,
        items: Iterable[Any] | None = None,
        annotators: Iterable[Any] | None = None,
        classes: Iterable[Any] | None = None,
    ) -> Self:
        """Return spans from one row each; a row without start and end is an empty answer."""
        place = {"start": start, "end": end}
        return cls._from_columns(
            item, annotator, place, label, items=items, annotators=annotators, classes=classes
        )

    @classmethod
    def wrong(cls, place: Floats) -> tuple[Array, str]:
        return (place[:, 0] < 0) | (place[:, 1] <= place[:, 0]), "0 ≤ start < end"

    def from_corners(self, corners: Floats) -> Floats:
        """Return spans with whole borders: of a half the start goes down and the end up."""
        start, end = np.ceil(corners[:, 0] - 0.5), np.floor(corners[:, 1] + 0.5)
        return np.column_stack([start, np.maximum(end, start + 1)])

    def similarity(self, first: Floats, second: Floats, item: Integers) -> Floats:
        shared = np.minimum(first[:, 1], second[:, 1]) - np.maximum(first[:, 0], second[:, 0])
        sizes = first[:, 1] - first[:, 0] + second[:, 1] - second[:, 0]
        return _iou(np.maximum(shared, 0.0), sizes)

    def extent(self, corners: Floats, item: Integers) -> tuple[Floats, Floats]:
        return corners[:, 0], corners[:, 1]

    def table_of(self, item: Integers, place: Floats, label: Integers | Codes) -> dict[str, Array]:
        table = super().table_of(item, place, label)
        return table | {name: table[name].astype(np.int64) for name in self.coordinates}

    def candidates(self, gold: Self | None = None) -> Candidates:
        """Return every distinct span, and every answer to it: its label, `other` or `none`.

        `other` says that another mark of the annotator overlaps it.
        """
        return span_candidates(self, gold)


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Boxes(Marks):
    """Boxes in images: upper left corner, width and height in pixels.

    Examples
    --------
    >>> x, y, w, h = [0, 1, None], [0, 0, None], [8, 8, None], [4, 4, None]
    >>> boxes = Boxes.from_columns("aab", "xyx", x, y, w, h)
    >>> boxes
    <boxes: 2 items, 2 annotators, 2 marks; 33 % of answers are empty>
    >>> boxes.distance(np.array([0]), np.array([1])).round(3).tolist()
    [0.222]
    """

    kind: ClassVar[str] = "boxes"
    value_key: ClassVar[str] = "boxes"
    coordinates: ClassVar[tuple[str, ...]] = ("x", "y", "w", "h")
    sides: ClassVar[tuple[str, ...]] = ("left", "top", "right", "bottom")

    @classmethod
    def from_columns(
        cls,
        item: Sequence[Any] | Array,
        annotator: Sequence[Any] | Array,
        x: Sequence[Any] | Array,
        y: Sequence[Any] | Array,
        w: Sequence[Any] | Array,
        h: Sequence[Any] | Array,
        label: Sequence[Any] | Array | None = None,
        *,
        items: Iterable[Any] | None = None,
        annotators: Iterable[Any] | None = None,
        classes: Iterable[Any] | None = None,
    ) -> Self:
        """Return boxes from one row each; a row without coordinates is an empty answer."""
        place = {"x": x, "y": y, "w": w, "h": h}
        return cls._from_columns(
            item, annotator, place, label, items=items, annotators=annotators, classes=classes
        )

    @classmethod
    def wrong(cls, place: Floats) -> tuple[Array, str]:
        return np.any(place[:, 2:] < 0, axis=1), "w and h are at least 0"

    def corners(self, place: Floats) -> Floats:
        return np.hstack([place[:, :2], place[:, :2] + place[:, 2:]])

    def from_corners(self, corners: Floats) -> Floats:
        return np.hstack([corners[:, :2], np.maximum(corners[:, 2:] - corners[:, :2], 0.0)])

    def similarity(self, first: Floats, second: Floats, item: Integers) -> Floats:
        shared = np.minimum(first[:, 2], second[:, 2]) - np.maximum(first[:, 0], second[:, 0])
        height = np.minimum(first[:, 3], second[:, 3]) - np.maximum(first[:, 1], second[:, 1])
        shared = np.maximum(shared, 0.0) * np.maximum(height, 0.0)
        sizes = (first[:, 2] - first[:, 0]) * (first[:, 3] - first[:, 1])
        sizes += (second[:, 2] - second[:, 0]) * (second[:, 3] - second[:, 1])
        value = _iou(shared, sizes)
        flat = sizes == 0  # boxes without area are only similar to themselves
        value[flat] = (first[flat] == second[flat]).all(axis=1)
        return value

    def extent(self, corners: Floats, item: Integers) -> tuple[Floats, Floats]:
        return corners[:, 0], corners[:, 2]


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Points(Marks):
    """Points in images, in pixels.

    How near two points have to be to be the same depends on the image: one standard deviation is
    3 % of its diagonal. Where the `size` of an image is unknown, the range of all points stands in.

    Examples
    --------
    >>> Points.from_columns("aab", "xyx", [0, 1, 100], [0, 0, 80])
    <points: 2 items, 2 annotators, 3 marks>
    """

    kind: ClassVar[str] = "points"
    value_key: ClassVar[str] = "points"
    by_item: ClassVar[tuple[str, ...]] = ("size",)
    coordinates: ClassVar[tuple[str, ...]] = ("x", "y")
    sides: ClassVar[tuple[str, ...]] = ("x", "y")

    size: Floats  # (item, 2): width and height of the image, NaN where they are unknown

    @classmethod
    def from_columns(
        cls,
        item: Sequence[Any] | Array,
        annotator: Sequence[Any] | Array,
        x: Sequence[Any] | Array,
        y: Sequence[Any] | Array,
        label: Sequence[Any] | Array | None = None,
        *,
        size: Mapping[Any, tuple[float, float]] | None = None,
        items: Iterable[Any] | None = None,
        annotators: Iterable[Any] | None = None,
        classes: Iterable[Any] | None = None,
    ) -> Self:
        """Return points from one row each; a row without x and y is an empty answer.

        `size` has width and height of images by item.
        """
        place = {"x": x, "y": y}
        return cls._from_columns(
            item,
            annotator,
            place,
            label,
            items=items,
            annotators=annotators,
            classes=classes,
            size=size,
        )

    @classmethod
    def from_rows(
        cls,
        rows: Iterable[Mapping[str, Any]],
        *,
        items: Iterable[Any] | None = None,
        annotators: Iterable[Any] | None = None,
    ) -> Self:
        """Return answers from one mapping each; `size` has width and height where it is known."""
        mappings = list(rows)
        points = super().from_rows(mappings, items=items, annotators=annotators)
        sizes = {row["item"]: row["size"] for row in mappings if row.get("size") is not None}
        return replace(points, size=_image_sizes(points.items, sizes))

    def to_rows(self) -> list[dict[str, Any]]:
        rows, sizes = super().to_rows(), self.size[self.item]
        for row, size in zip(rows, sizes, strict=True):
            if not np.isnan(size).any():
                row["size"] = _plain(size)
        return rows

    @classmethod
    def _from_marks(cls, rows: dict[str, Any], *columns: Any, **fields: Any) -> Self:
        size = fields.get("size")
        if not isinstance(size, np.ndarray):
            size = _image_sizes(rows["items"], size or {})
        return super()._from_marks(rows, *columns, **fields | {"size": size})

    @classmethod
    def wrong(cls, place: Floats) -> tuple[Array, str]:
        return np.zeros(len(place), dtype=bool), "x and y are numbers"

    def from_corners(self, corners: Floats) -> Floats:
        return corners

    def _size_columns(self, item: Codes) -> list[pl.Series]:
        import polars as pl

        if np.isnan(self.size).all():
            return []
        width, height = self.size[item].T
        return [
            pl.Series("image_height", height).fill_nan(None),
            pl.Series("image_width", width).fill_nan(None),
        ]

    @property
    def reach(self) -> Floats:
        """The standard deviation of points in pixels: (item)."""
        diagonal = np.hypot(*self.size.T)
        overall = float(np.hypot(*np.ptp(self.place, axis=0))) if len(self.place) else 0.0
        reach = _REACH * np.where(np.isnan(diagonal), overall, diagonal)
        return np.where(reach > 0, reach, 1.0)

    def similarity(self, first: Floats, second: Floats, item: Integers) -> Floats:
        squared = ((first - second) ** 2).sum(axis=1) / self.reach[item] ** 2
        return np.where(squared <= _FAR**2, np.exp(-squared / 2), 0.0)

    def extent(self, corners: Floats, item: Integers) -> tuple[Floats, Floats]:
        return corners[:, 0], corners[:, 0] + _FAR * self.reach[item]


def _image_sizes(items: Names, size: Mapping[Any, Any]) -> Floats:
    """Return width and height of the image of every item, NaN where they are unknown."""
    sizes = {text(name): pair for name, pair in size.items()}
    pairs = [sizes.get(name, (np.nan, np.nan)) for name in items.tolist()]
    return np.array(pairs, dtype=float).reshape(-1, 2)


def _iou(shared: Floats, sizes: Floats) -> Floats:
    """Return intersection over union from the intersection and the sum of both sizes."""
    union = sizes - shared
    return np.divide(shared, union, out=np.zeros(len(shared)), where=union > 0)


def _labels(
    label: Sequence[Any] | Array | None,
    marked: npt.NDArray[np.bool_],
    classes: Iterable[Any] | None,
) -> tuple[Codes, Names]:
    """Return codes and names of the labels of marks; those without a label have an empty name."""
    if label is None:
        return np.zeros(int(marked.sum()), dtype=np.uint8), as_names([_UNLABELLED])
    texts = as_array(label)[marked]
    blank = absent(texts)
    if blank.all() and classes is None:
        return np.zeros(len(texts), dtype=np.uint8), as_names([_UNLABELLED])
    if classes is not None or not blank.any():
        return coded(texts, classes, "label")
    return code(np.where(blank, _UNLABELLED, texts.astype(object)).tolist())


def _as_numbers(values: Sequence[Any] | Array, name: str) -> Floats:
    """Return a column as numbers, NaN where there is none, or say which row has another value."""
    column = as_array(values)
    if column.dtype.kind in "fiub":
        return column.astype(np.float64)
    numbers = np.full(len(column), np.nan)
    for row in np.flatnonzero(~absent(column)):
        try:
            numbers[row] = float(column[row])
        except (TypeError, ValueError, OverflowError):
            wrong = repr(column[row])[:60]
            raise DataError(f"row {row + 1}: {name} is {wrong}, not a number") from None
    return numbers


def _plain(column: Floats) -> list[Any]:
    """Return numbers as Python writes them, whole ones without a point."""
    return [int(number) if number.is_integer() else number for number in column.tolist()]
