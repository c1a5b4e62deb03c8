"""Exports of labelling tools as JSON, and what every row becomes."""

import csv
import gzip
import io
import json
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from uuid import UUID

import numpy as np
import pandas
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dissensus import DataError
from dissensus.answers import KINDS
from dissensus.formats import examine
from dissensus.formats.cells import parse_list
from dissensus.formats.collecting import label_of_options, options_of_label
from dissensus.formats.format import formats, head_of
from dissensus.formats.sources import open_source
from dissensus.formats.tools import label_studio

from ..support import recognised_by, rows_of, run

FIXTURES = Path(__file__).parents[1] / "fixtures"
OURS = {
    "label_studio.json": "label-studio",
    "label_studio_completions.json": "label-studio",
    "label_studio_min.json": "label-studio",
    "label_studio.csv": "label-studio",
    "prodigy.jsonl": "prodigy",
    "prodigy_multiple.jsonl": "prodigy",
    "doccano.zip": "doccano",
    "doccano_csv.zip": "doccano",
    "doccano_users.jsonl": "doccano",
    "doccano_shared.jsonl": "doccano",
    "argilla.json": "argilla",
    "argilla_flat.json": "argilla",
    "argilla_flat.jsonl": "argilla",
    "argilla.parquet": "argilla",
    "argilla_flat.csv": "argilla",
    "potato.csv": "potato",
    "potato.jsonl": "potato",
    "potato_state.json": "potato",
    "lewidi_2023.json": "lewidi",
    "lewidi_2025.json": "lewidi",
    "lewidi_multiple.json": "lewidi",
    "inspect.eval": "inspect",
    "inspect.json": "inspect",
    "mlflow.json": "mlflow",
    "mlflow_traces.jsonl": "mlflow",
    "langfuse.json": "langfuse",
    "langfuse_page.json": "langfuse",
    "promptfoo.json": "promptfoo",
    "openai_evals.jsonl": "openai-evals",
}
READABLE = [name for name in OURS if name != "doccano_shared.jsonl"]
MOOD = 'nice, "really"\nnice 🎉'
ANN, BOB = "ann@example.org", "bob@example.org"


def export_of(name):
    return formats[OURS[name]].read(open_source(FIXTURES / name))


def rows(question):
    if question.kind in KINDS:
        pairs = question.answers.select("item", "annotator").rows()
        return [(*pair, value) for pair, value in zip(pairs, question.values, strict=True)]
    return question.answers.select("item", "annotator", "label").rows()


def column(question, name):
    return question.answers[name].to_list()


def write_json(path, found):
    path.write_text(json.dumps(found), encoding="utf-8")
    return path


@pytest.mark.parametrize("name", OURS)
def test_a_file_is_recognised_as_its_own_format_and_as_no_other(name):
    head = head_of(open_source(FIXTURES / name))
    assert recognised_by(head) == [OURS[name]]


@pytest.mark.parametrize("path", sorted(FIXTURES.iterdir()), ids=lambda path: path.name)
def test_no_file_of_another_format_is_taken_for_ours(path):
    head = head_of(open_source(path))
    ours = {OURS[path.name]} if path.name in OURS else set()
    assert {known for known in set(OURS.values()) if formats[known].recognises(head)} == ours


@pytest.mark.parametrize("name", OURS)
def test_the_name_of_a_file_does_not_decide(name, tmp_path):
    (tmp_path / "x.bin").write_bytes((FIXTURES / name).read_bytes())
    head = head_of(open_source(tmp_path / "x.bin"))
    assert formats[OURS[name]].recognises(head)


def test_label_studio_questions():
    found = export_of("label_studio.json")
    assert {name: one.kind for name, one in found.questions.items()} == {
        "mood": "single",
        "topics": "sets",
        "stars": "ordinal",
        "size": "numeric",
        "kind": "sets",
        "better": "single",
        "why": "texts",
        "ner": "spans",
    }
    mood = found.questions["mood"]
    assert rows(mood) == [
        ("7", ANN, "pos"),
        ("7", "4", "neg, rather"),
        ("7", "model:m1", "pos"),
        ("8", ANN, "neg, rather"),
        ("8", "4", "pos"),
    ]
    assert column(mood, "source") == ["person", "person", "model", "person", "person"]
    assert column(mood, "confidence") == [None, None, 0.8, None, None]
    assert column(mood, "duration") == [3.5, 4.5, None, 6.5, 7.5]
    assert column(mood, "time")[:3] == [
        datetime(2026, 3, 2, 10, 0, 0, 500000),
        datetime(2026, 3, 3, 10, 0, 0, 500000),
        None,
    ]
    assert rows(found.questions["topics"]) == [
        ("7", ANN, ["look|feel", "price"]),
        ("7", "4", ["price"]),
    ]
    assert rows(found.questions["stars"]) == [("7", ANN, "5"), ("7", "4", "2")]
    assert rows(found.questions["size"]) == [("8", ANN, "3.5")]
    assert rows(found.questions["kind"]) == [("9", "9", ["Animal / Dog", "Plant"])]
    assert rows(found.questions["better"]) == [("9", "9", "left")]
    assert "source" not in found.questions["stars"].answers.columns


def test_label_studio_gold_is_also_somebodys_label():
    found = export_of("label_studio.json").questions
    assert found["mood"].gold == {"7": "pos"}
    assert found["topics"].gold == {"7": ["look|feel", "price"]}
    assert found["stars"].gold == {"7": "5"}
    assert ("7", ANN, "pos") in rows(found["mood"])


def test_label_studio_notes_what_was_left_out():
    found = export_of("label_studio.json")
    assert found.notes == (
        "left out: answers about regions (1)",
        "left out: relations and results without a control (1)",
        "labels by models: 1; the column source marks them",
    )
    assert found.questions["mood"].left_out.rows == {"cancelled": 1, "without an annotator": 1}
    assert found.texts is not None
    assert found.texts.rows()[:2] == [("7", MOOD), ("8", "לא רע")]


def test_label_studio_before_version_one():
    found = export_of("label_studio_completions.json")
    kind = found.questions["kind"]
    assert rows(kind) == [("0", "1", "cat"), ("0", "3", "dog")]
    assert column(kind, "time")[0] == datetime(2020, 9, 13, 12, 26, 40)
    assert column(kind, "duration") == [3.0, None]
    assert kind.left_out.rows == {"cancelled": 1}


def test_label_studio_json_min():
    found = export_of("label_studio_min.json")
    assert {name: one.kind for name, one in found.questions.items()} == {
        "mood": "single",
        "topics": "sets",
        "stars": "ordinal",
    }
    assert rows(found.questions["mood"]) == [
        ("7", "3", "pos"),
        ("7", "4", "neg"),
        ("8", "4", "pos"),
    ]
    assert rows(found.questions["topics"]) == [
        ("7", "3", ["look|feel", "price"]),
        ("7", "4", ["price"]),
    ]
    assert rows(found.questions["stars"]) == [("7", "3", "5"), ("7", "4", "2")]
    assert column(found.questions["mood"], "duration") == [2.1, 5.0, None]
    assert found.texts is not None
    assert found.texts.rows() == [("7", MOOD), ("8", "לא רע")]
    assert found.questions["mood"].left_out.rows == {"about spans, boxes or other regions": 1}


def test_label_studio_csv_with_sorted_columns():
    found = export_of("label_studio.csv")
    assert rows(found.questions["mood"]) == [
        ("7", ANN, "pos"),
        ("7", BOB, "neg"),
        ("8", BOB, "pos"),
    ]
    assert rows(found.questions["stars"]) == [("7", ANN, "5"), ("7", BOB, "2")]
    assert rows(found.questions["topics"]) == [
        ("7", ANN, ["look|feel", "price"]),
        ("7", BOB, ["price"]),
    ]
    assert list(found.questions) == ["mood", "stars", "topics"]
    assert found.texts is not None
    assert found.texts.rows() == [("7", MOOD), ("8", "לא רע")]


def test_a_flat_export_as_parquet_reads_the_same(tmp_path):
    pl.read_csv(FIXTURES / "label_studio.csv").write_parquet(tmp_path / "flat.parquet")
    found = examine(tmp_path / "flat.parquet", question="mood")
    assert found.annotations == examine(FIXTURES / "label_studio.csv", question="mood").annotations


def test_json_min_of_one_annotator_has_controls_by_their_place(tmp_path):
    rest = {"annotator": 1, "annotation_id": 1, "lead_time": 1}
    summary = [("first", 1, "pos"), ("second", 2, "neg")]
    records = [{"text": text, "id": item, "mood": mood, **rest} for text, item, mood in summary]
    found = examine(write_json(tmp_path / "min.json", records))
    assert found.annotations.to_dict() == {"1": {"1": "pos"}, "2": {"1": "neg"}}


def test_a_flat_column_on_which_nobody_differs_is_data_and_noted(tmp_path):
    lines = ["annotation_id,annotator,created_at,id,lead_time,mood,topic,updated_at"]
    for item in range(6):
        lines += [
            f"{item}0,ann,,{item},1,pos,t{item % 2},",
            f"{item}1,bob,,{item},1,neg,t{item % 2},",
        ]
    (tmp_path / "flat.csv").write_text("\n".join(lines), encoding="utf-8")
    found = examine(tmp_path / "flat.csv")
    assert found.questions == {"mood": 12}
    assert found.notes == ("the same for everybody, so read as data: topic",)


def test_prodigy_questions():
    found = export_of("prodigy.jsonl")
    choice, spam = found.questions["choice"], found.questions["SPAM"]
    assert rows(choice) == [("-11", "set-ann", "pos"), ("-11", "set-bob", "3")]
    assert choice.classes == ("pos", "neg", "3")
    assert column(choice, "time")[0] == datetime(2023, 11, 14, 22, 13, 20)
    assert rows(spam) == [("13", "set-bob", "reject"), ("13", "set-ann", "accept")]
    assert rows(found.questions["image"]) == [("15", "set-ann", "accept")]
    of_all = {"ignored": 1, "rejected": 1, "without an annotator": 1}
    assert spam.left_out.rows == of_all
    assert choice.left_out.rows == of_all | {"with nothing chosen": 1}
    assert found.texts is not None
    assert ("15",) not in found.texts.select("item").rows()  # an image inside the file is no text


def test_prodigy_with_several_options_at_once():
    (choice,) = export_of("prodigy_multiple.jsonl").questions.values()
    assert choice.kind == "sets"
    assert rows(choice) == [("1", "x", ["neg", "pos"]), ("1", "y", []), ("2", "x", ["neg"])]


def test_doccano_has_a_file_for_each_annotator():
    found = export_of("doccano.zip")
    (label,) = found.questions.values()
    assert label.kind == "sets"
    assert rows(label) == [
        ("1", "ann", ["a|b", "pos"]),
        ("2", "ann", ["neg"]),
        ("1", "bob.smith", ["pos"]),
        ("2", "bob.smith", ["pos"]),
    ]
    assert label.left_out.rows == {"without a label": 1}


def test_doccano_csv():
    (label,) = export_of("doccano_csv.zip").questions.values()
    assert rows(label) == [
        ("1", "ann", ["pos"]),
        ("2", "ann", ["neg", "odd"]),
        ("1", "bob", ["neg"]),
    ]


def test_doccano_with_users_in_the_file():
    found = export_of("doccano_users.jsonl")
    assert rows(found.questions["label"]) == [("1", "1", "2"), ("1", "5", "3"), ("2", "1", "3")]
    assert rows(found.questions["spans"]) == [("2", "1", [{"start": 0, "end": 2, "label": "4"}])]
    assert found.notes == ()


def test_doccano_of_a_shared_project_has_no_annotators():
    with pytest.raises(DataError, match="has no annotators"):
        examine(FIXTURES / "doccano_shared.jsonl")


def test_argilla_nested():
    found = export_of("argilla.json")
    mood, topics = found.questions["mood"], found.questions["topics"]
    assert list(found.questions) == ["mood", "topics", "stars", "order", "ner"]
    assert rows(mood) == [
        ("r1", "u-1", "pos"),
        ("r1", "u-2", "neg"),
        ("r1", "model:m1", "pos"),
        ("r2", "u-2", "neg"),
    ]
    assert column(mood, "confidence") == [None, None, 0.7, None]
    assert rows(topics) == [("r1", "u-1", ["a|b", "price"]), ("r1", "u-2", [])]
    assert found.questions["stars"].kind == "ordinal"
    assert found.notes == (
        "the export does not mark responses that are only drafts",
        "labels by models: 1; the column source marks them",
    )
    assert topics.left_out.rows == {}
    assert sum(one.left_out.n_rows for one in found.questions.values()) == 1


@pytest.mark.parametrize("name", ["argilla_flat.json", "argilla_flat.jsonl", "argilla.parquet"])
def test_argilla_flattened(name):
    found = export_of(name)
    assert rows(found.questions["mood"]) == [
        ("r1", "u-1", "pos"),
        ("r1", "u-2", "neg"),
        ("r1", "model:m1", "pos"),
        ("r2", "u-2", "neg"),
    ]
    assert rows(found.questions["topics"]) == [
        ("r1", "u-1", ["look", "price"]),
        ("r1", "u-2", ["price"]),
    ]
    assert found.questions["mood"].left_out.rows == {"draft": 1, "discarded": 1}
    assert found.texts is not None
    assert found.texts.rows()[1] == ("r2", "לא רע")


ARGILLA_ROWS = [
    {
        "id": "r1",
        "text": 'nice, "really"',
        "mood.responses": ["it's", "neg\n|ative"],
        "mood.responses.users": [UUID(int=1), UUID(int=2)],
        "mood.responses.status": ["submitted", "submitted"],
        "mood.suggestion": "it's",
        "mood.suggestion.score": 0.75,
        "mood.suggestion.agent": "m1",
        "topic.responses": [["b", "a"], []],
        "topic.responses.users": [UUID(int=1), UUID(int=2)],
        "topic.responses.status": ["submitted", "submitted"],
        "stars.responses": [4, 5],
        "stars.responses.users": [UUID(int=1), UUID(int=2)],
        "stars.responses.status": ["submitted", "submitted"],
        "stars.suggestion": 4,
        "stars.suggestion.agent": "m1",
    },
    {
        "id": "r2",
        "text": "bad",
        "mood.responses": ["it's", "other"],
        "mood.responses.users": [UUID(int=1), UUID(int=3)],
        "mood.responses.status": ["submitted", "draft"],
    },
]


def argilla_frame(texts):
    """Return the rows as pandas has them: lists, or arrays as in a table that comes from Arrow."""
    rows = [dict(row) for row in ARGILLA_ROWS]
    if texts:
        for row in rows:
            for name, value in row.items():
                if isinstance(value, list):
                    value = [str(one) if isinstance(one, UUID) else one for one in value]
                    lists = any(isinstance(one, list) for one in value)
                    cells = np.empty(len(value), dtype=object) if lists else np.array(value)
                    cells[:] = [np.array(one, dtype=object) for one in value] if lists else value
                    row[name] = cells
    return pandas.DataFrame(rows)


@pytest.mark.parametrize("texts", [False, True], ids=["lists", "arrays"])
@pytest.mark.parametrize("separator", [",", "\t"])
def test_argilla_as_pandas_writes_it_to_csv(texts, separator, tmp_path):
    argilla_frame(texts).to_csv(tmp_path / "flat.csv", index=False, sep=separator)
    first, second = str(UUID(int=1)), str(UUID(int=2))
    found = examine(tmp_path / "flat.csv", question="mood")
    assert (found.format, found.kind) == ("argilla", "single")
    assert sorted(rows_of(found.annotations)) == [
        ("r1", first, "it's"),
        ("r1", second, "neg\n|ative"),
        ("r1", "model:m1", "it's"),
        ("r2", first, "it's"),
    ]
    assert dict(found.texts.iter_rows()) == {"r1": 'nice, "really"', "r2": "bad"}
    assert "1 row is left out: 1 draft" in found.notes
    confidence = found.annotations.columns["confidence"]
    assert confidence[~np.isnan(confidence)].tolist() == [0.75]
    topic = examine(tmp_path / "flat.csv", question="topic", kind="single")
    assert (topic.kind, sorted(rows_of(topic.annotations))) == (
        "sets",
        [("r1", first, "a|b"), ("r1", second, "(none)")],
    )
    stars = examine(tmp_path / "flat.csv", question="stars")
    assert (stars.kind, sorted(rows_of(stars.annotations))) == (
        "ordinal",
        [("r1", first, "4"), ("r1", second, "5"), ("r1", "model:m1", "4")],
    )


@pytest.mark.parametrize(
    "cell",
    [
        "[",
        "['a'",
        "['a']]",
        "a",
        "[__import__('os')]x",
        "[" * 5000,
        "['a' ...]",
        "[b'\\xff']",
        "[1e]",
    ],
)
def test_a_cell_that_holds_no_list_ends_in_one_line(cell, tmp_path):
    body = io.StringIO()
    header = ("id", "mood.responses", "mood.responses.users")
    csv.writer(body).writerows([header, ("r1", "['a']", "['u']"), ("r2", cell, "['u']")])
    (tmp_path / "flat.csv").write_text(body.getvalue())
    with pytest.raises(DataError, match=r"flat.csv: line 3: mood.responses: not a list"):
        examine(tmp_path / "flat.csv")


@given(st.lists(st.one_of(st.text(), st.integers(), st.booleans(), st.none(), st.lists(st.text()))))
def test_lists_come_back_from_their_texts(values):
    assert parse_list(repr(values)) == values
    texts = [value for value in values if isinstance(value, str)]
    assert parse_list(json.dumps(texts)) == texts


def test_argilla_by_record_id(tmp_path):
    records = json.loads((FIXTURES / "argilla.json").read_text("utf-8"))
    path = write_json(tmp_path / "a.json", {one["id"]: one for one in records})
    assert (
        examine(path, question="mood").annotations
        == examine(FIXTURES / "argilla.json", question="mood").annotations
    )


def test_prose_is_no_question_beside_others(tmp_path):
    records = [
        {
            "id": str(n),
            "fields": {"text": "x"},
            "responses": {
                "mood": [{"value": "pn"[n % 2], "user_id": "u"}],
                "why": [{"value": f"because of {n}", "user_id": "u"}],
            },
        }
        for n in range(30)
    ]
    found = examine(write_json(tmp_path / "a.json", records))
    assert found.questions == {"mood": 30, "why": 30}
    assert "not read: why (30 answers, texts); question='NAME' reads one" in found.notes


def test_lewidi_2023():
    found = export_of("lewidi_2023.json")
    (label,) = found.questions.values()
    assert rows(label) == [
        ("1", "Ann1", "0"),
        ("1", "Ann2", "1"),
        ("1", "Ann3", "0"),
        ("2", "Ann1", "0"),
        ("2", "Ann4", "0"),
    ]
    assert (label.kind, label.classes) == ("single", ("0", "1"))
    assert column(label, "split") == ["train", "train", "train", "dev", "dev"]
    assert label.gold == {}
    assert label.left_out.items == ("3",)


def test_lewidi_2025():
    found = export_of("lewidi_2025.json")
    (label,) = found.questions.values()
    assert rows(label)[:2] == [("9", "Ann1", "3"), ("9", "Ann2", "-1")]
    assert (label.kind, label.classes) == ("ordinal", ("-5", "-1", "3", "5"))
    assert found.texts is not None
    assert found.texts.rows()[0] == ("9", "Question1: how?\nQuestion2: why 🎉?")


def test_lewidi_with_several_labels_at_once():
    (label,) = export_of("lewidi_multiple.json").questions.values()
    assert label.kind == "sets"
    assert rows(label) == [("49", "Ann1", ["neutral"]), ("49", "Ann2", ["entailment", "neutral"])]


def test_a_gap_among_parallel_labels_moves_nobody(tmp_path):
    one = {"text": "a", "soft_label": {}, "annotators": "A,B,C", "annotations": "0,,1"}
    annotations = examine(write_json(tmp_path / "l.json", {"1": one})).annotations
    assert annotations.to_dict() == {"1": {"A": "0", "C": "1"}}


def test_lewidi_lists_of_different_length_are_refused(tmp_path):
    one = {"text": "a", "soft_label": {}, "annotators": "A,B", "annotations": "0,1,1"}
    with pytest.raises(DataError, match="item '1': 3 labels but 2 annotators"):
        examine(write_json(tmp_path / "l.json", {"1": one}))


@pytest.mark.parametrize("name", READABLE)
def test_every_question_can_be_read(name):
    for question, one in export_of(name).questions.items():
        is_marks = one.kind in KINDS and one.kind != "sets"
        found = examine(FIXTURES / name, question=question, kind=None if is_marks else "single")
        assert found.format == OURS[name]
        if one.kind in KINDS:
            found = examine(FIXTURES / name, question=question, kind=one.kind)
            assert found.answers.kind == one.kind
            assert len(found.answers) == len(one.values)
            continue
        assert len(found.annotations) == one.answers.height
        assert set(found.gold.values()) <= set(found.annotations.classes.tolist())
        assert found.kind == one.kind


@pytest.mark.parametrize("name", ["label_studio.json", "prodigy.jsonl", "lewidi_2023.json"])
def test_packed_and_marked_files_read_the_same(name, tmp_path):
    body = (FIXTURES / name).read_bytes()
    (tmp_path / "packed").write_bytes(gzip.compress(body))
    (tmp_path / "marked").write_bytes(b"\xef\xbb\xbf" + body.replace(b"\n", b"\r\n"))
    for variant in ("packed", "marked"):
        found = formats[OURS[name]].read(open_source(tmp_path / variant))
        for question, one in export_of(name).questions.items():
            assert rows(found.questions[question]) == rows(one)


def test_times_and_durations_reach_the_annotations():
    found = examine(FIXTURES / "label_studio.csv", question="mood")
    assert found.annotations.columns["time"].dtype == np.dtype("datetime64[us]")
    assert np.isnan(found.annotations.columns["duration"]).sum() == 1


def test_an_item_without_an_id_is_named_by_its_text(tmp_path):
    long = "a" * 100
    tasks = [
        {
            "data": {"text": body},
            "annotations": [{"completed_by": 1, "result": [choice("q", "yes")]}],
        }
        for body in ("short", long, "short", long + "b")
    ]
    found = examine(write_json(tmp_path / "t.json", tasks))
    assert found.annotations.items.tolist() == ["a" * 59 + "… (2)", "a" * 59 + "… (3)", "short"]
    assert len(found.annotations) == 4


def test_one_id_for_two_texts_is_reported(tmp_path):
    tasks = [task(1, "q", "yes", text="a"), task(1, "q", "no", text="b")]
    found = examine(write_json(tmp_path / "t.json", tasks))
    assert found.notes == ("items whose text differs under the same id: 1",)


def test_contradicting_gold_is_none(tmp_path):
    one = task(1, "q", "yes")
    one["annotations"] = [
        {"completed_by": who, "ground_truth": True, "result": [choice("q", annotations)]}
        for who, annotations in ((1, "yes"), (2, "no"))
    ]
    found = examine(write_json(tmp_path / "t.json", [one, task(2, "q", "yes", ground_truth=True)]))
    assert found.gold == {"2": "yes"}
    assert found.notes == ("left out: items with contradicting gold for 'q' (1)",)


def test_nan_as_python_writes_it_is_nothing(tmp_path):
    body = json.dumps([task(1, "q", "yes", lead_time=float("nan"))])
    assert "NaN" in body
    (tmp_path / "t.json").write_text(body, encoding="utf-8")
    assert "duration" not in examine(tmp_path / "t.json").annotations.columns


def choice(name, *options):
    return {"from_name": name, "type": "choices", "value": {"choices": list(options)}}


def task(number, name, *options, text="x", **more):
    annotation = {"completed_by": 1, "result": [choice(name, *options)], **more}
    return {"id": number, "data": {"text": text}, "annotations": [annotation]}


options = st.text(st.characters(codec="utf-8"), min_size=1).filter(lambda name: name[-1] != "\\")


@settings(max_examples=60)
@given(annotations=st.lists(st.tuples(st.integers(1, 5), st.integers(1, 4), options), min_size=1))
def test_any_text_is_a_choice(annotations, tmp_path_factory):
    tasks = [
        {
            **task(item, "q", label),
            "annotations": [{"completed_by": who, "result": [choice("q", label)]}],
        }
        for item, who, label in annotations
    ]
    path = write_json(tmp_path_factory.mktemp("ls") / "t.json", tasks)
    (asked,) = formats["label-studio"].read(open_source(path)).questions.values()
    assert rows(asked) == [(str(item), str(who), label) for item, who, label in annotations]


@given(st.lists(options, unique=True))
def test_options_in_one_label_come_apart_again(chosen):
    assert options_of_label(label_of_options(chosen)) == sorted(chosen)


def test_the_command_reads_an_export_and_asks_which_question():
    done = run("aggregate", FIXTURES / "label_studio.json")
    assert done.returncode == 2
    assert b"several questions, mood (5 labels), topics (2 labels)" in done.stderr
    done = run("aggregate", FIXTURES / "label_studio.json", "--question", "mood", "-s", "majority")
    assert done.returncode == 0
    assert done.stdout.splitlines()[1].startswith(b"7,pos")


def test_an_export_of_classes_is_parsed_once_for_each_state_of_its_file(monkeypatch, tmp_path):
    from dissensus import read

    parse, parsed = label_studio.read, []
    counted = replace(
        label_studio.FORMAT, read=lambda source: parsed.append(source) or parse(source)
    )
    monkeypatch.setattr(label_studio, "FORMAT", counted)
    path = write_json(tmp_path / "t.json", [task(1, "q", "a"), task(2, "q", "b")])
    assert read(path).classes.tolist() == ["a", "b"]
    assert len(parsed) == 1
    write_json(path, [task(1, "q", "a"), task(2, "q", "other")])
    assert read(path).classes.tolist() == ["a", "other"]
    assert len(parsed) == 2
