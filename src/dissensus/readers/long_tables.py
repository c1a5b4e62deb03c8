"""Long tables, one row for each label, as annotations; and whether labels are numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, NamedTuple

import numpy as np
import polars as pl

from .._names import NUMBER, Codes, Names, as_names, smallest_dtype, text
from ..annotations import Annotations
from ..answers.numbers import Numbers
from ..errors import DataError
from .coding import as_array, code_columns, series_of
from .columns import CARRIED, NEEDED, find_columns
from .sources import Source, ragged_line
from .tables import as_frame, line_of_row

_MOST_CLASSES = 20


def annotations_from(
    table: Any,
    *,
    columns: Mapping[str, str] | None = None,
    classes: Sequence[Any] | None = None,
    missing: str = "error",
    source: Source | None = None,
) -> Annotations:
    """Return the annotations of a long table: one row for each label."""
    frame = as_frame(table)
    name = source.name if source else "table"
    roles = find_columns(frame.columns, NEEDED, columns, name, CARRIED)
    frame = frame.select(pl.col(column).alias(role) for role, column in roles.items())
    if any(frame[role].null_count() or frame.schema[role].is_float() for role in NEEDED):
        frame = without_gaps(frame, missing, source)
    codes = code_columns(frame.select(list(NEEDED)))
    if any(len(names) and names[0] == "" for _, names in codes.values()):  # it is always first
        frame = without_gaps(frame, missing, source)
        codes = code_columns(frame.select(list(NEEDED)))
    label, known = codes["label"]
    if classes is not None:
        label, known = _declared(label, known, as_names(classes), name)
    return Annotations.from_codes(
        codes["item"][0],
        codes["annotator"][0],
        label,
        items=codes["item"][1],
        annotators=codes["annotator"][1],
        classes=known,
        **{role: as_array(frame[role]) for role in roles if role not in NEEDED},
    )


def without_gaps(frame: pl.DataFrame, missing: str, source: Source | None = None) -> pl.DataFrame:
    """Return the rows that have item, annotator and label; drop empty rows, and others on request.

    An incomplete row is an error unless `missing` is `drop`.
    """
    frame = frame.filter(~pl.all_horizontal(pl.col(role).is_null() for role in NEEDED))
    lacks = frame.select(_is_missing(role, frame.schema[role]) for role in NEEDED)
    gaps = lacks.select(pl.any_horizontal(pl.all()).alias("gap"))["gap"]
    if not gaps.any():
        return frame
    if missing == "drop":
        return frame.filter(~gaps)
    row, count = int(gaps.arg_true()[0]), int(gaps.sum())
    role = next(role for role in NEEDED if lacks[role][row])
    more = f"; {count - 1} more lines like this" if count > 1 else ""
    name = source.name if source else "table"
    ragged = ragged_line(source) if source and source.format in ("csv", "tsv") else None
    if ragged is not None:
        raise DataError(f"{name}: {ragged}{more}")
    where = line_of_row(source, row)
    raise DataError(f"{name}: {where}: no {role}{more}; --missing drop leaves such rows out")


def _is_missing(role: str, kind: pl.DataType) -> pl.Expr:
    column, missing = pl.col(role), pl.col(role).is_null()
    if kind == pl.String:
        missing |= column == ""
    elif kind.is_float():
        missing |= column.is_nan()
    return missing.fill_null(True)


def _declared(label: Codes, used: Names, names: Names, source: str) -> tuple[Codes, Names]:
    """Return codes and names with classes as declared."""
    positions = {name: position for position, name in enumerate(names.tolist())}
    for name in used.tolist():
        if name not in positions:
            raise DataError(
                f"{source}: label {name!r} is not among the classes {', '.join(positions)}"
            )
    table = np.array([positions[name] for name in used.tolist()], dtype=smallest_dtype(len(names)))
    return (table[label] if len(used) else label), names


class LabelKind(NamedTuple):
    """Whether labels are classes or numbers, and why."""

    kind: Literal["nominal", "numeric"]
    reason: str


def kind_of_labels(labels: pl.Series | Sequence[Any]) -> LabelKind:
    """Return whether a column holds numbers or classes.

    Labels are numeric if all are numbers and some are not whole or more than 20 are different.
    Whether classes are ordered cannot be seen from their names.

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
