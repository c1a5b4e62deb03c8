"""Files as dataframes: CSV, Parquet, Arrow, JSON records, and folders of Hugging Face `datasets`.

Such a folder is one table, be it of `save_to_disk`, or a card with Parquet files.

    dataset_dict.json            the splits, each a folder like the following
    state.json                   the data files, in order
    dataset_info.json            the features of the columns
    data-00000-of-00001.arrow    Arrow streams

    README.md                    a card
    data/train-….parquet         the name begins with the split; features are in the metadata

Classes, which are stored as numbers, get the names that the features declare: such a column is an
Enum. Several splits are distinguished by a column `split`. Columns of bytes are left out.
"""

from __future__ import annotations

import csv
import io
import json
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import dropwhile, islice, takewhile
from pathlib import Path
from typing import Any

import polars as pl

from ..answers.left_out import LeftOut
from ..base.formulas import MARK, as_before
from ..base.panics import without_panics
from ..errors import DataError
from .columns import find_columns, is_known
from .json_records import frame_of_records, load, load_records
from .line_faults import mended, without_headers
from .sources import Source, open_source, ragged_line

FOLDER = "dataset"  # the format of such a source
_TEXT = ("csv", "tsv")
_SPLIT = re.compile(r"([\w.]+?)(-\d{5}-of-\d{5}(-\w+)?)?\.parquet")
_LONGEST = 200  # characters of a file's name
_NO_CLASS = -1  # what `datasets` stores for an unknown class

Read = Callable[[Source, int | None], pl.DataFrame]


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
            header = next(iter(first_lines(source, 1)), ())
            return [name for name in header if name != MARK]
    return frame_of_records(source).columns


def first_rows(source: Source, most: int) -> list[dict[str, Any]]:
    """Return the first rows of a Parquet or Arrow table, or of the parts of a data set."""
    if source.format == FOLDER:
        return read_dataset(source, _read_first, most).head(most).to_dicts()
    frame = _read_first(source, most)
    rows: list[dict[str, Any]] = _undamaged(source, frame.to_dicts)  # times may be out of all years
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
    rows = [line for line in lines if line != lines[0]]
    if len(rows) + 1 >= len(lines):
        return lines
    columns = list(zip(*rows, strict=False))
    occurs = any(cell in column for cell, column in zip(lines[0], columns, strict=False))
    names = any(map(is_known, lines[0])) or (bool(columns) and not occurs)
    return [lines[0], *rows] if names else lines


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
    names = list(next(iter(first_lines(source, 1)), ()))  # polars leaves doubled quotes in names
    clean = mended(source, len(names)) if source.has_odd_bytes else source
    present = [k for k, name in enumerate(names) if name != MARK]
    positions = present if columns is None else sorted(map(names.index, columns))
    options: dict[str, Any] = {"columns": list(positions)}
    if not has_header:
        blank = sum(1 for _ in takewhile(lambda line: not line, source.lines(1000)))
        options = {"has_header": False, "skip_lines": blank}
    options |= {"separator": source.separator, "infer_schema": False, "glob": False}
    try:
        with clean.file() as file:  # by its path, polars opens it twice
            is_plain = isinstance(clean.content, Path) and not clean.packed
            frame = pl.read_csv(file if is_plain else clean.content, **options)
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
    if frame.width > 1 and (frame.to_series() == names[0]).any():
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
    names = find_columns(present, roles, columns, source.name, optional=optional)
    prefixed = [name for name in present if prefix and name.startswith(prefix)]
    frame = read_columns(source, list(dict.fromkeys([*names.values(), *prefixed])))
    return frame.select(*(pl.col(name).alias(role) for role, name in names.items()), *prefixed)


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
    texts = source.lines() if most is None else source.first_lines(most)
    lines = (line.removeprefix("\ufeff").replace("\0", "") for line in texts)
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
    in_use = set(names)
    times: Counter[str] = Counter()
    different = []
    for name in names:
        times[name] += 1
        free = name
        while times[name] > 1 and free in in_use:
            free = f"{name} ({times[name]})"
            times[name] += free in in_use
        in_use.add(free)
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


def is_dataset(folder: Path) -> bool:
    """Return whether a folder is one of `datasets`."""
    saved = (folder / "state.json").exists() and (folder / "dataset_info.json").exists()
    if saved or (folder / "dataset_dict.json").exists():
        return True
    try:
        with (folder / "README.md").open("rb") as card:
            return card.read(3) == b"---" and bool(_parquet_files(folder))
    except OSError:
        return False


def read_dataset(source: Source, read: Read, most: int | None = None) -> pl.DataFrame:
    """Return the rows of all splits, or the first ones of each; `read` reads one file of them."""
    files = list(_files(Path(str(source.content))))
    has_splits = len({split for split, _, _ in files}) > 1
    parts = []
    for split, file, features in files:
        frame = read(file, most)
        if features is not None:
            frame = with_class_names(frame, features, file)
        if has_splits and "split" not in frame.columns:
            frame = frame.with_columns(pl.lit(split).alias("split"))
        parts.append(frame)
    if not parts:
        raise source.fail("no data files in this folder")
    try:
        frame = pl.concat(parts, how="vertical_relaxed")
    except pl.exceptions.PolarsError:
        raise source.fail("its files have different columns; name one of them") from None
    return frame.select(name for name, kind in frame.schema.items() if not _holds_bytes(kind))


def with_class_names(frame: pl.DataFrame, features: Any, source: Source) -> pl.DataFrame:
    """Return a table with the names of classes instead of their numbers."""
    feature_of = features if isinstance(features, Mapping) else {}
    try:
        columns = [
            _named(pl.col(name), feature_of[name], kind).alias(name)
            for name, kind in frame.schema.items()
            if name in feature_of and _holds_classes(feature_of[name])
        ]
        return frame.with_columns(columns)
    except (pl.exceptions.PolarsError, TypeError, ValueError) as problem:
        reason = str(problem).splitlines()[0]
        raise source.fail(f"its features do not fit its columns ({reason})") from None


def features_of(metadata: Mapping[str, str]) -> Any:
    """Return the features in the metadata of a Parquet file, if `datasets` wrote it."""
    try:
        return json.loads(metadata.get("huggingface", "{}"))["info"]["features"]
    except (ValueError, KeyError, TypeError, RecursionError):
        return None


def _files(folder: Path) -> Iterator[tuple[str | None, Source, Any]]:
    """Yield the split, where there are several, the file and the features of every part."""
    if (folder / "dataset_dict.json").exists():
        for split in _list_in(folder / "dataset_dict.json", "splits"):
            for file, features in _saved(_inside(folder, split)):
                yield split, file, features
    elif (folder / "state.json").exists():
        for file, features in _saved(folder):
            yield None, file, features
    else:
        for path in _parquet_files(folder):
            match = _SPLIT.fullmatch(path.name)
            yield (match[1] if match else path.stem), open_source(path), None


def _saved(folder: Path) -> Iterator[tuple[Source, Any]]:
    """Yield the files of one split with its features."""
    info = _object(folder / "dataset_info.json")
    for entry in _list_in(folder / "state.json", "_data_files"):
        name = entry.get("filename") if isinstance(entry, dict) else entry
        yield open_source(_inside(folder, name)), info.get("features")


def _parquet_files(folder: Path) -> list[Path]:
    return sorted([*folder.glob("*.parquet"), *folder.glob("data/*.parquet")])


def _inside(folder: Path, name: Any) -> Path:
    """Return a file or folder in this folder; refuse a name that leads out of it."""
    odd = not isinstance(name, str) or len(name) > _LONGEST or "\0" in name
    if odd or name in ("", ".", "..") or Path(name).name != name:
        message = f"{str(name)[:80]!r} is not the name of a file in it"
        raise DataError(message, where=str(folder))
    if not (folder / name).exists():
        raise DataError(f"{name!r} is missing; copy the whole folder", where=str(folder))
    return folder / name


def _object(path: Path) -> dict[str, Any]:
    if not path.exists():
        message = f"{path.name!r} is missing; copy the whole folder"
        raise DataError(message, where=str(path.parent))
    source = open_source(path, "json")
    content = load(source)
    if not isinstance(content, dict):
        raise source.fail("should be an object, as `datasets` writes it")
    return content


def _list_in(path: Path, key: str) -> list[Any]:
    values = _object(path).get(key)
    if not isinstance(values, list) or not values:
        raise DataError(f"no list {key!r}, as `datasets` writes it", where=str(path))
    return values


# Features: {"_type": "ClassLabel", "names": […]}, {"_type": "List", "feature": …}, {name: …}; a
# list of one feature is a list, too, and a "Sequence" of names holds a list for each of them.


def _holds_classes(feature: Any) -> bool:
    if isinstance(feature, list):
        return any(map(_holds_classes, feature))
    if not isinstance(feature, dict):
        return False
    if feature.get("_type") == "ClassLabel":
        return _names(feature) is not None
    return any(map(_holds_classes, feature.values()))


def _names(feature: Mapping[str, Any]) -> list[str] | None:
    names = feature.get("names")
    if not isinstance(names, list) or not names:
        return None
    texts = [str(name) for name in names]
    return texts if len({*texts}) == len(texts) else None


def _named(values: pl.Expr, feature: Any, kind: Any) -> pl.Expr:
    """Return values with class names, as deep as features and types go."""
    if isinstance(kind, pl.Array):
        values, kind = values.arr.to_list(), pl.List(kind.inner)
    if isinstance(feature, list) and len(feature) == 1:
        feature = {"_type": "List", "feature": feature[0]}
    if not _holds_classes(feature):
        return values
    if feature.get("_type") == "ClassLabel" and kind.is_integer():
        names = _names(feature) or []
        numbers = {**dict(enumerate(names)), _NO_CLASS: None}
        return values.replace_strict(numbers, return_dtype=pl.Enum(names))
    inner = feature.get("feature")
    if isinstance(kind, pl.List) and inner is not None:
        return values.list.eval(_named(pl.element(), inner, kind.inner))
    if isinstance(kind, pl.Struct):
        if isinstance(inner, dict) and "_type" not in inner:  # a sequence of names
            feature = {
                name: {"_type": "List", "feature": element} for name, element in inner.items()
            }
        fields = {field.name: field.dtype for field in kind.fields}
        return values.struct.with_fields(
            _named(pl.field(name), feature[name], fields[name]).alias(name)
            for name in fields
            if _holds_classes(feature.get(name))
        )
    return values


def _holds_bytes(kind: Any) -> bool:
    if isinstance(kind, pl.Struct):
        return any(_holds_bytes(field.dtype) for field in kind.fields)
    if isinstance(kind, (pl.List, pl.Array)):
        return _holds_bytes(kind.inner)
    return bool(kind == pl.Binary)
