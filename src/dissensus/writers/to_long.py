"""Long tables: one row for each label, or one row for each item of a result."""

from __future__ import annotations

import polars as pl

from .content import Content, table_of

__all__ = ["answers", "results"]


def answers(content: Content) -> pl.DataFrame:
    """Return item, annotator, label, and what is carried along."""
    return table_of(content.what)


def results(content: Content) -> pl.DataFrame:
    """Return item, label, confidence, and the belief in every class."""
    return table_of(content.what)
