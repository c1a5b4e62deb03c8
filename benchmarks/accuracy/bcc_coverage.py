"""How often the intervals of bcc hold the truth: `python benchmarks/run.py accuracy bcc_coverage`.

Crowds are drawn from bcc's own prior, so that a level of 95 % should be met; then from crowds that
the prior does not expect. Entries of confusion matrices, the quality of annotators, and the sets
of classes that hold an item's truth are counted.
"""

from __future__ import annotations

import argparse
from typing import Any

import numpy as np

from crowds import OUT
from dissensus import Annotations, aggregate
from dissensus.aggregation.dawid_skene import pseudo_counts
from pages import Table

# What the annotators' rows are drawn around: strength and accuracy of a Dirichlet.
CROWDS = {"as the prior expects": (4.0, 0.7), "better": (20.0, 0.85), "worse": (4.0, 0.5)}


def drawn(
    rng: np.random.Generator, crowd: str, n_items: int, n_annotators: int, n_classes: int
) -> tuple[Any, Any, Any, Annotations]:
    """Return prior, confusion (annotator, true, given), truth, and the annotations."""
    base = pseudo_counts(*CROWDS[crowd], n_classes)  # (given class, true class), symmetric
    rows = rng.standard_gamma(base, size=(n_annotators, n_classes, n_classes))
    confusion = rows / rows.sum(axis=2, keepdims=True)
    prior = rng.dirichlet(np.ones(n_classes))
    truth = rng.choice(n_classes, n_items, p=prior)
    upto = confusion[np.arange(n_annotators), truth[:, None]].cumsum(axis=2)
    labels = (rng.random((n_items, n_annotators, 1)) < upto).argmax(axis=2)
    annotations = Annotations.from_matrix(labels, classes=range(n_classes))
    return prior, confusion, truth, annotations


def covered(crowd: str, n_items: int, runs: int, level: float, **sizes: int) -> list[float]:
    """Return how often entries, qualities and truths are inside, and how wide it is there."""
    found = []
    for seed in range(runs):
        rng = np.random.default_rng(seed)
        prior, confusion, truth, annotations = drawn(rng, crowd, n_items, **sizes)
        result = aggregate(annotations, "bcc")
        low, high = np.moveaxis(result.params.credible(level), -1, 0)
        quality = np.einsum("t,att->a", prior, confusion)
        least, most = result.interval.T  # at 95 %
        inside = result.credible_set(level)
        found.append(
            [
                np.mean((low <= confusion) & (confusion <= high)),
                np.mean((least <= quality) & (quality <= most)),
                np.mean(most - least),
                np.mean(inside[np.arange(n_items), truth]),
                np.mean(inside.sum(axis=1)),
            ]
        )
    return np.mean(found, axis=0).tolist()


def main() -> None:
    """Measure and write the section."""
    summary = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    summary.add_argument("--runs", type=int, default=200)
    given = summary.parse_args()
    rows = [
        [crowd, n_items, *(f"{value:.3f}" for value in found)]
        for crowd in CROWDS
        for n_items in (30, 100, 300)
        for found in [covered(crowd, n_items, given.runs, 0.95, n_annotators=10, n_classes=3)]
    ]
    columns = ["crowd", "items", "entries inside", "qualities inside", "width of quality"]
    columns += ["truths inside", "classes in the set"]
    note = "Ten annotators label every item with one of three classes; intervals at 95 %."
    table = Table(f"Intervals of bcc, {given.runs} runs", columns, rows, note)
    table.show()
    OUT.mkdir(exist_ok=True)
    (OUT / "coverage.md").write_text(table.markdown(), encoding="utf-8")


if __name__ == "__main__":
    main()
