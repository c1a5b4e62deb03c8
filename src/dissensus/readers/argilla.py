"""Argilla: records with their responses, nested (`to_json`) or flattened (lists and Parquet).

A nested record keeps `responses` as question → who said what; a flat one has columns
`question.responses`, `question.responses.users` and `question.responses.status` in parallel. Only
submitted responses count. Suggestions are answers by `model:<agent>`. Labels, several labels and
ratings are read; rankings, spans and prose are left out.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import polars as pl

from .._names import text
from ._answers import Answers, Gathered, describe, joined
from ._json import entries, records
from .exports import Export, Head, head_of
from .sources import Source

__all__ = ["read", "recognises"]

_RESPONSES, _SUGGESTION = ".responses", ".suggestion"
_ABOUT = ("id", "status", "_server_id", "inserted_at", "updated_at", "external_id")

Record = dict[str, Any]


def recognises(head: Head) -> bool:
    """Return whether records have fields and responses, or columns like `mood.responses.users`."""
    if head.shape == "table":
        return _is_flat(head.names)
    if head.shape == "object" and _is_record(_whole(head)):
        return True
    if head.shape not in ("records", "object"):
        return False
    return bool(head.records) and all(map(_is_record, head.records))


def _whole(head: Head) -> Record:
    return dict(zip(head.names, head.first, strict=False))


def _is_flat(names: Any) -> bool:
    known = set(names)
    return any(
        str(name).endswith(_RESPONSES) and f"{name}.users" in known for name in known
    ) or any(str(name).endswith(_SUGGESTION) and f"{name}.agent" in known for name in known)


def _is_record(record: Record) -> bool:
    if _is_flat(record):
        return True
    if not isinstance(record.get("fields"), dict):
        return False
    return isinstance(record.get("responses"), dict) or isinstance(record.get("suggestions"), dict)


def read(source: Source) -> Export:
    """Return every question of a data set."""
    found = Gathered()
    orders: dict[str, set[tuple[str, ...]]] = {}  # lists as they were given: rankings differ so
    states: set[Any] = set()
    for where, record in _all(source):
        fields = record.get("fields")
        if isinstance(fields, dict):
            item = found.items.name(_name(record), describe(fields))
            responses, suggestions = _nested(record, where, source)
        else:
            told = {n: v for n, v in record.items() if n not in _ABOUT and "." not in n}
            item = found.items.name(_name(record), describe(told))
            responses, suggestions = _flat(record, where, source)
        if item is None:
            raise source.fail(f"{where}: neither an id nor any field")
        for question, value, by, status in responses:
            states.add(_plain(status))
            if status not in (None, "submitted"):
                found.left[f"{status} responses"] += 1
            elif by is None or by == "":
                found.left["responses without a user"] += 1
            else:
                label = _label(found, question, value, orders)
                if label is not None:
                    found[question].add(item, text(by), label)
        for question, value, agent, score in suggestions:
            label = _label(found, question, value, orders)
            if label is not None:
                found[question].add_model(item, agent, label, score)
    for question, seen in orders.items():
        if question in found.questions and _are_rankings(seen):
            found.left[f"rankings in answer to {question!r}"] += len(found[question].label)
            del found.questions[question]
    if states == {None}:
        found.notes.append("the export does not say which responses are only drafts")
    return found.export(drop_texts=True)


def _name(record: Record) -> Any:
    given = record.get("id")
    return given if isinstance(given, (str, int, float)) else None


def _label(
    found: Gathered, question: str, value: Any, orders: dict[str, set[tuple[str, ...]]]
) -> str | None:
    """Return a value as a label; what cannot be one is counted."""
    if value is None or value == "":
        found.left["responses without a value"] += 1
        return None
    if isinstance(value, dict) or (
        isinstance(value, list) and any(isinstance(one, (dict, list)) for one in value)
    ):
        found.left[f"spans or ranks in answer to {question!r}"] += 1
        return None
    answers: Answers = found[question]
    if isinstance(value, list):
        answers.kind = "multiple"
        orders.setdefault(question, set()).add(tuple(map(text, value)))
        return joined(value)
    if isinstance(value, (int, float)) and not isinstance(value, bool) and answers.kind == "single":
        answers.kind = "ordinal"
    return joined([value])


def _are_rankings(seen: set[tuple[str, ...]]) -> bool:
    """Return whether all lists have the same options, two or more, in more than one order."""
    return len(seen) > 1 and len({frozenset(one) for one in seen}) == 1 and len(min(seen)) > 1


Response = tuple[str, Any, Any, Any]  # question, value, user, status; or value, agent, score


def _nested(record: Record, where: str, source: Source) -> tuple[list[Response], list[Response]]:
    responses: list[Response] = []
    for question, given in _dict(record.get("responses"), where, "responses", source).items():
        for one in _list(given, where, question, source):
            annotations = _dict(one, where, question, source)
            responses.append(
                (question, annotations.get("value"), _id(annotations), annotations.get("status"))
            )
    suggestions: list[Response] = []
    for question, one in _dict(record.get("suggestions"), where, "suggestions", source).items():
        annotations = _dict(one, where, question, source)
        if annotations:
            told = (annotations.get("value"), annotations.get("agent"), annotations.get("score"))
            suggestions.append((question, *told))
    return responses, suggestions


def _flat(record: Record, where: str, source: Source) -> tuple[list[Response], list[Response]]:
    responses: list[Response] = []
    suggestions: list[Response] = []
    for name, value in record.items():
        if name.endswith(_SUGGESTION) and value is not None:
            told = (value, record.get(f"{name}.agent"), record.get(f"{name}.score"))
            suggestions.append((name.removesuffix(_SUGGESTION), *told))
        if not name.endswith(_RESPONSES) or value is None:
            continue
        values = _list(value, where, name, source)
        users = _list(record.get(f"{name}.users"), where, f"{name}.users", source)
        status = _list(record.get(f"{name}.status"), where, name, source) or [None] * len(values)
        if not len(values) == len(users) == len(status):
            raise source.fail(f"{where}: {len(values)} {name} but {len(users)} users")
        question = name.removesuffix(_RESPONSES)
        responses += [
            (question, *one) for one in zip(values, map(_plain, users), status, strict=True)
        ]
    return responses, suggestions


def _id(annotations: Record) -> Any:
    return _plain(annotations.get("user_id"))


def _plain(value: Any) -> Any:
    return value if isinstance(value, (str, int, float)) else None


def _dict(value: Any, where: str, name: str, source: Source) -> Record:
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise source.fail(f"{where}: {name}: expected an object, got {type(value).__name__}")
    return value


def _list(value: Any, where: str, name: str, source: Source) -> list[Any]:
    if value is None:
        return []
    if not isinstance(value, list):
        raise source.fail(f"{where}: {name}: expected a list, got {type(value).__name__}")
    return value


def _all(source: Source) -> Iterator[tuple[str, Record]]:
    """Yield every record with words for where it stands."""
    if source.format in ("parquet", "arrow"):
        yield from _rows(source)
        return
    head = head_of(source)
    if head is not None and head.shape == "object" and not _is_record(_whole(head)):
        for name, record in entries(source, Record):
            yield repr(name), {"id": name, **record}
        return
    for number, record in records(source, Record):
        yield f"record {number}", record


def _rows(source: Source) -> Iterator[tuple[str, Record]]:
    from .tables import read_columns

    frame = read_columns(source, None)
    wanted = [
        name
        for name, kind in frame.schema.items()
        if name == "id"
        or kind == pl.String
        or any(mark in name for mark in (_RESPONSES, _SUGGESTION))
    ]
    for number, row in enumerate(frame.select(wanted).iter_rows(named=True), 1):
        yield f"row {number}", row
