"""OpenAI evals: the log of a run as JSON lines, a specification, events and a final report.

A sample is an item. In events of the type `metrics` a grading model gives its choice, which is the
question `choice`; without a choice every metric is a question. The model is `model:<completion
function>`, the last one of the run; metrics of an evaluation that asks no model are by
`code:<evaluation>`, and so is `correct` in events of the type `match`. The column `system` has the
first completion function. Invalid choices and errors are left out.
"""

from __future__ import annotations

from typing import Any

from msgspec import Struct

from ...base.names import text
from ..collecting import Collected
from ..format import Export, Format, Head
from ..json_records import records
from ..sources import Source
from .inspect_ai import Scorer, add_score

_INVALID = "__invalid__"
_META = "metascore"
_EVENT = {"run_id", "event_id", "sample_id", "type", "data"}


class Spec(Struct, gc=False):
    """What was run."""

    completion_fns: list[Any] | None = None
    eval_name: str | None = None
    run_config: Any = None


class Event(Struct, gc=False):
    """One line of a log."""

    spec: Spec | None = None
    sample_id: str | int | float | None = None
    type: str | None = None
    data: Any = None
    created_at: str | int | float | None = None


def recognises(head: Head) -> bool:
    """Return whether lines are a specification of a run, and events of samples."""
    return head.all_records(_is_line)


def _is_line(record: dict[str, Any]) -> bool:
    spec = record.get("spec")
    if isinstance(spec, dict):
        return "completion_fns" in spec or "eval_name" in spec
    return record.keys() >= _EVENT or "final_report" in record


def read(source: Source) -> Export:
    """Return the choices, metrics and matches of every sample."""
    collection = Collected()
    spec = Spec()
    for _, event in records(source, Event):
        spec = event.spec or spec
        if event.type == "error":
            sample = event.sample_id
            collection.leave_out("with an error", None if sample is None else text(sample))
        elif event.type in ("metrics", "match") and isinstance(event.data, dict):
            if event.sample_id in (None, ""):
                collection.leave_out("without a sample")
            else:
                _add(collection, event, event.data, spec)
    return collection.export(texts=True)


def _add(collection: Collected, event: Event, data: dict[str, Any], spec: Spec) -> None:
    """Add what one event records of a sample."""
    fns = [text(function) for function in spec.completion_fns or ()]
    item, system = text(event.sample_id), fns[0] if fns else None
    code = Scorer("code", spec.eval_name or "evaluation")
    if event.type == "match":
        values, scorer = {"correct": data.get("correct")}, code
    elif "choice" in data:
        values, scorer = {"choice": data["choice"]}, Scorer("model", fns[-1] if fns else "grader")
    else:
        values = {name: value for name, value in data.items() if not name.endswith(_META)}
        graded = "modelgraded" in str(spec.run_config)
        scorer = Scorer("model", fns[-1] if fns else "grader") if graded else code
    for question, value in values.items():
        if value == _INVALID:
            collection.leave_out("with an invalid choice", item, question=question)
        else:
            time = event.created_at
            add_score(collection, question, item, value, by=scorer, time=time, system=system)


FORMAT = Format("openai-evals", recognises=recognises, read=read, kinds=("sets",))
