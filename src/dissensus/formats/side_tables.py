"""Small tables that go with the annotations: one row for every annotator, or for every item.

They hold attributes, texts, skills, scores, authors, and known labels, which may also be an array
of class numbers or the truth of a simulated folder.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl

from ..answers.annotators import KINDS, kind_of_word
from ..base.names import as_names, text
from ..errors import DataError
from .columns import NEEDED, find_columns, plain_name
from .frames import names_of
from .json_records import load
from .sources import Source, open_source
from .tables import column_names, read_columns, read_roles
from .tools.peerannot import load_array

_FLOAT = re.compile(r"^-?\d\.\d{18}e[+-]\d\d$")  # as NumPy writes numbers
_SKILL = ["skill", "weight", "quality", "accuracy", "competence"]
_SCORE = ["score", "probability", "confidence", "p"]
_AUTHOR = ["author", *NEEDED["annotator"]]
_TEXTS = [
    *["text", "content", "sentence", "tweet", "comment", "message", "body", "post", "title"],
    *["image", "image_path", "file", "filename", "file_name", "path", "url"],
]


def read_annotators(path: str | Path) -> dict[str, dict[str, Any]]:
    """Return annotator → column → value; empty cells are `None`."""
    source = open_source(path)
    frame = read_columns(source, None)
    candidates = [*NEEDED["annotator"], "id", "name"]
    column = find_columns(frame.columns, {"annotator": candidates}, None, source.name)["annotator"]
    annotators: dict[str, dict[str, Any]] = {}
    for row in frame.iter_rows(named=True):
        name = row.pop(column)
        if name is None:
            raise source.fail("a row without an annotator; name them all")
        if text(name) in annotators:
            raise source.fail(f"annotator {text(name)!r} has two rows; keep one")
        annotators[text(name)] = row
    return annotators


def read_kinds(path: str | Path) -> dict[str, str]:
    """Return annotator → kind (person, model or code) from the column `kind` or `source`."""
    table = read_annotators(path)
    columns: Mapping[str, Any] = next(iter(table.values()), {})
    names = {plain_name(name): name for name in columns}
    column = next((names[name] for name in ("kind", "source", "type") if name in names), None)
    if column is None:
        message = "no column kind or source, which says who is a model"
        raise DataError(message, where=str(path))
    kinds: dict[str, str] = {}
    for name, row in table.items():
        word = row.get(column)
        kind = None if word is None else kind_of_word(word)
        if word is not None and kind is None:
            message = f"{name!r} is of the kind {text(word)!r}; there are {', '.join(KINDS)}"
            raise DataError(message, where=str(path))
        kinds[name] = kind or ""
    return kinds


def read_items(path: str | Path) -> dict[str, dict[str, Any]]:
    """Return item → column → value of a table about items; repeated items keep the first."""
    source = open_source(path)
    frame = read_columns(source, None)
    candidates = [*NEEDED["item"], "id"]  # the first of them that is there; others are attributes
    names = [plain_name(name) for name in frame.columns]
    item_names = [name for name in candidates if name in names][:1] or candidates
    column = find_columns(frame.columns, {"item": item_names}, None, source.name)["item"]
    frame = frame.filter(pl.col(column).is_not_null())
    items_in = names_of(frame[column]).to_list()
    rows = frame.drop(column).iter_rows(named=True)
    items: dict[str, dict[str, Any]] = {}
    for name, row in zip(items_in, rows, strict=True):
        items.setdefault(name, row)
    return items


def read_attributes(path: str | Path, annotators: Iterable[str]) -> dict[str, list[Any]]:
    """Return column → values of these annotators, in their order; unknown ones are `None`."""
    table, names = read_annotators(path), [str(name) for name in annotators]
    present = [name for name in names if name in table]
    if not present:
        examples = f"{next(iter(table), '')!r} here, {names[0] if names else ''!r} there"
        raise DataError(
            f"no annotator of the annotations is in this table ({examples}); "
            "write their names as in the annotations",
            where=str(path),
        )
    columns = list(table[present[0]])
    if not columns:
        message = "only names of annotators; add a column for every attribute"
        raise DataError(message, where=str(path))
    return {column: [table.get(name, {}).get(column) for name in names] for column in columns}


def has_texts(path: str | Path) -> bool:
    """Return whether a table has a column that is known to hold texts or names of images."""
    return any(plain_name(name) in _TEXTS for name in column_names(open_source(path)))


def read_texts(path: str | Path, show: Sequence[str] | None = None) -> pl.DataFrame:
    """Return a table of item and text, or the name of an image; repeated items keep the first.

    Several columns to show become one text, a line for each.
    """
    source = open_source(path)
    roles = {"item": [*NEEDED["item"], "id"], "text": _TEXTS}
    if show:
        item = find_columns(column_names(source), {"item": roles["item"]}, None, source.name)
        missing = [name for name in show if name not in column_names(source)]
        if missing:
            message = f"no column {missing[0]!r}"
            raise source.fail(message, remedy="choose among the others with {}", show=...)
        frame = read_columns(source, [item["item"], *show])
        names = show if len(show) > 1 else []
        lines = [
            pl.concat_str(pl.lit(f"{name}: " if names else ""), pl.col(name).cast(pl.String))
            for name in show
        ]
        joined = pl.concat_str(lines, separator="\n", ignore_nulls=True).alias("text")
        frame = frame.select(pl.col(item["item"]).alias("item"), joined)
    else:
        frame = read_roles(source, roles)
    frame = frame.drop_nulls()
    items = names_of(frame["item"])
    texts = frame["text"].cast(pl.String)
    return pl.DataFrame({"item": items, "text": texts}).unique("item", maintain_order=True)


def read_skills(path: str | Path) -> dict[str, float]:
    """Return `{annotator: skill}` from a table with two such columns, or from a JSON object."""
    return _numbers(path, {"annotator": NEEDED["annotator"], "skill": _SKILL})


def read_amounts(path: str | Path, role: str) -> dict[str, float]:
    """Return `{annotator: amount}`, the cost or limit of every annotator, likewise."""
    names = [role, "price", "amount", "max", "n_labels"]
    return _numbers(path, {"annotator": NEEDED["annotator"], role: names})


def read_scores(path: str | Path) -> dict[str, float]:
    """Return `{item: score}` from a table with two such columns, or from a JSON object."""
    return _numbers(path, {"item": NEEDED["item"], "score": _SCORE})


def read_waum(path: str | Path) -> dict[str, float]:
    """Return `{item: WAUM}` from a table of `identify -s waum`, or from a JSON object."""
    return _numbers(path, {"item": NEEDED["item"], "waum": ["waum", "waum_perworker"]})


def read_authors(path: str | Path) -> dict[str, str]:
    """Return `{item: annotator}` from a table, a JSON object, an array, or peerannot's list.

    The list has one annotator on each line, the first for item 0; -1 is nobody. An array likewise.
    """
    source = open_source(path)
    if source.format == "npy":
        with source.file() as file:
            array = load_array(file, source.name)
        authors = {str(number): text(name) for number, name in enumerate(array.ravel().tolist())}
    elif source.format == "csv" and len(column_names(source)) == 1:
        lines = [line.strip() for line in source.lines()]
        authors = {str(number): name for number, name in enumerate(filter(None, lines))}
    else:
        authors = _pairs(source, {"item": NEEDED["item"], "author": _AUTHOR})
    names = as_names(list(authors.values())).tolist()
    return {item: name for item, name in zip(authors, names, strict=True) if name != "-1"}


def read_side_tables(method: Any, names: Sequence[str]) -> Any:
    """Return a method with the tables read whose paths its settings have."""
    readers = {"authors": read_authors, "scores": read_scores, "skills": read_skills}
    paths = {name: getattr(method, name) for name in names}
    tables = {name: readers[name](path) for name, path in paths.items() if isinstance(path, str)}
    return replace(method, **tables) if tables else method


def read_removed(path: str | Path) -> set[str]:
    """Return the items to leave out, from a text whose last column names them.

    Columns are separated by tabs where there are any, else by spaces. Whole numbers may be written
    as NumPy writes floats.
    """
    try:
        lines = Path(path).read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as problem:
        raise DataError(str(problem), where=str(path)) from None
    names = (line.split("\t" if "\t" in line else None)[-1] for line in lines if line.strip())
    return {str(int(float(name))) if _FLOAT.match(name) else name for name in names}


def _pairs(source: Source, roles: Mapping[str, Sequence[str]]) -> dict[str, Any]:
    """Return the two columns of a table, or the entries of a JSON object."""
    key, value = roles
    if source.format == "json" or (
        source.format == "jsonl" and sum(map(bool, map(str.strip, source.lines()))) == 1
    ):
        pairs = load(source)
        if isinstance(pairs, dict) and value not in pairs:
            return dict(zip(as_names(pairs), pairs.values(), strict=True))
    frame = read_roles(source, roles).drop_nulls()
    names = names_of(frame[key])
    if names.is_duplicated().any():
        raise source.fail(f"{key} {names.filter(names.is_duplicated())[0]!r} appears twice")
    return dict(zip(names.to_list(), frame[value].to_list(), strict=True))


def _numbers(path: str | Path, roles: Mapping[str, Sequence[str]]) -> dict[str, float]:
    source = open_source(path)
    numbers: dict[str, float] = {}
    for name, value in _pairs(source, roles).items():
        try:
            numbers[name] = float(value)
        except (TypeError, ValueError):
            numbers[name] = math.nan
        if not math.isfinite(numbers[name]):
            raise source.fail(f"{name!r} has {value!r}, which is not a number")
    return numbers
