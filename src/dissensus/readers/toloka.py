"""Toloka, results of a pool: `INPUT:`, `OUTPUT:`, `GOLDEN:` and `ASSIGNMENT:` columns.

The export names a task only if it was asked to; otherwise equal inputs are the same item. A
filled `GOLDEN:` column marks a control task, whose answer is gold. Assignments that are open,
skipped or expired hold no answers and are left out; rejected ones are kept.
"""

from __future__ import annotations

import polars as pl

from ._platforms import counted, export_of, named_by_inputs, question_of, texts_of, times_of
from .exports import Export, Head
from .sources import Source
from .tables import read_columns

__all__ = ["read", "recognises"]

_WORKER = "ASSIGNMENT:worker_id"
_TASK = "ASSIGNMENT:task_id"
_STATUS = "ASSIGNMENT:status"
_PAGE = "ASSIGNMENT:assignment_id"
_TIMES = ("ASSIGNMENT:started", "ASSIGNMENT:submitted")
_UNFINISHED = ("ACTIVE", "SKIPPED", "EXPIRED")


def recognises(head: Head) -> bool:
    """Return whether a table has workers and outputs."""
    return (
        head.shape == "table"
        and _WORKER in head.names
        and any(name.startswith("OUTPUT:") for name in head.names)
    )


def read(source: Source) -> Export:
    """Return the answers to every question of a pool."""
    table = read_columns(source, None)
    if _WORKER not in table.columns:
        raise source.fail(f"no column {_WORKER!r}; export the pool with who answered")
    table = table.filter(~pl.all_horizontal(pl.all().is_null()))  # lines between pages
    inputs = [name for name in table.columns if name.startswith("INPUT:")]
    if _TASK not in table.columns and not inputs:
        raise source.fail(f"neither {_TASK!r} nor INPUT: columns tell what was answered")
    rows, left_out, rejected = _finished(table)
    item = rows[_TASK] if _TASK in rows.columns else named_by_inputs(rows, inputs)
    rows = rows.with_columns(item.alias("item"), pl.col(_WORKER).alias("annotator"))
    rows, carried = _timed(rows)
    asked = [name.removeprefix("OUTPUT:") for name in rows.columns if name.startswith("OUTPUT:")]
    questions = {
        name: question_of(rows, rows[f"OUTPUT:{name}"].to_list(), carried, gold=_gold(rows, name))
        for name in asked
    }
    notes = counted(rejected, "kept: rejected answers")
    notes += counted(left_out, "left out: open, skipped or expired assignments")
    return export_of(questions, texts_of(rows, inputs), notes)


def _finished(table: pl.DataFrame) -> tuple[pl.DataFrame, int, int]:
    """Return the rows with answers, how many were left out, and how many were rejected."""
    if _STATUS not in table.columns:
        return table, 0, 0
    status = table[_STATUS].fill_null("").str.to_uppercase()
    done = table.filter(~status.is_in(_UNFINISHED))
    return done, table.height - done.height, int((status == "REJECTED").sum())


def _timed(rows: pl.DataFrame) -> tuple[pl.DataFrame, list[str]]:
    """Return rows with time, an equal share of the page's duration, and status."""
    carried = []
    started, submitted = (times_of(rows[name]) if name in rows.columns else None for name in _TIMES)
    if submitted is not None:
        rows = rows.with_columns(submitted.alias("time"))
        carried.append("time")
    if submitted is not None and started is not None and _PAGE in rows.columns:
        spent = (submitted - started).dt.total_milliseconds() / 1000
        rows = rows.with_columns((spent / pl.len().over(_PAGE)).alias("duration"))
        carried.append("duration")
    if _STATUS in rows.columns:
        rows = rows.with_columns(pl.col(_STATUS).fill_null("").alias("status"))
        carried.append("status")
    return rows, carried


def _gold(rows: pl.DataFrame, name: str) -> dict[str, str]:
    column = f"GOLDEN:{name}"
    if column not in rows.columns:
        return {}
    known = question_of(rows, rows[column].to_list()).answers
    return dict(zip(known["item"].to_list(), known["label"].to_list(), strict=True))
