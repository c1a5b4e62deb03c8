"""Tables of numbers, one row for each answer, and whether labels are numbers or classes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
import polars as pl

from .._names import NUMBER, text
from .._relation import Floats
from ..annotations import Annotations
from ..answers.numbers import Numbers
from ..errors import DataError
from .coding import carried, code_columns, series_of
from .columns import CARRIED, NEEDED, find_columns
from .sources import Source, open_source
from .tables import as_frame, column_names, line_of_row, read_columns, without_gaps

__all__ = ["LabelKind", "as_numbers", "kind_of_labels", "numbers_from", "read_numbers"]

_MOST_CLASSES = 20


class LabelKind(NamedTuple):
    """What labels are, and why we think so."""

    kind: Literal["nominal", "numeric"]
    reason: str


def kind_of_labels(labels: pl.Series | Sequence[Any]) -> LabelKind:
    """Return whether a column holds numbers or classes.

    Numbers are all of them numbers, and some are not whole or there are more than 20 different
    ones. Whether classes stand in an order cannot be seen from their names.

    >>> kind_of_labels(["1", "2.5"])
    LabelKind(kind='numeric', reason='all are numbers, and 2.5 is not a whole one')
    >>> kind_of_labels([1, 2, 2]).reason
    '2 whole numbers, no more than 20, are taken for classes'
    """
    column = labels if isinstance(labels, pl.Series) else series_of("label", list(labels))
    names = column.drop_nulls().unique(maintain_order=True)
    if column.dtype.is_numeric():
        distinct = names.drop_nans() if column.dtype.is_float() else names
        texts = pl.Series([text(value) for value in distinct.to_list()], dtype=pl.String)
    else:
        texts = names.cast(pl.String).str.strip_chars()
        texts = texts.filter(texts != "")
    if len(texts) == 0:
        return LabelKind("nominal", "there are no labels")
    other = texts.filter(~texts.str.contains(NUMBER))
    if len(other):
        return LabelKind("nominal", f"{other[0]!r} is not a number")
    numbers = texts.cast(pl.Float64)
    broken = texts.filter(numbers != numbers.round())
    if len(broken):
        return LabelKind("numeric", f"all are numbers, and {broken[0]} is not a whole one")
    count = numbers.n_unique()
    if count > _MOST_CLASSES:
        return LabelKind("numeric", f"{count} whole numbers are more than {_MOST_CLASSES} classes")
    return LabelKind(
        "nominal", f"{count} whole numbers, no more than {_MOST_CLASSES}, are taken for classes"
    )


def as_numbers(annotations: Annotations) -> Numbers:
    """Return annotations whose classes are numbers as numbers."""
    try:
        value = np.array([float(name) for name in annotations.classes.tolist()])
    except ValueError as problem:
        raise DataError(f"labels that are numbers were expected ({problem})") from None
    return Numbers.from_codes(
        annotations.item,
        annotations.annotator,
        value[annotations.label],
        items=annotations.items,
        annotators=annotations.annotators,
        **annotations.columns,
    )


def read_numbers(
    source: str | Path,
    *,
    format: str | None = None,  # noqa: A002
    columns: Mapping[str, str] | None = None,
    missing: str = "error",
) -> Numbers:
    """Return the numbers in a table; the words are those of `read`."""
    opened = open_source(source, format)
    if opened.format == "npy":
        raise opened.fail("numbers are read from tables, and this is an array")
    roles = find_columns(column_names(opened), NEEDED, columns, opened.name, CARRIED)
    frame = read_columns(opened, list(dict.fromkeys(roles.values())))
    annotations = numbers_from(frame, columns=roles, missing=missing, source=opened)
    if len(annotations) == 0:
        raise opened.fail("no labels in it, only a header")
    return annotations


def numbers_from(
    table: Any,
    *,
    columns: Mapping[str, str] | None = None,
    missing: str = "error",
    source: Source | None = None,
) -> Numbers:
    """Return the numbers of a long table: one row for each answer.

    >>> table = pl.DataFrame({"task": ["a", "a"], "worker": ["x", "y"], "label": ["1", "2.5"]})
    >>> numbers_from(table)
    <Numbers: 2 answers by 2 annotators on 1 items; 1 to 2.5>
    """
    frame = as_frame(table)
    name = source.name if source else "table"
    roles = find_columns(frame.columns, NEEDED, columns, name, CARRIED)
    frame = frame.select(pl.col(column).alias(role) for role, column in roles.items())
    frame = without_gaps(frame, missing, name, source)
    codes = code_columns(frame.select("item", "annotator"))
    return Numbers.from_codes(
        codes["item"][0],
        codes["annotator"][0],
        _values(frame["label"], name, source),
        items=codes["item"][1],
        annotators=codes["annotator"][1],
        **{role: carried(frame[role]) for role in roles if role not in NEEDED},
    )


def _values(label: pl.Series, name: str, source: Source | None) -> Floats:
    """Return labels as numbers, or say where one is none."""
    if label.dtype.is_numeric():
        numbers = label.cast(pl.Float64)
    else:
        texts = label.cast(pl.String).str.strip_chars()
        numbers = texts.str.replace(r"^\+", "").cast(pl.Float64, strict=False)
    wrong = (~numbers.is_finite()).fill_null(True)
    if not wrong.any():
        return numbers.to_numpy()
    row, count = int(wrong.arg_true()[0]), int(wrong.sum())
    position = f"row {row + 1}"
    if source is not None and source.format in ("csv", "tsv"):
        position = f"line {line_of_row(source, row)}"
    elif source is not None and source.format == "jsonl":
        position = f"line {row + 1}"
    more = f"; {count - 1} more lines like this" if count > 1 else ""
    raise DataError(
        f"{name}: {position}: label {text(label[row])!r} is not a number{more}; "
        "write 3 or -0.5 or 1e3, or take the labels for classes"
    )
