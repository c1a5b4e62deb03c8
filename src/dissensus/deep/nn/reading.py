"""Inputs from files, in the order of the labelled items.

A folder holds images, videos or sounds at any depth; a file belongs to the item named like its path
below the folder, its file name, either without extension, or the number at its end (`cat-17.png` is
item 17, as peerannot names files). A table has a column of texts or of such files. A `.npy` or
`.npz` has rows of features.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np

from ...answers.annotations import Names
from ...base.arrays import Array
from ...base.names import as_names
from ...base.storage import damage, load_arrays
from ...errors import DataError
from .encoding import Several
from .inputs import SOUND_ENDINGS, VIDEO_ENDINGS, Inputs, Texts, as_inputs, files_of

_IMAGE_ENDINGS = {".bmp", ".gif", ".jpeg", ".jpg", ".png", ".ppm", ".tif", ".tiff", ".webp"}
_ENDINGS = {"image": _IMAGE_ENDINGS, "video": VIDEO_ENDINGS, "sound": SOUND_ENDINGS}
_FRAMES = 16  # of a video, by default
_ITEMS = ("items", "item", "task", "tasks")  # arrays of names
INPUT_COLUMNS = [
    *["text", "content", "sentence", "tweet", "comment", "message", "body", "post", "title"],
    *["image", "image_path", "video", "video_path", "audio", "audio_path", "sound", "sound_path"],
    *["file", "filename", "file_name", "path"],
]


@dataclass(frozen=True, eq=False)
class InputIndex:
    """All inputs of a file or folder, by the names of their items."""

    name: str  # of the file or folder
    content: Mapping[str, Any]  # item → text, file or row
    build: Callable[[list[Any]], Inputs]
    missing: str  # start of the message about an item without input

    def knows(self, items: Names) -> Array:
        """Return which items have an input: (item)."""
        return np.array([name in self.content for name in items.tolist()], dtype=bool)

    def take(self, items: Names) -> Inputs:
        """Return the inputs of items, all of which have to be there."""
        missing = [name for name in items.tolist() if name not in self.content]
        if missing:
            like = f"; {len(missing) - 1} more items like this" if len(missing) > 1 else ""
            raise DataError(f"{self.missing} {missing[0]!r}{like}", where=self.name)
        return self.build([self.content[name] for name in items.tolist()])


def read_inputs(
    path: str | Path,
    items: Names,
    *,
    column: str | None = None,
    frames: int = _FRAMES,
    sound: bool = False,
) -> Inputs:
    """Return the inputs of items from a folder of images, a table, or an array of features.

    Parameters
    ----------
    path
        A folder of images, videos or sounds, a table with a column for the items, a `.npy` or a
        `.npz`.
    items
        Names of the items.
    column
        Of a table, the column of texts or files; of a `.npz`, which array.
    frames
        Frames per video or sound.
    sound
        Whether videos are used with their sound.
    """
    return read_input_index(path, items, column=column, frames=frames, sound=sound).take(items)


def read_with_features(
    path: str | Path, items: Names, *, features: str | Path | None = None, column: str | None = None
) -> Inputs:
    """Return the inputs of items, with features from a second file beside them, if one is given."""
    inputs = read_inputs(path, items, column=column)
    if features is None:
        return inputs
    return Several({"inputs": inputs, "features": read_inputs(features, items)})


def read_input_index(
    path: str | Path,
    items: Names,
    *,
    column: str | None = None,
    frames: int = _FRAMES,
    sound: bool = False,
) -> InputIndex:
    """Return all inputs of a folder, table or array by name; `items` decide how they are named."""
    path = Path(path)
    files = partial(files_of, frames=frames, sound=sound)
    if path.is_dir():
        return _file_index(path, items, files)
    if not path.exists():
        raise DataError("no such file or folder", where=str(path))
    if path.suffix in (".npy", ".npz"):
        return _rows(path, items, column)
    return _table(path, column, files)


def index_of_texts(name: str, pairs: Iterable[tuple[str, str]]) -> InputIndex:
    """Return texts by the names of their items."""
    return InputIndex(name, dict(pairs), lambda texts: Texts(tuple(texts)), "no text for item")


def items_of(path: str | Path, *, column: str | None = None) -> Names:
    """Return the names of all items whose inputs a folder, table or array has.

    Files are named by their paths below the folder, without extensions where these stay unique, in
    natural order; rows of an array without names are numbered.
    """
    names = [*read_input_index(path, as_names([]), column=column).content]
    if not Path(path).is_dir():
        return as_names(names)
    names.sort(key=_natural)
    short = [_without_ending(name) for name in names]
    return as_names(short if len(set(short)) == len(short) else names)


def read_others(
    path: str | Path, items: Names, *, column: str | None = None
) -> tuple[Names, Inputs]:
    """Return all other items whose inputs a folder, table or array has, and these inputs."""
    input_index = read_input_index(path, items, column=column)
    labelled = set(items.tolist())
    names = as_names([name for name in input_index.content if name not in labelled])
    return names, input_index.take(names)


def as_texts_or_files(folder: Path, values: list[str], frames: int = _FRAMES) -> Inputs:
    """Return the values of a column: as images, videos or sounds if all name one, else as texts."""
    return _column_builder(folder, values, partial(files_of, frames=frames))(values)


def folder_truth(path: str | Path, items: Names) -> dict[str, str]:
    """Return item → class from a folder whose subfolders are named by the classes."""
    index = _file_index(Path(path), items, files_of)
    index.take(items)
    return {name: file.parent.name for name, file in index.content.items()}


def class_folders(path: str | Path) -> tuple[InputIndex, dict[str, str]]:
    """Return the images of a folder with a subfolder for each class, and item → that subfolder.

    Items are named by the numbers at the ends of their file names where these are unique, as
    peerannot does, and otherwise by their paths.
    """
    folder = Path(path)
    by_path = {file.relative_to(folder).as_posix(): file for file in input_files(folder)}
    by_name = {_number(place): file for place, file in by_path.items()}
    if len(by_name) < len(by_path) or not all(name.isdigit() for name in by_name):
        by_name = by_path
    for file in by_path.values():
        if file.parent == folder:
            raise DataError("is in no subfolder of a class", where=str(file))
    index = InputIndex(str(folder), by_name, files_of, "no image for item")
    return index, {name: file.relative_to(folder).parts[0] for name, file in by_name.items()}


def input_files(folder: Path) -> list[Path]:
    """Return the images below a folder; if there are none its videos, or else its sounds."""
    paths = sorted(path for path in folder.rglob("*") if path.is_file())
    for endings in _ENDINGS.values():
        files = [path for path in paths if path.suffix.lower() in endings]
        if files:
            return files
    all_endings = ", ".join(sorted(set().union(*_ENDINGS.values())))
    message = f"no images, videos or sounds in it; they end in {all_endings}"
    raise DataError(message, where=str(folder))


def _file_index(folder: Path, items: Names, build: Callable[[list[Path]], Inputs]) -> InputIndex:
    """Return item → image, video or sound, by the first naming that has most items."""
    files = input_files(folder)
    best: dict[str, Path] = {}
    most = -1
    for naming in _NAMINGS:
        names = [naming(file.relative_to(folder).as_posix()) for file in files]
        counts = Counter(names)
        unique = {name: f for name, f in zip(names, files, strict=True) if counts[name] == 1}
        count = sum(name in unique for name in items.tolist())
        if count > most:
            best, most = unique, count
    ending = files[0].suffix.lower()
    kind = next(kind for kind, endings in _ENDINGS.items() if ending in endings)
    return InputIndex(str(folder), best, build, f"not exactly one {kind} for item")


def _number(path: str) -> str:
    """Return the number at the end of a name, as peerannot writes it."""
    number = PurePosixPath(path).stem.rpartition("-")[2]
    return str(int(number)) if number.isascii() and number.isdigit() else path


def _natural(name: str) -> list[tuple[int, str]]:
    """Return a key for natural order: 2 before 10."""
    parts = re.split(r"([0-9]+)", name)
    return [(int(part) if part.isdigit() else -1, part) for part in parts]


def _without_ending(path: str) -> str:
    return PurePosixPath(path).with_suffix("").as_posix()


_NAMINGS: tuple[Callable[[str], str], ...] = (
    lambda path: path,
    _without_ending,
    lambda path: PurePosixPath(path).name,
    lambda path: PurePosixPath(path).stem,
    _number,
)


def _rows(path: Path, items: Names, column: str | None) -> InputIndex:
    """Return rows of an array: by an array of names, by their numbers, or in order."""
    with damage(f"{path}: not an array of numbers"):
        archive = path.suffix == ".npz"
        arrays = load_arrays(path) if archive else {"": np.load(path, allow_pickle=False)}
    names_key = next((key for key in arrays if key in _ITEMS and key != column), "")
    names = arrays.pop(names_key) if names_key else None
    if column is None and len(arrays) > 1:
        message = f"holds {', '.join(arrays)}; name one of them as the column"
        raise DataError(message, where=str(path))
    if column is not None and column not in arrays:
        raise DataError(f"holds no {column!r}; there are {', '.join(arrays)}", where=str(path))
    values = arrays[column] if column is not None else next(iter(arrays.values()))
    if names is None:
        rows = _row_names(path, len(values), items.tolist())
    else:
        rows = [str(name) for name in names.tolist()]
    content = {name: row for row, name in enumerate(rows)}
    return InputIndex(str(path), content, lambda row: as_inputs(values[row]), "no row for item")


def _row_names(path: Path, n_rows: int, items: list[str]) -> list[str]:
    """Return the items of the rows of an array without names."""
    numbers = [int(name) if name.isascii() and name.isdigit() else -1 for name in items]
    least, most = min(numbers, default=0), max(numbers, default=0)
    if least >= 0 and most < n_rows:
        return [str(row) for row in range(n_rows)]
    if n_rows == len(items) and least < 0:
        return items
    count = (
        f", but {len(items)} items" if n_rows != len(items) else f" for items such as {items[0]}"
    )
    message = f"{n_rows} rows{count}; name the rows in an array 'items'"
    raise DataError(message, where=str(path))


def _table(path: Path, column: str | None, files: Callable[[list[Path]], Inputs]) -> InputIndex:
    from ...formats.columns import NEEDED, find_columns, plain_name
    from ...formats.sources import open_source
    from ...formats.tables import column_names, read_columns

    source = open_source(path)
    present = column_names(source)
    inputs = [name for name in present if plain_name(name) in INPUT_COLUMNS]
    if column is None and len(inputs) != 1:
        count = "several columns" if inputs else "no column"
        candidates = ", ".join(inputs or present)
        raise source.fail(f"{count} of texts or files among {candidates}; name the column")
    needed = {"item": [*NEEDED["item"], "id"]}
    roles = find_columns(present, needed, {"input": column or inputs[0]}, source.name)
    frame = read_columns(source, list(dict.fromkeys(roles.values()))).drop_nulls()
    names, values = (frame[roles[role]].cast(str).to_list() for role in ("item", "input"))
    build = _column_builder(path.parent, values, files)
    return InputIndex(str(path), dict(zip(names, values, strict=True)), build, "no row for item")


def _column_builder(
    folder: Path, values: list[str], files: Callable[[list[Path]], Inputs]
) -> Callable[[list[str]], Inputs]:
    """Return what builds inputs of a column: of files if all are images, videos or sounds."""
    all_files = values and any(
        all(len(text) < 300 and Path(text).suffix.lower() in endings for text in values)
        for endings in _ENDINGS.values()
    )
    if all_files:
        return lambda names: files([_inside(folder, name) for name in names])
    return lambda texts: Texts(tuple(texts))


def _inside(folder: Path, name: str) -> Path:
    """Return a file named in a table, which has to be below the table's folder."""
    file = (folder / name).resolve()
    if not file.is_relative_to(folder.resolve()):
        raise DataError(f"{name!r} lies outside {folder}; images are named from the table's folder")
    return file
