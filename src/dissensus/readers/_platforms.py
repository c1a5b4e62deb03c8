"""What readers of platform exports share: rows that become answers, and names for items.

Platforms name the same things differently, but all of them hold rows with inputs, a person and
answers. An answer is a text, a truth value spread over columns, or a list of options.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import polars as pl

from .._names import text
from ._answers import joined
from .exports import Export, Kind, Question

__all__ = [
    "accepted",
    "as_label",
    "chosen",
    "counted",
    "export_of",
    "named_by_inputs",
    "options_of",
    "question_of",
    "texts_of",
    "times_of",
]

_NONE = "(none)"  # several options could be chosen, and none was
_MOST_CLASSES = 20  # more different answers than this, and mostly different: free text
_LONGEST = 80  # characters of a text that serves as a name
_YES = ("true", "on", "1", "yes")


def as_label(value: Any) -> str:
    """Return an answer as the text that names a class; what has parts is written as JSON."""
    if value is None or value != value:
        return ""
    if isinstance(value, (dict, list)):
        return json.dumps(value, ensure_ascii=False, sort_keys=True)
    return text(value).strip()


def chosen(options: Iterable[Any]) -> str:
    r"""Return the chosen options as one label.

    >>> chosen(["b", "a|c"]), chosen([])
    ('a\\|c|b', '(none)')
    """
    return joined([name for name in map(as_label, options) if name]) or _NONE


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
    return as_label(value).casefold() in _YES


def counted(count: int, what: str) -> tuple[str, ...]:
    """Return a note about so many things; nothing where there are none.

    >>> counted(3, "kept: rejected answers")
    ('kept: rejected answers (3)',)
    """
    return (f"{what} ({count})",) if count else ()


def question_of(
    rows: pl.DataFrame,
    answers: Sequence[Any],
    carried: Sequence[str] = (),
    *,
    several: bool | None = None,
    gold: Mapping[str, str] | None = None,
) -> Question:
    """Return the answers to one question, one for each row, without those who said nothing.

    Lists of options make it one with several at once, unless `several` tells that the answers
    are such labels already.
    """
    lists = [options_of(answer) for answer in answers] if several is None else []
    kind: Kind = "multiple" if several or any(one is not None for one in lists) else "single"
    if kind == "multiple" and not several:
        answers = [
            chosen(one) if one is not None else chosen([answer]) if as_label(answer) else None
            for answer, one in zip(answers, lists, strict=True)
        ]
    label = pl.Series("label", [as_label(answer) for answer in answers], dtype=pl.String)
    frame = rows.select("item", "annotator", *carried).with_columns(label)
    return Question(frame.filter(label != ""), kind, gold=gold or {})


def export_of(
    questions: Mapping[str, Question], texts: pl.DataFrame | None, notes: Sequence[str]
) -> Export:
    """Return the questions that were answered; prose is left out if something else was asked."""
    answered = {name: one for name, one in questions.items() if one.answers.height}
    prose = [name for name, one in answered.items() if _is_prose(one)]
    if len(prose) == len(answered):
        prose = []
    told = [
        f"left out: free text in answer to {name!r} ({answered[name].answers.height})"
        for name in prose
    ]
    kept = {name: one for name, one in answered.items() if name not in prose}
    return Export(kept, texts, (*notes, *told))


def _is_prose(asked: Question) -> bool:
    """Return whether answers are texts of people's own rather than classes or numbers."""
    known = asked.answers["label"]
    different = known.n_unique()
    if asked.kind == "multiple" or different <= _MOST_CLASSES or 2 * different <= len(known):
        return False
    return known.cast(pl.Float64, strict=False).null_count() > 0


def named_by_inputs(rows: pl.DataFrame, inputs: Sequence[str]) -> pl.Series:
    """Return a name for every row such that equal inputs, and only they, have the same name.

    The column that tells rows apart with the shortest texts names them; where none does so
    alone, all of them together. Long names are cut and numbered.
    """
    texts = rows.select(pl.col(inputs).cast(pl.String).fill_null(""))
    count = texts.n_unique()
    alone = [name for name in inputs if texts[name].n_unique() == count and "" not in texts[name]]
    if alone:
        lengths = {name: int(texts[name].str.len_chars().sum()) for name in alone}
        names = texts[min(alone, key=lengths.__getitem__)]
    else:
        names = texts.select(pl.concat_str(pl.all(), separator=" / ")).to_series()
        if names.n_unique() < count:  # a separator inside made two of them one
            names = texts.select(pl.struct(pl.all()).struct.json_encode()).to_series()
    return _short(names.alias("item"))


def _short(names: pl.Series) -> pl.Series:
    known = names.unique(maintain_order=True).to_list()
    short = {name: name for name in known if len(name) <= _LONGEST}
    for position, name in enumerate(known, 1):
        cut = f"{name[: _LONGEST - 20].rstrip()}… ({position})"
        short.setdefault(name, cut if cut not in short else name)
    if len(short) == len(known) and all(name == cut for name, cut in short.items()):
        return names
    return pl.Series(names.name, [short[name] for name in names.to_list()], dtype=pl.String)


def times_of(column: pl.Series) -> pl.Series:
    """Return written times as times; nothing where one cannot be read."""
    written = column.str.replace(r"( UTC|Z)$", "")
    for form in (None, "%Y-%m-%dT%H:%M:%S%.f"):
        try:
            found = written.str.to_datetime(form, time_unit="us", strict=False)
        except pl.exceptions.PolarsError:  # no form can be guessed from them
            continue
        if found.null_count() < len(found):
            return found
    return pl.Series(column.name, [None] * len(column), dtype=pl.Datetime("us"))


def texts_of(rows: pl.DataFrame, inputs: Sequence[str]) -> pl.DataFrame | None:
    """Return item and text, the inputs of every item in one text."""
    if not inputs:
        return None
    columns = pl.concat_str(pl.col(inputs).cast(pl.String).fill_null(""), separator="\n")
    shown = rows.select("item", columns.alias("text")).drop_nulls("item")
    return shown.unique("item", maintain_order=True)
