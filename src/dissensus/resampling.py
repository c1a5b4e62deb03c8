"""Intervals for any method: fit it again to items drawn anew, and see what stays.

Items are drawn with replacement, as many as there are. Every fit begins where the fit to all items
ended, learns the annotators from the items it drew, and then judges all items. What varies is what
is known of the annotators; the labels on an item itself stay as they are.

    B. Efron. Bootstrap methods: another look at the jackknife. Annals of Statistics 7(1), 1979.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np

from ._relation import Floats
from .aggregation._base import Aggregator
from .annotations import Annotations
from .engine import Local
from .errors import OptionError
from .heldout import create
from .result import Aggregation

__all__ = ["Bootstrap", "bootstrap"]


@dataclass(frozen=True, eq=False)
class Bootstrap:
    """How far a result moves when other items had been labelled.

    Attributes
    ----------
    result
        The fit to all items.
    quality
        Interval for every annotator's quality: (annotator, 2), NaN for those without labels.
    rank
        Interval for every annotator's rank by quality, 1 is the best: (annotator, 2).
    confidence
        Interval for the belief in every item's label: (item, 2).
    stability
        How often every item got the same label again: (item).
    """

    result: Aggregation
    quality: Floats
    rank: Floats
    confidence: Floats
    stability: Floats
    resamples: int
    level: float


def bootstrap(
    annotations: Annotations,
    method: str | Aggregator = "dawid-skene",
    *,
    resamples: int = 200,
    level: float = 0.95,
    seed: int = 0,
    threads: int | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Bootstrap:
    """Return intervals for qualities, ranks and confidences.

    Examples
    --------
    >>> from dissensus import demo
    >>> found = bootstrap(demo()[0], "dawid-skene", resamples=20)
    >>> found.quality.shape, found.confidence.shape
    ((40, 2), (500, 2))
    """
    if resamples < 2:
        raise OptionError(f"resamples = {resamples}, but it must be at least 2")
    if not 0 < level < 1:
        raise OptionError(f"level = {level}, but it must be above 0 and below 1")
    chosen = create([method])[0]
    result = chosen.fit(annotations, seed=seed)
    seeds = np.random.SeedSequence(seed).spawn(resamples)
    best = np.where(result.label < 0, result.posterior.argmax(axis=1), result.label)

    def work(stream: np.random.SeedSequence) -> tuple[Floats, Floats, Floats]:
        which = np.sort(
            np.random.default_rng(stream).integers(annotations.n_items, size=annotations.n_items)
        )
        drawn = annotations.take(which)
        again = chosen.fit(drawn, start=result.posterior[which], seed=seed, engine=Local(1))
        judged = chosen.predict(again, annotations, Local(1))
        quality = np.where(drawn.labels_per_annotator > 0, again.quality, np.nan)
        posterior = np.take_along_axis(judged.posterior, best[:, None], axis=1)[:, 0]
        return quality, posterior, (judged.label == result.label).astype(float)

    progress = progress or (lambda _done, _total: None)
    told = []
    with ThreadPoolExecutor(Local(threads).cores) as pool:
        for done, one in enumerate(pool.map(work, seeds), 1):
            told.append(one)
            progress(done, resamples)
    quality, posterior, same = (np.stack(values) for values in zip(*told, strict=True))
    rank: Floats = (-quality).argsort(axis=1).argsort(axis=1).astype(np.float64) + 1
    rank[np.isnan(quality)] = np.nan
    bounds = [(1 - level) / 2, (1 + level) / 2]
    return Bootstrap(
        result,
        _between(quality, bounds),
        _between(rank, bounds),
        _between(posterior, bounds),
        same.mean(axis=0),
        resamples,
        level,
    )


def _between(drawn: Floats, bounds: list[float]) -> Floats:
    """Return the quantiles of every column: (column, 2); NaN where there is nothing."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # a column of nothing but NaN
        return np.nanquantile(drawn, bounds, axis=0).T
