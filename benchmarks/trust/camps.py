"""How often camps are found, where there are none and where there are.

Run it with `python benchmarks/run.py trust camps`.

Simulated crowds of one camp (accuracies differ, items are hard, spammers, graded severity, two
severities) and of two that have their own truth on a share of the items; then real data, where
`../shared/data` is beside the repository.
"""

from __future__ import annotations

import argparse
from collections import Counter
from pathlib import Path
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np
from scipy.special import expit

from dissensus import Annotations, read
from dissensus.quality import camps
from pages import Section, Table

DATA = Path(__file__).parents[2].parent / "shared" / "data"
SETS = ["lewidi_hs_brexit", "alt_cebab_aspects", "babe_sg1", "dog", "reuters_crowd"]
SETS += ["labelme", "rte", "bluebirds", "gwsd", "mbic", "weather_amt"]
ONE_CAMP = ["one-coin", "glad", "30 % spammers", "graded severity", "two severities"]
VERDICTS = ["camps", "some agree more", "severity", "none"]

Generator = np.random.Generator
Array = np.ndarray[Any, Any]


class Shape(NamedTuple):
    """How large a crowd is."""

    annotators: int
    items: int
    per_item: int

    def __str__(self) -> str:
        sparse = "" if self.per_item == self.annotators else f", {self.per_item} an item"
        return f"{self.annotators} × {self.items * self.per_item // self.annotators}{sparse}"


SHAPES = [Shape(6, 1000, 6), Shape(12, 500, 12), Shape(30, 200, 30)]
SHAPES += [Shape(60, 600, 5), Shape(100, 800, 10)]


def observed(rng: Generator, labels: Array, shape: Shape, n_classes: int) -> Annotations:
    """Return the labels that annotators drawn for every item give: from (item, annotator)."""
    if shape.per_item < shape.annotators:
        order = rng.random(labels.shape).argsort(axis=1)
        labels = np.where(order < shape.per_item, labels, -1)
    return Annotations.from_matrix(labels, classes=range(n_classes))


def one_camp(kind: str, shape: Shape, rng: Generator, levels: int = 2) -> Annotations:
    """Return a crowd without camps."""
    n_items, n_annotators = shape.items, shape.annotators
    if kind.endswith(("severity", "severities")):
        alternating = np.where(np.arange(n_annotators) % 2, 1.0, -1.0)
        graded = np.linspace(-1.5, 1.5, n_annotators)
        value = (
            1.5 * rng.normal(size=(n_items, 1)) + rng.logistic(size=(n_items, n_annotators)) / 1.5
        )
        value -= graded if kind == "graded severity" else alternating
        cuts = [0.0] if levels == 2 else np.linspace(-1.5, 1.5, levels - 1)
        return observed(rng, np.searchsorted(cuts, value), shape, levels)
    right = np.broadcast_to(rng.uniform(0.65, 0.95, n_annotators), (n_items, n_annotators)).copy()
    if kind == "glad":
        ease = np.exp(rng.normal(0, 0.7, (n_items, 1)))
        right = expit(rng.normal(1.5, 0.7, n_annotators) * ease)
    elif kind == "30 % spammers":
        right[:, : int(0.3 * n_annotators)] = 0.5
    truth = rng.integers(2, size=(n_items, 1))
    return observed(rng, np.where(rng.random(right.shape) < right, truth, 1 - truth), shape, 2)


def two_camps(own: float, n_classes: int, shape: Shape, rng: Generator) -> Annotations:
    """Return a crowd of two camps that have their own truth on a share of items."""
    truth = rng.integers(n_classes, size=(shape.items, 2))
    same = rng.random(shape.items) >= own
    truth[same, 1] = truth[same, 0]
    size = (shape.items, shape.annotators)
    wrong = rng.random(size) >= rng.uniform(0.7, 0.95, shape.annotators)
    shift = wrong * rng.integers(1, n_classes, size=size)
    camp = (np.arange(shape.annotators) >= shape.annotators // 2).astype(int)
    return observed(rng, (truth[:, camp] + shift) % n_classes, shape, n_classes)


def size(n_crowds: int) -> Table:
    """Return the verdicts on crowds of one camp."""
    rows = []
    cells = [(kind, 2, shape) for kind in ONE_CAMP for shape in SHAPES]
    cells += [("graded severity", levels, shape) for levels in (5, 7) for shape in SHAPES[:4]]
    for kind, levels, shape in cells:
        found: Counter[str] = Counter()
        for seed in range(n_crowds):
            rng = np.random.default_rng([seed, shape.annotators, levels])
            found[camps(one_camp(kind, shape, rng, levels), ordered=levels > 2).verdict] += 1
        name = kind if levels == 2 else f"{kind}, {levels} ordered levels"
        rows.append([name, str(shape), *(found[verdict] for verdict in VERDICTS)])
    wrong = sum(row[2] + row[3] for row in rows)
    total = n_crowds * len(rows)
    note = (
        f"`camps` or `some agree more`: {wrong} of {total} crowds ({100 * wrong / total:.1f} %). "
        "Annotators × labels of each."
    )
    title = f"Verdicts on crowds of one camp, {n_crowds} each"
    return Table(title, ["crowd", "size", *VERDICTS], rows, note)


def power(n_crowds: int) -> Table:
    """Return the verdicts on crowds of two camps."""
    rows = []
    for own in (0.3, 0.15):
        for n_classes, shapes in ((2, SHAPES), (4, SHAPES[3:])):
            for shape in shapes:
                found: Counter[str] = Counter()
                right = []
                for seed in range(n_crowds):
                    rng = np.random.default_rng([seed, shape.annotators, n_classes])
                    one = camps(two_camps(own, n_classes, shape, rng))
                    found[one.verdict] += 1
                    camp = np.arange(shape.annotators) >= shape.annotators // 2
                    taking_part = one.group >= 0
                    if one.verdict == "camps":
                        equal = float((one.group == camp)[taking_part].mean())
                        right.append(max(equal, 1 - equal))
                members = float(np.mean(right)) if right else None
                cells = [f"{own:.0%}", n_classes, str(shape)]
                rows.append([*cells, *(found[verdict] for verdict in VERDICTS), members])
    columns = ["own truth on", "classes", "size", *VERDICTS, "members right"]
    return Table(f"Verdicts on crowds of two camps, {n_crowds} each", columns, rows)


def real() -> Table | None:
    """Return the verdicts on real data."""
    rows = []
    for name in SETS:
        path = DATA / name / "answers.csv.gz"
        if not path.exists():
            continue
        annotations = read(path)
        start = perf_counter()
        found = camps(annotations)
        seconds = perf_counter() - start
        pairs = found.correlation_within, found.correlation_between
        numbers = (found.t, found.z, *pairs, found.same_group)
        shown = [None if np.isnan(value) else value for value in (*numbers, found.detectable)]
        sizes = " and ".join(str(len(names)) for names in found.members if names)
        rows.append([name, sizes, *shown, found.verdict, seconds])
    columns = ["set", "annotators", "t", "z", "correlation within", "between", "same group"]
    columns += ["detectable", "verdict", "seconds"]
    note = (
        "z only where t > 1.645. Detectable: the smallest share of items, of 50, 30, 20 and 10 %, "
        "on which two planted camps judge independently and are found in 80 % of crowds."
    )
    return Table("Real data", columns, rows, note) if rows else None


def main() -> None:
    """Measure, show and keep."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--crowds", type=int, default=20, help="simulated crowds in every cell")
    n_crowds = parser.parse_args().crowds
    section = Section("camps", "camps")
    for table in (real(), power(n_crowds), size(n_crowds)):
        if table is not None:
            section.add(table)
    section.write()


if __name__ == "__main__":
    main()
