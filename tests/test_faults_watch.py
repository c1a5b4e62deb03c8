"""`watch` and streams: no row is lost, none is taken for another, no bad file ends it."""

import os
import signal
import subprocess
import sys
import time

import numpy as np
import polars as pl
import pytest

from dissensus import DataError, aggregate, read
from dissensus.scale.online import OnlineAggregation
from dissensus.scale.stream import Stream
from tests.support import rows_of, run

HEADER = "task,worker,label\n"


def watch(folder, *arguments, code=0):
    done = run("watch", *arguments, "-o", "labels.csv", "--once", cwd=folder)
    assert done.returncode == code, done.stderr.decode()
    return done.stderr.decode()


def n_labels(folder):
    with Stream.opened(folder / ".labels.csv.state") as stream:
        return len(stream.online)


def test_rows_that_share_an_id_are_all_kept(tmp_path):
    rows = ["A1,t1,w1,x", "A1,t2,w1,y", "A1,t3,w1,x", "A2,t1,w2,x", "A2,t2,w2,x"]
    body = "\n".join(["assignment_id,task,worker,label", *rows, ""])
    (tmp_path / "a.csv").write_text(body)
    watch(tmp_path, "a.csv")
    assert n_labels(tmp_path) == 5
    (tmp_path / "b.csv").write_text(body)  # sent twice
    watch(tmp_path, "b.csv")
    assert n_labels(tmp_path) == 5


def test_an_empty_id_is_none(tmp_path):
    (tmp_path / "a.csv").write_text("id,task,worker,label\n,t1,w1,x\n,t1,w1,x\n7,t1,w2,y\n")
    watch(tmp_path, "a.csv")
    assert n_labels(tmp_path) == 3
    model = OnlineAggregation()
    assert model.add("aa", "xx", "00", ids=[None, None]) == 2
    assert model.add("aab", "xxx", "000", ids=["", 1, 1]) == 3


def test_another_file_is_read_from_its_first_row(tmp_path):
    (tmp_path / "in").mkdir()
    for name in ("a.csv", "b.csv"):
        (tmp_path / "in" / name).write_text(HEADER + f"{name},w1,x\nt2,w1,y\n")
        watch(tmp_path, "in")
    assert n_labels(tmp_path) == 4
    (tmp_path / "in" / "a.csv").write_text(HEADER + "c,w1,x\nt3,w1,y\nt4,w1,y\n")  # rotated
    assert "another file than the one of this name before" in watch(tmp_path, "in")
    assert n_labels(tmp_path) == 7
    with (tmp_path / "in" / "a.csv").open("a") as file:
        file.write("t5,w1,y\n")
    watch(tmp_path, "in")
    assert n_labels(tmp_path) == 8


def test_a_file_whose_old_rows_changed_is_refused(tmp_path):
    (tmp_path / "a.csv").write_text(HEADER + "t1,w1,x\nt2,w1,y\n")
    watch(tmp_path, "a.csv")
    (tmp_path / "a.csv").write_text(HEADER + "t1,w1,x\nt2,w1,x\nt3,w1,x\n")
    assert "a.csv: 2 rows were read before, and now they are others" in watch(
        tmp_path, "a.csv", code=2
    )
    assert n_labels(tmp_path) == 2


def test_names_are_those_of_aggregate(tmp_path):
    frame = pl.DataFrame(
        {
            "item": [1.0, 1.0, 2.5],
            "annotator": [True, False, True],
            "label": pl.Series([0, 1, 1]).cast(pl.Datetime("ns")),
        }
    )
    frame.write_parquet(tmp_path / "a.parquet")
    watch(tmp_path, "a.parquet")
    with Stream.opened(tmp_path / ".labels.csv.state") as stream:
        there = stream.online.result().annotations
    assert sorted(rows_of(there)) == sorted(rows_of(read(tmp_path / "a.parquet")))
    assert there.items.tolist() == ["1", "2.5"]
    assert there.n_classes == 2


def test_labels_are_among_the_declared_classes(tmp_path):
    (tmp_path / "a.csv").write_text(HEADER + "t1,w1,x\nt2,w1,z\n")
    message = watch(tmp_path, "a.csv", "--classes", "x,y", code=2)
    assert "label 'z' is not among the classes x, y" in message
    with Stream.opened(tmp_path / ".labels.csv.state", classes=["x", "y"]) as stream:
        assert len(stream.online) == 0
        stream.add("a", "b", "x")
    with (
        Stream.opened(tmp_path / ".labels.csv.state", classes=["x", "y"]) as stream,
        pytest.raises(DataError, match="label 'z'"),
    ):
        stream.add("a", "b", "z")


def test_a_column_called_id_may_be_the_item(tmp_path):
    (tmp_path / "a.csv").write_text("id,worker,label\nt1,w1,x\nt1,w2,x\nt2,w1,y\n")
    watch(tmp_path, "a.csv", "--columns", "item=id")
    assert n_labels(tmp_path) == 3


def test_a_bad_file_stops_no_other(tmp_path):
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.csv").write_bytes(b"PAR1 and no more")
    (tmp_path / "in" / "b.csv").write_text(HEADER + "t1,w1,x\nt1,w2,x\n")
    (tmp_path / "in" / "c.csv").write_text("nothing,of,that\n1,2,3\n")
    (tmp_path / "in" / "gone.csv").symlink_to("nowhere.csv")
    watch(tmp_path, "in", code=2)
    assert (tmp_path / "labels.csv").exists()
    assert n_labels(tmp_path) == 2


def test_the_output_may_be_in_the_folder(tmp_path):
    (tmp_path / "a.csv").write_text(HEADER + "t1,w1,x\nt1,w2,x\n")
    assert "labels.csv is in the folder that is watched, and left out" in watch(tmp_path, ".")
    watch(tmp_path, ".")
    assert n_labels(tmp_path) == 2


def test_watching_goes_on_past_bad_files_and_full_disks(tmp_path):
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "bad.csv").write_text("no,columns\n1,2\n")
    (tmp_path / "labels.csv").mkdir()  # the output cannot be written
    arguments = ["watch", "in", "-o", "labels.csv", "--every", "0.1", "--state", "state"]
    process = subprocess.Popen(
        [sys.executable, "-c", f"from dissensus.cli import main; main({arguments})"],
        cwd=tmp_path, stderr=subprocess.PIPE, env=os.environ,
    )  # fmt: skip
    try:
        (tmp_path / "labels.csv").rmdir()
        until = time.monotonic() + 60
        while not (tmp_path / "state").exists() and time.monotonic() < until:
            time.sleep(0.05)
        (tmp_path / "in" / "good.csv").write_text(HEADER + "t1,w1,x\nt2,w2,y\n")
        while not (tmp_path / "labels.csv").exists() and time.monotonic() < until:
            time.sleep(0.05)
        assert process.poll() is None
        assert (tmp_path / "labels.csv").read_text().count("\n") == 3
    finally:
        process.send_signal(signal.SIGINT)
        errors = process.communicate(timeout=30)[1].decode()
    assert errors.count("bad.csv: no column for the item") == 1
    assert "Traceback" not in errors


def test_a_stream_agrees_with_aggregate(tmp_path):
    rng = np.random.default_rng(0)
    rows = [f"i{i},w{w},{rng.integers(3)}" for i in range(60) for w in range(4)]
    (tmp_path / "a.csv").write_text(HEADER + "\n".join(rows[:100]) + "\n")
    watch(tmp_path, "a.csv")
    (tmp_path / "a.csv").write_text(HEADER + "\n".join(rows) + "\n")
    watch(tmp_path, "a.csv")
    labels = read(tmp_path / "a.csv")
    there = pl.read_csv(tmp_path / "labels.csv").sort("item")["label"].cast(pl.String).to_list()
    result = aggregate(labels, "dawid-skene")
    back = dict(zip(labels.items.tolist(), result.labels.tolist(), strict=True))
    assert there == [back[item] for item in sorted(back)]
