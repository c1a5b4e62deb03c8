"""Held-out likelihood: how well methods predict annotations, a score that needs no truth.

Annotations are split into random folds. A method is fitted without one fold and predicts the labels
in it: the posterior of every class times P(label | class) of the annotator. Methods without a model
of annotators (votes) get one: confusion matrices counted from their own posterior, with four
pseudo-counts, seven tenths of them on the diagonal. One percent goes to a uniform guess, which
bounds the loss of a single annotation.

Annotations whose item has no other label are not scored. The folds depend on the seed and on what
annotations are connected with, not on names or the order of rows (`_content.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..answers.content import content_folds
from ..base.probability import normalize
from ..base.arrays import Floats, Integers
from . import Aggregator
from .dawid_skene_map import pseudo_counts
from ..answers.annotations import Annotations
from ..base.calibration import label_temperature, temper
from ..base.engine import Local
from ..params import describe_fields
from ..result import Aggregation

_GUESS = 0.01  # weight of a uniform guess
_STRENGTH, _ACCURACY = 4.0, 0.7  # of the prior behind a vote's confusion matrices
_MAX_ITER, _TOL = 50, 1e-4  # of a fit without a fold
_PIECE = 2**22  # probabilities in memory at a time


@dataclass(frozen=True, eq=False)
class HeldOut:
    """The predicted probability of held-out annotations.

    Attributes
    ----------
    annotation
        The scored annotations, by their index in the relation.
    probability
        Their predicted probability: (method, annotation).
    """

    annotation: Integers
    probability: Floats


def held_out(
    annotations: Annotations,
    methods: Sequence[Aggregator],
    *,
    folds: int = 5,
    seed: int = 0,
    threads: int | None = None,
    progress: Callable[[int, int], None] | None = None,
    scale: float | None = None,
) -> HeldOut:
    """Return the predicted probability of held-out annotations.

    With a `scale`, posteriors are tempered first (see `calibration`).
    Every fit starts from the votes: a start from a fit to all annotations would be faster, but it
    has seen the held-out labels.
    """
    fold = content_folds(annotations, folds, seed)
    progress = progress or (lambda _done, _total: None)
    probability = np.zeros((len(methods), len(annotations)))
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
        method = stopped_early(methods[position])
        result = method.fit(trains[number], engine=Local(1))
        left = tests[number]
        if scale is not None:
            temperature = label_temperature(trains[number].labels_per_item, scale)
            result = replace(result, posterior=temper(result.posterior, temperature))
        probability[position, left] = predicted_probability(method, result, annotations, left)

    cores = Local(threads).cores
    with ThreadPoolExecutor(cores) as pool:
        for done, _ in enumerate(pool.map(work, jobs), 1):
            progress(done, len(jobs))
    return HeldOut(np.flatnonzero(scored), probability[:, scored])


def stopped_early(method: Aggregator) -> Aggregator:
    """Return a method with fewer iterations: its predictions hardly change after that."""
    known = {field.name for field in describe_fields(type(method))}
    limits: dict[str, Any] = {}
    if "max_iter" in known:
        limits["max_iter"] = min(method.max_iter, _MAX_ITER)  # type: ignore[attr-defined]
    if "tol" in known:
        limits["tol"] = max(method.tol, _TOL)  # type: ignore[attr-defined]
    return replace(method, **limits)


def predicted_probability(
    method: Aggregator, result: Aggregation, annotations: Annotations, which: Integers
) -> Floats:
    """Return the probability of annotations under a result that has not seen them."""
    item, annotator, label = (
        annotations.item[which],
        annotations.annotator[which],
        annotations.label[which],
    )
    items_differ = type(method).label_probabilities is not Aggregator.label_probabilities
    confusion = None if items_differ else method.confusion(result.params)
    if confusion is None and not items_differ:
        confusion = confusion_from_posterior(result.annotations, result.posterior)
    out = np.empty(len(which))
    step = max(1, _PIECE // annotations.n_classes**2)
    for first in range(0, len(which), step):
        now = slice(first, first + step)
        posterior = result.posterior[item[now]]  # (annotation, true class)
        if confusion is not None:
            given = confusion[annotator[now], :, label[now]]  # (annotation, true class)
        else:
            each: Any = method.label_probabilities(result.params, item[now], annotator[now])
            given = each[np.arange(len(posterior)), :, label[now]]
        out[now] = np.einsum("at,at->a", posterior, given)
    return (1 - _GUESS) * out + _GUESS / annotations.n_classes


def confusion_from_posterior(annotations: Annotations, posterior: Floats) -> Floats:
    """Return confusion matrices counted from a posterior, shrunk towards being right."""
    n_classes = annotations.n_classes
    whole = annotations.part(0, annotations.n_items)
    given = (whole.labels.T @ posterior).reshape(-1, n_classes, n_classes)
    prior = pseudo_counts(_STRENGTH, _ACCURACY, n_classes)
    return normalize((given + prior).swapaxes(1, 2))  # (annotator, true class, given class)
