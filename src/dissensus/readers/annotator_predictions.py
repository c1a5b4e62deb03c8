"""What each annotator was predicted to say, as `dissensus tendency predict` writes it."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import numpy as np
import polars as pl

from .._names import as_names, text
from .._relation import Floats, Integers, indices_of
from ..annotations import Annotations
from .columns import NEEDED, find_columns
from .sources import open_source
from .tables import column_names, read_columns

__all__ = ["Foreseen", "read_annotator_predictions"]


class Foreseen(NamedTuple):
    """A label for every item and annotator, and perhaps a chance of every class."""

    annotations: Annotations  # as if they had said it
    chance: Floats | None  # (annotation of `said`, class)

    def rows(self, annotations: Annotations) -> Integers:
        """Return which prediction is of which annotation that was given, -1 for none."""
        mine = self.annotations
        item, annotator = (
            indices_of(getattr(annotations, names), getattr(mine, names))
            for names in ("items", "annotators")
        )
        item, annotator = item[annotations.item], annotator[annotations.annotator]
        key = item * mine.n_annotators + annotator
        known = mine.item.astype(np.int64) * mine.n_annotators + mine.annotator
        at = np.minimum(np.searchsorted(known, key), max(len(known) - 1, 0))
        found = (item >= 0) & (annotator >= 0) & (known[at] == key)
        return np.where(found, at, -1)

    def log_probability(self, annotations: Annotations) -> Floats:
        """Return the log chances of annotations that were predicted: (annotation, class of theirs).

        Where there are only labels, they are taken to be sure.
        """
        mine, row = self.annotations, self.rows(annotations)
        chance = np.eye(mine.n_classes)[mine.label] if self.chance is None else self.chance
        column = indices_of(annotations.classes, mine.classes)
        found = np.where(column >= 0, chance[row][:, np.maximum(column, 0)], 0.0)
        return np.log(np.maximum(found, 1e-15))


def read_annotator_predictions(path: str | Path) -> Foreseen:
    """Read a table item, annotator, label and, where there are any, p:<class>."""
    source = open_source(path)
    present = column_names(source)
    roles = find_columns(present, {key: NEEDED[key] for key in _ROLES}, None, source.name)
    posteriors = [name for name in present if name.startswith("p:")]
    frame = read_columns(source, [*roles.values(), *posteriors]).drop_nulls(list(roles.values()))
    columns = [as_names([text(x) for x in frame[roles[key]].to_list()]) for key in _ROLES]
    named = [name.removeprefix("p:") for name in posteriors]
    more = sorted(set(columns[2].tolist()) - set(named))
    annotations = Annotations.from_columns(
        *columns, classes=[*named, *more] if named else None, row=np.arange(len(frame))
    )
    key = (
        annotations.item.astype(np.int64) * max(annotations.n_annotators, 1) + annotations.annotator
    )
    if (np.diff(key) == 0).any():
        position = int(np.flatnonzero(np.diff(key) == 0)[0])
        who, what = (
            annotations.annotators[annotations.annotator[position]],
            annotations.items[annotations.item[position]],
        )
        raise source.fail(f"two predictions of what annotator {who!r} says of item {what!r}")
    if not posteriors:
        return Foreseen(annotations, None)
    numbers = frame.select(posteriors).cast(pl.Float64, strict=False)
    if numbers.null_count().sum_horizontal().item():
        raise source.fail("every p: column should hold a probability for every row")
    chance = np.zeros((len(annotations), annotations.n_classes))
    chance[:, : len(posteriors)] = numbers.to_numpy()[annotations.columns["row"]]
    return Foreseen(annotations, chance)


_ROLES = ("item", "annotator", "label")
