"""Sets of Parquet files, beyond memory: which they are, and their rows a chunk at a time.

A set is paths, folders, patterns and addresses of object stores. A chunk is a range of rows of one
file, read as three columns, item, annotator and label, each as whole numbers or as texts, in the
same way for all files.
"""

from __future__ import annotations

import glob
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import polars as pl

from ..answers.annotations import Annotations
from ..base.files import is_stream
from ..base.panics import without_panics
from ..errors import DataError
from ..formats.columns import NEEDED, find_columns
from ..formats.frames import as_frame, names_of
from ..formats.long_tables import annotations_from, is_no_label
from ..formats.spellings import Joined, join_columns

Column = tuple[str, str, bool]  # role, name of the column, whether it holds whole numbers

_CLOUD = ("s3", "s3a", "gs", "gcs", "az", "abfs", "abfss", "adl", "azure", "hf", "http", "https")
_ENDINGS = (".parquet", ".pq", ".parq")
_WHOLE = (pl.Int8, pl.Int16, pl.Int32, pl.Int64, pl.UInt8, pl.UInt16, pl.UInt32)


def is_many(paths: Sequence[str]) -> bool:
    """Return whether paths mean a set of Parquet files rather than one file of any format."""
    if len(paths) != 1:
        return True
    path = paths[0]
    if _scheme(path):
        return True
    if any(mark in path for mark in "*?[") and not Path(path).exists():
        return True
    return Path(path).is_dir() and next(_inside(Path(path)), None) is not None


def holds_parquet(path: str) -> bool:
    """Return whether a path is a Parquet file, by its first bytes."""
    if is_stream(path):  # it can be read only once
        return False
    try:
        with Path(path).open("rb") as file:
            return file.read(4) == b"PAR1"
    except OSError:
        return False


def rows_in(files: Sequence[str]) -> int:
    """Return the number of rows of files, from their metadata."""
    count = 0
    for file in files:
        with naming(file):
            count += int(scan(file).select(pl.len()).collect().item())
    return count


def find_files(paths: Sequence[str]) -> tuple[str, ...]:
    """Return the Parquet files that paths, folders and patterns mean, each once, in order."""
    all_files: dict[str, None] = {}
    for path in paths:
        local = Path(path)
        if _scheme(path):
            files = _matching(path)
        elif local.is_dir():
            files = [str(file) for file in sorted(_inside(local))]
        elif local.exists():
            files = [path]
        else:
            files = sorted(glob.glob(path, recursive=True))  # noqa: PTH207
        if not files:
            raise DataError(f"{path}: no Parquet file there")
        all_files |= dict.fromkeys(files)
    return tuple(all_files)


@contextmanager
def naming(file: str) -> Iterator[None]:
    """Turn errors of reading into one line that names the file."""
    try:
        with without_panics():
            yield
    except pl.exceptions.PolarsError as problem:
        reason = " ".join(str(problem).split())[:300]
        raise DataError(f"{file}: damaged parquet ({reason})") from None
    except OSError as problem:
        reason = (problem.strerror or str(problem)).splitlines()[0].lower()
        raise DataError(f"{file}: {reason}") from None


def scan(file: str) -> pl.LazyFrame:
    """Return a file as a lazy table."""
    scheme = _scheme(file)
    if scheme and scheme not in _CLOUD and scheme != "file":
        import fsspec

        with fsspec.open(file, "rb") as opened:
            return pl.scan_parquet(opened.read())
    path = file.removeprefix("file://") if scheme == "file" else file
    return pl.scan_parquet(path, glob=False, hive_partitioning=True)


def _scheme(path: str) -> str:
    scheme, mark, _ = path.partition("://")
    return scheme.lower() if mark else ""


def _inside(folder: Path) -> Iterator[Path]:
    """Yield the Parquet files of a folder and its subfolders, without hidden ones."""
    return (
        file
        for file in folder.rglob("*")
        if file.suffix in _ENDINGS
        and not any(name.startswith((".", "_")) for name in file.relative_to(folder).parts)
    )


def _matching(url: str) -> list[str]:
    """Return the files at an address of an object store."""
    if not any(mark in url for mark in "*?[") and url.lower().endswith(_ENDINGS):
        return [url]
    try:
        import fsspec
    except ImportError:
        raise DataError(f"{url}: folders and patterns need fsspec: pip install fsspec") from None
    system, path = fsspec.core.url_to_fs(url)
    names = system.glob(path) if any(mark in path for mark in "*?[") else system.find(path)
    return [system.unstrip_protocol(name) for name in sorted(names) if name.endswith(_ENDINGS)]


@dataclass(frozen=True)
class Chunk:
    """Rows `start` to `start + rows` of a file; columns by role, each as a number or a text."""

    file: str
    start: int
    rows: int
    columns: tuple[Column, ...]
    missing: str = "error"

    def read(self, roles: Iterable[str] = NEEDED) -> pl.DataFrame:
        """Return some of its columns, without incomplete rows."""
        with naming(self.file):
            rows = scan(self.file).slice(self.start, self.rows)
            return _complete_rows(
                rows, self.columns, roles, missing=self.missing, source=self.file, start=self.start
            )


@dataclass(frozen=True, eq=False)
class TableChunk:
    """The rows of a table in memory, read like those of a file."""

    table: Any
    columns: tuple[Column, ...]
    missing: str = "error"

    def read(self, roles: Iterable[str] = NEEDED) -> pl.DataFrame:
        """Return some of its columns, without incomplete rows."""
        frame = as_frame(self.table[[column for _, column, _ in self.columns]])
        return _complete_rows(
            frame.lazy(), self.columns, roles, missing=self.missing, source="table"
        )


def _complete_rows(
    table: pl.LazyFrame,
    columns: Sequence[Column],
    roles: Iterable[str],
    *,
    missing: str,
    source: str,
    start: int = 0,
) -> pl.DataFrame:
    """Return rows as whole numbers or texts, without incomplete ones."""
    columns = [column for column in columns if column[0] in roles or missing == "drop"]
    raw = table.select(pl.col(column).alias(role) for role, column, _ in columns).collect()
    rows = pl.DataFrame(
        {
            role: raw[role].cast(pl.Int64) if whole else names_of(raw[role])
            for role, _, whole in columns
        }
    )
    gaps = rows.select(pl.any_horizontal(pl.all().is_null()).alias("gap"))["gap"]
    if missing == "drop" and rows.schema["label"] == pl.String:
        gaps |= is_no_label(rows["label"])
    if missing == "keep":
        return rows
    if gaps.any() and missing != "drop":
        position = int(gaps.arg_true()[0])
        role = next(name for name in rows.columns if rows[name][position] is None)
        raise DataError(
            f"row {start + position + 1}: no {role}",
            where=source,
            rows=int(gaps.sum()),
            remedy="leaves such rows out",
            missing="drop",
        )
    return rows.filter(~gaps).select(role for role in rows.columns if role in roles)


@dataclass(frozen=True)
class Chunks:
    """All rows of a data set in chunks, and whether its names are whole numbers."""

    chunks: tuple[Any, ...]
    rows: int
    files: tuple[str, ...]
    whole: Mapping[str, bool]  # whether the names in a column are whole numbers, by role


def read_all(
    rows: Chunks,
    classes: Sequence[Any] | None = None,
    duplicates: str = "count",
    joined: Joined | None = None,
) -> Annotations:
    """Return all rows as annotations in memory; `joined` takes names that look like one."""
    missing = rows.chunks[0].missing
    per_chunk = "keep" if missing == "drop" else missing  # so that all of it is counted together
    frame = pl.concat([replace(chunk, missing=per_chunk).read() for chunk in rows.chunks])
    if joined is not None:
        frame = join_columns(frame, joined, classes or ())
        classes = classes and joined.classes(classes)
    return annotations_from(frame, classes=classes, missing=missing, duplicates=duplicates)


def chunks_of(
    files: Sequence[str],
    columns: Mapping[str, str] | None = None,
    *,
    rows: int = 2**21,
    missing: str = "error",
) -> Chunks:
    """Return all rows of files in chunks; columns are given, or recognised by their names."""
    column_of = {role: name for role, name in (columns or {}).items() if role in NEEDED}
    schemas, sizes = [], []
    for file in files:
        with naming(file):
            schema = dict(scan(file).collect_schema())
            sizes.append(rows_in([file]))
        roles = find_columns(list(schema), NEEDED, column_of, file)
        schemas.append({role: (roles[role], schema[roles[role]]) for role in NEEDED})
    whole = {role: all(schema[role][1] in _WHOLE for schema in schemas) for role in NEEDED}
    chunks = [
        Chunk(
            file,
            start=start,
            rows=min(rows, size - start),
            columns=tuple((role, schema[role][0], whole[role]) for role in NEEDED),
            missing=missing,
        )
        for file, schema, size in zip(files, schemas, sizes, strict=True)
        for start in range(0, size, rows)
    ]
    if not chunks:
        raise DataError(f"{files[0]}: no labels in it, only a header")
    return Chunks(tuple(chunks), sum(sizes), tuple(files), whole)


def columns_of(kinds: Mapping[str, str], columns: Mapping[str, str] | None) -> tuple[Column, ...]:
    """Return item, annotator and label among the columns of a table, whose types are `kinds`."""
    roles = find_columns(list(kinds), NEEDED, columns, "table")
    return tuple(
        (role, roles[role], kinds[roles[role]].lower().startswith(("int", "uint")))
        for role in NEEDED
    )
