"""Texts that a spreadsheet would run, in files that people download.

A spreadsheet takes a cell that begins with = + - @, a tab or a carriage return for a formula,
whoever wrote it. In downloads such a text, unless it is a number, gets an apostrophe in front, as
does one that begins with an apostrophe. The column `MARK` then has the number of such cells in each
row; a table without them stays as it is. Readers take the apostrophes off where that column is.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

import polars as pl

MARK = "added_apostrophes"
_BEGINNINGS = "'=+-@\t\r"
_BEGINNING = r"^['=+\-@\t\r]"
_NUMBER = r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?"
_ADDED = r"^'(['=+\-@\t\r])"
_is_number = re.compile(_NUMBER).fullmatch


def guarded(columns: Mapping[str, Sequence[Any]]) -> dict[str, list[Any]]:
    """Return columns for a download.

    >>> guarded({"item": ["a", "=1+1"], "label": ["-1", "'x"]})
    {'item': ['a', "'=1+1"], 'label': ['-1', "''x"], 'added_apostrophes': [0, 2]}
    """
    out = {name: list(values) for name, values in columns.items()}
    counts = [0] * max(map(len, out.values()), default=0)
    for values in out.values():
        for row, text in enumerate(values):
            risky = isinstance(text, str) and text != "" and text[0] in _BEGINNINGS
            if risky and not _is_number(text):
                values[row] = f"'{text}"
                counts[row] += 1
    return out | {MARK: counts} if any(counts) else out


def guarded_frame(frame: pl.DataFrame) -> pl.DataFrame:
    """Return a table for a download."""
    texts = [name for name, kind in frame.schema.items() if kind == pl.String]
    if not any(frame[name].str.contains(_BEGINNING).any() for name in texts):
        return frame
    columns = guarded({name: frame[name].to_list() for name in texts})
    return frame.with_columns(
        pl.Series(name, values, dtype=pl.Int64 if name == MARK else pl.String)
        for name, values in columns.items()
    )


def as_before(frame: pl.DataFrame) -> pl.DataFrame:
    """Return the texts of a download as they were."""
    return frame.with_columns(pl.col(pl.String).str.replace(_ADDED, "${1}"))
