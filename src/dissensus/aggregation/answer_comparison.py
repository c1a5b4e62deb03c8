"""A comparison of methods for answers of other kinds than classes and numbers.

A share of the answers is left out, at least one stays on every item, and methods are compared by
the mean distance of their consensus to the answers left out. With a truth they are also scored by
the measures of the kind.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ..answers import Answers
from ..base.arrays import Floats
from ..base.names import indices_of
from ..base.storage import as_plain
from ..errors import DataError, Note, OptionError
from ..metrics import Evaluation, evaluate
from ..metrics.answer_scores import joined
from ..registry import methods as methods_of_kind
from . import aggregate

_SIGNIFICANT = 2.0  # standard errors
_COMMON: dict[str, tuple[str, ...]] = {
    "spans": ("dawid-skene", "majority"),
    "boxes": ("dawid-skene", "majority"),
    "points": ("majority",),
    "sets": ("majority",),
}


class ComparedConsensus(NamedTuple):
    """One method of a comparison."""

    method: str
    distance: float  # mean distance of the consensus to answers left out
    gap: float  # to the best method
    error: float  # standard error of the gap
    tied: bool  # whether the gap is not significant
    seconds: float
    evaluation: Evaluation | None


@dataclass(frozen=True)
class AnswerComparison:
    """Methods, the closest to the answers left out first."""

    kind: str
    methods: tuple[ComparedConsensus, ...]
    n_left_out: int
    share: float

    @property
    def verdict(self) -> str:
        """Which methods are closest, in a sentence."""
        tied = [row.method for row in self.methods if row.tied]
        if len(tied) == 1:
            return f"{tied[0]} is closest to the answers left out."
        return f"{', '.join(tied)} cannot be distinguished by the answers left out."

    @property
    def caution(self) -> str:
        """What to know before choosing by answers left out; empty where nothing is."""
        if self.kind not in ("spans", "boxes", "points", "sets"):
            return ""
        return Note(
            "answers left out miss what annotators miss, so a method that finds more than they do "
            "looks farther away",
            remedy="choose by known answers ({}) where there are any.",
            truth=...,
        )

    def as_dict(self) -> dict[str, Any]:
        """Return plain dictionaries and numbers, ready for JSON."""
        return as_plain(self) | {"verdict": self.verdict, "caution": self.caution}


def default_methods(answers: Answers) -> tuple[str, ...]:
    """Return the methods of a kind, and common aggregators where it reduces to classes."""
    own = [name for name in methods_of_kind[answers.kind] if name != "sequence"]
    return (*own, *_COMMON.get(answers.kind, ()))


def compare_on_answers(
    answers: Answers,
    methods: Sequence[str] | None = None,
    *,
    truth: Any = None,
    gold: Any = None,
    folds: int = 5,
    seed: int = 0,
    progress: Callable[[int, int], None] | None = None,
) -> AnswerComparison:
    """Fit methods to the same answers and compare them.

    Parameters
    ----------
    answers
        The answers.
    methods
        Specifications of methods; by default those of the kind.
    truth
        Known answers to score with, or scores of things. No method sees them.
    gold
        Known answers that methods may use.
    folds
        One answer in so many is left out.
    seed
        Random seed.
    """
    if folds < 2:
        raise OptionError(f"folds = {folds}, but it must be at least 2")
    names = list(methods or default_methods(answers))
    if len(set(names)) < len(names):
        raise OptionError("a method is named twice; name every method once")
    for name in names:
        methods_of_kind[answers.kind].create(name)  # before anything is fitted
    out = _left_out(answers, folds, np.random.default_rng(seed))
    if not out.any():
        raise DataError("no item has two answers, so none can be left out")
    train, test = answers.keep(~out), answers.keep(out)
    sums, seconds = [], []
    evaluations: dict[str, Evaluation] = {}
    for position, name in enumerate(names):
        trained = aggregate(train, name, gold=gold, seed=seed)
        sums.append(_distance_by_item(trained.truth, test))
        start = time.perf_counter()
        whole = aggregate(answers, name, gold=gold, seed=seed)
        seconds.append(time.perf_counter() - start)
        if truth is not None:
            evaluations[name] = evaluate(whole, truth, resamples=200, seed=seed)
        if progress is not None:
            progress(position + 1, len(names))
    total, count = (np.stack(columns) for columns in zip(*sums, strict=True))
    mean = total.sum(axis=1) / np.maximum(count.sum(axis=1), 1)
    best = int(mean.argmin())
    rows = []
    for code, name in enumerate(names):
        gap = float(mean[code] - mean[best])
        error = _error(total[code] - total[best], count[code], gap)
        tied = code == best or gap <= _SIGNIFICANT * error
        rows.append(
            ComparedConsensus(
                method=name,
                distance=float(mean[code]),
                gap=gap,
                error=error,
                tied=tied,
                seconds=seconds[code],
                evaluation=evaluations.get(name),
            )
        )
    rows.sort(key=lambda row: row.distance)
    return AnswerComparison(answers.kind, tuple(rows), int(out.sum()), 1 / folds)


def _left_out(answers: Answers, folds: int, rng: np.random.Generator) -> npt.NDArray[np.bool_]:
    """Return which answers are left out; the last drawn of every item stays."""
    key = rng.random(len(answers))
    highest = np.zeros(answers.n_items)
    np.maximum.at(highest, answers.item, key)
    return (key < 1 / folds) & (key < highest[answers.item])


def _distance_by_item(agreed: Answers, held: Answers) -> tuple[Floats, Floats]:
    """Return the summed distance of answers left out to the consensus, and their number."""
    pairs, first, second = joined(held, agreed)
    distance = pairs.distance(first, second)
    item = indices_of(pairs.items, held.items)[pairs.item[first]]
    matched = item >= 0
    n = held.n_items
    total = np.bincount(item[matched], distance[matched], minlength=n).astype(float)
    return total, np.bincount(item[matched], minlength=n).astype(float)


def _error(gap: Floats, count: Floats, mean: float) -> float:
    """Return the standard error of a gap, with items as units."""
    return float(np.sqrt(((gap - mean * count) ** 2).sum()) / max(count.sum(), 1))
