"""Inputs from files, in the order of the items that were labelled.

A folder holds images, however deep; an item is found by its path below the folder, its file name,
the name without its ending, or the number at its end (`cat-17.png` is item 17, as peerannot names
files). A table has a column of texts or of image files. A `.npy` or `.npz` has rows of features.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np

from .._names import as_names
from ..annotations import Names
from ..errors import DataError
from .inputs import Images, Inputs, Texts, as_inputs

__all__ = [
    "INPUT_COLUMNS",
    "as_texts_or_images",
    "folder_truth",
    "image_files",
    "read_inputs",
    "read_others",
]

_ENDINGS = {".bmp", ".gif", ".jpeg", ".jpg", ".png", ".ppm", ".tif", ".tiff", ".webp"}


def read_inputs(path: str | Path, items: Names, *, column: str | None = None) -> Inputs:
    """Return the inputs of items from a folder of images, a table, or an array of features.

    Parameters
    ----------
    path
        A folder of images, a table with a column for the items, a `.npy` or a `.npz`.
    items
        Names of the items.
    column
        Of a table, the column of texts or image files; of a `.npz`, which array.
    """
    path = Path(path)
    if path.is_dir():
        found = _files(path, items)
        return Images(tuple(found[name] for name in items.tolist()))
    if not path.exists():
        raise DataError(f"{path}: no such file or folder")
    if path.suffix in (".npy", ".npz"):
        return as_inputs(_rows(path, items, column))
    return _from_table(path, items, column)


def read_others(
    path: str | Path, items: Names, *, column: str | None = None
) -> tuple[list[str], Inputs]:
    """Return all other items that a file or folder of inputs holds, and their inputs.

    Parameters
    ----------
    path, column
        As for `read_inputs`.
    items
        Names of the items to leave out.
    """
    path, known = Path(path), set(items.tolist())
    if path.is_dir():
        used = {_files(path, items)[name] for name in known}
        files = [file for file in image_files(path) if file not in used]
        return [file.relative_to(path).as_posix() for file in files], Images(tuple(files))
    if path.suffix in (".npy", ".npz"):
        every = _row_names(path, column)
    else:
        every = _table_items(path, column)
    names = [name for name in every if name not in known]
    return names, read_inputs(path, as_names(names), column=column)


def folder_truth(path: str | Path, items: Names) -> dict[str, str]:
    """Return item → class from a folder whose subfolders are named by the classes."""
    return {name: file.parent.name for name, file in _files(Path(path), items).items()}


def image_files(folder: Path) -> list[Path]:
    """Return the images in a folder, however deep, in order."""
    found = sorted(
        file for file in folder.rglob("*") if file.suffix.lower() in _ENDINGS and file.is_file()
    )
    if not found:
        raise DataError(f"{folder}: no images in it; they end in {', '.join(sorted(_ENDINGS))}")
    return found


def _files(folder: Path, items: Names) -> dict[str, Path]:
    """Return item → file, by the first way of naming that knows every item."""
    images = image_files(folder)
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


def _number(path: str) -> str:
    """Return the number at the end of a name, as peerannot writes it."""
    number = PurePosixPath(path).stem.rpartition("-")[2]
    return str(int(number)) if number.isascii() and number.isdigit() else path


_WAYS: tuple[Callable[[str], str], ...] = (
    lambda path: path,
    lambda path: PurePosixPath(path).name,
    lambda path: PurePosixPath(path).stem,
    _number,
)


def _arrays(path: Path) -> dict[str, Any]:
    try:
        stored = np.load(path, allow_pickle=False)
        return dict(stored) if path.suffix == ".npz" else {"": stored}
    except (OSError, ValueError, EOFError) as problem:
        raise DataError(f"{path}: not an array of numbers ({problem})") from None


def _rows(path: Path, items: Names, column: str | None) -> Any:
    """Return the row of every item: by its number, or in order where there are as many."""
    arrays = _arrays(path)
    names = arrays.pop("items", None) if column != "items" else None
    if column is None and len(arrays) > 1:
        raise DataError(f"{path}: holds {', '.join(arrays)}; say which one is meant")
    if column is not None and column not in arrays:
        raise DataError(f"{path}: holds no {column!r}; there are {', '.join(arrays)}")
    values = arrays[column] if column is not None else next(iter(arrays.values()))
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


def _row_names(path: Path, column: str | None) -> list[str]:
    """Return the name of every row: what stands in `items`, or its number."""
    arrays = _arrays(path)
    if "items" in arrays and column != "items":
        return [str(name) for name in arrays["items"].tolist()]
    values = arrays[column] if column in arrays else next(iter(arrays.values()))
    return [str(row) for row in range(len(values))]


def _table_items(path: Path, column: str | None) -> list[str]:
    from ..io.tables import read_columns

    source, roles = _table_roles(path, column)
    frame = read_columns(source, list(dict.fromkeys(roles.values()))).drop_nulls()
    return list(dict.fromkeys(frame[roles["item"]].cast(str).to_list()))


def _table_roles(path: Path, column: str | None) -> tuple[Any, dict[str, str]]:
    from ..io.columns import NEEDED, find_columns
    from ..io.sources import open_source
    from ..io.tables import column_names

    source = open_source(path)
    roles = find_columns(
        column_names(source),
        {"item": [*NEEDED["item"], "id"], "input": INPUT_COLUMNS},
        None if column is None else {"input": column},
        source.name,
    )
    return source, roles


def _from_table(path: Path, items: Names, column: str | None) -> Inputs:
    from ..io.tables import read_columns

    source, roles = _table_roles(path, column)
    frame = read_columns(source, list(dict.fromkeys(roles.values()))).drop_nulls()
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
    return as_texts_or_images(path.parent, found)


def as_texts_or_images(folder: Path, found: Sequence[str]) -> Inputs:
    """Return what a column of a table holds: images below its folder, or texts."""
    if found and all(Path(text).suffix.lower() in _ENDINGS and len(text) < 300 for text in found):
        return Images(tuple(_inside(folder, text) for text in found))
    return Texts(tuple(found))


INPUT_COLUMNS = [
    *["text", "content", "sentence", "tweet", "comment", "message", "body", "post", "title"],
    *["image", "image_path", "file", "filename", "file_name", "path"],
]


def _inside(folder: Path, name: str) -> Path:
    """Return a file that a table names, which has to lie beside or below the table."""
    file = (folder / name).resolve()
    if not file.is_relative_to(folder.resolve()):
        raise DataError(f"{name!r} lies outside {folder}; images are named from the table's folder")
    return file
