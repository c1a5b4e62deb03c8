"""A growing log of annotations, in the order of their arrival.

Names get codes when they first appear. Every annotation points to the one before it on the same
item, so the labels of some items are found without looking at the others.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..base.names import Names, abbreviate, as_names, code, numbered, text
from ..base.arrays import smallest_dtype
from ..answers.annotations import Annotations, Integers, Part
from ..errors import DataError

_ROOM = 16  # initial capacity for annotators


class AnnotationLog:
    """The annotations so far."""

    def __init__(self, classes: Sequence[Any] | None = None) -> None:
        self.items: dict[str, int] = {}
        self.annotators: dict[str, int] = {}
        self.classes: Names = as_names(classes or [])
        self.closed = bool(classes)  # whether there are no others
        self.room = _ROOM  # capacity for annotators
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
        """Return `item`, `annotator`, `label` or `before` of all annotations, as they arrived."""
        return self._columns[name][: self.size]

    def add(self, item: Sequence[Any], annotator: Sequence[Any], label: Sequence[Any]) -> bool:
        """Add annotations; return whether there are new classes, or too many annotators."""
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

    def check(self, label: Sequence[Any]) -> None:
        """Refuse a label that is not among the declared classes."""
        other = {text(name) for name in label} - set(self.classes.tolist()) if self.closed else ()
        if other:
            known = abbreviate(self.classes)
            raise DataError(f"label {min(other)!r} is not among the classes {known}")

    def part(self, items: Integers) -> Part:
        """Return some items, by code, as the methods see them."""
        here, position = self._last[items], np.arange(len(items))
        rows = [(position[:0], here[:0])]
        while len(position):
            more = here >= 0
            position, here = position[more], here[more]
            rows.append((position, here))
            here = self._columns["before"][here]
        item, row = (np.concatenate(one) for one in zip(*rows, strict=True))
        annotator, label = (self._columns[name][row] for name in ("annotator", "label"))
        order = np.lexsort((label, annotator, item))
        sizes = np.bincount(item, minlength=len(items))
        return Part(
            0,
            len(items),
            np.concatenate([[0], np.cumsum(sizes)]),
            annotator[order].astype(smallest_dtype(self.room)),
            label[order].astype(smallest_dtype(len(self.classes))),
            np.ones(len(label)),
            self.room,
            len(self.classes),
        )

    def whole(self) -> Part:
        """Return all items."""
        return self.annotations().part(0, self.n_items)

    def annotations(self, *, named: bool = False) -> Annotations:
        """Return all annotations with the codes of the log, and names on request."""
        return Annotations.from_codes(
            self.column("item"),
            self.column("annotator"),
            self.column("label"),
            items=as_names(self.items) if named else self.n_items,
            annotators=as_names(self.annotators) if named else numbered(self.room),
            classes=self.classes,
        )

    def state(self) -> dict[str, Any]:
        """Return the log as arrays and lists, for `from_state`."""
        columns = {name: self.column(name) for name in _COLUMNS[:3]}
        names = {"items": list(self.items), "annotators": list(self.annotators)}
        classes = {"classes": self.classes.tolist(), "closed": self.closed}
        return {**columns, **names, **classes, "room": self.room}

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> AnnotationLog:
        """Return the log with this state."""
        log = cls(state["classes"])
        log.closed = bool(state["closed"])
        log.room = int(state["room"])
        log.items = {name: position for position, name in enumerate(state["items"])}
        log.annotators = {name: position for position, name in enumerate(state["annotators"])}
        log._append(*(np.asarray(state[name], dtype=np.int64) for name in _COLUMNS[:3]))
        return log

    def _more_classes(self, labels: Sequence[str]) -> dict[str, int]:
        """Add new classes, in natural order among the others."""
        old = self.classes
        self.classes = code([*old.tolist(), *labels])[1]
        known = {name: position for position, name in enumerate(self.classes.tolist())}
        if self.size:
            moved = np.array([known[name] for name in old.tolist()])
            self.column("label")[:] = moved[self.column("label")]
        return known

    def _append(self, item: Integers, annotator: Integers, label: Integers) -> None:
        start, stop = self.size, self.size + len(item)
        self._last = longer(self._last, self.n_items, -1)
        order = np.argsort(item, kind="stable")
        ordered, rows = item[order], order + start
        first = np.ones(len(item), dtype=bool)
        first[1:] = ordered[1:] != ordered[:-1]
        before = np.empty(len(item), dtype=np.int64)
        before[order] = np.where(first, self._last[ordered], np.concatenate([[-1], rows[:-1]]))
        self._last[ordered] = rows  # the last one of an item stays
        for name, values in zip(_COLUMNS, (item, annotator, label, before), strict=True):
            self._columns[name] = longer(self._columns[name], stop, 0)
            self._columns[name][start:stop] = values
        self.size = stop


_COLUMNS = ("item", "annotator", "label", "before")


def _codes(names: Sequence[Any], known: dict[str, int]) -> Integers:
    return np.array([known.setdefault(text(name), len(known)) for name in names], dtype=np.int64)


def longer(values: Any, size: int, fill: float) -> Any:
    """Return an array of at least this length, with room for more."""
    if len(values) >= size:
        return values
    longer = np.full((max(size, 2 * len(values)), *values.shape[1:]), fill, dtype=values.dtype)
    longer[: len(values)] = values
    return longer
