"""How right every method is: `python benchmarks/run.py accuracy recovery`.

Simulated crowds first, over many seeds, between the majority as the floor and a ceiling: the
posterior of somebody who knows every annotator's confusion matrix. Then the maxima that Dawid-Skene
finds on real data with gold, where `../shared/data` is beside the repository; `methods.py` has all
methods on those sets.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from scipy import special, stats

from dissensus import DissensusError, aggregate, aggregators, evaluate, read, read_truth, simulate
from dissensus.datasets.simulation import Simulation
from dissensus.result import Predictions
from pages import Section, Table

DATA = Path(__file__).parents[2].parent / "shared" / "data"

# The commands of the peerannot article, and the accuracies it printed (doi:10.57750/qmaz-gr91).
PUBLISHED: dict[str, tuple[str, dict[str, Any], dict[str, float]]] = {
    "1 independent": (
        "independent-confusion",
        {"n_annotators": 30, "feedback": 10},
        {"MV": 0.755, "NS": 0.760, "DS": 0.890, "GLAD": 0.775, "DSWC[L=5]": 0.775}
        | {"DSWC[L=10]": 0.770},
    ),
    "2 imbalanced": (
        "independent-confusion",
        {"n_annotators": 30, "imbalance": True},
        {"MV": 0.780, "NS": 0.830, "DS": 0.895, "GLAD": 0.810, "DSWC[L=5]": 0.845}
        | {"DSWC[L=10]": 0.840},
    ),
    "3 student-teacher": (
        "student-teacher[ratio=0.8]",
        {"n_annotators": 30, "feedback": 10},
        {"MV": 0.715, "NS": 0.690, "DS": 0.755, "GLAD": 0.645, "DSWC[L=5]": 0.795}
        | {"DSWC[L=6]": 0.780, "DSWC[L=10]": 0.815},
    ),
    "5 difficulty": (
        "discrete-difficulty[ratio=0.35]",
        {"n_annotators": 100, "feedback": 10},
        {"MV": 0.830, "NS": 0.790, "DS": 0.810, "GLAD": 0.845, "DSWC[L=2]": 0.600}
        | {"DSWC[L=5]": 0.660},
    ),
}

# Real data with classes and gold, and the log-likelihood of Dawid-Skene without smoothing, run
# until a round changes it by less than 1e-9 of it, where another implementation has found it.
GOLD: dict[str, float | None] = {
    "bluebirds": -1888.117,
    "bm": None,
    "cifar10s": None,
    "d_possent": None,
    "d_product": -7568.747,
    "dog": -4745.550,
    "face4": -4088.792,
    "labelme": -2706.219,
    "mbic": None,
    "medrel_treat": None,
    "music": None,
    "reuters_crowd": None,
    "rte": -3679.629,
    "s_adult": None,
    "s_rel": None,
    "sentiment_polarity": -13729.636,
    "sp_amt": None,
    "trec2011": None,
    "trec_binary": None,
    "weather_amt": None,
    "weather_cf": None,
    "zencrowd_in": None,
    "zencrowd_us": None,
}

CONVERGED = "dawid-skene[smoothing=0,tol=1e-9,max_iter=5000]"


def simulated(table: str, seed: int) -> Simulation:
    """Return the crowd of a published command, with any seed."""
    strategy, options, _ = PUBLISHED[table]
    return simulate(strategy, n_items=200, n_classes=5, seed=seed, **options)


def accuracy(drawn: Simulation, method: str, score: str = "accuracy") -> float | None:
    """Return how right a method is on a simulated crowd; `None` where it cannot be used."""
    try:
        found = evaluate(aggregate(drawn.annotations, method), drawn.truths, resamples=0)
    except DissensusError:
        return None
    return found.scores[score].value


def ceiling(drawn: Simulation) -> float:
    """Return the accuracy of the posterior under the true matrices and the true prior.

    Where items differ in difficulty, the difficulty is not known, only how common it is.
    """
    annotations, confusion = drawn.annotations, drawn.crowd.confusion
    n_classes = annotations.n_classes
    counts = annotations.part(0, annotations.n_items).labels
    with np.errstate(divide="ignore"):  # a probability of 0 counts as 1e-300
        log_given = np.maximum(np.log(confusion), -690).swapaxes(1, 2).reshape(-1, n_classes)
    joint = counts @ log_given  # (item, true class)
    if "difficulties" in drawn.extras:
        settings = drawn.options["settings"]
        hard = (1 - settings["random"]) / (settings["ratio_diff"] + 1)
        votes = annotations.votes()
        size = votes.sum(axis=1, keepdims=True)
        shares = np.array([settings["ratio_diff"] * hard, hard, settings["random"]])
        cases = np.stack(
            [
                np.where(votes == size, 0.0, -np.inf),  # easy: everybody is right
                joint,
                np.broadcast_to(-size * np.log(n_classes), joint.shape),  # random
            ]
        )
        joint = special.logsumexp(cases, axis=0, b=shares[:, None, None])
    posterior = special.softmax(joint, axis=1)
    summary = Predictions(
        annotations.items, annotations.classes, posterior.argmax(axis=1), posterior
    )
    return evaluate(summary, drawn.truths, resamples=0).scores["accuracy"].value


def over_seeds(table: str, seeds: int) -> Iterator[list[Any]]:
    """Yield a row for every method, and one for the ceiling: mean and 95 % interval."""
    drawn = [simulated(table, seed) for seed in range(seeds)]
    for method in aggregators:
        yield [method, *_interval([accuracy(one, method) for one in drawn])]
    yield ["(true matrices known)", *_interval([ceiling(one) for one in drawn])]


def _interval(values: list[float | None]) -> list[Any]:
    known = np.array([value for value in values if value is not None])
    if len(known) < 2:
        return [float(known.mean()) if len(known) else None, None, len(known)]
    half = stats.t.ppf(0.975, len(known) - 1) * known.std(ddof=1) / np.sqrt(len(known))
    mean = known.mean()
    return [f"{mean:.4f}", f"{mean - half:.4f} to {mean + half:.4f}", len(known)]


def against_print() -> Iterator[list[Any]]:
    """Yield what was published beside what seed 0 gives here."""
    for table, (_, _, printed) in PUBLISHED.items():
        drawn = simulated(table, 0)
        for method, value in printed.items():
            score = "accuracy" if method == "MV" else "accuracy_as_labelled"
            found = accuracy(drawn, method, score)
            summary = "not here" if found is None else f"{found:.4f}"
            yield [table, method, f"{value:.3f}", summary]


def gold_rows() -> Iterator[list[Any]]:
    """Yield accuracies and the log-likelihood of Dawid-Skene for every real data set."""
    for name, likelihood in GOLD.items():
        folder = DATA / name
        if not (folder / "truth.csv.gz").exists():
            yield [name, "missing", None, None, None, None]
            continue
        annotations = read(folder / "answers.csv.gz")
        truth = read_truth(folder / "truth.csv.gz")
        fits = [aggregate(annotations, method) for method in ("majority", CONVERGED)]
        found = [evaluate(fit, truth, resamples=0) for fit in fits]
        right = [f"{one.scores['accuracy'].value:.4f}" for one in found]
        here = f"{fits[1].trace[-1]:.3f}"
        known = None if likelihood is None else f"{likelihood:.3f}"
        yield [name, found[0].n_scored, *right, here, known]


def main() -> None:
    """Measure and write the section."""
    summary = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    summary.add_argument("--seeds", type=int, default=50)
    given = summary.parse_args()
    section = Section("recovery", "recovery")
    for table in PUBLISHED:
        section.add(
            Table(
                f"Table {table}, {given.seeds} seeds",
                ["method", "accuracy", "95 % interval of the mean", "seeds"],
                list(over_seeds(table, given.seeds)),
                "Ties count as their expectation.",
            )
        )
    section.add(
        Table(
            "Seed 0 beside the printed tables",
            ["table", "method", "printed", "here"],
            list(against_print()),
            "The printed MV is one draw of random ties; here is the expectation over them.",
        )
    )
    if DATA.is_dir():
        columns = ["data", "gold items", "majority", "dawid-skene"]
        columns += ["log-likelihood", "as found elsewhere"]
        note = "Accuracy, ties as their expectation; Dawid-Skene without smoothing, converged. "
        note += "METHODS.md has all methods on these sets, with intervals."
        section.add(Table("Dawid-Skene on real data with gold", columns, list(gold_rows()), note))
    else:
        print("real data are left out: there is no shared/data beside the repository")
    section.write()


if __name__ == "__main__":
    main()
