import io
import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
from contextlib import nullcontext, suppress

import click
import numpy as np
import pytest

from dissensus import __version__
from dissensus import cli as command
from dissensus.base import progress as _progress
from dissensus.cli import OTHER_NAMES, VERBS, cli
from dissensus.pages.terminal import echo

from ..support import run, run_process

ANSWERS = "task,worker,label\n" + "".join(
    f"{item},{who},{'cat' if item in 'abc' else 'dog'}\n" for item in "abcdef" for who in "xyz"
)


@pytest.fixture
def answers(tmp_path):
    (tmp_path / "answers.csv").write_text(ANSWERS + "a,w,dog\n")
    return tmp_path


def out(done):
    assert done.returncode == 0, done.stderr.decode()
    return done.stdout.decode()


def test_it_runs_as_a_module():
    assert run_process("--version").stdout.decode() == f"dissensus, version {__version__}\n"
    done = run_process("aggregate", "nowhere.csv")
    assert (done.returncode, done.stderr) == (
        2,
        b"dissensus: nowhere.csv: no such file or directory\n",
    )


def test_version_and_help():
    assert out(run("--version")) == f"dissensus, version {__version__}\n"
    summary = out(run("--help"))
    assert out(run()) == summary
    for verb, line in VERBS.items():
        assert re.search(rf"^  {verb} +{line.help.split()[0]}", summary, re.MULTILINE)


@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_explains_itself_with_an_example(verb):
    summary = out(run(verb, "--help"))
    assert "Usage: dissensus " + verb in summary
    example = re.search(rf"Examples?:\n    dissensus {verb}", summary)
    assert verb in OTHER_NAMES or example
    command = cli.get_command(click.Context(cli), verb)
    for name in command.commands if isinstance(command, click.Group) else [""]:
        below = out(run(*filter(None, (verb, name)), "--help"))
        assert f"Usage: dissensus {verb} {name}".rstrip() in below
        plain = verb in ("completion", "open")  # a script, a web app
        assert "--json" in below or name == "predict" or plain


def test_starting_imports_nothing_heavy():
    code = (
        "import sys; import dissensus, dissensus.cli; "
        "print([m for m in ('numpy', 'scipy', 'polars', 'rich', 'torch') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True)
    assert done.stdout.decode().strip() == "[]"


def test_aggregating_imports_neither_torch_nor_pandas():
    code = (
        "import sys; import dissensus as ds; "
        "ds.aggregate(ds.read({'a': {'x': 1}})); import dissensus.cli.aggregate; "
        "print([m for m in ('torch', 'pandas', 'pyarrow', 'sklearn') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True)
    assert done.stdout.decode().strip() == "[]"


def test_aggregate_writes_a_table(answers):
    table = out(run("aggregate", "answers.csv", cwd=answers))
    assert table.startswith("item,label,confidence,p:cat,p:dog\na,cat,")
    done = run("aggregate", "answers.csv", "-s", "majority", "-o", "labels.parquet", cwd=answers)
    assert out(done) == ""
    assert (answers / "labels.parquet").exists()
    piped = run("aggregate", "-", cwd=answers, stdin=(answers / "answers.csv").read_bytes())
    assert out(piped) == table


def test_aggregate_says_what_it_found_as_json(answers):
    summary = json.loads(
        out(run("aggregate", "answers.csv", "--json", "-o", "labels.csv", cwd=answers))
    )
    assert (summary["n_items"], summary["n_annotators"], summary["n_labels"]) == (6, 4, 19)
    assert summary["method"] == "auto"
    assert (answers / "labels.csv").exists()


def test_gold_threads_save_and_reading_options(answers):
    (answers / "gold.csv").write_text("item,label\na,dog\n")
    done = run(
        *("aggregate", "answers.csv", "-s", "majority", "--gold", "gold.csv", "--threads", "1"),
        *("--save", "kept", "--columns", "item=task", "--classes", "dog,cat,fox"),
        cwd=answers,
    )
    assert out(done).splitlines()[:2] == [
        "item,label,confidence,p:dog,p:cat,p:fox",
        "a,dog,1.0,1.0,0.0,0.0",
    ]
    from dissensus import ClassAggregation

    assert ClassAggregation.load(answers / "kept").labels[0] == "dog"


def test_numbers_are_recognised_with_a_note(tmp_path):
    (tmp_path / "n.csv").write_text("task,worker,label\na,x,1.5\na,y,2.5\nb,x,3\n")
    done = run("aggregate", "n.csv", cwd=tmp_path)
    assert (
        b"labels 1.5 to 3 are taken for numbers: all are numbers, and 1.5 is not a whole one"
        in done.stderr
    )
    assert out(done).splitlines()[1].startswith("a,2.0,")
    classes = run("aggregate", "n.csv", "--scale", "nominal", "-s", "majority", cwd=tmp_path)
    assert out(classes).startswith("item,label,confidence,p:1.5,p:2.5,p:3")
    summary = json.loads(out(run("aggregate", "n.csv", "-s", "median", "--json", cwd=tmp_path)))
    assert summary["method"] == "median"
    done = run(
        "aggregate",
        "n.csv",
        "--scale",
        "numeric",
        "-o",
        "v.parquet",
        "--save",
        "kept",
        cwd=tmp_path,
    )
    assert out(done) == ""
    assert (tmp_path / "v.parquet").exists()
    (tmp_path / "n.csv").write_text("task,worker,label\na,x,cat\n")
    assert (
        b"n.csv: line 2: label 'cat' is not a number"
        in run("aggregate", "n.csv", "--scale", "interval", cwd=tmp_path).stderr
    )


def test_files_that_a_method_names_are_read(answers):
    (answers / "skills.csv").write_text("annotator,skill\nw,9\nx,1\ny,1\nz,1\n")
    spec = "weighted[skills=skills.csv]"
    assert out(run("aggregate", "answers.csv", "-s", spec, cwd=answers)).startswith(
        "item,label,confidence,p:cat,p:dog\na,dog,"
    )


def test_not_converging_is_a_note_not_an_error(answers):
    done = run(
        "aggregate", "answers.csv", "-s", "dawid-skene[max_iter=1]", "-o", "labels.csv", cwd=answers
    )
    assert done.returncode == 0
    assert (
        b"not converged after 1 iterations; more with -s 'dawid-skene[max_iter=4]'" in done.stderr
    )


def test_the_four_published_commands(tmp_path):
    common = ("--n-task=200", "--n-classes=5", "--seed", "0")
    commands = {
        "T1": ("--n-worker=30", "--strategy", "independent-confusion", "--feedback=10"),
        "T2": ("--n-worker=30", "--strategy", "independent-confusion", "--imbalance-votes"),
        "T3": ("--n-worker=30", "--strategy", "student-teacher", "--ratio", "0.8", "--feedback=10"),
        "T5": (
            "--n-worker=100",
            "--strategy",
            "discrete-difficulty",
            "--ratio",
            "0.35",
            "--ratio-diff",
            "1",
            "--feedback",
            "10",
        ),
    }
    printed = {
        "T1": (0.760, 0.890),
        "T2": (0.830, 0.895),
        "T3": (0.690, 0.755),
        "T5": (0.790, 0.810),
    }
    for table, options in commands.items():
        out(run("simulate", *common, *options, "--folder", table, cwd=tmp_path))
        for strategy, accuracy in zip(("NaiveSoft", "DS"), printed[table], strict=True):
            out(run("aggregate", table, "-s", strategy, "--hard", cwd=tmp_path))
            name = options[options.index("--strategy") + 1]
            labels = tmp_path / table / "labels" / f"labels_{name}_{strategy.lower()}_hard.npy"
            summary = json.loads(
                out(run("evaluate", labels, "--truth", table, "--json", cwd=tmp_path))
            )
            assert round(summary["scores"]["accuracy"]["value"], 6) == accuracy


def test_a_folder_gets_label_files_as_peerannot_names_them(tmp_path):
    out(run("simulate", "--n-worker", "5", "--n-task", "8", "-K", "3", "-fb", "3", cwd=tmp_path))
    folder = tmp_path / "simulation"
    for strategy, file, shape in (
        ("MV", "labels_hammer-spammer_mv.npy", (8,)),
        ("DS", "labels_hammer-spammer_ds.npy", (8, 3)),
        ("NaiveSoft", "labels_hammer-spammer_naivesoft.npy", (8, 3)),
        ("dawid_skene[smoothing=1]", "labels_hammer-spammer_dawid_skene[smoothing=1].npy", (8, 3)),
    ):
        done = run("aggregate", "-s", strategy, cwd=folder)
        assert out(done) == ""
        assert np.load(folder / "labels" / file).shape == shape
    out(run("aggregate", "-s", "DS", "--hard", cwd=folder))
    assert np.load(folder / "labels" / "labels_hammer-spammer_ds_hard.npy").shape == (8,)
    (folder / "remove.txt").write_text("-1 3\n-1 4\n")
    out(run("aggregate", "-s", "NaiveSoft", "--path-remove", "remove.txt", cwd=folder))
    assert np.load(folder / "labels" / "labels_hammer-spammer_naivesoft.npy").shape == (6, 3)


def test_simulating_again_gives_the_same_files(tmp_path):
    for name in ("one", "two"):
        out(
            run(
                "simulate",
                "-K",
                "3",
                "--n-worker",
                "4",
                "--n-task",
                "9",
                "-fb",
                "2",
                "--folder",
                name,
                "--seed",
                7,
                cwd=tmp_path,
            )
        )
    for file in ("answers.json", "ground_truth.npy", "matrices.npy"):
        assert (tmp_path / "one" / file).read_bytes() == (tmp_path / "two" / file).read_bytes()


@pytest.mark.parametrize("mode", [(), ("--fast",)])
def test_simulations_as_tables(mode, tmp_path):
    done = run(
        "simulate",
        "-s",
        "glad",
        "--n-worker",
        "9",
        "--n-task",
        "30",
        "-fb",
        "3",
        "--to",
        "parquet",
        "--json",
        *mode,
        cwd=tmp_path,
    )
    summary = json.loads(out(done))
    assert summary["n_labels"] == 90
    scores = run("evaluate", "labels.csv", "--truth", "simulation/truth.parquet", cwd=tmp_path)
    assert scores.returncode == 2
    out(run("aggregate", "simulation/answers.parquet", "-o", "labels.csv", cwd=tmp_path))
    assert "accuracy" in out(
        run("evaluate", "labels.csv", "--truth", "simulation/truth.parquet", cwd=tmp_path)
    )


def test_a_matrix_file_decides_the_crowd(tmp_path):
    np.save(tmp_path / "matrices.npy", np.stack([np.eye(2)[::-1]] * 3))
    out(run("simulate", "--n-worker", "3", "--matrix-file", "matrices.npy", cwd=tmp_path))
    answers = json.loads((tmp_path / "simulation" / "answers.json").read_text())
    truth = np.load(tmp_path / "simulation" / "ground_truth.npy")
    assert all(
        label == 1 - truth[int(item)]
        for item, annotations in answers.items()
        for label in annotations.values()
    )


def test_convert_goes_there_and_back_and_says_what_is_lost(answers):
    done = run("convert", "answers.csv", "set", "--classes", "cat,dog,fox", cwd=answers)
    assert b"19 labels by 4 annotators on 6 items written to set" in done.stderr
    done = run("convert", "set", "again.jsonl", cwd=answers)
    assert b"1 classes that nobody used are not written" in done.stderr
    assert len((answers / "again.jsonl").read_text().splitlines()) == 19
    assert out(run("convert", "again.jsonl", "-", cwd=answers)).startswith(
        "item,annotator,label\na,w,dog\n"
    )
    summary = json.loads(out(run("convert", "answers.csv", "b.parquet", "--json", cwd=answers)))
    assert summary["labels"] == 19
    assert summary["lost"] == []


def test_methods_are_listed_and_explained():
    summary = json.loads(out(run("methods", "--json")))
    assert {"majority", "dawid-skene", "hammer-spammer"} <= {entry["name"] for entry in summary}
    one = out(run("methods", "ds"))
    assert "smoothing" in one
    assert "at least 0" in one
    assert "Skene" in one
    assert "[smoothing=0,tol=0" in one
    assert {entry["family"] for entry in json.loads(out(run("agginfo", "--json")))} == {"aggregate"}


def test_demo_prints_and_writes(tmp_path):
    summary = out(run("demo", cwd=tmp_path))
    for words in (
        "annotators gave",
        "Agreement is",
        "Annotators to trust most",
        "Items to look at again",
    ):
        assert words in summary
    assert sorted(path.name for path in (tmp_path / "demo").iterdir()) == [
        "answers.csv",
        "labels.csv",
        "report.html",
        "truth.csv",
    ]
    assert json.loads(out(run("demo", "--json", cwd=tmp_path)))["n_annotators"] == 40


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("aggregate", "nowhere.csv"), "nowhere.csv: no such file or directory"),
        (
            ("aggregate", "answers.csv", "-s", "dawid"),
            "no method 'dawid'; did you mean dawid-skene?",
        ),
        (
            ("aggregate", "answers.csv", "-s", "majority[ties=x]"),
            "ties = 'x', but it must be random or",
        ),
        (("aggregate", "answers.csv", "-o", "labels.doc"), "no format ends in .doc"),
        (("aggregate", "answers.csv", "--columns", "item"), "cannot read columns 'item'"),
        (("aggregate", "answers.csv", "--columns", "item=photo"), "no column 'photo' for item"),
        (("aggregate", "answers.csv", "--gold", "answers.csv"), "item 'a' has two true labels"),
        (("aggregate", "--nonsense"), "No such option"),
        (("aggregate", "."), ".: no answers.json in this folder, nor files of a known tool"),
        (("nothing",), "no verb 'nothing'; there are demo"),
        (("evaluate", "answers.csv"), "score against what?"),
        (("simulate", "--ratio", "2"), "ratio = 2.0, but it must be at least 0 and at most 1"),
        (("simulate", "--feedback", "0"), "feedback"),
        (("simulate", "--workerload", "1"), "workerload"),
        (("simulate", "-s", "numeric"), "peerannot's layout holds no numbers"),
        (("simulate", "--matrix-file", "answers.csv"), "answers.csv"),
        (("methods", "nothing like it"), "no method"),
    ],
)
def test_errors_are_one_line_and_exit_code_2(arguments, message, answers):
    done = run(*arguments, cwd=answers)
    summary = done.stderr.decode()
    assert done.returncode == 2
    assert done.stdout == b""
    assert summary.startswith("dissensus: ")
    assert summary.count("\n") == 1
    assert message in summary
    assert [path.name for path in answers.iterdir()] == ["answers.csv"]


class Terminal(io.StringIO):
    def isatty(self):
        return True


class Clock:
    """A clock that the test advances, in place of `threading.Event.wait`."""

    def __init__(self, monkeypatch):
        self.now, self.changed, self.due = 0.0, threading.Condition(), 0.0
        monkeypatch.setattr(_progress, "wait", self.wait)

    def wait(self, event, seconds):
        with self.changed:
            self.due = self.now + seconds
            self.changed.notify_all()
            while self.now < self.due and not event.is_set():
                self.changed.wait(0.01)
            return event.is_set()

    def advance(self, seconds):
        """Let time pass until the thread has done what is due, if it goes on waiting."""
        with self.changed:
            self.changed.wait_for(lambda: self.due > self.now, 5)
            self.now += seconds
            self.changed.notify_all()
            self.changed.wait_for(lambda: self.due > self.now, 0.3)


def test_a_bar_shows_on_a_terminal_within_two_seconds_without_a_call(monkeypatch):
    monkeypatch.setenv("TERM", "xterm")
    for seconds, shown in ((1.4, False), (1.6, True)):
        terminal, clock = Terminal(), Clock(monkeypatch)
        monkeypatch.setattr(sys, "stderr", terminal)
        with _progress.progress_bar("simulating") as progress:
            progress(500, 1000)
            clock.advance(seconds)
        assert ("500 of 1,000" in terminal.getvalue()) is shown
    terminal, clock = Terminal(), Clock(monkeypatch)
    monkeypatch.setattr(sys, "stderr", terminal)
    with _progress.progress_bar("aggregating") as progress:
        clock.advance(3)
        _progress.iterations(progress)(7, -12.5)
        time.sleep(0.2)
    assert "iteration 7, objective -12.5" in terminal.getvalue()


def test_a_bar_makes_room_for_what_is_printed_and_comes_back(monkeypatch):
    monkeypatch.setenv("TERM", "xterm")
    terminal, clock = Terminal(), Clock(monkeypatch)
    monkeypatch.setattr(sys, "stderr", terminal)
    with _progress.progress_bar("report"):
        clock.advance(2.1)
        assert _progress._Reporter.current.bar is not None
        echo("a sentence", err=True)
        assert _progress._Reporter.current.bar is None
        clock.advance(2.1)
        with _progress.progress_bar("reading"):
            clock.advance(2.1)
            assert _progress._Reporter.current.bar is not None
    shown = terminal.getvalue()
    assert shown.index("report") < shown.index("a sentence") < shown.index("reading")


def test_elsewhere_a_line_is_written_every_ten_seconds_whatever_happens(monkeypatch):
    clock = Clock(monkeypatch)
    monkeypatch.setattr(sys, "stderr", io.StringIO())
    with _progress.progress_bar("report"):
        clock.advance(9)
        clock.advance(2)
        with _progress.progress_bar("simulating") as progress:
            progress(1, 1000)
            progress(3, 1000, "three")
            clock.advance(10)
        clock.advance(10)
    lines = ["report: 10 s", "simulating: three", "report: 30 s"]
    assert sys.stderr.getvalue().splitlines() == lines
    monkeypatch.setenv("RANK", "1")
    with _progress.progress_bar("simulating") as progress:
        progress(5, 1000)
    assert len(sys.stderr.getvalue().splitlines()) == 3


@pytest.mark.parametrize("verb", [verb for verb in VERBS if verb not in OTHER_NAMES])
def test_every_verb_reports_while_it_works_but_those_that_wait(verb, monkeypatch):
    seen = []
    monkeypatch.setattr(command, "progress_bar", lambda title: seen.append(title) or nullcontext())
    with suppress(SystemExit):
        command.main([verb, "--help"])
    assert seen == ([] if verb in ("open", "watch") else [verb])


def test_a_reader_that_stops_early_is_no_error(answers):
    command = f"{sys.executable} -m dissensus convert answers.csv - | head -n 1"
    done = subprocess.run(["bash", "-c", command], cwd=answers, capture_output=True, check=False)
    assert done.stdout == b"item,annotator,label\n"
    assert b"Traceback" not in done.stderr


def test_a_killed_aggregate_leaves_no_half_written_output(tmp_path):
    """Kill it at many moments: the output is then either not there or whole."""
    out(
        run(
            "simulate",
            "--n-worker",
            "50",
            "--n-task",
            "30000",
            "-fb",
            "5",
            "--fast",
            "--to",
            "csv",
            cwd=tmp_path,
        )
    )
    command = [
        sys.executable,
        "-m",
        "dissensus",
        "aggregate",
        "simulation/answers.csv",
        "-s",
        "majority",
        "-o",
        "labels.csv",
    ]
    began = time.monotonic()
    subprocess.run(command, cwd=tmp_path, check=True)
    whole, length = (tmp_path / "labels.csv").read_bytes(), time.monotonic() - began
    (tmp_path / "labels.csv").unlink()
    killed = 0
    for share in np.linspace(0.3, 1.05, 12):
        process = subprocess.Popen(command, cwd=tmp_path, stderr=subprocess.DEVNULL)
        time.sleep(length * share)
        os.kill(process.pid, signal.SIGKILL)
        killed += process.wait() == -signal.SIGKILL
        if (tmp_path / "labels.csv").exists():
            assert (tmp_path / "labels.csv").read_bytes() == whole
            (tmp_path / "labels.csv").unlink()
    assert killed > 0
