"""Values that would be merged, lost or misread without a word."""

import gzip
import json
import os
import subprocess
import sys
import threading
import time
import zipfile

import pandas as pd
import polars as pl
import pytest

from dissensus import DataError, install, read, read_truth, write
from dissensus.formats import examine, sources
from dissensus.scale.parquet_files import chunks_of, read_all

from ..support import relation, rows_of, run, run_process
from .test_readers_json import FIXTURES

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


def test_bytes_are_texts_and_refused_where_they_are_none():
    columns = {"item": [b"a", b"b"], "annotator": [b"x", b"x"], "label": [b"1", b"0"]}
    answers = read(pl.DataFrame(columns))
    assert answers.items.tolist() == ["a", "b"]
    assert answers.classes.tolist() == ["0", "1"]
    with pytest.raises(DataError, match="the label holds bytes that are not UTF-8 text"):
        read(pl.DataFrame({**columns, "label": [b"\xff", b"0"]}))


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
    assert dropped.notes == (
        "4 rows are left out: 1 'NaN', 1 'n/a', 1 'NA', 1 'null'",
        "4 items have no label: 0, 1, 2 …",
    )
    kept = examine(tmp_path / "long.csv")
    assert kept.annotations.n_classes == 6
    assert kept.notes[0].startswith("4 labels are classes, unless missing='drop' is given: 'NaN'")
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


SWALLOWED = 'item,annotator,label\n1,a,x\n"1,b,x\n2,a,y\n2",b,y\n3,a,x\n3,b,x\n'


@pytest.mark.parametrize("mark", [",", "\t", ";"])
@pytest.mark.parametrize("ending", ["", ".gz", ".zst"])
def test_a_quote_that_closes_some_lines_later_is_named_and_its_rows_are_counted(
    mark, ending, tmp_path
):
    path = tmp_path / f"q.csv{ending}"
    body = SWALLOWED.replace(",", mark).encode()
    if ending == ".gz":
        body = gzip.compress(body)
    elif ending == ".zst":
        pl.DataFrame({"line": body.decode().splitlines()}).write_csv(
            path, include_header=False, compression="zstd", quote_style="never"
        )
        body = path.read_bytes()
    path.write_bytes(body)
    reading = examine(path)
    assert len(reading.annotations) == 4
    assert reading.annotations.left_out.rows == {"inside a quoted field (lines 3 to 5)": 2}
    assert reading.notes[0].startswith("lines 3 to 5 are one quoted field, and look like rows")
    done = run("check", path, "--strict")
    assert (done.returncode, b"swallowed-rows" in done.stdout) == (1, True)
    assert b"lines 3 to 5" in run("aggregate", path, "-s", "majority").stderr


def test_a_swallowed_mark_is_named_too(tmp_path):
    rows = ["1,a,0,3,x", '"1,b,0,2,y', "2,a,1,2,x", '2",b,1,2,x', "3,a,0,1,y"]
    (tmp_path / "s.csv").write_text("\n".join(["item,annotator,start,end,label", *rows]) + "\n")
    done = run("check", tmp_path / "s.csv", "--strict")
    assert done.returncode == 1
    assert b"lines 3 to 5 are one quoted field" in done.stderr


@pytest.mark.parametrize(
    "text",
    [
        "first, second, third\nand, so, on",
        "a\nb",
        "one, two,\nthree, four",
        "no comma\n\n\nat all",
        'He wrote ""yes"",\nand then, no, never',
        "well,\nyes,",
        "x, y\nx, y\nx, y",
    ],
)
@pytest.mark.parametrize("place", range(4))
def test_a_text_with_honest_line_breaks_is_not_accused(text, place, tmp_path):
    rows = [[f"i{n}", "abc"[n % 3], "xy"[n % 2], str(n)] for n in range(40)]
    header = ["item", "annotator", "label", "time"]
    for n, row in enumerate([header, *rows]):
        row.insert(place, f'"{text} {n % 7}"' if n else "text")
    lines = [",".join(row) for row in [header, *rows]]
    (tmp_path / "a.csv").write_text("\n".join(lines) + "\n")
    reading = examine(tmp_path / "a.csv")
    assert len(reading.annotations) == 40
    assert not reading.annotations.left_out
    assert not [note for note in reading.notes if "quoted" in note]


MARK = b"\xef\xbb\xbf"


@pytest.mark.parametrize("between", [b"", MARK], ids=["plain", "mark"])
@pytest.mark.parametrize(
    ("first", "second", "options"),
    [
        (b"item,annotator,label\n1,a,x\n1,b,y\n", b"item,annotator,label\n2,a,x\n2,b,y\n", {}),
        (b"item,annotator,label\n1,a,x\n1,b,y\n", b'"item","annotator","label"\r\n2,a,x\r\n', {}),
        (b"id,ann,bob,cy\n1,x,y,x\n2,y,x,x\n", b"id,ann,bob,cy\n3,y,y,x\n4,x,x,y\n", {}),
        (
            b"photo,who,what is it\n1,a,x\n1,b,y\n2,a,x\n",
            b"photo,who,what is it\n3,a,x\n3,b,x\n",
            {"columns": {"item": "1", "annotator": "2", "label": "3"}},
        ),
        (
            b"photo,who,what is it\n1,a,x\n1,b,y\n2,a,x\n",
            b"photo,who,what is it\n3,a,x\n3,b,x\n",
            {"columns": {"item": "photo", "annotator": "who", "label": "what is it"}},
        ),
    ],
    ids=["long", "quoted", "wide", "numbered", "named"],
)
def test_files_that_were_joined_have_one_header(first, second, options, between, tmp_path):
    for name, body in {"a": first, "b": second, "both": first + between + second}.items():
        (tmp_path / f"{name}.csv").write_bytes(body)
    parts = [rows_of(read(tmp_path / f"{name}.csv", **options)) for name in "ab"]
    reading = examine(tmp_path / "both.csv", **options)
    assert sorted(rows_of(reading.annotations)) == sorted(parts[0] + parts[1])
    assert reading.annotations.left_out.rows == {"that repeat the header": 1}
    assert "1 row is left out: 1 that repeat the header" in reading.notes
    marks = [note for note in reading.notes if "byte order mark" in note]
    assert len(marks) == bool(between)


def test_a_mark_before_a_row_without_a_header_is_no_part_of_its_item(tmp_path):
    body = b"item,annotator,label\n1,a,x\n" + MARK + b"1,b,y\n"
    (tmp_path / "a.csv").write_bytes(body)
    assert read(tmp_path / "a.csv").items.tolist() == ["1"]


def test_a_line_after_a_second_header_is_named_by_its_number(tmp_path):
    (tmp_path / "a.csv").write_text("item,annotator,label\n1,a,x\nitem,annotator,label\n2,,y\n")
    with pytest.raises(DataError, match="line 4: no annotator"):
        read(tmp_path / "a.csv")


def test_a_row_without_a_header_may_come_again(tmp_path):
    (tmp_path / "a.csv").write_text("1,a,x\n1,a,x\n2,a,y\n2,b,y\n1,b,x\n2,b,x\n")
    columns = {"item": "1", "annotator": "2", "label": "3"}
    assert len(read(tmp_path / "a.csv", columns=columns)) == 6


def test_nul_characters_are_no_class_and_are_counted(tmp_path):
    rows = b"item,annotator,label\n1,a,x\n1,b,x\0\n2\0,a,y\n2,b,\0\0\n\0\0\0\0\n3,a,x\n"
    (tmp_path / "a.csv").write_bytes(rows)
    with pytest.raises(DataError, match="line 6: 1 fields, but the header has 3"):
        read(tmp_path / "a.csv")
    reading = examine(tmp_path / "a.csv", missing="drop")
    assert reading.annotations.classes.tolist() == ["x", "y"]
    assert reading.annotations.items.tolist() == ["1", "2", "3"]
    assert "8 NUL characters are left out of the texts" in reading.notes
    (tmp_path / "one.csv").write_bytes(rows.replace(b"\0\0\0\0\n", b""))
    with pytest.raises(DataError, match="line 5: no label"):
        read(tmp_path / "one.csv")


@pytest.mark.parametrize("ending", ["", ".gz"])
@pytest.mark.parametrize("name", ["long.csv", "wide.csv", "headerless_truth.csv"])
def test_lines_that_end_in_carriage_returns_alone_are_lines(name, ending, tmp_path):
    body = (FIXTURES / name).read_bytes().replace(b"\r\n", b"\n")
    text = body.replace(b"\n", b"\r")
    (tmp_path / "old").write_bytes(gzip.compress(text) if ending else text)
    (tmp_path / "usual").write_bytes(body)
    assert read(tmp_path / "old") == read(tmp_path / "usual")


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="a system without pipes in folders")
def test_a_pipe_that_nobody_writes_to_is_refused_and_a_slow_one_is_read(tmp_path, monkeypatch):
    monkeypatch.setattr(sources, "_PATIENCE", 0.3)
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(DataError, match="pipe: a pipe that nobody has opened to write to it"):
        read(tmp_path / "pipe")

    def write_slowly():
        with (tmp_path / "pipe").open("w") as pipe:
            for row in (TABLE[:30], TABLE[30:]):
                time.sleep(0.6)
                pipe.write(row)
                pipe.flush()

    writer = threading.Thread(target=write_slowly)
    writer.start()
    assert len(read(tmp_path / "pipe")) == 16
    writer.join(10)


def test_a_time_in_digits_of_other_scripts_is_a_text(tmp_path):
    rows = "".join(f"{n},a,x,2026-01-0{n}\n" for n in range(1, 4)) + "4,a,x,2026-0٠-01\n"
    (tmp_path / "a.csv").write_text("item,annotator,label,time\n" + rows, encoding="utf-8")
    assert read(tmp_path / "a.csv").columns["time"].tolist()[-1] == "2026-0٠-01"
    done = run_process("check", "a.csv", cwd=tmp_path)
    assert (done.returncode, b"unreadable-times" in done.stdout) == (0, True)
    assert b"panicked" not in done.stderr
