"""Held-out likelihood and bootstrap intervals, which need no truth and work for any method.

Annotations are split into random folds. A method is fitted without one fold and predicts the labels
in it: the posterior of every class times P(label | class) of the annotator. Methods without a model
of annotators (votes) get one: confusion matrices counted from their own posterior, with four
pseudo-counts, seven tenths of them on the diagonal. One percent goes to a uniform guess, which
bounds the loss of a single annotation. Annotations whose item has no other label are not scored.
The folds depend on the seed and on what annotations are connected with, not on names or the order
of rows (`content_folds`).

In the bootstrap, items are resampled with replacement. Every fit starts from the fit to all items,
learns the parameters of annotators from the resampled items, and then labels all items. So
intervals cover the uncertainty about annotators; the labels on an item itself stay as they are.

    B. Efron. Bootstrap methods: another look at the jackknife. Annals of Statistics 7(1), 1979.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..answers import KINDS
from ..answers.annotations import Annotations
from ..answers.numbers import Numbers
from ..answers.selections import content_folds
from ..base.arrays import Floats, Integers
from ..base.engine import Local
from ..base.probability import label_temperature, normalize, temper
from ..base.storage import as_rows
from ..dispatch import by_kind
from ..errors import OptionError
from ..formats import as_answers
from ..params import describe_fields
from ..result import Result, Table
from . import as_method
from .aggregation import ClassAggregation
from .classes import ClassMethod
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
    methods: Sequence[ClassMethod],
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
    progress = progress or (lambda _n_done, _total: None)
    probability = np.zeros((len(methods), len(annotations)))
    scored = np.zeros(len(annotations), dtype=bool)
    trains = [annotations.keep(fold != number) for number in range(folds)]
    tests = []
    for number, train in enumerate(trains):
        rows = np.flatnonzero(fold == number)
        rows = rows[train.labels_per_item[annotations.item[rows]] > 0]
        scored[rows] = True
        tests.append(rows)
    jobs = [(position, number) for position in range(len(methods)) for number in range(folds)]

    def work(job: tuple[int, int]) -> None:
        position, number = job
        method = stopped_early(methods[position])
        result = method.fit(trains[number], engine=Local(1))
        rows = tests[number]
        if scale is not None:
            temperature = label_temperature(trains[number].labels_per_item, scale)
            result = replace(result, posterior=temper(result.posterior, temperature))
        probability[position, rows] = predicted_probability(method, result, annotations, rows)

    cores = Local(threads).cores
    with ThreadPoolExecutor(cores) as pool:
        for n_done, _ in enumerate(pool.map(work, jobs), 1):
            progress(n_done, len(jobs))
    return HeldOut(np.flatnonzero(scored), probability[:, scored])


def stopped_early(method: ClassMethod) -> ClassMethod:
    """Return a method with fewer iterations: its predictions hardly change after that."""
    fields = {field.name for field in describe_fields(type(method))}
    limits: dict[str, Any] = {}
    if "max_iter" in fields:
        limits["max_iter"] = min(method.max_iter, _MAX_ITER)  # type: ignore[attr-defined]
    if "tol" in fields:
        limits["tol"] = max(method.tol, _TOL)  # type: ignore[attr-defined]
    return replace(method, **limits)


def predicted_probability(
    method: ClassMethod, result: ClassAggregation, annotations: Annotations, rows: Integers
) -> Floats:
    """Return the probability of annotations under a result that has not seen them."""
    item, annotator, label = (
        annotations.item[rows],
        annotations.annotator[rows],
        annotations.label[rows],
    )
    items_differ = type(method).label_probabilities is not ClassMethod.label_probabilities
    confusion = None if items_differ else method.confusion(result.params)
    if confusion is None and not items_differ:
        confusion = confusion_from_posterior(result.answers, result.posterior)
    out = np.empty(len(rows))
    step = max(1, _PIECE // annotations.n_classes**2)
    for start in range(0, len(rows), step):
        piece = slice(start, start + step)
        posterior = result.posterior[item[piece]]  # (annotation, true class)
        if confusion is not None:
            likelihood = confusion[annotator[piece], :, label[piece]]  # (annotation, true class)
        else:
            matrices: Any = method.label_probabilities(result.params, item[piece], annotator[piece])
            likelihood = matrices[np.arange(len(posterior)), :, label[piece]]
        out[piece] = np.einsum("at,at->a", posterior, likelihood)
    return (1 - _GUESS) * out + _GUESS / annotations.n_classes


def confusion_from_posterior(annotations: Annotations, posterior: Floats) -> Floats:
    """Return confusion matrices counted from a posterior, shrunk towards being right."""
    n_classes = annotations.n_classes
    whole = annotations.part(0, annotations.n_items)
    cells = (whole.labels.T @ posterior).reshape(-1, n_classes, n_classes)
    prior = pseudo_counts(_STRENGTH, _ACCURACY, n_classes)
    return normalize((cells + prior).swapaxes(1, 2))  # (annotator, true class, given class)


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Bootstrap(Result):
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

    result: ClassAggregation
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

    @property
    def tables(self) -> Mapping[str, Table]:
        """Annotators and items with their intervals."""
        names = ("quality_low", "quality_high", "rank_low", "rank_high")
        bounds = np.concatenate([self.quality, self.rank], axis=1).T
        return {
            "annotators": {**self.result.annotators, **dict(zip(names, bounds, strict=True))},
            "items": {
                "item": self.result.answers.items,
                "label": self.result.labels,
                "confidence_low": self.confidence[:, 0],
                "confidence_high": self.confidence[:, 1],
                "stability": self.stability,
            },
        }

    def as_dict(self) -> dict[str, Any]:
        """Return the tables as rows, and how the intervals were made."""
        content = {"method": self.result.method, "resamples": self.resamples}
        content |= {"confidence": self.confidence_level}
        return content | {name: as_rows(table) for name, table in self.tables.items()}


@by_kind(read=as_answers)
def bootstrap(
    answers: Any,
    method: str | ClassMethod = "dawid-skene",
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
    raise NotImplementedError


for _kind in KINDS:
    bootstrap.lacking(_kind, "notimpl", "only methods for classes label items that they left out")


@bootstrap.for_kind("numbers")
def bootstrap_numbers(numbers: Numbers, **settings: Any) -> Bootstrap:
    """Return intervals where every number is a class."""
    return bootstrap_classes(numbers.as_classes(), **settings)


@bootstrap.for_kind("classes")
def bootstrap_classes(
    annotations: Annotations,
    method: str | ClassMethod,
    *,
    resamples: int,
    confidence: float,
    seed: int,
    threads: int | None,
    progress: Callable[[int, int], None] | None,
) -> Bootstrap:
    """Return intervals from fits to items drawn with replacement."""
    if resamples < 2:
        raise OptionError(f"resamples = {resamples}, but it must be at least 2")
    if not 0 < confidence < 1:
        raise OptionError(f"confidence = {confidence}, but it must be above 0 and below 1")
    aggregator = as_method(method)
    result = aggregator.fit(annotations, seed=seed)
    seeds = np.random.SeedSequence(seed).spawn(resamples)
    best = np.where(result.label < 0, result.posterior.argmax(axis=1), result.label)

    def work(stream: np.random.SeedSequence) -> tuple[Floats, Floats, Floats]:
        items = np.sort(
            np.random.default_rng(stream).integers(annotations.n_items, size=annotations.n_items)
        )
        drawn = annotations.take(items)
        refit = aggregator.fit(drawn, start=result.posterior[items], seed=seed, engine=Local(1))
        labelled = aggregator.predict(refit, annotations, Local(1))
        quality = np.where(drawn.labels_per_annotator > 0, refit.quality, np.nan)
        posterior = np.take_along_axis(labelled.probabilities, best[:, None], axis=1)[:, 0]
        return quality, posterior, (labelled.label == result.label).astype(float)

    progress = progress or (lambda _n_done, _total: None)
    samples = []
    with ThreadPoolExecutor(Local(threads).cores) as pool:
        for n_done, sample in enumerate(pool.map(work, seeds), 1):
            samples.append(sample)
            progress(n_done, resamples)
    quality, posterior, agreement = (np.stack(values) for values in zip(*samples, strict=True))
    rank: Floats = (-quality).argsort(axis=1).argsort(axis=1).astype(np.float64) + 1
    rank[np.isnan(quality)] = np.nan
    bounds = [(1 - confidence) / 2, (1 + confidence) / 2]
    return Bootstrap(
        result=result,
        quality=_quantiles(quality, bounds),
        rank=_quantiles(rank, bounds),
        confidence=_quantiles(posterior, bounds),
        stability=agreement.mean(axis=0),
        resamples=resamples,
        confidence_level=confidence,
    )


def _quantiles(drawn: Floats, bounds: list[float]) -> Floats:
    """Return the quantiles of every column: (column, 2); NaN where there is nothing."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # a column of nothing but NaN
        return np.nanquantile(drawn, bounds, axis=0).T
