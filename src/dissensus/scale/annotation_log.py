"""A growing log of annotations, and the batches that it grows by.

In the log names get codes when they first appear, and every annotation points to the one before it
on the same item, so the labels of some items are found without looking at the others.

A batch is a file of its own, whole or not there.
"""

from __future__ import annotations

import io
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from ..answers.annotations import Annotations, Integers, Part
from ..base.arrays import smallest_dtype
from ..base.files import atomic_file
from ..base.names import Names, abbreviate, as_names, code, numbered, text
from ..base.panics import without_panics
from ..base.storage import damage
from ..errors import DataError
from ..formats.columns import NEEDED

_COLUMNS = ("item", "annotator", "label", "before")
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
        codes = {name: position for position, name in enumerate(self.classes.tolist())}
        wider = not codes.keys() >= set(labels)
        if wider:
            codes = self._more_classes(labels)
        items, annotators = _codes(item, self.items), _codes(annotator, self.annotators)
        label_codes = np.array([codes[name] for name in labels], dtype=np.int64)
        if len(self.annotators) > self.room:
            wider, self.room = True, 2 * len(self.annotators)
        self._append(items, annotators, label_codes)
        return wider

    def check(self, label: Sequence[Any]) -> None:
        """Refuse a label that is not among the declared classes."""
        foreign = {text(name) for name in label} - set(self.classes.tolist()) if self.closed else ()
        if foreign:
            names = abbreviate(self.classes)
            raise DataError(f"label {min(foreign)!r} is not among the classes {names}")

    def part(self, items: Integers) -> Part:
        """Return some items, by code, as the methods see them."""
        latest, position = self._last[items], np.arange(len(items))
        rows = [(position[:0], latest[:0])]
        while len(position):
            has_row = latest >= 0
            position, latest = position[has_row], latest[has_row]
            rows.append((position, latest))
            latest = self._columns["before"][latest]
        item, row = (np.concatenate(parts) for parts in zip(*rows, strict=True))
        annotator, label = (self._columns[name][row] for name in ("annotator", "label"))
        order = np.lexsort((label, annotator, item))
        sizes = np.bincount(item, minlength=len(items))
        return Part(
            start=0,
            stop=len(items),
            index=np.concatenate([[0], np.cumsum(sizes)]),
            annotator=annotator[order].astype(smallest_dtype(self.room)),
            label=label[order].astype(smallest_dtype(len(self.classes))),
            ones=np.ones(len(label)),
            n_annotators=self.room,
            n_classes=len(self.classes),
        )

    def whole(self) -> Part:
        """Return all items."""
        return self.annotations().part(0, self.n_items)

    def annotations(self, *, with_names: bool = False) -> Annotations:
        """Return all annotations with the codes of the log, and names on request."""
        return Annotations.from_codes(
            self.column("item"),
            self.column("annotator"),
            self.column("label"),
            items=as_names(self.items) if with_names else self.n_items,
            annotators=as_names(self.annotators) if with_names else numbered(self.room),
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
        codes = {name: position for position, name in enumerate(self.classes.tolist())}
        if self.size:
            moved = np.array([codes[name] for name in old.tolist()])
            self.column("label")[:] = moved[self.column("label")]
        return codes

    def _append(self, item: Integers, annotator: Integers, label: Integers) -> None:
        start, stop = self.size, self.size + len(item)
        self._last = longer(self._last, self.n_items, -1)
        order = np.argsort(item, kind="stable")
        ordered, rows = item[order], order + start
        begins = np.ones(len(item), dtype=bool)
        begins[1:] = ordered[1:] != ordered[:-1]
        previous = np.empty(len(item), dtype=np.int64)
        previous[order] = np.where(begins, self._last[ordered], np.concatenate([[-1], rows[:-1]]))
        self._last[ordered] = rows  # the last one of an item stays
        for name, values in zip(_COLUMNS, (item, annotator, label, previous), strict=True):
            self._columns[name] = longer(self._columns[name], stop, 0)
            self._columns[name][start:stop] = values
        self.size = stop


def _codes(names: Sequence[Any], codes: dict[str, int]) -> Integers:
    return np.array([codes.setdefault(text(name), len(codes)) for name in names], dtype=np.int64)


def longer(values: Any, size: int, fill: float) -> Any:
    """Return an array of at least this length, with room for more."""
    if len(values) >= size:
        return values
    longer = np.full((max(size, 2 * len(values)), *values.shape[1:]), fill, dtype=values.dtype)
    longer[: len(values)] = values
    return longer


class AnnotationBatch(NamedTuple):
    """New annotations by name, perhaps with ids, and notes about their source."""

    item: Sequence[str]
    annotator: Sequence[str]
    label: Sequence[str]
    ids: Sequence[str | None] | None
    notes: dict[str, Any]


def write_batch(path: Path, batch: AnnotationBatch) -> None:
    """Write a batch: a line of notes, then the table."""
    columns: dict[str, Sequence[Any]] = {
        "item": batch.item,
        "annotator": batch.annotator,
        "label": batch.label,
    }
    if batch.ids is not None:
        columns["id"] = batch.ids
    body = io.BytesIO()
    frame = pl.DataFrame({name: list(values) for name, values in columns.items()})
    frame.cast(pl.String).write_ipc_stream(body, compression="lz4")
    with atomic_file(path) as draft, draft.open("wb") as file:
        file.write(json.dumps(batch.notes).encode() + b"\n")
        file.write(body.getbuffer())


def read_batch(path: Path) -> AnnotationBatch:
    """Read a batch that `write_batch` wrote."""
    with damage(f"{path}: a damaged batch of a stream"), without_panics(), path.open("rb") as file:
        notes = json.loads(file.readline())
        frame = pl.read_ipc_stream(io.BytesIO(file.read()))
        frame.select("item", "annotator", "label")
        dict(notes["seen"])
    ids = frame["id"].to_list() if "id" in frame.columns else None
    item, annotator, label = (frame[role].to_list() for role in NEEDED)
    return AnnotationBatch(item, annotator, label, ids=ids, notes=notes)
