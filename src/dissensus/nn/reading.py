"""Inputs from files, in the order of the items that were labelled.

A folder holds images or videos, however deep; an item is found by its path below the folder, its
file name, the name without its ending, or the number at its end (`cat-17.png` is item 17, as
peerannot names files). A table has a column of texts or of files. A `.npy` or `.npz` has rows of
features.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np

from .._names import as_names
from ..annotations import Names
from ..errors import DataError
from .inputs import VIDEO_ENDINGS, Images, Inputs, Texts, as_inputs
from .videos import Videos

__all__ = ["folder_truth", "item_names", "read_inputs"]

_ENDINGS = {".bmp", ".gif", ".jpeg", ".jpg", ".png", ".ppm", ".tif", ".tiff", ".webp"}


def read_inputs(
    path: str | Path, items: Names, *, column: str | None = None, frames: int = 16
) -> Inputs:
    """Return the inputs of items from a folder of images, a table, or an array of features.

    Parameters
    ----------
    path
        A folder of images or videos, a table with a column for the items, a `.npy` or a `.npz`.
    items
        Names of the items.
    column
        Of a table, the column of texts or files; of a `.npz`, which array.
    frames
        Of videos: how many frames of each are looked at.
    """
    path = Path(path)
    if path.is_dir():
        found = _files(path, items)
        return _of_files([found[name] for name in items.tolist()], frames)
    if not path.exists():
        raise DataError(f"{path}: no such file or folder")
    if path.suffix in (".npy", ".npz"):
        return as_inputs(_rows(path, items, column))
    return _from_table(path, items, column, frames)


def item_names(path: str | Path) -> Names:
    """Return the names of all items in a folder, a table or an array, where nobody names them.

    Files are named by their path below the folder, without its ending where that names no two
    alike, and stand in the order of the numbers in their names; rows of an array are named by
    their numbers.
    """
    path = Path(path)
    if path.is_dir():
        files = [file.relative_to(path) for file in _media(path)]
        files.sort(key=lambda file: _natural(file.as_posix()))
        short = [file.with_suffix("").as_posix() for file in files]
        alike = len(set(short)) < len(short)
        return as_names([file.as_posix() for file in files] if alike else short)
    if not path.exists():
        raise DataError(f"{path}: no such file or folder")
    if path.suffix in (".npy", ".npz"):
        values, names = _arrays(path, None)
        return as_names(range(len(values)) if names is None else names.tolist())
    frame, roles = _table(path, None)
    return as_names(list(dict.fromkeys(frame[roles["item"]].cast(str).to_list())))


def folder_truth(path: str | Path, items: Names) -> dict[str, str]:
    """Return item → class from a folder whose subfolders are named by the classes."""
    return {name: file.parent.name for name, file in _files(Path(path), items).items()}


def _files(folder: Path, items: Names) -> dict[str, Path]:
    """Return item → file, by the first way of naming that knows every item."""
    images = _media(folder)
    fewest: list[str] | None = None
    for told in _WAYS:
        known: dict[str, Path] = {}
        twice: set[str] = set()
        for file in images:
            name = told(file.relative_to(folder).as_posix())
            if name in known:
                twice.add(name)
            known[name] = file
        lost = [name for name in items.tolist() if name not in known or name in twice]
        if not lost:
            return known
        fewest = lost if fewest is None or len(lost) < len(fewest) else fewest
    assert fewest is not None
    more = f"; {len(fewest) - 1} more items like this" if len(fewest) > 1 else ""
    raise DataError(f"{folder}: not exactly one image for item {fewest[0]!r}{more}")


def _media(folder: Path) -> list[Path]:
    """Return the images below a folder, or the videos where there are none."""
    every = sorted(file for file in folder.rglob("*") if file.is_file())
    found = [file for file in every if file.suffix.lower() in _ENDINGS]
    found = found or [file for file in every if file.suffix.lower() in VIDEO_ENDINGS]
    if not found:
        endings = ", ".join(sorted(_ENDINGS | VIDEO_ENDINGS))
        raise DataError(f"{folder}: no images or videos in it; they end in {endings}")
    return found


def _natural(name: str) -> list[tuple[int, str]]:
    """Return what sorts names as people do: 2 before 10."""
    parts = re.split(r"([0-9]+)", name)
    return [(int(part) if part.isdigit() else -1, part) for part in parts]


def _number(path: str) -> str:
    """Return the number at the end of a name, as peerannot writes it."""
    number = PurePosixPath(path).stem.rpartition("-")[2]
    return str(int(number)) if number.isascii() and number.isdigit() else path


_WAYS: tuple[Callable[[str], str], ...] = (
    lambda path: path,
    lambda path: PurePosixPath(path).with_suffix("").as_posix(),
    lambda path: PurePosixPath(path).name,
    lambda path: PurePosixPath(path).stem,
    _number,
)


def _arrays(path: Path, column: str | None) -> tuple[Any, Any]:
    """Return an array, and the names of its rows where they are told."""
    try:
        stored = np.load(path, allow_pickle=False)
        arrays = dict(stored) if path.suffix == ".npz" else {"": stored}
    except (OSError, ValueError, EOFError) as problem:
        raise DataError(f"{path}: not an array of numbers ({problem})") from None
    names = arrays.pop("items", None) if column != "items" else None
    if column is None and len(arrays) > 1:
        raise DataError(f"{path}: holds {', '.join(arrays)}; say which one is meant")
    if column is not None and column not in arrays:
        raise DataError(f"{path}: holds no {column!r}; there are {', '.join(arrays)}")
    return arrays[column] if column is not None else next(iter(arrays.values())), names


def _rows(path: Path, items: Names, column: str | None) -> Any:
    """Return the row of every item: by its number, or in order where there are as many."""
    values, names = _arrays(path, column)
    wanted = items.tolist()
    if names is not None:
        known = {str(name): row for row, name in enumerate(names.tolist())}
        for name in wanted:
            if name not in known:
                raise DataError(f"{path}: no row for item {name!r}")
        return values[[known[name] for name in wanted]]
    numbers = [int(name) if name.isascii() and name.isdigit() else -1 for name in wanted]
    if min(numbers, default=0) >= 0 and max(numbers, default=0) < len(values):
        return values[numbers]
    if len(values) == len(wanted) and min(numbers, default=0) < 0:
        return values
    raise DataError(
        f"{path}: {len(values)} rows, but {len(wanted)} items; name the rows in an array 'items'"
    )


def _of_files(files: list[Path], frames: int) -> Inputs:
    """Return files as images, or as videos if all of them are."""
    if files and all(file.suffix.lower() in VIDEO_ENDINGS for file in files):
        return Videos(tuple(files), frames)
    return Images(tuple(files))


def _table(path: Path, column: str | None) -> tuple[Any, dict[str, str]]:
    """Return a table of items and inputs, and which column is which."""
    from ..io.columns import NEEDED, find_columns
    from ..io.sources import open_source
    from ..io.tables import column_names, read_columns

    source = open_source(path)
    roles = find_columns(
        column_names(source),
        {"item": [*NEEDED["item"], "id"], "input": _COLUMNS},
        None if column is None else {"input": column},
        source.name,
    )
    return read_columns(source, list(dict.fromkeys(roles.values()))).drop_nulls(), roles


def _from_table(path: Path, items: Names, column: str | None, frames: int) -> Inputs:
    frame, roles = _table(path, column)
    known = dict(
        zip(
            frame[roles["item"]].cast(str).to_list(),
            frame[roles["input"]].cast(str).to_list(),
            strict=True,
        )
    )
    for name in items.tolist():
        if name not in known:
            raise DataError(f"{path}: no row for item {name!r}")
    found = [known[name] for name in items.tolist()]
    for endings in (_ENDINGS, VIDEO_ENDINGS):
        if found and all(
            Path(text).suffix.lower() in endings and len(text) < 300 for text in found
        ):
            return _of_files([_inside(path.parent, text) for text in found], frames)
    return Texts(tuple(found))


_COLUMNS = [
    *["text", "content", "sentence", "tweet", "comment", "message", "body", "post", "title"],
    *["image", "video", "image_path", "file", "filename", "file_name", "path"],
]


def _inside(folder: Path, name: str) -> Path:
    """Return a file that a table names, which has to lie beside or below the table."""
    file = (folder / name).resolve()
    if not file.is_relative_to(folder.resolve()):
        raise DataError(f"{name!r} lies outside {folder}; images are named from the table's folder")
    return file
