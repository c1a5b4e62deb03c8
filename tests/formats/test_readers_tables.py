"""Readers of what platforms and published data sets use: every row of every fixture."""

import csv
import io
import json
from datetime import datetime
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dissensus import Annotations, DataError, read, write
from dissensus.base.formulas import guarded_frame
from dissensus.formats import examine
from dissensus.formats.columns import NEEDED
from dissensus.formats.format import TOOLS, head_of, tool_of
from dissensus.formats.sources import Source, open_source
from dissensus.formats.tables import read_columns

from ..support import annotation_rows, recognised_by, relation, rows_of, run, shared_files

FIXTURES = Path(__file__).parents[1] / "fixtures"
MINE = {
    "appen.csv": "appen",
    "headerless_toolkit.csv": "headerless",
    "headerless_truth.csv": "headerless",
    "huggingface.json": "huggingface",
    "huggingface.jsonl": "huggingface",
    "mturk.csv": "mturk",
    "mturk_json.csv": "mturk",
    "soft_labels.json": "votes",
    "toloka.tsv": "toloka",
    "toloka_inputs.tsv": "toloka",
    "votes.csv": "votes",
    "votes.jsonl": "votes",
    "wide.csv": "wide",
    "wide_mace.csv": "wide",
    "wide_matrix.txt": "wide",
    "zooniverse.csv": "zooniverse",
}
PLAIN = ["inverted.json", "long.csv", "question_worker_answer.csv", "questions.csv"]


def asked(name, question, **options):
    return examine(FIXTURES / name, question=question, **{"kind": "single"} | options)


def rows_in(reading):
    return sorted(rows_of(reading.annotations))


def times(reading):
    return reading.annotations.columns["time"].astype("datetime64[s]").astype(datetime).tolist()


@pytest.mark.parametrize("name", [*MINE, *PLAIN])
def test_every_fixture_is_recognised_by_its_own_format_only(name):
    head = head_of(open_source(FIXTURES / name))
    found = recognised_by(head)
    assert found == ([MINE[name]] if name in MINE else [])


@pytest.mark.parametrize("name", MINE)
def test_the_name_of_a_file_does_not_matter(name, tmp_path):
    path = tmp_path / "data.xyz"
    path.write_bytes((FIXTURES / name).read_bytes())
    assert tool_of(head_of(open_source(path))) == MINE[name]


def test_no_shared_table_is_taken_for_an_export():
    taken = {str(path): tool_of(head_of(open_source(path))) for path in shared_files("*/*.csv.gz")}
    odd = {path: name for path, name in taken.items() if name is not None}
    assert {Path(path).name for path in odd} <= {"votes.csv.gz"}
    assert set(odd.values()) <= {"votes"}


def test_mturk_texts_options_and_boxes():
    mood = asked("mturk.csv", "mood")
    assert rows_in(mood) == [
        ("H1", "W1", "pos"),
        ("H1", "W2", "neg"),
        ("H1", "W3", "pos"),
        ("H2", "W1", "pos"),
        ("H2", "W2", "neutral"),
        ("H3", "W1", "neg"),
    ]
    assert mood.questions == {"mood": 6, "style": 5, "comment": 3, "spam": 6}
    assert mood.notes == (
        "kept: rejected answers (1)",
        "1 row is left out: 1 without a label",
        "1 annotator has no label: W4",
    )
    assert mood.annotations.columns["duration"].tolist() == [12, 5, 2, 20, 9, 11]
    assert mood.annotations.columns["status"].tolist().count("Rejected") == 1
    assert times(mood)[0] == datetime(2019, 4, 10, 17, 1, 12)
    assert dict(mood.texts.rows())["H2"] == "t2\nשלום, world 🙂"
    assert [label for *_, label in rows_in(asked("mturk.csv", "spam"))] == [
        *("yes", "no", "yes"),
        *("no", "yes", "no"),
    ]
    style = asked("mturk.csv", "style")
    assert style.kind == "sets"
    assert ("H1", "W1", "clear|short") in rows_of(style.annotations)


def test_mturk_answers_in_json_and_the_same_text_in_two_hits():
    mood = asked("mturk_json.csv", "mood")
    assert rows_in(mood) == [
        ("t1", "W1", "pos"),
        ("t1", "W2", "neg"),
        ("t1", "W3", "pos"),
        ("t2", "W1", "neg"),
    ]
    tags = asked("mturk_json.csv", "tags")
    assert tags.kind == "sets"
    assert [row[2] for row in rows_in(tags)] == ["a\\|c|b", "(none)", "a\\|c"]
    assert [row[2] for row in rows_in(asked("mturk_json.csv", "ok"))] == ["true", "false", "true"]
    assert [row[2] for row in rows_in(asked("mturk_json.csv", "kind"))] == ["joke", "news"]
    assert [row[2] for row in rows_in(asked("mturk_json.csv", "sure"))] == ["3", "5", "4"]


def test_mturk_reads_comments_as_texts_where_something_else_was_asked(tmp_path):
    rows = [f"H{n},W{n},{'ab'[n % 2]},my own words {n}" for n in range(30)]
    path = tmp_path / "batch.csv"
    path.write_text("\n".join(["HITId,WorkerId,Answer.choice,Answer.comment", *rows]))
    found = examine(path)
    assert found.question == "choice"
    assert found.notes == ("not read: comment (30 answers, texts); question='NAME' reads one",)
    path.write_text(path.read_text().replace("Answer.choice", "choice"))
    assert len(read(path)) == 30


def test_toloka_with_and_without_task_ids():
    result = asked("toloka.tsv", "result")
    assert rows_in(result) == [
        ("k1", "w1", "cat"),
        ("k1", "w2", "dog"),
        ("k1", "w3 ☃", "cat"),
        ("k2", "w1", "dog"),
        ("k2", "w2", "cat"),
    ]
    assert result.gold == {"k2": "dog"}
    assert result.notes == (
        "kept: rejected answers (2)",
        "1 row is left out: 1 open, skipped or expired",
        "1 annotator has no label: w4",
    )
    # Two tasks on a page share its half minute.
    assert result.annotations.columns["duration"].tolist() == [15.25, 2, 60, 15.25, 2]
    boxes = asked("toloka.tsv", "boxes")
    assert [row[2] for row in rows_in(boxes)] == ["ears|tail", "(none)", "ears", "tail"]
    by_inputs = examine(FIXTURES / "toloka_inputs.tsv")
    assert by_inputs.gold == {"b, c.jpg": "dog"}
    assert len(by_inputs.annotations) == 5


def test_appen_questions_are_distinguished_from_inputs():
    mood = asked("appen.csv", "mood")
    assert rows_in(mood) == [
        ("700", "31", "pos"),
        ("700", "32", "neg"),
        ("700", "33", "pos"),
        ("701", "31", "pos"),
        ("701", "32", "pos"),
        ("702", "31", "mixed"),
    ]
    assert mood.questions == {"mood": 6, "tags": 6, "remark": 1}
    assert mood.gold == {"701": "pos"}  # 702 accepts two answers
    assert mood.notes == (
        "kept: judgements of people who failed test questions (1)",
        "left out: gold of test questions that accept several answers (1)",
        "1 row is left out: 1 without a label",
    )
    assert mood.annotations.columns["confidence"].tolist() == [0.92, 0.81, 0.4, 0.92, 0.81, 0.92]
    assert mood.annotations.columns["duration"].tolist() == [45, 90, 90, 45, 90, 90]
    assert dict(mood.texts.rows())["702"] == "two\nlines\nhttp://x.example/702"
    tags = asked("appen.csv", "tags")
    assert tags.kind == "sets"
    assert tags.gold == {"701": "warm", "702": "cold|warm"}
    assert ("700", "31", "cold|warm") in rows_of(tags.annotations)


def test_an_aggregated_appen_report_is_refused(tmp_path):
    path = tmp_path / "agg.csv"
    path.write_text("_unit_id,_golden,_trusted_judgments,mood,mood:confidence\n1,false,3,pos,0.7\n")
    with pytest.raises(DataError, match="nobody is named; take the full report"):
        read(path)


def test_zooniverse_tasks_combinations_surveys_and_anonymous_people():
    first = asked("zooniverse.csv", "T0")
    assert rows_in(first) == [
        ("501", "88e", "Yes"),
        ("501", "ann", "Yes"),
        ("501", "not-logged-in-77f", "No"),
        ("502", "ann", "No"),
        ("502", "bob, jr", '"No" 🐾'),
        ("503", "abc", "No"),
        ("503", "exp", "Yes"),
    ]
    assert first.questions == {"T0": 7, "T1": 4, "T2": 1, "T10": 2}
    assert first.gold == {"503": "Yes"}
    assert first.notes == ()
    assert first.annotations.columns["duration"].tolist()[:2] == [4.5, 5.5]
    assert dict(first.texts.rows()) == {n: f"cam,{n}.jpg" for n in ("501", "502", "503")}
    colours = asked("zooniverse.csv", "T1")
    assert colours.kind == "sets"
    assert [row[2] for row in rows_in(colours)] == ["Blue|Green", "(none)", "Green", "Blue"]
    assert [row[2] for row in rows_in(asked("zooniverse.csv", "T10"))] == ["LION|ZEBRA", "LION"]


def test_zooniverse_workflows_do_not_share_their_tasks(tmp_path):
    lines = (FIXTURES / "zooniverse.csv").read_text().replace("4249", "5000", 1)
    path = tmp_path / "two.csv"
    path.write_text(lines)
    assert {"4249:T0", "5000:T0"} <= set(asked_names(path))


def asked_names(path):
    return TOOLS[tool_of(head_of(open_source(path)))](open_source(path)).questions


def test_lists_of_labels_beside_lists_of_annotators(tmp_path):
    labels = asked("huggingface.jsonl", "labels")
    assert rows_in(labels) == [
        ("u1", "ann", "pos"),
        ("u1", "bob", "neg"),
        ("u2", "ann", "neg"),
        ("u2", "cy", "neg"),
    ]
    assert labels.gold == {"u1": "pos", "u3": "neg"}
    assert labels.notes == ("1 row is left out: 1 without a label", "1 item has no label: u3")
    assert labels.annotations.columns["split"].tolist() == ["train"] * 4
    hate = asked("huggingface.jsonl", "hate")
    assert hate.gold == {}  # gold speaks of labels
    assert [row[2] for row in rows_in(hate)] == ["0", "1", "1", "0", "1"]
    tags = asked("huggingface.jsonl", "tags")
    assert [row[2] for row in rows_in(tags)] == ["a|b", "(none)", "a", "b", "a\\|b"]
    lines = (FIXTURES / "huggingface.jsonl").read_text().splitlines()
    records = [json.loads(line) for line in lines]
    pl.DataFrame(records).write_parquet(tmp_path / "set.parquet")
    assert examine(tmp_path / "set.parquet", question="labels").annotations == labels.annotations


def test_items_without_an_id_are_named_by_their_texts(tmp_path):
    named = examine(FIXTURES / "huggingface.json").annotations
    assert named.items.tolist() == ['nice, "really"', "مرحبا\n🙂"]
    long = [
        {"text": "x" * 500 + end, "annotators": ["a", "b"], "labels": ["0", "1"]} for end in "123"
    ]
    path = tmp_path / "long.json"
    path.write_text(json.dumps(long))
    items = read(path).items.tolist()
    assert len(set(items)) == 3
    assert all(len(name) <= 80 for name in items)


def test_lists_that_do_not_fit_are_reported(tmp_path):
    path = tmp_path / "bad.json"
    path.write_text('[{"annotators": ["a", "b"], "labels": ["x"]}]')
    with pytest.raises(DataError, match="row 1: 2 annotators, but 1 labels"):
        read(path, format="huggingface")


@pytest.mark.parametrize(
    ("name", "counts"),
    [
        (
            "votes.csv",
            {"i1": "cat cat cat dog dog", "i2": "dog " * 5, "i3": "cat dog" + " neither" * 3},
        ),
        ("votes.jsonl", {"n1": "e e e n n", "n2": "c n n n n"}),
        ("soft_labels.json", {"1": "0 1 1", "2": "0 0 0 0 0"}),
    ],
)
def test_counts_are_read_as_votes_of_nobody(name, counts):
    found = examine(FIXTURES / name)
    by_item = {item: [] for item in counts}
    for item, who, label in rows_of(found.annotations):
        assert who.startswith("vote ")
        by_item[item].append(label)
    assert {item: sorted(given) for item, given in by_item.items()} == {
        item: sorted(given.split()) for item, given in counts.items()
    }
    assert "annotators are unknown" in found.notes[0]


def test_votes_per_class_may_be_requested(tmp_path):
    path = tmp_path / "votes.csv"
    path.write_text("picture,happy,sad\na,2,0\nb,1,3\n")
    assert read(path, format="votes").votes().tolist() == [[2, 0], [1, 3]]


@pytest.mark.parametrize(
    ("record", "message"),
    [
        ({"soft_label": {"0": 0.5, "1": 0.5}}, "not of how many votes"),
        ({"soft_label": {"0": 0.3, "1": 0.7}, "n_votes": 2}, "does not come from 2 votes"),
        ({"soft_label": "0.3", "n_votes": 2}, "should be {class: share}"),
        ({"soft_label": {"0": 1.0}, "n_votes": "many"}, "which is not a count"),
    ],
)
def test_shares_without_votes_behind_them_are_refused(record, message, tmp_path):
    path = tmp_path / "soft.jsonl"
    path.write_text(json.dumps({"id": "a", **record}) + "\n" + json.dumps({"id": "b", **record}))
    with pytest.raises(DataError) as problem:
        read(path)
    assert message in str(problem.value)


def test_wide_tables():
    named = examine(FIXTURES / "wide.csv")
    assert rows_in(named) == [
        ("q1", "ann", "cat"),
        ("q1", "bob, jr", "dog"),
        ("q2", "bob, jr", "dog"),
        ("q2", "cy", "cat"),
        ("q3", "ann", "cat"),
        ("q3", "cy", "cat"),
        ("q4", "ann", "dog"),
        ("q4", "bob, jr", "dog"),
        ("q4", "cy", "dog"),
    ]
    assert "3 annotators in columns, 4 items in rows" in named.notes[0]
    assert rows_in(examine(FIXTURES / "wide_mace.csv")) == [
        ("0", "1", "yes"),
        ("0", "3", "no"),
        ("0", "4", "yes"),
        ("1", "1", "no"),
        ("1", "2", "no"),
        ("2", "2", "yes"),
        ("2", "3", "yes"),
        ("2", "4", "no"),
        ("3", "1", "yes"),
        ("3", "2", "no"),
        ("3", "3", "no"),
    ]
    matrix = np.array([[0, 1, -1, 1], [-1, 1, 1, 0], [2, 2, -1, -1], [0, 0, 0, -1]])
    found = read(FIXTURES / "wide_matrix.txt")
    assert found.votes().tolist() == Annotations.from_matrix(matrix).votes().tolist()


@pytest.mark.parametrize("separator", [",", "\t", " ", ";"])
@pytest.mark.parametrize("seed", range(3))
def test_a_written_matrix_is_read_again(separator, seed, tmp_path):
    draw = np.random.default_rng(seed)
    matrix = draw.integers(-1, 4, size=(40, 7))
    np.savetxt(tmp_path / "answers.txt", matrix, fmt="%d", delimiter=separator)
    found = examine(tmp_path / "answers.txt")
    assert found.format == "wide"
    there = Annotations.from_matrix(matrix, annotators=range(1, 8))
    assert sorted(rows_of(found.annotations)) == sorted(rows_of(there))


def test_cleanlab_tables_with_an_index_and_floats(tmp_path):
    path = tmp_path / "wide.csv"
    path.write_text(",a,b,c,d,e\n0,1.0,,0.0,,\n1,,1.0,1.0,,0.0\n2,0.0,0.0,,1.0,\n")
    assert sorted(rows_of(read(path)))[:2] == [("0", "a", "1"), ("0", "c", "0")]
    assert read(path).annotators.tolist() == ["a", "b", "c", "d", "e"]


@pytest.mark.parametrize(
    "table",
    [
        "photo,who,what\n1,1,0\n1,2,1\n2,1,0\n2,2,1\n",
        "photo,who,what,page,x\n1,1,0,3,4\n1,2,1,3,5\n2,1,0,4,1\n",
        "picture,person,mood\np1,ann,pos\np2,ann,neg\np1,bob,pos\n",
        "a,b,c\n1,2,3\n",
    ],
)
def test_a_table_whose_columns_are_unclear_is_not_guessed(table, tmp_path):
    path = tmp_path / "what.csv"
    path.write_text(table)
    with pytest.raises(DataError, match=r"no column for the item among .*; say which: columns="):
        read(path)


def test_tables_without_a_header():
    toolkit = examine(FIXTURES / "headerless_toolkit.csv")
    assert rows_in(toolkit) == [
        ("t1", "w1", "1"),
        ("t1", "w2", "1"),
        ("t1", "w3", "0"),
        ("t2", "w1", "0"),
        ("t2", "w2", "1"),
        ("t3", "w2", "0"),
        ("t3", "w3", "0"),
    ]
    assert toolkit.gold == {"t1": "1", "t2": "1", "t3": "0"}
    assert "columns are taken as item 2, annotator 1, label 3, gold 4" in toolkit.notes[0]
    truth = examine(FIXTURES / "headerless_truth.csv")
    assert rows_in(truth)[:2] == [("10", "3", "no"), ("10", "4", "yes")]
    assert "item 1, annotator 2, label 3" in truth.notes[0]


def test_columns_may_be_given_by_number(tmp_path):
    summary = {"item": "2", "annotator": "1", "label": "3"}
    found = read(FIXTURES / "headerless_truth.csv", columns=summary)
    assert found.items.tolist() == ["3", "4", "5"]
    path = tmp_path / "named.csv"
    path.write_text("photo,who,what\np1,ann,pos\np2,ann,neg\np1,bob,pos\n")
    assert read(path, columns={"item": "1", "annotator": "2", "label": "3"}) == relation(
        [("p1", "ann", "pos"), ("p2", "ann", "neg"), ("p1", "bob", "pos")]
    )
    with pytest.raises(DataError, match="no column 7 for label; there are 3"):
        read(path, columns={**summary, "label": "7"})
    with pytest.raises(DataError, match="by number, but not the label; add label=…"):
        read(path, columns={"item": "1", "annotator": "2"})
    done = run(
        "aggregate", FIXTURES / "headerless_truth.csv", "--columns", "item=2,annotator=1,label=3"
    )
    assert [line.split(b",")[0] for line in done.stdout.splitlines()] == [b"item", b"3", b"4", b"5"]


@given(rows=annotation_rows(most=40, items="pqrst", annotators="vwxyz", classes="01"))
def test_headerless_tables_are_never_read_otherwise_than_written(rows, tmp_path_factory):
    path = tmp_path_factory.mktemp("rows") / "answers.csv"
    body = io.StringIO()
    csv.writer(body, lineterminator="\n").writerows(rows)
    path.write_text(body.getvalue())
    try:
        found = examine(path)
    except DataError:
        return  # too little to be sure
    assert found.format == "headerless"
    assert sorted(rows_of(found.annotations)) == sorted(rows)


def test_several_questions_in_one_long_table():
    with pytest.raises(
        DataError, match=r"several questions, mood \(3 labels\), topic \(2 labels\)"
    ):
        read(FIXTURES / "questions.csv")
    mood = asked("questions.csv", "mood")
    assert rows_in(mood) == [("a", "x", "pos"), ("a", "y", "neg"), ("b", "y", "pos")]
    assert mood.questions == {"mood": 3, "topic": 2}
    with pytest.raises(DataError, match=r"no question 'size'; there are mood"):
        asked("questions.csv", "size")
    assert len(read(FIXTURES / "question_worker_answer.csv")) == 3


def test_answers_the_other_way_round(tmp_path):
    path = FIXTURES / "inverted.json"
    assert rows_in(examine(path, format="peerannot-inverted")) == [
        ("q1", "worker1", "0"),
        ("q1", "worker2", "1"),
        ("q2", "worker1", "1"),
    ]
    assert "format='peerannot-inverted'" in examine(path).notes[0]
    (tmp_path / "answers.json").write_text('{"0": {"0": 1, "1": 0, "2": 1}, "1": {"2": 0}}')
    (tmp_path / "metadata.json").write_text('{"n_classes": 2, "n_workers": 2, "n_task": 3}')
    assert "format='peerannot-inverted'" in examine(tmp_path).notes[0]
    turned = examine(tmp_path, format="peerannot-inverted")
    assert turned.notes == ()
    assert rows_in(turned) == [("0", "0", "1"), ("1", "0", "0"), ("2", "0", "1"), ("2", "1", "0")]


def test_utf_16_is_read_and_noted(tmp_path):
    path = tmp_path / "answers.csv"
    path.write_bytes("task,worker,label\na,Renée,1\n".encode("utf-16"))
    found = examine(path)
    assert rows_of(found.annotations) == [("a", "Renée", "1")]
    assert found.notes == ("written as UTF-16",)


def test_an_unknown_format_lists_the_known_ones(tmp_path):
    with pytest.raises(DataError, match=r"no format 'mtruk'; known are .*mturk"):
        read(FIXTURES / "mturk.csv", format="mtruk")


BROKEN = {
    "mturk": [
        ("HITId,Answer.x\nH,1\n", "no column 'WorkerId'"),
        ("HITId,WorkerId,Answer.taskAnswers\nH,W,{\n", "row 1: Answer.taskAnswers is not JSON"),
        ("HITId,WorkerId,Answer.taskAnswers\nH,W,[1]\n", "should be a list of objects"),
        ("HITId,WorkerId,Answer.x\nH,W,\n", "without any answer"),
    ],
    "toloka": [
        ("INPUT:x\tOUTPUT:y\na\tb\n", "no column 'ASSIGNMENT:worker_id'"),
        ("OUTPUT:y\tASSIGNMENT:worker_id\na\tb\n", "items have no names"),
    ],
    "appen": [("_worker_id,mood\n1,a\n", "no column '_unit_id'")],
    "zooniverse": [
        ("classification_id,annotations\n1,[]\n", "no column 'subject_ids'"),
        ("classification_id,annotations,subject_ids\n1,[,2\n", "line 2: not JSON|is not JSON"),
        ("classification_id,annotations,subject_ids\n1,3,2\n", "should be a list of tasks"),
    ],
    "huggingface": [("task,worker\n1,2\n", "no list of annotators")],
    "votes": [("a,b\nx,y\n", "no counts of votes")],
    "headerless": [("1,2\n3,4\n", "2 columns and no header")],
    "peerannot-inverted": [('{"a": 3}', "answers should be")],
}


@pytest.mark.parametrize(
    ("name", "body", "message"),
    [(name, body, message) for name, cases in BROKEN.items() for body, message in cases],
)
def test_what_a_format_lacks_is_reported(name, body, message, tmp_path):
    path = tmp_path / "broken.dat"
    path.write_text(body)
    with pytest.raises(DataError, match=message) as problem:
        read(path, format=name)
    assert str(problem.value).startswith(str(path))
    assert "\n" not in str(problem.value)


@given(
    names=st.lists(
        st.sampled_from([name for names in NEEDED.values() for name in names]),
        min_size=3,
        max_size=4,
        unique=True,
    )
)
def test_a_table_with_known_names_is_never_an_export(names, tmp_path_factory):
    path = tmp_path_factory.mktemp("known") / "answers.csv"
    path.write_text("\n".join([",".join(names), *(["1,2,0,1"[: 2 * len(names) - 1]] * 5)]))
    assert tool_of(head_of(open_source(path))) is None


def test_columns_about_every_answer_are_carried_along(tmp_path):
    record = {
        "item": "a",
        "annotators": ["x", "y"],
        "labels": ["1", "0"],
        "duration": [2.5, None],
        "source": ["person", "model"],
    }
    path = tmp_path / "set.jsonl"
    path.write_text(json.dumps(record) + "\n" + json.dumps({**record, "item": "b"}) + "\n")
    found = examine(path)
    assert list(found.questions) == ["labels"]
    assert found.annotations.columns["source"].tolist() == ["person", "model"] * 2
    np.testing.assert_array_equal(found.annotations.columns["duration"], [2.5, np.nan] * 2)


@pytest.mark.parametrize("ending", ["parquet", "arrow"])
def test_wide_tables_with_types(ending, tmp_path):
    path = tmp_path / f"wide.{ending}"
    table = pl.DataFrame(
        {"item": ["q1", "q2", "q3"], "ann": [1.0, None, 0.0], "bob": [None, 1.0, 0.0]}
    )
    (table.write_parquet if ending == "parquet" else table.write_ipc)(path)
    found = examine(path)
    assert found.format == "wide"
    assert rows_in(found) == [
        ("q1", "ann", "1"),
        ("q2", "bob", "1"),
        ("q3", "ann", "0"),
        ("q3", "bob", "0"),
    ]
    path.write_bytes(b"")
    table.with_columns(bob=[["1"], [], []]).write_parquet(path)
    with pytest.raises(DataError, match="lists in its columns"):
        read(path, format="wide")


_CELLS = st.text(alphabet="'=+-@\t\ra1. \"\n,é", min_size=1, max_size=5) | st.sampled_from(
    ["-1", "+.5e3", "=1", "''", "-", "'-1", "@a"]
)


@given(st.lists(st.tuples(_CELLS, _CELLS), min_size=1, max_size=6))
def test_downloads_are_read_as_they_were_before_apostrophes_were_added(rows):
    frame = pl.DataFrame(rows, schema={"item": pl.String, "comment": pl.String}, orient="row")
    body = guarded_frame(frame).write_csv().encode()
    for row in csv.reader(io.StringIO(body.decode(), newline="")):
        for cell in row:
            assert cell[:1] not in tuple("=+-@\t\r") or float(cell) is not None
    again = read_columns(Source("download", body, "csv"), None)
    assert again.to_dict(as_series=False) == frame.to_dict(as_series=False)
    if not any(cell[0] in "'=+-@\t\r" for row in rows for cell in row):
        assert body == frame.write_csv().encode()


def test_apostrophes_are_part_of_a_name_in_files_that_are_no_downloads(tmp_path):
    names = ["'=1", "''a", "'b", "=1"]
    annotations = Annotations.from_columns(names, names, names)
    write(annotations, tmp_path / "plain.csv")
    assert "'=1,'=1,'=1" in (tmp_path / "plain.csv").read_text().splitlines()
    assert rows_of(read(tmp_path / "plain.csv")) == rows_of(annotations)
    run("aggregate", "plain.csv", "-s", "majority", "-o", "labels.csv", cwd=tmp_path)
    with (tmp_path / "labels.csv").open(newline="") as file:
        assert {row["item"] for row in csv.DictReader(file)} == set(names)
    run("convert", "plain.csv", "again.csv", cwd=tmp_path)
    assert (tmp_path / "again.csv").read_bytes() == (tmp_path / "plain.csv").read_bytes()


def test_items_that_come_twice_in_a_wide_table_are_no_annotator(tmp_path):
    (tmp_path / "w.csv").write_text("item,p,q,r\ni1,x,y,x\ni2,x,x,x\ni3,y,y,y\ni1,y,y,x\n")
    annotations = examine(tmp_path / "w.csv", format="wide").annotations
    assert annotations.annotators.tolist() == ["p", "q", "r"]
    assert annotations.classes.tolist() == ["x", "y"]
    assert len(annotations) == 12
    first = examine(tmp_path / "w.csv", format="wide", duplicates="first").annotations
    assert (len(first), first.left_out.rows) == (9, {"repeated": 3})
