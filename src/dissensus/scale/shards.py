"""Annotations in shards: coded once, then processed round by round, wherever they are."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol

import numpy as np

from ..base.names import Names
from ..base.arrays import Integers
from ..answers.annotations import Scale
from ..base.engine import Engine
from ..base.local import Count, Join, Split
from ..errors import DataError
from ..formats.scales import in_a_row, kind_of_labels, ordered_by, pair_counts
from .chunks import Chunks
from .sharding import Shard, dictionary_of, join, split, survey


class ShardEngine(Engine, Protocol):
    """An engine that can also bring all rows of an item together."""

    @property
    def cores(self) -> int:
        """How many threads it has to work with."""
        ...

    def exchange(
        self, split: Split, chunks: Sequence[Any], n_shards: int, join: Join, progress: Count
    ) -> Sequence[Any]:
        """Return shards, each joined by `join` from the pieces that `split` gives to it."""
        ...

    def number(self, shards: Sequence[Any], starts: Sequence[int]) -> Sequence[Any]:
        """Return the shards, each with the number of items before it."""
        ...


@dataclass(frozen=True, eq=False)
class ShardedAnnotations:
    """Annotations in shards of items that the engine holds.

    Attributes
    ----------
    shards
        What the engine has in the place of parts.
    labels_per_annotator, labels_per_class
        Number of labels of every annotator and of every class.
    n_items, most_items
        Number of items, and of those in the largest shard.
    """

    shards: Sequence[Any]
    annotators: Names
    classes: Names
    labels_per_annotator: Integers
    labels_per_class: Integers
    n_items: int
    most_items: int
    has_gold: bool = False
    scale: Scale = "nominal"

    def __len__(self) -> int:
        return int(self.labels_per_class.sum())

    @property
    def n_annotators(self) -> int:
        """How many annotators there are."""
        return len(self.annotators)

    @property
    def n_classes(self) -> int:
        """How many classes there are."""
        return len(self.classes)


def shard_rows(
    rows: Chunks,
    engine: ShardEngine,
    *,
    n_shards: int,
    classes: Sequence[Any] | None = None,
    gold: Mapping[str, str] | None = None,
    scale: str = "auto",
    progress: Callable[[str, int, int], None] = lambda *_: None,
) -> ShardedAnnotations:
    """Return the rows of files as annotations in shards.

    Three passes: annotators and classes are listed, rows are assigned to shards by a hash of their
    item, shards are sorted. No process ever holds the names of all items.
    """
    chunks, count = rows.chunks, len(rows.chunks)
    known = dictionary_of(
        engine.add_up(survey, chunks), rows.whole, classes=classes, gold=gold, source=rows.files[0]
    )
    found = kind_of_labels(known.classes.tolist())
    if scale in ("interval", "ratio", "numeric") or (scale == "auto" and found.kind == "numeric"):
        raise DataError(
            "numbers need all annotations in memory; more with --memory, "
            "and --scale nominal makes them classes"
        )
    shards = engine.exchange(
        partial(split, dictionary=known, n_shards=n_shards),
        chunks,
        n_shards,
        partial(join, dictionary=known),
        lambda done: progress("reading", done, count),
    )
    sizes: list[int] = []
    n_classes = len(known.classes)
    labels: list[Any] = [np.zeros(size, np.int64) for size in (len(known.annotators), n_classes)]
    detects = scale == "auto" and in_a_row(known.classes)
    labels.append(np.zeros((n_classes, n_classes) if detects else ()))
    for done, size in enumerate(engine.each(partial(_size, with_pairs=detects), shards), 1):
        sizes.append(size[0])
        labels = [total + more for total, more in zip(labels, size[1:], strict=True)]
        progress("sorting", done, n_shards)
    starts = np.concatenate([[0], np.cumsum(sizes)]).tolist()
    return ShardedAnnotations(
        engine.number(shards, starts[:-1]),
        known.annotators,
        known.classes,
        labels[0],
        labels[1],
        starts[-1],
        max(sizes),
        bool(known.gold),
        ordered_by(labels[2]).scale if detects else "ordinal" if scale == "ordinal" else "nominal",
    )


def _size(shard: Shard, with_pairs: bool) -> tuple[int, Integers, Integers, Any]:
    """Return the number of items, of labels by annotator and by class, and pairs of labels."""
    return (
        shard.stop - shard.start,
        np.bincount(shard.annotator, minlength=shard.n_annotators),
        np.bincount(shard.label, minlength=shard.n_classes),
        pair_counts(shard.votes()) if with_pairs else 0,
    )
