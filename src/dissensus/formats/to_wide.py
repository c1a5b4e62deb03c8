"""Wide tables, as cleanlab takes them: a row for every item, a column for every annotator."""

from __future__ import annotations

import re
from dataclasses import replace
from itertools import chain, count

import numpy as np
import polars as pl

from ..answers.annotations import Annotations
from ..errors import OptionError
from .columns import NO_LABEL, is_known
from .wide import WHOLE, recognises_lines
from .content import Content

_MOST_CELLS = 10**8
_FIRST = (20, 199)  # rows by which tables with types are recognised, and texts with a header


def answers(content: Content) -> pl.DataFrame:
    """Return a row for every item; a cell is empty where an annotator did not label it."""
    annotations = content.annotations
    cells = annotations.n_items * annotations.n_annotators
    if cells > _MOST_CELLS:
        raise OptionError(
            f"a wide table of {annotations.n_items} items and {annotations.n_annotators} "
            f"annotators has {cells:.1g} cells, nearly all of them empty; write a long one"
        )
    annotators = annotations.annotators.tolist()
    usual = chain(("item", "item_id", "task"), (f"item {position}" for position in count(2)))
    taken = {*annotators, *annotations.items.tolist()}  # no row may look like the header again
    key = next(name for name in usual if name not in taken)
    long = content.what.to_polars().select(pl.col("item").alias(key), "annotator", "label")
    cells_of = long.pivot(on="annotator", index=key, values="label", aggregate_function="first")
    wide = pl.DataFrame({key: annotations.items.tolist()}, schema={key: pl.String}).join(
        cells_of, on=key, how="left", maintain_order="left"
    )
    unused = [
        pl.lit(None, long.schema["label"]).alias(name)
        for name in annotators
        if name not in cells_of.columns
    ]
    return wide.with_columns(unused).select(key, *annotators)


def _shows_itself(content: Content) -> bool:
    """Return whether the reader recognises the first rows as a wide table."""
    annotations = content.annotations
    if isinstance(annotations, Annotations):
        first = np.arange(annotations.n_items) < _FIRST[-1]
        content = replace(content, what=annotations.subset(items=first))
    frame = answers(content).head(_FIRST[-1]).cast(pl.String).fill_null("")
    lines = [tuple(frame.columns), *frame.rows()]
    return all(recognises_lines(lines[: 1 + rows]) for rows in _FIRST)


def clashes(content: Content) -> list[str]:
    """Return which labels have no cell of their own, and which look like an empty one."""
    annotations, sentences = content.annotations, []
    repeats = int(annotations.repeats.sum())
    if repeats:
        sentences.append(
            f"{repeats} labels are left out: an annotator has one cell for an "
            "item, and the label that sorts first is kept"
        )
    if not _shows_itself(content):
        sentences.append("its columns do not show that it is a wide table: --format wide reads it")
    if isinstance(annotations, Annotations):
        names = annotations.classes.tolist()
        if all(re.fullmatch(WHOLE, name) for name in names):
            broken = [name for name in names if name.endswith(".0")]
            sentences += [f"the label {name!r} is read as {name[:-2]!r}" for name in broken]
        odd = [name for name in annotations.classes.tolist() if name.lower() in ("-1", *NO_LABEL)]
        sentences += [f"the label {name!r} may be read as an empty cell" for name in odd]
    known = [name for name in annotations.annotators.tolist() if is_known(name)]
    sentences += [
        f"the annotator {name!r} may be taken for a column of that name" for name in known
    ]
    return sentences
