"""All methods on all sets with gold: `python benchmarks/run.py accuracy methods`.

Every registered method, as it is when nothing is set, on the 23 shared sets whose truth is known.
Accuracy is in expectation over ties, with a bootstrap interval over items. Seconds are those of one
fit on one thread of this machine, beside whatever else it did. Methods that want more than
annotations (skills, gold, features) are left out, and so are sets with more classes than a method
chooses from.

Measurements are kept one by one in `out/methods`: stopped, it goes on where it was.
"""

from __future__ import annotations

import argparse
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import numpy as np

from dissensus import Annotations, DissensusError, aggregators, evaluate
from dissensus.base.engine import Local
from gold_sets import SETS, load
from kept import KEPT, kept
from pages import Section, Table

Found = dict[str, Any]
NEEDY = ("weighted", "gold-majority", "lfc")  # without skills, gold or features they are others


def measured(method: str, annotations: Annotations, truth: dict[str, str], limit: int) -> Found:
    """Return accuracy with its interval and the time of a fit, or why there is none."""
    try:
        chosen = aggregators.create(method)
        with alarm(limit):
            began = time.perf_counter()
            result = chosen.fit(annotations, engine=Local(1))
            seconds = time.perf_counter() - began
        scores = evaluate(result, truth).scores
    except TimeoutError:
        return {"left out": f"over {limit} s"}
    except DissensusError as problem:
        return {"left out": str(problem)}
    score, labelled = scores["accuracy"], scores["accuracy_as_labelled"]
    assert score is not None
    assert labelled is not None
    found = {**score._asdict(), "seconds": seconds}
    if chosen.abstains:
        known = np.array([item in truth for item in annotations.items.tolist()])
        found["decided"] = float((result.label[known] >= 0).mean())
        found["right"] = labelled.value  # undecided is wrong
    return found


@contextmanager
def alarm(limit: int) -> Iterator[None]:
    """Stop what is inside after so many seconds."""

    def ring(*_: Any) -> None:
        raise TimeoutError

    before = signal.signal(signal.SIGALRM, ring)
    signal.alarm(limit)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def main() -> None:
    """Measure what is not kept yet, and write the page."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--sets", help="Names with commas; all by default.")
    parser.add_argument("--limit", type=int, default=600, help="Seconds for one fit.")
    given = parser.parse_args()
    names = given.sets.split(",") if given.sets else SETS
    section = Section("methods", "methods")
    found: dict[str, dict[str, Found]] = {
        method: {} for method in aggregators if method not in NEEDY
    }
    for name in names:
        annotations, truth = load(name)
        for method, row in found.items():
            job = partial(measured, method, annotations, truth, given.limit)
            row[name] = kept("methods", f"{method} {name}", job)
            print(name, method, row[name], flush=True)
    section.add(_means(found, names))
    section.add(_undecided(found, names))
    section.add(_all("Accuracy with 95 % interval, percent", found, names, _accuracy))
    section.add(_all("Seconds", found, names, _seconds))
    section.write()


def _means(found: dict[str, dict[str, Found]], names: list[str]) -> Table:
    """Return one row for every method: means over the sets, best first."""
    best = {name: max(row[name].get("value", 0.0) for row in found.values()) for name in names}
    rows = []
    for method, row in found.items():
        scored = [name for name in names if "value" in row[name]]
        if not scored:
            continue
        value = np.array([row[name]["value"] for name in scored])
        half = np.array([row[name]["high"] - row[name]["low"] for name in scored]) / 2
        lost = np.array([best[name] for name in scored]) - value
        near = sum(row[name]["high"] >= best[name] for name in scored)
        seconds = np.array([row[name]["seconds"] for name in scored])
        error = np.sqrt((half**2).sum()) / len(scored)  # sets are independent of each other
        numbers = [
            f"{100 * number:.2f}" for number in (value.mean(), error, lost.mean(), lost.max())
        ]
        rows.append([method, len(scored), *numbers, near, seconds.sum()])
    rows.sort(key=lambda row: (-row[1], -float(row[2])))
    columns = ["method", "sets", "accuracy", "±", "mean regret", "worst loss", "near the best"]
    note = (
        "Percent, means over sets; ± is half a 95 % interval for other items of the same sets. "
        "Regret and loss are to the best of all methods on each set; near the best is on how many "
        "sets its interval reaches that. Methods on fewer sets cannot be compared by their means. "
        + KEPT
    )
    return Table("All methods", [*columns, "seconds in all"], rows, note)


def _undecided(found: dict[str, dict[str, Found]], names: list[str]) -> Table:
    """Return how much those decide that may leave items open, and how often they are right then."""
    rows = []
    for method, row in found.items():
        summary = [row[name] for name in names if "decided" in row[name]]
        if summary:
            decided, right = (
                np.array([one[key] for one in summary]) for key in ("decided", "right")
            )
            some = decided > 0
            means = (decided.mean(), (right[some] / decided[some]).mean(), right.mean())
            rows.append([method, *(f"{100 * number:.2f}" for number in means)])
    columns = ["method", "decided", "right of these", "right of all"]
    note = (
        "Percent, means over sets. The other tables score posteriors, also where a method "
        "leaves the label open; their posteriors are vote shares, so there they equal majority."
    )
    return Table("Methods that leave items undecided", columns, rows, note)


def _all(title: str, found: Any, names: list[str], cell: Any) -> Table:
    rows = [[method, *(cell(row[name]) for name in names)] for method, row in found.items()]
    why = {
        f"{method}: {one['left out']}"
        for method, row in found.items()
        for one in row.values()
        if "left out" in one
    }
    return Table(title, ["method", *names], rows, "; ".join(sorted(why)))


def _accuracy(one: Found) -> str | None:
    if "left out" in one:
        return None
    return "{:.1f} ({:.1f}–{:.1f})".format(*(100 * one[key] for key in ("value", "low", "high")))


def _seconds(one: Found) -> float | None:
    return one.get("seconds")


if __name__ == "__main__":
    main()
