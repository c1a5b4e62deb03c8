"""What the cells of text tables hold: lists, times, and texts that become codes.

Lists are `['pos', 'neg']`, `["pos", "neg"]`, `['pos' 'neg']`, `[UUID('…'), None]` or
`[array(['a', 'b'], dtype=object)]`, as Python, pandas, NumPy or JSON write them. Nothing in them is
evaluated: they are taken apart into brackets, texts and words.

Texts become codes by their hashes, several times faster than by the texts. A table of hashes shows
for every row another one with the same hash. One row of each is a name; names are sorted, and in
the end every row is compared with the name of its code. Should two texts have one hash, all begins
again with other hashes.
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from ..base.arrays import Codes, smallest_dtype
from ..base.names import NUMBER, Names

_TOKEN = re.compile(
    r"""\s*(?:
        (?P<mark>[\[\](),])
      | (?P<text>[rRuUbB]?'(?:[^'\\]|\\.)*' | [rRuUbB]?"(?:[^"\\]|\\.)*")
      | (?P<number>[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?(?![\w.]))
      | (?P<setting>\w+=)
      | (?P<word>[\w.<>]+)
    )\s*""",
    re.VERBOSE | re.DOTALL,
)
_WORDS = {
    **dict.fromkeys(("None", "null", "nan", "NaN", "NA", "<NA>", "NaT"), None),
    **dict.fromkeys(("True", "true"), True),
    **dict.fromkeys(("False", "false"), False),
}
_DEEPEST = 20
_BLOCK = 2**17  # rows at a time
_MOST_BITS = 22  # of an index into the table of hashes
_GOLDEN = np.uint64(0x9E3779B97F4A7C15)  # multiplying by it gives other indices

Rows = npt.NDArray[np.uint32]
Hashes = npt.NDArray[np.uint64]


def parse_list(cell: str) -> list[Any] | None:
    """Return the list in a cell; nothing where it is none, or not whole.

    >>> parse_list("['pos' 'neg']"), parse_list("[3, nan, [True]]"), parse_list("pos")
    (['pos', 'neg'], [3, None, [True]], None)
    """
    if not cell.lstrip().startswith("["):
        return None
    try:
        tokens = _tokens(cell)
        value = _value(next(tokens), tokens, 0)
        return value if isinstance(value, list) and next(tokens, None) is None else None
    except (ValueError, SyntaxError, StopIteration):
        return None


def _tokens(cell: str) -> Iterator[tuple[str, str]]:
    position = 0
    while position < len(cell):
        match = _TOKEN.match(cell, position)
        if match is None or match.lastgroup is None:
            raise ValueError(cell[position : position + 20])
        yield match.lastgroup, match[match.lastgroup]
        position = match.end()


def _value(token: tuple[str, str], tokens: Iterator[tuple[str, str]], depth: int) -> Any:
    kind, written = token
    if depth > _DEEPEST:
        raise ValueError("nested too deep")
    if token == ("mark", "["):
        return list(_until("]", tokens, depth))
    if token == ("mark", "("):
        return list(_until(")", tokens, depth))
    if kind == "text":
        return _text(written)
    if kind == "number":
        return float(written) if re.search(r"[.eE]", written) else int(written)
    if kind == "word" and written in _WORDS:
        return _WORDS[written]
    if kind == "word" and next(tokens) == ("mark", "("):  # UUID('…'), array([…])
        return next(_until(")", tokens, depth), None)
    raise ValueError(written)


def _text(quoted: str) -> str:
    """Return one text between quotes, with the escapes of JSON or of Python."""
    with suppress(ValueError):
        return str(json.loads(quoted))
    value = ast.literal_eval(quoted)
    return value if isinstance(value, str) else value.decode("utf-8")


def _until(end: str, tokens: Iterator[tuple[str, str]], depth: int) -> Iterator[Any]:
    """Yield the values up to a bracket; settings such as `dtype=object` are skipped."""
    values = []
    while (token := next(tokens)) != ("mark", end):
        if token[0] == "setting":
            next(tokens)
        elif token != ("mark", ","):
            values.append(_value(token, tokens, depth + 1))
    return iter(values)


def code_texts(column: pl.Series) -> tuple[Codes, Names]:
    """Return codes and names in natural order of a column of texts without gaps.

    >>> codes, names = code_texts(pl.Series(["b", "a", "b"]))
    >>> codes.tolist(), names.tolist()
    ([1, 0, 1], ['a', 'b'])
    """
    seed = 0
    codes, names = _by_hash(column, seed)
    while not _are_right(codes, names, column):
        seed += 1
        codes, names = _by_hash(column, seed)
    return codes, np.array(names.to_list(), dtype=object)


def _are_right(codes: Codes, names: pl.Series, column: pl.Series) -> bool:
    """Return whether codes give every row its text."""
    return all((names.gather(codes[block]) == column[block]).all() for block in _blocks(len(codes)))


def _blocks(size: int) -> list[slice]:
    """Return slices of rows that fit into the processor's cache."""
    return [slice(start, min(start + _BLOCK, size)) for start in range(0, size, _BLOCK)]


def _by_hash(column: pl.Series, seed: int) -> tuple[Codes, pl.Series]:
    """Return codes and names, as if texts with the same hash were the same."""
    hashes = column.hash(seed).to_numpy()
    representative = rows_of_hash(hashes)
    own = np.flatnonzero(
        representative == np.arange(len(representative), dtype=representative.dtype)
    )
    names = _natural_order(column.gather(own).sort())
    rank: npt.NDArray[Any] = np.empty(len(column), dtype=smallest_dtype(len(own)))
    # The same hashes in two orders: that of the rows, and that of the names.
    rank[own[np.argsort(hashes[own])]] = np.argsort(names.hash(seed).to_numpy())
    return rank[representative], names


def rows_of_hash(hashes: Hashes) -> Rows:
    """Return a row with the same hash for every row, one and the same for all of these.

    >>> rows_of_hash(np.array([7, 2**60, 7], dtype=np.uint64)).tolist()
    [2, 1, 2]
    """
    bits = min(max(len(hashes).bit_length(), 1), _MOST_BITS)
    table, shift = np.empty(2**bits, dtype=np.uint32), np.uint64(64 - bits)
    representative, collisions = (
        np.empty(len(hashes), dtype=np.uint32),
        [np.empty(0, dtype=np.uint32)],
    )
    for block in _blocks(len(hashes)):
        table[hashes[block] >> shift] = np.arange(block.start, block.stop, dtype=np.uint32)
    for block in _blocks(len(hashes)):
        representative[block] = holder = table[hashes[block] >> shift]
        collided = np.flatnonzero(hashes[holder] != hashes[block]) + block.start
        collisions.append(collided.astype(np.uint32))
    pending = np.concatenate(collisions)  # whose index went to another hash
    mixed = hashes[pending]
    while len(pending):
        mixed *= _GOLDEN
        index = mixed >> shift
        table[index] = pending
        representative[pending] = holder = table[index]
        collides = hashes[holder] != hashes[pending]
        pending, mixed = pending[collides], mixed[collides]
    return representative


def _natural_order(names: pl.Series) -> pl.Series:
    """Return sorted texts in the order of their values, if all of them are numbers."""
    if not names.str.contains(NUMBER).all():
        return names
    numbers = names.cast(pl.Float64, strict=False)
    if not numbers.is_finite().all():
        return names
    return names.gather(np.argsort(numbers.to_numpy(), kind="stable"))


def as_texts_of_times(column: pl.Series) -> pl.Series:
    """Return a column of texts, null where one has other characters than ASCII.

    No time that polars knows has any, and at digits of other scripts it panics.
    """
    return column.set(column.str.len_bytes() != column.str.len_chars(), None)


def as_times(values: list[Any]) -> pl.Series:
    """Return seconds since 1970, or written times, as times of UTC; as they are if unreadable."""
    if all(value is None or isinstance(value, (int, float)) for value in values):
        seconds = pl.Series(values, dtype=pl.Float64, strict=False)
        if not seconds.is_between(0, 1e11).all():
            return seconds
        return (seconds * 1e6).cast(pl.Int64).cast(pl.Datetime("us"))
    written = pl.Series([None if value is None else str(value) for value in values])
    readable = as_texts_of_times(written)
    for zone in ("UTC", None):
        try:
            times = readable.str.to_datetime(time_unit="us", time_zone=zone, strict=False)
        except pl.exceptions.PolarsError:
            continue
        if times.null_count() == written.null_count():
            return times.dt.replace_time_zone(None)
    return written
