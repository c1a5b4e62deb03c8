"""How long the defaults take that people meet first: `python benchmarks/defaults.py [NAME...]`.

CPU seconds of whole commands, start-up included, beside the bar of every row. A row runs three
times and the fastest counts, since other processes only ever add. `auto` on all sets with gold is
in `calibration.py`, linear models of annotators in `tendency.py`.
"""

from __future__ import annotations

import resource
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

from pages import Section, Table

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


def cpu_seconds(*command: str) -> float:
    """Return the least CPU time of some runs of a command."""
    seconds = []
    for _ in range(RUNS):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        line = [sys.executable, "-m", "dissensus", *command]
        subprocess.run(line, check=True, capture_output=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        seconds.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    return min(seconds)


def main(names: list[str]) -> None:
    section = Section("defaults", "DEFAULTS.md")
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
        found = []
        for what, (command, former, bar) in rows.items():
            if names and what not in names:
                continue
            seconds = cpu_seconds(*command)
            found.append((what, " ".join(command[:1]), former, round(seconds, 2), bar))
    columns = ("what", "verb", "before", "CPU seconds", "at most")
    section.add(Table("Whole commands", columns, found))
    section.write()


if __name__ == "__main__":
    main(sys.argv[1:])
