"""Answers of other kinds than classes, collected from an export until they become questions.

Who submitted an item and marked nothing gave an empty answer; who did not submit it gave none.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import polars as pl

from ..errors import DataError
from .shapes import runs_of, union
from .format import Kind, Question
from .times import as_times

MARKS: tuple[Kind, ...] = ("spans", "boxes", "points", "masks")
_LONGEST_TEXT = 2**53  # characters, which numbers can count
_BEYOND = 0.01  # share of an image's side that a mark may reach out of it, and one pixel more

Pair = tuple[str, str]  # item, annotator


class About(NamedTuple):
    """What is known of an answer beside its value."""

    time: Any = None
    duration: Any = None
    confidence: Any = None
    model: bool = False


class KindAnswers:
    """The answers to one question of another kind than classes."""

    def __init__(self, kind: Kind) -> None:
        self.kind = kind
        self.values: dict[Pair, Any] = {}
        self.about: dict[Pair, About] = {}
        self.gold: dict[str, Any] = {}
        self.repeated = 0

    def add(self, item: str, annotator: str, value: Any, about: About | None = None) -> None:
        """Add an answer; it replaces an earlier one of the annotator."""
        pair = item, annotator
        self.repeated += pair in self.values
        self.values[pair] = value
        self.about[pair] = about or About()

    def append(self, item: str, annotator: str, mark: Any) -> None:
        """Add a mark to the answer of an annotator."""
        self.values.setdefault((item, annotator), []).append(mark)
        self.about.setdefault((item, annotator), About())

    def complete(self, submitted: Mapping[Pair, About]) -> None:
        """Add empty answers of all who submitted an item."""
        empty: Any = "" if self.kind == "texts" else []
        for pair, about in submitted.items():
            if pair not in self.values:
                self.values[pair], self.about[pair] = empty, about

    def questions(
        self,
        name: str,
        sizes: Mapping[str, tuple[int, int]],
        left_out: Counter[tuple[str | None, str]],
    ) -> dict[str, Question]:
        """Return the question; masks have one for every label."""
        if self.kind != "masks":
            left_out[name, "repeated"] += self.repeated
            return {name: self._question(self.values, self.gold, sizes)}
        known = {pair: shapes for pair, shapes in self.values.items() if pair[0] in sizes}
        unsized = len(self.values) - len(known)
        labels = sorted({label for shapes in known.values() for label, _ in shapes})
        found = {}
        for label in labels or [""]:
            masks = {pair: _mask(v, label, sizes[pair[0]]) for pair, v in known.items()}
            gold = {i: _mask(v, label, sizes[i]) for i, v in self.gold.items() if i in sizes}
            question = name if len(labels) < 2 else f"{name}:{label}"
            found[question] = self._question(masks, gold, sizes)
            left_out[question, "repeated"] += self.repeated
            left_out[question, "on images whose size is unknown"] += unsized
        return found

    def _question(
        self,
        values: Mapping[Pair, Any],
        gold: Mapping[str, Any],
        sizes: Mapping[str, tuple[int, int]],
    ) -> Question:
        about = [self.about[pair] for pair in values]
        columns = {
            "item": pl.Series([item for item, _ in values], dtype=pl.String),
            "annotator": pl.Series([annotator for _, annotator in values], dtype=pl.String),
        }
        carried = {
            "time": as_times([one.time for one in about]),
            "duration": pl.Series([one.duration for one in about], dtype=pl.Float64, strict=False),
            "confidence": pl.Series(
                [one.confidence for one in about], dtype=pl.Float64, strict=False
            ),
        }
        columns |= {key: column for key, column in carried.items() if column.count()}
        if any(one.model for one in about):
            source = ["model" if one.model else "person" for one in about]
            columns["source"] = pl.Series(source)
        return Question(
            pl.DataFrame(columns), self.kind, gold=gold, values=list(values.values()), sizes=sizes
        )


def _mask(shapes: Any, label: str, size: tuple[int, int]) -> dict[str, Any]:
    """Return the union of an answer's shapes of one label as a mask."""
    ranges = union(shape for name, shape in shapes if name == label)
    return {"size": list(size), "counts": runs_of(ranges, size)}


def span(start: Any, end: Any, label: Any = None, length: int | None = None) -> dict[str, Any]:
    """Return a span; refuse one that is not within a text of this length."""
    if not all(isinstance(one, (int, float)) and not isinstance(one, bool) for one in (start, end)):
        raise DataError(f"a span from {start!r:.20} to {end!r:.20}, which are no numbers")
    if max(abs(start), abs(end)) >= _LONGEST_TEXT:
        raise DataError(f"a span from {start!r:.20} to {end!r:.20}, which no text has")
    if not 0 <= start < end:
        raise DataError(f"a span from {start:g} to {end:g}; 0 ≤ start < end")
    if length is not None and end > length:
        raise DataError(f"a span from {start:g} to {end:g}, but the text has {length} characters")
    return _labelled({"start": start, "end": end}, label)


def box(
    place: Sequence[Any], label: Any = None, size: tuple[int, int] | None = None
) -> dict[str, Any]:
    """Return a box of x, y, w, h; refuse one that reaches out of an image of this size."""
    mark = dict(zip("xywh", map(_number, place), strict=True))
    if mark["w"] < 0 or mark["h"] < 0:
        raise DataError(f"a box of {mark['w']:g} × {mark['h']:g}; w and h are at least 0")
    _check_within("box", mark["x"], mark["y"], size)
    _check_within("box", mark["x"] + mark["w"], mark["y"] + mark["h"], size)
    return _labelled(mark, label)


def point(x: Any, y: Any, label: Any = None, size: tuple[int, int] | None = None) -> dict[str, Any]:
    """Return a point; refuse one out of an image of this height and width."""
    mark = {"x": _number(x), "y": _number(y)}
    _check_within("point", mark["x"], mark["y"], size)
    return _labelled(mark, label)


def length_of(text: Any) -> int | None:
    """Return how far a span in a text may reach; some tools count UTF-16 units."""
    return len(text.encode("utf-16-le", "surrogatepass")) // 2 if isinstance(text, str) else None


def _number(value: Any) -> float:
    try:
        number = float(value)
    except (TypeError, ValueError, OverflowError):
        raise DataError(f"a coordinate is {value!r:.20}, not a number") from None
    if number != number or number in (float("inf"), float("-inf")):
        raise DataError("a coordinate is not a finite number")
    return number


def _check_within(what: str, x: float, y: float, size: tuple[int, int] | None) -> None:
    if size is None:
        return
    for at, side in ((x, size[1]), (y, size[0])):
        if not -1 - _BEYOND * side <= at <= side * (1 + _BEYOND) + 1:
            raise DataError(
                f"a {what} reaches {x:g}, {y:g}, out of its image of {size[1]} × {size[0]} pixels"
            )


def _labelled(mark: dict[str, Any], label: Any) -> dict[str, Any]:
    return mark if label is None or label == "" else mark | {"label": str(label)}
