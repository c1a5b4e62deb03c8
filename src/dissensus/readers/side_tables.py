"""Small files beside the annotations: one value for every annotator, or for every item."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl

from .._names import as_names
from ..errors import DataError
from .columns import NEEDED, find_columns
from .records import parse
from .sources import Source, open_source
from .tables import column_names, read_columns

__all__ = ["read_amounts", "read_authors", "read_removed", "read_scores", "read_skills"]

_SKILL = ["skill", "weight", "quality", "accuracy", "competence"]
_SCORE = ["score", "probability", "confidence", "p"]
_AUTHOR = ["author", *NEEDED["annotator"]]


def read_skills(file: str) -> dict[str, float]:
    """Return `{annotator: skill}` from a table with two such columns, or from a JSON object."""
    source = open_source(file)
    return _numbers(source, _pairs(source, {"annotator": NEEDED["annotator"], "skill": _SKILL}))


def read_amounts(file: str, role: str) -> dict[str, float]:
    """Return `{annotator: amount}`, the cost or limit of every annotator, likewise."""
    source, names = open_source(file), [role, "price", "amount", "max", "n_labels"]
    return _numbers(source, _pairs(source, {"annotator": NEEDED["annotator"], role: names}))


def read_scores(file: str) -> dict[str, float]:
    """Return `{item: score}` from a table with two such columns, or from a JSON object."""
    source = open_source(file)
    return _numbers(source, _pairs(source, {"item": NEEDED["item"], "score": _SCORE}))


def read_authors(file: str) -> dict[str, str]:
    """Return `{item: annotator}` from a table, a JSON object, or peerannot's list.

    The list has one annotator on each line, the first for item 0; -1 is nobody.
    """
    source = open_source(file)
    found = _pairs(source, {"item": NEEDED["item"], "author": _AUTHOR})
    names = as_names(list(found.values())).tolist()
    return {item: name for item, name in zip(found, names, strict=True) if name != "-1"}


def read_side_tables(method: Any, names: Sequence[str]) -> Any:
    """Return a method with the tables read whose paths its settings have."""
    readers = {"authors": read_authors, "scores": read_scores, "skills": read_skills}
    paths = {name: getattr(method, name) for name in names}
    tables = {name: readers[name](path) for name, path in paths.items() if isinstance(path, str)}
    return replace(method, **tables) if tables else method


def read_removed(file: str | Path) -> set[str]:
    """Return the items to leave out, from a text whose last column names them.

    Columns stand apart by tabs where there are any, else by spaces. Whole numbers may be written
    as NumPy writes floats.
    """
    try:
        lines = Path(file).read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as problem:
        raise DataError(f"{file}: {problem}") from None
    names = (line.split("\t" if "\t" in line else None)[-1] for line in lines if line.strip())
    return {str(int(float(name))) if _FLOAT.match(name) else name for name in names}


_FLOAT = re.compile(r"^-?\d\.\d{18}e[+-]\d\d$")


def _pairs(source: Source, roles: Mapping[str, Sequence[str]]) -> dict[str, Any]:
    """Return the two columns of a table, or what stands for that in other formats."""
    key, value = roles
    if source.format in ("json", "jsonl"):
        found = parse(source, source.text(), None) if _one_object(source) else None
        if isinstance(found, dict) and value not in found:
            return dict(zip(as_names(found), found.values(), strict=True))
    present = column_names(source)
    if source.format == "csv" and len(present) == 1 and key == "item" and value == "author":
        lines = [line.strip() for line in source.lines()]
        return {str(position): name for position, name in enumerate(filter(None, lines))}
    columns = find_columns(present, roles, None, source.name)
    frame = read_columns(source, list(columns.values())).drop_nulls()
    keys = as_names(frame[columns[key]].to_list()).tolist()
    if len(set(keys)) < len(keys):
        twice = frame[columns[key]].cast(pl.String)
        raise source.fail(f"{key} {twice.filter(twice.is_duplicated())[0]!r} stands there twice")
    return dict(zip(keys, frame[columns[value]].to_list(), strict=True))


def _one_object(source: Source) -> bool:
    return source.format == "json" or len([line for line in source.lines() if line.strip()]) == 1


def _numbers(source: Source, pairs: Mapping[str, Any]) -> dict[str, float]:
    numbers: dict[str, float] = {}
    for name, value in pairs.items():
        try:
            numbers[name] = float(value)
        except (TypeError, ValueError):
            numbers[name] = math.nan
        if not math.isfinite(numbers[name]):
            raise source.fail(f"{name!r} has {value!r}, which is not a number")
    return numbers
