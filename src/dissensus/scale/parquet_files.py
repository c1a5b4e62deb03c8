"""Sets of Parquet files: paths, folders, patterns and addresses of object stores."""

from __future__ import annotations

import glob
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import polars as pl

from ..base.files import is_stream
from ..base.panics import without_panics
from ..errors import DataError

_CLOUD = ("s3", "s3a", "gs", "gcs", "az", "abfs", "abfss", "adl", "azure", "hf", "http", "https")
_ENDINGS = (".parquet", ".pq", ".parq")


def is_many(paths: Sequence[str]) -> bool:
    """Return whether paths mean a set of Parquet files rather than one file of any format."""
    if len(paths) != 1:
        return True
    one = paths[0]
    if _scheme(one):
        return True
    if any(mark in one for mark in "*?[") and not Path(one).exists():
        return True
    return Path(one).is_dir() and next(_inside(Path(one)), None) is not None


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
        here = Path(path)
        if _scheme(path):
            files = _matching(path)
        elif here.is_dir():
            files = [str(file) for file in sorted(_inside(here))]
        elif here.exists():
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
