"""How well scores separate annotators: `python benchmarks/run.py trust identification`.

Verdicts on simulated crowds and, where `../shared/data` is beside the repository, on real ones;
spammers among hammers, by several scores; the order of students and teachers; who copies, also
where teachers are good and copies hard to see; and how long it takes.
"""

from __future__ import annotations

import argparse
from time import perf_counter, process_time
from typing import Any

import numpy as np
from scipy.stats import rankdata, spearmanr

import verdicts
from crowds import SIZES, load, stored
from dissensus import Annotations, aggregate, identify, simulate
from dissensus.quality import copies, spam_interval, spam_score
from measure import Found, fresh
from pages import Section, Table


def auc(value: Any, good: Any) -> float:
    """Return how probably somebody good has a higher value than somebody who is not."""
    rank = rankdata(value)
    n_good = good.sum()
    return float((rank[good].sum() - n_good * (n_good + 1) / 2) / (n_good * (~good).sum()))


def spammers(seeds: int) -> Table:
    """Return how well scores separate spammers from hammers."""
    rows = []
    for n_classes in (2, 4, 10):
        for ratio in (0.3, 0.5, 0.7):
            for load_ in (10, 20, 50):
                rows.append([n_classes, ratio, load_, *_ranked(n_classes, ratio, load_, seeds)])
    columns = ["classes", "spammers", "labels each", "spam score", "accuracy", "agreement"]
    columns += ["spam score of dawid-skene", "spammers flagged", "hammers flagged"]
    note = (
        "AUC of separating 100 hammers and spammers, five labels an item; then verdicts: random, "
        "likely random or constant."
    )
    return Table(f"Spammers, {seeds} seeds", columns, rows, note)


def _ranked(n_classes: int, ratio: float, labels: int, seeds: int) -> list[float]:
    found = []
    good = np.arange(100) < 100 - int(ratio * 100)
    for seed in range(seeds):
        annotations = simulate(
            f"hammer-spammer[ratio={ratio}]",
            n_items=20 * labels,
            n_annotators=100,
            n_classes=n_classes,
            feedback=5,
            workerload=labels,
            seed=seed,
            fast=True,
        ).annotations
        scores = identify(annotations, copying=False)
        plain = spam_score(aggregate(annotations, "dawid-skene").params.confusion)
        values = (scores.spam_score, scores.accuracy.value, scores.behaviour.agreement, plain)
        bad = np.isin(scores.verdict, verdicts.FLAGS)
        summary = [np.mean(bad[~good]), np.mean(bad[good])]
        found.append([*(auc(value, good) for value in values), *summary])
    return np.mean(found, axis=0).tolist()


def students(seeds: int) -> Table:
    """Return how well scores order annotators who learned from one another."""
    rows = []
    for ratio in (0.5, 0.8):
        for copied in (0.0, 0.8):
            found = []
            for seed in range(seeds):
                made = simulate(
                    f"student-teacher[ratio={ratio},copy_prob={copied}]",
                    n_items=400,
                    n_annotators=30,
                    n_classes=5,
                    feedback=10,
                    seed=seed,
                    fast=True,
                )
                scores = identify(made.annotations, copying=False)
                true = spam_score(made.crowd.confusion)
                values = (scores.spam_score, scores.accuracy.value, scores.behaviour.agreement)
                found.append([spearmanr(value, true)[0] for value in values])
            better = np.mean([one[0] > one[2] for one in found])
            rows.append([ratio, copied, *np.mean(found, axis=0).tolist(), float(better)])
    columns = ["students", "copied", "spam score", "accuracy", "agreement", "beats agreement"]
    note = "Spearman correlation with the spam score of the true matrices; 30 annotators, K = 5."
    return Table(f"Students and teachers, {seeds} seeds", columns, rows, note)


def drawn(
    rng: np.random.Generator, kind: str, common: int, n_classes: int, ratio: float, copied: float
) -> tuple[Annotations, np.ndarray[Any, Any]]:
    """Return what twenty annotators say about all items, and who is of whose family."""
    n_students = int(20 * ratio)
    n_teachers = 20 - n_students
    truth = rng.integers(0, n_classes, common)
    family = np.concatenate([np.arange(n_teachers), rng.integers(0, n_teachers, n_students)])
    if kind == "random":
        matrices = rng.dirichlet(np.ones(n_classes), (n_teachers, n_classes))
    else:
        right = rng.uniform(0.8, 0.95, n_teachers)[:, None, None]
        wrong = (1 - right) / (n_classes - 1)
        matrices = np.where(np.eye(n_classes, dtype=bool), right, wrong)
    upto = matrices[family][:, truth].cumsum(axis=2)  # (annotator, item, class)
    labels = (rng.random((20, common, 1)) * upto[..., -1:] > upto).sum(axis=2)
    for student in range(n_teachers, 20):
        same = rng.random(common) < copied
        labels[student, same] = labels[family[student], same]
    return Annotations.from_matrix(labels.T, classes=range(n_classes)), family


def copying(seeds: int) -> Table:
    """Return how many copies are found, and how many of those found are copies."""
    rows = []
    for kind in ("random", "good"):
        for n_classes in (2, 5):
            for common, copied in ((50, 0.8), (100, 0.4), (100, 0.8), (300, 0.4)):
                for ratio in (0.3, 0.7):
                    cells = (kind, common, n_classes, ratio, copied)
                    rows.append([*cells, *_found(seeds, *cells)])
    columns = ["teachers", "common items", "classes", "students", "copied"]
    columns += ["precision", "recall", "share found"]
    note = (
        "Teachers have random matrices, or are 80 to 95 % right. Recall counts students with their "
        "teachers; for precision, students of one teacher are copies of each other."
    )
    return Table(f"Who copies, twenty annotators, {seeds} seeds", columns, rows, note)


def _found(
    seeds: int, kind: str, common: int, n_classes: int, ratio: float, copied: float
) -> list[float | None]:
    right, flagged, direct, taught, shares = 0, 0, 0, 0, []
    for seed in range(seeds):
        rng = np.random.default_rng([seed, common, n_classes])
        annotations, family = drawn(rng, kind, common, n_classes, ratio, copied)
        found = copies(annotations)
        same = family[found.one] == family[found.other]
        ours = same & ((family[found.one] == found.one) & (found.one < 20 - int(20 * ratio)))
        right, flagged = right + found.flagged[same].sum(), flagged + found.flagged.sum()
        direct, taught = direct + found.flagged[ours].sum(), taught + ours.sum()
        shares += found.share[ours & found.flagged].tolist()
    precision = right / flagged if flagged else None
    return [precision, direct / taught, float(np.mean(shares)) if shares else None]


def alone(seeds: int) -> Table:
    """Return how many pairs are flagged though nobody copies."""
    rows = []
    for name in ("independent-confusion", "discrete-difficulty[ratio=0.5]", "community", "glad"):
        flagged, pairs = 0, 0
        for seed in range(seeds):
            made = simulate(
                name, n_items=400, n_annotators=30, n_classes=4, feedback=15, seed=seed, fast=True
            )
            found = copies(made.annotations)
            flagged, pairs = flagged + int(found.flagged.sum()), pairs + len(found.one)
        rows.append([name, pairs, flagged])
    return Table(f"Nobody copies, {seeds} seeds", ["crowd", "pairs", "flagged"], rows)


def table_of(crowd: str) -> Found:
    """Score all annotators of a crowd."""
    annotations, _ = load(crowd)
    wall, cpu = perf_counter(), process_time()
    found = identify(annotations)
    found.table()
    return {"wall": perf_counter() - wall, "cpu": process_time() - cpu, "n": len(annotations)}


def intervals(n_annotators: int) -> Found:
    """Find the intervals of spam scores."""
    counts = np.random.default_rng(0).random((n_annotators, 10, 10)) * 5
    wall, cpu = perf_counter(), process_time()
    spam_interval(counts)
    return {"wall": perf_counter() - wall, "cpu": process_time() - cpu, "n": n_annotators}


def speed(sizes: list[str]) -> Table:
    """Return how long it takes."""
    rows = []
    for size in sizes:
        found = fresh("identification:table_of", crowd=str(stored(size)))
        one = SIZES[size]
        what = f"identify, {one.annotators} annotators, {one.classes} classes"
        rows.append([what, found.get("n"), *(found.get(k) for k in ("wall", "cpu", "peak"))])
    found = fresh("identification:intervals", n_annotators=100_000)
    what = "spam_interval, 100000 annotators, moments"
    rows.append([what, None, *(found.get(k) for k in ("wall", "cpu", "peak"))])
    columns = ["what", "labels", "seconds", "CPU seconds", "GiB"]
    note = "Without GLAD and MACE. Seconds depend on what else the machine does; CPU seconds less."
    return Table("Speed", columns, rows, note)


def main() -> None:
    """Measure and write the page."""
    summary = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    summary.add_argument("--seeds", type=int, default=10)
    summary.add_argument("--sizes", default="SM,M")
    given = summary.parse_args()
    section = Section("identification", "identification")
    section.add(verdicts.ratings(4 * given.seeds))
    section.add(verdicts.noisier(4 * given.seeds))
    section.add(verdicts.classes(4 * given.seeds))
    section.add(verdicts.guessing(2 * given.seeds))
    section.add(verdicts.changed(2 * given.seeds))
    if verdicts.DATA.exists():
        section.add(verdicts.gold_table())
        section.add(verdicts.ordered_table())
    section.add(spammers(given.seeds))
    section.add(students(given.seeds))
    section.add(copying(given.seeds))
    section.add(alone(given.seeds))
    section.add(speed(given.sizes.split(",")))
    section.write()


if __name__ == "__main__":
    main()
