"""A relation that grows: annotations in the order in which they came.

Names get codes when they first appear. Every annotation knows the one before it on the same item,
so the labels of some items are found without looking at the others.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from .._names import Names, as_names, code, numbered, smallest_dtype, text
from .._relation import Array, Floats, Integers
from ..annotations import Annotations, Part

__all__ = ["Growing"]

_ROOM = 16  # annotators that there is room for at first


class Growing:
    """What annotators said so far."""

    def __init__(self, classes: Sequence[Any] | None = None) -> None:
        self.items: dict[str, int] = {}
        self.annotators: dict[str, int] = {}
        self.classes: Names = as_names(classes or [])
        self.room = _ROOM  # annotators up to which nothing has to be made wider
        self._columns = {name: np.zeros(0, dtype=np.int64) for name in _COLUMNS}
        self._last = np.zeros(0, dtype=np.int64)  # (item): its latest annotation, or -1
        self.size = 0

    def __len__(self) -> int:
        return self.size

    @property
    def n_items(self) -> int:
        """How many items there are."""
        return len(self.items)

    def column(self, name: str) -> Integers:
        """Return `item`, `annotator`, `label` or `before` of all annotations, as they came."""
        return self._columns[name][: self.size]

    def add(self, item: Sequence[Any], annotator: Sequence[Any], label: Sequence[Any]) -> bool:
        """Add annotations; return whether there are new classes, or more annotators than room."""
        labels = [text(name) for name in label]
        known = {name: position for position, name in enumerate(self.classes.tolist())}
        wider = not known.keys() >= set(labels)
        if wider:
            known = self._more_classes(labels)
        items, annotators = _codes(item, self.items), _codes(annotator, self.annotators)
        given = np.array([known[name] for name in labels], dtype=np.int64)
        if len(self.annotators) > self.room:
            wider, self.room = True, 2 * len(self.annotators)
        self._append(items, annotators, given)
        return wider

    def part(self, items: Integers) -> Part:
        """Return some items, by code, as the methods see them."""
        here, position = self._last[items], np.arange(len(items))
        rows = [(position[:0], here[:0])]
        while len(position):
            found = here >= 0
            position, here = position[found], here[found]
            rows.append((position, here))
            here = self._columns["before"][here]
        whose, row = (np.concatenate(one) for one in zip(*rows, strict=True))
        annotator, label = (self._columns[name][row] for name in ("annotator", "label"))
        order = np.lexsort((label, annotator, whose))
        return self._part(np.bincount(whose, minlength=len(items)), annotator[order], label[order])

    def whole(self) -> Part:
        """Return all items."""
        return self.annotations().part(0, self.n_items)

    def annotations(self, *, named: bool = False) -> Annotations:
        """Return all annotations; codes are those here, and names only if asked for."""
        return Annotations.from_codes(
            self.column("item"),
            self.column("annotator"),
            self.column("label"),
            items=as_names(self.items) if named else self.n_items,
            annotators=as_names(self.annotators) if named else numbered(self.room),
            classes=self.classes,
        )

    def kept(self) -> dict[str, Any]:
        """Return all of it as arrays and lists, for `restored`."""
        columns = {name: self.column(name) for name in _COLUMNS[:3]}
        names = {"items": list(self.items), "annotators": list(self.annotators)}
        return {**columns, **names, "classes": self.classes.tolist(), "room": self.room}

    @classmethod
    def restored(cls, kept: dict[str, Any]) -> Growing:
        """Return what was kept."""
        made = cls(kept["classes"])
        made.room = kept["room"]
        made.items = {name: position for position, name in enumerate(kept["items"])}
        made.annotators = {name: position for position, name in enumerate(kept["annotators"])}
        made._append(*(np.asarray(kept[name], dtype=np.int64) for name in _COLUMNS[:3]))
        return made

    def _part(self, sizes: Integers, annotator: Array, label: Array) -> Part:
        index = np.concatenate([[0], np.cumsum(sizes)])
        return Part(
            0,
            len(sizes),
            index,
            annotator.astype(smallest_dtype(self.room)),
            label.astype(smallest_dtype(len(self.classes))),
            np.ones(len(label)),
            self.room,
            len(self.classes),
        )

    def _more_classes(self, labels: Sequence[str]) -> dict[str, int]:
        """Take new classes among the others, in natural order."""
        old = self.classes
        self.classes = code([*old.tolist(), *labels])[1]
        known = {name: position for position, name in enumerate(self.classes.tolist())}
        if self.size:
            moved = np.array([known[name] for name in old.tolist()])
            self.column("label")[:] = moved[self.column("label")]
        return known

    def _append(self, item: Integers, annotator: Integers, label: Integers) -> None:
        start, stop = self.size, self.size + len(item)
        self._last = _longer(self._last, self.n_items, -1)
        order = np.argsort(item, kind="stable")
        ordered, rows = item[order], order + start
        first = np.ones(len(item), dtype=bool)
        first[1:] = ordered[1:] != ordered[:-1]
        before = np.empty(len(item), dtype=np.int64)
        before[order] = np.where(first, self._last[ordered], np.concatenate([[-1], rows[:-1]]))
        self._last[ordered] = rows  # the last one of an item stays
        for name, values in zip(_COLUMNS, (item, annotator, label, before), strict=True):
            self._columns[name] = _longer(self._columns[name], stop, 0)
            self._columns[name][start:stop] = values
        self.size = stop


_COLUMNS = ("item", "annotator", "label", "before")


def _codes(names: Sequence[Any], known: dict[str, int]) -> Integers:
    return np.array([known.setdefault(text(name), len(known)) for name in names], dtype=np.int64)


def _longer(values: Any, size: int, fill: float) -> Any:
    """Return an array of at least this length, with room for more."""
    if len(values) >= size:
        return values
    longer = np.full((max(size, 2 * len(values)), *values.shape[1:]), fill, dtype=values.dtype)
    longer[: len(values)] = values
    return longer


def widened(posterior: Floats, n_items: int) -> Floats:
    """Return beliefs with room for more items."""
    return _longer(posterior, n_items, 0.0)
