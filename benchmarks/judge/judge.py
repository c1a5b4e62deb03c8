"""Models as annotators on the shared sets: `python benchmarks/run.py judge judge`.

Sets with labels of people and models (AltTest), of judges of pairs (LLMBar) and of a cheap judge
with few labels of an oracle (CJE). Estimates are drawn again and again from a set whose whole
answer is known: one label of a random person on every item is the truth of a resample, `n` items
are labelled, and the models' labels are known on all. ppi-python and judgy are measured where they
are installed.
"""

from __future__ import annotations

import argparse
import csv
import gzip
import re
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from time import process_time
from typing import Any

import numpy as np

from dissensus import read, read_truth
from dissensus.base.probability import proportion
from dissensus.datasets.simulation import simulate_judges
from dissensus.formats.side_tables import read_kinds
from dissensus.judging import (
    escalate,
    judge,
    mixed,
    pair_biases,
    panel,
    pool,
    replacement,
    transport,
)
from dissensus.judging.mixed import Mixed, voices, weighted_votes
from dissensus.judging.pool import pooled
from dissensus.judging.true_mean import powered_mean, stratified_mean
from dissensus.judging.true_shares import rogan_gladen, stratified_share

DATA = Path(__file__).parents[3] / "shared" / "data"
EPSILON = {
    "alt_10k_prompts": 0.15,
    "alt_cebab_aspects": 0.1,
    "alt_framing": 0.15,
    "alt_mtbench": 0.2,
    "alt_summeval": 0.2,
    "alt_wax": 0.1,
}
SHARES = (
    ("alt_framing", "yes"),
    ("alt_cebab_aspects", "Negative"),
    ("alt_cebab_aspects", "Positive"),
    ("alt_wax", "Function"),
)


def load(name: str, **given: Any) -> Mixed:
    """Return a shared set with the kinds of its annotators."""
    annotations = read(DATA / name / "answers.csv.gz")
    kinds = read_kinds(DATA / name / "workers.csv.gz")
    return mixed(annotations.with_kinds(kinds), **given)


def items_of(name: str) -> dict[str, dict[str, str]]:
    """Return the table about the items of a set."""
    with gzip.open(DATA / name / "tasks.csv.gz", "rt", encoding="utf-8") as file:
        return {row["task"]: row for row in csv.DictReader(file)}


def printed(name: str) -> dict[str, tuple[str, str]]:
    """Return the published winning rate and advantage of every model."""
    text = (DATA / name / "README.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| ([\w.-]+) \| ([\d.]+) \| ([\d.]+) \|$", text, re.MULTILINE)
    return {model: (rate, advantage) for model, rate, advantage in rows}


def replacement_rows() -> Iterator[tuple[Any, ...]]:
    """Yield our figures and the published ones."""
    for name, epsilon in EPSILON.items():
        found = replacement(load(name), epsilon=epsilon)
        for one in found.models:
            ours = f"{one.winning_rate:.2f}", f"{one.advantage:.2f}"
            published = printed(name)[one.judge]
            yield (
                name,
                one.judge,
                *ours,
                *published,
                "yes" if ours == published else "NO",
                f"{one.smallest_epsilon:.2f}",
                f"{one.stability:.0%}",
                f"{found.n_people_pass} of {found.n_people_tested}",
            )


def one_label(data: Mixed, rng: np.random.Generator) -> np.ndarray[Any, Any]:
    """Return the label of a random person on every item that has one, -1 for none."""
    people = data.people
    order = np.lexsort((rng.random(len(people)), people.item))
    label = np.full(data.n_items, -1)
    has = people.labels_per_item > 0
    label[has] = people.label[order[people.index[:-1][has]]]
    return label


def share_rows(resamples: int, seed: int = 0) -> Iterator[tuple[Any, ...]]:
    """Yield coverage and width of shares, for people, the judge, and the corrections."""
    rng = np.random.default_rng(seed)
    judgy = _peer("judgy")
    for name, label in SHARES:
        data = load(name)
        code = data.classes.tolist().index(label)
        says = data.judge_repeats[data.judge_names.index("gpt-4o")][0].label == code
        for n in (25, 50, 100):
            inside: dict[str, list[bool]] = {}
            width: dict[str, list[float]] = {}

            def note(
                method: str,
                low: float,
                high: float,
                truth: float,
                inside: Any = inside,
                width: Any = width,
            ) -> None:
                inside.setdefault(method, []).append(low <= truth <= high)
                width.setdefault(method, []).append(high - low)

            for repeat in range(resamples):
                y = (one_label(data, rng) == code).astype(float)
                truth, chosen = float(y.mean()), rng.choice(len(y), n, replace=False)
                rest = np.setdiff1d(np.arange(len(y)), chosen)
                found = stratified_share(y[chosen], says[chosen], says, seed=repeat)
                note("strata", found[1], found[2], truth)
                wilson = proportion(np.array([y[chosen].sum()]), np.array([float(n)]))
                note("people", float(wilson.low[0]), float(wilson.high[0]), truth)
                f = says.astype(float)
                powered = powered_mean(y[chosen], f[chosen], f[rest])
                note("ppi++", powered[1], powered[2], truth)
                if judgy is not None and repeat < 60 and 0 < y[chosen].sum() < n:
                    try:
                        _, low, high = judgy.estimate_success_rate(
                            y[chosen].astype(int),
                            f[chosen].astype(int),
                            f[rest].astype(int),
                            bootstrap_iterations=2000,
                        )
                        note("judgy", low, high, truth)
                    except ValueError:
                        pass
            cells = [
                f"{np.mean(inside[one]):.3f} ({np.mean(width[one]) / np.mean(width['people']):.2f})"
                if one in inside
                else "–"
                for one in ("people", "strata", "ppi++", "judgy")
            ]
            yield (name, label, n, *cells)


def sampled_rows(resamples: int, seed: int = 0) -> Iterator[tuple[Any, ...]]:
    """Yield coverage of the estimators for three ways of choosing 100 items."""
    rng = np.random.default_rng(seed)
    data = load("alt_cebab_aspects")
    code = data.classes.tolist().index("Negative")
    says = data.judge_repeats[data.judge_names.index("gpt-4o")][0].label == code
    inside: dict[tuple[str, str], list[bool]] = {}
    for repeat in range(resamples):
        y = (one_label(data, rng) == code).astype(float)
        for way, marked in (("random", None), ("by judge", says), ("by label", y > 0)):
            chosen = rng.choice(len(y), 100, replace=False)
            if marked is not None:
                ends = np.flatnonzero(marked), np.flatnonzero(~marked)
                half = min(50, len(ends[0]))
                chosen = np.concatenate(
                    [
                        rng.choice(ends[0], half, replace=False),
                        rng.choice(ends[1], 100 - half, replace=False),
                    ]
                )
            rest, f = np.setdiff1d(np.arange(len(y)), chosen), says.astype(float)
            estimates = {
                "strata": stratified_share(y[chosen], says[chosen], says, seed=repeat),
                "ppi++": powered_mean(y[chosen], f[chosen], f[rest])[:3],
                "rogan-gladen": rogan_gladen(says, y[chosen], says[chosen]),
            }
            for method, found in estimates.items():
                hit = found is not None and found[1] <= y.mean() <= found[2]
                inside.setdefault((method, way), []).append(hit)
    for method in ("strata", "ppi++", "rogan-gladen"):
        ways = ("random", "by judge", "by label")
        yield (method, *(f"{np.mean(inside[method, way]):.3f}" for way in ways))


def mean_rows(resamples: int, seed: int = 0) -> Iterator[tuple[Any, ...]]:
    """Yield coverage and width of means by PPI++ with t."""
    rng = np.random.default_rng(seed)
    dimension = {item: row["dimension"] for item, row in items_of("alt_summeval").items()}
    sets: list[tuple[str, Mixed]] = [("alt_10k_prompts", load("alt_10k_prompts"))]
    summeval = load("alt_summeval", by=dimension)
    sets.append(("alt_summeval", summeval))
    sets += [
        (f"alt_summeval, {name}", summeval.restrict(items)) for name, items in summeval.per_group()
    ]
    ppi = _peer("ppi_py")
    for name, data in sets:
        f = data.judge_value(data.judge_names.index("gpt-4o-mini"))
        y = data.target_value
        for n in (50, 100):
            found: dict[str, list[tuple[float, float]]] = {}
            for _ in range(resamples):
                chosen = rng.choice(len(y), n, replace=False)
                rest = np.setdiff1d(np.arange(len(y)), chosen)
                found.setdefault("ppi++ t", []).append(
                    powered_mean(y[chosen], f[chosen], f[rest])[1:3]
                )
                alone = powered_mean(y[chosen], y[chosen], y[:0], slope=0.0)[1:3]
                found.setdefault("people", []).append(alone)
                if ppi is not None:
                    low, high = ppi.ppi_mean_ci(y[chosen], f[chosen], f[rest], alpha=0.05)
                    found.setdefault("ppi-python", []).append(
                        (float(np.ravel(low)[0]), float(np.ravel(high)[0]))
                    )
            people = np.mean([high - low for low, high in found["people"]])
            cells = [
                f"{np.mean([low <= y.mean() <= high for low, high in found[one]]):.3f} "
                f"({np.mean([high - low for low, high in found[one]]) / people:.2f})"
                if one in found
                else "–"
                for one in ("people", "ppi++ t", "ppi-python")
            ]
            r = np.corrcoef(y, f)[0, 1]
            yield (name, f"{r:.2f}", n, *cells)


def group_rows(resamples: int, seed: int = 0) -> Iterator[tuple[Any, ...]]:
    """Yield coverage of means of a bounded scale by system, 25 labels of each."""
    rng = np.random.default_rng(seed)
    about = items_of("alt_summeval")
    system = {item: row["system"] for item, row in about.items()}
    data = load("alt_summeval", by=system)
    dimension = np.array([about[name]["dimension"] for name in data.people.items.tolist()])
    f = data.judge_value(data.judge_names.index("gpt-4o"))
    for name in ("consistency", "fluency", "coherence"):
        hits: dict[str, list[bool]] = {"people": [], "ppi++": [], "strata": []}
        widths: dict[str, list[float]] = {one: [] for one in hits}
        for repeat in range(resamples):
            chosen = {}
            for group in range(len(data.groups)):
                items = np.flatnonzero((data.group == group) & (dimension == name))
                chosen[group] = (items, rng.choice(items, 25, replace=False))
            drawn = np.concatenate([one[1] for one in chosen.values()])
            shares = data.target_shares
            pooled_shares = shares[drawn].mean(axis=0)
            for items, sample in chosen.values():
                y = data.target_value
                truth, rest = float(y[items].mean()), np.setdiff1d(items, sample)
                estimates = {
                    "people": powered_mean(y[sample], y[sample], y[:0], slope=0.0)[1:3],
                    "ppi++": powered_mean(y[sample], f[sample], f[rest])[1:3],
                    "strata": stratified_mean(
                        data.value,
                        shares[sample],
                        f[sample],
                        f[items],
                        pooled_shares,
                        draws=1000,
                        seed=repeat,
                    )[1:],
                }
                for method, (low, high) in estimates.items():
                    hits[method].append(low <= truth <= high)
                    widths[method].append(high - low)
        people = np.mean(widths["people"])
        yield (
            name,
            *(f"{np.mean(hits[one]):.3f} ({np.mean(widths[one]) / people:.2f})" for one in hits),
        )


def pool_rows(seeds: int) -> Iterator[tuple[Any, ...]]:
    """Yield the pool against held-out people: accuracy and soft cross-entropy."""
    jobs = [("alt_wax", 1), ("alt_wax", 2), ("alt_cebab_aspects", 1), ("alt_cebab_aspects", 2)]
    jobs += [("alt_framing", 1), ("alt_framing", 2), ("alt_summeval", 2), ("alt_10k_prompts", 1)]
    for name, count in jobs:
        data = load(name)
        rows = []
        for seed in range(seeds):
            rng, people = np.random.default_rng(seed), data.people
            order = np.lexsort((rng.random(len(people)), people.item))
            rank = np.empty(len(people), dtype=int)
            rank[order] = np.arange(len(people)) - people.index[people.item[order].astype(int)]
            seen, held = people.keep(rank < count), people.keep(rank >= count)
            votes, others = weighted_votes(seen), weighted_votes(held)
            used = (voices(seen) >= count) & (others.sum(axis=1) > 0)
            found = pooled(votes, voices(seen), data.judges, data.cluster, data.classes)
            smooth = (votes + 0.1) / (votes.sum(axis=1) + 0.1 * data.n_classes)[:, None]
            rows.append(
                [
                    *_scores(votes, others, used)[:1],
                    _scores(smooth, others, used)[1],
                    *_scores(found.predicted, others, used),
                    *_scores(found.posterior, others, used),
                    found.worth,
                ]
            )
        mean = np.mean(rows, axis=0)
        yield (name, count, *(f"{value:.3f}" for value in mean[:6]), f"{mean[6]:.1f}")


def _scores(
    posterior: np.ndarray[Any, Any], held: np.ndarray[Any, Any], used: np.ndarray[Any, Any]
) -> tuple[float, float]:
    """Return accuracy against the majority of held-out people, ties in parts, and cross-entropy."""
    majority = (held > held.max(axis=1)[:, None] - 1e-9) & (held > 0)
    top = posterior > posterior.max(axis=1)[:, None] - 1e-9
    right = (top * (majority / np.maximum(majority.sum(axis=1), 1)[:, None])).sum(axis=1)
    shares = held / np.maximum(held.sum(axis=1), 1)[:, None]
    loss = -(shares * np.log(np.maximum(posterior, 1e-12))).sum(axis=1)
    return float((right / top.sum(axis=1))[used].mean()), float(loss[used].mean())


def panel_rows() -> Iterator[tuple[Any, ...]]:
    """Yield what panels are worth."""
    sets = {
        name: load(name) for name in ("alt_framing", "alt_cebab_aspects", "alt_wax", "alt_mtbench")
    }
    answers, truth = (
        read(DATA / "llmbar" / "answers.csv.gz"),
        read_truth(DATA / "llmbar" / "truth.csv.gz"),
    )
    given = answers.keep(answers.columns["order"] == "given")
    names = given.annotators.tolist()
    prompts = ("Vanilla", "CoT", "Metrics", "Metrics_Reference", "Reference", "Swap")
    for title, chosen in (
        ("llmbar, six models, Vanilla", [one for one in names if one.endswith("/Vanilla")]),
        ("llmbar, GPT-4, all prompts", [one for one in names if one.startswith("model:GPT-4/")]),
        ("llmbar, models × prompts", [one for one in names if one.rpartition("/")[2] in prompts]),
    ):
        sets[title] = mixed(given.subset(annotators=chosen), truth=truth)
    for name, data in sets.items():
        one = panel(data)
        assert one is not None
        yield (
            name,
            len(one.judges),
            f"{one.worth:.2f} ({one.low:.2f} to {one.high:.2f})",
            f"{one.rho:.2f}",
            f"{one.people_rho:.2f}",
            "yes" if one.shared else "no",
            f"{one.accuracy:.2f}",
            f"{one.best:.2f}",
        )


def known_panels() -> Iterator[tuple[Any, ...]]:
    """Yield the effective number of simulated panels whose answer is known."""
    for count in (2, 5, 10):
        for title, shared in (("independent", 0.0), ("identical", 1.0)):
            data = simulate_judges(
                n_items=4000, n_judges=count, n_labelled=0, shared=shared, n_classes=2, seed=count
            )
            truth = dict(
                zip(data.annotations.items.tolist(), map(str, data.truth.tolist()), strict=True)
            )
            one = panel(mixed(data.annotations, truth=truth))
            assert one is not None
            yield title, count, f"{one.worth:.2f}"


def escalation_rows(seeds: int) -> Iterator[tuple[Any, ...]]:
    """Yield accuracy when people check some of 600 items, at random or the most doubtful first."""
    for name in ("alt_cebab_aspects", "alt_framing"):
        data = load(name)
        shares: dict[str, list[list[float]]] = {"random": [], "doubt": []}
        for seed in range(seeds):
            rng = np.random.default_rng(seed)
            keep = np.sort(rng.permutation(data.n_items)[:600])
            label = one_label(data, rng)[keep]
            votes = weighted_votes(data.people)[keep]
            votes[np.arange(600), label] -= 1
            judges = data.judges.subset(items=data.judges.items[keep])
            for way in shares:
                order = rng.permutation(600)
                asked = np.zeros(600, dtype=bool)
                asked[order[:60]] = True
                line = []
                for target in (90, 180, 300, 600):
                    found = _pool_of(asked, label, data, judges)
                    while asked.sum() < target:
                        free = np.flatnonzero(~asked)
                        if way == "doubt":
                            free = free[
                                np.argsort(found.predicted[free].max(axis=1), kind="stable")
                            ]
                        else:
                            free = rng.permutation(free)
                        asked[free[: min(60, target - int(asked.sum()))]] = True
                        found = _pool_of(asked, label, data, judges)
                    line.append(_scores(found.posterior, votes, votes.sum(axis=1) > 0)[0])
                shares[way].append(line)
        for way, lines in shares.items():
            yield (name, way, *(f"{value:.3f}" for value in np.mean(lines, axis=0)))


def advice_rows(seeds: int) -> Iterator[tuple[Any, ...]]:
    """Yield what following the advice reaches, of what asking about every item does."""
    for name in ("alt_cebab_aspects", "alt_framing", "alt_wax", "alt_summeval"):
        whole = load(name)
        mean = np.mean([_advised(whole, seed) for seed in range(seeds)], axis=0)
        yield (
            name,
            *(f"{value:.0f}" for value in mean[:2]),
            *(f"{value:.3f}" for value in mean[2:]),
        )


def _advised(whole: Mixed, seed: int) -> list[float]:
    """Return items without labels, those to check, and accuracy before, with them, and with all."""
    rng = np.random.default_rng(seed)
    kept = np.zeros(whole.n_items, dtype=bool)
    kept[rng.permutation(whole.n_items)[:600]] = True
    data = whole.restrict(kept)
    people = data.people
    order = np.lexsort((rng.random(len(people)), people.item))
    rank = np.empty(len(people), dtype=int)
    rank[order] = np.arange(len(people)) - people.index[people.item[order].astype(int)]
    first = rng.permutation(data.n_items)[:100].tolist()
    held = weighted_votes(people.keep(rank >= 1))
    position = {item: code for code, item in enumerate(people.items.tolist())}

    def asking(items: list[int]) -> Mixed:
        return replace(
            data, people=people.keep(np.isin(people.item, [*first, *items]) & (rank < 1))
        )

    found = escalate(asking([]), pool(asking([])))
    listed = [position[item] for item in found.items.tolist()]
    reached = [
        _scores(pool(asking(listed[:count])).posterior, held, held.sum(axis=1) > 0)[0]
        for count in (0, found.enough, len(listed))
    ]
    return [len(listed), found.enough, *reached]


def _pool_of(asked: Any, label: Any, data: Mixed, judges: Any) -> Any:
    votes = np.zeros((len(label), data.n_classes))
    votes[np.flatnonzero(asked), label[asked]] = 1
    return pooled(votes, asked.astype(int), judges, np.arange(len(label)), data.classes)


def bias_rows() -> Iterator[tuple[Any, ...]]:
    """Yield biases of the judges of pairs with the prompt Vanilla, and of plain preferences."""
    for name in ("llmbar", "llmbar_processed"):
        data = mixed(
            read(DATA / name / "answers.csv.gz"), truth=read_truth(DATA / name / "truth.csv.gz")
        )
        lengths = {
            item: (float(row["chars_1"]), float(row["chars_2"]))
            for item, row in items_of(name).items()
        }
        found = pair_biases(data, lengths=lengths)
        for judge_name in data.judge_names:
            if name == "llmbar" and not judge_name.endswith("/Vanilla"):
                continue
            place, length = (one for one in found if one.judge == judge_name)
            yield (
                name,
                judge_name,
                *(
                    f"{one.estimate:+.3f} ± {(one.high - one.low) / 2:.3f}"
                    for one in (place, length)
                ),
                f"{place.n_flips / max(place.both_orders, 1):.0%}",
            )


def transport_rows() -> Iterator[tuple[Any, ...]]:
    """Yield whether the calibration on base holds for the other systems."""
    systems = {item: row["system"] for item, row in items_of("cje_arena").items()}
    for one in transport(load("cje_arena", by=systems)):
        half = (one.high - one.low) / 2
        yield (
            one.group,
            f"{one.error:+.3f} ± {half:.3f}",
            "alarm" if one.alarm else "",
            f"{one.calibrated:.3f}",
        )


def speed_rows() -> Iterator[tuple[Any, ...]]:
    """Yield CPU seconds of all of `judge` for many items."""
    for n_items, labelled in ((10_000, 10_000), (100_000, 5_000), (100_000, 100_000)):
        data = simulate_judges(
            n_items=n_items, n_labelled=labelled, n_judges=10, n_people=5, n_classes=3, seed=0
        )
        plain = data.annotations.with_codes()  # without stated confidences
        start = process_time()
        found = judge(plain)
        middle = process_time() - start
        assert found.sentences
        yield n_items, labelled, len(plain), f"{middle:.1f}"


def equal_to_ppi() -> str:
    """Return the largest difference from ppi-python, for given slopes."""
    ppi = _peer("ppi_py")
    if ppi is None:
        return "ppi-python is not installed."
    rng, worst = np.random.default_rng(0), 0.0
    for slope in (0.0, 0.3, 0.6, 1.0):
        y, rest = rng.normal(size=60), rng.normal(size=500)
        f = y + rng.normal(size=60)
        low, high = ppi.ppi_mean_ci(y, f, rest, alpha=0.05, lam=slope)
        found = powered_mean(y, f, rest, slope=slope, exact=False)
        worst = max(
            worst, abs(found[1] - float(np.ravel(low)[0])), abs(found[2] - float(np.ravel(high)[0]))
        )
    return f"The largest difference from `ppi_mean_ci(lam=…)` is {worst:.1e}."


def _peer(name: str) -> Any:
    """Return a peer's module, if it is installed; no module of ours may shadow another."""
    here, before = Path(__file__).parents[1], sys.path[:]
    sys.path[:] = [path for path in before if path and not Path(path).is_relative_to(here)]
    try:
        return import_module(name)
    except ImportError:
        return None
    finally:
        sys.path[:] = before


def main() -> None:
    """Measure and write the page."""
    from pages import Section, Table

    options = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    options.add_argument("--resamples", type=int, default=500)
    options.add_argument("--seeds", type=int, default=3)
    given = options.parse_args()
    count = given.resamples
    section = Section("judge", "judge")
    resampled = (
        f"{count} resamples; coverage of 95 % intervals, and their width relative to people's."
    )
    tables: list[tuple[str, list[str], Callable[[], Iterator[tuple[Any, ...]]], str]] = [
        (
            "The alternative annotator test, ours and as published",
            [
                "set",
                "model",
                "winning rate",
                "advantage",
                "published",
                "published",
                "equal",
                "smallest epsilon",
                "resamples that pass",
                "people who pass",
            ],
            replacement_rows,
            "",
        ),
        (
            "Class shares, random samples, judge gpt-4o",
            ["set", "class", "n", "people (Wilson)", "strata", "PPI++ t", "judgy"],
            lambda: share_rows(count),
            resampled,
        ),
        (
            "Which estimator is right depends on how items were chosen (cebab Negative, n = 100)",
            ["estimator", "random", "half by judge's label", "half by true label"],
            lambda: sampled_rows(count),
            "Coverage.",
        ),
        (
            "Means, judge gpt-4o-mini",
            ["set", "r", "n", "people", "PPI++ t", "ppi-python"],
            lambda: mean_rows(count),
            f"{resampled} {equal_to_ppi()}",
        ),
        (
            "Means of a bounded scale by system (summeval, 16 systems, n = 25 each, judge gpt-4o)",
            ["dimension", "people", "PPI++ t", "strata"],
            lambda: group_rows(max(count // 10, 10)),
            f"{max(count // 10, 10)} resamples of 16 systems.",
        ),
        (
            "The pool against held-out people",
            [
                "set",
                "people seen",
                "people: accuracy",
                "cross-entropy",
                "models: accuracy",
                "cross-entropy",
                "pool: accuracy",
                "cross-entropy",
                "w",
            ],
            lambda: pool_rows(given.seeds),
            "Accuracy against the majority of held-out people, tied classes in parts; "
            "cross-entropy against their shares, people's own with 0.1 added to every class. w is "
            "2 where each item has one person.",
        ),
        (
            "What panels are worth",
            [
                "set",
                "judges",
                "effective number",
                "correlation",
                "people's",
                "shared errors",
                "panel's accuracy",
                "best judge's",
            ],
            panel_rows,
            "Pairs of llmbar in the order given.",
        ),
        ("Simulated panels", ["errors", "judges", "effective number"], known_panels, ""),
        (
            "Escalation: accuracy with 15, 30, 50 and 100 % of 600 items seen by one person",
            ["set", "order", "15 %", "30 %", "50 %", "100 %"],
            lambda: escalation_rows(given.seeds),
            "",
        ),
        (
            "Following the advice: 100 random items seen by one person, then the items to check",
            ["set", "other items", "advised", "accuracy before", "with the advised", "with all"],
            lambda: advice_rows(given.seeds),
            "Against the majority of the other people.",
        ),
        ("Biases in pairs", ["set", "judge", "position", "length", "inconsistent"], bias_rows, ""),
        (
            "Transport: calibration on base, 50 labels of every other system (cje_arena)",
            ["system", "error", "", "mean by the calibration"],
            transport_rows,
            "",
        ),
        (
            "Time of `judge`, ten judges",
            ["items", "with human labels", "labels", "CPU seconds"],
            speed_rows,
            "",
        ),
    ]
    for title, columns, rows, note in tables:
        section.add(Table(title, columns, list(rows()), note))
    section.write()


if __name__ == "__main__":
    main()
