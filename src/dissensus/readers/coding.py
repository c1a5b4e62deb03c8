"""From columns to codes and names; polars does the counting of texts.

The order of names is the one of `_names.code`, so that it does not matter where data came from.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import polars as pl
from numpy.dtypes import StringDType

from .._names import NUMBER, Codes, Names, as_names, code, smallest_dtype, text
from ..errors import DataError


def code_columns(frame: pl.DataFrame) -> dict[str, tuple[Codes, Names]]:
    """Return codes and names, in natural order, of every column."""
    texts = [name for name, kind in frame.schema.items() if kind == pl.String]
    coded = frame.select(
        pl.col(name).cast(pl.Categorical(pl.Categories.random())) for name in texts
    )
    with ThreadPoolExecutor() as pool:  # one column is often much longer than the others
        columns = pool.map(
            lambda name: _natural(coded[name]) if name in texts else _code_values(frame[name]),
            frame.columns,
        )
        return dict(zip(frame.columns, columns, strict=True))


def frame_of(
    columns: Mapping[str, list[Any]], fail: Callable[[str], DataError] = DataError
) -> pl.DataFrame:
    """Return columns of equal length, of any kind of values, as a table."""
    if len({len(values) for values in columns.values()}) > 1:
        sizes = ", ".join(f"{name} {len(values)}" for name, values in list(columns.items())[:12])
        raise fail(f"columns of different length: {sizes}")
    return pl.DataFrame({name: series_of(name, values) for name, values in columns.items()})


def series_of(name: str, values: list[Any]) -> pl.Series:
    """Return values of any kind as a column; mixed ones as texts."""
    kinds = {type(value) for value in values if value is not None and value == value}
    if kinds <= {str}:
        values = [value if isinstance(value, str) else None for value in values]
    elif len(kinds) > 1 and not kinds <= {int, float}:
        values = [None if value is None or value != value else text(value) for value in values]
    return pl.Series(name, values, strict=False, nan_to_null=True)


def _natural(coded: pl.Series) -> tuple[Codes, Names]:
    """Return codes and names in natural order of a categorical column."""
    physical = coded.to_physical().to_numpy()
    count = int(physical.max()) + 1 if len(physical) else 0
    positions = pl.int_range(count, dtype=pl.UInt32, eager=True)
    names = positions.cat.to(coded.dtype).cast(pl.String)
    order = names.arg_sort()
    names = names.gather(order)
    if names.str.contains(NUMBER).all():
        numbers = names.cast(pl.Float64, strict=False)
        if numbers.is_finite().all():
            by_value = pl.Series(np.argsort(numbers.to_numpy(), kind="stable"))
            names, order = names.gather(by_value), order.gather(by_value)
    rank = np.empty(count, dtype=smallest_dtype(count))
    rank[order.to_numpy()] = np.arange(count, dtype=rank.dtype)
    return rank[physical], names.to_numpy().astype(StringDType())


def _code_values(column: pl.Series) -> tuple[Codes, Names]:
    """Return codes and names of a column that is not text."""
    if isinstance(column.dtype, pl.Enum):
        names = as_names(column.dtype.categories.to_list())
        return column.to_physical().to_numpy().astype(smallest_dtype(len(names))), names
    if column.dtype == pl.Categorical:
        return code_columns(column.cast(pl.String).to_frame())[column.name]
    distinct = column.unique()
    codes, names = code(distinct.to_list())
    keys = pl.DataFrame({column.name: distinct, "code": codes.astype(np.uint32)})
    joined = column.to_frame().join(keys, on=column.name, how="left", maintain_order="left")
    return joined["code"].to_numpy().astype(codes.dtype), names


def as_array(column: pl.Series) -> np.ndarray[Any, Any]:
    """Return a column as an array: texts as numbers or times where all of them read so."""
    if column.dtype != pl.String:
        return column.to_numpy()
    for kind in (pl.Int64, pl.Float64, pl.Datetime):
        try:
            parsed = column.str.to_datetime() if kind is pl.Datetime else column.cast(kind)
            return parsed.to_numpy()
        except pl.exceptions.PolarsError:
            continue
    return as_names(column.fill_null("").to_list())
