import gzip
import io
import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dissensus import (
    Annotations,
    DataError,
    OutputError,
    aggregate,
    read,
    read_truth,
    simulate,
    write,
)
from dissensus.formats import as_answers, as_truth, read_predictions
from dissensus.formats.format import head_of, tool_of
from dissensus.formats.sources import open_source
from dissensus.formats.tools.peerannot import write_simulation
from dissensus.formats.writers_init import losses

from ..support import annotation_rows, relation

TABLES = [
    "csv",
    "tsv",
    "csv.gz",
    "csv.zst",
    "tsv.gz",
    "parquet",
    "arrow",
    "jsonl",
    "jsonl.gz",
    "jsonl.zst",
]
ALL = [*TABLES, "json", ""]  # without an ending: a folder
AWKWARD = [
    ("a,b", 'x"y', "cat\nfish"),
    ("a,b", "tab\there", '"quoted"'),
    ("-", " space ", "ünï☃"),
    ("12", "0012", "<script>"),
    ("NA", "null", "nan"),
    ("012", "NULL", "true"),
    ("日本", "O'Brien", "={1+1}"),
]

keep_folder = settings(max_examples=20, suppress_health_check=[HealthCheck.function_scoped_fixture])


@pytest.mark.parametrize("ending", ALL)
@keep_folder
@given(rows=annotation_rows())
def test_what_is_written_is_read_again(ending, rows, tmp_path):
    annotations = relation(rows)
    path = tmp_path / f"answers.{ending}".rstrip(".")
    write(annotations, path)
    assert read(path) == annotations


@pytest.mark.parametrize("ending", ALL)
def test_awkward_names_survive(ending, tmp_path):
    annotations = relation(AWKWARD)
    path = tmp_path / f"answers.{ending}".rstrip(".")
    write(annotations, path)
    assert read(path) == annotations


@keep_folder
@given(
    names=st.lists(
        st.text(st.characters(codec="utf-8", exclude_characters="\r\0\ufeff"), min_size=1),
        min_size=1,
        unique=True,
    )
)
def test_any_text_is_a_name_in_a_table(names, tmp_path):
    annotations = Annotations.from_columns(names, names, names)
    for ending in ("csv", "parquet", "jsonl", "json"):
        write(annotations, tmp_path / f"answers.{ending}")
        assert read(tmp_path / f"answers.{ending}") == annotations


@pytest.mark.parametrize("ending", [ending for ending in TABLES if ending != "json"])
def test_carried_columns_survive(ending, tmp_path):
    item, annotator, label = zip(*AWKWARD, strict=True)
    times = np.datetime64("2026-01-01T10:00:00", "us") + np.arange(7)
    annotations = Annotations.from_columns(
        item, annotator, label, time=times, confidence=np.linspace(0, 1, 7), split=np.arange(7)
    )
    write(annotations, tmp_path / f"answers.{ending}")
    again = read(tmp_path / f"answers.{ending}")
    assert again.columns["confidence"].tolist() == annotations.columns["confidence"].tolist()
    assert again.columns["split"].tolist() == annotations.columns["split"].tolist()
    assert (
        again.columns["time"].astype("datetime64[us]").tolist()
        == annotations.columns["time"].tolist()
    )


def test_a_folder_keeps_silence_repeats_and_declared_classes(tmp_path):
    annotations = relation(
        [("a", "x", "cat"), ("a", "x", "cat"), ("a", "x", "dog")],
        items="ab",
        classes=["dog", "cat", "fox"],
    )
    write(annotations, tmp_path / "set")
    assert read(tmp_path / "set") == annotations


def test_a_folder_as_peerannot_writes_it(tmp_path):
    (tmp_path / "answers.json").write_text('{"0": {"0": 1, "2": 0}, "2": {"1": 1}}')
    (tmp_path / "metadata.json").write_text(
        '{"name": "mine", "n_classes": 3, "n_workers": 3, "n_task": 4}'
    )
    annotations = read(tmp_path)
    assert annotations.items.tolist() == ["0", "1", "2", "3"]
    assert annotations.classes.tolist() == ["0", "1", "2"]
    assert annotations.votes().tolist() == [[1, 1, 0], [0, 0, 0], [0, 1, 0], [0, 0, 0]]
    (tmp_path / "metadata.json").unlink()
    assert read(tmp_path).items.tolist() == ["0", "2"]


def test_a_written_folder_is_what_peerannot_expects(tmp_path):
    made = simulate(
        "student-teacher[ratio=0.5]", n_items=6, n_annotators=4, n_classes=3, feedback=2
    )
    write_simulation(made, tmp_path / "sim")
    answers = json.loads((tmp_path / "sim" / "answers.json").read_text())
    assert list(answers) == [str(item) for item in range(6)]
    for given_labels in answers.values():
        assert len(given_labels) == 2
        assert all(who in "0123" and label in (0, 1, 2) for who, label in given_labels.items())
    notes = json.loads((tmp_path / "sim" / "metadata.json").read_text())
    assert (notes["name"], notes["n_task"], notes["n_workers"], notes["n_classes"]) == (
        "student-teacher",
        6,
        4,
        3,
    )
    assert np.load(tmp_path / "sim" / "ground_truth.npy").tolist() == made.truth.tolist()
    assert np.load(tmp_path / "sim" / "matrices.npy").shape == (4, 3, 3)
    assert np.load(tmp_path / "sim" / "student_teacher_association.npy").shape == (2, 2)
    assert read(tmp_path / "sim") == made.annotations
    assert read_truth(tmp_path / "sim") == made.truths


@pytest.mark.parametrize("kind", ["csv", "parquet", "jsonl"])
def test_a_simulation_as_tables(kind, tmp_path):
    made = simulate("numeric", n_items=5, n_annotators=3, feedback=2)
    write_simulation(made, tmp_path, kind)
    assert (tmp_path / f"answers.{kind}").exists()
    made = simulate("mace", n_items=30, n_annotators=3, feedback=2)
    write_simulation(made, tmp_path, kind)
    assert len(read(tmp_path / f"answers.{kind}")) == len(made.annotations)
    assert read_truth(tmp_path / f"truth.{kind}") == made.truths


CSV = "task,worker,label\na,x,1\nb,y,2\n"


@pytest.mark.parametrize(
    "content",
    [
        CSV,
        CSV.replace(",", ";"),
        CSV.replace(",", "\t"),
        CSV.replace("\n", "\r\n"),
        "\ufeff" + CSV,
        CSV.rstrip("\n"),
        CSV.replace("\nb", "\n\n\nb"),
        "Item ID,Annotator,Answer\na,x,1\nb,y,2\n",
        "extra,question,rater,rating\n?,a,x,1\n?,b,y,2\n",
        '[{"task": "a", "worker": "x", "label": 1}, {"task": "b", "worker": "y", "label": "2"}]',
        '{"task": "a", "worker": "x", "label": 1}\n{"task": "b", "worker": "y", "label": "2"}\n',
        '{"task": ["a", "b"], "worker": ["x", "y"], "label": [1, 2]}',
        '{"a": {"x": 1}, "b": {"y": 2}}',
        '{\n "a": {"x": "1"},\n "b": {"y": "2"}\n}\n',
    ],
)
@pytest.mark.parametrize("name", ["answers.csv", "answers", "answers.json", "answers.xyz"])
def test_the_content_shows_the_format_not_the_name(content, name, tmp_path):
    (tmp_path / name).write_bytes(content.encode())
    assert read(tmp_path / name) == relation([("a", "x", "1"), ("b", "y", "2")])
    (tmp_path / name).write_bytes(gzip.compress(content.encode()))
    assert read(tmp_path / name) == relation([("a", "x", "1"), ("b", "y", "2")])


def test_standard_input_is_a_dash(monkeypatch):
    stream = io.TextIOWrapper(io.BytesIO(CSV.encode()))
    monkeypatch.setattr(sys, "stdin", stream)
    assert len(read("-")) == 2


def test_other_column_names_can_be_given(tmp_path):
    path = tmp_path / "answers.csv"
    path.write_text("photo,who,what,label,day\np1,x,cat,9,mon\n")
    annotations = read(
        path, columns={"item": "photo", "annotator": "who", "label": "what", "weekday": "day"}
    )
    assert (annotations.items[0], annotations.annotators[0], annotations.classes[0]) == (
        "p1",
        "x",
        "cat",
    )
    assert annotations.columns["weekday"].tolist() == ["mon"]


def test_a_matrix_in_a_file(tmp_path):
    np.save(tmp_path / "matrix.npy", np.array([[0, 1, -1], [1, 1, 0]]))
    assert read(tmp_path / "matrix.npy").votes().tolist() == [[1, 1], [1, 2]]


BAD = {
    "no such file": (None, "no such file or directory"),
    "empty": ("", "empty"),
    "only blank lines": ("\n\n\n", "empty"),
    "only a header": ("task,worker,label\n", "no labels"),
    "no label column": (
        "task,worker,mood\na,x,1\n",
        "no column for the label among 'task', 'worker', 'mood'; say which: columns={'label': '…'}",
    ),
    "two label columns": (
        "task,worker,label,answer\na,x,1,2\n",
        "'label', 'answer' could each be the label; say which: columns={'label': 'label'}",
    ),
    "a column twice": (
        "task,worker,label,label\na,x,1,2\n",
        "'label', 'label' could each be the label",
    ),
    "a missing label": (
        "task,worker,label\na,x,1\nb,x,\n",
        "line 3: no label; missing='drop' leaves such rows out",
    ),
    "several missing": (
        "task,worker,label\na,x,1\nb,,2\nc,,1\n",
        "line 3: no annotator; 1 more lines like this",
    ),
    "missing after a quoted line break": (
        'task,worker,label\n"a\nb",x,1\nc,x,\n',
        "line 4: no label",
    ),
    "a short row": ("task,worker,label\na,x,1\nb,x\n", "line 3: 2 fields, but the header has 3"),
    "a long row": ("task,worker,label\na,x,1,9\n", "line 2: 4 fields, but the header has 3"),
    "latin-1": (
        b"task,worker,label\na,x,1\nb,Ren\xe9,2\n",
        "line 3: not UTF-8; save it again as UTF-8",
    ),
    "half of utf-16": (CSV.encode("utf-16")[:-1], "not whole as UTF-16; save it again as UTF-8"),
    "an open quote": ('task,worker,label\n"a,x,1\n', "line"),
    "broken json": ('{"a": {"x": 1}, ', "line 1: not JSON"),
    "broken jsonl": ('{"task":"a","worker":"x","label":1}\n{"task":"b"\n', "line 2: not JSON"),
    "json of another kind": (
        "[1, 2, 3]",
        "neither a list of records nor {item: {annotator: label}}",
    ),
    "json without rows": ("[]", "no rows"),
    "json without a label": ('[{"task":"a","worker":"x","label":null}]', "row 1: no label"),
    "nested json without a label": ('{"a": {"x": null}}', "row 1: no label"),
    "deep json": ("[" * 100_000, "JSON"),
    "damaged parquet": (b"PAR1" + b"\0" * 40, "damaged parquet"),
    "damaged arrow": (b"ARROW1\0\0" + b"\1" * 40, "damaged arrow"),
    "damaged gzip": (gzip.compress(CSV.encode())[:20], "damaged or not text"),
    "a pickled array": (
        b"\x93NUMPY\x01\x00v\x00{'descr': '|O', 'fortran_order': False, 'shape': (1,), }"
        + b" " * 56
        + b"\n\x80\x04.",
        "not an array of numbers",
    ),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_files_end_in_one_line_that_names_the_file(case, tmp_path):
    content, message = BAD[case]
    path = tmp_path / "bad.dat"
    if content is not None:
        path.write_bytes(content.encode() if isinstance(content, str) else content)
    with pytest.raises(DataError) as problem:
        read(path)
    summary = str(problem.value)
    assert summary.startswith(str(path))
    assert message in summary
    assert "\n" not in summary
    assert len(summary) < 400


def test_rows_that_lack_something_can_be_left_out(tmp_path):
    path = tmp_path / "answers.csv"
    path.write_text("task,worker,label\na,x,1\nb,x,\n,y,2\nc,y,2\n")
    assert read(path, missing="drop") == relation([("a", "x", "1"), ("c", "y", "2")])


def test_declared_classes_hold_for_files(tmp_path):
    path = tmp_path / "answers.csv"
    path.write_text(CSV)
    assert read(path, classes=["3", "2", "1"]).classes.tolist() == ["3", "2", "1"]
    with pytest.raises(DataError, match=r"answers.csv: label '2' is not among the classes 1, 3"):
        read(path, classes=["1", "3"])


def test_truth_from_tables_and_arrays(tmp_path):
    (tmp_path / "truth.csv").write_text("task,gold\na,1\nb,2\n")
    assert read_truth(tmp_path / "truth.csv") == {"a": "1", "b": "2"}
    np.save(tmp_path / "truth.npy", np.array([2, 0, -1]))
    assert read_truth(tmp_path / "truth.npy") == {"0": "2", "1": "0"}
    (tmp_path / "twice.csv").write_text("item,label\na,1\na,2\n")
    with pytest.raises(DataError, match="item 'a' has two true labels, '1' and '2'"):
        read_truth(tmp_path / "twice.csv")


@pytest.mark.parametrize("ending", [*TABLES, "json"])
def test_results_are_written_and_read_as_predictions(ending, tmp_path):
    result = aggregate(relation(AWKWARD), "naive-soft")
    write(result, tmp_path / f"labels.{ending}")
    found = read_predictions(tmp_path / f"labels.{ending}")
    assert found.items.tolist() == result.answers.items.tolist()
    assert found.classes[found.label].tolist() == result.labels.tolist()
    np.testing.assert_allclose(found.posterior, result.probabilities)


def test_undecided_labels_stay_undecided_in_a_table(tmp_path):
    result = aggregate(
        relation([("a", "x", "0"), ("a", "y", "1"), ("b", "x", "0")]), "majority[ties=abstain]"
    )
    write(result, tmp_path / "labels.csv")
    assert read_predictions(tmp_path / "labels.csv").label.tolist() == [-1, 0]


def test_what_a_format_cannot_hold_is_listed():
    annotations = relation([("a", "x", "0"), ("a", "x", "0")], items="ab", classes="012")
    assert losses(annotations, "x.csv") == [
        "1 items without labels are left out: a table has no row for them",
        "2 classes that nobody used are not written: csv does not declare classes",
    ]
    assert losses(annotations, "folder") == [
        "repeated labels are written as lists, which peerannot itself does not read"
    ]
    assert losses(relation(AWKWARD), "x.csv") == []


def test_an_unknown_ending_is_refused(tmp_path):
    with pytest.raises(DataError, match=r"no format ends in .doc; known are .csv, .tsv"):
        write(relation(AWKWARD), tmp_path / "answers.doc")


def test_a_failed_write_leaves_the_old_file_and_nothing_else(tmp_path, monkeypatch):
    path = tmp_path / "answers.csv"
    path.write_text("old")

    def fail(*_args, **_options):
        raise OSError("disk full")

    monkeypatch.setattr("polars.DataFrame.write_csv", fail)
    with pytest.raises(OSError, match="disk full"):
        write(relation(AWKWARD), path)
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_saving_a_result_never_replaces_another_folder(tmp_path):
    (tmp_path / "precious").mkdir()
    (tmp_path / "precious" / "thesis.txt").write_text("words")
    result = aggregate(relation(AWKWARD), "majority")
    with pytest.raises(OutputError, match="holds something else"):
        result.save(tmp_path / "precious")
    result.save(tmp_path / "kept")
    result.save(tmp_path / "kept")
    assert sorted(p.name for p in tmp_path.iterdir()) == ["kept", "precious"]


@pytest.mark.parametrize("damage", ["missing", "not json", "other", "newer"])
def test_a_damaged_result_is_refused(damage, tmp_path):
    folder = tmp_path / "kept"
    aggregate(relation(AWKWARD), "majority").save(folder)
    notes = folder / "result.json"
    match damage:
        case "missing":
            (folder / "arrays.npz").unlink()
        case "not json":
            notes.write_text("{")
        case "other":
            notes.write_text("{}")
        case "newer":
            notes.write_text(json.dumps({**json.loads(notes.read_text()), "format": 99}))
    from dissensus import ClassAggregation

    with pytest.raises(DataError, match=r"kept: (not a saved result|written by another version)"):
        ClassAggregation.load(folder)


def test_paths_may_be_text_or_path_objects(tmp_path):
    write(relation(AWKWARD), str(tmp_path / "a.csv"))
    assert read(str(tmp_path / "a.csv")) == read(Path(tmp_path / "a.csv"))


def test_functions_take_paths_tables_and_mappings_alike(tmp_path):
    columns = {"item": ["a", "a", "b"], "annotator": ["x", "y", "x"], "label": [1, 2, 1]}
    nested = {"a": {"x": 1, "y": 2}, "b": {"x": 1}}
    path = tmp_path / "answers.csv"
    pl.DataFrame(columns).write_csv(path)
    annotations = as_answers(nested)
    assert as_answers(annotations) is annotations
    for source in (columns, pl.DataFrame(columns), pd.DataFrame(columns), path, str(path)):
        assert as_answers(source) == annotations
    with pytest.raises(DataError, match="'a' is neither a column nor"):
        as_answers({"a": 3})
    with pytest.raises(DataError, match="different length: item 2, label 1"):
        as_answers({"item": ["a", "b"], "label": [1]})


def test_truth_is_taken_from_mappings_series_and_tables():
    known = {"a": "cat", "b": "dog"}
    table = {"item": ["a", "b", "c"], "label": ["cat", "dog", None]}
    for source in (
        known,
        pd.Series({**known, "c": None}),
        pd.DataFrame(table),
        pl.DataFrame(table),
    ):
        assert as_truth(source) == known
    with pytest.raises(DataError, match="item 'a' has two true labels"):
        as_truth(pd.Series(["cat", "dog"], index=["a", "a"]))


def test_a_plain_table_needs_no_reader_of_exports(tmp_path):
    path = tmp_path / "answers.csv"
    path.write_text("item,annotator,label\na,x,1\na,y,2\n")
    code = (
        "import sys; from dissensus import read\n"
        f"read({str(path)!r})\n"
        "print([m for m in sys.modules if m.startswith('dissensus.formats.tools.')])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True)
    assert done.stdout.strip() == b"[]", done.stdout


@pytest.mark.parametrize(
    ("header", "name"),
    [
        ("item,annotator,label,annotation_id,lead_time,id", "label-studio"),
        ("task,HITId,WorkerId,worker,Answer.label,label", "mturk"),
        ("item,worker,label,ASSIGNMENT:worker_id,OUTPUT:x,INPUT:y", "toloka"),
        ("unit,user,label,_unit_id,_worker_id,x", "appen"),
    ],
)
def test_an_export_with_the_columns_of_a_long_table_is_recognised(header, name, tmp_path):
    path = tmp_path / "export.csv"
    rows = [",".join(f"{cell}{row}" for cell in "abcdef") for row in range(3)]
    path.write_text("\n".join([header, *rows]) + "\n")
    head = head_of(open_source(path))
    assert not head.is_long()
    assert tool_of(head) == name
