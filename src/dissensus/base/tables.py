"""Results as tables: dataframes to compute with, and HTML for notebooks.

A result gives its columns once, as `_table`; dataframes, the first rows in a notebook and files
follow from them.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from ..errors import DataError, OptionError
from .names import Names, as_names

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl

    from ..pages.charts import Figure

Table = Mapping[str, npt.NDArray[Any]]  # column name → values, all of one length

_ROWS, _COLUMNS = 10, 12  # in a notebook
_CELL = "padding:.25em .7em;border:0;border-bottom:1px solid #8886;vertical-align:top;"


class Tabular:
    """A result that is a table."""

    def _table(self) -> Table:
        """Return all columns."""
        raise NotImplementedError

    def _first(self, most: int) -> Table:
        """Return the first rows, in columns for people."""
        return {name: values[:most] for name, values in self._table().items()}

    def to_polars(self) -> pl.DataFrame:
        """Return it as a polars dataframe; missing numbers are null."""
        return frame_of_table(self._table())

    def to_pandas(self) -> pd.DataFrame:
        """Return it as a pandas dataframe; missing numbers are NaN."""
        return as_pandas(self.to_polars())

    def _repr_html_(self) -> str:
        return _html(repr(self)[1:-1], self._first(_ROWS + 1))


class Drawable(Tabular):
    """A result that is a table and has a chart."""

    def plot(self) -> Figure:
        """Return a chart, which a notebook shows; `.save("chart.svg")` writes svg, png or html."""
        figure, nothing = self._chart()
        if figure is None:
            raise DataError(nothing)
        return figure

    def _chart(self) -> tuple[Figure | None, str]:
        """Return the chart, and why there is none where there is none."""
        raise NotImplementedError


def frame_of_table(table: Table) -> pl.DataFrame:
    """Return columns as a dataframe; NaN is null."""
    import polars as pl

    frame = pl.DataFrame({name: as_column(values) for name, values in table.items()})
    return frame.with_columns(pl.selectors.float().fill_nan(None))


def as_column(values: npt.NDArray[Any]) -> pl.Series:
    """Return an array as a column."""
    import polars as pl

    if values.dtype.kind in "OT" and set(map(type, values.tolist())) <= {str, type(None)}:
        return pl.Series(values.tolist(), dtype=pl.String)
    return pl.Series(values)


def gather(names: Names, codes: Any) -> pl.Series:
    """Return the names of codes as a column."""
    import polars as pl

    return pl.Series(names.tolist(), dtype=pl.String).gather(pl.Series(codes))


def as_pandas(frame: pl.DataFrame) -> pd.DataFrame:
    """Return a dataframe as that of pandas; Arrow is not needed."""
    import polars as pl

    try:
        import pandas as pd
    except ModuleNotFoundError:
        raise OptionError("this needs pandas: pip install pandas") from None
    return pd.DataFrame(
        {
            column.name: column.to_list() if column.dtype == pl.String else column.to_numpy()
            for column in frame.iter_columns()
        }
    )


def columns_of(rows: Sequence[Mapping[str, Any]]) -> Table:
    """Return rows as columns; a missing number is NaN.

    >>> columns_of([{"name": "a", "n": 1}, {"name": "b", "n": None}])["n"]
    array([ 1., nan])
    """
    names = list(dict.fromkeys(name for row in rows for name in row))
    return {name: _column([row.get(name) for row in rows]) for name in names}


def _column(values: list[Any]) -> npt.NDArray[Any]:
    if all(isinstance(value, str) for value in values):
        return as_names(values)
    if any(value is None for value in values):
        return np.array(values, dtype=float)
    return np.array(values)


def _html(caption: str, table: Table) -> str:
    """Return the first rows and columns in the colours of the page, names escaped."""
    if len(table) > _COLUMNS:
        n_rows = len(next(iter(table.values())))
        table = dict(list(table.items())[:_COLUMNS]) | {"…": as_names(["…"] * n_rows)}
    columns = {name: values.tolist() for name, values in table.items()}
    numeric = {name: values.dtype.kind in "iuf" for name, values in table.items()}
    styles = {name: _CELL + f"text-align:{'right' if numeric[name] else 'left'}" for name in table}
    head = "".join(f'<th style="{styles[name]}">{escape(name)}</th>' for name in columns)
    rows = [
        "".join(
            f'<td dir="auto" style="{style}">{_text(value)}</td>'
            for style, value in zip(styles.values(), row, strict=True)
        )
        for row in zip(*columns.values(), strict=True)
    ]
    if len(rows) > _ROWS:
        rows[_ROWS:] = ("".join(f'<td style="{style}">…</td>' for style in styles.values()),)
    body = "".join(f"<tr>{row}</tr>" for row in rows)
    return (
        f'<div dir="auto" style="padding:.25em .7em">{escape(caption)}</div>'
        '<div style="overflow-x:auto"><table style="border-collapse:collapse;color:inherit">'
        f"<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>"
    )


def _text(value: Any) -> str:
    """Return a value as a cell.

    >>> _text(0.12345), _text(float("nan")), _text("<b>")
    ('0.123', '–', '&lt;b&gt;')
    """
    if value is None or value != value:
        return "–"
    if isinstance(value, float):
        return f"{value:.3f}" if math.isinf(value) or abs(value) < 1e5 else f"{value:.4g}"
    return escape(str(value))
