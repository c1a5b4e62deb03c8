"""All verbs that take answers of any kind, an example of every kind, and what is not possible.

*notimpl* could be done, *notyet* cannot with today's parts, *never* makes no sense. Who makes a
cell work deletes its line: a test fails otherwise.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import polars as pl

import dissensus as ds
from dissensus.formats import read_truth

INPUTS = Path(__file__).parents[1] / "golden" / "inputs"
KINDS = ("classes", "numbers", "sets", "rankings", "texts", "spans", "boxes", "points", "masks")


class Lack(NamedTuple):
    """Why a verb does not take a kind, and words of the error that says so."""

    word: str
    message: str


@cache
def example(kind: str) -> Any:
    """Return small answers of a kind; of classes, those of people and models."""
    return ds.read(INPUTS / f"{kind}.csv")


def _truth(kind: str) -> Any:
    path = INPUTS / f"{kind}_truth.csv"
    if kind == "rankings":  # things with their scores, which rank the answers to every question
        scores = dict(pl.read_csv(path).iter_rows())
        best_first = sorted(scores, key=scores.__getitem__, reverse=True)
        return dict.fromkeys(example(kind).items.tolist(), best_first)
    return read_truth(path, kind=kind)


def _written(kind: str, folder: Path) -> Any:
    ds.write(example(kind), folder / "answers.csv")
    return ds.read(folder / "answers.csv")


VERBS: dict[str, Callable[[str, Path], Any]] = {
    "aggregate": lambda kind, folder: ds.aggregate(example(kind)),
    "agree": lambda kind, folder: ds.agree(example(kind), resamples=20),
    "bootstrap": lambda kind, folder: ds.bootstrap(example(kind), "majority", resamples=5),
    "check": lambda kind, folder: ds.check(example(kind)),
    "compare": lambda kind, folder: ds.compare(example(kind)),
    "evaluate": lambda kind, folder: ds.evaluate(ds.aggregate(example(kind)), _truth(kind)),
    "identify": lambda kind, folder: ds.identify(example(kind)),
    "judge": lambda kind, folder: ds.judge(example(kind), models=["Ann"]),
    "plan": lambda kind, folder: ds.plan(example(kind), budget=10),
    "report": lambda kind, folder: ds.report(example(kind)),
    "write": _written,
}
_NO_TABLE = "and classes are needed here"
_ELEMENTS = ("sets", "rankings", "texts", "spans", "boxes", "points", "masks")
LACKS: dict[tuple[str, str], Lack] = {
    **{("bootstrap", kind): Lack("notimpl", "only methods for classes") for kind in _ELEMENTS},
    **{
        ("judge", kind): Lack("notimpl", f"no measure of models on {kind} yet")
        for kind in _ELEMENTS
    },
}
