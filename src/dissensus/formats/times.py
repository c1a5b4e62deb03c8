"""Times of annotations, as tools write them."""

from __future__ import annotations

from typing import Any

import polars as pl


def as_texts_of_times(column: pl.Series) -> pl.Series:
    """Return a column of texts, null where one has other characters than ASCII.

    No time that polars knows has any, and at digits of other scripts it panics.
    """
    return column.set(column.str.len_bytes() != column.str.len_chars(), None)


def as_times(values: list[Any]) -> pl.Series:
    """Return seconds since 1970, or written times, as times of UTC; as they are if unreadable."""
    if all(value is None or isinstance(value, (int, float)) for value in values):
        seconds = pl.Series(values, dtype=pl.Float64, strict=False)
        if not seconds.is_between(0, 1e11).all():
            return seconds
        return (seconds * 1e6).cast(pl.Int64).cast(pl.Datetime("us"))
    written = pl.Series([None if value is None else str(value) for value in values])
    readable = as_texts_of_times(written)
    for zone in ("UTC", None):
        try:
            times = readable.str.to_datetime(time_unit="us", time_zone=zone, strict=False)
        except pl.exceptions.PolarsError:
            continue
        if times.null_count() == written.null_count():
            return times.dt.replace_time_zone(None)
    return written
