"""Methods side by side, with and without truth, and how much the evidence can carry.

Without truth, methods are compared by how well they foresee annotations that they have not seen
(`heldout`). That is the best such score known, and a weak one: it rewards explaining annotators,
and annotators share errors. So a comparison says which methods cannot be told apart, on which
items they disagree, and what in the data speaks for caution, rather than naming a winner.
"""

from __future__ import annotations

import math
import time
import tracemalloc
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from ._relation import Floats
from .aggregation._base import Aggregator
from .annotations import Annotations
from .diagnosis import warning_signs
from .errors import OptionError
from .heldout import HeldOut, create, held_out
from .metrics import Evaluation, evaluate
from .registry import aggregators
from .result import Aggregation

__all__ = ["Compared", "Comparison", "Contested", "compare"]

# What is compared unless told otherwise.
USUAL = ("majority", "wawa", "dawid-skene", "dawid-skene-map", "bcc", "hierarchical", "mace")

_TOLD_APART = 2.0  # standard errors


class Compared(NamedTuple):
    """One method among others."""

    method: str
    held_out: float  # mean log chance of left-out annotations
    behind: float  # how much less than the best
    error: float  # standard error of that difference
    alike: bool  # cannot be told apart from the best
    agreement: float  # share of items on which it says what most methods say
    seconds: float
    megabytes: float
    evaluation: Evaluation | None


class Contested(NamedTuple):
    """An item on which methods disagree."""

    item: str
    labels: dict[str, list[str]]  # label → the methods that give it


@dataclass(frozen=True, eq=False)
class Comparison:
    """Methods side by side, those that foresee best first.

    Attributes
    ----------
    methods
        One row for every method.
    contested
        Items on which the methods disagree, those with the most even split first.
    n_contested
        How many items these are in all.
    n_scored
        How many left-out annotations the scores rest on.
    signs
        What in the data speaks for caution, a sentence each.
    results
        The fits to all annotations, by method.
    """

    methods: tuple[Compared, ...]
    contested: tuple[Contested, ...]
    n_contested: int
    n_items: int
    n_scored: int
    signs: tuple[str, ...]
    results: Mapping[str, Aggregation]

    @property
    def verdict(self) -> str:
        """What can be concluded, in a sentence."""
        alike = [one.method for one in self.methods if one.alike]
        share = self.n_contested / self.n_items if self.n_items else 0.0
        differ = f"The methods differ on {self.n_contested} items ({share:.1%})"
        if self.n_scored == 0:
            return f"{differ}; no item has two labels, so nothing can be foreseen."
        if len(alike) == 1:
            return f"{differ}; {alike[0]} foresees left-out labels best, which is weak evidence."
        told = f"{', '.join(alike[:-1])} and {alike[-1]}"
        return f"{differ}; {told} cannot be told apart by what they foresee."

    def as_dict(self) -> dict[str, Any]:
        """Return plain dictionaries, lists and numbers, ready for JSON."""
        rows = []
        for one in self.methods:
            row = {k: None if _is_nan(v) else v for k, v in one._asdict().items()}
            row["evaluation"] = one.evaluation and one.evaluation.as_dict()
            rows.append(row)
        return {
            "methods": rows,
            "contested": [one._asdict() for one in self.contested],
            "n_contested": self.n_contested,
            "n_items": self.n_items,
            "n_scored": self.n_scored,
            "signs": list(self.signs),
            "verdict": self.verdict,
        }


def compare(
    annotations: Annotations,
    methods: Sequence[str | Aggregator] = ("majority", "dawid-skene"),
    *,
    truth: Mapping[Any, Any] | None = None,
    gold: Mapping[Any, Any] | None = None,
    folds: int = 5,
    seeds: int = 1,
    seed: int = 0,
    most: int = 10,
    progress: Callable[[int, int], None] | None = None,
) -> Comparison:
    """Fit methods to the same annotations and lay them side by side.

    Parameters
    ----------
    annotations
        The annotations.
    methods
        Methods, or their specifications.
    truth
        Known classes, `{item: class}`, to score the labels with. No method sees them.
    gold
        Known classes that methods may use.
    folds
        Into how many folds annotations are dealt.
    seeds
        How often they are dealt anew; every deal is scored.
    seed
        Decides folds, ties and random starts.
    most
        How many contested items to name.
    progress
        Called with the fits that are done and how many there are.

    Examples
    --------
    >>> from dissensus import demo
    >>> found = compare(demo()[0], ["majority", "dawid-skene"])
    >>> sorted(row.method for row in found.methods)
    ['dawid-skene', 'majority']
    """
    for name, value, least in (("folds", folds, 2), ("seeds", seeds, 1)):
        if value < least:
            raise OptionError(f"{name} = {value}, but it must be at least {least}")
    chosen = create(methods)
    names = [aggregators.describe(method) for method in chosen]
    if len(set(names)) < len(names):
        raise OptionError("a method is named twice; name every method once")
    fits = [_timed(method, annotations, gold, seed) for method in chosen]
    results = [fit.result for fit in fits]
    left = _repeated(annotations, chosen, folds, range(seed, seed + seeds), progress)
    score, behind, error = _standing(annotations, left)
    labels = np.stack([result.label for result in results])  # (method, item)
    common = _most_common(labels, annotations.n_classes)
    rows = [
        Compared(
            name,
            score[position],
            behind[position],
            error[position],
            bool(behind[position] <= _TOLD_APART * error[position]),
            float((labels[position] == common).mean()) if annotations.n_items else math.nan,
            fits[position].seconds,
            fits[position].megabytes,
            None if truth is None else evaluate(results[position], truth, seed=seed),
        )
        for position, name in enumerate(names)
    ]
    contested = np.flatnonzero((labels != labels[0]).any(axis=0))
    return Comparison(
        tuple(sorted(rows, key=lambda row: row.behind)),
        _contested(annotations, names, labels, contested, most),
        len(contested),
        annotations.n_items,
        len(left.annotation),
        tuple(warning_signs(annotations)),
        dict(zip(names, results, strict=True)),
    )


def _repeated(
    annotations: Annotations,
    methods: list[Aggregator],
    folds: int,
    seeds: range,
    progress: Callable[[int, int], None] | None,
) -> HeldOut:
    """Return the likelihood of held-out annotations over several random splits."""
    size = len(methods) * folds
    found = []
    for repeat, seed in enumerate(seeds):

        def advance(done: int, _total: int, before: int = repeat * size) -> None:
            if progress is not None:
                progress(before + done, size * len(seeds))

        found.append(held_out(annotations, methods, folds=folds, seed=seed, progress=advance))
    return HeldOut(
        np.concatenate([one.annotation for one in found]),
        np.concatenate([one.chance for one in found], axis=1),
    )


class _Timed(NamedTuple):
    result: Aggregation
    seconds: float
    megabytes: float


def _timed(method: Aggregator, annotations: Annotations, gold: Any, seed: int) -> _Timed:
    tracemalloc.start()
    try:
        began = time.perf_counter()
        result = method.fit(annotations, gold=gold, seed=seed)
        seconds = time.perf_counter() - began
        return _Timed(result, seconds, tracemalloc.get_traced_memory()[1] / 2**20)
    finally:
        tracemalloc.stop()


def _standing(
    annotations: Annotations, left: HeldOut
) -> tuple[list[float], list[float], list[float]]:
    """Return mean log chance, distance to the best, and its standard error, of every method.

    Labels on one item are not independent, so errors are those of sums over items.
    """
    n_methods, n_scored = left.chance.shape
    if n_scored == 0:
        nothing = [math.nan] * n_methods
        return nothing, [0.0] * n_methods, [math.inf] * n_methods
    log = np.log(left.chance)  # (method, annotation)
    mean = log.mean(axis=1)
    gap = log[mean.argmax()] - log
    item = annotations.item[left.annotation]
    error = []
    for one in gap:
        excess = np.bincount(item, one - one.mean(), minlength=annotations.n_items)
        error.append(float(np.sqrt((excess**2).sum()) / n_scored))
    return mean.tolist(), gap.mean(axis=1).tolist(), error


def _most_common(labels: Any, n_classes: int) -> Any:
    """Return the label that most methods give to every item."""
    votes: Floats = np.zeros((labels.shape[1], n_classes + 1))
    for row in labels:
        votes[np.arange(len(row)), row] += 1  # undecided, -1, is the last column
    best = votes.argmax(axis=1)
    return np.where(best == n_classes, -1, best)


def _contested(
    annotations: Annotations, names: list[str], labels: Any, which: Any, most: int
) -> tuple[Contested, ...]:
    out = []
    for item in which.tolist():
        given: dict[str, list[str]] = {}
        for name, label in zip(names, labels[:, item].tolist(), strict=True):
            given.setdefault("undecided" if label < 0 else annotations.classes[label], []).append(
                name
            )
        out.append(Contested(annotations.items[item], given))
    out.sort(key=lambda one: max(len(group) for group in one.labels.values()))
    return tuple(out[:most])


def _is_nan(value: Any) -> bool:
    return isinstance(value, float) and not math.isfinite(value)
