"""Folders of Hugging Face `datasets` as one table: `save_to_disk`, or a card with Parquet files.

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

import json
import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import polars as pl

from ..errors import DataError
from .json_records import load
from .sources import Source, open_source

FOLDER = "dataset"  # the format of such a source
_SPLIT = re.compile(r"([\w.]+?)(-\d{5}-of-\d{5}(-\w+)?)?\.parquet")
_LONGEST = 200  # characters of a file's name
_NO_CLASS = -1  # what `datasets` stores for an unknown class

Read = Callable[[Source, int | None], pl.DataFrame]


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
    several = len({split for split, _, _ in files}) > 1
    parts = []
    for split, file, features in files:
        frame = read(file, most)
        if features is not None:
            frame = with_class_names(frame, features, file)
        if several and "split" not in frame.columns:
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
    known = features if isinstance(features, Mapping) else {}
    try:
        columns = [
            _named(pl.col(name), known[name], kind).alias(name)
            for name, kind in frame.schema.items()
            if name in known and _holds_classes(known[name])
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
        raise DataError(f"{folder}: {str(name)[:80]!r} is not the name of a file in it")
    if not (folder / name).exists():
        raise DataError(f"{folder}: {name!r} is missing; copy the whole folder")
    return folder / name


def _object(path: Path) -> dict[str, Any]:
    if not path.exists():
        raise DataError(f"{path.parent}: {path.name!r} is missing; copy the whole folder")
    source = open_source(path, "json")
    content = load(source)
    if not isinstance(content, dict):
        raise source.fail("should be an object, as `datasets` writes it")
    return content


def _list_in(path: Path, key: str) -> list[Any]:
    values = _object(path).get(key)
    if not isinstance(values, list) or not values:
        raise DataError(f"{path}: no list {key!r}, as `datasets` writes it")
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
            feature = {name: {"_type": "List", "feature": one} for name, one in inner.items()}
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
