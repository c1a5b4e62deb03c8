"""MLflow: assessments of traces, in traces or as a list of their own.

A trace is an item, or a span of it if the assessment has one; the column `trace` has the trace. The
name of an assessment is the question. An annotator is `source_id`, or the question where that is
"default": as it is if the source is HUMAN, `model:…` if it is LLM_JUDGE, `code:…` if it is CODE.
Expectations are gold. Feedback with an error, and what was overridden, is left out.
"""

from __future__ import annotations

from typing import Any

from msgspec import Struct

from ...base.names import text
from ..collecting import Collected, describe
from ..format import Export, Format, Head
from ..json_records import records
from ..sources import Source
from .inspect_ai import Scorer, add_score, options_of

_KINDS: dict[str, Any] = {
    "HUMAN": "person",
    "LLM_JUDGE": "model",
    "AI_JUDGE": "model",
    "CODE": "code",
}
_NOBODY = "default"

Name = str | int | float | None
Gold = list[tuple[str, str, list[Any]]]  # question, item, options


class Origin(Struct, gc=False):
    """Who gave an assessment."""

    source_type: str | None = None
    source_id: Name = None


class Feedback(Struct, gc=False):
    """A label, or the error that prevented it."""

    value: Any = None
    error: Any = None


class Expectation(Struct, gc=False):
    """A known label; with parts, it is serialized and cannot be one."""

    value: Any = None


class Assessment(Struct, gc=False):
    """One feedback or expectation."""

    name: Name = None
    assessment_name: Name = None
    source: Origin | None = None
    trace_id: Name = None
    span_id: Name = None
    feedback: Feedback | None = None
    expectation: Expectation | None = None
    error: Any = None
    valid: bool | None = True
    create_time_ms: float | int | None = None
    create_time: str | None = None


class Info(Struct, gc=False):
    """What is known of a trace besides its spans."""

    trace_id: Name = None
    request_id: Name = None
    request_preview: str | None = None
    response_preview: str | None = None
    assessments: list[Assessment] | None = None


class Trace(Struct, gc=False):
    """A trace, or a row of `search_traces`."""

    info: Info | None = None
    trace_id: Name = None
    assessments: list[Assessment] | None = None


class Record(Assessment, gc=False):
    """An assessment, a trace, or an object that holds many."""

    info: Info | None = None
    assessments: list[Assessment] | None = None
    traces: list[Trace] | None = None


def recognises(head: Head) -> bool:
    """Return whether records are assessments with a source type, or traces with assessments."""
    whole = head.whole if head.shape == "object" else {}
    for name in ("traces", "assessments"):
        entries = whole.get(name)
        if isinstance(entries, list) and entries:
            return all(isinstance(entry, dict) and _is_ours(entry) for entry in entries)
    candidates = [whole] if head.shape == "object" else head.records
    return head.all_records(_is_ours) and any(map(_has_assessments, candidates))


def _is_ours(record: dict[str, Any]) -> bool:
    return _is_assessment(record) or _assessments_of(record) is not None


def _is_assessment(record: Any) -> bool:
    if not isinstance(record, dict) or not ("feedback" in record or "expectation" in record):
        return False
    source = record.get("source")
    has_name = "assessment_name" in record or "name" in record
    return has_name and isinstance(source, dict) and "source_type" in source


def _assessments_of(record: dict[str, Any]) -> list[Any] | None:
    """Return the assessments of a trace, which may be none."""
    info = record.get("info")
    if isinstance(info, dict) and ("trace_id" in info or "request_id" in info):
        assessments = info.get("assessments") or []
    else:
        assessments = record.get("assessments") if "trace_id" in record else None
    is_ours = isinstance(assessments, list) and all(map(_is_assessment, assessments))
    return assessments if is_ours else None


def _has_assessments(record: dict[str, Any]) -> bool:
    return _is_assessment(record) or bool(_assessments_of(record))


def read(source: Source) -> Export:
    """Return every question that assessments answer."""
    collection = Collected()
    gold: Gold = []
    for _, record in records(source, Record):
        for trace in record.traces or ():
            _add_trace(collection, trace, gold)
        if record.info is not None or record.assessments is not None:
            _add_trace(collection, record, gold)
        elif record.feedback is not None or record.expectation is not None:
            _add(collection, record, None, gold)
    for question, item, options in gold:
        if question in collection.questions:
            collection[question].add_gold(item, options)
        else:
            collection.left["expectations for questions that nobody answered"] += 1
    return collection.export(texts=True)


def _add_trace(collection: Collected, trace: Trace | Record, gold: Gold) -> None:
    """Add the assessments of one trace."""
    info = trace.info or Info()
    name = info.trace_id or info.request_id or trace.trace_id or None
    entries = info.assessments or trace.assessments or ()
    if name is not None and entries:
        previews = {"request": info.request_preview, "response": info.response_preview}
        collection.items.name(name, describe(previews))
    on_trace = any(entry.feedback and entry.span_id in (None, "") for entry in entries)
    if name is not None and (on_trace or not any(entry.feedback for entry in entries)):
        collection.items.names[text(name)] = None
    elif name is not None:
        collection.items.names.pop(text(name), None)  # its spans are the items
    for entry in entries:
        _add(collection, entry, name, gold)


def _add(collection: Collected, assessment: Assessment, trace_id: Name, gold: Gold) -> None:
    """Add one assessment."""
    raw_name, trace = assessment.assessment_name or assessment.name, assessment.trace_id or trace_id
    if not raw_name or not trace:
        collection.leave_out("without a name or a trace")
        return
    question, trace = text(raw_name), text(trace)
    item = trace if assessment.span_id in (None, "") else f"{trace}/{text(assessment.span_id)}"
    if assessment.valid is False:
        collection.leave_out("overridden", item, question=question)
    elif assessment.expectation is not None:
        value = assessment.expectation.value
        options = None if isinstance(value, list) else options_of(value)
        if options is None:
            collection.left["expectations that are no label"] += 1
        else:
            gold.append((question, item, options))
    elif assessment.feedback is None:
        collection.leave_out("without feedback", item, question=question)
    elif assessment.error or assessment.feedback.error:
        collection.leave_out("with an error", item, question=question)
    else:
        origin = assessment.source or Origin()
        kind = _KINDS.get((origin.source_type or "").upper())
        source_id = origin.source_id
        name = question if source_id in (None, "", _NOBODY) else text(source_id)
        when: Any = assessment.create_time
        if assessment.create_time_ms is not None:
            when = assessment.create_time_ms / 1000
        by, value = Scorer(kind, name), assessment.feedback.value
        add_score(collection, question, item, value, by=by, time=when, trace=trace)


FORMAT = Format("mlflow", recognises=recognises, read=read, kinds=("sets",))
