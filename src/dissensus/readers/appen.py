"""Appen, once CrowdFlower and Figure Eight: the full report, one row for each judgement.

Columns of the platform begin with `_`. A question is a column that has a `…_gold` twin, or whose
answers differ within some unit; all other columns are inputs. Test questions (`_golden`) give
gold. Several boxes ticked stand on lines of their own. Judgements of people who failed the
tests (`_tainted`) are kept.
"""

from __future__ import annotations

from collections.abc import Collection

import polars as pl

from ._platforms import accepted, chosen, counted, export_of, question_of, texts_of
from .exports import Export, Head, Question
from .sources import Source
from .tables import read_columns

__all__ = ["read", "recognises"]

_UNIT, _WORKER = "_unit_id", "_worker_id"
_TOTALS = ("_trusted_judgments", "_last_judgment_at")  # of the aggregated report
_FORMATS = ("%m/%d/%Y %H:%M:%S", "%m/%d/%Y %H:%M", "%Y-%m-%d %H:%M:%S")


def recognises(head: Head) -> bool:
    """Return whether a table has units and workers, or the totals of a report without them."""
    others = {_WORKER, *_TOTALS}
    return head.shape == "table" and _UNIT in head.names and bool(others & {*head.names})


def read(source: Source) -> Export:
    """Return the answers to every question of a job."""
    table = read_columns(source, None)
    if _UNIT not in table.columns:
        raise source.fail(f"no column {_UNIT!r}, which every report of Appen has")
    if _WORKER not in table.columns:
        raise source.fail("an aggregated report, in which nobody is named; take the full report")
    rows = table.with_columns(pl.col(_UNIT).alias("item"), pl.col(_WORKER).alias("annotator"))
    rows, carried = _timed(rows)
    asked, inputs = _columns(table)
    tainted = sum(map(accepted, table["_tainted"])) if "_tainted" in table.columns else 0
    questions: dict[str, Question] = {}
    unclear = 0
    for name in asked:
        several = _ticks_several(rows[name])
        gold, skipped = _gold(rows, name, several)
        unclear += skipped
        answers = [_boxes(one) if several else one for one in rows[name].to_list()]
        questions[name] = question_of(rows, answers, carried, several=several, gold=gold)
    notes = counted(tainted, "kept: judgements of people who failed test questions")
    notes += counted(unclear, "left out: gold of test questions that accept several answers")
    return export_of(questions, texts_of(rows, inputs), notes)


def _columns(table: pl.DataFrame) -> tuple[list[str], list[str]]:
    """Return the questions and the inputs among the columns."""
    names = {name: None for name in table.columns if not name.startswith("_")}
    twins = [name for name in names if f"{name}_gold" in names]
    others = [name for name in names if not (f"{name}_gold" in names or _is_beside(name, names))]
    per_unit = table.group_by(_UNIT).agg(pl.col(others).fill_null("").n_unique())
    varied = {name: bool((per_unit[name] > 1).any()) for name in others}
    asked = [*twins, *(name for name in others if varied[name])]
    return asked, [name for name in others if not varied[name]]


def _is_beside(name: str, names: Collection[str]) -> bool:
    """Return whether a column tells something about a question: its gold, or why."""
    gold = name.removesuffix("_reason")
    about = gold.removesuffix("_gold")
    return name.startswith("orig_") or (about != gold and about in names)


def _timed(rows: pl.DataFrame) -> tuple[pl.DataFrame, list[str]]:
    """Return rows with time, an equal share of the page's duration, and trust."""
    carried = []
    if "_created_at" in rows.columns:
        rows = rows.with_columns(_times(rows["_created_at"]).alias("time"))
        carried.append("time")
        if "_started_at" in rows.columns:
            spent = (rows["time"] - _times(rows["_started_at"])).dt.total_milliseconds() / 1000
            share = spent / pl.len().over(_WORKER, "_started_at")
            rows = rows.with_columns(share.alias("duration"))
            carried.append("duration")
    if "_trust" in rows.columns:
        trust = pl.col("_trust").cast(pl.Float64, strict=False)
        rows = rows.with_columns(trust.alias("confidence"))
        carried.append("confidence")
    return rows, carried


def _times(column: pl.Series) -> pl.Series:
    found = [column.str.to_datetime(form, strict=False) for form in _FORMATS]
    return min(found, key=lambda one: one.null_count())


def _ticks_several(column: pl.Series) -> bool:
    return bool(column.str.strip_chars().str.contains("\n").any())


def _boxes(answer: str | None) -> str | None:
    return chosen(answer.split("\n")) if answer and answer.strip() else None


def _gold(rows: pl.DataFrame, name: str, several: bool) -> tuple[dict[str, str], int]:
    """Return item → gold, and how many test questions accept more than one answer."""
    column = f"{name}_gold"
    if column not in rows.columns:
        return {}, 0
    known = rows.select("item", column).drop_nulls().unique("item", maintain_order=True)
    gold: dict[str, str] = {}
    for item, answer in known.iter_rows():
        label = _boxes(answer) if several else answer.strip()
        if label and "\n" not in label:
            gold[item] = label
    return gold, known.filter(pl.col(column).str.strip_chars() != "").height - len(gold)
