"""`watch` and streams: no row is lost, none is taken for another, no bad file ends it."""

import contextlib
import gzip
import json
import os
import signal
import subprocess
import sys
import threading
import time

import numpy as np
import polars as pl
import pytest

from dissensus import DataError, aggregate, read
from dissensus.scale.growing_files import _read_whole
from dissensus.scale.online import OnlineAggregation
from dissensus.scale.stream import Stream
from dissensus.scale.watching import WatchedFiles

from ..support import rows_of, run

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
        there = stream.online.result().answers
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
    message = watch(tmp_path, "in", code=2)
    assert "a.csv: damaged parquet" in message  # all of them are named
    assert "c.csv: no column" in message
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


def results(folder, *arguments):
    """Return the summary and the messages of a watch, and its labels by item."""
    done = run("watch", *arguments, "-o", "labels.csv", "--once", "--json", cwd=folder)
    assert done.returncode == 0, done.stderr.decode()
    table = pl.read_csv(folder / "labels.csv", infer_schema=False)
    labels = dict(zip(table["item"].to_list(), table["label"].to_list(), strict=True))
    return json.loads(done.stdout), done.stderr.decode(), labels


def studies(folder):
    """Write two studies with items of the same names."""
    rows = {"studyA": ["p1,ann,x", "p1,bob,x", "p2,ann,x", "p2,bob,y"]}
    rows["studyB"] = ["p1,ann,y", "p1,bob,y", "p1,cem,y", "p2,ann,x", "p2,cem,x"]
    for name, lines in rows.items():
        (folder / name).mkdir()
        (folder / name / "a.csv").write_text(HEADER + "\n".join(lines) + "\n")


def test_another_input_is_refused_unless_forced(tmp_path):
    studies(tmp_path)
    watch(tmp_path, "studyA")
    (tmp_path / "labels.csv").unlink()
    message = watch(tmp_path, "studyB", code=2)
    assert message.count("\n") == 1
    assert "holds annotations of studyA, not of studyB; name another folder with --state" in message
    assert "--force" in message
    assert n_labels(tmp_path) == 4
    assert not (tmp_path / "labels.csv").exists()
    summary, message, labels = results(tmp_path, "studyB", "--force")
    assert "replaced: 4 annotations of studyA" in message
    assert (summary["new"], summary["n_labels"]) == (5, 5)
    assert labels == {"p1": "y", "p2": "x"}
    assert "not of studyA" in watch(tmp_path, "studyA", code=2)


def test_a_resumed_run_says_what_it_resumes(tmp_path):
    studies(tmp_path)
    assert "resumed" not in watch(tmp_path, "studyA")
    message = watch(tmp_path, "studyA")
    assert message.startswith("resumed: 4 annotations of studyA; state in .labels.csv.state\n")
    (tmp_path / "studyA").rename(tmp_path / "study C")
    summary, message, _ = results(tmp_path, "study C")
    assert "of studyA, which is study C now;" in message
    assert (summary["new"], summary["n_labels"]) == (0, 4)
    (tmp_path / "study C" / "a.csv").unlink()
    assert "of study C, whose files are gone;" in watch(tmp_path, "study C")


def test_the_state_of_an_older_version_is_resumed(tmp_path):
    studies(tmp_path)
    watch(tmp_path, "studyA")
    note = tmp_path / ".labels.csv.state" / "stream.json"
    settings = json.loads(note.read_text())
    assert settings.pop("input") == str(tmp_path / "studyA")
    note.write_text(json.dumps(settings))
    (tmp_path / "studyB" / "a.csv").rename(tmp_path / "studyB" / "b.csv")
    assert "resumed: 4 annotations of a.csv;" in watch(tmp_path, "studyB")
    assert n_labels(tmp_path) == 9


ENDLESS = {
    "csv": ("task,worker,label\nt1,w1,x\nt1,w2,x\n", "t2,w1,y"),
    "tsv": ("task\tworker\tlabel\nt1\tw1\tx\nt1\tw2\tx\n", 't2\tw1\t"y"'),
    "jsonl": (
        '{"task": "t1", "worker": "w1", "label": "x"}\n'
        '{"task": "t1", "worker": "w2", "label": "x"}\n',
        '{"task": "t2", "worker": "w1", "label": "y"}',
    ),
}


@pytest.mark.parametrize("format", ENDLESS)
def test_a_last_row_without_an_end_counts_once(format, tmp_path):  # noqa: A002
    rows, last = ENDLESS[format]
    file = tmp_path / f"a.{format}"
    file.write_text(rows + last)
    for new in (3, 0):
        summary, _, labels = results(tmp_path, file.name)
        assert (summary["new"], summary["n_labels"], labels.keys()) == (new, 3, {"t1", "t2"})
        with Stream.opened(tmp_path / ".labels.csv.state") as stream:
            assert rows_of(stream.online.log.annotations(with_names=True))[-1] == ("t2", "w1", "y")
    file.write_text(rows + last + "\n")
    assert results(tmp_path, file.name)[0]["new"] == 0
    file.write_text(rows + last + "\n" + last.replace("w1", "w2"))
    summary, _, labels = results(tmp_path, file.name)
    assert (summary["new"], summary["n_labels"]) == (1, 4)


def test_a_line_that_goes_on_after_it_was_read_is_replaced(tmp_path):
    file = tmp_path / "a.csv"
    file.write_text(HEADER + "t1,w1,cat\nt2,w1,ca")
    assert results(tmp_path, "a.csv")[2] == {"t1": "cat", "t2": "ca"}
    with file.open("a") as more:
        more.write("t\nt3,w1,cat\n")
    summary, message, labels = results(tmp_path, "a.csv")
    assert (summary["new"], summary["gone"], summary["n_labels"]) == (2, 1, 3)
    assert "the row is replaced" in message
    assert labels == {"t1": "cat", "t2": "cat", "t3": "cat"}
    assert results(tmp_path, "a.csv")[0]["new"] == 0
    (tmp_path / "fresh").mkdir()
    (tmp_path / "fresh" / "a.csv").write_bytes(file.read_bytes())
    results(tmp_path / "fresh", "a.csv")
    assert (tmp_path / "fresh" / "labels.csv").read_text() == (tmp_path / "labels.csv").read_text()


@pytest.mark.parametrize("last", ["t2,w1", "t2,w1,", 't2,w1,"ca', 't2,w1,"ca\nt', "t2,w1,\xff"])
def test_a_line_that_is_no_row_yet_is_named(last, tmp_path):
    file = tmp_path / "a.csv"
    file.write_bytes((HEADER + "t1,w1,x\n" + last).encode("latin-1"))
    summary, message, labels = results(tmp_path, "a.csv")
    assert "a.csv: line 3 is not finished (" in message
    assert labels == {"t1": "x"}
    whole = last.replace("\xff", "x") + {"t2,w1": ",x", "t2,w1,": "x"}.get(
        last, '"' * ('"' in last)
    )
    file.write_text(HEADER + "t1,w1,x\n" + whole + "\n")
    summary, message, labels = results(tmp_path, "a.csv")
    assert (summary["new"], summary["n_labels"]) == (1, 2)
    assert "not finished" not in message


def test_a_last_row_counts_when_the_file_no_longer_grows(tmp_path, capsys):
    file = tmp_path / "a.csv"
    file.write_text(HEADER + "t1,w1,x\nt2,w1,ca")
    with Stream.opened(tmp_path / "state") as stream:
        look = WatchedFiles(stream, file, tmp_path / "labels.csv", columns={}, missing="error")
        assert look.take() == 1
        assert "a.csv: line 3 is not finished ('t2,w1,ca')" in capsys.readouterr().err
        with file.open("a") as more:
            more.write("t")
        assert look.take() == 0  # it has grown
        assert look.take() == 1
        assert look.take() == 0
        assert rows_of(stream.online.result().answers)[-1] == ("t2", "w1", "cat")
        with file.open("a") as more:
            more.write("\nt3,w1,x")
        assert [look.take(), look.take(), look.take()] == [0, 1, 0]
        assert len(stream.online) == 3


def test_a_file_that_was_renamed_copied_or_compressed_counts_once(tmp_path):
    (tmp_path / "in").mkdir()
    file, old = tmp_path / "in" / "a.csv", tmp_path / "in" / "a-old.csv"
    file.write_text(HEADER + "t1,w1,x\nt1,w2,y\nt2,w1,x\n")
    assert results(tmp_path, "in")[0]["new"] == 3
    file.rename(old)
    with old.open("a") as more:
        more.write("t2,w2,x\n")
    summary, message, _ = results(tmp_path, "in")
    assert (summary["new"], summary["n_labels"]) == (1, 4)
    assert "a-old.csv: goes on as a.csv" in message
    (tmp_path / "in" / "b.csv").write_bytes(old.read_bytes())
    (tmp_path / "in" / "b.csv.gz").write_bytes(gzip.compress(old.read_bytes()))
    pl.read_csv(old, infer_schema=False).write_parquet(tmp_path / "in" / "b.parquet")
    summary, message, _ = results(tmp_path, "in")
    assert (summary["new"], summary["n_labels"]) == (0, 4)
    for name in ("b.csv", "b.csv.gz", "b.parquet"):
        assert f"{name}: begins as " in message
    assert message.count("4 rows are a copy and do not count again") == 3
    file.write_text(HEADER + "t9,w1,x\n")  # a new file of the old name
    for copied in ("a-old.csv", "b.csv"):  # both go on alike
        with (tmp_path / "in" / copied).open("a") as more:
            more.write("t3,w1,x\n")
    summary, message, _ = results(tmp_path, "in")
    assert (summary["new"], summary["n_labels"]) == (2, 6)
    assert results(tmp_path, "in")[1].count("\n") == 1  # no file is named again


def test_files_that_take_turns_with_their_names_count_once(tmp_path):
    (tmp_path / "in").mkdir()
    names = [tmp_path / "in" / name for name in ("a.csv", "a.csv.1", "a.csv.2", "a.csv.3")]
    for turn in range(4):
        for old, new in zip(names[-2::-1], names[:0:-1], strict=True):
            if old.exists():
                old.replace(new)
        names[0].write_text(HEADER + f"t{turn},w1,x\nt{turn},w2,y\n")
        assert results(tmp_path, "in")[0]["n_labels"] == 2 * turn + 2


def test_a_copy_that_is_still_being_written_counts_once(tmp_path):
    (tmp_path / "in").mkdir()
    body = (HEADER + "".join(f"t{n},w{n % 3},x\n" for n in range(40))).encode()
    (tmp_path / "in" / "b.csv").write_bytes(body)
    results(tmp_path, "in")
    for size in (30, 100, 101, len(body) - 3, len(body)):
        (tmp_path / "in" / "a.csv").write_bytes(body[:size])
        summary, _, labels = results(tmp_path, "in")
    assert (summary["n_labels"], set(labels.values())) == (40, {"x"})


def test_a_short_copy_of_a_renamed_file_counts_once(tmp_path):
    (tmp_path / "in").mkdir()
    lines = [HEADER, *(f"t{n},w{n % 3},x\n" for n in range(40))]
    (tmp_path / "in" / "b.csv").write_text("".join(lines))
    results(tmp_path, "in")
    (tmp_path / "in" / "b.csv").rename(tmp_path / "in" / "c.csv")
    (tmp_path / "in" / "a.csv").write_text("".join(lines[:20]))
    summary, message, _ = results(tmp_path, "in")
    assert (summary["new"], summary["n_labels"]) == (0, 40)
    assert "a.csv: begins as c.csv; 19 rows are a copy" in message


def test_sub_folders_are_named(tmp_path):
    studies(tmp_path)
    (tmp_path / "studyA" / "2024").mkdir()
    (tmp_path / "studyA" / ".git").mkdir()
    assert "studyA: sub-folders are not read: 2024\n" in watch(tmp_path, "studyA")


def test_repeated_headers_and_byte_order_marks_are_left_out_and_counted(tmp_path):
    (tmp_path / "in").mkdir()
    part = "\ufeff" + HEADER + "t1,w1,x\nt2,w1,y\n"
    (tmp_path / "in" / "a.csv").write_text(part + part + '\ufeff"t3",w1,x\n')
    summary, message, labels = results(tmp_path, "in")
    assert summary["left_out"] == {"byte order marks": 2, "repeated headers": 1}
    assert "a.csv: left out: 2 byte order marks, 1 repeated header\n" in message
    assert (summary["n_labels"], labels) == (5, {"t1": "x", "t2": "y", "t3": "x"})
    with (tmp_path / "in" / "a.csv").open("a") as more:
        more.write(HEADER + "t4,w1,y\n")
    summary, _, _ = results(tmp_path, "in")
    assert (summary["new"], summary["left_out"]) == (1, {"repeated headers": 1})
    for end in ("task,worker,la", "bel", "\nt5,w1,x"):
        with (tmp_path / "in" / "a.csv").open("a") as more:
            more.write(end)
        summary, message, labels = results(tmp_path, "in")
        assert ("is not finished" in message) == end.endswith("la")
    assert summary["left_out"] == {"repeated headers": 1}
    assert labels.keys() == {f"t{n}" for n in range(1, 6)}


def test_a_removed_annotation_was_never_there():
    online, other = OnlineAggregation(), OnlineAggregation()
    online.add("aabbc", "xyxyz", "01002", ids=[1, 2, 3, 4, 5])
    assert online.remove("c", "z", "2", id=5)
    assert not online.remove("c", "z", "2", id=5)
    other.add("aabb", "xyxy", "0100")
    there, back = online.result(), other.result()
    assert there.classes.tolist() == back.classes.tolist() == ["0", "1"]
    np.testing.assert_allclose(there.posterior, back.posterior)
    assert online.add("c", "z", "2", ids=[5]) == 1


def test_a_file_that_is_rewritten_while_it_is_read_is_read_whole(tmp_path):
    file, stop = tmp_path / "a.csv", threading.Event()
    bodies = [HEADER + "".join(f"t{n},w{n % 3},{label}\n" for n in range(20000)) for label in "xy"]
    file.write_text(bodies[0])

    def rewrite():
        turn = 0
        while not stop.is_set():
            turn += 1
            with file.open("w") as open_file:  # truncated, then written again
                open_file.write(bodies[turn % 2])

    thread = threading.Thread(target=rewrite)
    thread.start()
    try:
        for _ in range(100):
            with contextlib.suppress(DataError):
                read_file = _read_whole(file).decode()
                assert any(body.startswith(read_file) for body in bodies)
    finally:
        stop.set()
        thread.join()


ROWS = "t1,w1,x\n" + '"t1,w2,x\nt2,w1,y\nt2",w2,y\n' + "t3,w1,x\nt3,w2,x\n"


@pytest.mark.parametrize("before", ["", HEADER])
def test_a_quote_that_swallows_rows_is_named_once_with_its_lines(before, tmp_path):
    file = tmp_path / "a.csv"
    file.write_text(HEADER + "t1,w3,x\n" + before + ROWS)
    summary, message, _ = results(tmp_path, "a.csv")
    lines = "5 to 7" if before else "4 to 6"
    assert f"a.csv: lines {lines} are one quoted field, and look like rows" in message
    assert summary["left_out"].pop("swallowed rows") == 2
    assert summary["left_out"] == ({"repeated headers": 1} if before else {})
    assert summary["n_labels"] == 5
    with file.open("a") as more:
        more.write("t4,w1,x\n")
    summary, message, _ = results(tmp_path, "a.csv")
    assert "quoted field" not in message
    assert "left_out" not in summary


def test_spellings_are_named_in_a_stream(tmp_path):
    file = tmp_path / "a.csv"
    file.write_text(HEADER + "t1,w1,x\nt1,w2,x \nt2,w1,y\n")
    message = watch(tmp_path, "a.csv")
    assert "counted apart: 1 class ('x' 1, 'x ' 1); aggregate --spelling join" in message


def test_a_copy_of_the_input_is_not_taken_for_the_renamed_one(tmp_path):
    for name in ("a.csv", "b.csv"):
        (tmp_path / name).write_text(HEADER + "t1,w1,x\nt1,w2,x\nt2,w1,y\n")
    watch(tmp_path, "a.csv")
    message = watch(tmp_path, "b.csv")
    assert "resumed: 3 annotations of a.csv, whose rows are in b.csv, too;" in message
