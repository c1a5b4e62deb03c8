"""Output that cannot be written, that others write too, or that would destroy something."""

import ast
import os
import stat
import subprocess
import sys
import threading
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest

import dissensus
from dissensus import ClassAggregation, OutputError, aggregate
from dissensus.base import files as _files
from dissensus.base.files import atomic_file, atomic_folder, check_folder

from ..support import relation, run, run_process

ROWS = [(item, who, "xy"[(item + who) % 3 == 0]) for item in range(6) for who in range(4)]
TABLE = "task,worker,label\n" + "".join(f"{i},{w},{label}\n" for i, w, label in ROWS)
AS_ROOT = hasattr(os, "geteuid") and os.geteuid() == 0


@pytest.fixture
def answers(tmp_path):
    (tmp_path / "a.csv").write_text(TABLE)
    return tmp_path / "a.csv"


def one_line(done, code=2):
    text = done.stderr.decode()
    assert done.returncode == code, text
    assert text.count("\n") == 1, text
    return text


def within_threads(*works):
    """Run functions at the same time; raise what one of them raises."""
    problems = []

    def guarded(work):
        try:
            work()
        except BaseException as problem:
            problems.append(problem)

    threads = [threading.Thread(target=guarded, args=(work,)) for work in works]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if problems:
        raise problems[0]


def test_threads_that_write_one_file_never_show_half_of_it(tmp_path):
    path, done = tmp_path / "shared.txt", threading.Event()
    bodies = {letter * 200_000 for letter in "abcd"}

    def write(body):
        for _ in range(25):
            with atomic_file(path) as draft, draft.open("w") as file:
                for start in range(0, len(body), 10_000):
                    file.write(body[start : start + 10_000])

    def read():
        while not done.is_set():
            if path.exists():
                assert path.read_text() in bodies

    reader = threading.Thread(target=lambda: within_threads(read))
    reader.start()
    try:
        within_threads(*(lambda body=body: write(body) for body in bodies))
    finally:
        done.set()
        reader.join()
    assert path.read_text() in bodies
    assert [one.name for one in tmp_path.iterdir()] == ["shared.txt"]


def test_threads_that_save_one_result_never_show_a_mixture(tmp_path):
    results = [aggregate(relation([*ROWS, (9, w, "xy"[w % 2])]), "majority") for w in range(3)]
    known = {tuple(result.posterior.ravel()) for result in results}
    results[0].save(tmp_path / "saved")
    done = threading.Event()

    def save(result):
        for _ in range(30):
            result.save(tmp_path / "saved")

    def load():
        while not done.is_set():
            assert tuple(ClassAggregation.load(tmp_path / "saved").posterior.ravel()) in known

    def write():
        try:
            within_threads(*(lambda result=result: save(result) for result in results))
        finally:
            done.set()

    within_threads(write, load, load)
    assert [one.name for one in tmp_path.iterdir()] == ["saved"]


def test_a_link_is_followed_and_modes_are_kept(answers, tmp_path):
    (tmp_path / "real.csv").write_text("old")
    (tmp_path / "real.csv").chmod(0o640)
    (tmp_path / "link.csv").symlink_to("real.csv")
    assert run("aggregate", answers, "-s", "majority", "-o", tmp_path / "link.csv").returncode == 0
    assert (tmp_path / "link.csv").is_symlink()
    assert (tmp_path / "real.csv").read_text().startswith("item,label")
    assert stat.S_IMODE((tmp_path / "real.csv").stat().st_mode) == 0o640
    (tmp_path / "folder").mkdir()
    (tmp_path / "to-folder").symlink_to("folder", target_is_directory=True)
    aggregate(relation(ROWS), "majority").save(tmp_path / "to-folder")
    assert (tmp_path / "to-folder").is_symlink()
    assert (tmp_path / "folder" / "result.json").exists()


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="a system without pipes in folders")
@pytest.mark.parametrize("name", ["pipe.csv", "pipe"])
def test_a_pipe_is_written_through(name, answers, tmp_path):
    os.mkfifo(tmp_path / name)
    found = []
    reader = threading.Thread(target=lambda: found.append((tmp_path / name).read_text()))
    reader.start()
    done = run("aggregate", answers, "-s", "majority", "-o", tmp_path / name)
    assert done.returncode == 0, done.stderr
    reader.join(10)
    assert found[0].startswith("item,label")
    assert stat.S_ISFIFO((tmp_path / name).stat().st_mode)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="a system without /dev/full")
def test_a_device_is_written_through_and_a_full_one_is_reported(answers):
    for output in ("/dev/null", "/dev/full"):
        done = run("aggregate", answers, "-s", "majority", "-o", output)
        assert stat.S_ISCHR(Path(output).stat().st_mode)
        if output == "/dev/full":
            assert "/dev/full: no space left on device" in one_line(done)
    with open("/dev/full", "wb") as full:  # noqa: PTH123
        command = [sys.executable, "-m", "dissensus", "agree", str(answers)]
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, check=False)
    assert done.returncode == 2
    assert done.stderr == b"dissensus: standard output: no space left on device\n"


OUTPUTS = [
    ("aggregate", "a.csv", "-s", "majority", "-o", "{}.csv"),
    ("aggregate", "a.csv", "-s", "majority", "-o", "{}.parquet"),
    ("aggregate", "a.csv", "-s", "majority", "--json", "--save", "{}"),
    ("convert", "a.csv", "{}.json"),
    ("convert", "a.csv", "{}/"),
    ("agree", "a.csv", "-o", "{}.csv"),
    ("agree", "a.csv", "--chart", "{}.svg"),
    ("report", "a.csv", "-o", "{}.html"),
    ("identify", "a.csv", "-o", "{}.csv"),
    ("next", "a.csv", "--json", "-o", "{}.csv"),
    ("simulate", "--folder", "{}"),
    ("watch", "a.csv", "-o", "{}.csv", "--once"),
]


@pytest.mark.parametrize("command", OUTPUTS, ids=" ".join)
def test_output_below_a_file_ends_in_one_line(command, answers, tmp_path):
    (tmp_path / "file").write_text("mine")
    done = run(*(word.format("file/below/out") for word in command), cwd=tmp_path)
    assert "file" in one_line(done).splitlines()[0]
    assert (tmp_path / "file").read_text() == "mine"
    assert sorted(one.name for one in tmp_path.iterdir()) == ["a.csv", "file"]


@pytest.mark.parametrize("command", OUTPUTS, ids=" ".join)
def test_a_folder_that_cannot_be_written_ends_in_one_line(command, answers, tmp_path):
    if AS_ROOT and not Path("/proc/self").exists():
        pytest.skip("root may write anywhere")
    target = Path("/proc/nowhere")  # not even root can write there
    done = run(*(word.format(target / "out") for word in command), cwd=tmp_path)
    assert str(target) in one_line(done)
    assert [one.name for one in tmp_path.iterdir()] == ["a.csv"]


def test_output_below_a_file_names_the_file(answers, tmp_path):
    for below in ("a.csv/y.csv", "a.csv/deep/y.csv"):
        done = run("aggregate", "a.csv", "-s", "majority", "-o", below, cwd=tmp_path)
        assert "a.csv is a file, and not a folder to write into" in one_line(done)


WRITER = """
import os, sys, time
from dissensus.base.files import atomic_file, atomic_folder
with atomic_file("out.csv") as file, atomic_folder("out") as folder:
    file.write_text("half")
    (folder / "inside").write_text("half")
    print(flush=True)
    time.sleep(60)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="a system without locks")
def test_the_drafts_of_a_killed_run_are_removed_by_the_next_and_those_of_others_are_not(tmp_path):
    """Two runs write one output; one of them is killed, then a third writes it."""

    def started():
        command = [sys.executable, "-c", WRITER]
        process = subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE)
        process.stdout.readline()
        return process

    def drafts():
        return {path.name for path in tmp_path.glob(".*.part")}

    alive = started()
    of_alive = drafts()
    killed = started()
    stranger = tmp_path / ".out.csv.mine.part"
    stranger.write_text("another's")
    try:
        killed.kill()
        killed.wait()
        assert (len(of_alive), len(drafts())) == (2, 5)
        for _ in range(2):
            with atomic_file(tmp_path / "out.csv") as file, atomic_folder(tmp_path / "out"):
                file.write_text("whole")
            assert drafts() == {*of_alive, stranger.name}
    finally:
        alive.kill()
        alive.wait()
        killed.stdout.close()
        alive.stdout.close()
    with atomic_file(tmp_path / "out.csv") as file, atomic_folder(tmp_path / "out"):
        file.write_text("whole")
    assert drafts() == {stranger.name}
    assert (tmp_path / "out.csv").read_text() == "whole"


def test_a_draft_that_another_run_takes_for_a_leftover_is_made_again(tmp_path, monkeypatch):
    locked = _files._locked

    @contextmanager
    def late(path):
        monkeypatch.setattr(_files, "_locked", locked)
        _files._remove_leftovers(tmp_path / "out.csv")
        with locked(path) as is_free:
            yield is_free

    monkeypatch.setattr(_files, "_locked", late)
    with atomic_file(tmp_path / "out.csv") as draft:
        draft.write_text("whole")
    assert [(path.name, path.read_text()) for path in tmp_path.iterdir()] == [("out.csv", "whole")]


@pytest.mark.parametrize("problem", [OSError(28, "No space left on device"), KeyError("bug")])
def test_no_empty_folders_are_left_when_writing_fails(problem, tmp_path):
    for writing in (atomic_file, atomic_folder):
        kind = OutputError if isinstance(problem, OSError) else type(problem)
        with pytest.raises(kind), writing(tmp_path / "new" / "deep" / "out"):
            raise problem
        assert not list(tmp_path.iterdir())


def test_a_folder_for_a_file_and_a_file_for_a_folder_are_refused(answers, tmp_path):
    assert "is a folder; name a file" in one_line(run("aggregate", answers, "-o", tmp_path))
    with pytest.raises(OutputError, match="is a file; name a folder"):
        aggregate(relation(ROWS), "majority").save(answers)
    assert answers.read_text() == TABLE


def test_a_saved_folder_is_replaced_only_if_nothing_else_is_in_it(answers, tmp_path):
    save = ("aggregate", answers, "-s", "majority", "--json", "--save", tmp_path / "saved")
    assert run(*save).returncode == 0
    assert run(*save).returncode == 0
    (tmp_path / "saved" / "thesis.txt").write_text("years of work")
    assert "holds something else, 'thesis.txt'" in one_line(run(*save))
    (tmp_path / "site").mkdir()
    (tmp_path / "site" / "result.json").write_text("{}")
    (tmp_path / "site" / "index.html").write_text("mine")
    with pytest.raises(OutputError, match=r"index\.html"):
        aggregate(relation(ROWS), "majority").save(tmp_path / "site")
    assert (tmp_path / "site" / "index.html").read_text() == "mine"


def test_labels_in_pieces_replace_only_pieces(tmp_path):
    (tmp_path / "in").mkdir()
    dissensus.write(relation(ROWS), tmp_path / "in" / "a.parquet")
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.txt").write_text("years of work")
    command = ("aggregate", tmp_path / "in", "-s", "majority", "--memory", "1KB", "-o")
    assert "holds something else" in one_line(run(*command, f"{tmp_path}/mine/"))
    assert "holds something else" in one_line(run(*command, f"{tmp_path}/in/"))
    assert run(*command, f"{tmp_path}/labels/").returncode == 0
    assert run(*command, f"{tmp_path}/labels/").returncode == 0
    check_folder(tmp_path / "labels", ("part-*.parquet",))


def test_a_result_that_was_changed_after_saving_is_refused(tmp_path):
    aggregate(relation(ROWS), "one-coin").save(tmp_path / "saved")
    file = tmp_path / "saved" / "result.json"
    file.write_text(file.read_text().replace('"converged": true', '"converged": false'))
    with pytest.raises(dissensus.DataError, match="damaged after it was saved"):
        ClassAggregation.load(tmp_path / "saved")


ESCAPE = "\x1b]0;owned\x07\x1b[31m\x9b2J\u202e"


@pytest.mark.parametrize(
    "command",
    [
        *("agree a.csv", "agree a.csv --per annotator", "agree a.csv --pairs", "check a.csv"),
        *("identify a.csv", "identify a.csv --items", "report a.csv -o r.html", "compare a.csv"),
        *("aggregate a.csv -s majority --json", "agree a.csv --per item -o -", "next a.csv"),
        *("identify a.csv --json", "check a.csv --json", "check missing.csv"),
        *("aggregate a.csv --gold gold.csv", "evaluate a.csv --truth a.csv"),
    ],
)
def test_control_characters_of_names_do_not_reach_the_terminal(command, tmp_path):
    rows = [(f"{i}{ESCAPE}", f"{w}{ESCAPE}", f"{label}{ESCAPE}") for i, w, label in ROWS]
    table = "task,worker,label\n" + "".join(f'"{i}","{w}","{x}"\n' for i, w, x in rows)
    (tmp_path / "a.csv").write_text(table)
    (tmp_path / "gold.csv").write_text(f"item,label\n0{ESCAPE},z{ESCAPE}\n")
    done = run(*command.split(), cwd=tmp_path)
    shown = (done.stdout + done.stderr).decode()
    assert shown
    assert not {*shown} & {"\x1b", "\x07", "\x9b", "\u202e"}


def test_the_verbs_print_only_through_one_module():
    folder = Path(dissensus.__file__).parent / "cli"
    for path in folder.glob("*.py"):
        names = {ast.unparse(one.func) for one in ast.walk(ast.parse(path.read_text()))
                 if isinstance(one, ast.Call)}  # fmt: skip
        if path.name != "_output.py":
            assert not names & {"click.secho", "Console", "print"}, path
            assert path.name == "__init__.py" or "click.echo" not in names, path


@pytest.mark.parametrize("verb", ["identify", "check", "compare", "agree", "methods"])
def test_a_terminal_of_ascii_shows_everything(verb, answers):
    paths = [] if verb == "methods" else [str(answers)]
    done = subprocess.run(
        [sys.executable, "-m", "dissensus", verb, *paths],
        env={**os.environ, "PYTHONIOENCODING": "ascii"},
        capture_output=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    ("given", "meant"),
    [("agregate", "aggregate"), ("tendency fti", "fit"), ("meta adpt", "adapt"), ("shwo", None)],
)
def test_a_misspelt_verb_gets_a_suggestion(given, meant):
    message = one_line(run(*given.split()))
    assert (f"did you mean {meant}?" if meant else "there are demo, report") in message


def test_an_error_of_the_system_while_reading_is_one_line(tmp_path, monkeypatch):
    (tmp_path / "a.csv").write_text(TABLE)

    def refused(*_, **__):
        raise PermissionError(13, "Permission denied", "a.csv")

    monkeypatch.setattr("dissensus.formats.reading.open_source", refused)
    done = run("aggregate", "a.csv", cwd=tmp_path)
    assert one_line(done) == "dissensus: a.csv: permission denied\n"


def test_output_to_a_closed_pipe_ends_quietly(answers):
    command = f"{sys.executable} -m dissensus convert {answers} - | head -1"
    done = subprocess.run(command, shell=True, capture_output=True, check=False)
    assert done.stdout == b"item,annotator,label\n"
    assert b"Traceback" not in done.stderr
    assert np.char.count(done.stderr.decode(), "\n") <= 1


def test_two_processes_write_one_output(answers, tmp_path):
    command = ("aggregate", answers, "-s", "majority", "--save", tmp_path / "s", "-o")
    done = []
    within_threads(
        *(lambda: done.append(run_process(*command, tmp_path / "l.csv")) for _ in range(4))
    )
    assert {one.returncode for one in done} == {0}, done
    assert sorted(one.name for one in tmp_path.iterdir()) == ["a.csv", "l.csv", "s"]
    assert ClassAggregation.load(tmp_path / "s").method == "majority"


def test_compare_shows_a_dash_where_nothing_can_be_compared(tmp_path):
    (tmp_path / "a.csv").write_text("task,worker,label\na,x,1\nb,y,2\nc,z,1\n")
    shown = run("compare", "a.csv", cwd=tmp_path).stdout.decode()
    assert "majority" in shown
    assert "nan" not in shown
    assert "inf" not in shown
