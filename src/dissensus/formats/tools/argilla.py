"""Argilla: records with their responses, nested (`to_json`) or flattened (lists, tables, CSV).

A nested record has `responses`, question → values and users; a flat one has columns
`question.responses`, `question.responses.users` and `question.responses.status` in parallel. Only
submitted responses count. Suggestions are answers by `model:<agent>`. Labels, several labels and
ratings are classes; spans, rankings and texts are questions of their kinds. An empty list is an
empty answer. In a CSV, lists are read as pandas writes them: `['pos', 'neg']`, or `['pos' 'neg']`.

Written are records for Argilla 2, as `records.from_json` takes them. Annotations are responses,
one for each user. A result is a suggestion with its score, and the
method is the agent.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple
from uuid import UUID

import polars as pl

from ...base.names import text
from ...errors import DataError
from ..cells import parse_list
from ..collecting import (
    About,
    Collected,
    QuestionAnswers,
    describe,
    is_free_text,
    located,
    model_name,
    options_of_label,
    span,
)
from ..content import MODEL, ONE_SCORE, Content
from ..format import Export, Format, Head, Kind, Target, head_of
from ..json_records import entries, records
from ..sources import Source
from ..tables import FOLDER, line_of_row, read_columns

_CLASSES = ("single", "ordinal", "sets")  # kinds that are collected as options
_RESPONSES, _SUGGESTION, _SCORE = ".responses", ".suggestion", ".suggestion.score"
_LISTS = re.compile(r"\.responses(\.users|\.status)?$")
_WHOLE = re.compile(r"(-?\d{1,15})\.0")
_ABOUT = ("id", "status", "_server_id", "inserted_at", "updated_at", "external_id")

Record = dict[str, Any]
Response = tuple[str, Any, Any, Any]  # question, value, user, status; or value, agent, score


def recognises(head: Head) -> bool:
    """Return whether records have fields and responses, or columns like `mood.responses.users`."""
    if head.shape == "table":
        return _is_flat(head.names)
    if head.all_records(_is_record):
        return True
    return head.shape == "object" and bool(head.records) and all(map(_is_record, head.records))


def _is_flat(names: Any) -> bool:
    columns = set(names)
    return any(
        str(name).endswith(_RESPONSES) and f"{name}.users" in columns for name in columns
    ) or any(str(name).endswith(_SUGGESTION) and f"{name}.agent" in columns for name in columns)


def _is_record(record: Record) -> bool:
    if _is_flat(record):
        return True
    if not isinstance(record.get("fields"), dict):
        return False
    return isinstance(record.get("responses"), dict) or isinstance(record.get("suggestions"), dict)


def read(source: Source) -> Export:
    """Return every question of a data set."""
    collection = Collected()
    answers: list[Answer] = []
    states: set[Any] = set()
    for where, record in _all(source):
        fields = record.get("fields")
        if isinstance(fields, dict):
            item = collection.items.name(_plain(record.get("id")), describe(fields))
            answered = _nested(record, where, source)
        else:
            inputs = {n: v for n, v in record.items() if n not in _ABOUT and "." not in n}
            item = collection.items.name(_plain(record.get("id")), describe(inputs))
            answered = _flat(record, where, source)
        if item is None:
            raise source.fail(f"{where}: neither an id nor any field")
        responses, suggestions = answered
        for question, value, by, status in responses:
            states.add(_plain(status))
            if status not in (None, "submitted"):
                person = None if by is None else text(by)
                collection.leave_out(text(status), item, person, question=question)
            elif by is None or by == "":
                collection.leave_out("without a user", item, question=question)
            else:
                answers.append(Answer(question, item, text(by), value=value, where=where))
        for question, value, agent, score in suggestions:
            about = About(confidence=score if isinstance(score, (int, float)) else None, model=True)
            answers.append(Answer(question, item, agent, value=value, where=where, about=about))
    kinds = _kinds(answers)
    for answer in answers:
        with located(source, answer.where):
            _add(collection, answer, kinds[answer.question])
    if states == {None}:
        collection.notes.append("the export does not mark responses that are only drafts")
    return collection.export()


class Answer(NamedTuple):
    """One response or suggestion."""

    question: str
    item: str
    by: Any
    value: Any
    where: str
    about: About = About()


def _kinds(answers: Sequence[Answer]) -> dict[str, Kind]:
    """Return the kind of every question, by all of its answers."""
    by_question: dict[str, list[Any]] = {}
    for answer in answers:
        by_question.setdefault(answer.question, []).append(answer.value)
    return {
        question: _kind([value for value in values if value not in (None, "")])
        for question, values in by_question.items()
    }


def _kind(values: Sequence[Any]) -> Kind:
    lists = [value for value in values if isinstance(value, list)]
    marks = [mark for value in lists for mark in value if isinstance(mark, dict)]
    if marks:
        return "spans" if any("start" in mark for mark in marks) else "rankings"
    if lists:
        orders = {tuple(map(text, options)) for options in lists}
        return "rankings" if _are_rankings(orders) else "sets"
    if values and all(isinstance(v, (int, float)) and not isinstance(v, bool) for v in values):
        return "ordinal"
    return "texts" if is_free_text([text(value) for value in values]) else "single"


def _add(collection: Collected, answer: Answer, kind: Kind) -> None:
    """Add one answer to its question; what cannot be one is counted."""
    question, item, _, value, _, about = answer
    if value is None or value == "":
        person = None if about.model else answer.by
        collection.leave_out("without a value", item, person, question=question)
        return
    if kind in _CLASSES:
        if isinstance(value, dict) or any(isinstance(v, (dict, list)) for v in _as_list(value)):
            raise DataError(f"the answer to {question!r} is an object, others are labels")
        answers: QuestionAnswers = collection[question]
        answers.kind, answers.several = kind, kind == "sets"
        if about.model:
            answers.add_model(item, answer.by, _as_list(value), about.confidence)
        else:
            answers.add(item, answer.by, _as_list(value))
        return
    by = model_name(answer.by) if about.model else answer.by
    if kind == "spans":
        value = [_span(mark, question) for mark in _as_list(value)]
    elif kind == "rankings":
        value = [_ranked(option, question) for option in _as_list(value)]
    else:
        value = text(value)
    collection.of_kind(question, kind).add(item, by, value, about)


def _span(mark: Any, question: str) -> dict[str, Any]:
    if not isinstance(mark, dict):
        raise DataError(f"the answer to {question!r} should be a list of spans")
    return span(mark.get("start"), mark.get("end"), mark.get("label"))


def _ranked(option: Any, question: str) -> Any:
    if not isinstance(option, dict):
        return text(option)
    if "value" not in option or not isinstance(option.get("rank", 1), int):
        raise DataError(f"the answer to {question!r} should be a list of value and rank")
    return option


def _as_list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def _are_rankings(lists: set[tuple[str, ...]]) -> bool:
    """Return whether all lists have the same options, two or more, in more than one order."""
    return (
        len(lists) > 1
        and len({frozenset(options) for options in lists}) == 1
        and len(min(lists)) > 1
    )


def _nested(record: Record, where: str, source: Source) -> tuple[list[Response], list[Response]]:
    responses: list[Response] = []
    for question, answers in _dict(record.get("responses"), where, "responses", source).items():
        for answer in _list(answers, where, question, source):
            response = _dict(answer, where, question, source)
            user = _plain(response.get("user_id"))
            responses.append((question, response.get("value"), user, response.get("status")))
    suggestions: list[Response] = []
    for question, answer in _dict(record.get("suggestions"), where, "suggestions", source).items():
        suggestion = _dict(answer, where, question, source)
        if suggestion:
            about = (suggestion.get("agent"), suggestion.get("score"))
            suggestions.append((question, suggestion.get("value"), *about))
    return responses, suggestions


def _flat(record: Record, where: str, source: Source) -> tuple[list[Response], list[Response]]:
    responses: list[Response] = []
    suggestions: list[Response] = []
    for name, value in record.items():
        if name.endswith(_SUGGESTION) and value is not None:
            about = (record.get(f"{name}.agent"), record.get(f"{name}.score"))
            suggestions.append((name.removesuffix(_SUGGESTION), value, *about))
        if not name.endswith(_RESPONSES) or value is None:
            continue
        values = _list(value, where, name, source)
        users = _list(record.get(f"{name}.users"), where, f"{name}.users", source)
        status = _list(record.get(f"{name}.status"), where, name, source) or [None] * len(values)
        if not len(values) == len(users) == len(status):
            raise source.fail(f"{where}: {len(values)} {name} but {len(users)} users")
        question = name.removesuffix(_RESPONSES)
        responses += [
            (question, *response)
            for response in zip(values, map(_plain, users), status, strict=True)
        ]
    return responses, suggestions


def _plain(value: Any) -> Any:
    return value if isinstance(value, (str, int, float)) else None


def _dict(value: Any, where: str, name: str, source: Source) -> Record:
    if not isinstance(value, dict | None):
        raise source.fail(f"{where}: {name}: expected an object, got {type(value).__name__}")
    return value or {}


def _list(value: Any, where: str, name: str, source: Source) -> list[Any]:
    if not isinstance(value, list | None):
        raise source.fail(f"{where}: {name}: expected a list, got {type(value).__name__}")
    return value or []


def _all(source: Source) -> Iterator[tuple[str, Record]]:
    """Yield every record with its number or name, for messages."""
    if source.format in ("csv", "tsv"):
        yield from _cells(source)
        return
    if source.format in ("parquet", "arrow", FOLDER):
        yield from _rows(source)
        return
    head = head_of(source)
    if head is not None and head.shape == "object" and not _is_record(head.whole):
        for name, record in entries(source, Record):
            yield repr(name), {"id": name, **record}
        return
    for number, record in records(source, Record):
        yield f"record {number}", record


def _cells(source: Source) -> Iterator[tuple[str, Record]]:
    """Yield the rows of a CSV, in whose cells lists are texts."""
    frame = read_columns(source, None)
    lists = {name for name in frame.columns if _LISTS.search(name)}
    for number, row in enumerate(frame.iter_rows(named=True)):
        record: Record = {}
        for name, cell in row.items():
            record[name] = cell
            if name in lists and cell is not None:
                values = parse_list(cell)
                if values is None and cell.strip().lower() not in ("", "nan", "none"):
                    where = line_of_row(source, number)
                    raise source.fail(f"{where}: {name}: not a list: {cell[:40]!r}")
                record[name] = values
            elif name.endswith(_SUGGESTION) and cell is not None:
                whole = _WHOLE.fullmatch(cell)  # pandas writes 4 as 4.0 where others are missing
                record[name] = parse_list(cell) or (int(whole[1]) if whole else cell)
            elif name.endswith(_SCORE) and cell is not None:
                record[name] = _number(cell)
        yield f"row {number + 1}", record


def _number(cell: str) -> float | None:
    try:
        return float(cell)
    except ValueError:
        return None


def _rows(source: Source) -> Iterator[tuple[str, Record]]:
    frame = read_columns(source, None)
    names = [
        name
        for name, kind in frame.schema.items()
        if name == "id"
        or kind == pl.String
        or any(mark in name for mark in (_RESPONSES, _SUGGESTION))
    ]
    for number, row in enumerate(frame.select(names).iter_rows(named=True), 1):
        yield f"row {number}", row


def write(content: Content) -> Iterator[dict[str, Any]]:
    """Yield a record for every item: with its responses, or the label of a result as suggestion."""
    return _suggested(content) if content.is_result else _answered(content)


def _answered(content: Content) -> Iterator[dict[str, Any]]:
    confidence, by_model = content.column("confidence"), content.by_model
    for item, positions in content.items():
        responses, suggestion = [], None
        for position in positions:
            value = _value(content, content.answers[position])
            annotator = content.annotators[position]
            if not by_model[position]:
                responses.append({"value": value, "user_id": annotator})
            elif suggestion is None:
                score = None if confidence is None else confidence[position]
                suggestion = {
                    "value": value,
                    "score": score,
                    "agent": annotator.removeprefix(MODEL),
                }
        yield _record(content, item, responses, suggestion)


def _suggested(content: Content) -> Iterator[dict[str, Any]]:
    for item, label, score in content.labels():
        suggestion = None
        if label is not None:
            suggestion = {"value": _value(content, label), "score": score, "agent": content.method}
        yield _record(content, item, [], suggestion)


def clashes(content: Content) -> list[str]:
    """Return how many annotators Argilla does not know, and how many labels of models are lost."""
    if content.is_result:
        return [ONE_SCORE]
    sentences, by_model = [], content.by_model
    if content.kind == "single" and is_free_text([*map(str, content.answers)]):
        sentences.append("the labels look like free text: they are read back as texts, not classes")
    unknown = [name for name in content.people if not _is_uuid(name)]
    if unknown:
        sentences.append(
            f"{len(unknown)} annotators are no ids of Argilla's users (UUID), such as "
            f"{unknown[0]!r}: Argilla takes responses only of users it knows"
        )
    n_lost = sum(
        max(sum(by_model[position] for position in positions) - 1, 0)
        for _, positions in content.items()
    )
    if n_lost:
        sentences.append(f"{n_lost} labels of models are left out: a record has one suggestion")
    return sentences


def _record(
    content: Content, item: str, responses: list[Any], suggestion: dict[str, Any] | None
) -> dict[str, Any]:
    return {
        "id": item,
        "fields": {"text": content.texts.get(item, item)},
        "metadata": {},
        "suggestions": {} if suggestion is None else {content.question: suggestion},
        "responses": {content.question: responses} if responses else {},
        "vectors": {},
    }


def _value(content: Content, answer: Any) -> Any:
    if content.kind == "sets":
        return options_of_label(answer)
    if content.kind == "ordinal" and isinstance(answer, str) and answer.isdigit():
        return int(answer)
    return answer


def _is_uuid(name: str) -> bool:
    try:
        UUID(name)
    except ValueError:
        return False
    return True


FORMAT = Format(
    "argilla",
    recognises=recognises,
    read=read,
    kinds=("sets", "rankings", "texts", "spans"),
    labels=Target(
        summary="records with responses, or with suggestions for a result",
        kinds=("json", "jsonl"),
        write=write,
        holds=frozenset({"unlabelled", "repeats", "texts", "ordinal"}),
        columns=("source",),
        clashes=clashes,
    ),
)
