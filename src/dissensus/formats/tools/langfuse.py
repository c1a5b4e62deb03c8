"""Langfuse: scores, as a JSON list, JSON lines, or the pages of its interface (`data`).

An item is what was scored: an observation, otherwise a trace or session. The name of a score is
the question. ANNOTATION is a person, `authorUserId`; EVAL is a model, `model:<name of the score>`;
of scores that came in through the API the kind is not recorded, and their annotator is `api`:
`--models api` or `--people api` decides. Categories, truth values and numbers are read; texts and
corrections are left out. The trace and the environment are columns.
"""

from __future__ import annotations

from typing import Any

from msgspec import Struct, field

from ...base.names import text
from ...errors import Note
from ..collecting import Collected
from ..format import Export, Format, Head
from ..json_records import records
from ..sources import Source
from .inspect_ai import Scorer, add_score

_SOURCES = ("ANNOTATION", "EVAL", "API")
_API = "api"

Name = str | int | float | None


class Subject(Struct, gc=False, rename="camel"):
    """What was scored, in version 3 of the interface."""

    kind: str | None = None
    id: Name = None
    trace_id: Name = None


class Score(Struct, gc=False, rename="camel"):
    """One score, or a page of them."""

    name: Name = None
    source: str | None = None
    data_type: str | None = None
    value: Any = None
    string_value: Any = None
    observation_id: Name = None
    trace_id: Name = None
    session_id: Name = None
    dataset_run_id: Name = None
    subject: Subject | None = None
    author_user_id: Name = None
    timestamp: str | int | float | None = None
    environment: str | None = None
    data: list[Score] | None = field(default=None)


def recognises(head: Head) -> bool:
    """Return whether records have a name, a data type, and the source ANNOTATION, EVAL or API."""
    pages = head.whole.get("data") if head.shape == "object" else None
    if isinstance(pages, list) and pages:
        return all(isinstance(score, dict) and _is_score(score) for score in pages)
    return head.all_records(_is_score)


def _is_score(record: dict[str, Any]) -> bool:
    has_fields = {"name", "dataType"} <= record.keys() and record.get("source") in _SOURCES
    return has_fields and ("value" in record or "stringValue" in record)


def read(source: Source) -> Export:
    """Return every question that scores answer."""
    collection = Collected()
    unknown = 0
    for number, record in records(source, Score):
        for score in record.data if record.data is not None else [record]:
            unknown += _add(collection, score, source, number)
    if unknown:
        collection.notes.append(
            Note(
                f"scores by {_API}: {unknown}, of unknown kind",
                remedy="decides",
                models=_API,
                people=_API,
            )
        )
    return collection.export(texts=True)


def _add(collection: Collected, score: Score, source: Source, number: int) -> bool:
    """Add one score; return whether the kind of its annotator is unknown."""
    subject = score.subject or Subject()
    ids = (score.observation_id, subject.id, score.trace_id, score.session_id, score.dataset_run_id)
    item = next((text(name) for name in ids if name not in (None, "")), None)
    if item is None or score.name in (None, ""):
        raise source.fail(f"record {number}: a score without a name or without what was scored")
    if score.data_type in ("TEXT", "CORRECTION"):
        collection.leave_out("that are texts or corrections", item)
        return False
    question = text(score.name)
    trace = score.trace_id or subject.trace_id or (subject.id if subject.kind == "trace" else None)
    about: Any = {"trace": text(trace) if trace else None, "environment": score.environment}
    by, time = _scorer(score, question), score.timestamp
    if not add_score(collection, question, item, _value(score), by=by, time=time, **about):
        return False
    if score.data_type == "NUMERIC" and question in collection.questions:
        collection[question].kind = "numeric"
    return by.kind is None


def _scorer(score: Score, question: str) -> Scorer:
    match score.source:
        case "ANNOTATION":
            return Scorer("person", text(score.author_user_id or "unknown author"))
        case "EVAL":
            return Scorer("model", question)
        case _:
            return Scorer(None, _API)


def _value(score: Score) -> Any:
    """Return a category, a truth value or a number; numbers for truth values are 0 and 1."""
    match score.data_type:
        case "CATEGORICAL":
            return score.value if score.string_value is None else score.string_value
        case "BOOLEAN":
            return bool(score.value) if isinstance(score.value, (int, float)) else None
        case "NUMERIC":
            return score.value if isinstance(score.value, (int, float)) else None
    return score.value


FORMAT = Format("langfuse", recognises=recognises, read=read)
