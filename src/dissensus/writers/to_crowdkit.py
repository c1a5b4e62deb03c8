"""Tables with the column names of crowd-kit: task, worker, label."""

from __future__ import annotations

import polars as pl

from .content import Content, table_of

__all__ = ["answers", "results"]

_NAMES = {"item": "task", "annotator": "worker"}


def answers(content: Content) -> pl.DataFrame:
    """Return task, worker, label, and what is carried along under another name."""
    return table_of(content.what).rename(_NAMES)


def results(content: Content) -> pl.DataFrame:
    """Return task, label, confidence, and the belief in every class."""
    return table_of(content.what).rename(_NAMES, strict=False)
