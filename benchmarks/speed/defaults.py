"""How long the defaults take that people meet first.

Run it with `python benchmarks/run.py speed defaults [PART...]`.

Parts are commands, learning and limits (how well --time-limit is kept); rows may be named, too.

CPU seconds of whole commands, start-up included, beside the bar of every row. A row runs three
times and the fastest counts, since other processes only ever add; the first row is what NumPy,
polars and click take to import. What learns from texts runs once, on one thread, in the order of
the rows: each set is encoded in an empty cache first, so that later rows show the time without
encoding.
"""

from __future__ import annotations

import csv
import gzip
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from dissensus import aggregate, read
from gold_sets import SETS, load
from pages import Section, Table

DATA = Path(__file__).parents[3] / "shared" / "data"
COLUMNS = ("what", "verb", "before", "CPU seconds", "at most")
FIT = ": auto[queries=never], its fit alone"
AUTO = "auto on 23 gold sets"
LIMITS = (12, 24)  # seconds
LIMITED = (  # a command whose time limit is one of CPU time
    "import time; from dissensus import _time_limit; _time_limit.clock = time.process_time; "
    "from dissensus.cli import main; main()"
)
RUNS = 3
SEED = 0


def labels(path: Path, n_labels: int, per_item: int = 5, n_annotators: int = 0) -> Path:
    """Write labels of annotators with accuracies around .7: five classes, names as texts."""
    rng = np.random.default_rng(SEED)
    n_items, n_annotators = n_labels // per_item, n_annotators or max(20, n_labels // 1000)
    truth, accuracy = rng.integers(5, size=n_items), rng.beta(7, 3, n_annotators)
    item, who = np.repeat(np.arange(n_items), per_item), rng.integers(n_annotators, size=n_labels)
    right = rng.random(n_labels) < accuracy[who]
    label = np.where(right, truth[item], rng.integers(5, size=n_labels))
    rows = (f"i{i},a{a},c{k}\n" for i, a, k in zip(item, who, label, strict=True))
    path.write_text("item,annotator,label\n" + "".join(rows), encoding="utf-8")
    return path


def cpu_seconds(
    *command: str, runs: int = RUNS, python: tuple[str, ...] = ("-m", "dissensus"), **variables: str
) -> float:
    """Return the least CPU time of some runs of a command, with environment variables."""
    seconds = []
    for _ in range(runs):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        line = [sys.executable, *python, *command]
        subprocess.run(line, check=True, capture_output=True, env=os.environ | variables)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        seconds.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    return min(seconds)


def gold_sets_seconds() -> float:
    """Return the CPU time of `auto` on all sets with gold."""
    before = time.process_time()
    for name in SETS:
        aggregate(load(name)[0], "auto")
    return time.process_time() - before


def texts_of(folder: Path, name: str, most: int | None = None) -> tuple[str, str]:
    """Write the texts of a set, and one label of each; return the paths."""
    with gzip.open(DATA / name / "tasks.csv.gz", "rt", encoding="utf-8") as file:
        texts = {row["task"]: row["text"] for row in csv.DictReader(file)}
    annotations = read(DATA / name / "answers.csv.gz")
    label = annotations.classes[annotations.votes().argmax(axis=1)]
    rows = [
        (item, texts[item].strip() or "(empty)", given)
        for item, given in zip(annotations.items.tolist(), label.tolist(), strict=True)
    ][:most]
    paths = folder / f"{name}_texts.csv", folder / f"{name}_labels.csv"
    for path, columns in zip(paths, ((0, 1), (0, 2)), strict=True):
        with path.open("w", encoding="utf-8", newline="") as file:
            writer = csv.writer(file)
            writer.writerow([("item", "text", "label")[column] for column in columns])
            writer.writerows([[row[column] for column in columns] for row in rows])
    return str(paths[0]), str(paths[1])


def learning(names: list[str]) -> None:
    """Measure the time of what learns from texts."""
    section, found = Section("defaults of what learns", "defaults"), []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        one = {"OMP_NUM_THREADS": "1", "XDG_CACHE_HOME": str(folder / "cache")}
        last = 0.0
        for what, former, bar, command in learning_rows(folder):
            if not names or what in names:
                seconds = cpu_seconds(*command, runs=1, **one)
                more, last = seconds - last, seconds
                shown = round(more if what.endswith(FIT) else seconds, 1)
                found.append((what, " ".join(command[:2]), former, shown, bar))
    note = (
        "4000 texts are 3675 sentences of babe_sg2 (42 tokens on average), or 4000 tweets of "
        "lewidi_md_agreement. A fit alone is the difference of a command with it and one without."
    )
    section.add(Table("What learns from texts", COLUMNS, found, note))
    section.write()


def learning_rows(folder: Path) -> Iterator[tuple[str, float | str, float, list[str]]]:
    """Yield name, former time, bar and command of every row."""
    never = ("-s", "auto[queries=never]", "--json")
    own = ("-s", "own-majority", "--json")
    for name, encoding, fits in (
        ("gwsd", ("tendency default, encoding included", "–", 90), (77, 6)),
        ("babe_sg2", ("encoding of 3675 sentences", 115, 55), (41, 4.5)),
        ("lewidi_hs_brexit", ("encoding of 1120 tweets", "–", 15), (13, 2.5)),
    ):
        texts, _ = texts_of(folder, name)
        given = ["tendency", "evaluate", str(DATA / name / "answers.csv.gz"), "--inputs", texts]
        what, former, bar = encoding
        yield what, former, bar, [*given, *(("--json",) if name == "gwsd" else own)]
        yield f"{name}: baselines, encoded before", "–", bar, [*given, *own]
        yield f"{name}{FIT}", *fits, [*given, *never]
    texts, labels = texts_of(folder, "lewidi_md_agreement", 4000)
    command = ["recover", "fit", labels, "--inputs", texts, "-o", str(folder / "model"), "--force"]
    yield "recover fit, 4000 tweets", "> 240", 60, command
    yield "recover fit, encoded before", "–", 60, command


def limits(_: list[str]) -> None:
    """Measure how long limited commands take, once inputs are encoded."""
    section, rows = Section("time limits", "defaults"), []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        texts, labels = texts_of(folder, "gwsd")
        answers = str(DATA / "gwsd" / "answers.csv.gz")
        both = [answers, "--inputs", texts]
        model = ["-o", str(folder / "model"), "--force"]
        network = ["--encoder", "minilm", "--epochs", "100000", "--patience", "0"]
        network += ["--folder", str(folder)]
        commands = (
            ["tendency", "fit", *both, *model],
            ["tendency", "evaluate", *both],
            ["recover", "fit", labels, "--inputs", texts, *model],
            ["train", *both, "-s", "majority", *network],
            ["aggregate-deep", *both, "-s", "crowd-layer", *network],
            ["meta", "fit", "--source", _source(folder), "--head", "linear", *model],
        )
        one = {"OMP_NUM_THREADS": "1"}
        cpu_seconds(*commands[2], "--time-limit", "1", runs=1, **one)  # encodes texts
        for command in commands:
            verb = " ".join(word for word in command[:2] if word != both[0])
            taken = [
                cpu_seconds(
                    *command, "--time-limit", str(limit), runs=1, python=("-c", LIMITED), **one
                )
                for limit in LIMITS
            ]
            late = max(seconds / limit for seconds, limit in zip(taken, LIMITS, strict=True))
            rows.append([verb, *(round(seconds, 1) for seconds in taken), round(late, 2)])
            print(*rows[-1], flush=True)
    columns = ["verb", *(f"limit {limit} s" for limit in LIMITS), "longest, in limits"]
    note = (
        "CPU seconds of whole commands on gwsd (meta: simulated vectors), start-up and writing "
        "included, inputs encoded before. The limit is one of CPU time here, whatever else runs. "
        "What needs less than the limit ends earlier."
    )
    section.add(Table("Time limits", columns, rows, note))
    section.write()


def _source(folder: Path) -> str:
    """Write vectors of 60 classes, twenty of each."""
    rng = np.random.default_rng(SEED)
    y = np.repeat(np.arange(60), 20)
    x = rng.normal(size=(60, 64))[y] + rng.normal(size=(len(y), 64))
    np.savez(folder / "source.npz", x=x.astype(np.float32), y=y)
    return str(folder / "source.npz")


def commands(names: list[str]) -> None:
    """Measure the time of whole commands."""
    section = Section("defaults", "defaults")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        output, page = str(folder / "labels.csv"), str(folder / "report.html")
        small, middle, large, million = (
            str(labels(folder / f"{size}.csv", size)) for size in (4600, 10**4, 10**5, 10**6)
        )
        usual = str(labels(folder / "report.csv", 15_600, 10, 60))
        rows = {
            "majority": (["aggregate", small, "-s", "majority", "-o", output], 0.8, 0.4),
            "aggregate 1e4": (["aggregate", middle, "-o", output], 2.4, 1.2),
            "aggregate 1e5": (["aggregate", large, "-o", output], 7.2, 2.5),
            "aggregate 1e6": (["aggregate", million, "-o", output], 35.0, 8.0),
            "report 15600": (["report", usual, "-o", page], 6.8, 3.0),
            "report 1e6": (["report", million, "-o", page], 18.0, 9.0),
        }
        found: list[tuple[Any, ...]] = []
        if not names:
            seconds = cpu_seconds(python=("-c", "import numpy, polars, click"))
            found.append(("numpy, polars, click", "import", None, round(seconds, 2), None))
        for what, (command, former, bar) in rows.items():
            if names and what not in names:
                continue
            seconds = cpu_seconds(*command)
            found.append((what, " ".join(command[:1]), former, round(seconds, 2), bar))
    if not names or AUTO in names:
        found.append((AUTO, "–", 731, round(gold_sets_seconds(), 1), 60))
    section.add(Table("Whole commands", COLUMNS, found))
    section.write()


PARTS = {"commands": commands, "learning": learning, "limits": limits}


def main(words: list[str]) -> None:
    names = [word for word in words if word not in PARTS]
    for part, measure in PARTS.items():
        if part in words or not PARTS.keys() & set(words):
            measure(names)


if __name__ == "__main__":
    main(sys.argv[1:])
