"""What is wrong with the lines of a text table: NULs, marks, further headers, and quotes.

Files that were joined have a header, and perhaps a byte order mark, in the middle; those of a
system that crashed have NULs. A quote that closes some lines later makes one field of all rows
between, which no reader of CSV can know; but such a field holds lines that look like rows.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from ..answers.left_out import LeftOut
from ..base.names import NUMBER

if TYPE_CHECKING:
    from .sources import Source

INSIDE = "inside a quoted field"  # a reason to leave rows out
_MARK = b"\xef\xbb\xbf"  # byte order
_CHUNK = 2**18
_SAMPLE = 20_000  # ordinary rows with which lines of a field are compared
_NEARLY_ALL = 0.8  # of the lines of a field are as long as rows
_SHOWN = 3
# The parity of the quotes up to every bit of a byte, and of all of them.
_BITS = np.unpackbits(np.arange(256, dtype=np.uint8)[:, None], axis=1)  # (byte, bit)
_PARITY = np.packbits(np.bitwise_xor.accumulate(_BITS, axis=1))


@dataclass(frozen=True)
class LineFaults:
    """What was wrong with the lines of a text table.

    Attributes
    ----------
    nuls, marks, headers
        How many NUL characters, byte order marks in the middle and repeated headers are in it.
    swallowed
        First and last line of every quoted field whose lines look like rows.
    """

    nuls: int = 0
    marks: int = 0
    headers: int = 0
    swallowed: tuple[tuple[int, int], ...] = ()

    @property
    def left_out(self) -> LeftOut:
        """The rows that were not read."""
        rows = Counter({"that repeat the header": self.headers} if self.headers else {})
        for number, (first, last) in enumerate(self.swallowed):
            where = f"lines {first} to {last}" if number < _SHOWN else "further lines"
            rows[f"{INSIDE} ({where})"] += last - first
        return LeftOut(dict(rows))

    @property
    def notes(self) -> tuple[str, ...]:
        """A sentence for each fault, but not for rows that were left out."""
        notes = []
        if self.nuls:
            notes.append(f"{_many(self.nuls, 'NUL character')} left out of the texts")
        if self.marks:
            notes.append(f"{_many(self.marks, 'byte order mark')} left out in the middle")
        if self.swallowed:
            notes.append(self.swallowing)
        return tuple(notes)

    @property
    def swallowing(self) -> str:
        """Where quoted fields hold what looks like rows, and what would do."""
        lines = ", ".join(f"{first} to {last}" for first, last in self.swallowed[:_SHOWN])
        n_further = len(self.swallowed) - _SHOWN
        further = f" and {n_further} more" if n_further > 0 else ""
        fields = "one quoted field" if len(self.swallowed) == 1 else "quoted fields"
        return (
            f"lines {lines}{further} are {fields}, and look like rows; close the quote in line "
            f"{self.swallowed[0][0]}, or take it away"
        )


def mended(source: Source, width: int) -> Source:
    """Return a text table of so many columns without NULs and marks in the middle.

    What was wrong with it is noted in its `faults`.
    """
    faults = _scan(source, width)
    source.faults[:] = [faults]
    if not (faults.nuls or faults.marks):
        return source
    body = _whole(source).replace(b"\0", b"").replace(b"\n" + _MARK, b"\n")
    return replace(source, content=body, packed=False)


def without_headers(source: Source, frame: pl.DataFrame, header: Sequence[str]) -> pl.DataFrame:
    """Return a table without the rows that are its header once more; note how many."""
    if frame.width < 2:
        return frame
    may_repeat = frame.to_series() == header[0]
    if not may_repeat.any():
        return frame
    columns = zip(frame.columns, header, strict=True)
    is_header = frame.select(pl.all_horizontal(pl.col(a) == b for a, b in columns)).to_series()
    rows = frame.filter(~is_header.fill_null(False))
    faults = source.faults[0] if source.faults else LineFaults()
    source.faults[:] = [replace(faults, headers=frame.height - rows.height)]
    return rows


def _many(count: int, word: str) -> str:
    return f"{count} {word}{' is' if count == 1 else 's are'}"


def _whole(source: Source) -> bytes:
    if source.packed:
        return source.text().encode()
    with source.file() as file:
        return file.read()


def _scan(source: Source, width: int) -> LineFaults:
    """Return what is wrong with the lines, but for headers, which only their fields can show."""
    nuls, marks, line = 0, 0, 1
    swallowed: list[tuple[int, int]] = []
    previous, passed = b"", list[bytes]()  # whose lines were not counted yet
    for position, (rows, breaks_in_quotes) in enumerate(_rows(source)):
        nuls += rows.count(b"\0") if b"\0" in rows else 0
        if b"\xef" in rows:
            marks += rows.count(b"\n" + _MARK) + (position > 0 and rows.startswith(_MARK))
        if width > 1 and breaks_in_quotes:
            line += sum(part.count(b"\n") for part in passed)
            passed.clear()
            fields = _swallowed(rows, source.separator, width, previous)
            swallowed += [(line + first, line + last) for first, last in fields]
        passed.append(rows)
        previous = rows
    return LineFaults(nuls, marks, swallowed=tuple(swallowed))


def _rows(source: Source) -> Iterator[tuple[bytes, bool]]:
    """Yield the content in parts of whole rows, and whether there are line breaks in quotes."""
    if source.packed:
        lines = pl.read_lines(source.content)["line"]
        if not lines.str.contains_any(['"', "\0", "\ufeff"]).any():
            return
        source = replace(source, content=source.text().encode(), packed=False)
    with source.file() as file:
        while rows := file.read(_CHUNK) + file.readline():
            if b'"' not in rows:
                yield rows, False
                continue
            breaks_in_quotes, is_open = _quotes(rows)
            while is_open and (following := file.read(len(rows)) + file.readline()):
                rows += following
                breaks_in_quotes, is_open = _quotes(rows)
            yield rows, breaks_in_quotes


def _quotes(rows: bytes) -> tuple[bool, bool]:
    """Return whether a line ends within quotes, and whether the last quote stays open.

    It looks at eight bytes at a time.
    """
    content = np.frombuffer(rows, dtype=np.uint8)
    parity = _PARITY[np.packbits(content == ord('"'))]
    running = np.bitwise_xor.accumulate(parity & 1)
    carried = np.zeros_like(parity)
    carried[1:] = -running[:-1].view(np.int8)  # all bits, or none
    within = (parity ^ carried) & np.packbits(content == ord("\n"))
    return bool(within.any()), bool(running[-1])


def _swallowed(rows: bytes, separator: str, width: int, previous: bytes) -> list[tuple[int, int]]:
    """Return the first and last line, from 0, of quoted fields whose lines look like rows.

    They are compared with the other rows and with the `previous` ones.
    """
    if not rows.endswith(b"\n"):
        rows += b"\n"
    content = np.frombuffer(rows, dtype=np.uint8)
    ends = np.flatnonzero(content == ord("\n"))
    open_at_end = np.bitwise_xor.accumulate((content == ord('"')).view(np.uint8))[ends] == 1
    marks = np.flatnonzero(content == ord(separator))
    fields = 1 + np.diff(np.searchsorted(marks, ends), prepend=0)
    as_long = np.concatenate([[0], np.cumsum(fields == width)])
    after = np.concatenate([[False], open_at_end[:-1]])  # whether a line begins within quotes
    first = np.flatnonzero(open_at_end & ~after)
    last = np.flatnonzero(after & ~open_at_end)
    first = first[: len(last)]  # the last quote may stay open, which is an error elsewhere
    likely = as_long[last + 1] - as_long[first] >= _NEARLY_ALL * (last + 1 - first)
    if not likely.any():
        return []
    starts = np.concatenate([[0], ends[:-1] + 1])

    def line(number: int) -> str:
        return rows[starts[number] : ends[number]].decode(errors="replace").rstrip("\r")

    ordinary = np.flatnonzero(~open_at_end & ~after & (fields == width))[:_SAMPLE]
    earlier = previous.decode(errors="replace").splitlines()[:_SAMPLE]
    plain_lines = [*earlier, *(line(number) for number in ordinary.tolist())]
    cells = [text.replace('"', "").split(separator) for text in plain_lines]
    cell_rows = [row for row in cells if len(row) == width]
    pairs = list(zip(first[likely].tolist(), last[likely].tolist(), strict=True))
    held = [_held([line(n) for n in range(a, b + 1)], separator, width) for a, b in pairs]
    look_alike = _LookAlike(cell_rows, held)
    return [pair for pair, inside in zip(pairs, held, strict=True) if look_alike(inside)]


def _held(lines: Sequence[str], separator: str, width: int) -> list[tuple[int, str]]:
    """Return the fields that a quoted field would hold if its lines were rows: column and text."""
    begins = lines[0].rpartition('"')[0].count(separator)
    stops = lines[-1].partition('"')[0].count(separator)
    held = []
    for number, line in enumerate(lines):
        cells = line.replace('"', "").split(separator)
        if len(cells) == width:
            start = begins if number == 0 else 0
            stop = stops + 1 if number == len(lines) - 1 else width
            held += [(column, cells[column]) for column in range(start, stop)]
    return held


class _LookAlike:
    """Whether fields look like those of their columns elsewhere: the same texts, or numbers."""

    def __init__(self, rows: list[list[str]], held: list[list[tuple[int, str]]]) -> None:
        self._known = {(column, text) for row in rows for column, text in enumerate(row)}
        different = dict.fromkeys(map(tuple, held))  # a text may stand beside each of its labels
        times = Counter(chain.from_iterable(different))
        self._known |= {
            cell for cell, count in times.items() if count > 1 and not cell[1].startswith(" ")
        }
        columns = list(zip(*rows[1:], strict=True))  # the first is the header
        self._numbers = {
            column for column, texts in enumerate(columns) if all(map(_is_number, texts))
        }

    def __call__(self, cells: list[tuple[int, str]]) -> bool:
        """Return whether at least half of them do, or a quarter where no text begins with a space.

        Commas of prose have a space behind them.
        """
        cells = [cell for cell in cells if cell[1]]
        alike = sum(
            cell in self._known or (cell[0] in self._numbers and _is_number(cell[1]))
            for cell in cells
        )
        prose = any(text.startswith(" ") for column, text in cells if column)
        return bool(alike) and alike >= len(cells) / (2 if prose else 4)


def _is_number(text: str) -> bool:
    return re.match(NUMBER, text) is not None
