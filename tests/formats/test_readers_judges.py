"""Logs of tools that let models judge: who labelled what, of which kind they are, what is left."""

import json
import struct
import zipfile
from importlib.util import find_spec

import polars as pl
import pytest

from dissensus import DataError
from dissensus.datasets.raters import simulate_judges
from dissensus.formats import examine
from dissensus.formats.format import formats, head_of, tool_of
from dissensus.formats.sources import Source, open_source

from ..support import benchmark, recognised_by, rows_of
from .test_readers_json import FIXTURES, OURS, column, export_of, rows, write_json

ANN, BOB = "ann@example.org", "bob@example.org"
LIBRARIES = {
    "inspect_ai": ["inspect.eval", "inspect.json"],
    "mlflow": ["mlflow.json", "mlflow_traces.jsonl"],
    "langfuse": ["langfuse.json", "langfuse_page.json"],
    "evals": ["openai_evals.jsonl"],
}

JUDGED = ("inspect", "mlflow", "langfuse", "promptfoo", "openai-evals")


def kinds(question):
    pairs = zip(column(question, "annotator"), column(question, "source"), strict=True)
    return dict(pairs)


def read_text(tmp_path, body, format=None):  # noqa: A002
    (tmp_path / "given").write_text(body, encoding="utf-8")
    return examine(tmp_path / "given", format=format)


@pytest.mark.parametrize("library", LIBRARIES)
def test_what_the_library_writes_today_reads_as_the_fixture(library, tmp_path):
    if find_spec(library) is None:
        pytest.skip(f"{library} is not installed; the fixtures stand for it")
    benchmark("judge_logs").WRITERS[library](tmp_path)
    for name in LIBRARIES[library]:
        found, kept = formats[OURS[name]].read(open_source(tmp_path / name)), export_of(name)
        assert found.notes == kept.notes
        for question, one in kept.questions.items():
            assert found.questions[question].answers.equals(one.answers)


@pytest.mark.parametrize("name", ["inspect.eval", "inspect.json"])
def test_inspect_scorers_are_annotators_and_epochs_repeats(name):
    found = export_of(name)
    assert set(found.questions) == {"score", "number", "clear", "kind", "politeness"}
    score = found.questions["score"]
    assert kinds(score) == {
        "model:model_graded_qa": "model",
        "model:tone_judge": "model",
        "code:match": "code",
        ANN: "person",
        BOB: "person",
    }
    own = score.answers.filter(pl.col("annotator") == "model:model_graded_qa")
    assert sorted(own.select("item", "epoch", "label").rows()) == [
        ("2", 1, "P"),
        ("2", 2, "N"),
        ("q1", 1, "C"),
        ("q1", 2, "I"),
    ]
    assert set(column(score, "system")) == {"openai/gpt-4o"}
    assert ("q1", "code:overlap", "0.5") in rows(found.questions["number"])


def test_inspect_edits_are_answers_of_their_last_author_beside_the_scorers():
    found = export_of("inspect.eval")
    people = [row for row in rows(found.questions["score"]) if row[1] in (ANN, BOB)]
    assert people == [("q1", ANN, "I"), ("q1", BOB, "C")]
    assert rows(found.questions["politeness"]) == [("q1", BOB, "good")]


def test_inspect_counts_what_has_no_score():
    found = [one.left_out.rows for one in export_of("inspect.eval").questions.values()]
    samples = {"without a score": 1, "invalidated": 1}
    assert all(samples.items() <= rows.items() for rows in found)
    # 4 broken, 1 NaN, 2 parts that are null
    assert sum(rows.get("without a value", 0) for rows in found) == 7


def test_both_forms_of_an_inspect_log_read_the_same():
    zipped, plain = export_of("inspect.eval"), export_of("inspect.json")
    for question, one in plain.questions.items():
        both = [each.answers.sort("item", "epoch") for each in (zipped.questions[question], one)]
        assert both[0].equals(both[1])
    assert zipped.texts.sort("item").equals(plain.texts.sort("item"))


def test_a_running_inspect_evaluation_and_a_deflated_log_can_be_read(tmp_path):
    log = json.loads((FIXTURES / "inspect.json").read_text("utf-8"))
    path = tmp_path / "running.eval"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("_journal/start.json", json.dumps({"eval": log["eval"]}))
        archive.writestr("samples/2_epoch_1.json", json.dumps(log["samples"][0]))
    found = examine(path, question="score")
    assert found.format == "inspect"
    assert len(found.annotations) == 3


@pytest.mark.parametrize("name", ["mlflow.json", "mlflow_traces.jsonl"])
def test_mlflow_sources_are_kinds_and_expectations_gold(name):
    correct = export_of(name).questions["correct"]
    assert kinds(correct) == {
        ANN: "person",
        "model:openai:/gpt-4o": "model",
        "model:correct": "model",  # its source has no name
    }
    assert rows(correct)[-1] == ("tr-2/s1", "model:openai:/gpt-4o", "false")
    assert column(correct, "trace") == ["tr-1"] * 3 + ["tr-2"] * 2
    assert correct.gold == {"tr-1": "true"}
    assert [one.year for one in column(correct, "time")] == [2026] * 5


def test_mlflow_parts_are_questions_and_lists_several_options():
    found = export_of("mlflow.json").questions
    assert rows(found["aspects.clear"]) == [("tr-1", "model:gpt", "4.5")]
    assert found["tags"].values == [["a", "b"]]
    assert found["tags"].kind == "sets"
    assert kinds(found["length"]) == {"code:length": "code"}


def test_mlflow_counts_errors_and_what_was_overridden():
    found = export_of("mlflow.json")
    assert found.notes[:2] == (
        "left out: expectations that are no label (1)",
        "left out: expectations for questions that nobody answered (1)",
    )
    assert found.questions["correct"].left_out.rows == {"with an error": 1, "overridden": 1}
    assert found.questions["length"].left_out.rows == {}


def test_mlflow_rows_of_search_traces_are_read(tmp_path):
    given = json.loads((FIXTURES / "mlflow.json").read_text("utf-8"))
    row = {"trace_id": "tr-1", "assessments": given[:3]}
    assert len(examine(write_json(tmp_path / "a.json", [row])).annotations) == 3
    found = examine(write_json(tmp_path / "b.json", {"traces": [row, row | {"assessments": []}]}))
    assert found.format == "mlflow"
    assert len(found.annotations) == 3


def test_a_single_mlflow_trace_with_long_spans_is_recognised(tmp_path):
    trace = json.loads((FIXTURES / "mlflow_traces.jsonl").read_text("utf-8").splitlines()[1])
    trace["data"] = {"spans": ["x" * 200_000]}
    path = tmp_path / "trace.json"
    path.write_text(json.dumps(trace, indent=1), encoding="utf-8")
    assert len(examine(path).annotations) == 2


def test_mlflow_times_in_milliseconds_and_old_names_are_understood(tmp_path):
    source = {"source_type": "AI_JUDGE", "source_id": "m"}
    one = {"name": "q", "trace_id": "t", "source": source, "feedback": {"value": "x"}}
    path = write_json(tmp_path / "a.json", [one | {"create_time_ms": 1767600000250}])
    answers = formats["mlflow"].read(open_source(path)).questions["q"]
    assert kinds(answers) == {"model:m": "model"}
    assert str(column(answers, "time")[0]) == "2026-01-05 08:00:00.250000"


def test_langfuse_sources_are_kinds_and_api_must_be_decided():
    found = export_of("langfuse.json")
    helpful = found.questions["helpful"]
    assert kinds(helpful) == {"ann": "person", "model:helpful": "model", "api": None}
    assert rows(helpful)[2] == ("o1", "api", "true")
    assert column(helpful, "trace") == ["t1"] * 3
    assert found.notes[0] == (
        "scores by api: 1, of unknown kind; models='api' or people='api' decides"
    )
    assert helpful.left_out.rows == {"that are texts or corrections": 1}


def test_langfuse_data_types_decide_what_a_label_is():
    found = export_of("langfuse.json").questions
    assert rows(found["tone"]) == [("t1", "bob", "kind"), ("t1", "model:tone", "rude")]
    assert found["quality"].kind == "numeric"
    assert rows(found["quality"])[0] == ("t1", "model:quality", "0.75")


def test_langfuse_pages_of_version_three_have_subjects():
    helpful = export_of("langfuse_page.json").questions["helpful"]
    assert rows(helpful) == [("t1", "ann", "true"), ("o1", "model:helpful", "false")]
    assert column(helpful, "trace") == ["t1", "t1"]


def test_promptfoo_assertions_are_people_models_and_code():
    found = export_of("promptfoo.json")
    passed = found.questions["pass"]
    assert kinds(passed) == {
        "human": "person",
        "model:llm-rubric": "model",
        "model:llm-rubric/2": "model",
        "model:llm-rubric/tone": "model",
        "model:not-llm-rubric": "model",
        "model:model-graded-closedqa": "model",
        "code:contains": "code",
        "code:similar:cosine": "code",
    }
    assert rows(passed)[5] == ("0/0/openai:gpt-4o", "human", "fail")
    assert set(column(passed, "system")) == {"openai:gpt-4o", "anthropic:claude"}
    assert set(column(passed, "test")) == {"0", "1"}
    assert passed.left_out.rows == {
        "whose grader failed": 1,
        "failed with an error": 1,
        "without assertions": 1,
    }


def test_promptfoo_scores_are_a_question_only_where_they_are_more_than_pass_and_fail(tmp_path):
    assert rows(export_of("promptfoo.json").questions["score"])[0][2] == "0.9"
    whole = json.loads((FIXTURES / "promptfoo.json").read_text("utf-8"))
    whole["results"]["results"] = whole["results"]["results"][1:2]
    assert examine(write_json(tmp_path / "a.json", whole)).question == "pass"


def test_a_long_promptfoo_file_is_recognised_by_its_beginning(tmp_path):
    whole = json.loads((FIXTURES / "promptfoo.json").read_text("utf-8"))
    whole["results"]["results"][0]["response"]["output"] = "x" * 200_000
    assert tool_of(head_of(open_source(write_json(tmp_path / "a.json", whole)))) == "promptfoo"


def test_openai_evals_choices_are_the_graders_and_matches_code():
    found = export_of("openai_evals.jsonl")
    assert rows(found.questions["choice"]) == [
        ("joke.dev.0", "model:gpt-4o", "4"),
        ("joke.dev.2", "model:gpt-4o", "2"),
    ]
    assert rows(found.questions["correct"])[0] == ("joke.dev.0", "code:joke.dev.v0", "true")
    assert set(column(found.questions["choice"], "system")) == {"gpt-4o-mini"}
    assert [one.year for one in column(found.questions["choice"], "time")] == [2026, 2026]
    assert found.questions["choice"].left_out.rows == {
        "with an invalid choice": 1,
        "with an error": 1,
    }


def test_openai_evals_metrics_without_a_choice_are_questions(tmp_path):
    lines = (FIXTURES / "openai_evals.jsonl").read_text("utf-8").splitlines()
    event = json.loads(lines[2]) | {"data": {"f1": 0.5, "tone_metascore": 1}}
    coded = lines[0].replace("modelgraded.classify", "basic.fuzzy_match")
    for spec, by in ((lines[0], "model:gpt-4o"), (coded, "code:joke.dev.v0")):
        found = read_text(tmp_path, f"{spec}\n{json.dumps(event)}\n")
        assert found.question == "f1"
        assert found.annotations.annotators.tolist() == [by]


def alt_test(folder, people, models):
    (folder / "human_annotations.json").write_text(people, encoding="utf-8")
    (folder / "llm_annotations.json").write_text(models, encoding="utf-8")
    return folder


def test_an_alt_test_folder_has_people_and_models(tmp_path):
    people = {"1": {"a": "yes", "b": "no"}, "2": {"a": None}}
    alt_test(tmp_path, json.dumps(people), '{"gpt-4o": {"a": "yes", "b": NaN}}')
    head = head_of(Source(str(tmp_path), tmp_path, "folder"))
    assert recognised_by(head) == ["alt-test"]
    found = examine(tmp_path)
    assert found.annotations.annotators.tolist() == ["1", "model:gpt-4o"]
    assert found.annotations.columns["source"].tolist() == ["person", "model", "person"]
    assert found.annotations.left_out.rows == {"without a value": 2}
    assert found.annotations.left_out.annotators == ("2",)


@pytest.mark.parametrize(
    ("people", "message"),
    [
        ("[]", "should be {annotator: {item: label}}"),
        ('{"1": {"a": ', "not JSON"),
        ('{"1": {"a": 1, "a": 2}}', "appears twice"),
        ("", "empty"),
    ],
)
def test_a_damaged_alt_test_folder_is_reported_with_its_file(people, message, tmp_path):
    with pytest.raises(DataError, match=r"human_annotations\.json") as problem:
        examine(alt_test(tmp_path, people, "{}"))
    assert message in str(problem.value)
    assert "\n" not in str(problem.value)


def zipped(path, files, method=zipfile.ZIP_DEFLATED):
    with zipfile.ZipFile(path, "w", method) as archive:
        for name, body in files.items():
            archive.writestr(name, body)
    return path


def refused(path, message):
    with pytest.raises(DataError, match=message) as problem:
        examine(path, format="inspect")
    assert "\n" not in str(problem.value)


def test_hostile_inspect_logs_end_in_one_line(tmp_path):
    header, path = '{"eval": {"task": "t", "model": "m"}}', tmp_path / "x.eval"
    many = '{"id": 1, "scores": {"a": {"value": "' + "x" * 2**27 + '"}}}'
    refused(zipped(path, {"header.json": header, "samples/a.json": many}), "unpacks to more than")
    refused(zipped(path, {"samples/a.json": "{}"}), "without header.json")
    refused(zipped(path, {"header.json": header, "samples/a\nb.json": "{"}), "not JSON|cut off")
    refused(zipped(path, {"header.json": header, "samples/a.json": ""}), "empty")
    refused(zipped(path, {"header.json": header, "samples/a.json": "[3]"}), "expected object")
    refused(zipped(path, {"header.json": header, "samples/a.json": "{}"}), "without an id")
    refused(zipped(path, {"header.json": header}), "without any answer")


def test_paths_in_an_inspect_log_lead_nowhere(tmp_path):
    header = '{"eval": {"task": "t", "model": "m"}}'
    sample = '{"id": "a\\nb", "scores": {"match": {"value": "C"}}}'
    files = {"header.json": header, "samples/../../x.json": sample, "/etc/samples/y.json": sample}
    path = zipped(tmp_path / "x.eval", files)
    before = sorted(tmp_path.rglob("*"))
    assert examine(path).annotations.items.tolist() == ["a\nb"]
    assert sorted(tmp_path.rglob("*")) == before


def with_size(body, name, size):
    """Return a zip that gives another size for one of its files."""
    at = body.index(name, body.index(b"PK\x01\x02"))  # in the central directory
    return body[: at - 22] + struct.pack("<I", size) + body[at - 18 :]


def test_zstandard_that_lies_about_its_size_or_is_damaged_is_refused(tmp_path):
    body, path = (FIXTURES / "inspect.eval").read_bytes(), tmp_path / "x.eval"
    path.write_bytes(with_size(body, b"samples/q1_epoch_1.json", 10))
    refused(path, "larger than it says")
    path.write_bytes(with_size(body, b"samples/q1_epoch_1.json", 2**31))
    refused(path, "unpacks to more than")
    start = body.index(b"\x28\xb5\x2f\xfd", body.index(b"samples/q1_epoch_1.json"))
    path.write_bytes(body[: start + 12] + b"\xff" * 40 + body[start + 52 :])
    refused(path, "damaged")


@pytest.mark.parametrize("value", ["NaN", "Infinity", "-Infinity", "null", '""', '"x"'])
def test_values_that_are_no_numbers_are_counted(value, tmp_path):
    score = '{"name":"q","source":"EVAL","dataType":"NUMERIC","traceId":"t%d","value":%s}'
    found = read_text(tmp_path, f"[{score % (1, '0.5')},{score % (2, value)}]")
    assert len(found.annotations) == 1
    assert "1 row is left out: 1 without a value" in found.notes


def test_a_number_that_is_too_large_is_reported(tmp_path):
    score = '{"name":"q","source":"EVAL","dataType":"NUMERIC","traceId":"t","value":1e999}'
    with pytest.raises(DataError) as problem:
        read_text(tmp_path, f"[{score}]")
    assert "number out of range" in str(problem.value).lower()


def test_names_with_line_ends_stay_names_and_messages_one_line(tmp_path):
    source = {"source_type": "LLM_JUDGE", "source_id": "a\nb"}
    one = {"name": "q\n1", "trace_id": "t\n1", "source": source, "feedback": {"value": "x\ny"}}
    found = examine(write_json(tmp_path / "a.json", [one]))
    assert found.annotations.annotators.tolist() == ["model:a\nb"]
    assert found.annotations.classes.tolist() == ["x\ny"]
    with pytest.raises(DataError) as problem:
        examine(write_json(tmp_path / "b.json", [one, one | {"name": "r"}]))
    assert "\n" not in str(problem.value)


def as_alt_test(answers, folder):
    files = {"human": {}, "llm": {}}
    for item, annotator, label in answers:
        kind = "llm" if annotator.startswith("model:") else "human"
        files[kind].setdefault(annotator.removeprefix("model:"), {})[item] = label
    return alt_test(folder, *(json.dumps(files[kind]) for kind in ("human", "llm")))


def as_mlflow(answers, folder):
    def one(item, annotator, label):
        kind = "LLM_JUDGE" if annotator.startswith("model:") else "HUMAN"
        source = {"source_type": kind, "source_id": annotator.removeprefix("model:")}
        about = {"assessment_name": "q", "trace_id": item, "source": source}
        return about | {"feedback": {"value": label}}

    return write_json(folder / "mlflow.json", [one(*row) for row in answers])


def as_inspect(answers, folder):
    samples, models = {}, {}
    for item, annotator, label in answers:
        scores = samples.setdefault(item, {})
        model = annotator.startswith("model:")
        key = annotator.removeprefix("model:") if model else "judged"
        if model:
            models[key] = {"name": key, "options": {"model": key}}
            scores[key] = {"value": label}
        else:
            edit = {"value": label, "provenance": {"author": annotator}}
            scores.setdefault(key, {"value": label, "history": []})["history"].append(edit)
    spec = {"task": "t", "model": "m", "scorers": [*models.values(), {"name": "judged"}]}
    path = folder / "log.eval"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("header.json", json.dumps({"eval": spec}))
        for number, (item, scores) in enumerate(samples.items()):
            archive.writestr(f"samples/{number}.json", json.dumps({"id": item, "scores": scores}))
    return path


@pytest.mark.parametrize("write", [as_alt_test, as_mlflow, as_inspect])
def test_people_and_models_are_the_same_in_every_log(write, tmp_path):
    answers = rows_of(simulate_judges(n_items=100, n_people=4, n_judges=6, seed=1).annotations)
    found = examine(write(answers, tmp_path))
    assert sorted(rows_of(found.annotations)) == sorted(answers)
    sources = found.annotations.columns["source"].tolist()
    assert sources.count("model") == sum(one[1].startswith("model:") for one in answers) > 0
    assert found.annotations.is_kind("model").sum() == 6
    assert found.annotations.is_kind("person").sum() == 4


@pytest.mark.parametrize("name", [name for name in OURS if OURS[name] in JUDGED])
def test_kinds_of_annotators_reach_the_annotations(name):
    for question, one in export_of(name).questions.items():
        found = examine(FIXTURES / name, question=question, kind="single").annotations
        if "source" in one.answers.columns:
            known = {by: kind or "" for by, kind in kinds(one).items()}
            assert dict(zip(found.annotators, found.annotator_kinds, strict=True)) == known
