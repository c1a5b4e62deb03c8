"""Peer grading on simulated courses.

Run it with `python benchmarks/run.py accuracy peer_grading` (about three minutes).

Everybody submits one item and grades some of the others; grades of own work are left out for every
method. Courses are drawn by `dissensus.datasets.raters`, which differs in what is varied:
the number of submissions and of graders, biases, how unequal graders are, and how far their
reliability depends on their own grade. Seeds are not those that were looked at while the method was
written. Differences from the mean are paired by course; intervals are Student's, 95 %.
"""

from __future__ import annotations

import argparse
from typing import Any

import numpy as np
from scipy.stats import spearmanr, t

from dissensus import aggregate, simulate
from pages import Section, Table

METHODS = ("mean", "median", "gaussian", "gaussian[rate=within]", "PG1", "peer-grading")
COURSES = {  # strategy, submissions, grades for each (own ones are left out)
    "as a rule": ("peer-grading", 150, 5),
    "few graders": ("peer-grading", 150, 3),
    "small": ("peer-grading", 40, 5),
    "reliability not tied": ("peer-grading[slope=0]", 150, 5),
    "closely tied": ("peer-grading[slope=1]", 150, 5),
    "reversed tie": ("peer-grading[slope=-0.5]", 150, 5),
    "equal graders": ("peer-grading[slope=0,evenness=1000]", 150, 5),
    "no biases": ("peer-grading[bias=0]", 150, 5),
    "large biases": ("peer-grading[bias=8]", 150, 5),
}
FIRST = 1000  # seed


def measured(strategy: str, size: int, graders: int, seed: int) -> dict[str, tuple[float, float]]:
    """Return rank correlation with the true grades and root mean square error, by method."""
    drawn = simulate(strategy, n_items=size, n_annotators=size, feedback=graders, seed=seed)
    authors = {str(item): str(who) for item, who in enumerate(drawn.extras["authors"])}
    out = {}
    for method in METHODS:
        value = aggregate(drawn.annotations, method, authors=authors).value
        known = ~np.isnan(value)
        value, truth = value[known], drawn.truth[known]
        error = float(np.sqrt(np.mean((value - truth) ** 2)))
        out[method] = (float(spearmanr(value, truth).statistic), error)
    return out


def difference(one: Any, other: Any) -> str:
    """Return the mean of paired differences with its interval."""
    apart = np.asarray(one) - np.asarray(other)
    half = t.ppf(0.975, len(apart) - 1) * apart.std(ddof=1) / len(apart) ** 0.5
    return f"{apart.mean():+.3f} ± {half:.3f}"


def main() -> None:
    """Simulate, and write the page."""
    options = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    options.add_argument("--seeds", type=int, default=12)
    seeds = options.parse_args().seeds
    section, rows, errors = Section("peer grading", "peer_grading"), [], []
    for name, (strategy, size, graders) in COURSES.items():
        runs = [measured(strategy, size, graders, FIRST + seed) for seed in range(seeds)]
        rank, error = (
            {method: [run[method][which] for run in runs] for method in METHODS} for which in (0, 1)
        )
        rows.append(
            [name, size, graders]
            + [f"{np.mean(rank[method]):.3f}" for method in METHODS]
            + [difference(rank["peer-grading"], rank[other]) for other in ("mean", "PG1")]
        )
        errors.append([name, *(f"{np.mean(error[method]):.2f}" for method in METHODS)])
        print(*rows[-1], sep=" | ", flush=True)
    columns = ["course", "submissions", "grades for each", *METHODS, "against mean", "against PG1"]
    note = f"{seeds} courses each; Spearman's correlation of inferred and true grades."
    section.add(Table("Rank correlation with the true grades", columns, rows, note))
    note = "True grades have a standard deviation of 10."
    section.add(Table("Root mean square error", ["course", *METHODS], errors, note))
    section.write()


if __name__ == "__main__":
    main()
