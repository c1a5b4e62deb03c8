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
from ..format import Export, Head
from ..json_records import records
from ..sources import Source
from .inspect_ai import Scorer, add_score, label_of

_KINDS: dict[str, Any] = {
    "HUMAN": "person",
    "LLM_JUDGE": "model",
    "AI_JUDGE": "model",
    "CODE": "code",
}
_NOBODY = "default"

Name = str | int | float | None


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
        given = whole.get(name)
        if isinstance(given, list) and given:
            return all(isinstance(one, dict) and _is_ours(one) for one in given)
    some = [whole] if head.shape == "object" else head.records
    return head.all_records(_is_ours) and any(map(_some, some))


def _is_ours(record: dict[str, Any]) -> bool:
    return _is_assessment(record) or _given(record) is not None


def _is_assessment(record: Any) -> bool:
    if not isinstance(record, dict) or not ("feedback" in record or "expectation" in record):
        return False
    source = record.get("source")
    named = "assessment_name" in record or "name" in record
    return named and isinstance(source, dict) and "source_type" in source


def _given(record: dict[str, Any]) -> list[Any] | None:
    """Return the assessments of a trace, which may be none."""
    info = record.get("info")
    if isinstance(info, dict) and ("trace_id" in info or "request_id" in info):
        given = info.get("assessments") or []
    else:
        given = record.get("assessments") if "trace_id" in record else None
    return given if isinstance(given, list) and all(map(_is_assessment, given)) else None


def _some(record: dict[str, Any]) -> bool:
    return _is_assessment(record) or bool(_given(record))


def read(source: Source) -> Export:
    """Return every question that assessments answer."""
    collected = Collected()
    gold: list[tuple[str, str, str]] = []
    for _, record in records(source, Record):
        for trace in record.traces or ():
            _add_trace(collected, trace.info, trace.trace_id, trace.assessments, gold)
        if record.info is not None or record.assessments is not None:
            _add_trace(collected, record.info, record.trace_id, record.assessments, gold)
        elif record.feedback is not None or record.expectation is not None:
            _add(collected, record, None, gold)
    for question, item, label in gold:
        if question in collected.questions:
            collected[question].add_gold(item, label)
        else:
            collected.left["expectations for questions that nobody answered"] += 1
    return collected.export(texts=True)


def _add_trace(
    collected: Collected,
    info: Info | None,
    trace_id: Name,
    assessments: list[Assessment] | None,
    gold: list[tuple[str, str, str]],
) -> None:
    """Add the assessments of one trace."""
    info = info or Info()
    name = next((one for one in (info.trace_id, info.request_id, trace_id) if one), None)
    given = info.assessments or assessments or ()
    if name is not None and given:
        shown = {"request": info.request_preview, "response": info.response_preview}
        collected.items.name(name, describe(shown))
    on_trace = any(one.feedback and one.span_id in (None, "") for one in given)
    if name is not None and (on_trace or not any(one.feedback for one in given)):
        collected.items.names[text(name)] = None
    elif name is not None:
        collected.items.names.pop(text(name), None)  # its spans are the items
    for one in given:
        _add(collected, one, name, gold)


def _add(
    collected: Collected, one: Assessment, trace_id: Name, gold: list[tuple[str, str, str]]
) -> None:
    """Add one assessment."""
    named, trace = one.assessment_name or one.name, one.trace_id or trace_id
    if not named or not trace:
        collected.leave_out("without a name or a trace")
        return
    question, trace = text(named), text(trace)
    item = trace if one.span_id in (None, "") else f"{trace}/{text(one.span_id)}"
    if one.valid is False:
        collected.leave_out("overridden", item, question=question)
    elif one.expectation is not None:
        label = None if isinstance(one.expectation.value, list) else label_of(one.expectation.value)
        if label is None:
            collected.left["expectations that are no label"] += 1
        else:
            gold.append((question, item, label))
    elif one.feedback is None:
        collected.leave_out("without feedback", item, question=question)
    elif one.error or one.feedback.error:
        collected.leave_out("with an error", item, question=question)
    else:
        origin = one.source or Origin()
        kind = _KINDS.get((origin.source_type or "").upper())
        given = origin.source_id
        name = question if given in (None, "", _NOBODY) else text(given)
        when: Any = one.create_time
        if one.create_time_ms is not None:
            when = one.create_time_ms / 1000
        scorer = Scorer(kind, name)
        add_score(collected, question, scorer, item, one.feedback.value, when, trace=trace)
