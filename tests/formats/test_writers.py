import gzip
import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dissensus import Annotations, DataError, Numbers, OptionError, aggregate, estimate, read, write
from dissensus.formats import Reading, examine
from dissensus.formats.content import chosen_options
from dissensus.formats.targets import TARGETS, destination_of
from dissensus.formats.writers_init import losses

from ..support import benchmark, relation, rows_of, run, shared_path

AWKWARD = [
    *("a,b", 'x"y', "line\nbreak", "tab\there", "ünï☃", "日本", "שלום", "O'Brien", "👩‍🔬"),
    *(
        "0012",
        "12",
        "-1",
        "7.0",
        "nan",
        "None",
        "null",
        "NA",
        "true",
        " spaces ",
        "a|b",
        "(none)",
        " ",
    ),
    *("\\", "[1]", '{"a": 1}', "=1+1", "#1", "p:x", "model:x", "item"),
]
WAYS = [(name, kind) for name, target in TARGETS.items() for kind in target.kinds]
# What comes back as it was: text, and what is written as such.
FAITHFUL = [(name, kind) for name, kind in WAYS if name not in ("wide", "huggingface")]

few = settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])


def rows_with(names, most=12):
    """Draw rows with awkward names; every item and class is used, and some pairs repeat."""
    return st.integers(2, 6).flatmap(
        lambda n: st.tuples(
            *[st.lists(st.sampled_from(names), min_size=n, max_size=n, unique=True)] * 3
        ).flatmap(
            lambda known: st.lists(
                st.tuples(*map(st.sampled_from, known)), min_size=1, max_size=most
            )
        )
    )


def file_for(name, kind, folder):
    return folder / (name if kind == "folder" else f"{name}.{kind}")


def there_and_back(annotations, name, kind, folder):
    path = file_for(name, kind, folder)
    write(annotations, path, format=name)
    return examine(path, format=None if name != "wide" else "wide")


def same_labels(found, annotations):
    """Return whether annotations are the same; readers know that `model:x` is a model."""
    return replace(found.annotations, annotator_kinds=annotations.annotator_kinds) == annotations


@pytest.mark.parametrize(("name", "kind"), FAITHFUL)
@few
@given(rows=rows_with(AWKWARD))
def test_awkward_names_and_repeats_go_there_and_back(name, kind, rows, tmp_path):
    annotations = relation(rows)
    assert same_labels(there_and_back(annotations, name, kind, tmp_path), annotations)


@pytest.mark.parametrize("kind", ["parquet", "jsonl"])
@few
@given(
    rows=rows_with([name for name in AWKWARD if name != "[1]"]).filter(
        lambda rows: len({item for item, *_ in rows}) > 1  # one line of lists could be anything
    )
)
def test_lists_for_hugging_face_go_there_and_back(kind, rows, tmp_path):
    annotations = relation(rows)
    assert same_labels(there_and_back(annotations, "huggingface", kind, tmp_path), annotations)


# The reader of wide tables guesses the separator.
WIDE = [name for name in AWKWARD if not set(name) & set(",\t|")]


def lost_in_cells(annotations):
    """Return what a wide table cannot hold, other than that it is one."""
    return [one for one in losses(annotations, "x.csv", "wide") if "format='wide'" not in one]


@pytest.mark.parametrize("kind", ["csv", "tsv"])
@few
@given(rows=rows_with(WIDE).filter(lambda rows: not lost_in_cells(relation(rows))))
def test_wide_tables_go_there_and_back_where_no_loss_is_listed(kind, rows, tmp_path):
    annotations = relation(rows)
    assert same_labels(there_and_back(annotations, "wide", kind, tmp_path), annotations)


@pytest.mark.parametrize("kind", TARGETS["wide"].kinds)
def test_a_wide_table_has_a_row_for_every_item_and_a_column_for_every_annotator(kind, tmp_path):
    annotations = relation(
        [("b", "ann", "x"), ("a", "bob", "y"), ("a", "item", "x"), ("a", "item", "y")],
        items="abc",
        annotators=["ann", "bob", "item", "zoe"],
    )
    path = tmp_path / f"wide.{kind}"
    write(annotations, path, format="wide")
    frame = {
        "csv": lambda: pl.read_csv(path),
        "tsv": lambda: pl.read_csv(path, separator="\t"),
        "parquet": lambda: pl.read_parquet(path),
        "arrow": lambda: pl.read_ipc(path),
        "jsonl": lambda: pl.read_ndjson(path),
    }[kind]()
    assert frame.to_dict(as_series=False) == {
        "item_id": ["a", "b", "c"],
        "ann": [None, "x", None],
        "bob": ["y", None, None],
        "item": ["x", None, None],
        "zoe": [None, None, None],
    }
    assert losses(annotations, path, "wide") == [
        "1 labels are left out: an annotator has one cell for an item, and the label that sorts "
        "first is kept",
        "its columns do not show that it is a wide table: format='wide' reads it",
        "the annotator 'item' may be taken for a column of that name",
    ]


def test_a_wide_table_that_would_be_empty_cells_is_refused(tmp_path):
    annotations = Annotations.from_codes(
        np.array([0]), np.array([0]), np.array([0]), items=100_000, annotators=10_000, classes=2
    )
    with pytest.raises(OptionError, match="1e\\+09 cells, nearly all of them empty"):
        write(annotations, tmp_path / "wide.csv", format="wide")
    assert list(tmp_path.iterdir()) == []


def test_a_wide_table_is_what_cleanlab_takes(tmp_path):
    annotations = relation([("a", "x", "0"), ("a", "y", "1"), ("b", "y", "1"), ("c", "x", "0")])
    write(annotations, tmp_path / "wide.csv", format="wide")
    assert (tmp_path / "wide.csv").read_text() == "item,x,y\na,0,1\nb,,1\nc,0,\n"


def test_crowd_kit_gets_its_names(tmp_path):
    annotations = relation([("a", "x", "0"), ("a", "y", "1")])
    write(annotations, tmp_path / "crowd.csv", format="crowd-kit")
    assert (tmp_path / "crowd.csv").read_text() == "task,worker,label\na,x,0\na,y,1\n"
    write(aggregate(annotations, "majority"), tmp_path / "labels.csv", format="crowd-kit")
    assert (tmp_path / "labels.csv").read_text().startswith("task,label,confidence,p:0,p:1\n")


TIMED = Annotations.from_columns(
    ["1", "1", "2", "2"],
    ["7", "eve@example.org", "7", "model:m 1"],
    ["cat", "dog", "cat", "dog"],
    duration=np.array([1.5, 20.0, 3.0, np.nan]),
    time=np.array(["2026-01-31T10:00:00", "2026-01-31T10:01:30", "2026-02-01", "NaT"], "M8[us]"),
    confidence=np.array([np.nan, np.nan, np.nan, 0.75]),
    source=np.array(["person", "person", "person", "model"]),
)
FOUND = Reading(
    TIMED,
    "csv",
    question="animal",
    gold={"1": "dog", "2": "wolf"},
    texts=pl.DataFrame({"item": ["1", "2"], "text": ["<b>wau</b>", "miau, \n"]}),
)


def test_label_studio_gets_people_models_times_gold_and_texts(tmp_path):
    path = tmp_path / "tasks.json"
    write(FOUND, path, format="label-studio")
    first, second = json.loads(path.read_text())
    assert first["id"] == 1
    assert first["data"] == {"item": "1", "text": "<b>wau</b>"}
    assert first["predictions"] == []
    assert first["annotations"][0] == {
        "completed_by": 7,
        "ground_truth": False,
        "was_cancelled": False,
        "result": [
            {
                "from_name": "animal",
                "to_name": "text",
                "type": "choices",
                "value": {"choices": ["cat"]},
            }
        ],
        "lead_time": 1.5,
        "created_at": "2026-01-31T10:00:00Z",
    }
    assert first["annotations"][1]["completed_by"] == {"email": "eve@example.org"}
    assert first["annotations"][1]["ground_truth"] is True
    assert len(second["annotations"]) == 1
    prediction = second["predictions"][0]
    assert (prediction["model_version"], prediction["score"]) == ("m 1", 0.75)
    assert losses(FOUND, path, "label-studio") == [
        "gold of 1 items is left out: nobody gave that label"
    ]


def test_label_studio_gives_back_what_it_got(tmp_path):
    write(FOUND, tmp_path / "tasks.json", format="label-studio")
    back = examine(tmp_path / "tasks.json")
    assert (back.format, back.question, back.kind) == ("label-studio", "animal", "single")
    assert rows_of(back.annotations) == rows_of(TIMED)
    assert back.gold == {"1": "dog"}
    for name in ("duration", "confidence"):
        np.testing.assert_array_equal(back.annotations.columns[name], TIMED.columns[name])
    assert back.annotations.columns["source"].tolist() == TIMED.columns["source"].tolist()
    times = back.annotations.columns["time"].astype("M8[us]")
    np.testing.assert_array_equal(times[:3], TIMED.columns["time"][:3])


def test_results_are_predictions_and_suggestions(tmp_path):
    rows = [("a", "x", "0"), ("a", "y", "1"), *(("b", annotator, "0") for annotator in "xyz")]
    result = aggregate(relation(rows), "majority[ties=abstain]")
    write(result, tmp_path / "tasks.json", format="label-studio", texts={"b": "text of b"})
    undecided, decided = json.loads((tmp_path / "tasks.json").read_text())
    assert undecided["predictions"] == []
    assert decided["annotations"] == []
    assert decided["data"]["text"] == "text of b"
    prediction = decided["predictions"][0]
    assert prediction["model_version"] == result.method
    assert prediction["score"] == 1.0
    assert prediction["result"][0]["value"] == {"choices": ["0"]}
    write(result, tmp_path / "records.jsonl", format="argilla")
    lines = (tmp_path / "records.jsonl").read_text().splitlines()
    assert json.loads(lines[0])["suggestions"] == {}
    assert json.loads(lines[1])["suggestions"] == {
        "label": {"value": "0", "score": 1.0, "agent": result.method}
    }
    assert losses(result, "tasks.json", "label-studio") == [
        "only the probability of the label itself is written, not those of other classes"
    ]
    back = examine(tmp_path / "tasks.json")
    assert rows_of(back.annotations) == [("b", f"model:{result.method}", "0")]


def test_argilla_gets_responses_and_one_suggestion(tmp_path):
    write(FOUND, tmp_path / "records.json", format="argilla")
    first, second = json.loads((tmp_path / "records.json").read_text())
    assert first["fields"] == {"text": "<b>wau</b>"}
    assert first["responses"] == {
        "animal": [{"value": "cat", "user_id": "7"}, {"value": "dog", "user_id": "eve@example.org"}]
    }
    assert second["suggestions"] == {"animal": {"value": "dog", "score": 0.75, "agent": "m 1"}}
    assert losses(FOUND, "x.json", "argilla") == [
        "columns left out: duration, time",
        "gold of 2 items left out: argilla has no place for it",
        "2 annotators are no ids of Argilla's users (UUID), such as '7': "
        "Argilla takes responses only of users it knows",
    ]
    assert rows_of(examine(tmp_path / "records.json").annotations) == rows_of(TIMED)


def test_hugging_face_gets_lists_soft_labels_gold_and_texts(tmp_path):
    path = tmp_path / "set.parquet"
    write(FOUND, path, format="huggingface")
    frame = pl.read_parquet(path)
    assert frame.columns[:5] == ["item", "text", "gold", "annotators", "labels"]
    assert frame["labels"].to_list() == [["cat", "dog"], ["cat", "dog"]]
    assert frame["annotators"].to_list() == [["7", "eve@example.org"], ["7", "model:m 1"]]
    assert frame["gold"].to_list() == ["dog", "wolf"]
    assert frame["duration"].to_list()[0] == [1.5, 20.0]
    annotations = relation([("a", "x", "0"), ("a", "y", "1"), ("b", "x", "0")], items="abc")
    result = aggregate(annotations, "naive-soft")
    write(result, path, format="huggingface")
    frame = pl.read_parquet(path)
    assert frame["labels"].to_list() == [["0", "1"], ["0"], []]
    assert frame["soft_label"].to_list()[:2] == [{"0": 0.5, "1": 0.5}, {"0": 1.0, "1": 0.0}]
    assert frame["label"].to_list()[1] == "0"
    assert rows_of(read(path)) == rows_of(annotations)


def test_hugging_face_files_are_plain_arrow(tmp_path):
    parquet = pytest.importorskip("pyarrow.parquet")
    annotations = relation([("a", "x", "0"), ("a", "y", "1")])
    write(aggregate(annotations), tmp_path / "set.parquet", format="huggingface")
    schema = parquet.read_table(tmp_path / "set.parquet").schema
    kinds = {field.name: str(field.type) for field in schema}
    assert "list<" in kinds["labels"]
    assert kinds["confidence"] == "double"
    assert kinds["soft_label"].startswith("struct<0: double, 1: double")


def test_several_options_at_once_are_several_again(tmp_path):
    annotations = relation([("a", "1", r"cat|dog\|wolf"), ("a", "2", "cat"), ("b", "1", "(none)")])
    found = Reading(annotations, "csv", kind="multiple")
    write(found, tmp_path / "tasks.json", format="label-studio")
    tasks = json.loads((tmp_path / "tasks.json").read_text())
    given_choices = [
        one["result"][0]["value"]["choices"] for task in tasks for one in task["annotations"]
    ]
    assert given_choices == [["cat", "dog|wolf"], ["cat"], []]
    assert chosen_options("(none)") == []
    back = examine(tmp_path / "tasks.json", kind="single")
    assert back.kind == "multiple"
    assert back.annotations == annotations
    write(found, tmp_path / "records.json", format="argilla")
    assert examine(tmp_path / "records.json", kind="single").annotations == annotations


def test_classes_in_order_and_numbers_keep_their_kind(tmp_path):
    annotations = relation([("a", "1", "3"), ("a", "2", "5"), ("b", "1", "5")])
    for kind, name in (("ordinal", "rating"), ("numeric", "number")):
        write(
            Reading(annotations, "csv", kind=kind), tmp_path / "tasks.json", format="label-studio"
        )
        task = json.loads((tmp_path / "tasks.json").read_text())[0]
        assert task["annotations"][0]["result"][0]["value"] == {name: 3}
        back = examine(tmp_path / "tasks.json")
        assert back.kind == kind
        assert back.annotations == annotations.with_scale(kind)
        assert examine(tmp_path / "tasks.json", scale="nominal").annotations == annotations


NUMBERS = Numbers.from_columns(["a", "a", "b"], ["1", "2", "1"], [1.5, 2.25, -3.0])


@pytest.mark.parametrize(("name", "kind"), [w for w in WAYS if w[0] not in ("nested", "peerannot")])
def test_numbers_are_written_where_a_format_has_room(name, kind, tmp_path):
    path = file_for(name, kind, tmp_path)
    write(NUMBERS, path, format=name)
    assert path.stat().st_size > 0
    if name in ("long", "crowd-kit", "label-studio", "huggingface"):
        assert read(path).value.tolist() == [1.5, 2.25, -3.0]
    if name != "wide":
        write(estimate(NUMBERS, "mean"), path, format=name)


@pytest.mark.parametrize("name", ["nested", "peerannot"])
def test_numbers_are_refused_where_there_is_none(name, tmp_path):
    with pytest.raises(OptionError, match="numbers; write a table"):
        write(NUMBERS, tmp_path / "x", format=name)


@pytest.mark.parametrize("name", ["nested", "wide"])
def test_a_result_is_refused_where_there_is_no_place_for_it(name, tmp_path):
    result = aggregate(relation([("a", "x", "0")]), "majority")
    with pytest.raises(OptionError, match=f"{name} is for annotations; a result can be written"):
        write(result, tmp_path / "x.json" if name == "nested" else tmp_path / "x.csv", format=name)


def test_a_folder_takes_results_and_numbered_gold(tmp_path):
    annotations = relation([("0", "0", "1"), ("1", "1", "0")], classes="01")
    found = Reading(annotations, "csv", gold={"1": "0"})
    write(found, tmp_path / "set", format="peerannot")
    assert np.load(tmp_path / "set" / "ground_truth.npy").tolist() == [-1, 0]
    assert losses(found, tmp_path / "set") == []
    write(aggregate(annotations, "majority"), tmp_path / "set", format="peerannot")
    assert np.load(tmp_path / "set" / "labels" / "labels_set_majority.npy").shape == (2, 2)
    named = replace(found, answers=relation([("a", "x", "1")]), gold={"a": "1"})
    assert losses(named, tmp_path / "set") == [
        "gold is left out: the folder's truth is for items and classes with numbers"
    ]


def test_what_cannot_be_held_is_listed_for_every_target():
    annotations = Annotations.from_columns(
        ["a", "a"], ["x", "x"], ["0", "0"], items="ab", classes="01", trust=np.array([1, 2])
    )
    found = Reading(
        annotations, "csv", gold={"a": "0"}, texts=pl.DataFrame({"item": "a", "text": "t"})
    )
    summary = {
        name: " ".join(losses(found, f"x.{TARGETS[name].kinds[0]}", name)) for name in TARGETS
    }
    for name, target in TARGETS.items():
        assert ("items without labels" in summary[name]) == ("unlabelled" not in target.holds)
        assert ("nobody used" in summary[name]) == ("unused" not in target.holds)
        assert ("columns left out: trust" in summary[name]) == (target.columns is not None)
        assert ("the texts of 1" in summary[name]) == ("texts" not in target.holds)
        assert ("labels are left out: an annotator has one cell" in summary[name]) == (
            name == "wide"
        )
        if name != "peerannot":  # names in gold are a matter of its own there
            assert ("gold of 1 items left out" in summary[name]) == ("gold" not in target.holds)


def test_the_ending_and_the_target_have_to_fit(tmp_path):
    annotations = relation([("a", "x", "0")])
    with pytest.raises(DataError, match=r"x.csv: label-studio is written as .json"):
        write(annotations, tmp_path / "x.csv", format="label-studio")
    with pytest.raises(OptionError, match="no format 'label_studio' to write; did you mean label"):
        write(annotations, tmp_path / "x.json", format="label_studio")
    with pytest.raises(OptionError, match="not to standard output"):
        write(annotations, "-", format="huggingface")
    with pytest.raises(DataError, match="arrays are read, not written"):
        write(annotations, tmp_path / "x.npy")
    with pytest.raises(DataError, match=r"plain or as .gz"):
        write(annotations, tmp_path / "x.json.zst", format="label-studio")
    assert list(tmp_path.iterdir()) == []
    assert destination_of(annotations, "tasks.export", "label-studio").kind == "json"
    write(annotations, tmp_path / "x.json.gz", format="label-studio")
    with gzip.open(tmp_path / "x.json.gz") as file:
        assert json.load(file)[0]["id"] == "a"


def test_convert_offers_every_target(tmp_path):
    summary = run("convert", "--help").stdout.decode()
    for name in TARGETS:
        assert name in " ".join(summary.split())
    (tmp_path / "a.csv").write_text("item,annotator,label\n1,2,x\n1,3,y\n")
    (tmp_path / "gold.csv").write_text("item,label\n1,y\n")
    done = run("convert", "a.csv", "-", "--to", "label-studio", "--gold", "gold.csv", cwd=tmp_path)
    assert done.returncode == 0
    assert [one["ground_truth"] for one in json.loads(done.stdout)[0]["annotations"]] == [
        False,
        True,
    ]
    done = run("convert", "a.csv", "w.csv", "--to", "wide", "--json", cwd=tmp_path)
    assert json.loads(done.stdout)["lost"] == [
        "its columns do not show that it is a wide table: --format wide reads it"
    ]
    done = run("convert", "a.csv", "w.csv", "--to", "nothing", cwd=tmp_path)
    assert done.returncode == 2


def test_labels_go_back_into_the_tool_with_their_texts(tmp_path):
    export, back = Path(__file__).parents[1] / "fixtures/label_studio.json", tmp_path / "back.json"
    asked = ["--question", "mood", "-s", "majority"]
    done = run("aggregate", export, *asked, "--to", "label-studio", "-o", back)
    assert done.returncode == 0, done.stderr
    tasks = json.loads(back.read_text(encoding="utf-8"))
    reading = examine(export, question="mood")
    assert [str(task["id"]) for task in tasks] == reading.annotations.items.tolist()
    made = [task["predictions"][0] for task in tasks]
    assert all(one["model_version"] == "majority" for one in made)
    assert all(one["result"][0]["from_name"] == "mood" for one in made)
    texts = dict(reading.texts.iter_rows())
    assert any(texts[str(task["id"])] in task["data"].values() for task in tasks)


# Ordinal, numbers, many classes, few classes, repeats, free texts, gaps that look like labels.
SETS = (
    "anesthesia",
    "bluebirds",
    "lewidi_armis",
    "music",
    "n_emotion",
    "trec_binary",
    "wordsim353",
)


@pytest.mark.parametrize("name", SETS)
def test_what_is_written_is_read_again_or_announced(name, tmp_path):
    """`benchmarks/robustness/round_trips.py` does the same with all data sets."""
    trips = benchmark("round_trips")
    there = examine(shared_path(name) / "answers.csv.gz")
    for target, kind in trips.WAYS:
        (tmp_path / target / kind).mkdir(parents=True)
        unlike = trips.differences(there, target, kind, tmp_path / target / kind)
        assert unlike == [], (target, kind)


FREE = relation([(str(n), who, f"text {n} of {who}") for n in range(40) for who in "xy"])


def test_free_texts_for_argilla_and_lost_scales_are_announced(tmp_path):
    words = " ".join(losses(FREE, tmp_path / "x.json", "argilla"))
    assert "look like free text: they are read back as texts" in words
    write(FREE, tmp_path / "x.json", format="argilla")
    assert examine(tmp_path / "x.json").answers.kind == "texts"
    rated = relation([(str(n), who, str((n + len(who)) % 3)) for n in range(9) for who in "xy"])
    rated = rated.with_scale("ordinal")
    for target, kind in WAYS:
        path = file_for(target, kind, tmp_path)
        announced = "that the scale is ordinal is not written" in " ".join(
            losses(rated, path, target)
        )
        assert announced == (
            there_and_back(rated, target, kind, tmp_path).annotations.scale != "ordinal"
        )
        assert announced == (target != "peerannot")


def test_a_folder_keeps_the_scale(tmp_path):
    for scale in ("nominal", "ordinal", "interval", "ratio"):
        there = relation([("a", "x", "1"), ("a", "y", "2"), ("b", "x", "3")]).with_scale(scale)
        write(there, tmp_path / scale)
        assert examine(tmp_path / scale).annotations == there
        assert read(tmp_path / scale, scale="nominal").scale == "nominal"
    (tmp_path / "ratio" / "metadata.json").write_text('{"scale": 7}')
    assert examine(tmp_path / "ratio").annotations.scale == "nominal"


@pytest.mark.parametrize("ending", ["csv", "jsonl", "parquet"])
def test_a_wide_table_keeps_the_first_label_that_was_given(ending, tmp_path):
    rows = "1,a,z\n1,a,b\n1,b,b\n2,a,b\n2,b,z\n3,a,z\n3,b,b\n"
    (tmp_path / "a.csv").write_text(f"item,annotator,label\n{rows}")
    done = run("convert", "a.csv", f"w.{ending}", "--to", "wide", cwd=tmp_path)
    assert "1 labels are left out: an annotator has one cell for an item, and the first label" in (
        done.stderr.decode()
    )
    found = read(tmp_path / f"w.{ending}", format="wide")
    assert sorted(rows_of(found))[0] == ("1", "a", "z")
    assert len(found) == 6


@pytest.mark.parametrize("ending", ["parquet", "arrow", "jsonl"])
def test_lists_in_the_column_of_labels_are_sets(ending, tmp_path):
    frame = pl.DataFrame(
        {"item": ["1", "1", "2"], "annotator": ["a", "b", "a"], "label": [["y", "z"], ["y"], []]}
    )
    write_frame(frame, tmp_path / f"x.{ending}")
    found = examine(tmp_path / f"x.{ending}").answers
    assert found.kind == "sets"
    assert found.values() == [["y", "z"], ["y"], []]
    found = examine(tmp_path / f"x.{ending}", kind="single").annotations
    assert found.classes.tolist() == ["(none)", "y", "y|z"]


@pytest.mark.parametrize("role", ["item", "annotator", "label"])
def test_bytes_that_are_no_text_are_refused_and_others_are_names(role, tmp_path):
    table = {"item": [b"1", b"2"], "annotator": [b"a", b"a"], "label": [b"y", "\u00e9".encode()]}
    pl.DataFrame(table).write_parquet(tmp_path / "x.parquet")
    assert rows_of(read(tmp_path / "x.parquet")) == [("1", "a", "y"), ("2", "a", "\u00e9")]
    table[role] = [b"\xff\x00", b"y"]
    pl.DataFrame(table).write_parquet(tmp_path / "x.parquet")
    with pytest.raises(DataError, match=f"the {role} holds bytes that are not UTF-8 text"):
        read(tmp_path / "x.parquet")


def write_frame(frame, path):
    way = {"parquet": frame.write_parquet, "arrow": frame.write_ipc, "jsonl": frame.write_ndjson}
    way[path.suffix[1:]](path)


def test_characters_that_readers_of_text_tables_leave_out_are_announced(tmp_path):
    annotations = Annotations.from_columns(["a", "\ufeffb", "a"], "pqr", ["x\0", "x", "x"])
    (sentence,) = losses(annotations, tmp_path / "a.csv")
    assert sentence.startswith("2 names hold NUL characters or byte order marks")
    assert losses(annotations, tmp_path / "a.parquet") == []
    write(annotations, tmp_path / "a.parquet")
    assert read(tmp_path / "a.parquet") == annotations


@pytest.mark.parametrize("row", [("item", "p", "p"), ("a", " ", "x")])
@pytest.mark.parametrize("kind", ["csv", "tsv"])
def test_odd_names_in_a_wide_table_come_back(kind, row, tmp_path):
    annotations = relation([row])
    assert same_labels(there_and_back(annotations, "wide", kind, tmp_path), annotations)
