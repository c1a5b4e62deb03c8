"""Bootstrap intervals for any method.

Items are resampled with replacement. Every fit starts from the fit to all items, learns the
parameters of annotators from the resampled items, and then labels all items. So intervals cover the
uncertainty about annotators; the labels on an item itself stay as they are.

    B. Efron. Bootstrap methods: another look at the jackknife. Annals of Statistics 7(1), 1979.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ..base.arrays import Floats
from ..base.tables import Table, Tabular
from . import Aggregator, as_method
from ..answers.annotations import Annotations
from ..base.engine import Local
from ..errors import OptionError
from ..formats import as_annotations
from ..result import Aggregation


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
