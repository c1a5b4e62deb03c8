"""What `auto` is worth, on all gold sets: `python benchmarks/choosing.py`.

For every data set with gold in `../shared/data`: the accuracy of each method and of stacks, in
expectation over ties. No recipe sees the truth. The pool and the way of pooling were chosen with
these 23 sets in view, so differences of a few tenths between recipes are noise.
"""

from __future__ import annotations

import argparse
import time
from concurrent.futures import ProcessPoolExecutor
from typing import Any

import numpy as np

from dissensus import Annotations, aggregators, evaluate
from dissensus.aggregation.auto import MEMBERS, pooled
from dissensus.heldout import held_out, mixture_weights
from dissensus.result import Predictions
from gold_sets import SETS, load
from pages import Section, Table

# Scored beside the stack's members, but not in it.
OTHERS = ("majority", "wawa", "dawid-skene", "dawid-skene-map", "one-coin", "glad")
LARGE = 40_000  # annotations from which three folds are enough


def study(name: str) -> dict[str, Any]:
    """Return accuracies of methods and stacks on one data set."""
    annotations, truth = load(name)
    members = [aggregators.create(spec) for spec in MEMBERS]
    others = [aggregators.create(spec) for spec in OTHERS]
    began = time.perf_counter()
    posteriors = [member.fit(annotations).posterior for member in members]
    left = held_out(annotations, members, folds=3 if len(annotations) > LARGE else 5, threads=1)
    weight = mixture_weights(left.probability)
    seconds = time.perf_counter() - began
    beside = [other.fit(annotations).posterior for other in others]
    picked = int(np.log(left.probability).mean(axis=1).argmax())
    linear = sum(w * q for w, q in zip(weight, posteriors, strict=True))
    return {
        "set": name,
        "labels": len(annotations),
        "seconds": seconds,
        "accuracy": [score(annotations, one, truth) for one in (*posteriors, *beside)],
        "weight": weight.tolist(),
        "stack": score(annotations, pooled(weight, posteriors), truth),
        "linear": score(annotations, linear, truth),
        "uniform": score(annotations, np.mean(posteriors, axis=0), truth),
        "picked": score(annotations, posteriors[picked], truth),
    }


def score(annotations: Annotations, posterior: Any, truth: dict[str, str]) -> float:
    """Return accuracy in percent, in expectation over ties."""
    given = Predictions(annotations.items, annotations.classes, posterior.argmax(axis=1), posterior)
    found = evaluate(given, truth, resamples=0).scores["accuracy"]
    assert found is not None
    return 100 * found.value


def main() -> None:
    """Run the study and write its page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sets", help="Names with commas; all by default.")
    parser.add_argument("--workers", type=int, default=2)
    given = parser.parse_args()
    names = given.sets.split(",") if given.sets else SETS
    with ProcessPoolExecutor(given.workers) as pool:
        found = list(pool.map(study, names))
    section = Section("choosing", "CHOOSING.md")
    specs = [*MEMBERS, *OTHERS]
    accuracy = np.array([one["accuracy"] for one in found])  # (set, method)
    best = accuracy.max(axis=1)
    recipes = {
        "stack (auto)": np.array([one["stack"] for one in found]),
        "stack, linear": np.array([one["linear"] for one in found]),
        "uniform mean": np.array([one["uniform"] for one in found]),
        "picked by held-out": np.array([one["picked"] for one in found]),
        **{spec: accuracy[:, position] for position, spec in enumerate(specs)},
    }
    floor = recipes["majority"]
    rows = [
        [
            name,
            *(f"{value:.2f}" for value in (values.mean(), (best - values).mean())),
            *(f"{value:.2f}" for value in ((best - values).max(), (values - floor).mean())),
        ]
        for name, values in sorted(recipes.items(), key=lambda item: -item[1].mean())
    ]
    rows.append(
        ["best in hindsight", f"{best.mean():.2f}", "0", "0", f"{(best - floor).mean():.2f}"]
    )
    section.add(
        Table(
            f"Mean over {len(found)} sets, percent",
            ["recipe", "accuracy", "mean regret", "worst loss", "over majority"],
            rows,
            "Regret and loss are to the best method on each set.",
        )
    )
    per_set = [
        [
            *(one["set"], one["labels"], one["stack"], best[row]),
            *(specs[int(accuracy[row].argmax())], floor[row], one["seconds"]),
            _weights_of(specs, one["weight"]),
        ]
        for row, one in enumerate(found)
    ]
    section.add(
        Table(
            "Set by set",
            ["set", "labels", "stack", "best method", "which", "majority", "s", "weights"],
            per_set,
        )
    )
    section.add(
        Table(
            "All methods on all sets, percent",
            ["set", *specs],
            [[one["set"], *one["accuracy"]] for one in found],
        )
    )
    section.write()


def _weights_of(specs: list[str], weight: list[float]) -> str:
    order = np.argsort(weight)[::-1][:3]
    return ", ".join(f"{specs[m]} {weight[m]:.0%}" for m in order)


if __name__ == "__main__":
    main()
