"""Intervals for annotators from shards: fit again to items drawn anew, wherever they are.

Every item counts as often as a Poisson number with mean one says, drawn for its place, so nothing
has to be agreed between shards; for many items that is drawing with replacement. Each fit begins
where the fit to all items ended.

    A. Chamandy, O. Muralidharan, A. Najmi, S. Naidu. Estimating uncertainty for massive data
    streams. Google technical report, 2012.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar, cast

import numpy as np

from .._relation import Floats
from ..aggregation import FitContext, Fitted
from ..annotations import Annotations, Part
from ..engine import Engine
from ..errors import OptionError
from .fitting import Outcome, additive, judging_of, told_by

__all__ = ["quality_intervals"]

Result = TypeVar("Result")


def quality_intervals(
    outcome: Outcome,
    *,
    resamples: int = 100,
    level: float = 0.95,
    seed: int = 0,
    progress: Callable[[int, int], None] = lambda *_: None,
) -> Floats:
    """Return where the quality of every annotator lies: (annotator, 2), NaN without labels."""
    if resamples < 2:
        raise OptionError(f"resamples = {resamples}, but it must be at least 2")
    drawn = []
    for number in range(resamples):
        drawn.append(_quality(outcome, seed, number))
        progress(number + 1, resamples)
    bounds = [(1 - level) / 2, (1 + level) / 2]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # somebody without any label
        return np.nanquantile(np.stack(drawn), bounds, axis=0).T


@dataclass(frozen=True)
class _Begun:
    """Where a fit begins: what was found before."""

    params: Any

    def load(self, kind: type | None, attempt: int) -> Fitted:  # noqa: ARG002
        return Fitted(self.params, (), False)

    def save(self, found: Fitted, attempt: int) -> None: ...


@dataclass(frozen=True)
class _Drawn:
    """An engine whose parts have every item as often as it was drawn."""

    engine: Engine
    stream: tuple[int, ...]

    def cut(self, annotations: Annotations) -> list[tuple[int, int]]:
        return self.engine.cut(annotations)

    def each(self, work: Callable[[Any], Result], parts: Sequence[Any]) -> Iterable[Result]:
        return self.engine.each(partial(_on_drawn, work=work, stream=self.stream), parts)

    def add_up(self, work: Callable[[Any], Result], parts: Sequence[Any]) -> Result:
        return self.engine.add_up(partial(_on_drawn, work=work, stream=self.stream), parts)


def _on_drawn(part: Part, work: Callable[[Part], Result], stream: tuple[int, ...]) -> Result:
    return work(draw(part, stream))


def draw(part: Part, stream: tuple[int, ...]) -> Part:
    """Return a part with every item as often as a Poisson number for its place says."""
    times = np.random.default_rng([*stream, part.start]).poisson(1.0, part.stop - part.start)
    which = np.repeat(np.arange(len(times)), times)
    size = np.diff(part.index)[which]
    index = np.concatenate([[0], np.cumsum(size)]).astype(np.int64)
    rows = np.repeat(part.index[which] - index[:-1], size) + np.arange(index[-1])
    return Part(
        0,
        len(which),
        index,
        part.annotator[rows],
        part.label[rows],
        np.ones(len(rows)),
        part.n_annotators,
        part.n_classes,
        None if part.gold is None else part.gold[which],
    )


def _quality(outcome: Outcome, seed: int, number: int) -> Floats:
    method, annotations = additive(outcome.method), outcome.annotations
    engine = _Drawn(outcome.engine, (seed, number))
    labels = engine.add_up(_labels, annotations.shards)
    fit = FitContext(
        cast(Annotations, annotations),
        annotations.shards,
        np.empty(0, dtype=np.int64) if annotations.has_gold else None,
        engine,
        outcome.seed,
        None,
        lambda *_: None,
        checkpoints=_Begun(outcome.params) if outcome.params is not None else None,
    )
    params = method.estimate_params(fit).params
    agreement = np.zeros(annotations.n_annotators)
    if params is None:  # a vote, whose quality is how often somebody is with it
        told = engine.add_up(partial(told_by, judging=judging_of(outcome)), annotations.shards)
        agreement = told / np.maximum(labels, 1)
    return np.where(labels > 0, method.quality(params, agreement), np.nan)


def _labels(part: Part) -> Floats:
    return part.by_annotator(part.ones)
