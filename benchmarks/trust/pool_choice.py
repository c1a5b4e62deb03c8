"""What the default would be if its set had no say: `python benchmarks/run.py trust pool_choice`.

Members of the pool, their temperature and the equal part of the weights are chosen without the
set that they are scored on, by mean accuracy or mean log loss: on the other 22 sets with known
truth, or on these, halves of their annotators, thinned labels, simulated crowds, and sets without
known truth, where half of the labels of every item are predicted from the other half, each of these
five kinds counting the same. Only what is in the table of settings is chosen so; that a pool is
linear, that weights are found with members tempered as they are pooled, how many folds there are,
and which settings are worth trying, was decided in sight of all sets. Measurements are kept
one by one in `out/pool`.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from functools import partial
from itertools import product
from typing import Any

import numpy as np

from calibration import (
    CROWDS,
    SINGLE,
    SIZES,
    Scores,
    known_items,
    left_out_labels,
    scores,
    simulated,
    summary,
    weights,
)
from dissensus import Annotations, aggregate, aggregators, read
from dissensus.aggregation import auto
from dissensus.aggregation.held_out import stopped_early
from dissensus.answers.selections import content_sample
from dissensus.base.probability import EXPONENT, label_temperature, temper
from gold_sets import DATA, SETS, load
from kept import kept
from pages import Section, Table

LEVELS = auto.MEMBERS[-2]
UNIFORM = "hierarchical[max_iter=20,pooled=1,estimate=True,prevalence=1e9]"
EVERY = ("wawa", "one-coin", "dawid-skene-map", UNIFORM, *auto.MEMBERS)
LISTS = {
    "present": auto.MEMBERS,
    "all": EVERY,
    **{f"without {out}": tuple(one for one in EVERY if one != out) for out in EVERY},
    "and bcc": (*EVERY, "bcc"),
    "weaker levels": tuple("two-level[max_iter=20]" if one == LEVELS else one for one in EVERY),
    "present, and votes": ("wawa", "dawid-skene-map", *auto.MEMBERS),
    "present, uniform": (UNIFORM, *auto.MEMBERS),
    "no clusters": tuple(one for one in auto.MEMBERS if one != "dswc-vb"),
    "five": tuple(
        one for one in auto.MEMBERS if one.split("[")[0] not in ("mace", "dswc-vb", "vi-mf")
    ),
}
ALL = list(dict.fromkeys(spec for members in LISTS.values() for spec in members))
NINETEEN = (  # the methods that were there when the pool was designed
    *(
        "naive-soft",
        "wawa",
        "iwmv",
        "zbs",
        "one-coin",
        "glad",
        "mace",
        "mace[prevalence=estimated]",
    ),
    *("dawid-skene", "dawid-skene-map", "bcc", "dswc-vb", "two-level", "diagonal", "catd"),
    *("ordinal-split", "hierarchical", "hierarchical[pooled=1]"),
    "hierarchical[pooled=1,estimate=True]",
)
SCALES, EQUAL = (2.5, 3.0, 3.5), (0.0, 0.1, 0.3)
SETTINGS = list(product(LISTS, SCALES, EQUAL))
PRESENT = ("present", auto._SCALE, auto._EQUAL)
KINDS = ("real", "half", "thin", "simulated", "consensus")
UNKNOWN = (  # sets whose truth is not known, of five labels per item or more
    *("adult3", "jobs_q1", "jobs_q2", "disaggreghateit", "gwsd", "babe_sg1", "babe_sg2"),
    *("lewidi_md_agreement", "lewidi_mp", "offensive_spans", "subjective_discourse"),
)


def corpus() -> Iterator[tuple[str, str, Annotations, dict[str, str]]]:
    """Yield kind, set, annotations and truth of all that settings are chosen on."""
    for name in SETS:
        annotations, truth = load(name)
        yield "real", name, annotations, truth
        for draw in range(2):
            random = np.random.default_rng([zlib.crc32(name.encode()), draw])
            half = (
                random.permutation(annotations.n_annotators) < (annotations.n_annotators + 1) // 2
            )
            yield "half", f"{name} {draw}", annotations.keep(half[annotations.annotator]), truth
        yield "thin", name, thinned(annotations, random), truth
    for number, drawn in enumerate(simulated(first=1000)):
        yield "simulated", str(number), drawn.annotations, drawn.truths
    for name in UNKNOWN:
        annotations = read(DATA / name / "answers.csv.gz")
        random = np.random.default_rng(zlib.crc32(name.encode()))
        yield "consensus", name, *halved(annotations, random)


def thinned(annotations: Annotations, random: np.random.Generator) -> Annotations:
    """Return half of the labels of every item, two to five of them."""
    mean = len(annotations) / (annotations.labels_per_item > 0).sum()
    return annotations.keep(positions(annotations, random) < np.clip(round(mean / 2), 2, 5))


def halved(
    annotations: Annotations, random: np.random.Generator
) -> tuple[Annotations, dict[str, str]]:
    """Return half of the labels of every item, at most five, and the clear majority of the rest."""
    size = np.minimum(annotations.labels_per_item // 2, 5)
    given = positions(annotations, random) < size[annotations.item]
    votes = np.asarray(annotations.keep(~given).votes())
    first, second = np.sort(votes, axis=1)[:, :-3:-1].T
    items = np.flatnonzero(first > second)
    labels = annotations.classes[votes[items].argmax(axis=1)]
    truth = dict(zip(annotations.items[items].tolist(), labels.tolist(), strict=True))
    return annotations.keep(given), truth


def positions(annotations: Annotations, random: np.random.Generator) -> Any:
    """Return the place of every annotation among those of its item, in random order."""
    order = np.lexsort((random.random(len(annotations)), annotations.item))
    position = np.empty(len(annotations), dtype=int)
    position[order] = np.arange(len(annotations)) - annotations.index[annotations.item]
    return position


def measured(annotations: Annotations, truth: dict[str, str]) -> dict[str, Any]:
    """Return the scores of every setting, of the best single method, and of majority vote."""
    item, true = known_items(annotations, truth)
    methods = [stopped_early(aggregators.create(spec)) for spec in ALL]
    posterior = [method.fit(annotations).posterior[item] for method in methods]
    single = [aggregate(annotations, spec).posterior[item] for spec in SINGLE]
    best = max(scores(one, true).accuracy for one in (*posterior, *single))
    sample = content_sample(annotations, auto._SAMPLE, 0)
    found = {}
    for scale in SCALES:
        left = left_out_labels(sample, methods, scale)
        temperature = label_temperature(annotations.labels_per_item[item], scale)
        tempered = [temper(one, temperature) for one in posterior]
        for name, members in LISTS.items():
            which = [ALL.index(one) for one in members]
            weight = weights(left[which])
            for equal in EQUAL:
                each = (1 - equal) * weight + equal / len(members)
                pooled = sum(share * tempered[one] for share, one in zip(each, which, strict=True))
                found[name, scale, equal] = scores(pooled, true)
    majority = scores(single[SINGLE.index("majority")], true)
    return {"found": [found[one] for one in SETTINGS], "best": best, "majority": majority}


def best_of_nineteen(name: str) -> dict[str, float]:
    """Return the accuracy of the best of the nineteen methods, each stopped early."""
    given, truth = load(name)
    item, true = known_items(given, truth)
    methods = [stopped_early(aggregators.create(spec)) for spec in NINETEEN]
    each = [scores(one.fit(given).posterior[item], true).accuracy for one in methods]
    return {"accuracy": max(each)}


def main() -> None:
    """Run what is not kept, and write the section."""
    kinds, names, every = [], [], []
    for kind, name, given, truth in corpus():
        kinds.append(kind)
        names.append(name.split()[0])
        every.append(kept("pool", f"{kind} {name}", partial(measured, given, truth)))
        print(kind, name, flush=True)
    nineteen = [kept("pool", f"19 {name}", partial(best_of_nineteen, name)) for name in SETS]
    write(np.array(kinds), np.array(names), every, [one["accuracy"] for one in nineteen])


def write(kinds: Any, names: Any, every: list[dict[str, Any]], nineteen: list[float]) -> None:
    """Write both tables."""

    def row(title: str, scored: list[Scores]) -> list[Any]:
        cells = summary(title, scored, best, majority)
        regret = 100 * (np.array(nineteen) - np.array([one.accuracy for one in scored]))
        return [*cells, f"{regret.mean():.2f}", f"{regret.max():.1f}"]

    real = np.flatnonzero(kinds == "real")
    best, majority = [every[n]["best"] for n in real], [Scores(*every[n]["majority"]) for n in real]
    now = SETTINGS.index(PRESENT)
    found = [[Scores(*one) for one in each["found"]] for each in every]
    rows = [row("auto as it is", [found[n][now] for n in real])]
    picks = {}
    for what, sign, field in (("accuracy", -1, "accuracy"), ("log loss", 1, "log_loss")):
        losses = sign * np.array([[getattr(one, field) for one in each] for each in found])
        for where, used in (("the other sets", KINDS[:1]), ("all other data", KINDS)):
            chosen = [
                int(
                    np.mean(
                        [losses[(kinds == kind) & (names != names[n])].mean(0) for kind in used], 0
                    ).argmin()
                )
                for n in real
            ]
            title = f"chosen without the set, by {what} on {where}"
            picks[title] = len(set(chosen))
            scored = [found[n][setting] for n, setting in zip(real, chosen, strict=True)]
            rows.append(row(title, scored))
    columns = ["default", "accuracy", "log loss", "ECE", "|gap|", "regret", "worst"]
    columns += ["below majority", "regret to 19", "worst of 19"]
    means = 100 * np.array([[one.accuracy for one in found[n]] for n in real]).mean(axis=0)
    low, middle, high = np.quantile(means, (0.1, 0.5, 0.9))
    note = (
        f"{len(SETTINGS)} settings: {len(LISTS)} lists of members, temperature {SCALES} with "
        f"exponent {EXPONENT}, equal part {EQUAL}. Mean accuracies are {means.min():.2f} to "
        f"{means.max():.2f}; eight of ten are between {low:.2f} and {high:.2f}, half above "
        f"{middle:.2f}. Settings chosen: {', '.join(str(n) for n in picks.values())} different "
        f"ones. Regret is to the best of {len(set(ALL) | set(SINGLE))} single methods on each set, "
        f"and to the best of the {len(NINETEEN)} that were there when the pool was designed "
        f"({100 * np.mean(nineteen):.2f} in hindsight)."
    )
    section = Section("choice of the pool", "calibration")
    section.add(Table("Chosen without the set", columns, rows, note))
    section.add(lists_table(kinds, every, found))
    section.write()


def lists_table(kinds: Any, every: list[dict[str, Any]], found: list[list[Scores]]) -> Table:
    """Return the accuracy of every list of members on every kind of data."""

    def by_kind(values: Any) -> list[str]:
        return [f"{100 * np.array(values)[kinds == kind].mean():.2f}" for kind in KINDS]

    majority = np.array([Scores(*one["majority"]).accuracy for one in every])
    rows: list[list[Any]] = []
    for name, members in LISTS.items():
        setting = SETTINGS.index((name, *PRESENT[1:]))
        accuracy = np.array([each[setting].accuracy for each in found])
        below = f"{100 * (majority - accuracy).max():.1f}"
        rows.append([name, len(members), *by_kind(accuracy), below])
    best = by_kind([one["best"] for one in every])
    rows.append(["best single method in hindsight", None, *best, None])
    note = (
        f"Accuracy in percent, temperature {PRESENT[1]}, equal part {PRESENT[2]}. Half: two random "
        "halves of the annotators of every set; thin: half of the labels of every item, two to "
        f"five; simulated: {len(CROWDS)} kinds of crowds in {len(SIZES)} sizes; consensus: "
        f"{len(UNKNOWN)} sets without known truth, scored by the majority of the labels that were "
        "left out. Below majority: the largest loss to majority vote on any of them."
    )
    return Table("Other members", ["members", "number", *KINDS, "below majority"], rows, note)


if __name__ == "__main__":
    main()
