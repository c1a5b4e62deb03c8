"""What policies save: `python benchmarks/run.py trust next`.

Everybody begins with one random label per item and buys batch after batch; after each, the labels
are fitted anew, by the same method for all policies. Simulated crowds answer whatever they are
asked. Real data with gold are replayed: only labels that were collected can be bought.

A policy's share is what it needs to reach some part of what random assignment gains from its start
to its end, over what random assignment needs, the first labels included. `random` is the strong
form: every item gets equally many labels.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter, process_time
from typing import Any

import numpy as np

from crowds import OUT
from dissensus import Annotations, read, read_truth, simulate
from dissensus.datasets.strategy import Asked, Design
from dissensus.planning import plan
from dissensus.planning.information import METHOD, fit
from dissensus.registry import simulators
from pages import Section, Table

DATA = Path(__file__).parents[2].parent / "shared" / "data"

N_ITEMS, N_ANNOTATORS, PER_ITEM = 500, 50, 10
CROWDS = {  # strategy and number of classes
    "hammer-spammer": ("hammer-spammer[ratio=0.5]", 2),
    "independent-confusion": ("independent-confusion", 4),
    "one-coin": ("one-coin[low=0.45,high=0.95]", 2),
    "community": ("community", 3),
    "discrete-difficulty": ("discrete-difficulty[ratio=0.35]", 5),
    "glad": ("glad", 2),
}
REAL = ("bluebirds", "rte", "dog", "d_possent", "sp_amt", "weather_amt")
UNSEEN = ("mbic", "trec2011", "medrel_treat")  # not looked at before policies were settled
POLICIES = ("random", "uncertainty", "joint", "bald", "active-lab")
MORE = {"bluebirds": 3}  # times as many seeds, where items are few
PARTS = (0.8, 0.9, 0.95)  # of what random assignment gains
BAR, JUDGED = 0.7, (0.9, 0.95)
SKILL = 0.7  # how often the classifier of `active-lab` knows; else it guesses, and never learns


@dataclass(frozen=True, eq=False)
class World:
    """A crowd that can be asked."""

    annotations: Annotations  # nothing yet
    available: Annotations | None
    truth: np.ndarray[Any, Any]  # (item): the true class, or -1
    ask: Callable[[Any, Any], Any]
    most: int  # labels to buy, with those of the start
    probabilities: np.ndarray[Any, Any] | None


def simulated(name: str, seed: int) -> World:
    """Return a crowd that answers whatever it is asked."""
    spec, n_classes = CROWDS[name]
    strategy, rng = simulators.create(spec), np.random.default_rng(seed)
    design = Design(n_items=N_ITEMS, n_annotators=N_ANNOTATORS, n_classes=n_classes, seed=seed)
    truth = strategy.truth(design, rng)
    crowd = strategy.crowd(design, rng)
    guess = np.where(rng.random(N_ITEMS) < SKILL, truth, rng.integers(n_classes, size=N_ITEMS))
    sure = np.eye(n_classes)[guess] * SKILL + (1 - SKILL) / n_classes
    nothing = Annotations.from_codes(
        *np.empty((3, 0), dtype=int), items=N_ITEMS, annotators=N_ANNOTATORS, classes=n_classes
    )
    return World(
        nothing,
        None,
        truth,
        lambda item, annotator: strategy.answers(crowd, Asked(item, annotator, truth[item]), rng),
        PER_ITEM * N_ITEMS,
        sure,
    )


def replayed(name: str, seed: int) -> World:  # noqa: ARG001
    """Return collected labels as a crowd that answers only what it was asked."""
    full = read(DATA / name / "answers.csv.gz")
    gold = read_truth(DATA / name / "truth.csv.gz")
    position = {label: code for code, label in enumerate(full.classes.tolist())}
    truth = np.array([position.get(gold.get(item, ""), -1) for item in full.items.tolist()])
    first = np.ones(len(full), dtype=bool)  # of repeated labels only the first can be bought
    first[1:] = (np.diff(full.item.astype(int)) != 0) | (np.diff(full.annotator.astype(int)) != 0)
    full = full.keep(first)
    keys = full.item.astype(np.int64) * full.n_annotators + full.annotator

    def ask(item: Any, annotator: Any) -> Any:
        return full.label[np.searchsorted(keys, item * full.n_annotators + annotator)].astype(int)

    nothing = full.keep(np.zeros(len(full), dtype=bool))
    return World(nothing, full, truth, ask, len(full), None)


def world(name: str, seed: int) -> World:
    return simulated(name, seed) if name in CROWDS else replayed(name, seed)


def known(name: str) -> bool:
    return name in CROWDS or (DATA / name).exists()


def bought(annotations: Annotations, item: Any, annotator: Any, label: Any) -> Annotations:
    """Return annotations with more of them."""
    return Annotations.from_codes(
        np.concatenate([annotations.item, item]),
        np.concatenate([annotations.annotator, annotator]),
        np.concatenate([annotations.label, label]),
        items=annotations.items,
        annotators=annotations.annotators,
        classes=annotations.classes,
    )


def curve(name: str, policy: str, seed: int, part: float) -> tuple[list[int], list[float]]:
    """Return labels bought and the accuracy of the consensus, batch after batch."""
    here = world(name, seed)
    annotations = here.annotations
    batch = max(1, round(part * annotations.n_items))
    labels, right = [], []
    step, chosen = annotations.n_items, "random"  # the start is the same for all
    for turn in range(10**6):
        found = plan(
            annotations,
            fit(annotations) if turn else None,
            budget=step,
            policy=chosen,
            per_item=1,
            available=here.available,
            probabilities=here.probabilities if chosen == "active-lab" else None,
            draws=0,
            seed=1000 * seed + turn,
        )
        if len(found) == 0:
            break
        annotations = bought(
            annotations, found.item, found.annotator, here.ask(found.item, found.annotator)
        )
        labels.append(len(annotations))
        right.append(accuracy(fit(annotations).posterior, here.truth))
        step, chosen = min(batch, here.most - len(annotations)), policy
        if step <= 0:
            break
    return labels, right


def accuracy(posterior: Any, truth: Any) -> float:
    """Return the share of gold items that are right, ties in expectation."""
    known = np.flatnonzero(truth >= 0)
    posterior = posterior[known]
    top = posterior >= posterior.max(axis=1, keepdims=True) - 1e-9
    return float((top[np.arange(len(known)), truth[known]] / top.sum(axis=1)).mean())


def needed(labels: Any, right: Any, level: float) -> float:
    """Return how many labels a mean curve needs to reach a level, on a line between batches."""
    above = np.flatnonzero(right >= level)
    if len(above) == 0:
        return np.inf
    k = int(above[0])
    if k == 0:
        return float(labels[0])
    way = (level - right[k - 1]) / (right[k] - right[k - 1])
    return float(labels[k - 1] + way * (labels[k] - labels[k - 1]))


def on_grid(runs: list[tuple[list[int], list[float]]], grid: Any) -> Any:
    """Return the accuracy of every run at numbers of labels: (run, place)."""
    return np.array([np.interp(grid, labels, right) for labels, right in runs])


def shares(ours: Any, theirs: Any, grid: Any) -> list[float]:
    """Return what a policy needs over what random assignment needs, for each part of its gain."""
    mean, base = ours.mean(axis=0), theirs.mean(axis=0)
    start, end = base[0], base[-1]
    levels = [start + part * (end - start) for part in PARTS]
    return [needed(grid, mean, level) / needed(grid, base, level) for level in levels]


def resampled(ours: Any, theirs: Any, grid: Any, draws: int = 1000) -> Any:
    """Return 95 % intervals of the shares, by drawing seeds anew: (part, 2)."""
    rng = np.random.default_rng(0)
    found = []
    for _ in range(draws):
        some = rng.integers(len(ours), size=len(ours))
        found.append(shares(ours[some], theirs[some], grid))
    return np.quantile(np.array(found), [0.025, 0.975], axis=0, method="nearest").T


def expected_and_actual(name: str, seed: int) -> list[float]:
    """Return what was expected of one more label per item, and what came of it.

    Everybody has three labels before. In order: right now, and expected without and with fifty
    known items; right then, and expected in both ways; whether the interval with them held it.
    """
    here = world(name, seed)
    annotations, rng = here.annotations, np.random.default_rng(seed)
    for turn in range(3):
        annotations = _buy(
            here, annotations, annotations.n_items, "random", 1000 * seed + turn, per_item=1
        )
    known = np.flatnonzero(here.truth >= 0)
    some = rng.choice(known, min(50, len(known)), replace=False)
    gold = {annotations.items[one]: annotations.classes[here.truth[one]] for one in some}
    common = {"budget": annotations.n_items, "available": here.available, "seed": seed}
    bold, sober = (
        plan(annotations, fit(annotations), truth=given, **common) for given in (None, gold)
    )
    now = accuracy(fit(annotations).posterior, here.truth)
    for turn in range(4):
        annotations = _buy(
            here, annotations, annotations.n_items / 4, "joint", 1000 * seed + 10 + turn
        )
    then = accuracy(fit(annotations).posterior, here.truth)
    full, checked = (found.curve.points[3] for found in (bold, sober))
    held = checked.low <= then <= checked.high
    return [now, bold.accuracy[0], sober.accuracy[0], then, full.accuracy, checked.accuracy, held]


def _buy(
    here: World, annotations: Annotations, budget: float, policy: str, seed: int, **terms: Any
) -> Annotations:
    found = plan(
        annotations,
        budget=budget,
        policy=policy,
        available=here.available,
        draws=0,
        seed=seed,
        **terms,
    )
    return bought(annotations, found.item, found.annotator, here.ask(found.item, found.annotator))


def expected_table(names: list[str], seeds: int) -> Table:
    rows = []
    for name in names:
        seen = np.array([expected_and_actual(name, seed) for seed in range(seeds)]).mean(axis=0)
        rows.append([name, *(f"{100 * value:.1f}" for value in seen[:6]), f"{seen[6]:.0%}"])
    columns = ["crowd", "right now", "expected", "with gold", "right then", "expected", "with gold"]
    return Table(
        "Does it come true? Accuracy in % with three labels per item, and after one more by joint",
        [*columns, "held"],
        rows,
        f"Means over {seeds} seeds. With gold: corrected by fifty known items at random. Held: how "
        "often the interval of nine in ten then held what came.",
    )


def speed_table() -> Table:
    """Return how long a plan takes for a hundred thousand items and a thousand annotators."""
    rows = []
    for n_classes in (2, 10):
        annotations = simulate(
            "independent-confusion",
            n_items=10**5,
            n_annotators=1000,
            n_classes=n_classes,
            feedback=3,
            workerload=10**5,
            fast=True,
        ).annotations
        result = fit(annotations)
        for budget, limit in ((1000, None), (10_000, None), (10_000, 20), (100_000, 150)):
            began = process_time()
            found = plan(annotations, result, budget=budget, limit=limit, draws=0)
            rows.append([n_classes, budget, limit, len(found), process_time() - began])
    columns = ["classes", "budget", "limit per annotator", "labels planned", "seconds of one core"]
    return Table("A plan for 100 000 items and 1000 annotators, three labels each", columns, rows)


def summary(value: float) -> str:
    return f"{value:.2f}" if np.isfinite(value) else "never"


def measure(name: str, policies: list[str], seeds: int, part: float) -> dict[str, Any]:
    """Return all runs on one crowd; runs that are kept in `out/` are not done again."""
    runs = {}
    for policy in policies:
        if policy == "active-lab" and name not in CROWDS:
            continue  # there is no classifier
        runs[policy] = []
        for seed in range(seeds):
            kept = OUT / f"next-{name}-{policy}-{seed}-{part}.json"
            if not kept.exists():
                OUT.mkdir(exist_ok=True)
                kept.write_text(json.dumps(curve(name, policy, seed, part)), encoding="utf-8")
            runs[policy].append(json.loads(kept.read_text(encoding="utf-8")))
    return runs


def curves_table(name: str, runs: dict[str, Any], n_items: int) -> Table:
    most = min(run[0][-1] for some in runs.values() for run in some) / n_items
    stops = [k for k in (1, 1.5, 2, 3, 4, 5, 7, 10, 15, 20, 30) if k <= most + 1e-9]
    rows = []
    for policy, some in runs.items():
        at = on_grid(some, np.array(stops) * n_items)
        error = 1.96 * at.std(axis=0, ddof=1) / np.sqrt(len(at))
        cells = zip(100 * at.mean(axis=0), 100 * error, strict=True)
        rows.append([policy, *(f"{mean:.1f} ± {more:.1f}" for mean, more in cells)])
    return Table(
        f"{name}: accuracy in % after so many labels per item", ["", *map(str, stops)], rows
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--batch", type=float, default=0.2, help="of the items")
    parser.add_argument("--sets", default=",".join([*CROWDS, *REAL, *UNSEEN]))
    parser.add_argument("--policies", default=",".join(POLICIES))
    parser.add_argument("--anew", action="store_true", help="forget the runs that are kept")
    options = parser.parse_args()
    if options.anew:
        for kept in OUT.glob("next-*.json"):
            kept.unlink()
    section = Section("next", "next")
    rows, tables, verdicts = [], [], []
    for name in options.sets.split(","):
        if not known(name):
            continue
        began = perf_counter()
        seeds = options.seeds * MORE.get(name, 1)
        runs = measure(name, options.policies.split(","), seeds, options.batch)
        n_items = world(name, 0).annotations.n_items
        first, last = runs["random"][0][0][0], min(run[0][-1] for run in runs["random"])
        grid = np.linspace(first, last, 2000)
        theirs = on_grid(runs["random"], grid)
        for policy, some in runs.items():
            if policy == "random":
                continue
            ours = on_grid(some, grid)
            ends = resampled(ours, theirs, grid)
            cells = [
                f"{summary(value)} ({summary(low)}–{summary(high)})"
                for value, (low, high) in zip(shares(ours, theirs, grid), ends, strict=True)
            ]
            rows.append([name, policy, *cells])
            if policy == "joint":
                worst = max(
                    value
                    for value, p in zip(shares(ours, theirs, grid), PARTS, strict=True)
                    if p in JUDGED
                )
                verdicts.append([name, summary(worst), "yes" if worst <= BAR else "no"])
        tables.append(curves_table(name, runs, n_items))
        print(f"{name}: {perf_counter() - began:.0f} s")
    heads = [f"{part:.0%} of the gain" for part in PARTS]
    how = (
        f"{options.seeds} seeds (bluebirds three times as many), batches of {options.batch:.0%} "
        f"of the items, one label of an item in a batch; consensus by {METHOD} from softened "
        f"votes for all. Crowds: {N_ITEMS} items, {N_ANNOTATORS} annotators, up to {PER_ITEM} "
        "labels per item. Intervals: 95 %, over seeds. active-lab has a classifier that knows "
        "seven items in ten, guesses the others and is never trained anew, which its authors "
        f"would do. {', '.join(UNSEEN)} were not looked at while policies and fit were chosen; all "
        "the others were."
    )
    section.add(
        Table(
            f"Does joint need at most {BAR:.0%} of random's labels, at 90 and 95 % of its gain?",
            ["crowd", "larger share", "so"],
            verdicts,
            how,
        )
    )
    section.add(Table("Labels needed, as a share of random's", ["crowd", "policy", *heads], rows))
    section.add(expected_table([name for name in options.sets.split(",") if known(name)], 5))
    section.add(speed_table())
    for table in tables:
        section.add(table)
    section.write()


if __name__ == "__main__":
    main()
