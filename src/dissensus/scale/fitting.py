"""A fit to shards: rounds over all of them, then labels shard by shard.

Only additive methods can be fitted: their parameters follow from sums over items, and the posterior
of an item follows from the parameters and its own labels.

For data that do not fit into memory, the engine `Disk` has shards in files (`shards.py`): every
round reads them one after the other, as many at a time as there are threads. Interrupted work is
resumed: chunks are read again unless all were, and complete shards stay.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from shutil import rmtree
from typing import Any, NamedTuple, TypeVar, cast

import numpy as np
import numpy.typing as npt

from ..aggregation.aggregation import annotators_table, pack_params
from ..aggregation.classes import ClassContext, ClassMethod, check_size
from ..answers.annotations import Annotations, Floats, Integers, Part, Scale
from ..answers.identifiability import (
    identifiable_by_links,
    identifiable_items,
    joined,
    known_by_first,
    links,
)
from ..base.engine import Count, Engine, Join, Local, Split
from ..base.files import atomic_folder
from ..base.probability import temper
from ..errors import MethodError, OptionError
from ..formats.writing import write_columns
from ..method import Checkpoints
from ..registry import aggregators
from ..result import Table
from .pieces import write_piece
from .sharding import Shard
from .shards import ShardedAnnotations, ShardFiles, append, disk_space, write_shard

_FILES = ("annotators.parquet", "params.npz", "result.json")

Result = TypeVar("Result")


@dataclass(frozen=True, eq=False)
class ShardedFit:
    """What a method learned from shards; labels are written piece by piece.

    Attributes
    ----------
    method
        The method with its settings, as the registry writes it.
    annotations
        The annotations that it was fitted to.
    params, trace, converged
        As in `ClassAggregation`.
    annotators
        The table of annotators, once labels are written.
    """

    method: str
    annotations: ShardedAnnotations
    params: Any
    trace: tuple[float, ...]
    converged: bool
    engine: Engine
    seed: int = 0
    annotators: Table | None = None

    def write(
        self, folder: str | Path, progress: Callable[[int], None] = lambda _step: None
    ) -> ShardedFit:
        """Write the labels as one Parquet file for every shard; return the fit with annotators.

        The files hold item, label, confidence and p:<class>, in the order of shards.
        """
        method, annotations = aggregators.create(self.method), self.annotations
        identifiable = self._identifiable()
        work = partial(
            _write_piece, folder=str(folder), labeller=self.labeller(), identifiable=identifiable
        )
        posterior = np.zeros(annotations.n_annotators)
        for n_done, part in enumerate(self.engine.each(work, annotations.shards), 1):
            posterior += part
            progress(n_done)
        with np.errstate(invalid="ignore"):
            agreement = posterior / annotations.labels_per_annotator
        table = annotators_table(
            annotations,
            quality=method.quality(self.params, agreement),
            agreement=agreement,
            interval=method.interval(self.params, 0.95),
            identifiable=identifiable,
        )
        return replace(self, annotators=table)

    def _identifiable(self) -> npt.NDArray[np.bool_]:
        """Return the annotators whose labels can be judged: (annotator)."""
        shards, n_annotators = self.annotations.shards, self.annotations.n_annotators
        n_gold = None
        if self.annotations.has_gold:
            n_gold = sum(self.engine.each(_known_of, shards), np.zeros(n_annotators, np.int64))
        return identifiable_by_links(joined(self.engine.each(links, shards)), n_annotators, n_gold)

    def save(self, folder: str | Path) -> None:
        """Write the fit to a folder: annotators as Parquet, parameters, and the trace."""
        if self.annotators is None:
            raise OptionError("labels are written first, which gives the table of annotators")
        summary = {"method": self.method, "trace": self.trace, "converged": self.converged}
        summary |= {"n_items": self.annotations.n_items, "n_labels": len(self.annotations)}
        summary |= {"classes": self.annotations.classes.tolist()}
        with atomic_folder(folder, _FILES) as target:
            write_columns(self.annotators, target / "annotators.parquet")
            np.savez(target / "params.npz", **pack_params(self.params))
            (target / "result.json").write_text(json.dumps(summary), encoding="utf-8")

    def labeller(self) -> Labeller:
        """Return what is needed to label a shard."""
        annotations, method = self.annotations, aggregators.create(self.method)
        labels = annotations.labels_per_class
        return Labeller(
            method=method,
            params=self.params,
            labels_per_class=labels,
            classes=annotations.classes,
            scale=annotations.scale,
            seed=self.seed,
        )


def fit_shards(
    annotations: ShardedAnnotations,
    method: str | ClassMethod,
    engine: Engine,
    *,
    seed: int = 0,
    checkpoints: Checkpoints | None = None,
    memory: int | None = None,
    progress: Callable[[int, float], None] = lambda *_: None,
) -> ShardedFit:
    """Return a method fitted to shards."""
    aggregator = additive(method)
    name = aggregators.describe(aggregator)
    in_memory = replace(annotations, n_items=2 * annotations.most_items)
    check_size(aggregator, cast(Annotations, in_memory), memory=memory)
    fit = context_of(annotations, engine, seed=seed, checkpoints=checkpoints, progress=progress)
    fitted = aggregator.estimate_params(fit)
    return ShardedFit(
        method=name,
        annotations=annotations,
        params=fitted.params,
        trace=fitted.trace,
        converged=fitted.converged,
        engine=engine,
        seed=seed,
    )


def context_of(
    annotations: ShardedAnnotations,
    engine: Engine,
    *,
    seed: int,
    checkpoints: Checkpoints | None,
    progress: Callable[[int, float], None] = lambda *_: None,
) -> ClassContext:
    """Return the context of a fit to shards."""
    return ClassContext(
        answers=cast(Annotations, annotations),  # additive methods need its sizes and sums
        parts=annotations.shards,
        gold=np.empty(0, dtype=np.int64) if annotations.has_gold else None,
        engine=engine,
        seed=seed,
        progress=progress,
        checkpoints=checkpoints,
    )


def additive(method: str | ClassMethod) -> ClassMethod:
    """Return a method that can be fitted to shards; raise an error that lists them otherwise."""
    aggregator = aggregators.create(method) if isinstance(method, str) else method
    if not aggregator.additive:
        able = ", ".join(name for name in aggregators if aggregators.find(name).additive)
        raise MethodError(
            f"{aggregators.describe(aggregator)} does not learn from sums over items, so it needs "
            f"all of them in memory; these do not: {able}"
        )
    return aggregator


class Labeller(NamedTuple):
    """All that is needed to label a shard."""

    method: ClassMethod
    params: Any
    labels_per_class: Integers  # (class)
    classes: Any
    scale: Scale
    seed: int

    def label(self, shard: Part) -> tuple[Floats, Integers]:
        """Return posterior and labels of a shard."""
        n_items = shard.stop - shard.start
        part = replace(shard, start=0, stop=n_items)
        annotations = Annotations(
            index=shard.index,
            annotator=shard.annotator,
            label=shard.label,
            items=np.full(n_items, "", dtype=object),  # names do not matter
            annotators=np.full(shard.n_annotators, "", dtype=object),
            classes=self.classes,
            scale=self.scale,
        )
        fit = ClassContext(
            answers=annotations,
            parts=[part],
            gold=shard.gold,
            engine=Local(1),
            seed=self.seed,
            first=shard.start,
            n_class=self.labels_per_class,
        )
        return self.method.decisions(fit, self.method.posterior(fit, self.params), self.params)


def given_posteriors(shard: Part, labeller: Labeller) -> Floats:
    """Return the posterior probabilities of all given labels, added up: (annotator)."""
    return shard.by_annotator(shard.given_posterior(labeller.label(shard)[0]))


def _known_of(shard: Shard) -> Integers:
    """Return how many known items there are by the first of their annotators: (annotator)."""
    gold = np.full(shard.stop - shard.start, -1) if shard.gold is None else shard.gold
    return known_by_first(shard, gold >= 0)


def _write_piece(
    shard: Shard, folder: str, labeller: Labeller, identifiable: npt.NDArray[np.bool_]
) -> Floats:
    """Write the labels of a shard; return the posteriors of given labels: (annotator)."""
    posterior, label = labeller.label(shard)
    if shard.stop > shard.start:
        temperature = labeller.method.temperature(np.diff(shard.index))
        calibrated = posterior if temperature is None else temper(posterior, temperature)
        has_gold = None if shard.gold is None else shard.gold >= 0
        judged = identifiable_items(shard, has_gold, identifiable)
        write_piece(
            folder,
            shard.start,
            items=shard.names,
            label=label,
            posterior=calibrated,
            classes=labeller.classes,
            identifiable=judged,
        )
    return shard.by_annotator(shard.given_posterior(posterior))


@dataclass(frozen=True)
class Disk(Local):
    """Threads of this process over files in a folder.

    Parameters
    ----------
    folder
        Where the files are.
    """

    folder: str = "."

    def each(self, work: Callable[[Any], Result], parts: Sequence[Any]) -> Iterator[Result]:
        """Yield the result of the work for every part, in the order of the parts."""
        with disk_space(self.folder):
            yield from super().each(partial(_loaded, work), parts)

    def exchange(
        self, split: Split, chunks: Sequence[Any], n_shards: int, join: Join, progress: Count
    ) -> list[ShardFiles]:
        """Return the files of the shards joined from pieces of all chunks."""
        folder = Path(self.folder)
        with disk_space(self.folder):
            if not (folder / "spilled").exists():
                rmtree(folder / "spill", ignore_errors=True)
                (folder / "spill").mkdir(parents=True)
                for n_done, pieces in enumerate(self.each(split, chunks), 1):
                    for position, piece in enumerate(pieces):
                        append(folder / "spill" / f"{position:05}", piece)
                    progress(n_done)
                (folder / "spilled").touch()
            return list(self.each(partial(write_shard, folder, join), range(n_shards)))

    def number(self, shards: Sequence[ShardFiles], starts: Sequence[int]) -> list[ShardFiles]:
        """Return the shards, each with the number of items before it."""
        return [replace(shard, start=start) for shard, start in zip(shards, starts, strict=True)]


def _loaded(work: Callable[[Any], Result], part: Any) -> Result:
    return work(part.load() if isinstance(part, ShardFiles) else part)
