"""Names are kept as they are; those that look like one are named, and joined on request."""

import json
import time
import unicodedata

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dissensus import Annotations, DataError, OptionError, read, write
from dissensus.answers.rankings import Rankings
from dissensus.answers.sets import Sets
from dissensus.answers.texts import Texts
from dissensus.app.guard import Session
from dissensus.app.journal import Journal
from dissensus.app.pages import Pages
from dissensus.app.workbench import Workbench
from dissensus.formats import examine
from dissensus.formats.spellings import items_alike, may_differ, spelling_notes, strictly

from ..support import relation, rows_of, run

ROWS = [
    *(("1", "ann", "cat"), ("1", "bob", "cat "), ("1", "eve", "dog"), ("2", "ann ", "dog")),
    *(("2", "bob", "caf\u00e9"), ("2", "eve", "dog"), ("3", "ann", "cafe\u0301")),
    *(("3", "bob", "caf\u00e9"), ("4", "ann", "cat"), ("4\u00a0", "bob", "cat")),
    *(("4\u200b", "eve", "cat"), ("5", "ann", "Cat"), ("5", "bob", " "), ("5", "eve", "cat")),
]
PLAIN = [
    (item[:1], who.strip(), unicodedata.normalize("NFC", label).lower().strip() or " ")
    for item, who, label in ROWS
]
KEPT = "spelled in several ways, and counted apart: "
CHANGED = "6 labels changed"  # rows above with a name that is not the most usual one


@pytest.fixture
def table(tmp_path):
    frame = pl.DataFrame(ROWS, schema=["item", "annotator", "label"], orient="row")
    frame.write_csv(tmp_path / "in.csv")
    return tmp_path


VERBS = {
    "aggregate": ("aggregate", "in.csv", "-s", "majority"),
    "agree": ("agree", "in.csv"),
    "check": ("check", "in.csv"),
    "compare": ("compare", "in.csv", "-s", "majority", "-s", "wawa"),
    "convert": ("convert", "in.csv", "out.parquet"),
    "identify": ("identify", "in.csv"),
    "next": ("next", "in.csv", "--budget", "3"),
    "report": ("report", "in.csv", "-o", "report.html"),
}


@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_names_spellings_and_the_option_that_joins_them(verb, table):
    done = run(*VERBS[verb], cwd=table)
    lines = [line for line in done.stderr.decode().splitlines() if line.startswith(KEPT)]
    assert len(lines) == 1, done.stderr.decode()
    assert lines[0] == (
        f"{KEPT}2 classes ('Cat' 1, 'cat' 5, 'cat ' 1; 'cafe\\u0301' 1, 'caf\u00e9' 2), "
        "1 annotator ('ann' 4, 'ann ' 1), 1 item ('4' 1, '4\\xa0' 1, '4\\u200b' 1); "
        "--spelling join makes them one"
    )
    (table / "out.parquet").unlink(missing_ok=True)
    (table / "report.html").unlink(missing_ok=True)
    done = run(*VERBS[verb], "--spelling", "join", cwd=table)
    words = done.stderr.decode()
    assert KEPT not in words
    assert words.count("spellings joined: ") == 1, words
    assert CHANGED in words


def test_the_page_of_the_workbench_and_of_the_report_name_them(table):
    journal = Journal(table / "state")
    workbench = Workbench(lambda: examine(table / "in.csv"), journal, name="x", method="majority")
    try:
        page = Pages(workbench).overview(Session("ann"), {})
        words = "Spelled in several ways, and counted apart: 2 classes (&#39;Cat&#39; 1"
        assert words in page
        assert words[1:] in workbench.present.fit.report.page()
    finally:
        workbench.close()


def test_joined_labels_are_those_of_a_file_that_is_spelled_alike(table):
    assert sorted(rows_of(read(table / "in.csv", spelling="join"))) == sorted(PLAIN)
    assert sorted(rows_of(read(table / "in.csv"))) == sorted(ROWS)
    given = read(table / "in.csv")
    assert sorted(rows_of(read(given, spelling="join"))) == sorted(PLAIN)


@pytest.mark.parametrize(
    ("target", "ending"),
    [
        *(("long", "parquet"), ("long", "jsonl"), ("nested", "json"), ("crowd-kit", "csv")),
        *(("label-studio", "json"), ("argilla", "json"), ("huggingface", "parquet")),
        *(("huggingface", "jsonl"), ("huggingface-folder", ""), ("peerannot", ""), ("wide", "csv")),
    ],
)
def test_every_reader_keeps_names_and_joins_them_on_request(target, ending, tmp_path):
    there, path = relation(ROWS), tmp_path / f"there.{ending}".rstrip(".")
    write(there, path, format=target)
    given = {"format": target} if target == "wide" else {}
    assert sorted(rows_of(read(path, **given))) == sorted(ROWS)
    found = examine(path, spelling="join", **given)
    assert sorted(rows_of(found.annotations)) == sorted(PLAIN)
    assert any(CHANGED in one for one in found.notes)


def test_a_mapping_and_tables_in_memory_are_joined(tmp_path):
    nested = relation(ROWS).to_dict()
    assert sorted(rows_of(read(nested))) == sorted(ROWS)
    assert sorted(rows_of(read(nested, spelling="join"))) == sorted(PLAIN)
    columns = dict(zip(("item", "annotator", "label"), zip(*ROWS, strict=True), strict=True))
    assert sorted(rows_of(read(columns, spelling="join"))) == sorted(PLAIN)
    for part in range(2):
        frame = pl.DataFrame(ROWS[part::2], schema=["item", "annotator", "label"], orient="row")
        frame.write_parquet(tmp_path / f"{part}.parquet")
    files = [str(tmp_path / f"{part}.parquet") for part in range(2)]
    done = run("aggregate", *files, "-s", "majority", "--spelling", "join")
    assert CHANGED in done.stderr.decode()
    assert done.stdout.decode().count("\n") == 6
    done = run("aggregate", *files, "-s", "majority")
    assert done.stderr.decode().startswith(KEPT)
    in_parts = ("aggregate", *files, "-o", tmp_path / "out.csv", "--resume")
    done = run(*in_parts)
    assert f"{KEPT}2 classes (" in done.stderr.decode()
    assert "1 annotator ('ann' 4, 'ann ' 1); " in done.stderr.decode()
    done = run(*in_parts, "--spelling", "join")
    assert "--spelling join needs all annotations in memory" in done.stderr.decode()


def test_repeated_labels_and_declared_classes_are_those_of_joined_names(table):
    rows = "item,annotator,label\n1,ann ,dog \n1,ann,cat\n1,ann,cat\n"
    (table / "again.csv").write_text(rows)
    found = read(table / "again.csv", spelling="join", duplicates="first", classes=["cat", "dog"])
    assert rows_of(found) == [("1", "ann", "dog")]
    with pytest.raises(DataError, match="labelled item '1' more than once"):
        read(table / "again.csv", spelling="join", duplicates="error")
    with pytest.raises(OptionError, match="keep or join"):
        read(table / "again.csv", spelling="guess")


ANSWERS = {
    "sets": Sets.from_values(
        "1122", ["ann", "ann ", "ann", "bob"], [["cat", "dog"], ["cat "], ["cat", "Cat"], ["dog"]]
    ),
    "rankings": Rankings.from_values(
        "1122", ["ann", "ann ", "ann", "bob"], [["a", "b"], ["a ", "b"], ["b", "a"], ["a", "b"]]
    ),
    "texts": Texts.from_values("1122", ["ann", "ann ", "ann", "bob"], ["x y", "x", "y", "z"]),
}


@pytest.mark.parametrize("ending", ["csv", "jsonl", "parquet"])
@pytest.mark.parametrize("kind", ANSWERS)
def test_answers_of_other_kinds_are_joined(kind, ending, tmp_path):
    answers, path = ANSWERS[kind], tmp_path / f"answers.{ending}"
    write(answers, path)
    found = examine(path, kind=kind)
    assert found.answers.annotators.tolist() == ["ann", "ann ", "bob"]
    assert any(one.startswith(KEPT) for one in found.notes)
    joined = examine(path, kind=kind, spelling="join")
    assert joined.answers.annotators.tolist() == ["ann", "bob"]
    assert len(joined.answers) == len(answers)
    assert any(one.startswith("spellings joined: ") for one in joined.notes)
    if kind == "sets":
        assert joined.answers.options.tolist() == ["cat", "dog"]
    if kind == "rankings":
        assert joined.answers.things.tolist() == ["a", "b"]


def test_labels_of_marks_are_joined(tmp_path):
    rows = "item,annotator,start,end,label\n1,ann,0,3,PER\n1,ann ,5,7,PER \n1,bob,0,3,PER\n"
    (tmp_path / "spans.csv").write_text(rows)
    found = examine(tmp_path / "spans.csv", spelling="join").answers
    assert found.classes.tolist() == ["PER"]
    assert found.annotators.tolist() == ["ann", "bob"]
    assert len(found) == 2  # both marks of one person are one answer
    assert found.n_elements == 3


def test_things_that_somebody_ranked_against_each_other_are_not_one():
    answers = Rankings.from_values("11", "xy", [["a", "a "], ["a ", "a"]])
    with pytest.raises(DataError, match="are ranked in one answer, so they are not the same"):
        examine(answers, spelling="join")


def test_known_labels_are_compared_with_predictions(tmp_path):
    (tmp_path / "labels.csv").write_text("item,label,confidence\n1,cat,.9\n2,dog,.8\n")
    (tmp_path / "truth.csv").write_text("item,label\n1,cat \n2 ,dog\n")
    asked = ("evaluate", "labels.csv", "--truth", "truth.csv", "--json")
    done = run(*asked, cwd=tmp_path)
    assert done.stderr.decode() == (
        "known labels that predictions spell otherwise: 1 item ('2 ' is '2'), 1 class ('cat ' is "
        "'cat'); --spelling join makes them one\n"
    )
    assert json.loads(done.stdout)["n_scored"] == 1
    done = run(*asked, "--spelling", "join", cwd=tmp_path)
    assert "2 labels changed" in done.stderr.decode()
    scores = json.loads(done.stdout)
    assert scores["n_scored"] == 2
    assert scores["scores"]["accuracy"]["value"] == 1


def test_gold_and_texts_of_a_file_go_along(tmp_path):
    tasks = [
        {"id": item, "text": item, "annotators": ["x", "y"], "labels": labels, "gold": gold}
        for item, labels, gold in (("a", ["cat", "cat "], "cat "), ("a ", ["dog", "cat"], "cat"))
    ]
    (tmp_path / "tasks.json").write_text(json.dumps(tasks))
    found = examine(tmp_path / "tasks.json", spelling="join")
    assert found.gold == {"a": "cat"}
    assert found.texts["item"].to_list() == ["a"]


def test_numbers_and_free_texts_and_clean_names_are_not_accused():
    people = [str(10**20 + number) for number in range(6)]  # equal as floats
    clean = relation([(f"{i}", who, "xy"[i % 2]) for i in range(9) for who in people])
    assert spelling_notes(clean) == ()
    numbers = relation([(str(i), "x", f"{i / 10:.1f}") for i in range(30)] + [("0", "y", "1")])
    assert spelling_notes(numbers) == ()
    prose = relation([(str(i), "x", f"text {i}") for i in range(60)] + [("0", "y", "Text 1")])
    assert spelling_notes(prose) == ()


@given(st.text(min_size=1))
@settings(max_examples=500)
def test_a_name_that_is_not_looked_at_closely_is_its_own_normal_form(name):
    if not may_differ(pl.Series([name])):
        assert strictly(name) == name


@given(st.lists(st.text("ae\u0301\u00e9 \u00a0\u200b\t", min_size=1), min_size=1, unique=True))
def test_items_alike_are_those_of_one_normal_form(names):
    names = sorted(names)
    groups = {}
    for position, name in enumerate(names):
        groups.setdefault(strictly(name), []).append(position)
    expected = sorted(group for group in groups.values() if len(group) > 1)
    assert sorted(items_alike(np.array(names, dtype=np.dtypes.StringDType()))) == expected


def test_a_million_names_are_looked_at_in_a_moment():
    names = pl.Series([f"item {number}" for number in range(10**6)])
    start = time.perf_counter()
    assert not may_differ(names)
    assert time.perf_counter() - start < 1
    annotations = Annotations.from_columns(["a", "a "], ["x", "y"], ["1", "2"])
    assert spelling_notes(annotations, items=False) == ()
