"""How right and how sure labels are, on sets with known truth.

Run it with `python benchmarks/run.py trust calibration`.

Asked: when the default says 80 %, is it right in 80 % of the cases, and how many of its labels are
wrong? Constants (temperatures, the equal part of the weights, the spread of the number of errors)
are chosen on all sets but one and scored on that one. Log loss with probabilities of at least 1e-6,
calibration error (ECE) in ten bins of equal width, items with labels only; ties count in part.
Regret is to the best of all single methods in the tables and the pool's members. Simulated crowds
of every kind stand beside them; others of the same kinds were in sight when members, folds and
tempering were chosen.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from itertools import product
from typing import Any, NamedTuple

import numpy as np

from dissensus import Annotations, aggregate, aggregators, simulate
from dissensus.aggregation import auto
from dissensus.aggregation.held_out import held_out, stopped_early
from dissensus.answers.selections import content_sample
from dissensus.base.probability import (
    ENOUGH_GOLD,
    EXPONENT,
    SCALE,
    fit_temperature,
    mixture_weights,
    temper,
)
from dissensus.datasets.simulation import Simulation
from dissensus.planning.label_errors import LEFT_SD, LOG_SD, doubts, label_errors
from gold_sets import SETS, load
from pages import Section, Table

SINGLE = (
    *("majority", "iwmv", "dawid-skene", "hierarchical", "glad", "mace", "one-coin"),
    *("two-level", "crossed-effects", "vi-mf"),
)
CROWDS = (
    *("hammer-spammer[ratio=0.6]", "independent-confusion", "student-teacher[ratio=0.5]"),
    *("student-teacher[ratio=0.5,copy_prob=0.8]", "discrete-difficulty[ratio=0.5,random=0.1]"),
    *("glad", "mace", "one-coin", "one-coin[low=0.3,high=0.95]", "community", "ordinal"),
)
SIZES = ((200, 20, 3, 2), (500, 40, 5, 4), (1000, 100, 8, 3))  # items, annotators, labels, classes
GRID = list(
    product((2.0, 2.5, 3.0, 3.5), (0.2, 0.32, 0.45, 0.6), (0.1, 0.3))
)  # scale, exponent, equal
SINGLE_GRID = list(product((2.5, 3.0, 3.5, 4.0, 4.5), (0.2, 0.32, 0.45, 0.6)))
DRAWS = 20
TENTH = 0.1


class Scores(NamedTuple):
    """Scores of one set."""

    accuracy: float
    log_loss: float
    ece: float
    gap: float  # mean confidence less accuracy


class Fits(NamedTuple):
    """What was fitted to one set, on its items with known truth."""

    n_labels: Any  # (item)
    truth: Any  # (item): -1 for a class that nobody used
    members: Any  # (member, item, class)
    weight: Any  # (member)
    single: dict[str, Any]  # method → posterior (item, class)
    seconds: float


def scores(probabilities: Any, truth: Any) -> Scores:
    """Return the scores of class probabilities: (item, class)."""
    rows, known = np.arange(len(truth)), np.maximum(truth, 0)
    best = probabilities.max(axis=1)
    tied = probabilities >= best[:, None] - 1e-12
    right = np.where(truth >= 0, tied[rows, known] / tied.sum(axis=1), 0)
    given = np.where(truth >= 0, probabilities[rows, known], 0)
    bins = np.minimum((best * 10).astype(int), 9)
    ece = np.abs(np.bincount(bins, best - right, 10)).sum() / len(truth)
    log_loss = -np.log(np.maximum(given, 1e-6)).mean()
    return Scores(right.mean(), log_loss, ece, best.mean() - right.mean())


def known_items(annotations: Annotations, truth: dict[str, str]) -> tuple[Any, Any]:
    """Return labelled items with known truth, and their classes, -1 for one that nobody used."""
    classes = {name: code for code, name in enumerate(annotations.classes.tolist())}
    rows = [
        (item, classes.get(truth[name], -1))
        for item, name in enumerate(annotations.items.tolist())
        if name in truth and annotations.labels_per_item[item]
    ]
    return tuple(np.array(rows).T)


def fits(name: str) -> Fits:
    """Return the fits of all members and single methods to a set."""
    annotations, truth = load(name)
    item, true = known_items(annotations, truth)
    began = time.process_time()
    members = [stopped_early(aggregators.create(spec)) for spec in auto.MEMBERS]
    posteriors = [member.fit(annotations).posterior[item] for member in members]
    sample = content_sample(annotations, auto._SAMPLE, 0)
    weight = weights(left_out_labels(sample, members))
    seconds = time.process_time() - began
    single = {spec: aggregate(annotations, spec).posterior[item] for spec in SINGLE}
    return Fits(
        annotations.labels_per_item[item], true, np.array(posteriors), weight, single, seconds
    )


def left_out_labels(sample: Annotations, members: list[Any], scale: float = auto._SCALE) -> Any:
    """Return the probabilities of held-out labels: (member, annotation)."""
    folds = auto.n_folds(len(sample), auto.Auto().folds)
    return held_out(sample, members, folds=folds, scale=scale).probability


def weights(probability: Any) -> Any:
    """Return the weights of the pool's members, without the equal part: (member)."""
    return mixture_weights(probability, pseudo_count=0)


def pool(one: Fits, scale: float, exponent: float, equal: float) -> Any:
    """Return the pool's probabilities."""
    temperature = scale * (one.n_labels / 5) ** exponent
    weight = (1 - equal) * one.weight + equal / len(one.weight)
    return sum(w * temper(p, temperature) for w, p in zip(weight, one.members, strict=True))


def left_out(table: Any) -> list[int]:
    """Return for every set the best setting on the others, from losses (setting, set)."""
    total = table.sum(axis=1, keepdims=True) - table
    return total.argmin(axis=0).tolist()


def main() -> None:
    """Run the study and write its page."""
    every = {name: fits(name) for name in SETS}
    section = Section("calibration", "calibration")
    grid = [[scores(pool(one, *setting), one.truth) for one in every.values()] for setting in GRID]
    chosen = left_out(np.array([[one.log_loss for one in row] for row in grid]))
    outside = [grid[setting][position] for position, setting in enumerate(chosen)]
    present = (auto._SCALE, EXPONENT, auto._EQUAL)
    inside = grid[GRID.index(present)]
    best = [
        max(scores(p, one.truth).accuracy for p in (*one.members, *one.single.values()))
        for one in every.values()
    ]
    majority = [scores(one.single["majority"], one.truth) for one in every.values()]
    rows = [
        summary(f"auto as it is {present}", inside, best, majority),
        summary("auto, constants chosen without the set", outside, best, majority),
    ]
    for name in SINGLE:
        plain = [scores(one.single[name], one.truth) for one in every.values()]
        rows.append(summary(f"{name}, posterior as it is", plain, best, majority))
        if name == "majority":
            continue
        tempered = [
            [single(one, name, *setting) for one in every.values()] for setting in SINGLE_GRID
        ]
        which = left_out(np.array([[one.log_loss for one in row] for row in tempered]))
        left = [tempered[setting][position] for position, setting in enumerate(which)]
        now = [single(one, name, SCALE, EXPONENT) for one in every.values()]
        rows.append(summary(f"{name}, calibrated ({SCALE}, {EXPONENT})", now, best, majority))
        rows.append(summary(f"{name}, constants without the set", left, best, majority))
    columns = [
        "method",
        "accuracy",
        "log loss",
        "ECE",
        "|gap|",
        "regret",
        "worst",
        "below majority",
    ]
    over = np.array([one.accuracy for one in outside])
    note = (
        f"The members and their folds took {sum(one.seconds for one in every.values()):.0f} CPU-s. "
        f"Above the best single method by mean, constants chosen without the set: "
        f"{above(over, every)} points, 95 % interval over sets."
    )
    section.add(Table("23 sets with known truth, means", columns, rows, note))
    section.add(simulated_table())
    section.add(gold_table(every))
    section.add(error_table(every, inside))
    rows = [
        [name, *(round(float(x), 4) for x in one), round(b, 4)]
        for name, one, b in zip(every, inside, best, strict=True)
    ]
    columns = ["set", "accuracy", "log loss", "ECE", "gap", "best single"]
    section.add(Table("auto, set by set", columns, rows))
    section.write()


def single(one: Fits, name: str, scale: float, exponent: float) -> Scores:
    temperature = scale * (one.n_labels / 5) ** exponent
    return scores(temper(one.single[name], temperature), one.truth)


def summary(name: str, found: list[Scores], best: list[float], majority: list[Scores]) -> list[Any]:
    accuracy, log_loss, ece, gap = np.array(found).T
    regret = np.array(best) - accuracy
    below = np.array([one.accuracy for one in majority]) - accuracy
    return [
        *(name, f"{100 * accuracy.mean():.2f}", f"{log_loss.mean():.3f}", f"{ece.mean():.3f}"),
        *(f"{np.abs(gap).mean():.3f}", f"{100 * regret.mean():.2f}", f"{100 * regret.max():.1f}"),
        f"{100 * below.max():.1f}",
    ]


def above(accuracy: Any, every: dict[str, Fits]) -> str:
    """Return the lead over the best single method by mean, with a bootstrap interval over sets."""
    single = [
        [scores(one.single[name], one.truth).accuracy for one in every.values()] for name in SINGLE
    ]
    lead = 100 * (accuracy - max(single, key=sum))
    draws = np.random.default_rng(0).integers(len(lead), size=(10_000, len(lead)))
    low, high = np.quantile(lead[draws].mean(axis=1), [0.025, 0.975])
    return f"{lead.mean():.2f} ({low:.2f} to {high:.2f})"


def simulated(first: int) -> Iterator[Simulation]:
    """Yield crowds of every kind and size, with seeds from the first one on."""
    for seed, (kind, size) in enumerate(product(CROWDS, SIZES), first):
        n_items, n_annotators, feedback, n_classes = size
        yield simulate(
            kind,
            n_items=n_items,
            n_annotators=n_annotators,
            feedback=feedback,
            n_classes=n_classes,
            seed=seed,
        )


def simulated_table() -> Table:
    """Return scores on simulated crowds of every kind and of several sizes."""
    found: dict[str, list[Scores]] = {name: [] for name in ("auto", *SINGLE)}
    for drawn in simulated(first=0):
        item, true = known_items(drawn.annotations, drawn.truths)
        for name, row in found.items():
            row.append(scores(aggregate(drawn.annotations, name).probabilities[item], true))
    best = [max(one.accuracy for one in row) for row in zip(*found.values(), strict=True)]
    rows = [summary(name, row, best, found["majority"]) for name, row in found.items()]
    columns = ["method", "accuracy", "log loss", "ECE", "|gap|", "regret", "worst"]
    title = f"{len(best)} simulated crowds of {len(CROWDS)} kinds, means"
    note = "Probabilities as the methods state them; regret is to the best row on each crowd."
    return Table(title, [*columns, "below majority"], rows, note)


def gold_table(every: dict[str, Fits]) -> Table:
    """Return scores with 50 known items, on the other items, over draws."""
    found = []
    for one in every.values():
        free = pool(one, auto._SCALE, EXPONENT, auto._EQUAL)
        usable = np.flatnonzero(one.truth >= 0)
        for draw in range(DRAWS):
            drawn = np.random.default_rng(draw).choice(usable, ENOUGH_GOLD, replace=False)
            rest = np.setdiff1d(np.arange(len(one.truth)), drawn)
            if len(rest) == 0:
                continue
            temperature = temper_members(one)
            given = temperature[:, drawn, one.truth[drawn]]
            by_gold = weights(0.99 * given + 0.01 / free.shape[1])
            weight = (one.weight + by_gold) / 2
            weight = (1 - auto._EQUAL) * weight + auto._EQUAL / len(weight)
            pooled = np.tensordot(weight, temperature, axes=1)
            factor = fit_temperature(pooled[drawn], one.truth[drawn])
            tempered = temper(pooled[rest], np.full(len(rest), factor))
            before = scores(free[rest], one.truth[rest])
            found.append([*before, *scores(tempered, one.truth[rest])])
    by_set = np.abs(np.array(found)).reshape(len(every), DRAWS, -1).mean(axis=1).mean(axis=0)
    rows = [
        ["without", *(f"{x:.4f}" for x in by_set[:4])],
        [f"with {ENOUGH_GOLD} known items", *(f"{x:.4f}" for x in by_set[4:])],
    ]
    columns = ["auto", "accuracy", "log loss", "ECE", "|gap|"]
    return Table(f"{ENOUGH_GOLD} known items, {DRAWS} draws, scored on the others", columns, rows)


def temper_members(one: Fits) -> Any:
    temperature = auto._SCALE * (one.n_labels / 5) ** EXPONENT
    return np.array([temper(p, temperature) for p in one.members])


def outside_list(confidence: Any, wrong: Any) -> list[tuple[float, float]]:
    """Return log ratio and expected number of wrong labels outside the list to relabel, if any."""
    stated = np.sort(1 - confidence)[::-1]
    left = stated.sum() - np.cumsum(stated)
    listed = int(np.argmax(left <= 0.05 * len(stated))) + 1
    if stated.sum() <= 0.05 * len(stated):
        return []
    expected = float(doubts(confidence, float(wrong.sum()))[listed:].sum())
    true = wrong[np.argsort(confidence, kind="stable")[listed:]].sum()
    return [(float(np.log(max(true, 0.5) / expected)), expected)]


def error_table(every: dict[str, Fits], inside: list[Scores]) -> Table:
    """Return stated and true errors, the list to relabel, and whether to stop, set by set."""
    stated, true, rows = [], [], []
    for one, score in zip(every.values(), inside, strict=True):
        confidence = pool(one, auto._SCALE, EXPONENT, auto._EQUAL).max(axis=1)
        stated.append((1 - confidence).sum())
        true.append((1 - score.accuracy) * len(confidence))
    ratio = np.log(np.array(true) / np.array(stated))
    inside_interval, lifts, stops, outside = [], [], 0, []
    for position, (name, one) in enumerate(every.items()):
        others = np.delete(ratio, position)
        spread = np.sqrt((others**2).mean() + 1 / stated[position])
        low, high = stated[position] * np.exp(np.array([-1.645, 1.645]) * spread)
        inside_interval.append(low <= true[position] <= high)
        probabilities = pool(one, auto._SCALE, EXPONENT, auto._EQUAL)
        confidence = probabilities.max(axis=1)
        wrong = probabilities.argmax(axis=1) != one.truth
        first = np.argsort(confidence, kind="stable")[: round(TENTH * len(wrong))]
        lift = wrong[first].mean() / wrong.mean()
        lifts.append((wrong.mean(), lift))
        stop = label_errors(confidence).reaches(0.95)
        outside += outside_list(confidence, wrong)
        stops += stop and wrong.mean() > 0.05
        rows.append(
            [
                *(name, f"{wrong.mean():.3f}", f"{stated[position]:.0f}", f"{true[position]:.0f}"),
                *(f"{low:.0f} to {high:.0f}", "yes" if inside_interval[-1] else "no"),
                *(f"{lift:.2f}", "stop" if stop else "go on"),
            ]
        )
    easy = [lift for rate, lift in lifts if rate < 0.15]
    hard = [lift for rate, lift in lifts if rate >= 0.15]
    spread = np.sqrt(np.mean([max(log**2 - 1 / count, 0.0) for log, count in outside]))
    columns = ["set", "error rate", "stated", "true", "90 % interval", "holds it", "lift", "advice"]
    note = (
        "The interval, with its spread from the other sets, holds the truth on "
        f"{sum(inside_interval)} of {len(rows)} sets; root mean square log ratio "
        f"{np.sqrt((ratio**2).mean()):.3f} (in use: {LOG_SD}). Lift: wrong labels in the least "
        f"certain tenth against a random tenth; at least {min(easy):.2f} where fewer than 15 % are "
        f"wrong, {min(hard):.2f} elsewhere. Wrong advice to stop (target 95 %): {stops}. "
        f"Outside the list to relabel, given the number of all wrong labels: root mean square log "
        f"ratio {spread:.3f} beyond that of counts (in use: {LEFT_SD})."
    )
    return Table("Errors left, list to relabel, and stopping", columns, rows, note)


if __name__ == "__main__":
    main()
