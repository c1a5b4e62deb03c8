"""The training loop: `python benchmarks/run.py deep training` (needs torch; about three minutes).

Step time: one network (512 features, 128 hidden, 10 classes), batches of 64 items with 5 labels
each, and a 10 × 10 matrix per annotator, with 10, 1000 and 10 000 annotators taking turns. Beside
it the same step with dense gradients and Adam over all matrices, and with one module per annotator.

Kills: the small network of the tests, ended with -9 in the middle of an epoch, with a checkpoint
half written, and by its launcher alone while two workers go on. Each run is then taken up again;
its weights have to be those of a run that nobody disturbed, bit for bit.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import suppress
from itertools import cycle
from pathlib import Path
from statistics import median
from time import process_time, sleep
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
import torch
from torch import Tensor, nn

from dissensus import Annotations
from dissensus.deep.nn import Batch, Examples, Learner, Table, Training, train
from pages import Section
from pages import Table as Page

ROOT = Path(__file__).parents[2]
_CLASSES, _FEATURES, _BATCH, _LABELS = 10, 512, 64, 5


class Matrices(Learner):
    """A classifier with a matrix per annotator; `rows` gathers, `dense` indexes, `loop` calls."""

    def __init__(self, n_annotators: int, kind: str) -> None:
        super().__init__()
        self.body = nn.Sequential(nn.Linear(_FEATURES, 128), nn.ReLU(), nn.Linear(128, _CLASSES))
        start = 2 * torch.eye(_CLASSES)
        self.kind = kind
        if kind == "rows":
            self.table = Table(start.repeat(n_annotators, 1, 1))
        elif kind == "dense":
            self.dense = nn.Parameter(start.repeat(n_annotators, 1, 1))
        else:
            self.loop = nn.ModuleList(
                nn.Linear(_CLASSES, _CLASSES, False) for _ in range(n_annotators)
            )

    def loss(self, batch: Batch) -> Tensor:
        posterior = self.body(batch.x).softmax(dim=-1)
        if self.kind == "loop":  # every annotator on every item, then only the given labels
            logits = torch.stack([layer(posterior) for layer in self.loop], dim=1)
            found = logits[batch.row, batch.annotator]
        else:
            rows = (
                self.table(batch.annotator) if self.kind == "rows" else self.dense[batch.annotator]
            )
            found = torch.einsum("nt,ntg->ng", posterior[batch.row], rows)
        return nn.functional.cross_entropy(found, batch.label)


def examples_of(n_annotators: int, n_items: int = 6400) -> Examples:
    """Return random inputs with random labels: only time is measured."""
    rng = np.random.default_rng(0)
    item = np.repeat(np.arange(n_items), _LABELS)
    annotations = Annotations.from_codes(
        item,
        rng.integers(n_annotators, size=len(item)),
        rng.integers(_CLASSES, size=len(item)),
        items=n_items,
        annotators=n_annotators,
        classes=_CLASSES,
    )
    return Examples(torch.randn(n_items, _FEATURES), annotations)


class StoppedError(Exception):
    """Enough steps were seen."""


def step_seconds(n_annotators: int, kind: str, steps: int) -> list[float]:
    """Return the processor time of every step, which other work disturbs less than the clock's."""
    torch.manual_seed(0)
    times: list[float] = []

    def progress(done: int, _total: int, _words: str) -> None:
        times.append(process_time())
        if done == steps:
            raise StoppedError

    settings = Training(epochs=100, batch=_BATCH, held_out=0)
    with suppress(StoppedError):
        train(Matrices(n_annotators, kind), examples_of(n_annotators), settings, progress=progress)
    return np.diff(times)[5:].tolist()


def step_table(rounds: int) -> Page:
    """Return step times; the sizes take turns."""
    jobs = [(n, kind) for kind in ("rows", "dense") for n in (10, 1000, 10_000)] + [(1000, "loop")]
    found: dict[tuple[int, str], list[float]] = {job: [] for job in jobs}
    for number, job in zip(range(rounds * len(jobs)), cycle(jobs), strict=False):
        found[job] += step_seconds(*job, 25 if job[1] == "loop" else 100)
        print(f"\rsteps: {number + 1} of {rounds * len(jobs)}", end="", file=sys.stderr)
    print(file=sys.stderr)
    middle = {job: median(times) for job, times in found.items()}
    base = middle[10, "rows"]
    words = {"rows": "rows (ours)", "dense": "dense gradient and Adam", "loop": "a module each"}
    rows = [
        (words[kind], n, f"{1e3 * middle[n, kind]:.2f}", f"{middle[n, kind] / base:.2f}")
        for n, kind in jobs
    ]
    return Page(
        "Step time against annotators",
        ("matrices", "annotators", "median ms a step", "beside rows at 10"),
        rows,
        "The bars: rows at 10 000 at most 2; at 1000 at least 10 times faster than a module each.",
    )


def crowd_net(folder: Path, *more: str, processes: int = 1) -> list[str]:
    """Return the command that trains the small network in a folder."""
    start = [sys.executable, "-m"]
    if processes > 1:
        start += ["torch.distributed.run", "--standalone", f"--nproc-per-node={processes}", "-m"]
    return [*start, "tests.crowd_net", str(folder), *more]


def run(command: list[str]) -> None:
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)


def ended(out: Path) -> dict[str, Any]:
    return json.loads(out.read_text())


def workers(folder: Path) -> Iterator[int]:
    """Yield the processes that train in a folder, without the one that started them."""
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            words = (entry / "cmdline").read_bytes().split(b"\0")
        except OSError:
            continue
        if str(folder).encode() in words and b"torch.distributed.run" not in words:
            yield int(entry.name)


def killed_by_itself(folder: Path, kill: str) -> str:
    """Let a run kill itself, and say how."""
    done = subprocess.run(
        crowd_net(folder, "--kill", kill), cwd=ROOT, check=True, capture_output=True, text=True
    )
    left = len(list(folder.glob(".*.part")))
    return f"ended by {done.stdout.strip()}; {left} half files"


def launcher_killed(folder: Path) -> str:
    """Kill the launcher of two workers; the run is taken up while they still live."""
    command = crowd_net(folder, "--wait", "0.3", processes=2)
    with (folder.parent / "launcher.log").open("wb") as log:
        launcher = subprocess.Popen(command, cwd=ROOT, stdout=log, stderr=log)
    while not (folder / "checkpoint.safetensors").exists():
        sleep(0.05)
    os.kill(launcher.pid, signal.SIGKILL)
    launcher.wait()
    return f"{len(list(workers(folder)))} workers, while the next run begins"


def kill_table() -> Page:
    """Return how runs end that were killed and taken up again."""
    rows = []
    with tempfile.TemporaryDirectory() as position:
        here = Path(position)
        for processes in (1, 2):
            run(
                crowd_net(
                    here / f"w{processes}",
                    "--out",
                    str(here / f"w{processes}.json"),
                    processes=processes,
                )
            )
        ways: list[tuple[str, int, Callable[[Path], str]]] = [
            ("at step 11, in mid-epoch", 1, lambda folder: killed_by_itself(folder, "at=11")),
            (
                "with a checkpoint half written",
                1,
                lambda folder: killed_by_itself(folder, "in-save=3"),
            ),
            ("the launcher alone", 2, launcher_killed),
        ]
        for number, (words, processes, kill) in enumerate(ways):
            folder, out = here / f"run{number}", here / f"run{number}.json"
            summary = kill(folder)
            run(crowd_net(folder, "--out", str(out), processes=processes))
            summary += f"; {len(list(workers(folder)))} workers at its end" if processes > 1 else ""
            same = ended(out)["weights"] == ended(here / f"w{processes}.json")["weights"]
            rows.append((words, processes, summary, "equal" if same else "DIFFERENT"))
            print(f"kills: {number + 1} of {len(ways)}", file=sys.stderr)
    return Page(
        "Killed with -9 and taken up again",
        ("killed", "processes", "what was left", "final weights, bit for bit"),
        rows,
    )


def processes_table() -> Page:
    """Return the loss curves of one and two processes."""
    with tempfile.TemporaryDirectory() as position:
        here = Path(position)
        for processes in (1, 2):
            out = here / f"{processes}.json"
            more = ("--dropout", "0", "--out", str(out))
            run(crowd_net(here / f"folder{processes}", *more, processes=processes))
        one, two = (ended(here / f"{processes}.json")["loss"] for processes in (1, 2))
    gap = max(abs(a - b) for a, b in zip(one, two, strict=True))
    rows = [
        (epoch, f"{a:.7f}", f"{b:.7f}")
        for epoch, (a, b) in enumerate(zip(one, two, strict=True), 1)
    ]
    return Page(
        "Loss with one and two processes (gloo)",
        ("epoch", "one", "two"),
        rows,
        f"Largest difference {gap:.1e}; the bar is 1e-4. Without dropout, whose random numbers are "
        "each process's own.",
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", choices=("steps", "kills", "processes"))
    summary = parser.parse_args()
    torch.set_num_threads(1)
    made = {
        "steps": lambda: step_table(summary.rounds),
        "kills": kill_table,
        "processes": processes_table,
    }
    section = Section("training", "training")
    for name, make in made.items():
        if summary.only in (None, name):
            section.add(make())
    if summary.only is None:
        section.write()


if __name__ == "__main__":
    main()
