"""Toloka, results of a pool: `INPUT:`, `OUTPUT:`, `GOLDEN:` and `ASSIGNMENT:` columns.

The export names tasks only on request; otherwise equal inputs are the same item. A filled
`GOLDEN:` column marks a control task, whose answer is gold. Assignments that are open, skipped or
expired hold no answers and are left out; rejected ones are kept.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import polars as pl

from ...answers.left_out import LeftOut
from ..format import Export, Format, Head
from ..platforms import (
    count_note,
    durations,
    export_of,
    named_by_inputs,
    question_of,
    texts_of,
    times_of,
)
from ..sources import Source
from ..tables import read_columns

_WORKER = "ASSIGNMENT:worker_id"
_TASK = "ASSIGNMENT:task_id"
_STATUS = "ASSIGNMENT:status"
_PAGE = "ASSIGNMENT:assignment_id"
_STARTED, _SUBMITTED = "ASSIGNMENT:started", "ASSIGNMENT:submitted"
_UNFINISHED = ("ACTIVE", "SKIPPED", "EXPIRED")


def recognises(head: Head) -> bool:
    """Return whether a table has workers and outputs."""
    outputs = any(name.startswith("OUTPUT:") for name in head.names)
    return head.shape == "table" and _WORKER in head.names and outputs


def read(source: Source) -> Export:
    """Return the answers to every question of a pool."""
    table = read_columns(source, None)
    if _WORKER not in table.columns:
        raise source.fail(f"no column {_WORKER!r}; export the pool with its workers")
    table = table.filter(~pl.all_horizontal(pl.all().is_null()))  # lines between pages
    inputs = [name for name in table.columns if name.startswith("INPUT:")]
    if _TASK not in table.columns and not inputs:
        raise source.fail(f"neither {_TASK!r} nor INPUT: columns, so items have no names")
    status = pl.Series([""] * table.height, dtype=pl.String)
    if _STATUS in table.columns:
        status = table[_STATUS].fill_null("").str.to_uppercase()
    finished = table.filter(~status.is_in(_UNFINISHED))
    rows = _rows(finished, inputs)
    questions = {
        name.removeprefix("OUTPUT:"): question_of(
            rows,
            finished[name].to_list(),
            gold=_gold(finished, rows, name.replace("OUTPUT", "GOLDEN", 1)),
        )
        for name in table.columns
        if name.startswith("OUTPUT:")
    }
    notes = count_note(int((status == "REJECTED").sum()), "kept: rejected answers")
    unfinished = _unfinished(table, status.is_in(_UNFINISHED), inputs)
    questions = {
        name: replace(question, left_out=question.left_out + unfinished)
        for name, question in questions.items()
    }
    return export_of(questions, texts_of(rows["item"], finished.select(inputs)), notes)


def _unfinished(table: pl.DataFrame, is_open: pl.Series, inputs: list[str]) -> LeftOut:
    """Return what open, skipped and expired assignments were."""
    rows = _rows(table, inputs).filter(is_open)
    if not rows.height:
        return LeftOut()
    key = [_TASK] if _TASK in table.columns else inputs
    finished = table.filter(~is_open).select(key)
    unfinished = table.filter(is_open).select(key).with_row_index("row")
    only_open = unfinished.join(finished, on=key, how="anti", nulls_equal=True)["row"]
    items = rows["item"].gather(only_open).drop_nulls().unique(maintain_order=True).to_list()
    people = rows["annotator"].drop_nulls().unique(maintain_order=True).to_list()
    return LeftOut({"open, skipped or expired": rows.height}, tuple(items), tuple(people))


def _rows(table: pl.DataFrame, inputs: list[str]) -> pl.DataFrame:
    """Return item, annotator, time, an equal part of the page's duration, and status."""
    item = table[_TASK] if _TASK in table.columns else named_by_inputs(table, inputs)
    columns = {"item": item, "annotator": table[_WORKER]}
    if _SUBMITTED in table.columns:
        columns["time"] = times_of(table[_SUBMITTED])
    if {_SUBMITTED, _STARTED, _PAGE} <= {*table.columns}:
        spent = durations(times_of(table[_STARTED]), columns["time"])
        columns["duration"] = spent / table.select(pl.len().over(_PAGE)).to_series()
    if _STATUS in table.columns:
        columns["status"] = table[_STATUS].fill_null("")
    return pl.DataFrame(columns)


def _gold(table: pl.DataFrame, rows: pl.DataFrame, column: str) -> dict[str, Any]:
    if column not in table.columns:
        return {}
    question = question_of(rows, table[column].to_list())
    return dict(zip(question.answers["item"].to_list(), question.contents(), strict=True))


FORMAT = Format("toloka", recognises=recognises, read=read, kinds=("sets", "texts"))
