"""Files as dataframes: CSV, Parquet, Arrow and JSON records."""

from __future__ import annotations

import csv
import io
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from itertools import dropwhile, islice, takewhile
from typing import Any

import polars as pl

from ..base.formulas import MARK, as_before
from ..answers.left_out import LeftOut
from ..base.panics import without_panics
from .columns import find_columns, is_known
from .dataset_folders import FOLDER, features_of, read_dataset, with_class_names
from .json_records import frame_of_records, load_records
from .line_faults import mended, without_headers
from .sources import Source, ragged_line

_TEXT = ("csv", "tsv")


def column_names(source: Source) -> list[str]:
    """Return the names in a table's header."""
    match source.format:
        case "parquet":
            return list(_undamaged(source, lambda: pl.read_parquet_schema(source.content)))
        case "arrow":
            return _read_arrow(source, n_rows=0).columns
        case "dataset":
            return read_dataset(source, _read_first, 0).columns
        case "csv" | "tsv":
            return [name for name in _header(source) if name != MARK]
    return frame_of_records(source).columns


def _header(source: Source) -> list[str]:
    return list(next(iter(first_lines(source, 1)), ()))


def first_rows(source: Source, most: int) -> list[dict[str, Any]]:
    """Return the first rows of a Parquet or Arrow table, or of the parts of a data set."""
    if source.format == FOLDER:
        return read_dataset(source, _read_first, most).head(most).to_dicts()
    first = _read_first(source, most)
    rows: list[dict[str, Any]] = _undamaged(source, first.to_dicts)  # times may be out of all years
    return rows


def first_lines(source: Source, most: int) -> list[tuple[str, ...]]:
    """Return the first lines of a table of texts, field by field; fewer where one is damaged."""
    lines: list[tuple[str, ...]] = []
    rows = _fields(source, 20 * most)
    with suppress(csv.Error):
        lines += map(tuple, islice(dropwhile(lambda row: not row, rows), most))
    return with_one_header(lines)


def with_one_header(lines: list[tuple[str, ...]]) -> list[tuple[str, ...]]:
    """Return lines without copies of the first, if it names columns: files were joined.

    It does by known names, or if no other line has any of them in its column.
    """
    others = [line for line in lines if line != lines[0]]
    if len(others) + 1 >= len(lines):
        return lines
    columns = list(zip(*others, strict=False))
    used = any(cell in column for cell, column in zip(lines[0], columns, strict=False))
    names = any(map(is_known, lines[0])) or (bool(columns) and not used)
    return [lines[0], *others] if names else lines


def read_columns(
    source: Source, columns: Sequence[str] | None, *, has_header: bool = True
) -> pl.DataFrame:
    """Return columns of a table, all if `None`; as text where the format has no types.

    The columns of a text without a header are 1, 2, ….
    """
    columns = None if columns is None else list(columns)
    match source.format:
        case "parquet":
            return _read_parquet(source, columns=columns)
        case "arrow":
            return _read_arrow(source, columns=columns)
        case "dataset":
            frame = read_dataset(source, _read_first)
            return frame if columns is None else frame.select(columns)
        case "json" | "jsonl":
            frame = frame_of_records(source)
            return frame if columns is None else frame.select(columns)
    names = _header(source)  # read here: polars leaves doubled quotes in names
    clean = mended(source, len(names))
    wanted = [k for k, name in enumerate(names) if name != MARK]
    positions = wanted if columns is None else sorted(map(names.index, columns))
    options: dict[str, Any] = {"columns": list(positions)}
    if not has_header:
        blank = sum(1 for _ in takewhile(lambda line: not line, source.lines(1000)))
        options = {"has_header": False, "skip_lines": blank}
    try:
        frame = pl.read_csv(
            clean.content, separator=source.separator, infer_schema=False, glob=False, **options
        )
    except pl.exceptions.NoDataError:
        raise source.fail("empty") from None
    except (pl.exceptions.PolarsError, OSError) as problem:
        raise source.fail(ragged_line(source) or str(problem).splitlines()[0]) from None
    if not has_header:
        frame.columns = [str(position) for position in range(1, frame.width + 1)]
        return frame
    if MARK in names:
        frame = as_before(frame)
    names = [names[position] for position in positions]
    frame = without_headers(source, frame, names)
    frame.columns = names if len(set(names)) == len(names) else _different(names)
    return frame


def read_roles(
    source: Source,
    roles: Mapping[str, Sequence[str]],
    *,
    columns: Mapping[str, str] | None = None,
    optional: Mapping[str, Sequence[str]] | None = None,
    prefix: str | None = None,
) -> pl.DataFrame:
    """Return the columns of a table by role, and those whose names begin with a prefix."""
    present = column_names(source)
    names = find_columns(present, roles, columns, source.name, optional)
    more = [name for name in present if prefix and name.startswith(prefix)]
    frame = read_columns(source, list(dict.fromkeys([*names.values(), *more])))
    return frame.select(*(pl.col(name).alias(role) for role, name in names.items()), *more)


def rows_of(source: Source) -> list[dict[str, Any]]:
    """Return the rows of a table or of JSON, lists and objects in them included."""
    if source.format in ("json", "jsonl"):
        return load_records(source)
    return read_columns(source, None).to_dicts()


def read_unnamed(source: Source) -> pl.DataFrame:
    """Return a table of texts whose first line is a row like the others; columns are 1, 2, …."""
    if source.format not in _TEXT:
        raise source.fail(f"a {source.format}, which names its columns, and not a table of texts")
    frame = read_columns(source, None, has_header=False)
    ragged = ragged_line(source)  # polars fills short rows
    if ragged is not None:
        raise source.fail(ragged)
    return frame.with_columns(pl.col("1").str.strip_prefix("\ufeff"))


def without_empty(frame: pl.DataFrame, source: Source | None) -> tuple[pl.DataFrame, LeftOut]:
    """Return a table without the rows whose fields are all empty, and how many rows these were."""
    height = frame.height
    frame = frame.filter(~pl.all_horizontal(pl.all().is_null()))
    empty = height - frame.height
    empty -= blank_lines(source, empty) if empty else 0
    return frame, LeftOut({"empty": empty} if empty else {})


def blank_lines(source: Source | None, most: int) -> int:
    """Return how many lines of a text, `most` at most, have no fields at all, so are no rows."""
    if source is None or source.format not in _TEXT:
        return 0
    if not source.packed and _blank_at_end(source) >= most:
        return most
    lines = pl.Series(source.lines(), dtype=pl.String).str.strip_chars_end("\r")
    filled = (lines != "").arg_true()
    if not len(filled):
        return 0
    at_end = len(lines) - 1 - int(filled[-1])
    lines = lines[int(filled[0]) : int(filled[-1]) + 1]
    if at_end >= most or not (blank := int((lines == "").sum())):
        return min(at_end, most)
    if lines.str.contains('"', literal=True).any():  # a line may be one of a field's
        rows = csv.reader((f"{line}\n" for line in lines), delimiter=source.separator)
        blank = 0
        with suppress(csv.Error):
            blank = sum(not row for row in rows)
    return min(at_end + blank, most)


def _blank_at_end(source: Source) -> int:
    """Return how many lines without fields end a text that is not packed."""
    with source.file() as file:
        file.seek(max(file.seek(0, io.SEEK_END) - 2**16, 0))
        end = file.read()
    return max(end[len(end.rstrip(b"\r\n")) :].count(b"\n") - 1, 0)


def _fields(source: Source, most: int | None = None) -> Any:
    """Return the lines of a text table field by field, without NULs and byte order marks."""
    lines = (line.removeprefix("\ufeff").replace("\0", "") for line in source.lines(most))
    return csv.reader((f"{line}\n" for line in lines), delimiter=source.separator)


def line_of_row(source: Source | None, row: int) -> str:
    """Return the line of a row, which quoted line breaks may have moved, or its number."""
    if source is not None and source.format in _TEXT:
        rows = _fields(source)
        start, count = 1, -1
        header: list[str] | None = None
        with suppress(csv.Error):  # polars takes some line breaks that Python does not
            for fields in rows:
                count += bool(fields) and fields != header
                header = header or fields
                if count == row + 1:
                    break
                start = rows.line_num + 1
        return f"line {start}"
    lines = source is not None and source.format == "jsonl"
    return f"{'line' if lines else 'row'} {row + 1}"


def _different(names: list[str]) -> list[str]:
    """Return names of columns, a number added to one that is a repetition."""
    taken = set(names)
    times: Counter[str] = Counter()
    different = []
    for name in names:
        times[name] += 1
        free = name
        while times[name] > 1 and free in taken:
            free = f"{name} ({times[name]})"
            times[name] += free in taken
        taken.add(free)
        different.append(free)
    return different


def _read_first(source: Source, most: int | None) -> pl.DataFrame:
    """Return the first rows of a Parquet or Arrow table, all if `None`."""
    if source.format not in ("parquet", "arrow"):
        raise source.fail(f"a {source.format}, not Parquet or Arrow")
    return (_read_parquet if source.format == "parquet" else _read_arrow)(source, n_rows=most)


def _read_parquet(source: Source, **options: Any) -> pl.DataFrame:
    """Return a Parquet table; classes by name, if `datasets` wrote it."""
    frame: pl.DataFrame = _undamaged(source, lambda: pl.read_parquet(source.content, **options))
    metadata = _undamaged(source, lambda: pl.read_parquet_metadata(source.content))
    features = features_of(metadata)
    return frame if features is None else with_class_names(frame, features, source)


def _read_arrow(source: Source, **options: Any) -> pl.DataFrame:
    """Return an Arrow table, be it in memory, a file or a stream."""
    if source.frame is not None:
        columns, n_rows = options.get("columns"), options.get("n_rows")
        frame = source.frame if columns is None else source.frame.select(columns)
        return frame if n_rows is None else frame.head(n_rows)
    with source.file() as file:
        read = pl.read_ipc if file.read(6) == b"ARROW1" else pl.read_ipc_stream
    return _undamaged(source, lambda: read(source.content, **options))


def _undamaged(source: Source, read: Callable[[], Any]) -> Any:
    try:
        with without_panics():
            return read()
    except (pl.exceptions.PolarsError, OSError, ValueError, OverflowError) as problem:
        raise source.fail(f"damaged {source.format} ({str(problem).splitlines()[0]})") from None
