"""A comparison of methods by answers left out, for kinds other than classes.

A share of the answers is left out, at least one stays on every item, and methods are compared by
the mean distance of their consensus to the answers left out; of numbers, by the absolute
difference. With a truth they are also scored by the measures of the kind.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ..answers import Answers
from ..answers.numbers import Numbers
from ..base.arrays import Floats
from ..base.names import indices_of
from ..errors import DataError
from ..metrics import Evaluation, evaluate
from ..metrics.answer_scores import joined
from . import aggregate
from .aggregation import NumberAggregation

_SIGNIFICANT = 2.0  # standard errors


class ComparedMethod(NamedTuple):
    """One method of a comparison; what does not belong to its kind of answers is `None`."""

    method: str
    gap: float  # to the best method
    error: float  # standard error of the gap
    tied: bool  # whether the gap is not significant
    seconds: float
    evaluation: Evaluation | None
    held_out: float | None = None  # mean log-likelihood of held-out annotations
    agreement: float | None = None  # fraction of items on which it agrees with most methods
    megabytes: float | None = None
    distance: float | None = None  # mean distance of the consensus to answers left out


def compared_by_distance(
    answers: Any,
    names: Sequence[str],
    *,
    truth: Any,
    gold: Any,
    folds: int,
    seed: int,
    progress: Callable[[int, int], None] | None,
) -> tuple[list[ComparedMethod], int, dict[str, Any]]:
    """Return methods, the closest to answers left out first; how many these are; and the fits."""
    out = _left_out(answers, folds, np.random.default_rng(seed))
    if not out.any():
        raise DataError("no item has two answers, so none can be left out")
    train, test = answers.keep(~out), answers.keep(out)
    distance_by_item: Any = _DISTANCES.get(answers.kind, _distance_by_item)
    results, sums, seconds = {}, [], []
    for position, name in enumerate(names):
        sums.append(distance_by_item(aggregate(train, name, gold=gold, seed=seed), test))
        start = time.perf_counter()
        results[name] = aggregate(answers, name, gold=gold, seed=seed)
        seconds.append(time.perf_counter() - start)
        if progress is not None:
            progress(position + 1, len(names))
    total, count = (np.stack(columns) for columns in zip(*sums, strict=True))
    mean = total.sum(axis=1) / np.maximum(count.sum(axis=1), 1)
    best = int(mean.argmin())
    rows = []
    for code, (name, result) in enumerate(results.items()):
        gap = float(mean[code] - mean[best])
        error = _error(total[code] - total[best], count[code], gap)
        scored = None
        if truth is not None:
            scored = evaluate(result, truth, resamples=200, seed=seed)
        rows.append(
            ComparedMethod(
                method=name,
                distance=float(mean[code]),
                gap=gap,
                error=error,
                tied=code == best or gap <= _SIGNIFICANT * error,
                seconds=seconds[code],
                evaluation=scored,
            )
        )
    return sorted(rows, key=lambda row: row.gap), int(out.sum()), results


def _left_out(answers: Any, folds: int, rng: np.random.Generator) -> npt.NDArray[np.bool_]:
    """Return which answers are left out; the last drawn of every item stays."""
    key = rng.random(len(answers))
    highest = np.zeros(answers.n_items)
    np.maximum.at(highest, answers.item, key)
    return (key < 1 / folds) & (key < highest[answers.item])


def _distance_by_item(result: Any, held: Answers) -> tuple[Floats, Floats]:
    """Return the summed distance of answers left out to the consensus, and their number."""
    pairs, first, second = joined(held, result.truth)
    distance = pairs.distance(first, second)
    item = indices_of(pairs.items, held.items)[pairs.item[first]]
    matched = item >= 0
    return _summed(distance[matched], item[matched], held.n_items)


def _difference_by_item(result: NumberAggregation, held: Numbers) -> tuple[Floats, Floats]:
    """Return the summed difference of numbers left out to the value, and their number."""
    return _summed(np.abs(held.value - result.value[held.item]), held.item, held.n_items)


_DISTANCES = {"numbers": _difference_by_item}


def _summed(distance: Floats, item: Any, n_items: int) -> tuple[Floats, Floats]:
    total = np.bincount(item, distance, minlength=n_items).astype(float)
    return total, np.bincount(item, minlength=n_items).astype(float)


def _error(gap: Floats, count: Floats, mean: float) -> float:
    """Return the standard error of a gap, with items as units."""
    return float(np.sqrt(((gap - mean * count) ** 2).sum()) / max(count.sum(), 1))
