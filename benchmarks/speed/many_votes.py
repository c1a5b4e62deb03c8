"""What very many votes on an item do to a posterior: `python benchmarks/run.py speed many_votes`.

Products of a thousand probabilities can be zero in floating point. A few items get the votes of all
annotators; shown is what every library makes of them, and how many of its posteriors are broken.
"""

from __future__ import annotations

import argparse
from typing import Any

import numpy as np

from crowds import load, stored
from measure import Found, fresh
from peers import LIBRARIES, prepare, version_of
from speed import OURS, ours

_CROWDS = ("20 × 1000", "100 × 1000", "20 × 100000")  # items × votes on each
_METHODS = ("dawid-skene", "glad", "mace")  # those that multiply probabilities


def posteriors(library: str, method: str, crowd: str) -> Found:
    """Return the first item's posterior, how many are broken, and how right the labels are."""
    annotations, truth = load(crowd)
    prepared = (
        ours(method, annotations) if library == OURS else prepare(library, method, annotations)
    )
    label, posterior = prepared.read(prepared.fit(10))
    assert posterior is not None
    bad = ~np.isfinite(posterior).all(axis=1)
    zero = (posterior == 0).all(axis=1)
    return {
        "first": " ".join(f"{posterior:.3g}" for posterior in posterior[0]),
        "nan": int(bad.sum()),
        "zero": int(zero.sum()),
        "accuracy": float((label == truth).mean()),
    }


def main() -> None:
    """Measure and write the section."""
    from dissensus import aggregators
    from pages import Section, Table

    summary = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    summary.add_argument("--limit", type=float, default=120, help="seconds that a fit gets")
    given = summary.parse_args()
    rows: list[list[Any]] = []
    for crowd in _CROWDS:
        for method in (name for name in _METHODS if name in aggregators.table):
            peers = [library for library, methods in LIBRARIES.items() if method in methods]
            for library in [OURS, *peers]:
                if library != OURS and version_of(library) is None:
                    rows.append([method, crowd, library, "not installed", None, None, None])
                    continue
                job = {"library": library, "method": method, "crowd": stored(crowd)}
                found = fresh("many_votes:posteriors", limit=given.limit, **job)
                cells = [found.get(name) for name in ("nan", "zero", "accuracy")]
                first = found.get("first") or found["failed"]
                rows.append([method, crowd, library, first, *cells])
    columns = ["method", "items × votes", "library", "posterior of the first item"]
    columns += ["NaN rows", "zero rows", "accuracy"]
    section = Section("many votes", "performance")
    section.add(Table("Many votes on an item, ten rounds", columns, rows))
    section.write()


if __name__ == "__main__":
    main()
