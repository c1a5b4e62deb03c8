"""Amazon Mechanical Turk, results of a batch: one row for each assignment.

`Input.…` is what was shown, `Answer.…` what was said. A choice stands there as a text, as
`Answer.question.label`, as one column of true and false for every option, or in the JSON of
`Answer.taskAnswers`. Items are HITs; where the same inputs were published in several HITs, the
inputs are the item. Rejected answers are kept: what they are worth is for a method to say.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import polars as pl

from ._platforms import (
    accepted,
    as_label,
    chosen,
    counted,
    export_of,
    named_by_inputs,
    options_of,
    question_of,
    texts_of,
)
from .exports import Export, Head
from .sources import Source
from .tables import read_columns

__all__ = ["read", "recognises"]

_NEEDED = ("HITId", "WorkerId")
_JSON = "Answer.taskAnswers"
_TRUTH = {"true", "false"}
_HOURS = {"UTC": 0, "GMT": 0, "PST": -8, "PDT": -7}  # what MTurk writes


def recognises(head: Head) -> bool:
    """Return whether a table has HITs, workers and answers."""
    return head.shape == "table" and {*_NEEDED} <= {*head.names} and any(map(_asks, head.names))


def read(source: Source) -> Export:
    """Return the answers to every question of a batch."""
    table = read_columns(source, None)
    lacking = [name for name in _NEEDED if name not in table.columns]
    if lacking:
        raise source.fail(f"no column {lacking[0]!r}, which every batch of MTurk has")
    inputs = [name for name in table.columns if name.startswith("Input.")]
    rows, carried = _rows(table, inputs)
    found = _from_json(source, table) if _JSON in table.columns else {}
    found |= _from_columns(table)
    questions = {
        name: question_of(rows, answers, carried, several=several)
        for name, (answers, several) in found.items()
    }
    notes = counted(_rejected(table), "kept: rejected answers")
    return export_of(questions, texts_of(rows, inputs), notes)


def _asks(name: str) -> bool:
    return name.startswith("Answer.")


def _rows(table: pl.DataFrame, inputs: Sequence[str]) -> tuple[pl.DataFrame, list[str]]:
    """Return the table with item, annotator, time and duration, and what it carries."""
    item = table["HITId"]
    if inputs and table.select(inputs).n_unique() < table.select("HITId", *inputs).n_unique():
        item = named_by_inputs(table, inputs)
    rows = table.with_columns(item.alias("item"), pl.col("WorkerId").alias("annotator"))
    carried = []
    if "SubmitTime" in table.columns:
        rows = rows.with_columns(_times(table["SubmitTime"]))
        carried.append("time")
    if "WorkTimeInSeconds" in table.columns:
        seconds = pl.col("WorkTimeInSeconds").cast(pl.Float64, strict=False)
        rows = rows.with_columns(seconds.alias("duration"))
        carried.append("duration")
    if "AssignmentStatus" in table.columns:
        rows = rows.with_columns(pl.col("AssignmentStatus").fill_null("").alias("status"))
        carried.append("status")
    return rows, carried


def _times(column: pl.Series) -> pl.Series:
    """Return times such as `Wed Apr 10 10:23:45 PDT 2019` in UTC; texts where one reads otherwise.

    >>> _times(pl.Series(["Wed Apr 10 10:23:45 PDT 2019"])).item()
    datetime.datetime(2019, 4, 10, 17, 23, 45)
    """
    parts = column.str.strip_chars().str.extract_groups(
        r"^\w{3} (?<day>\w{3} +\d+ [\d:]{8}) (?<zone>[A-Z]+) (?<year>\d{4})$"
    )
    part = parts.struct.field
    local = (part("day") + " " + part("year")).str.to_datetime("%b %e %H:%M:%S %Y", strict=False)
    hours = part("zone").replace_strict(_HOURS, default=None, return_dtype=pl.Int64)
    found = local - (hours * 3_600_000_000).cast(pl.Duration("us"))
    if found.null_count() > column.null_count():
        return column.alias("time")
    return found.alias("time")


def _rejected(table: pl.DataFrame) -> int:
    if "AssignmentStatus" not in table.columns:
        return 0
    return int((table["AssignmentStatus"].str.to_lowercase() == "rejected").sum())


def _from_columns(table: pl.DataFrame) -> dict[str, tuple[list[Any], bool | None]]:
    """Return question → answers and whether several could be chosen, from columns."""
    spread: dict[str, list[str]] = {}
    found: dict[str, tuple[list[Any], bool | None]] = {}
    for column in filter(_asks, table.columns):
        name = column.removeprefix("Answer.")
        before, dot, option = name.rpartition(".")
        known = {str(one).lower() for one in table[column].drop_nulls().unique()}
        if column == _JSON:
            continue
        if dot and known <= _TRUTH:
            spread.setdefault(before, []).append(column)
        else:
            short = before if dot and option in ("label", "labels") else name
            found[short if short not in found else name] = _split(table[column].to_list())
    for name, columns in spread.items():
        names = [column.removeprefix(f"Answer.{name}.") for column in columns]
        given = zip(*(table[column].to_list() for column in columns), strict=True)
        free = name if len(names) > 1 or names == ["on"] else f"{name}.{names[0]}"
        found[free if free not in found else f"{free} (options)"] = _options(
            [dict(zip(names, row, strict=True)) for row in given], names
        )
    return found


def _from_json(source: Source, table: pl.DataFrame) -> dict[str, tuple[list[Any], bool | None]]:
    """Return question → answers and whether several could be chosen, from JSON."""
    annotations: dict[str, dict[int, Any]] = {}
    for row, body in enumerate(table[_JSON].to_list()):
        if not (body or "").strip():
            continue
        try:
            given = json.loads(body)
        except (ValueError, RecursionError):
            raise source.fail(f"row {row + 1}: {_JSON} is not JSON") from None
        for answers in given if isinstance(given, list) else [given]:
            if not isinstance(answers, dict):
                raise source.fail(f"row {row + 1}: {_JSON} should be a list of objects")
            for name, value in answers.items():
                annotations.setdefault(name, {})[row] = _unwrapped(value)
    found: dict[str, tuple[list[Any], bool | None]] = {}
    for name, by_row in annotations.items():
        answers = [by_row.get(row) for row in range(table.height)]
        ticked = [one if _is_ticked(one) else None for one in answers]
        if any(one is not None for one in ticked):
            names = list(dict.fromkeys(name for one in ticked if one for name in one))
            found[name] = _options(ticked, names)
        else:
            found[name] = _split(answers)
    return found


def _unwrapped(value: Any) -> Any:
    """Return an answer without what form elements wrap around it."""
    if isinstance(value, dict) and set(value) in ({"label"}, {"labels"}, {"on"}):
        return next(iter(value.values()))
    return value


def _is_ticked(value: Any) -> bool:
    return isinstance(value, dict) and all(isinstance(one, bool) for one in value.values())


def _options(
    given: Sequence[Mapping[str, Any] | None], names: Sequence[str]
) -> tuple[list[Any], bool]:
    """Return options that are true or false as answers: one each, unless somebody chose two."""
    ticked = [
        None
        if row is None or all(as_label(one) == "" for one in row.values())
        else [name for name, one in row.items() if accepted(one)]
        for row in given
    ]
    if len(names) == 1:  # one box to tick
        return [None if one is None else "true" if one else "false" for one in ticked], False
    if any(len(one) > 1 for one in ticked if one is not None):
        return [None if one is None else chosen(one) for one in ticked], True
    return [one[0] if one else None for one in ticked], False


def _split(answers: Sequence[Any]) -> tuple[list[Any], bool | None]:
    """Return texts as answers; boxes of one name come with bars between them."""
    lists = any(options_of(one) is not None for one in answers)
    if lists or not any(isinstance(one, str) and "|" in one for one in answers):
        return list(answers), None
    return [chosen(one.split("|")) if as_label(one) else None for one in answers], True
