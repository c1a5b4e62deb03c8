"""Long tables without a header: item, annotator, label; or annotator, item, label, gold.

The first is how crowd-truth sets are published, the second is the active crowd toolkit's. A
table has no header if its first line looks like those below. What is assumed about columns is in
a note; `--columns item=2,annotator=1,label=3` overrides it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import polars as pl

from ..base.names import NUMBER
from .columns import NEEDED, is_known
from .format import Export, Head, Question
from .line_faults import without_headers
from .sources import Source
from .tables import first_lines, read_unnamed, without_empty

_WORKERS = ("w", "worker", "a", "ann", "annotator", "user", "u", "rater")


def recognises(head: Head) -> bool:
    """Return whether a table of three or four columns begins with data."""
    if head.shape != "table" or len(head.names) not in (3, 4) or len(head.lines) < 3:
        return False
    lines = [line for line in head.lines if any(line)]
    if any(len(line) != len(head.names) or "" in line[:3] for line in lines):
        return False
    pairs = [line[:2] for line in lines]
    return not has_header(lines) and len({*pairs}) > 0.9 * len(pairs)


def has_header(lines: Sequence[tuple[str, ...]]) -> bool:
    """Return whether the first line names columns rather than being one row of data.

    Data repeat: in two columns at least, the first value occurs again below, or all are numbers.
    """
    first, *below = lines or [()]
    below = [line for line in below if len(line) == len(first)]
    if not below or any(map(is_known, first)):
        return True
    alike = 0
    for position, cell in enumerate(first):
        column = [line[position] for line in below]
        numbers = all(map(_is_number, column))
        if numbers and not _is_number(cell):
            return True
        alike += numbers or cell in column
    return alike < 2


def read(source: Source) -> Export:
    """Return the answers of a table without a header, its columns recognised by their content."""
    frame = read_unnamed(source)
    if frame.width not in (3, 4):
        raise source.fail(
            f"{frame.width} columns and no header; say --columns item=1,annotator=2,…"
        )
    positions = _positions(frame)
    columns = ", ".join(f"{role} {position}" for role, position in positions.items())
    note = f"no header: columns are taken as {columns}; --columns item=…,annotator=… overrides it"
    return _export(source, frame, positions, (note,))


def by_number(source: Source, columns: Mapping[str, str]) -> Export | None:
    """Return a table whose columns are given by number; nothing if they are given by name."""
    if not all(position.isdecimal() and len(position) < 6 for position in columns.values()):
        return None
    lines = [line for line in first_lines(source, 200) if any(line)]
    named = has_header(lines)
    if named and lines and {*columns.values()} & {*lines[0]}:
        return None
    frame = read_unnamed(source)
    for role, position in columns.items():
        if not 1 <= int(position) <= frame.width:
            raise source.fail(f"no column {position} for {role}; there are {frame.width}")
    lacking = next((role for role in NEEDED if role not in columns), None)
    if lacking is not None:
        raise source.fail(f"columns are given by number, but not the {lacking}; add {lacking}=…")
    positions = {role: int(position) for role, position in columns.items()}
    if named:
        frame = without_headers(source, frame.slice(1), [name or "" for name in frame.row(0)])
    return _export(source, frame, positions)


def _export(
    source: Source, frame: pl.DataFrame, positions: Mapping[str, int], notes: tuple[str, ...] = ()
) -> Export:
    answers = pl.DataFrame(
        [
            without_spaces(frame[frame.columns[position - 1]]).alias(role)
            for role, position in positions.items()
        ]
    )
    answers, left_out = without_empty(answers, source)
    gold: dict[str, str] = {}
    if "gold" in positions:
        known = answers.filter(pl.col("gold").fill_null("") != "").unique(
            "item", maintain_order=True
        )
        gold = dict(zip(known["item"].to_list(), known["gold"].to_list(), strict=True))
        answers = answers.drop("gold")
    return Export({"label": Question(answers, gold=gold, left_out=left_out)}, notes=notes)


def without_spaces(column: pl.Series) -> pl.Series:
    """Return a column of numbers without the spaces beside them; names stay as they are."""
    plain = column.str.strip_chars()
    return plain if plain.str.contains(NUMBER).all() else column


def _positions(frame: pl.DataFrame) -> dict[str, int]:
    """Return role → number of the column."""
    first, second, _, *gold = frame.columns
    if gold:  # an item has one gold label, an annotator has several
        swapped = _determines(frame, second, gold[0]) or not _determines(frame, first, gold[0])
    else:
        swapped = _are_annotators(frame[first]) and not _are_annotators(frame[second])
    item, annotator = (2, 1) if swapped else (1, 2)
    return {"item": item, "annotator": annotator, "label": 3} | ({"gold": 4} if gold else {})


def _determines(frame: pl.DataFrame, key: str, gold: str) -> bool:
    return frame.select(key, gold).n_unique() == frame[key].n_unique()


def _are_annotators(names: pl.Series) -> bool:
    """Return whether all names are those of annotators: w12, worker_3, user-a."""
    starts = names.str.to_lowercase().str.extract(r"^([a-z]+)[ _\-]?\d*", 1)
    return bool(starts.is_in(_WORKERS).fill_null(False).all())


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True
