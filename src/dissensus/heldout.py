"""How well methods foresee annotations that they have not seen: a score that needs no truth.

Annotations are dealt to folds. A method is fitted without one fold and asked how probable the
labels in it are: the belief in every class, times the chance that this annotator then says this
label. Methods without a model of annotators (votes) get one: confusion matrices counted from
their own posterior, with four pseudo-counts, seven tenths of them on the diagonal. One in a
hundred is left to a uniform guess, so that a single surprise cannot decide.

Annotations whose item has no other label are left out. The folds depend on the seed and on the
place of an annotation in the sorted relation, not on the order of rows.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ._relation import Floats, Integers
from .aggregation._base import Aggregator, share
from .annotations import Annotations
from .engine import Local
from .params import describe_fields
from .registry import aggregators
from .result import Aggregation

__all__ = ["HeldOut", "brief", "foreseen", "held_out", "mixture_weights"]

_GUESS = 0.01  # what is left to a uniform guess
_STRENGTH, _ACCURACY = 4.0, 0.7  # of the prior behind a vote's confusion matrices
_ROUNDS, _TOLERANCE = 50, 1e-4  # where a fit without a fold ends at the latest
_SETTLED = 1e-5  # a change of weights that changes nothing
_PIECE = 2**22  # cells of chances to hold at a time


@dataclass(frozen=True, eq=False)
class HeldOut:
    """How probable every left-out annotation was to every method.

    Attributes
    ----------
    annotation
        Which annotations were scored, by their place in the relation.
    chance
        How probable each was: (method, annotation).
    """

    annotation: Integers
    chance: Floats


def held_out(
    annotations: Annotations,
    methods: Sequence[Aggregator],
    *,
    folds: int = 5,
    seed: int = 0,
    threads: int | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> HeldOut:
    """Return how well methods foresee left-out annotations.

    Every fit starts anew. To begin where a fit to all annotations ended would be faster, but such
    a start still remembers the labels that are left out.
    """
    fold = np.random.default_rng(seed).integers(folds, size=len(annotations))
    progress = progress or (lambda _done, _total: None)
    chance = np.zeros((len(methods), len(annotations)))
    scored = np.zeros(len(annotations), dtype=bool)
    trains = [annotations.keep(fold != number) for number in range(folds)]
    tests = []
    for number, train in enumerate(trains):
        left = np.flatnonzero(fold == number)
        left = left[train.labels_per_item[annotations.item[left]] > 0]
        scored[left] = True
        tests.append(left)
    jobs = [(position, number) for position in range(len(methods)) for number in range(folds)]

    def work(job: tuple[int, int]) -> None:
        position, number = job
        method = brief(methods[position])
        result = method.fit(trains[number], engine=Local(1))
        left = tests[number]
        chance[position, left] = foreseen(method, result, annotations, left)

    cores = Local(threads).cores
    with ThreadPoolExecutor(cores) as pool:
        for done, _ in enumerate(pool.map(work, jobs), 1):
            progress(done, len(jobs))
    return HeldOut(np.flatnonzero(scored), chance[:, scored])


def brief(method: Aggregator) -> Aggregator:
    """Return a method that ends a little earlier: what it foresees hardly changes after that."""
    known = {field.name for field in describe_fields(type(method))}
    shorter: dict[str, Any] = {}
    if "max_iter" in known:
        shorter["max_iter"] = min(method.max_iter, _ROUNDS)  # type: ignore[attr-defined]
    if "tol" in known:
        shorter["tol"] = max(method.tol, _TOLERANCE)  # type: ignore[attr-defined]
    return replace(method, **shorter)


def foreseen(
    method: Aggregator, result: Aggregation, annotations: Annotations, which: Integers
) -> Floats:
    """Return how probable annotations are under a result that has not seen them."""
    item, annotator, label = (
        annotations.item[which],
        annotations.annotator[which],
        annotations.label[which],
    )
    items_differ = type(method).chances is not Aggregator.chances
    confusion = None if items_differ else method.confusion(result.params)
    if confusion is None and not items_differ:
        confusion = counted(result)
    out = np.empty(len(which))
    step = max(1, _PIECE // annotations.n_classes**2)
    for first in range(0, len(which), step):
        now = slice(first, first + step)
        posterior = result.posterior[item[now]]  # (annotation, true class)
        if confusion is not None:
            says = confusion[annotator[now], :, label[now]]  # (annotation, true class)
        else:
            chances: Any = method.chances(result.params, item[now], annotator[now])
            says = chances[np.arange(len(posterior)), :, label[now]]
        out[now] = np.einsum("at,at->a", posterior, says)
    return (1 - _GUESS) * out + _GUESS / annotations.n_classes


def counted(result: Aggregation) -> Floats:
    """Return confusion matrices counted from a posterior, shrunk towards being right."""
    annotations = result.annotations
    n_classes = annotations.n_classes
    whole = annotations.part(0, annotations.n_items)
    given = (whole.labels.T @ result.posterior).reshape(-1, n_classes, n_classes)
    prior = np.full((n_classes, n_classes), _STRENGTH * (1 - _ACCURACY) / max(n_classes - 1, 1))
    np.fill_diagonal(prior, _STRENGTH * _ACCURACY)
    return share(given.swapaxes(1, 2) + prior)  # (annotator, true class, given class)


def mixture_weights(chance: Floats, rounds: int = 300) -> Floats:
    """Return the weights under which a mixture of methods foresees most: (method).

    >>> mixture_weights(np.array([[0.9, 0.8], [0.1, 0.1]])).round(3).tolist()
    [1.0, 0.0]
    """
    weight = np.full(len(chance), 1 / len(chance))
    if chance.shape[1] == 0:
        return weight
    size = chance.shape[1]
    for _ in range(rounds):
        better = weight * (chance @ (1 / (weight @ chance))) / size
        still = np.abs(better - weight).max() < _SETTLED
        weight = better / better.sum()
        if still:
            break
    return weight


def create(methods: Sequence[str | Aggregator]) -> list[Aggregator]:
    """Return methods, made from their specifications where needed."""
    return [aggregators.create(one) if isinstance(one, str) else one for one in methods]
