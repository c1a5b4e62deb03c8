"""Small logs of judges, written by the libraries that define their formats.

`python benchmarks/run.py judge judge_logs FOLDER` writes what is in `tests/fixtures`: logs of
inspect (`inspect_ai`), assessments of MLflow (`mlflow-skinny`), scores of Langfuse (`langfuse`) and
a run of OpenAI evals (`evals`). A library that is not installed is skipped. The fixture of
promptfoo, which is no Python library, is written by hand from its type definitions.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

NOW = datetime(2026, 1, 5, 8, 0, 0, 250_000, tzinfo=UTC)
MILLISECONDS = int(NOW.timestamp() * 1000)
ANN, BOB = "ann@example.org", "bob@example.org"


def write_inspect(folder: Path) -> None:
    """Write one log of two samples in two epochs, as a zip and as JSON."""
    from inspect_ai.log import (
        EvalConfig,
        EvalDataset,
        EvalLog,
        EvalSample,
        EvalSpec,
        ProvenanceData,
        edit_score,
        write_eval_log,
    )
    from inspect_ai.log._log import EvalScorer
    from inspect_ai.scorer import Score, ScoreEdit

    def sample(name: str | int, epoch: int, grade: str, words: float) -> EvalSample:
        scores = {
            "model_graded_qa": Score(value=grade, explanation="…"),
            "tone_judge": Score(value="C" if name == "q1" else "I"),
            "match": Score(value="I"),
            "overlap": Score(value=words),
            "aspects": Score(value={"clear": 4, "kind": None if epoch == 2 else 2}),
            "broken": Score.unscored(reason="grader_failed"),
        }
        return EvalSample(
            id=name,
            epoch=epoch,
            input="What is 2 + 2?" if name == "q1" else [{"role": "user", "content": "Capital?"}],
            target="4",
            scores=scores,
            completed_at=NOW.isoformat(),
        )

    samples = [
        sample("q1", 1, "C", 0.5),
        sample("q1", 2, "I", 0.25),
        sample(2, 1, "P", 1.0),
        sample(2, 2, "N", float("nan")),
        EvalSample(id="q3", epoch=1, input="Why?", target="", scores=None),
        EvalSample(
            id="q4",
            epoch=1,
            input="Who?",
            target="",
            scores={"match": Score(value="C")},
            invalidation=ProvenanceData(author=ANN, timestamp=NOW),
        ),
    ]
    scorers = [
        EvalScorer(name="model_graded_qa", options={"model": "openai/gpt-4o"}),
        EvalScorer(name="tone_judge", options={"model": "openai/gpt-4o-mini"}),
        *(EvalScorer(name=name) for name in ("match", "overlap", "aspects", "broken")),
    ]
    spec = EvalSpec(
        created=NOW.isoformat(),
        task="sums",
        dataset=EvalDataset(name="sums", samples=4),
        model="openai/gpt-4o",
        config=EvalConfig(epochs=2),
        scorers=scorers,
    )
    log = EvalLog(status="success", eval=spec, samples=samples)

    def edit(name: str, value: Any, author: str) -> None:
        provenance = ProvenanceData(author=author, timestamp=NOW)
        edit_score(log, "q1", name, ScoreEdit(value=value, provenance=provenance), epoch=1)

    edit("model_graded_qa", "P", ANN)
    edit("model_graded_qa", "I", ANN)
    edit("model_graded_qa", "C", BOB)
    edit("politeness", "good", BOB)
    for one in samples:
        one.events = []
    write_eval_log(log, str(folder / "inspect.eval"))
    write_eval_log(log, str(folder / "inspect.json"))


def write_mlflow(folder: Path) -> None:
    """Write assessments as a list, and in traces."""
    from mlflow.entities import AssessmentSource, Expectation, Feedback, Trace, TraceData
    from mlflow.entities.trace_info import TraceInfo
    from mlflow.entities.trace_location import TraceLocation
    from mlflow.entities.trace_state import TraceState

    def feedback(trace: str, name: str, value: Any, kind: str, by: str | None, **more: Any) -> Any:
        source = AssessmentSource(kind, by) if by else AssessmentSource(kind)
        times = {"create_time_ms": MILLISECONDS, "last_update_time_ms": MILLISECONDS}
        return Feedback(name, value, source=source, trace_id=trace, **times, **more)

    def expected(trace: str, name: str, value: Any) -> Any:
        times = {"create_time_ms": MILLISECONDS, "last_update_time_ms": MILLISECONDS}
        return Expectation(name, value, trace_id=trace, **times)

    given = [
        feedback("tr-1", "correct", True, "HUMAN", ANN),
        feedback("tr-1", "correct", False, "LLM_JUDGE", "openai:/gpt-4o"),
        feedback("tr-1", "correct", True, "LLM_JUDGE", None),
        feedback("tr-1", "correct", None, "LLM_JUDGE", "slow", error="timeout"),
        feedback("tr-1", "correct", False, "HUMAN", BOB, valid=False),
        feedback("tr-1", "length", 12, "CODE", None),
        feedback("tr-1", "aspects", {"clear": 4.5, "tone": "kind"}, "LLM_JUDGE", "gpt"),
        feedback("tr-1", "tags", ["b", "a"], "HUMAN", ANN),
        expected("tr-1", "correct", True),
        expected("tr-1", "facts", ["a", "b"]),
        feedback("tr-2", "correct", False, "HUMAN", ANN, span_id="s1"),
        feedback("tr-2", "correct", False, "LLM_JUDGE", "openai:/gpt-4o", span_id="s1"),
        expected("tr-2", "tone", "kind"),
    ]
    _write(folder / "mlflow.json", [one.to_dictionary() for one in given])
    traces = [
        Trace(
            TraceInfo(
                trace_id=trace,
                trace_location=TraceLocation.from_experiment_id("0"),
                request_time=MILLISECONDS,
                state=TraceState.OK,
                request_preview=f"question of {trace}",
                response_preview="an answer",
                assessments=[one for one in given if one.trace_id == trace],
            ),
            TraceData(spans=[]),
        )
        for trace in ("tr-1", "tr-2", "tr-3")
    ]
    lines = [trace.to_json() for trace in traces]
    (folder / "mlflow_traces.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")


def write_langfuse(folder: Path) -> None:
    """Write scores of versions 2 and 3 of the interface."""
    from langfuse.api.commons.types.score import (
        Score_Boolean,
        Score_Categorical,
        Score_Numeric,
        Score_Text,
    )
    from langfuse.api.scores.types.get_scores_v3meta import GetScoresV3Meta
    from langfuse.api.scores.types.get_scores_v3response import GetScoresV3Response
    from langfuse.api.scores.types.score_subject_v3 import (
        ScoreSubjectV3_Observation,
        ScoreSubjectV3_Trace,
    )
    from langfuse.api.scores.types.score_v3 import ScoreV3_Boolean, ScoreV3_Categorical

    times = {"timestamp": NOW, "created_at": NOW, "updated_at": NOW, "environment": "production"}

    def score(kind: Any, number: int, name: str, source: str, by: str | None, **more: Any) -> Any:
        if "subject" not in more:
            more = {"trace_id": "t1", **more}
        return kind(id=f"s{number}", name=name, source=source, author_user_id=by, **times, **more)

    yes, no = {"value": 1.0, "string_value": "True"}, {"value": 0.0, "string_value": "False"}
    given = [
        score(Score_Boolean, 1, "helpful", "ANNOTATION", "ann", **yes),
        score(Score_Boolean, 2, "helpful", "EVAL", None, **no),
        score(Score_Boolean, 3, "helpful", "API", None, **yes, observation_id="o1"),
        score(Score_Categorical, 4, "tone", "ANNOTATION", "bob", value=2.0, string_value="kind"),
        score(Score_Categorical, 5, "tone", "EVAL", None, value=0.0, string_value="rude"),
        score(Score_Numeric, 6, "quality", "EVAL", None, value=0.75),
        score(Score_Numeric, 7, "quality", "ANNOTATION", "ann", value=0.5, trace_id="t2"),
        score(Score_Text, 8, "remark", "ANNOTATION", "ann", string_value="fine"),
    ]
    _write(folder / "langfuse.json", [json.loads(one.json()) for one in given])
    times["project_id"] = "p"
    trace, part = ScoreSubjectV3_Trace(id="t1"), ScoreSubjectV3_Observation(id="o1", trace_id="t1")
    page = GetScoresV3Response(
        data=[
            score(ScoreV3_Boolean, 1, "helpful", "ANNOTATION", "ann", value=True, subject=trace),
            score(ScoreV3_Boolean, 2, "helpful", "EVAL", None, value=False, subject=part),
            score(ScoreV3_Categorical, 3, "tone", "EVAL", None, value="kind", subject=trace),
        ],
        meta=GetScoresV3Meta(limit=50),
    )
    _write(folder / "langfuse_page.json", json.loads(page.json()))


def write_openai_evals(folder: Path) -> None:
    """Write the log of a run with its recorder."""
    import os

    os.environ.setdefault("OPENAI_API_KEY", "unused")  # the library asks for one when imported
    from evals.base import RunSpec
    from evals.record import LocalRecorder

    fns = ["gpt-4o-mini", "gpt-4o"]
    graded = {"cls": "evals.elsuite.modelgraded.classify:ModelBasedClassify", "args": {}}
    config = {"completion_fns": fns, "eval_spec": graded}
    spec = RunSpec(fns, "joke.dev.v0", "joke", "dev", config, "")
    path = folder / "openai_evals.jsonl"
    recorder = LocalRecorder(str(path), spec)
    with recorder.as_default_recorder("joke.dev.0"):
        recorder.record_sampling("a prompt", ["a joke"])
        recorder.record_metrics(choice="4", score=4.0, metascore=True)
        recorder.record_match(True, expected="a", picked="a")
    with recorder.as_default_recorder("joke.dev.1"):
        recorder.record_metrics(choice="__invalid__", score=None)
        recorder.record_error("it failed", TimeoutError("late"))
    with recorder.as_default_recorder("joke.dev.2"):
        recorder.record_metrics(choice="2", score=2.0)
        recorder.record_match(False, expected="a", picked="b")
    recorder.flush_events()
    recorder.record_final_report({"counts/4": 1, "score": 3.0})
    text = path.read_text(encoding="utf-8").replace(spec.run_id, "260105080000ABCDEFGH")
    lines = []
    for line in text.splitlines():
        record = json.loads(line)
        for one in (record, record.get("spec", {})):
            if "created_at" in one:
                one["created_at"] = str(NOW)
        lines.append(json.dumps(record))
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


def _write(path: Path, found: Any) -> None:
    path.write_text(json.dumps(found, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


WRITERS: dict[str, Callable[[Path], None]] = {
    "inspect_ai": write_inspect,
    "mlflow": write_mlflow,
    "langfuse": write_langfuse,
    "evals": write_openai_evals,
}


def main() -> None:
    """Write what can be written."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("folder", type=Path)
    folder = parser.parse_args().folder
    folder.mkdir(parents=True, exist_ok=True)
    for library, write in WRITERS.items():
        try:
            write(folder)
        except ImportError as problem:
            print(f"{library}: skipped ({problem})")


if __name__ == "__main__":
    main()
