"""Answers as files: a long table with a row for every mark, or one record for every answer.

An empty answer is a row without values, or an empty list. What is written is read again as it was.
"""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import polars as pl

from .._relation import Array
from ..answers import Answers
from ..answers.marks import Marks, Points
from ..answers.masks import Masks
from ..answers.rankings import TIE, Rankings
from ..answers.sets import Sets, join_options
from .content import as_column

_SPECIAL = set(' |;,>=[]{}"\\')  # in names that are written as JSON


def answers_frame(answers: Answers) -> pl.DataFrame:
    """Return a long table, which has a row without values for every empty answer."""
    if isinstance(answers, Marks):
        return _marks(answers)
    who = {"item": answers.items[answers.item], "annotator": answers.annotators[answers.annotator]}
    return _frame(who | _values(answers))


def _frame(columns: dict[str, Any]) -> pl.DataFrame:
    return pl.DataFrame(
        {
            name: as_column(values) if isinstance(values, np.ndarray) else pl.Series(values)
            for name, values in columns.items()
        }
    )


def _marks(marks: Marks) -> pl.DataFrame:
    table, answer = marks.as_table()
    bare = np.flatnonzero(marks.empty)
    rows = np.concatenate([answer, bare])
    order = np.argsort(rows, kind="stable")
    columns: dict[str, Any] = {
        "item": marks.items[marks.item[rows[order]]],
        "annotator": marks.annotators[marks.annotator[rows[order]]],
    }
    frame = _frame(columns)
    for name, values in table.items():
        if name != "item":
            given = as_column(values).extend(pl.Series([None] * len(bare), dtype=pl.Null))
            frame = frame.with_columns(given.gather(order).alias(name))
    if isinstance(marks, Points) and not np.isnan(marks.size).all():
        width, height = marks.size[marks.item[rows[order]]].T
        frame = frame.with_columns(
            pl.Series("image_height", height).fill_nan(None),
            pl.Series("image_width", width).fill_nan(None),
        )
    return frame


def _values(answers: Answers) -> dict[str, Array | list[Any]]:
    """Return the columns of values: (answer)."""
    if isinstance(answers, Masks):
        height, width = answers.size[answers.item].T
        values, empty = answers.values(), answers.empty.tolist()
        counts = [
            None if bare else " ".join(map(str, value["counts"]))
            for bare, value in zip(empty, values, strict=True)
        ]
        return {"counts": counts, "height": height, "width": width}
    if isinstance(answers, Sets):
        return {"labels": _labels(answers)}
    if isinstance(answers, Rankings):
        return _rankings(answers)
    return {answers.value_key: answers.values()}


def _labels(sets: Sets) -> list[str | None]:
    """Return options joined by `|`; as lists in JSON where that could be read otherwise."""
    values = sets.values()
    names = sets.options.tolist()
    plain = not any(_SPECIAL - {" "} & set(name) or name != name.strip() for name in names)
    if plain and int(sets.sizes.max(initial=0)) > 1:
        return [join_options(value) or None for value in values]
    return [json.dumps(value, ensure_ascii=False) if value else None for value in values]


def _rankings(rankings: Rankings) -> dict[str, Array | list[Any]]:
    """Return both sides and the winner of comparisons; rankings best first."""
    values = rankings.values()
    if set(rankings.sizes.tolist()) <= {0, 2}:
        sides = [[entry["value"] for entry in value] or [None, None] for value in values]
        winner = [_winner(value) for value in values]
        return {"left": [s[0] for s in sides], "right": [s[1] for s in sides], "winner": winner}
    special = any(_SPECIAL & set(name) for name in rankings.things.tolist())
    texts: list[str | None] = []
    for value in values:
        in_order = [entry["rank"] for entry in value] == list(range(1, len(value) + 1))
        if not value:
            texts.append(None)
        elif special or not in_order or len(value) == 1:
            texts.append(json.dumps(value, ensure_ascii=False))
        else:
            texts.append(" ".join(entry["value"] for entry in value))
    return {"ranking": texts}


def _winner(value: list[dict[str, Any]]) -> str | None:
    if not value:
        return None
    left, right = value
    if left["rank"] == right["rank"]:
        return TIE
    return "left" if left["rank"] < right["rank"] else "right"
