"""Values that would be merged, lost or misread without a word."""

import gzip
import json
import os
import subprocess
import sys
import threading
import zipfile

import pandas as pd
import polars as pl
import pytest

from dissensus import DataError, install, read, read_truth, write
from dissensus.readers import examine
from dissensus.sharded.chunks import chunks_of, read_all
from tests.support import relation, rows_of, run

BIG = 2**60
TABLE = "task,worker,label\n" + "".join(
    f"{item},{who},{'xy'[item in 'ab']}\n" for item in "abcd" for who in "pqrs"
)


@pytest.mark.parametrize("last", ["1.5", "NaN", "null", '"a"'])
def test_large_whole_numbers_stay_apart_beside_another_value(last, tmp_path):
    rows = [f'{{"item": {BIG + n}, "annotator": "x", "label": {n}}}' for n in range(4)]
    odd = f'{{"item": {last}, "annotator": "x", "label": 9}}'
    bodies = {"a.json": "[" + ",".join([*rows, odd]) + "]", "a.jsonl": "\n".join([*rows, odd])}
    for name, body in bodies.items():
        (tmp_path / name).write_text(body)
        items = read(tmp_path / name, missing="drop").items.tolist()
        assert {str(BIG + n) for n in range(4)} <= set(items)


@pytest.mark.parametrize("kind", [pl.Datetime("ns"), pl.Time, pl.Duration("ns")])
def test_times_that_differ_by_a_nanosecond_are_two_names(kind, tmp_path):
    column = pl.Series([1, 2, 3]).cast(kind)
    frame = pl.DataFrame({"item": column, "annotator": ["x"] * 3, "label": ["a", "b", "a"]})
    frame.write_parquet(tmp_path / "a.parquet")
    assert read(frame).n_items == 3
    assert read(tmp_path / "a.parquet").n_items == 3
    assert len(read_truth(frame)) == 3


def test_times_of_pandas_keep_their_nanoseconds():
    frame = {"item": pd.to_datetime([1, 2, 3]), "annotator": list("xyz"), "label": list("aba")}
    assert read(pd.DataFrame(frame)).n_items == 3


def test_whole_numbers_of_any_size_are_names():
    items = [10**40, 10**40 + 1, 3]
    assert read({"item": items, "annotator": [*"xyz"], "label": [*"aba"]}).n_items == 3


def test_bytes_are_texts():
    columns = {"item": [b"a", b"b"], "annotator": [b"x", b"x"], "label": [b"\xff", b"0"]}
    found = read(pl.DataFrame(columns))
    assert found.items.tolist() == ["a", "b"]
    assert found.n_classes == 2


def test_typed_truth_has_the_names_of_typed_annotations(tmp_path):
    frame = pl.DataFrame({"item": [1.0, 2.0, 3.5], "label": [1.0, float("nan"), 2.0]})
    frame.write_parquet(tmp_path / "t.parquet")
    assert read_truth(tmp_path / "t.parquet") == {"1": "1", "3.5": "2"}
    assert read_truth({1.0: float("nan"), 2: 3.0}) == {"2": "3"}
    assert json.dumps(read_truth(frame))


@pytest.mark.parametrize(
    ("name", "body"),
    [
        ("a.json", '{"t1": {"x": 1, "y": 0}, "t1": {"z": 1}}'),
        ("a.json", '{"t1": {"x": 1, "x": 0}}'),
        ("a.json", '[{"item": "a", "annotator": "x", "label": 1, "label": 2}]'),
        ("a.jsonl", '{"item": "a", "annotator": "x", "label": 1, "label": 2}\n' * 2),
        ("a.json", '{"item": ["a"], "annotator": ["x"], "label": [1], "label": [2]}'),
        ("a.json", '[{"id": 1, "data": {"text": "t"}, "annotations": [{"completed_by": 1, '
         '"completed_by": 2, "result": [{"from_name": "q", "type": "choices", "value": '
         '{"choices": ["a"]}}]}]}]'),
        ("a.json", '{"1": {"annotators": "x,y", "annotations": "1,0", "soft_label": {}}, '
         '"1": {"annotators": "z", "annotations": "1", "soft_label": {}}}'),
    ],
)  # fmt: skip
def test_a_key_that_appears_twice_is_refused(name, body, tmp_path):
    (tmp_path / name).write_text(body)
    with pytest.raises(DataError, match="appears twice in one object, and one would be lost"):
        read(tmp_path / name)


def test_two_files_of_one_name_in_an_archive_are_refused(tmp_path):
    with zipfile.ZipFile(tmp_path / "set.zip", "w") as archive:
        archive.writestr("answers.json", '{"0": {"0": 1}}')
        archive.writestr("./answers.json", '{"0": {"0": 0}}')
    with pytest.raises(DataError, match="a name appears twice"):
        install(str(tmp_path / "set.zip"), tmp_path / "out")
    line = '{"id": 1, "text": "t", "label": ["a"]}\n'
    with zipfile.ZipFile(tmp_path / "doccano.zip", "w") as archive:
        archive.writestr("ann.jsonl", line)
        archive.writestr("more/ann.jsonl", line)
    with pytest.raises(DataError, match="two files in it are called 'ann'"):
        read(tmp_path / "doccano.zip")


FIRST, SECOND = "Ann B-X\nb O\n", "Ann O\nb B-X\n"
JSONL = '{"id": 1, "text": "t", "label": ["%s"]}\n'


@pytest.mark.parametrize(
    "files",
    [
        {"ann.conll": FIRST, "ann.tsv": SECOND},
        {"ann/1.conll": FIRST, "ann/1.txt": SECOND, "bob/1.conll": FIRST},
        {"ann.jsonl": JSONL % "x", "ann.json": f"[{JSONL % 'y'}]", "bob.jsonl": JSONL % "x"},
    ],
)
def test_two_files_of_an_annotator_with_one_name_are_not_joined(files, tmp_path):
    for name, body in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(body)
    for paths in (tmp_path, [str(tmp_path / name) for name in files if "bob" not in name]):
        with pytest.raises(DataError, match=r"two files '(ann|1)' of annotator"):
            read(paths)


def test_several_paths_are_read_as_the_folder_they_are_in(tmp_path):
    names = ("ann/1.conll", "bob/1.conll", "ann/2.conll")
    for name in names:
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(FIRST)
    spans = read([str(tmp_path / name) for name in names])
    assert spans.annotators.tolist() == ["ann", "bob"]
    assert spans.items.tolist() == ["1:1", "2:1"]
    assert spans.to_rows() == read(tmp_path).to_rows()


def test_files_too_deep_in_a_folder_are_not_left_out_in_silence(tmp_path):
    for name in ("ann/x.conll", "bob/a/b/x.conll", "bob/.git/b/x.conll"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(FIRST)
    with pytest.raises(DataError, match=r"bob/a/b/x\.conll is below two folders of an annotator"):
        read(tmp_path)
    (tmp_path / "bob" / "a" / "b" / "x.conll").rename(tmp_path / "bob" / "x.conll")
    assert read(tmp_path).annotators.tolist() == ["ann", "bob"]


def changed_before_rows(monkeypatch, change):
    """Have a file changed after its columns were read and before its rows are."""
    whole = pl.read_csv

    def read_csv(*given, **options):
        change()
        return whole(*given, **options)

    monkeypatch.setattr(pl, "read_csv", read_csv)


def test_a_file_that_is_replaced_while_it_is_read_is_the_old_or_the_new_one(tmp_path, monkeypatch):
    path, new = tmp_path / "a.csv", tmp_path / "new.csv"
    path.write_text("item,annotator,label\n1,ann,x\n2,bob,y\n")
    new.write_text("annotator,item,label\ncy,3,z\ndee,4,x\n")
    changed_before_rows(monkeypatch, lambda: new.exists() and new.replace(path))
    assert read(path).to_dict() == {"3": {"cy": "z"}, "4": {"dee": "x"}}


@pytest.mark.parametrize("name", ["a.csv", "a.csv.gz"])
def test_a_file_that_goes_on_changing_or_goes_is_named_in_one_line(name, tmp_path, monkeypatch):
    path, body = tmp_path / name, b"item,annotator,label\n1,ann,x\n"
    path.write_bytes(gzip.compress(body) if name.endswith("gz") else body)

    def grow():
        with path.open("ab") as file:
            file.write(gzip.compress(b"2,bob,y\n") if name.endswith("gz") else b"2,bob,y\n")

    with monkeypatch.context() as patched:
        changed_before_rows(patched, grow)
        with pytest.raises(DataError, match=f"{name}: changes while it is read; read a copy of it"):
            read(path)
    assert set(read(path).to_dict()) == {"1", "2"}
    changed_before_rows(monkeypatch, path.unlink)
    with pytest.raises(DataError, match=f"{name}: no such file or directory"):
        read(path)


def test_a_file_of_several_that_is_not_there_is_named(tmp_path):
    (tmp_path / "ann.conll").write_text(FIRST)
    with pytest.raises(DataError, match=r"bob\.conll: no such file or directory"):
        read([str(tmp_path / "ann.conll"), str(tmp_path / "bob.conll")])


def test_a_class_called_none_survives_a_wide_table(tmp_path):
    rows = [(item, who, ("None", "cat")[(n + k) % 2]) for n, item in enumerate("abcdef")
            for k, who in enumerate("xyz")]  # fmt: skip
    write(relation(rows), tmp_path / "wide.csv", format="wide")
    assert sorted(rows_of(read(tmp_path / "wide.csv"))) == sorted(rows)


def test_words_for_no_label_follow_one_rule_and_are_counted(tmp_path):
    words = ["NaN", "n/a", "NA", "null"]
    (tmp_path / "wide.csv").write_text(
        "item,x,y,z\n" + "".join(f"{n},cat,{w},dog\n" for n, w in enumerate(words)) * 1
        + "4,cat,cat,dog\n5,dog,dog,cat\n"
    )  # fmt: skip
    wide = examine(tmp_path / "wide.csv")
    assert wide.annotations.classes.tolist() == ["cat", "dog"]
    assert any(note.startswith("4 labels are taken for no label: 'NaN' (1)") for note in wide.notes)
    rows = [f"{n},w,{word}" for n, word in enumerate([*words, "cat", "None"])]
    (tmp_path / "long.csv").write_text("task,worker,label\n" + "\n".join(rows) + "\n")
    dropped = examine(tmp_path / "long.csv", missing="drop")
    assert dropped.annotations.classes.tolist() == ["None", "cat"]
    assert dropped.notes == ("4 labels are left out: 'NaN' (1), 'n/a' (1), 'NA' (1), 'null' (1)",)
    kept = examine(tmp_path / "long.csv")
    assert kept.annotations.n_classes == 6
    assert kept.notes[0].startswith("4 labels are classes, unless --missing drop is given: 'NaN'")
    frame = pl.DataFrame({"item": ["a", "b"], "annotator": ["x", "x"], "label": ["NA", "c"]})
    frame.write_parquet(tmp_path / "in.parquet")
    rows_in_parts = chunks_of((str(tmp_path / "in.parquet"),), missing="drop")
    assert read_all(rows_in_parts).classes.tolist() == ["c"]


def test_a_record_alone_is_read_like_several(tmp_path):
    record = {"id": "a", "text": "t", "annotators": ["x", "y"], "labels": ["yes", "no"]}
    (tmp_path / "one.jsonl").write_text(json.dumps(record) + "\n")
    assert len(read(tmp_path / "one.jsonl")) == 2


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="a system without pipes in folders")
@pytest.mark.parametrize("verb", ["aggregate -s majority", "agree", "check", "identify", "report",
                                  "convert - -", "compare", "next"])  # fmt: skip
def test_a_pipe_is_read_like_standard_input(verb, tmp_path):
    os.mkfifo(tmp_path / "pipe")
    writer = threading.Thread(target=(tmp_path / "pipe").write_text, args=(TABLE,))
    writer.start()
    name, *options = verb.split()
    paths = ["pipe", "-"] if name == "convert" else ["pipe"]
    options = [] if name == "convert" else options
    output = ["-o", "r.html"] if name == "report" else []
    done = run(name, *paths, *options, *output, cwd=tmp_path)
    writer.join(10)
    assert done.returncode == 0, done.stderr


def test_standard_input_has_a_path_and_a_shell_can_substitute_one(tmp_path):
    (tmp_path / "a.csv").write_text(TABLE)
    here = f"{sys.executable} -m dissensus aggregate -s majority"
    given = ("cat a.csv | {} /dev/stdin", "{} <(cat a.csv)", "{} /dev/stdin < a.csv")
    for command in given:
        shell = ["bash", "-c", command.format(here)]
        done = subprocess.run(shell, cwd=tmp_path, capture_output=True, check=False)
        assert done.returncode == 0, done.stderr
        assert done.stdout.count(b"\n") == 5
