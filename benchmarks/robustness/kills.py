"""Kills with -9 at random moments: `python benchmarks/run.py robustness kills --kills 25`.

Every job runs once undisturbed, then again and again: killed at a random moment, until enough kills
have landed before its end, and to its end in between. After every kill each output is absent or
the whole one. In the end it is that of the undisturbed run, byte for byte.

Commands run in forks of a process that has imported everything, so that kills hit the work and not
the imports. Dask has a cluster of two workers: a worker is killed while it computes, then the
driver, which resumes.
"""

from __future__ import annotations

import argparse
import csv
import os
import signal
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from shutil import rmtree

import numpy as np

MOST = 6  # attempts for every kill that has to land


@dataclass
class Job:
    """A command, its outputs, and what remains between kills."""

    name: str
    arguments: list[str]
    outputs: tuple[str, ...]  # files that have to be those of the undisturbed run
    kept: tuple[str, ...] = ()  # folders from which a killed run resumes
    prepare: Callable[[Path, int], None] = lambda _folder, _round: None
    again: bool = True  # whether a finished run starts anew
    row: list[str] = field(default_factory=list)


def start(arguments: Sequence[str], folder: Path) -> int:
    """Run a command in a fork; return its process."""
    process = os.fork()
    if process:
        return process
    try:
        os.setsid()
        os.chdir(folder)
        log = os.open("log.txt", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        os.dup2(log, 1)
        os.dup2(log, 2)
        from dissensus.cli import main

        main(list(arguments))
        os._exit(0)
    except SystemExit as ending:
        os._exit(int(ending.code or 0))
    except BaseException:
        traceback.print_exc()
        sys.stderr.flush()
        os._exit(99)


def finish(process: int) -> None:
    """Wait for a run that may not fail."""
    code = os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])
    if code:
        raise RuntimeError(f"a run ended with {code}")


def kill_after(process: int, seconds: float) -> bool:
    """Kill a run with its children; return whether it had not ended before."""
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        if os.waitpid(process, os.WNOHANG)[0]:
            return False
        time.sleep(0.002)
    os.killpg(process, signal.SIGKILL)
    os.waitpid(process, 0)
    return True


def content(folder: Path, names: Sequence[str]) -> dict[str, bytes]:
    """Return the outputs that are there."""
    return {name: (folder / name).read_bytes() for name in names if (folder / name).is_file()}


def remove(folder: Path, names: Sequence[str]) -> None:
    for name in names:
        path = folder / name
        rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)


def kill(job: Job, folder: Path, kills: int, rng: np.random.Generator) -> list[str]:
    """Return how a job ended under kills."""
    (folder / "a").mkdir(parents=True)
    (folder / "b").mkdir()
    for here in (folder / "a", folder / "b"):
        made(here)
    for number in range(kills):
        job.prepare(folder / "a", number)
    began = time.monotonic()
    try:
        finish(start(job.arguments, folder / "a"))
    except RuntimeError:
        print((folder / "a" / "log.txt").read_text()[-2000:], file=sys.stderr)
        raise
    whole, seconds = content(folder / "a", job.outputs), time.monotonic() - began
    assert set(whole) == set(job.outputs), f"{job.name} wrote only {list(whole)}"
    here, landed, half, ended = folder / "b", 0, 0, 0
    if not job.again:
        seconds = max(seconds / 4, 0.3)
    for _ in range(MOST * kills):
        if landed == kills:
            break
        job.prepare(here, landed)
        hit = kill_after(start(job.arguments, here), float(rng.uniform(0.02, 1.0)) * seconds)
        landed += hit
        ended += not hit
        found = content(here, job.outputs)
        if job.again:
            half += any(body != whole[name] for name, body in found.items())
            if not hit:
                remove(here, (*job.outputs, *job.kept))
    for number in range(kills):
        job.prepare(here, number)
    finish(start(job.arguments, here))
    same = content(here, job.outputs) == whole
    left = sum(1 for path in here.rglob(".*.part"))
    return [job.name, f"{landed}", f"{ended}", f"{half}", "same" if same else "OTHER", f"{left}"]


def made(folder: Path) -> None:
    """Write the data of all jobs."""
    rng = np.random.default_rng(0)
    n_items, truth = 150, np.arange(150) % 3
    x = 3 * np.eye(3, 6)[truth] + rng.normal(size=(n_items, 6))
    names = [f"i{number}" for number in range(n_items)]
    np.savez(folder / "x.npz", x=x, items=np.array(names))
    np.savez(folder / "source.npz", x=x, y=truth)
    _table(folder / "labels.csv", zip(names, truth.tolist(), strict=True), ("item", "label"))
    _table(folder / "answers.csv", _rows(rng, n_items, 6, truth))
    _table(folder / "many.csv", _rows(rng, 4000, 5, np.arange(4000) % 4))
    (folder / "in").mkdir()


def _rows(rng: np.random.Generator, n_items: int, n_labels: int, truth: np.ndarray) -> list[tuple]:
    n_classes = int(truth.max()) + 1
    return [
        (
            f"i{item}",
            f"w{(item + 7 * who) % 40}",
            int(truth[item] if rng.random() < 0.7 else rng.integers(n_classes)),
        )
        for item in range(n_items)
        for who in range(n_labels)
    ]


def _table(
    path: Path, rows: object, head: tuple[str, ...] = ("item", "annotator", "label")
) -> None:
    with path.open("w", newline="") as file:
        csv.writer(file).writerows([head, *rows])  # type: ignore[misc]


def _batch(folder: Path, number: int) -> None:
    """Add the next file to the folder that is watched."""
    rows = _rows(np.random.default_rng(number), 60, 3, np.arange(60) % 3)
    path = folder / "in" / f"{number:02}.csv"
    if not path.exists():
        _table(folder / ".draft", rows)
        (folder / ".draft").rename(path)


def _parquet(folder: Path, number: int) -> None:
    """Write many.csv as Parquet files, in another process: polars has threads."""
    if number == 0 and not (folder / "parts").exists():
        code = (
            "import polars as pl, pathlib; t = pl.read_csv('many.csv', infer_schema=False); "
            "pathlib.Path('parts').mkdir(); "
            "[t[n::3].write_parquet(f'parts/{n}.parquet') for n in range(3)]"
        )
        subprocess.run([sys.executable, "-c", code], cwd=folder, check=True)


SLOW = "dawid-skene[tol=0,max_iter={}]"
MODEL = ("model/model.json", "model/weights.safetensors")
PARTS = ["aggregate", "parts", "-o", "out.csv", "--resume", "-s", SLOW.format(60)]
JOBS = [
    Job(
        "aggregate",
        ["aggregate", "many.csv", "-s", SLOW.format(300), "-o", "out.csv", "--save", "saved"],
        ("out.csv", "saved/result.json", "saved/arrays.npz"),
    ),
    Job(
        "watch",
        ["watch", "in", "-o", "out.csv", "--once"],
        ("out.csv",),
        prepare=_batch,
        again=False,
    ),
    Job(
        "train",
        ["train", "x.npz", "--labels", "labels.csv", "--folder", "run", "--epochs", "25",
         "--resume"],
        (
            "run/best_models/identity/labels/weights.safetensors",
            "run/runs/labels/predictions.csv",
            "run/results/labels.json",
        ),
        ("run",),
    ),
    Job(
        "tendency fit",
        ["tendency", "fit", "answers.csv", "--inputs", "x.npz", "-o", "model", "-s",
         "multi-task[epochs=20]", "--checkpoints", "ck"],
        MODEL,
        ("ck",),
    ),
    Job(
        "recover fit",
        ["recover", "fit", "labels.csv", "--inputs", "x.npz", "-o", "model", "-s",
         "heads[n=3,epochs=10,steps=100]", "--vote-count", "5", "--checkpoints", "ck"],
        MODEL,
        ("ck",),
    ),
    Job(
        "meta fit",
        ["meta", "fit", "--source", "source.npz", "-o", "model", "-s", "maml", "--ways", "2",
         "--shots", "2", "--epochs", "2", "--episodes", "16", "--tuning", "1",
         "--checkpoints", "ck"],
        MODEL,
        ("ck",),
    ),
    Job("out of core", [*PARTS, "--memory", "100KB"], ("out.csv",), (".out.csv.work",), _parquet),
    Job("dask, driver", [*PARTS, "--engine", "dask"], ("out.csv",), (".out.csv.work",), _parquet),
]  # fmt: skip


CLUSTER = """
import sys, time
from distributed import LocalCluster
if __name__ == "__main__":
    here = {"dashboard_address": "127.0.0.1:0", "silence_logs": 50}
    with LocalCluster(2, threads_per_worker=1, **here) as cluster:
        print(cluster.scheduler_address, flush=True)
        sys.stdin.read()
"""
WORKERS = """
import os, random, signal, sys, threading, time
from contextlib import suppress
from dissensus.scale.dask import joined
from dissensus.scale import aggregate_files


def one_kill(engine, seconds):
    workers = []
    while len(workers) < 2:  # one may be starting
        with suppress(OSError):
            answers = engine.client.run(os.getpid, on_error="return").values()
            workers = [one for one in answers if isinstance(one, int)]
    moment = draw.uniform(0.02, 0.9) * seconds
    timer = threading.Timer(moment, os.kill, (draw.choice(workers), signal.SIGKILL))
    timer.start()
    aggregate_files(["parts"], method, "out.csv", engine=engine)
    landed = not timer.is_alive()
    timer.join()
    return landed


if __name__ == "__main__":
    method, kills, landed, same = sys.argv[1], int(sys.argv[2]), 0, True
    draw = random.Random(0)
    while landed < kills:
        with joined(None, 2) as engine:
            began = time.monotonic()
            aggregate_files(["parts"], method, "whole.csv", engine=engine)
            seconds, whole = time.monotonic() - began, open("whole.csv", "rb").read()
            try:
                while landed < kills:
                    engine.client.wait_for_workers(2, timeout=20)
                    landed += one_kill(engine, seconds)
                    same &= open("out.csv", "rb").read() == whole
            except TimeoutError:
                pass  # Dask has not started another worker: begin again with a new cluster
    print(landed, same)
"""


def dask_workers(folder: Path, kills: int) -> list[str]:
    """Return how fits on a cluster end whose workers are killed."""
    folder.mkdir(parents=True)
    made(folder)
    _parquet(folder, 0)
    (folder / "workers.py").write_text(WORKERS)
    command = [sys.executable, "workers.py", SLOW.format(60), str(kills)]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(done.stderr[-6000:])
    landed, same = done.stdout.split()[-2:]
    return ["dask, a worker", landed, "–", "0", "same" if same == "True" else "OTHER", "0"]


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--kills", type=int, default=25)
    options.add_argument("--seed", type=int, default=0)
    options.add_argument("--only", nargs="*", help="names of jobs")
    given = options.parse_args()
    import polars  # noqa: F401
    import torch

    torch.set_num_threads(1)
    rng = np.random.default_rng(given.seed)
    wrong = 0
    print("| job | kills | ended before | half outputs | result | drafts left |")
    print("|---|---|---|---|---|---|", flush=True)
    with tempfile.TemporaryDirectory(prefix="kills-") as home:
        for job in JOBS:
            if given.only and job.name not in given.only:
                continue
            folder, cluster = Path(home) / job.name.replace(" ", "-"), None
            if job.name == "dask, driver":
                command = [sys.executable, "-c", CLUSTER]
                cluster = subprocess.Popen(
                    command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
                )
                assert cluster.stdout is not None
                job.arguments += ["--address", cluster.stdout.readline().strip()]
            try:
                row = kill(job, folder, given.kills, rng)
            finally:
                if cluster is not None:
                    cluster.communicate("")
            wrong += row[3] != "0" or row[4] != "same"
            print(f"| {' | '.join(row)} |", flush=True)
        if not given.only or "dask, a worker" in given.only:
            row = dask_workers(Path(home) / "workers", given.kills)
            wrong += row[4] != "same"
            print(f"| {' | '.join(row)} |", flush=True)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
