"""Statistics from shards: intervals for annotators, and agreement.

Intervals are those of the Poisson bootstrap over items. Every item has a Poisson weight with mean
one, drawn within its shard, so that shards need no coordination; for many items that is drawing
with replacement. Each fit starts from the fit to all items.

    A. Chamandy, O. Muralidharan, A. Najmi, S. Naidu. Estimating uncertainty for massive data
    streams. Google technical report, 2012.

Percent agreement, alpha, the kappas of Fleiss and Randolph, Gwet's coefficients and the like depend
on the counts of an item's labels alone. So every shard returns its distinct counts and how often
they occur, and the rest is done as for annotations in memory, with the same result.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, TypeVar

import numpy as np

from ..answers.annotations import Annotations, Floats, Integers, Part
from ..answers.base import Relation
from ..base.engine import Engine
from ..errors import OptionError
from ..method import Fitted
from ..metrics.agreement import USUAL, check_scale, estimated
from ..metrics.agreement_result import Estimate
from ..metrics.coefficients import find_measure
from ..metrics.joint import IntervalKind, JointMeasures, Resampling
from ..metrics.statistics import Votes, WeightsLike
from .fitting import ShardedFit, additive, context_of, given_posteriors
from .shards import ShardedAnnotations

Result = TypeVar("Result")


def quality_intervals(
    fit: ShardedFit,
    *,
    resamples: int = 100,
    confidence: float = 0.95,
    seed: int = 0,
    progress: Callable[[int, int], None] = lambda *_: None,
) -> Floats:
    """Return an interval for the quality of every annotator: (annotator, 2), NaN without labels."""
    if resamples < 2:
        raise OptionError(f"resamples = {resamples}, but it must be at least 2")
    drawn = []
    for number in range(resamples):
        drawn.append(_quality(fit, seed, number))
        progress(number + 1, resamples)
    bounds = [(1 - confidence) / 2, (1 + confidence) / 2]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # annotators without labels
        return np.nanquantile(np.stack(drawn), bounds, axis=0).T


@dataclass(frozen=True)
class _StartFrom:
    """Checkpoints that start a fit from given parameters."""

    params: Any

    def load(self, kind: type | None, attempt: int) -> Fitted:  # noqa: ARG002
        return Fitted(self.params, (), False)

    def save(self, fitted: Fitted, attempt: int) -> None: ...


@dataclass(frozen=True)
class _Resampled:
    """An engine whose parts have every item as often as it was drawn."""

    engine: Engine
    stream: tuple[int, ...]

    def cut(self, annotations: Relation) -> list[tuple[int, int]]:
        return self.engine.cut(annotations)

    def each(self, work: Callable[[Any], Result], parts: Sequence[Any]) -> Iterable[Result]:
        return self.engine.each(partial(_on_resampled, work=work, stream=self.stream), parts)

    def add_up(self, work: Callable[[Any], Result], parts: Sequence[Any]) -> Result:
        return self.engine.add_up(partial(_on_resampled, work=work, stream=self.stream), parts)


def _on_resampled(part: Part, work: Callable[[Part], Result], stream: tuple[int, ...]) -> Result:
    return work(draw(part, stream))


def draw(part: Part, stream: tuple[int, ...]) -> Part:
    """Return a part with every item repeated a Poisson number of times."""
    times = np.random.default_rng([*stream, part.start]).poisson(1.0, part.stop - part.start)
    items = np.repeat(np.arange(len(times)), times)
    size = np.diff(part.index)[items]
    index = np.concatenate([[0], np.cumsum(size)]).astype(np.int64)
    rows = np.repeat(part.index[items] - index[:-1], size) + np.arange(index[-1])
    return replace(
        part,
        start=0,
        stop=len(items),
        index=index,
        annotator=part.annotator[rows],
        label=part.label[rows],
        ones=np.ones(len(rows)),
        gold=None if part.gold is None else part.gold[items],
    )


def _quality(fit: ShardedFit, seed: int, number: int) -> Floats:
    """Return the quality of annotators on resampled items; NaN for those without labels."""
    method, annotations = additive(fit.method), fit.annotations
    engine = _Resampled(fit.engine, (seed, number))
    labels = engine.add_up(_labels, annotations.shards)
    start = _StartFrom(fit.params) if fit.params is not None else None
    params = method.estimate_params(
        context_of(annotations, engine, seed=fit.seed, checkpoints=start)
    ).params
    agreement = np.zeros(annotations.n_annotators)
    if params is None:  # a vote: quality is the agreement with it
        work = partial(given_posteriors, labeller=fit.labeller())
        agreement = engine.add_up(work, annotations.shards) / np.maximum(labels, 1)
    return np.where(labels > 0, method.quality(params, agreement), np.nan)


def _labels(part: Part) -> Floats:
    return part.by_annotator(part.ones)


def agree_shards(
    annotations: ShardedAnnotations,
    engine: Engine,
    measures: Sequence[str] = USUAL,
    *,
    scale: WeightsLike = "auto",
    weights: WeightsLike | None = None,
    resamples: int = 1000,
    confidence: float = 0.95,
    interval: IntervalKind = "percentile",
    seed: int = 0,
) -> tuple[Estimate, ...]:
    """Return the agreement in several measures; parameters as in `agree`."""
    Resampling(resamples, confidence, interval).check()
    coefficients = [find_measure(name) for name in measures]
    for measure in coefficients:
        if measure.by_pairs or measure.name == "conger":
            raise OptionError(
                f"{measure.name} looks at pairs of annotators, so it needs all in memory"
            )
    counts, times = np.zeros((0, annotations.n_classes)), np.zeros(0, dtype=np.int64)
    for patterns, often in engine.each(_patterns, annotations.shards):
        counts, times = _together(np.vstack([counts, patterns]), np.concatenate([times, often]))
    scale = check_scale(scale, annotations.scale)
    zero = np.zeros(1, dtype=np.int64)  # only the classes of these annotations matter
    alike = Annotations.from_codes(
        zero, zero, zero, items=1, annotators=1, classes=annotations.classes
    )
    joint = JointMeasures(
        alike, coefficients, scale=scale, weights=weights, votes=Votes(counts, times)
    )
    settings = Resampling(
        resamples=resamples,
        confidence=confidence,
        interval=interval,
        seed=seed,
        progress=lambda *_: None,
    )
    return estimated([joint], settings)[0]


def _patterns(part: Part) -> tuple[Floats, Integers]:
    """Return the different counts of labels on an item, and how many items have them."""
    return _together(part.votes(), np.ones(part.stop - part.start, dtype=np.int64))


def _together(counts: Floats, times: Integers) -> tuple[Floats, Integers]:
    different, position = np.unique(counts, axis=0, return_inverse=True)
    return different, np.bincount(position, times, minlength=len(different)).astype(np.int64)
