"""Long tables, one row for each label, read and written through polars."""

from __future__ import annotations

import csv
import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from itertools import dropwhile, islice, takewhile
from typing import IO, Any

import numpy as np
import polars as pl

from .._names import Codes, Names, as_names, smallest_dtype
from ..annotations import Annotations
from ..errors import DataError
from .coding import carried, code_columns, series_of
from .columns import CARRIED, NEEDED, find_columns
from .records import frame_of_records
from .sources import Source, fields, ragged_line

__all__ = [
    "annotations_from",
    "as_frame",
    "column_names",
    "first_lines",
    "first_rows",
    "line_of_row",
    "read_columns",
    "read_unnamed",
    "without_gaps",
    "write_frame",
]


def as_frame(table: Any) -> pl.DataFrame:
    """Return a polars, pandas or Arrow table, or a mapping of columns, as polars."""
    if isinstance(table, pl.DataFrame):
        return table
    if isinstance(table, pl.LazyFrame):
        return table.collect()
    if type(table).__module__.startswith("pandas"):
        # Column by column through Python: no Arrow needed, and mixed columns survive.
        return pl.DataFrame(
            {str(name): series_of(str(name), _values_of(name, table[name])) for name in table}
        )
    if hasattr(table, "__arrow_c_stream__") or hasattr(table, "__dataframe__"):
        return pl.DataFrame(table)
    if isinstance(table, Mapping):
        columns = {str(name): _values_of(str(name), values) for name, values in table.items()}
        if len({len(values) for values in columns.values()}) > 1:
            sizes = ", ".join(f"{name} {len(values)}" for name, values in columns.items())
            raise DataError(f"columns of different length: {sizes}")
        return pl.DataFrame({name: series_of(name, values) for name, values in columns.items()})
    raise DataError(f"cannot read a {type(table).__name__} as a table")


def _values_of(name: str, values: Any) -> list[Any]:
    if type(values).__module__.startswith("pandas"):
        return list(values.astype(object).where(values.notna(), None))
    if hasattr(values, "tolist"):
        return list(values.tolist())
    if isinstance(values, Iterable) and not isinstance(values, (str, Mapping)):
        return list(values)
    raise DataError(
        f"{name!r} is neither a column nor {{annotator: label}}, but a {type(values).__name__}"
    )


def annotations_from(
    table: Any,
    *,
    columns: Mapping[str, str] | None = None,
    classes: Sequence[Any] | None = None,
    missing: str = "error",
    source: Source | None = None,
) -> Annotations:
    """Return the annotations of a long table: one row for each label."""
    frame = as_frame(table)
    name = source.name if source else "table"
    roles = find_columns(frame.columns, NEEDED, columns, name, CARRIED)
    frame = frame.select(pl.col(column).alias(role) for role, column in roles.items())
    if any(frame[role].null_count() or frame.schema[role].is_float() for role in NEEDED):
        frame = without_gaps(frame, missing, name, source)
    codes = code_columns(frame.select(list(NEEDED)))
    if any(len(names) and names[0] == "" for _, names in codes.values()):  # it is always first
        frame = without_gaps(frame, missing, name, source)
        codes = code_columns(frame.select(list(NEEDED)))
    label, known = codes["label"]
    if classes is not None:
        label, known = _declared(label, known, as_names(classes), name)
    return Annotations.from_codes(
        codes["item"][0],
        codes["annotator"][0],
        label,
        items=codes["item"][1],
        annotators=codes["annotator"][1],
        classes=known,
        **{role: carried(frame[role]) for role in roles if role not in NEEDED},
    )


def column_names(source: Source) -> list[str]:
    """Return the names in a table's header."""
    match source.format:
        case "parquet":
            return list(_reading(source, lambda: pl.read_parquet_schema(source.content)))
        case "arrow":
            return _reading(source, lambda: pl.read_ipc(source.content, n_rows=0)).columns
        case "csv" | "tsv":
            return _header(source)
    return read_columns(source, None).columns


def first_rows(source: Source, most: int) -> list[dict[str, Any]]:
    """Return the first rows of a table, by column; fewer where they cannot be read."""
    match source.format:
        case "parquet":
            frame = _reading(source, lambda: pl.read_parquet(source.content, n_rows=most))
            return frame.to_dicts()
        case "arrow":
            return _reading(source, lambda: pl.read_ipc(source.content, n_rows=most)).to_dicts()
    header, *rows = first_lines(source, most + 1) or [()]
    return [dict(zip(header, row, strict=False)) for row in rows]


def first_lines(source: Source, most: int) -> list[tuple[str, ...]]:
    """Return the first lines of a table of texts, field by field; fewer where one is damaged."""
    found: list[tuple[str, ...]] = []
    with fields(source.lines(20 * most), source.separator()) as rows, suppress(csv.Error):
        found += map(tuple, islice(dropwhile(_is_blank, rows), most))
    return found


def read_columns(source: Source, wanted: Sequence[str] | None) -> pl.DataFrame:
    """Return columns of a table, as text where the format knows nothing else."""
    columns = None if wanted is None else list(wanted)
    match source.format:
        case "parquet":
            return _reading(source, lambda: pl.read_parquet(source.content, columns=columns))
        case "arrow":
            return _reading(source, lambda: pl.read_ipc(source.content, columns=columns))
        case "json" | "jsonl":
            frame = frame_of_records(source)
            return frame if columns is None else frame.select(columns)
    separator = source.separator()
    header = _header(source)  # read here: polars leaves doubled quotes in names
    positions = range(len(header)) if columns is None else sorted(map(header.index, columns))
    frame = _read_csv(source, separator, columns=list(positions))
    frame.columns = _different([header[position] for position in positions])
    return frame


def _is_blank(row: list[str]) -> bool:
    return not row


def _different(names: list[str]) -> list[str]:
    """Return names of columns, a number added to one that stood there before."""
    taken = set(names)
    times: Counter[str] = Counter()
    found = []
    for name in names:
        times[name] += 1
        free = name
        while times[name] > 1 and free in taken:
            free = f"{name} ({times[name]})"
            times[name] += free in taken
        taken.add(free)
        found.append(free)
    return found


def read_unnamed(source: Source) -> pl.DataFrame:
    """Return a table of texts whose first line is a row like the others; columns are 1, 2, …."""
    if source.format not in ("csv", "tsv"):
        raise source.fail(f"a {source.format}, which names its columns, and not a table of texts")
    separator = source.separator()
    blank = sum(1 for _ in takewhile(lambda line: not line, source.lines(1000)))
    frame = _read_csv(source, separator, has_header=False, skip_lines=blank)
    ragged = ragged_line(source, separator)  # polars fills short rows
    if ragged is not None:
        raise source.fail(ragged)
    frame.columns = [str(position) for position in range(1, frame.width + 1)]
    return frame.with_columns(pl.col("1").str.strip_prefix("\ufeff"))


def _read_csv(source: Source, separator: str, **options: Any) -> pl.DataFrame:
    try:
        return pl.read_csv(
            source.content, separator=separator, infer_schema=False, glob=False, **options
        )
    except pl.exceptions.NoDataError:
        raise source.fail("empty") from None
    except (pl.exceptions.PolarsError, OSError) as problem:
        reason = ragged_line(source, separator) or str(problem).splitlines()[0]
        raise source.fail(reason) from None


def write_frame(frame: pl.DataFrame, file: IO[bytes], kind: str, compression: Any) -> None:
    """Write a table to an open file."""
    match kind:
        case "parquet":
            frame.write_parquet(file, compression="zstd")
        case "arrow":
            frame.write_ipc(file)
        case "jsonl":
            frame.write_ndjson(file, compression=compression)
        case "json":
            file.write(json.dumps(frame.to_dicts(), ensure_ascii=False).encode())
        case _:
            separator = "\t" if kind == "tsv" else ","
            frame.write_csv(file, separator=separator, compression=compression)


def without_gaps(
    frame: pl.DataFrame, missing: str, name: str, source: Source | None
) -> pl.DataFrame:
    """Return the rows that have all they need; empty ones are nothing, others perhaps an error."""
    frame = frame.filter(~pl.all_horizontal(pl.col(role).is_null() for role in NEEDED))
    gaps = _gaps(frame)
    if not gaps.any():
        return frame
    if missing != "drop":
        raise _missing(frame, gaps, name, source)
    return frame.filter(~gaps)


def _gaps(frame: pl.DataFrame) -> pl.Series:
    """Return the rows in which item, annotator or label is missing."""
    tests = []
    for role in NEEDED:
        column = pl.col(role)
        tests.append(column.is_null())
        if frame.schema[role] == pl.String:
            tests.append(column == "")
        elif frame.schema[role].is_float():
            tests.append(column.is_nan())
    return frame.select(pl.any_horizontal(*tests).fill_null(True).alias("gap"))["gap"]


def _missing(frame: pl.DataFrame, gaps: pl.Series, name: str, source: Source | None) -> DataError:
    row = int(gaps.arg_true()[0])
    role = next(
        role
        for role in NEEDED
        if frame[role][row] in (None, "") or frame[role][row] != frame[role][row]
    )
    count = int(gaps.sum())
    more = f"; {count - 1} more lines like this" if count > 1 else ""
    position = f"row {row + 1}"
    if source is not None and source.format in ("csv", "tsv"):
        ragged = ragged_line(source, source.separator())
        if ragged is not None:
            return DataError(f"{name}: {ragged}{more}")
        position = f"line {line_of_row(source, row)}"
    elif source is not None and source.format == "jsonl":
        position = f"line {row + 1}"
    return DataError(f"{name}: {position}: no {role}{more}; --missing drop leaves such rows out")


def line_of_row(source: Source, row: int) -> int:
    """Return the line on which a row begins, which quoted line breaks may have moved."""
    with fields(source.lines(), source.separator()) as rows:
        begins, seen = 1, -1
        for one in rows:
            if one:
                seen += 1
            if seen == row + 1:
                break
            begins = rows.line_num + 1
    return begins


def _header(source: Source) -> list[str]:
    return list(next(iter(first_lines(source, 1)), ()))


def _reading(source: Source, read: Any) -> Any:
    try:
        return read()
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError) as problem:
        raise source.fail(f"damaged {source.format} ({str(problem).splitlines()[0]})") from None


def _declared(label: Codes, found: Names, names: Names, source: str) -> tuple[Codes, Names]:
    positions = {name: position for position, name in enumerate(names.tolist())}
    for name in found.tolist():
        if name not in positions:
            raise DataError(
                f"{source}: label {name!r} is not among the classes {', '.join(positions)}"
            )
    table = np.array([positions[name] for name in found.tolist()], dtype=smallest_dtype(len(names)))
    return (table[label] if len(found) else label), names
