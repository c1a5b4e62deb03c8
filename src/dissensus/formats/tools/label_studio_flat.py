"""Label Studio's flat exports: a record or row for each annotation, a column for each control.

Columns of the task and columns of controls are mixed. JSON-MIN, and CSV whose columns are not
sorted, have the controls between `id` and `annotator`. In a sorted CSV a control is a column that
holds choices as JSON, or that differs between the annotators of one task.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import msgspec
import polars as pl

from ...base.names import text
from ..collecting import Collected, describe
from ..format import Export
from ..json_records import records
from ..sources import Source
from ..tables import read_columns
from .label_studio import FLAT, Value, is_local, options_of

_OTHER = ("id", "created_at", "updated_at", "agreement", "history")
_VALUES = ("choices", "rating", "number", "taxonomy", "selected", "text", "labels")
_MANY = 20
_EMPTY: tuple[Any, ...] = (None, "", [])

Columns = dict[str, list[Any]]

_decode: Callable[[str], Any] = msgspec.json.Decoder(Any).decode


def read(source: Source) -> Export:
    """Return every control as a question."""
    columns, controls = _load(source) if "json" in source.format else _from_table(source)
    n_rows = len(columns["annotator"])
    columns.setdefault("created_at", [None] * n_rows)
    collection = Collected()
    candidates = [name for name in columns if name not in (*FLAT, *_OTHER)]
    ids = _texts(columns.get("id", [None] * n_rows))
    people = _texts(columns["annotator"])
    profiles = {name: _Profile(columns[name], ids) for name in candidates}
    answer_columns = {name for name in candidates if name in controls and not profiles[name].unique}
    if not answer_columns:
        answer_columns = {
            name for name in candidates if profiles[name].structured or profiles[name].differs
        }
        answer_columns = answer_columns or {name for name in candidates if profiles[name].repeats}
        constant = [
            name for name in candidates if name not in answer_columns and profiles[name].repeats
        ]
        if constant:
            collection.notes.append(
                f"the same for everybody, so read as data: {', '.join(constant)}"
            )
    if not answer_columns:
        raise source.fail("no column differs between annotators; export the tasks as JSON instead")
    data = [name for name in candidates if name not in answer_columns]
    questions = [name for name in candidates if name in answer_columns]
    item_of: dict[str, str] = {}  # the data of a task are in each of its rows; once is enough
    for row in range(n_rows):
        by, key = people[row], ids[row]
        item = item_of.get(key) if key else None
        if item is None:
            body = describe({name: columns[name][row] for name in data})
            item = collection.items.name(key, body)
            if item is None:
                raise source.fail(f"row {row + 1}: neither an id nor any data")
            item_of[key] = item
        if not by:
            collection.leave_out("without an annotator", item)
            continue
        if all(columns[name][row] in _EMPTY for name in questions):
            collection.leave_out("without an answer", item, by)
        for name in questions:
            _add(collection, columns, name=name, row=row, item=item, by=by)
    return collection.export(texts=True)


class _Profile:
    """How the values of a column that may be a control vary between items and annotators."""

    def __init__(self, values: list[Any], ids: Sequence[str]) -> None:
        self.structured = any(
            isinstance(value, (dict, list)) and _is_value(value) for value in values
        )
        value_of: dict[str, str] = {}
        distinct: set[str] = set()
        self.differs = self.repeats = self.unique = False
        if self.structured:
            return
        for item, value in zip(ids, values, strict=True):
            if value in _EMPTY:
                continue
            name = value if type(value) is str else text(value)
            distinct.add(name)
            if value_of.setdefault(item, name) != name:
                self.differs = True
        self.repeats = 0 < len(distinct) < max(2, len(value_of) / 2)
        # Each of many items has its own value, whoever annotated it: this is no choice.
        self.unique = not self.differs and len(distinct) > max(_MANY, len(value_of) / 2)


def _is_value(value: Any) -> bool:
    if isinstance(value, list):
        return bool(value) and all(_is_value(part) for part in value)
    return isinstance(value, dict) and any(name in value for name in _VALUES)


def _add(
    collection: Collected, columns: Columns, *, name: str, row: int, item: str, by: str
) -> None:
    """Add one control's answer."""
    value = columns[name][row]
    if value in _EMPTY:
        return
    parts = value if isinstance(value, list) else [value]
    options: list[Any] = []
    for part in parts:
        if not isinstance(part, dict):
            options.append(part)
            continue
        try:
            answer = msgspec.convert(part, Value, strict=False)
        except msgspec.ValidationError:
            answer = Value()
        answer_options = options_of(answer)
        if is_local(answer) or answer_options is None:
            reason = "about spans, boxes or other regions" if is_local(answer) else "in free text"
            collection.leave_out(reason, item, by, question=name)
            return
        options += answer_options
        if answer.rating is not None:
            collection[name].kind = "ordinal"
        elif answer.number is not None:
            collection[name].kind = "numeric"
    collection[name].several |= len(options) != 1
    time, duration = columns["created_at"][row], _seconds(columns["lead_time"][row])
    collection[name].add(item, by, options, time=time, duration=duration)


def _texts(values: list[Any]) -> list[str]:
    """Return values as names, each made once; nothing is the empty text."""
    names: dict[Any, str] = {}
    plain = [value if isinstance(value, (str, int, float)) else None for value in values]
    for value in plain:
        if value not in names:
            names[value] = "" if value is None else text(value)
    return [names[value] for value in plain]


def _seconds(value: Any) -> float | None:
    try:
        return None if value is None or value == "" else float(value)
    except (TypeError, ValueError, OverflowError):
        return None


def _load(source: Source) -> tuple[Columns, set[str]]:
    """Return JSON-MIN as columns, and the controls by their position in the records."""
    columns: Columns = {"annotator": [], "lead_time": []}
    texts: dict[str, str] = {}  # texts are there for every annotation; one of each is kept
    controls: dict[tuple[str, ...], list[str]] = {}
    for number, record in records(source, dict[str, Any]):
        if "annotator" not in record:
            raise source.fail(f"record {number}: no annotator")
        names = tuple(record)
        if names not in controls:
            controls[names] = _between(names)
            for name in names:
                columns.setdefault(name, [None] * (number - 1))
        for name, column in columns.items():
            value = record.get(name)
            column.append(texts.setdefault(value, value) if type(value) is str else value)
    return columns, {name for names in controls.values() for name in names}


def _from_table(source: Source) -> tuple[Columns, set[str]]:
    """Return CSV as columns, and the controls by their position unless columns are sorted."""
    frame = read_columns(source, None)
    columns = {name: _parsed(frame[name]) for name in frame.columns}
    ordered = frame.columns == sorted(frame.columns)
    return columns, set() if ordered else set(_between(frame.columns))


def _between(names: Sequence[str]) -> list[str]:
    if "id" not in names or "annotator" not in names:
        return []
    return list(names[names.index("id") + 1 : names.index("annotator")])


def _parsed(column: pl.Series) -> list[Any]:
    """Return cells with the JSON in them decoded, once for each that differs."""
    if column.dtype != pl.String:
        return column.to_list()
    cells = {value: _cell(value) for value in column.unique()}
    return [cells[value] for value in column]


def _cell(value: Any) -> Any:
    if not isinstance(value, str) or not value.startswith(("{", "[")):
        return value
    try:
        parsed = _decode(value)
    except (msgspec.MsgspecError, RecursionError):
        return value
    return parsed if _is_value(parsed) or parsed == [] else value
