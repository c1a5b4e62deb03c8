"""Potato: its output folder, the state of one user, and its exports (JSON lines, CSV, TSV).

The folder has one for each user, with `user_state.json` or, from older versions,
`annotated_instances.jsonl`; the folder of the whole task is read, too. A scheme is a question. Its
options are the labels, several at once where several were ticked; points of a Likert scale are in
order. Fields whose values differ (sliders, numbers, ratings of several things) are questions of
their own. Free text, spans and pages of a survey are left out. Annotators that are declared as
tools or language models are `model:<name>`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from ...base.names import text
from ...errors import DataError
from ..collecting import Collected
from ..format import Export, Format, Head, head_of
from ..json_records import load, records
from ..sources import Source, open_source
from ..tables import read_columns

STATE, INSTANCES, ASSIGNED = (
    "user_state.json",
    "annotated_instances.jsonl",
    "assigned_user_data.json",
)
_LABELS = "instance_id_to_label_to_value"
_BETWEEN = ":::"  # scheme and option, in a table
_ABOUT = ("instance_id", "user_id", "user", "displayed_text")
_ORIGIN = "annotator_origin"
_LONGEST = 1e15  # milliseconds that an answer may take
_POINT = re.compile(r"(?:scale_)?(-?\d+)")
_TIME = re.compile(r"(?:(\d+)d)?\s*(?:(\d+)h)?\s*(?:(\d+)m)?\s*(\d+)s")
_FIELDS = ("", "slider", "range", "number", "text_box", "select-one")  # hold a value
_WRITTEN = "free_response"  # the text beside an option

Record = dict[str, Any]


class Answer(NamedTuple):
    """What one user answered about one item: scheme → option → value."""

    user: str
    item: str
    text: str | None
    schemes: Mapping[str, Mapping[str, Any]]
    is_model: bool
    seconds: float | None = None


def recognises(head: Head) -> bool:
    """Return whether folders hold states of users, or records and columns are schemes by user."""
    if head.shape == "folder":
        return any(name.endswith((f"/{STATE}", f"/{INSTANCES}")) for name in head.names)
    if head.shape == "object":
        return "user_id" in head.names and any(n.startswith("instance_id_") for n in head.names)
    if head.shape == "table":
        marked = any(_BETWEEN in name for name in head.names)
        return "instance_id" in head.names and (marked or _is_flat(head.names))
    return head.all_records(_is_record)


def _is_flat(names: Iterable[str]) -> bool:
    columns = [*names]
    return "user_id" in columns and any("." in name and name.split(".")[0] for name in columns)


def _is_record(record: Record) -> bool:
    if isinstance(record.get("label_annotations"), dict):
        return True
    has_names = "instance_id" in record and "user_id" in record
    return has_names and isinstance(record.get("labels"), dict)


def read(source: Source) -> Export:
    """Return every scheme as a question."""
    collection = Collected()
    by_scheme: dict[str, list[tuple[Answer, Mapping[str, Any]]]] = {}
    for answer in _answers(source):
        if answer.item.endswith(".html"):
            collection.leave_out("on pages of a survey")
            continue
        item = collection.items.name(answer.item, answer.text)
        answered = False
        for scheme, options in answer.schemes.items():
            ticked = {
                name: value for name, value in options.items() if _is_chosen(value, len(options))
            }
            if item is not None and ticked:
                by_scheme.setdefault(scheme, []).append((answer, ticked))
                answered = True
        if not answered:
            collection.leave_out("without an answer", item, answer.user)
    for scheme, answers in by_scheme.items():
        _add(collection, scheme, answers)
    return collection.export(texts=True)


def _add(
    collection: Collected, scheme: str, answers: list[tuple[Answer, Mapping[str, Any]]]
) -> None:
    """Add the answers to one scheme: its options are labels, or fields with values."""
    values: dict[str, set[str]] = {}
    for _, ticked in answers:
        for name, value in ticked.items():
            values.setdefault(name, set()).add(text(value).lower())
    written = values.pop(_WRITTEN, None)
    if written is not None:
        collection.left[f"free text beside {scheme!r}"] += sum(_WRITTEN in g for _, g in answers)
    if len(values) > 1:
        values.pop("", None)  # what an export adds to options of its own
    fields = {name for name, distinct in values.items() if len(distinct) > 1 or name in _FIELDS}
    points = {name: _POINT.fullmatch(name) for name in values}
    for answer, ticked in answers:
        options = [name for name in ticked if name in values and name not in fields]
        if options:
            if all(points.values()) and len(points) > 1:
                collection[scheme].kind = "ordinal"
            labels = [match[1] if (match := points[name]) else name for name in options]
            _add_one(collection, scheme, answer, labels)
        for name in fields & ticked.keys():
            question = scheme if len(values) == 1 else f"{scheme}: {name}"
            _add_one(collection, question, answer, [text(ticked[name])])


def _add_one(collection: Collected, question: str, answer: Answer, options: list[str]) -> None:
    if answer.is_model:
        collection[question].add_model(answer.item, answer.user, options)
    else:
        collection[question].add(answer.item, answer.user, options, duration=answer.seconds)


def _is_chosen(value: Any, count: int) -> bool:
    if value is None or value is False or isinstance(value, (dict, list)):
        return False
    plain = text(value).strip().lower()
    return plain not in ("", "false") and not (plain == "0" and count > 1)


def _answers(source: Source) -> Iterator[Answer]:
    """Yield the answers in a folder, a state, records or a table."""
    if source.format == "folder":
        return _of_folder(source)
    if source.format in ("csv", "tsv", "parquet", "arrow"):
        return _of_table(source)
    head = head_of(source)
    if head is not None and head.shape == "object" and "label_annotations" not in head.names:
        return _of_state(source, None, {})
    return _of_records(source, None)


def _of_folder(source: Source) -> Iterator[Answer]:
    folder = Path(str(source.content))
    users = sorted(
        {
            file.parent
            for depth in ("*", "*/*")
            for name in (STATE, INSTANCES)
            for file in folder.glob(f"{depth}/{name}")
        }
    )
    if not users:
        raise source.fail(f"no folder of a user with {STATE}")
    for user in users:
        instances = user / INSTANCES
        if not (user / STATE).exists():
            yield from _of_records(open_source(instances, "jsonl"), user.name)
            continue
        texts = _texts(user / ASSIGNED)
        if instances.exists() and instances.stat().st_size:
            answers = _of_records(open_source(instances, "jsonl"), user.name)
            texts |= {answer.item: answer.text for answer in answers if answer.text}
        yield from _of_state(open_source(user / STATE, "json"), user.name, texts)


def _texts(path: Path) -> dict[str, str]:
    """Return the texts of the items that a user was assigned, where older versions kept them."""
    if not path.exists():
        return {}
    try:
        assigned = load(open_source(path, "json"))
    except DataError:
        return {}  # labels are complete without it
    texts = {}
    for item, data in assigned.items() if isinstance(assigned, dict) else ():
        body = (data.get("displayed_text") or data.get("text")) if isinstance(data, dict) else None
        if isinstance(body, str):
            texts[item] = body
    return texts


def _of_state(source: Source, folder: str | None, texts: Mapping[str, str]) -> Iterator[Answer]:
    state = load(source)
    if not isinstance(state, dict) or not isinstance(state.get(_LABELS, {}), dict):
        raise source.fail(f"should be an object with {_LABELS}")
    user = state.get("user_id") or folder
    if not isinstance(user, (str, int)):
        raise source.fail("no user_id in it")
    origin = state.get("origin")
    kind = origin.get("kind") if isinstance(origin, dict) else None
    behaviour = state.get("instance_id_to_behavioral_data")
    behaviour = behaviour if isinstance(behaviour, dict) else {}
    for item, labels in state.get(_LABELS, {}).items():
        seconds = _seconds(behaviour.get(item))
        schemes = _schemes(labels, source, item)
        about: Any = {"is_model": _is_model(kind), "seconds": seconds}
        yield Answer(text(user), item, texts.get(item), schemes, **about)


def _schemes(labels: Any, source: Source, item: str) -> dict[str, dict[str, Any]]:
    """Return scheme → option → value, from that or from pairs of {schema, name} and value."""
    if isinstance(labels, dict):
        return {
            scheme: dict(options) if isinstance(options, dict) else {"": options}
            for scheme, options in labels.items()
        }
    schemes: dict[str, dict[str, Any]] = {}
    for pair in labels if isinstance(labels, list) else [None]:
        match pair:
            case [{"schema": str(scheme), "name": str(name)}, value]:
                schemes.setdefault(scheme, {})[name] = value
            case _:
                raise source.fail(f"{item!r}: labels as no version of Potato has them")
    return schemes


def _of_records(source: Source, folder: str | None) -> Iterator[Answer]:
    for number, record in records(source, Record):
        item = record.get("instance_id", record.get("id"))
        if not isinstance(item, (str, int)):
            raise source.fail(f"record {number}: no id")
        user = record.get("user_id") or record.get("user") or folder
        if not isinstance(user, (str, int)):
            raise source.fail(f"record {number}: no user; name the folder of all users instead")
        origin = record.get(_ORIGIN)
        kind = origin.get("kind") if isinstance(origin, dict) else origin
        displayed = record.get("displayed_text")
        schemes = _schemes(
            record.get("label_annotations", record.get("labels")) or {}, source, text(item)
        )
        seconds = _seconds(record.get("behavioral_data"))
        body = displayed if isinstance(displayed, str) else None
        about: Any = {"is_model": _is_model(kind), "seconds": seconds}
        yield Answer(text(user), text(item), body, schemes, **about)


def _of_table(source: Source) -> Iterator[Answer]:
    frame = read_columns(source, None)
    user_column = "user" if "user" in frame.columns else "user_id"
    if user_column not in frame.columns or "instance_id" not in frame.columns:
        raise source.fail("no columns instance_id and user_id, or user")
    marked = any(_BETWEEN in name for name in frame.columns)
    fields = {
        name: name.partition(_BETWEEN if marked else ".")[::2]
        for name in frame.columns
        if name not in _ABOUT
        and not name.startswith((_ORIGIN, "span_annotation"))
        and not name.endswith(("._spans", "._room", "._room_id"))
        and (not marked or _BETWEEN in name)
    }
    for number, row in enumerate(frame.iter_rows(named=True), 1):
        if row["instance_id"] is None or row[user_column] is None:
            raise source.fail(f"row {number}: no instance or no user")
        schemes: dict[str, dict[str, Any]] = {}
        for name, (scheme, option) in fields.items():
            if row[name] is not None:
                schemes.setdefault(scheme, {})[option] = row[name]
        body = row.get("displayed_text")
        user, item = text(row[user_column]), text(row["instance_id"])
        yield Answer(user, item, body, schemes, is_model=_is_model(row.get(_ORIGIN)))


def _is_model(kind: Any) -> bool:
    return kind in ("tool", "llm")


def _seconds(behaviour: Any) -> float | None:
    """Return how long an answer took, as any version kept it."""
    if not isinstance(behaviour, dict):
        return None
    for name, unit in (("total_time_ms", 1e-3), ("time_spent", 1.0)):
        value = behaviour.get(name)
        if isinstance(value, (int, float)) and 0 < value < _LONGEST:
            return float(value) * unit
    match = _TIME.search(str(behaviour.get("time_string", "")))
    if match is None:
        return None
    days, hours, minutes, seconds = (int(part or 0) for part in match.groups())
    return float(((days * 24 + hours) * 60 + minutes) * 60 + seconds)


FORMAT = Format("potato", recognises=recognises, read=read, kinds=("sets", "texts"))
