"""Pictures of the items, linked as peerannot expects them: `train/<class>/<name>-<item>`.

The number after the last dash is the item. Training pictures get it from their position in a
list of file names, those for validation and test get the numbers that follow.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ..errors import DataError

_VALIDATION = 0.2  # share of the training pictures, where no others are given


@dataclass(frozen=True)
class ImageFolders:
    """Folders of pictures, each with a folder for each class."""

    names: Path  # a text with the name of every training picture, in the order of items
    train: Path
    val: Path | None = None
    test: Path | None = None


@dataclass(frozen=True)
class Link:
    """One picture, where it is linked, and its item."""

    file: Path
    part: str  # train, val or test
    item: int

    @property
    def label(self) -> str:
        """The class, which is the folder's name."""
        return self.file.parent.name

    @property
    def position(self) -> Path:
        """The path of the link in the data set's folder."""
        return Path(self.part) / self.label / f"{self.file.stem}-{self.item}{self.file.suffix}"


def plan_links(pictures: ImageFolders, seed: int) -> list[Link]:
    """Return every link to make; nothing is written."""
    position = {name: row for row, name in enumerate(read_words(pictures.names))}
    rng = np.random.default_rng(seed)
    links = []
    for file in _files(pictures.train):
        if file.name not in position:
            raise DataError(f"{pictures.names}: no {file.name!r}, which is in {file.parent}")
        held = pictures.val is None and rng.random() < _VALIDATION
        links.append(Link(file, "val" if held else "train", position[file.name]))
    item = max([len(position) - 1, *(link.item for link in links)]) + 1
    for part, folder in (("val", pictures.val), ("test", pictures.test)):
        for file in _files(folder) if folder and folder.is_dir() else ():
            links.append(Link(file, part, item))
            item += 1
    return links


def absent_folders(pictures: ImageFolders) -> tuple[str, ...]:
    """Return a sentence about every folder that is not there, which leaves a part empty."""
    parts = {"val": pictures.val, "test": pictures.test}
    return tuple(
        f"{folder}: no such folder; {part}/ stays empty"
        for part, folder in parts.items()
        if folder and not folder.is_dir()
    )


def link_all(links: list[Link], folder: Path, *, test: bool) -> None:
    """Make the links and a folder for every part; links that are there already stay."""
    for part in ("train", "val", *(["test"] if test else [])):
        (folder / part).mkdir(parents=True, exist_ok=True)
    for link in links:
        position = folder / link.position
        position.parent.mkdir(parents=True, exist_ok=True)
        if position.is_symlink() and position.readlink() == link.file:
            continue
        if position.is_symlink() or position.exists():
            raise DataError(f"{position}: is there already; name a new --folder")
        position.symlink_to(link.file)


def read_words(path: Path) -> list[str]:
    """Return the names in a text, one on each line."""
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as problem:
        raise DataError(f"{path}: cannot be read as a list of names ({problem})") from None
    names = [line.strip() for line in lines if line.strip()]
    if not names:
        raise DataError(f"{path}: no names in it")
    return names


def _files(folder: Path) -> list[Path]:
    """Return the pictures in a folder with a folder for each class, in the order of names."""
    if not folder.is_dir():
        raise DataError(f"{folder}: no such folder")
    files = sorted(file.resolve() for file in folder.glob("*/*") if file.is_file())
    if not files:
        raise DataError(f"{folder}: no pictures in folders named after classes")
    return files
