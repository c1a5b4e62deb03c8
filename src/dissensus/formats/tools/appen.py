"""Appen, once CrowdFlower and Figure Eight: the full report, one row for each judgement.

Columns of the platform begin with `_`. A question is a column that has a `…_gold` twin, or whose
answers differ within some unit; all other columns are inputs. Test questions (`_golden`) give
gold. Several ticked boxes are on lines of their own. Judgements of people who failed the tests
(`_tainted`) are kept.
"""

from __future__ import annotations

from typing import Any

import polars as pl

from ..cells import as_texts_of_times
from ..format import Export, Format, Head, Question
from ..platforms import accepted, chosen, count_note, durations, export_of, question_of, texts_of
from ..sources import Source
from ..tables import read_columns

_UNIT, _WORKER = "_unit_id", "_worker_id"
_TOTALS = ("_trusted_judgments", "_last_judgment_at")  # of the aggregated report
_FORMATS = ("%m/%d/%Y %H:%M:%S", "%m/%d/%Y %H:%M", "%Y-%m-%d %H:%M:%S")


def recognises(head: Head) -> bool:
    """Return whether a table has units and workers, or the totals of a report without them."""
    columns = {_WORKER, *_TOTALS}
    return head.shape == "table" and _UNIT in head.names and bool(columns & {*head.names})


def read(source: Source) -> Export:
    """Return the answers to every question of a job."""
    table = read_columns(source, None)
    if _UNIT not in table.columns:
        raise source.fail(f"no column {_UNIT!r}, which every report of Appen has")
    if _WORKER not in table.columns:
        raise source.fail("an aggregated report, in which nobody is named; take the full report")
    rows = _rows(table)
    names, inputs = _split_columns(table)
    questions: dict[str, Question] = {}
    unclear = 0
    for name in names:
        is_multiple = bool(table[name].str.strip_chars().str.contains("\n").any())
        gold, skipped = _gold(table, name, is_multiple)
        unclear += skipped
        answers = [_label(answer, is_multiple) for answer in table[name].to_list()]
        questions[name] = question_of(rows, answers, several=is_multiple, gold=gold)
    tainted = sum(map(accepted, table["_tainted"])) if "_tainted" in table.columns else 0
    notes = count_note(tainted, "kept: judgements of people who failed test questions")
    notes += count_note(unclear, "left out: gold of test questions that accept several answers")
    return export_of(questions, texts_of(rows["item"], table.select(inputs)), notes)


def _split_columns(table: pl.DataFrame) -> tuple[list[str], list[str]]:
    """Return the questions and the inputs among the columns."""
    names = {name: None for name in table.columns if not name.startswith("_")}
    twins = [name for name in names if f"{name}_gold" in names]
    about = {f"{name}_gold{ending}" for name in names for ending in ("", "_reason")}
    candidates = [
        name
        for name in names
        if name not in twins and name not in about and not name.startswith("orig_")
    ]
    per_unit = table.group_by(_UNIT).agg(pl.col(candidates).fill_null("").n_unique())
    varied = {name: bool((per_unit[name] > 1).any()) for name in candidates}
    questions = [*twins, *(name for name in candidates if varied[name])]
    return questions, [name for name in candidates if not varied[name]]


def _rows(table: pl.DataFrame) -> pl.DataFrame:
    """Return item, annotator, time, an equal part of the page's duration, and trust."""
    columns = {"item": table[_UNIT], "annotator": table[_WORKER]}
    if "_created_at" in table.columns:
        columns["time"] = _times(table["_created_at"])
        if "_started_at" in table.columns:
            page = table.select(pl.len().over(_WORKER, "_started_at")).to_series()
            columns["duration"] = durations(_times(table["_started_at"]), columns["time"]) / page
    if "_trust" in table.columns:
        columns["confidence"] = table["_trust"].cast(pl.Float64, strict=False)
    return pl.DataFrame(columns)


def _times(column: pl.Series) -> pl.Series:
    written = as_texts_of_times(column)
    parsed = [written.str.to_datetime(form, strict=False) for form in _FORMATS]
    return min(parsed, key=lambda times: times.null_count())


def _label(answer: str | None, is_multiple: bool) -> str | list[str] | None:
    if not is_multiple or answer is None:
        return answer
    return chosen(answer.split("\n")) if answer.strip("\n") else None


def _gold(table: pl.DataFrame, name: str, is_multiple: bool) -> tuple[dict[str, Any], int]:
    """Return item → gold, and how many test questions accept more than one answer."""
    column = f"{name}_gold"
    if column not in table.columns:
        return {}, 0
    gold_rows = table.select(_UNIT, pl.col(column).str.strip_chars("\r\n")).drop_nulls()
    gold_rows = gold_rows.unique(_UNIT, maintain_order=True).filter(pl.col(column) != "")
    labels = {item: _label(answer, is_multiple) for item, answer in gold_rows.iter_rows()}
    gold = {item: label for item, label in labels.items() if label and "\n" not in label}
    return gold, gold_rows.height - len(gold)


FORMAT = Format("appen", recognises=recognises, read=read, kinds=("sets", "texts"))
