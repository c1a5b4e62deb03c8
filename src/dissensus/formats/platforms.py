"""Shared by the readers of platforms' tables: rows that become answers, and names for items.

Platforms name the same things differently, but all of them have rows with inputs, an annotator and
answers. An answer is a text, a list of options, or one column of true and false for each option.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import polars as pl

from ..answers.left_out import LeftOut
from ..base.names import text
from .cells import as_texts_of_times
from .collecting import label_of_options, with_texts
from .format import Export, Kind, Question

_LONGEST = 80  # characters of a text that serves as a name
_YES = ("true", "on", "1", "yes")


def as_label(value: Any) -> str:
    """Return an answer as the text that names a class; what has parts is written as JSON."""
    if value is None or value != value:
        return ""
    if isinstance(value, (dict, list)):
        return json.dumps(value, ensure_ascii=False, sort_keys=True)
    return text(value)


def chosen(options: Iterable[Any]) -> list[str]:
    """Return the names of the chosen options.

    >>> chosen(["b", None, 1.0])
    ['b', '1']
    """
    return [name for name in map(as_label, options) if name]


def options_of(value: Any) -> list[Any] | None:
    """Return the options of a list, given as such or as JSON; nothing where it is no list."""
    if isinstance(value, str) and value.lstrip().startswith("["):
        try:
            value = json.loads(value)
        except (ValueError, RecursionError):
            return None
    return list(value) if isinstance(value, (list, tuple)) else None


def accepted(value: Any) -> bool:
    """Return whether a truth value, however it is written, is true."""
    return as_label(value).strip().casefold() in _YES


def count_note(count: int, words: str) -> tuple[str, ...]:
    """Return a note about so many things; nothing where there are none.

    >>> count_note(3, "kept: rejected answers")
    ('kept: rejected answers (3)',)
    """
    return (f"{words} ({count})",) if count else ()


def question_of(
    rows: pl.DataFrame,
    answers: Sequence[Any],
    *,
    several: bool | None = None,
    gold: Mapping[str, Any] | None = None,
    asked: Sequence[bool] | None = None,
) -> Question:
    """Return the answers to one question, one for each row of item, annotator and carried columns.

    Empty answers are left out, and counted where the question was `asked`, by default in all rows
    that are about an item or by an annotator. Lists of options make all answers sets, unless
    `several` says whether they are.
    """
    labels = [as_label(answer) for answer in answers]
    lists = [None] * len(labels) if several is False else [*map(options_of, answers)]
    if several or any(options is not None for options in lists):
        singles = [[label] if label else None for label in labels]
        values = [
            single if options is None else chosen(options)
            for options, single in zip(lists, singles, strict=True)
        ]
        question = kind_question(rows, values, "sets", asked=asked)
        known = {i: [name] if isinstance(name, str) else name for i, name in (gold or {}).items()}
    else:
        label = pl.Series("label", labels, dtype=pl.String)
        left_out = LeftOut()
        if "" in labels:
            left_out = _without_label(rows, label == "", asked)
        answered = rows.with_columns(label).filter(label != "")
        question = Question(answered, left_out=left_out)
        known = {
            item: name if isinstance(name, str) else label_of_options(name)
            for item, name in (gold or {}).items()
        }
    return replace(question, gold=known)


def _without_label(rows: pl.DataFrame, blank: pl.Series, asked: Sequence[bool] | None) -> LeftOut:
    """Return what rows without a label are; blank lines are none."""
    if asked is not None:
        blank = blank & pl.Series(asked, dtype=pl.Boolean)
    rows = rows.select("item", "annotator").filter(blank)
    rows = rows.filter(~pl.all_horizontal(pl.all().is_null()))
    names = [
        tuple(rows[role].cast(pl.String).drop_nulls().unique(maintain_order=True).to_list())
        for role in ("item", "annotator")
    ]
    return LeftOut({"without a label": rows.height} if rows.height else {}, *names)


def export_of(
    questions: Mapping[str, Question], texts: pl.DataFrame | None, notes: Sequence[str]
) -> Export:
    """Return the answered questions; what looks like free text beside others is no class."""
    answered = {name: question for name, question in questions.items() if question.answers.height}
    return Export(with_texts(answered), texts, tuple(notes))


def kind_question(
    rows: pl.DataFrame,
    values: Sequence[Any],
    kind: Kind,
    sizes: Mapping[str, tuple[int, int]] | None = None,
    asked: Sequence[bool] | None = None,
) -> Question:
    """Return the answers of a kind to one question, one for each row; `None` is no answer.

    That is counted where the question was `asked`, by default in all rows.
    """
    is_answered = pl.Series([value is not None for value in values], dtype=pl.Boolean)
    present_values = [value for value in values if value is not None]
    left_out = _without_label(rows, ~is_answered, asked)
    return Question(
        rows.filter(is_answered), kind, values=present_values, sizes=sizes or {}, left_out=left_out
    )


def named_by_inputs(rows: pl.DataFrame, inputs: Sequence[str]) -> pl.Series:
    """Return a name for every row such that equal inputs, and only they, have the same name.

    The column that distinguishes rows with the shortest texts names them; if no single one does,
    all of them together. Long names are cut and numbered.
    """
    texts = rows.select(pl.col(inputs).cast(pl.String).fill_null(""))
    count = texts.n_unique()
    distinguishing = [
        name for name in inputs if texts[name].n_unique() == count and "" not in texts[name]
    ]
    if distinguishing:
        lengths = {name: int(texts[name].str.len_chars().sum()) for name in distinguishing}
        names = texts[min(distinguishing, key=lengths.__getitem__)]
    else:
        names = texts.select(pl.concat_str(pl.all(), separator=" / ")).to_series()
        if names.n_unique() < count:  # a separator inside made two of them one
            names = texts.select(pl.struct(pl.all()).struct.json_encode()).to_series()
    return _short(names.alias("item"))


def _short(names: pl.Series) -> pl.Series:
    distinct = names.unique(maintain_order=True).to_list()
    short = {name: name for name in distinct if len(name) <= _LONGEST}
    for position, name in enumerate(distinct, 1):
        cut = f"{name[: _LONGEST - 20].rstrip()}… ({position})"
        short.setdefault(name, cut if cut not in short else name)
    if len(short) == len(distinct) and all(name == cut for name, cut in short.items()):
        return names
    return pl.Series(names.name, [short[name] for name in names.to_list()], dtype=pl.String)


def times_of(column: pl.Series) -> pl.Series:
    """Return texts as times, null where one cannot be parsed."""
    written = as_texts_of_times(column.str.replace(r"( UTC|Z)$", ""))
    for form in (None, "%Y-%m-%dT%H:%M:%S%.f"):
        try:
            times = written.str.to_datetime(form, time_unit="us", strict=False)
        except pl.exceptions.PolarsError:  # no form can be guessed from them
            continue
        if times.null_count() < len(times):
            return times
    return pl.Series(column.name, [None] * len(column), dtype=pl.Datetime("us"))


def durations(started: pl.Series, finished: pl.Series) -> pl.Series:
    """Return the seconds between times."""
    return (finished - started).dt.total_milliseconds() / 1000


def texts_of(item: pl.Series, inputs: pl.DataFrame) -> pl.DataFrame | None:
    """Return item and text, the inputs of every item in one text."""
    if not inputs.width:
        return None
    text = pl.concat_str(pl.all().cast(pl.String).fill_null(""), separator="\n")
    table = inputs.select(item.alias("item"), text.alias("text")).drop_nulls("item")
    return table.unique("item", maintain_order=True)
