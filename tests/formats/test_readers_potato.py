"""Potato: folders of users, states, records and tables, and what every answer becomes."""

import csv
import json

import pytest

from dissensus import DataError
from dissensus.formats import examine
from dissensus.formats.format import Head, head_of
from dissensus.formats.sources import Source, open_source

from ..support import recognised_by, rows_of, run

ANSWERS = {  # user → item → scheme → option → value
    "ann": {
        "1": {"mood": {"pos": "true"}, "rate": {"scale_4": "4"}, "topic": {"a": "1", "b": "2"}},
        "2": {"mood": {"neg": "true"}, "rate": {"scale_5": "5"}, "topic": {"a": "1"}},
    },
    'b/o"b\n': {
        "1": {"mood": {"pos": "true"}, "rate": {"scale_2": "2"}, "why": {"text_box": "so nice"}},
        "2": {"mood": {"pos": "true", "free_response": "hm"}, "size": {"slider": "30"}},
    },
}
MOOD = [("1", "ann", "pos"), ("1", 'b/o"b\n', "pos"), ("2", "ann", "neg"), ("2", 'b/o"b\n', "pos")]


def pairs(schemes):
    return [
        [{"schema": s, "name": n}, v] for s, options in schemes.items() for n, v in options.items()
    ]


def write_states(folder, answers=ANSWERS, *, lists=True, more=None):
    for number, (user, given) in enumerate(answers.items()):
        home = folder / f"user {number}"
        home.mkdir(parents=True)
        labels = {item: pairs(schemes) if lists else schemes for item, schemes in given.items()}
        state = {
            "user_id": user,
            "instance_id_ordering": list(labels),
            "instance_id_to_label_to_value": labels,
            "instance_id_to_span_to_value": {},
            **(more or {}),
        }
        (home / "user_state.json").write_text(json.dumps(state))
    return folder


def rows_in(path, question):
    found = examine(path, question=question, kind="single")
    assert found.format == "potato"
    return sorted(rows_of(found.annotations))


@pytest.mark.parametrize("lists", [True, False], ids=["pairs", "objects"])
@pytest.mark.parametrize("inside", ["annotation_output", "task/annotation_output"])
def test_the_states_of_users_are_one_data_set(tmp_path, lists, inside):
    write_states(tmp_path / inside, lists=lists)
    path = tmp_path / inside.split("/")[0]
    assert rows_in(path, "mood") == MOOD
    rate = examine(path, question="rate")
    assert (rate.kind, sorted(rows_of(rate.annotations))) == (
        "ordinal",
        [("1", "ann", "4"), ("1", 'b/o"b\n', "2"), ("2", "ann", "5")],
    )
    topic = examine(path, question="topic", kind="single")
    assert (topic.kind, rows_of(topic.annotations)) == (
        "sets",
        [("1", "ann", "a|b"), ("2", "ann", "a")],
    )
    assert rows_in(path, "size") == [("2", 'b/o"b\n', "30")]
    assert "left out: free text beside 'mood' (1)" in topic.notes


def test_times_texts_and_models_come_along(tmp_path):
    answers = {"ann": {"1": {"mood": {"pos": "true"}}}, "m1": {"1": {"mood": {"neg": "true"}}}}
    write_states(
        tmp_path,
        {"ann": answers["ann"]},
        more={"instance_id_to_behavioral_data": {"1": {"total_time_ms": 2500}}},
    )
    shown = {"id": "1", "displayed_text": "nice", "label_annotations": {"mood": {"pos": "true"}}}
    (tmp_path / "user 0" / "annotated_instances.jsonl").write_text(json.dumps(shown) + "\n")
    (tmp_path / "model").mkdir()
    state = {
        "user_id": "m1",
        "origin": {"kind": "llm"},
        "instance_id_to_label_to_value": answers["m1"],
    }
    (tmp_path / "model" / "user_state.json").write_text(json.dumps(state))
    found = examine(tmp_path)
    assert rows_of(found.annotations) == [("1", "ann", "pos"), ("1", "model:m1", "neg")]
    assert found.annotations.columns["duration"].tolist()[0] == 2.5
    assert found.annotations.columns["source"].tolist() == ["person", "model"]
    assert dict(found.texts.iter_rows()) == {"1": "nice"}


def test_older_versions_have_the_user_as_a_folder_and_pages_of_surveys(tmp_path):
    for user in ("ann", "bob"):
        (tmp_path / user).mkdir()
        lines = [
            {
                "id": item,
                "displayed_text": item,
                "label_annotations": {"mood": {"pos": "1"}},
                "span_annotations": [],
                "behavioral_data": {"time_string": "Time spent: 0d 0h 1m 4s "},
            }
            for item in ("p1", "consent.html")
        ]
        path = tmp_path / user / "annotated_instances.jsonl"
        path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    found = examine(tmp_path)
    assert rows_of(found.annotations) == [("p1", "ann", "pos"), ("p1", "bob", "pos")]
    assert found.annotations.columns["duration"].tolist() == [64.0, 64.0]
    assert "2 rows are left out: 2 on pages of a survey" in found.notes
    with pytest.raises(DataError, match="no user; name the folder of all users instead"):
        examine(tmp_path / "ann" / "annotated_instances.jsonl")


def test_one_state_is_read_by_itself(tmp_path):
    write_states(tmp_path)
    assert rows_in(tmp_path / "user 0" / "user_state.json", "mood") == MOOD[::2]


def export_lines(answers):
    return [
        {"instance_id": item, "user_id": user, "labels": schemes, "spans": {}, "links": {}}
        for user, given in answers.items()
        for item, schemes in given.items()
    ]


def test_exports_hold_the_same(tmp_path):
    lines = export_lines(ANSWERS)
    (tmp_path / "annotations.jsonl").write_text("".join(json.dumps(one) + "\n" for one in lines))
    assert rows_in(tmp_path / "annotations.jsonl", "mood") == MOOD
    for name, mark, who, separator in (
        ("annotated_instances.csv", ":::", "user", ","),
        ("annotated_instances.tsv", ":::", "user", "\t"),
        ("annotations.csv", ".", "user_id", ","),
    ):
        rows = [
            {"instance_id": one["instance_id"], who: one["user_id"]}
            | {f"{s}{mark}{n}": v for s, given in one["labels"].items() for n, v in given.items()}
            for one in lines
        ]
        columns = list(dict.fromkeys(name for row in rows for name in row))
        with (tmp_path / name).open("w", newline="") as file:
            writer = csv.DictWriter(file, columns, delimiter=separator)
            writer.writeheader()
            writer.writerows(rows)
        assert rows_in(tmp_path / name, "mood") == MOOD
        assert rows_in(tmp_path / name, "topic") == [("1", "ann", "a|b"), ("2", "ann", "a")]
        head = head_of(open_source(tmp_path / name))
        assert recognised_by(head) == ["potato"]


def test_several_ratings_in_one_scheme_are_questions_of_their_own(tmp_path):
    answers = {
        user: {
            item: {"quality": {"fluent": str(one), "true": str(5 - one)}}
            for one, item in enumerate("abc", 1)
        }
        for user in ("ann", "bob")
    }
    found = examine(write_states(tmp_path, answers), question="quality: fluent")
    assert rows_of(found.annotations)[:2] == [("a", "ann", "1"), ("a", "bob", "1")]
    assert set(found.questions) == {"quality: fluent", "quality: true"}


def test_a_folder_is_recognised_by_no_other_tool(tmp_path):
    write_states(tmp_path)
    head = head_of(Source("x", tmp_path, "folder"))
    assert recognised_by(head) == ["potato"]
    assert recognised_by(Head("folder", ("a/b.json",), ())) == []


@pytest.mark.parametrize(
    ("state", "message"),
    [
        ("{", "not JSON"),
        ("[]", "should be an object with instance_id_to_label_to_value"),
        ('{"user_id": "a", "instance_id_to_label_to_value": [1]}', "should be an object"),
        (
            '{"user_id": "a", "instance_id_to_label_to_value": {"1": [[1, 2]]}}',
            "no version of Potato",
        ),
        ('{"user_id": "a", "instance_id_to_label_to_value": {"1": 3}}', "no version of Potato"),
        ('{"user_id": {}, "instance_id_to_label_to_value": {"1": {}}}', "without any answer"),
    ],
)
def test_a_damaged_state_ends_in_one_line(tmp_path, state, message):
    (tmp_path / "out" / "ann").mkdir(parents=True)
    (tmp_path / "out" / "ann" / "user_state.json").write_text(state)
    done = run("check", "out", cwd=tmp_path)
    assert done.returncode == 2
    assert done.stderr.decode().count("\n") == 1
    assert message in done.stderr.decode()
