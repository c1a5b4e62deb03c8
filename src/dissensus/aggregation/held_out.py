"""Held-out likelihood: how well methods predict annotations, a score that needs no truth.

Annotations are split into random folds. A method is fitted without one fold and predicts the labels
in it: the posterior of every class times P(label | class) of the annotator. Methods without a model
of annotators (votes) get one: confusion matrices counted from their own posterior, with four
pseudo-counts, seven tenths of them on the diagonal. One percent goes to a uniform guess, which
bounds the loss of a single annotation.

Annotations whose item has no other label are not scored. The folds depend on the seed and on what
annotations are connected with, not on names or the order of rows (`_content.py`).

Bootstrap intervals for any method.

Items are resampled with replacement. Every fit starts from the fit to all items, learns the
parameters of annotators from the resampled items, and then labels all items. So intervals cover the
uncertainty about annotators; the labels on an item itself stay as they are.

    B. Efron. Bootstrap methods: another look at the jackknife. Annals of Statistics 7(1), 1979.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from ..answers.annotations import Annotations
from ..answers.selections import content_folds
from ..base.arrays import Floats, Integers
from ..base.engine import Local
from ..base.probability import label_temperature, normalize, temper
from ..base.tables import Table, Tabular
from ..errors import OptionError
from ..formats import as_annotations
from ..params import describe_fields
from ..result import Aggregation
from . import Aggregator, as_method
from .dawid_skene import pseudo_counts

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


@dataclass(frozen=True, eq=False, repr=False)
class Bootstrap(Tabular):
    """Bootstrap intervals of a result.

    Attributes
    ----------
    result
        The fit to all items.
    quality
        Interval for every annotator's quality: (annotator, 2), NaN for those without labels.
    rank
        Interval for every annotator's rank by quality, 1 is the best: (annotator, 2).
    confidence
        Interval for the posterior probability of every item's label: (item, 2).
    stability
        Fraction of resamples in which an item got the same label: (item).
    """

    result: Aggregation
    quality: Floats
    rank: Floats
    confidence: Floats
    stability: Floats
    resamples: int
    confidence_level: float

    def __repr__(self) -> str:
        level = f"{self.confidence_level:.0%}"
        return (
            f"<Bootstrap of {self.result.method}: {level} intervals of {self.resamples} resamples>"
        )

    def _table(self) -> Table:
        names = ("quality_low", "quality_high", "rank_low", "rank_high")
        bounds = np.concatenate([self.quality, self.rank], axis=1).T
        return {**self.result.annotators, **dict(zip(names, bounds, strict=True))}


def bootstrap(
    annotations: Annotations | str | Path | Any,
    method: str | Aggregator = "dawid-skene",
    *,
    resamples: int = 200,
    confidence: float = 0.95,
    seed: int = 0,
    threads: int | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Bootstrap:
    """Return intervals for qualities, ranks and confidences.

    Examples
    --------
    >>> from dissensus import demo
    >>> intervals = bootstrap(demo()[0], "dawid-skene", resamples=20)
    >>> intervals.quality.shape, intervals.confidence.shape
    ((40, 2), (500, 2))
    """
    if resamples < 2:
        raise OptionError(f"resamples = {resamples}, but it must be at least 2")
    if not 0 < confidence < 1:
        raise OptionError(f"confidence = {confidence}, but it must be above 0 and below 1")
    annotations = as_annotations(annotations)
    chosen = as_method(method)
    result = chosen.fit(annotations, seed=seed)
    seeds = np.random.SeedSequence(seed).spawn(resamples)
    best = np.where(result.label < 0, result.posterior.argmax(axis=1), result.label)

    def work(stream: np.random.SeedSequence) -> tuple[Floats, Floats, Floats]:
        which = np.sort(
            np.random.default_rng(stream).integers(annotations.n_items, size=annotations.n_items)
        )
        drawn = annotations.take(which)
        again = chosen.fit(drawn, start=result.posterior[which], seed=seed, engine=Local(1))
        labelled = chosen.predict(again, annotations, Local(1))
        quality = np.where(drawn.labels_per_annotator > 0, again.quality, np.nan)
        posterior = np.take_along_axis(labelled.probabilities, best[:, None], axis=1)[:, 0]
        return quality, posterior, (labelled.label == result.label).astype(float)

    progress = progress or (lambda _done, _total: None)
    samples = []
    with ThreadPoolExecutor(Local(threads).cores) as pool:
        for done, one in enumerate(pool.map(work, seeds), 1):
            samples.append(one)
            progress(done, resamples)
    quality, posterior, same = (np.stack(values) for values in zip(*samples, strict=True))
    rank: Floats = (-quality).argsort(axis=1).argsort(axis=1).astype(np.float64) + 1
    rank[np.isnan(quality)] = np.nan
    bounds = [(1 - confidence) / 2, (1 + confidence) / 2]
    return Bootstrap(
        result,
        _quantiles(quality, bounds),
        _quantiles(rank, bounds),
        _quantiles(posterior, bounds),
        same.mean(axis=0),
        resamples,
        confidence,
    )


def _quantiles(drawn: Floats, bounds: list[float]) -> Floats:
    """Return the quantiles of every column: (column, 2); NaN where there is nothing."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # a column of nothing but NaN
        return np.nanquantile(drawn, bounds, axis=0).T
