"""What `convert` writes is read again: all data sets in all formats, and what does not come back.

    python benchmarks/run.py robustness round_trips ../shared/data

Labels, classes with their order, scale, items, annotators, repeated labels and gold have to come
back, except for what `losses` lists. Prints a line for each set, and every difference.
"""

from __future__ import annotations

import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

from dissensus.answers import KINDS
from dissensus.errors import DissensusError
from dissensus.formats import Reading, examine
from dissensus.formats.format import TARGETS
from dissensus.formats.writers_init import losses, write

WAYS = [(name, kind) for name, target in TARGETS.items() for kind in target.kinds]
MOST = 60_000  # labels of a set
ANNOUNCED = {  # what differs → words of a loss about it
    "labels": ("labels are left out", "may be read as an empty cell", "labels of models are left"),
    "classes": ("labels are left out", "may be read as an empty cell", "classes that nobody used"),
    "scale": ("that the scale is",),
    "items": ("items without labels are left out",),
    "annotators": ("may be taken for a column",),
    "gold": ("gold of", "gold is left out"),
    "kind": ("read back as texts",),
}
SHOWN = "format='wide' reads it"


def differences(there: Reading, name: str, kind: str, folder: Path) -> list[str]:
    """Return what comes back otherwise, and was not announced, from one format."""
    path = folder / (name if kind == "folder" else f"there.{kind}")
    announced = " ".join(losses(there, path, name))
    write(there, path, format=name)
    try:
        back = examine(path, format="wide" if SHOWN in announced else None)
    except DissensusError as problem:
        return [f"refused: {problem}"]
    return [
        what
        for what in _unlike(there, back)
        if not any(one in announced for one in ANNOUNCED[what])
    ]


def _unlike(there: Reading, back: Reading) -> Iterator[str]:
    """Yield which parts of two readings differ."""
    if back.answers.kind in KINDS:
        yield "kind"
        return
    one, other = there.annotations, back.annotations
    if _rows(there) != _rows(back):
        yield "labels"
    if one.classes.tolist() != other.classes.tolist():
        yield "classes"
    if one.scale != other.scale:
        yield "scale"
    for names in ("items", "annotators"):
        if getattr(one, names).tolist() != getattr(other, names).tolist():
            yield names
    if dict(there.gold) != dict(back.gold):
        yield "gold"


def _rows(reading: Reading) -> Counter[tuple[str, str, str]]:
    """Return how often every item, annotator and label are together."""
    data = reading.annotations
    names = data.items[data.item], data.annotators[data.annotator], data.classes[data.label]
    return Counter(zip(*(one.tolist() for one in names), strict=True))


def main(folder: str) -> int:
    """Write and read all sets; return how many ways there are that lose something in silence."""
    wrong = 0
    for path in sorted(Path(folder).glob("*/answers.csv.gz")):
        start, there = time.perf_counter(), examine(path)
        if there.answers.kind in KINDS:
            print(f"{path.parent.name:24} left out: {there.answers.kind}")
            continue
        if len(there.annotations) > MOST:
            print(f"{path.parent.name:24} left out: {len(there.annotations)} labels")
            continue
        found = {}
        for name, kind in WAYS:
            with TemporaryDirectory() as place:
                if unlike := differences(there, name, kind, Path(place)):
                    found[f"{name}.{kind}"] = unlike
        wrong += len(found)
        seconds = time.perf_counter() - start
        print(
            f"{path.parent.name:24} {len(WAYS)} ways in {seconds:5.1f} s", found or "", flush=True
        )
    print(f"{wrong} ways lose something in silence")
    return wrong


if __name__ == "__main__":
    sys.exit(main(sys.argv[1] if len(sys.argv) > 1 else "../shared/data") > 0)
