"""Long tables without a header: item, annotator, label; or annotator, item, label, gold.

The first is how crowd-truth sets are published, the second is the active crowd toolkit's. A
table has no header if its first line looks like those below. What is assumed about columns is
said in a note; `--columns item=2,annotator=1,label=3` tells otherwise.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import polars as pl

from .columns import is_known
from .exports import Export, Head, Question
from .sources import Source
from .tables import first_lines, read_unnamed

__all__ = ["by_number", "has_header", "read", "recognises"]

_WORKERS = ("w", "worker", "a", "ann", "annotator", "user", "u", "rater")
_NEEDED = ("item", "annotator", "label")


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

    Data repeat: in two columns at least, what stands in the first line stands below again, or
    all of it is numbers.
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
    """Return the answers of a table without a header, its columns told by their content."""
    frame = read_unnamed(source)
    if frame.width not in (3, 4):
        raise source.fail(
            f"{frame.width} columns and no header; say --columns item=1,annotator=2,…"
        )
    positions = _places(frame)
    told = ", ".join(f"{role} {position}" for role, position in positions.items())
    found = _told(frame, positions)
    gold = _gold(found) if "gold" in positions else {}
    note = f"no header: columns are taken as {told}; --columns item=…,annotator=… tells otherwise"
    return Export({"label": Question(found.drop("gold", strict=False), gold=gold)}, notes=(note,))


def by_number(source: Source, columns: Mapping[str, str]) -> Export | None:
    """Return a table whose columns are told by numbers; nothing where they are told by names."""
    lines = [line for line in first_lines(source, 200) if any(line)]
    named = has_header(lines)
    if not all(position.isdecimal() and len(position) < 6 for position in columns.values()):
        return None
    if named and lines and {*columns.values()} & {*lines[0]}:
        return None
    frame = read_unnamed(source)
    for role, position in columns.items():
        if not 1 <= int(position) <= frame.width:
            raise source.fail(f"no column {position} for {role}; there are {frame.width}")
    lacking = next((role for role in _NEEDED if role not in columns), None)
    if lacking is not None:
        raise source.fail(f"columns are told by number, but not the {lacking}; add {lacking}=…")
    found = _told(
        frame.slice(1) if named else frame, {role: int(at) for role, at in columns.items()}
    )
    gold = _gold(found) if "gold" in columns else {}
    return Export({"label": Question(found.drop("gold", strict=False), gold=gold)})


def _told(frame: pl.DataFrame, positions: Mapping[str, int]) -> pl.DataFrame:
    return frame.select(
        pl.col(frame.columns[position - 1]).str.strip_chars().alias(role)
        for role, position in positions.items()
    )


def _places(frame: pl.DataFrame) -> dict[str, int]:
    """Return role → number of the column."""
    first, second, _, *gold = frame.columns
    if gold:  # an item has one gold label, which tells it from an annotator
        item_first = not _determines(frame, second, gold[0]) and _determines(frame, first, gold[0])
        order = (1, 2) if item_first else (2, 1)
        return {"item": order[0], "annotator": order[1], "label": 3, "gold": 4}
    swapped = _looks_like(frame[first]) and not _looks_like(frame[second])
    item, annotator = (2, 1) if swapped else (1, 2)
    return {"item": item, "annotator": annotator, "label": 3}


def _determines(frame: pl.DataFrame, key: str, gold: str) -> bool:
    return frame.select(key, gold).n_unique() == frame[key].n_unique()


def _looks_like(names: pl.Series) -> bool:
    """Return whether all names are those of annotators: w12, worker_3, user-a."""
    starts = names.str.to_lowercase().str.extract(r"^([a-z]+)[ _\-]?\d*", 1)
    return bool(starts.is_in(_WORKERS).fill_null(False).all())


def _gold(found: pl.DataFrame) -> dict[str, str]:
    known = found.filter(pl.col("gold").fill_null("") != "").unique("item", maintain_order=True)
    return dict(zip(known["item"].to_list(), known["gold"].to_list(), strict=True))


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True
