"""A fit to shards: rounds over all of them, then labels shard by shard.

Only additive methods can: what they learn follows from sums over items, and what they say of an
item follows from that and its own labels.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, cast

import numpy as np
from numpy.dtypes import StringDType

from .._relation import Floats, Integers
from ..aggregation import Aggregator, Checkpoints, FitContext, Fitted, check_memory
from ..annotations import Annotations, Part
from ..engine import Engine, Local
from ..errors import DataError, MethodError
from ..registry import aggregators
from ..result import Table
from ..sharded.pieces import write_piece
from ..sharded.sharding import Shard
from .coding import Coded

__all__ = ["Judging", "Outcome", "additive", "fit_shards", "judging_of", "told_by"]


@dataclass(frozen=True, eq=False)
class Outcome:
    """What a method learned from shards; labels are written piece by piece.

    Attributes
    ----------
    method
        The method with its settings, as the registry writes it.
    annotations
        The annotations it speaks of.
    params, trace, converged
        As in `Aggregation`.
    """

    method: str
    annotations: Coded
    params: Any
    trace: tuple[float, ...]
    converged: bool
    engine: Engine
    seed: int = 0

    def write(
        self, folder: str | Path, progress: Callable[[int], None] = lambda _done: None
    ) -> Table:
        """Write the labels as one Parquet file for every shard; return the annotators' table.

        The files hold item, label, confidence and p:<class>, in the order of shards.
        """
        method = aggregators.create(self.method)
        work = partial(_write_piece, folder=str(folder), judging=judging_of(self))
        believed = np.zeros(self.annotations.n_annotators)
        for done, part in enumerate(self.engine.each(work, self.annotations.shards), 1):
            believed += part
            progress(done)
        with np.errstate(invalid="ignore"):
            agreement = believed / self.annotations.labels_per_annotator
        table = {
            "annotator": self.annotations.annotators,
            "n_labels": self.annotations.labels_per_annotator,
            "quality": method.quality(self.params, agreement),
            "agreement": agreement,
        }
        interval = method.interval(self.params, 0.95)
        if interval is not None:
            table |= {"quality_low": interval[:, 0], "quality_high": interval[:, 1]}
        return table


def fit_shards(
    annotations: Coded,
    method: str | Aggregator,
    engine: Engine,
    *,
    seed: int = 0,
    kept: Checkpoints | None = None,
    memory: int | None = None,
    progress: Callable[[int, float], None] = lambda *_: None,
) -> Outcome:
    """Return what a method learns from shards."""
    chosen = additive(method)
    name = aggregators.describe(chosen)
    if chosen.max_classes is not None and annotations.n_classes > chosen.max_classes:
        raise MethodError(
            f"{name} chooses between {chosen.max_classes} classes, and there are {annotations.n_classes}"
        )
    if annotations.n_classes == 0:
        raise DataError("there is no class to choose from; give labels or declare classes")
    _check_room(chosen, annotations, memory)
    fit = FitContext(
        cast(Annotations, annotations),  # additive methods ask it for sizes and sums alone
        annotations.shards,
        np.empty(0, dtype=np.int64) if annotations.has_gold else None,
        engine,
        seed,
        None,
        progress,
        checkpoints=kept,
    )
    found: Fitted = chosen.estimate_params(fit)
    return Outcome(name, annotations, found.params, found.trace, found.converged, engine, seed)


def additive(method: str | Aggregator) -> Aggregator:
    """Return a method that can be fitted to shards, or say which can."""
    chosen = aggregators.create(method) if isinstance(method, str) else method
    if not chosen.additive:
        others = ", ".join(one for one in aggregators if aggregators.find(one).additive)
        raise MethodError(
            f"{aggregators.describe(chosen)} does not learn from sums over items, so it needs all "
            f"of them in memory; these do not: {others}"
        )
    return chosen


class _Sizes(NamedTuple):
    """How large what is held at once is."""

    n_items: int
    n_annotators: int
    n_classes: int


def _check_room(method: Aggregator, annotations: Coded, memory: int | None) -> None:
    sizes = _Sizes(2 * annotations.most_items, annotations.n_annotators, annotations.n_classes)
    check_memory(method, cast(Annotations, sizes), memory)


class Judging(NamedTuple):
    """All that is needed to label a shard."""

    method: Aggregator
    params: Any
    n_class: Integers  # (class)
    classes: Any
    seed: int


def judge(shard: Part, judging: Judging) -> tuple[Floats, Integers]:
    """Return posterior and labels of a shard."""
    n_items = shard.stop - shard.start
    part = Part(
        0,
        n_items,
        shard.index,
        shard.annotator,
        shard.label,
        shard.ones,
        shard.n_annotators,
        shard.n_classes,
        shard.gold,
    )
    annotations = Annotations(
        index=shard.index,
        annotator=shard.annotator,
        label=shard.label,
        items=np.empty(n_items, dtype=StringDType()),  # names play no part in it
        annotators=np.empty(shard.n_annotators, dtype=StringDType()),
        classes=judging.classes,
    )
    fit = FitContext(
        annotations,
        [part],
        shard.gold,
        Local(1),
        judging.seed,
        None,
        lambda *_: None,
        first=shard.start,
        n_class=judging.n_class,
    )
    method, params = judging.method, judging.params
    return method.decisions(fit, method.posterior(fit, params), params)


def judging_of(outcome: Outcome) -> Judging:
    """Return what is needed to label shards as an outcome does."""
    annotations, method = outcome.annotations, aggregators.create(outcome.method)
    return Judging(
        method, outcome.params, annotations.labels_per_class, annotations.classes, outcome.seed
    )


def told_by(shard: Part, judging: Judging) -> Floats:
    """Return the belief in what every annotator said, added up: (annotator)."""
    return shard.by_annotator(shard.given_posterior(judge(shard, judging)[0]))


def _write_piece(shard: Shard, folder: str, judging: Judging) -> Floats:
    """Write the labels of a shard; return the belief in what every annotator said, added up."""
    posterior, label = judge(shard, judging)
    if shard.stop > shard.start:
        write_piece(folder, shard.start, shard.names, label, posterior, judging.classes)
    return shard.by_annotator(shard.given_posterior(posterior))
