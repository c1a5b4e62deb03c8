"""One data set as a folder: annotations, metadata, truth and pictures.

Pictures of the items are linked as peerannot expects them: `train/<class>/<name>-<item>`. The
number after the last dash is the item. Training pictures get it from their position in a list of
file names, those for validation and test get the numbers that follow.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np

from ..answers.annotations import Annotations
from ..base.names import Names, indices_of, numbered
from ..errors import DataError
from ..formats.reading import examine
from ..formats.tools.peerannot import read_metadata, write_answers, write_folder
from ..formats.writing import write_json

_VALIDATION = 0.2  # share of the training pictures, where no others are given

Layout = Literal[0, 1, 2]  # a matrix, items of annotators, annotators of items


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
            where = str(position)
            raise DataError("is there already", where=where, remedy="name a new {}", folder=...)
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


@dataclass(frozen=True)
class Installed:
    """An installed data set."""

    folder: Path
    annotations: Annotations | None  # none if a script put them elsewhere
    n_links: int = 0
    notes: tuple[str, ...] = ()


def write_data_set(
    folder: Path,
    annotations: Annotations,
    notes: tuple[str, ...],
    *,
    metadata: Any,
    label_names: Any,
    pictures: ImageFolders | None,
    answers_only: bool,
    test_truth: Any,
    test_truth_format: Layout | None,
    seed: int,
    name: str | None = None,
) -> Installed:
    """Write the folder; everything is read before anything is written."""
    own = read_metadata(folder, metadata) if metadata else {}
    names = read_words(Path(label_names)) if label_names else None
    links = plan_links(pictures, seed) if pictures else []
    n_classes = own.get("n_classes", len(names) if names else None)
    annotations = _numbered(annotations, n_classes if isinstance(n_classes, int) else None)
    if isinstance(n_classes, int) and n_classes < annotations.n_classes:
        file = metadata if "n_classes" in own else label_names
        raise DataError(f"{file}: {n_classes} classes, but labels have {annotations.n_classes}")
    truth = None
    if test_truth:
        truth = read_answers(Path(test_truth), test_truth_format)[0].to_dict()
    elif pictures and pictures.test:
        truth = _by_folder(links, names)
    if answers_only and not (metadata or names):
        write_answers(folder, annotations)
        return Installed(folder, annotations, notes=notes)
    counted = {"nb_workers": int((annotations.labels_per_annotator > 0).sum())}
    optional = {"label_names": names, "name": name}
    own = {key: value for key, value in own.items() if key not in ("n_task", "names")}
    stated = {key: value for key, value in optional.items() if value}
    write_folder(folder, annotations, metadata={**counted, **stated, **own})
    if truth is not None:
        write_json(folder / "test_groundTruth.json", truth)
    if pictures:
        link_all(links, folder, test=pictures.test is not None)
        notes += absent_folders(pictures)
    return Installed(folder, annotations, len(links), notes)


def _numbered(annotations: Annotations, n_classes: int | None) -> Annotations:
    """Return annotations in which numbers keep their positions: item 7 stays the eighth."""
    items, annotators = _up_to(annotations.items), _up_to(annotations.annotators)
    classes = _up_to(annotations.classes, n_classes or 0)
    return Annotations.from_codes(
        indices_of(annotations.items, items)[annotations.item],
        indices_of(annotations.annotators, annotators)[annotations.annotator],
        indices_of(annotations.classes, classes)[annotations.label],
        items=items,
        annotators=annotators,
        classes=classes,
    )


def _up_to(names: Names, least: int = 0) -> Names:
    """Return all numbers up to the largest, where names are numbers without large gaps."""
    texts = names.tolist()
    if not all(name.isascii() and name.isdigit() and str(int(name)) == name for name in texts):
        return names
    count = max([least, *(int(name) + 1 for name in texts)])
    return numbered(count) if count <= 10 * len(texts) + 1000 else names


def _by_folder(links: list[Link], names: list[str] | None) -> dict[str, dict[str, int]]:
    """Return the class of every test picture, which is the folder it is in."""
    class_names = names or sorted({link.label for link in links if link.part != "test"})
    codes = {name: code for code, name in enumerate(class_names)}
    tested = [link for link in links if link.part == "test"]
    for link in tested:
        if link.label not in codes:
            raise DataError(f"{link.file.parent}: not among the classes {', '.join(class_names)}")
    return {str(link.item): {"0": codes[link.label]} for link in tested}


def read_answers(path: Path, layout: Layout | None) -> tuple[Annotations, tuple[str, ...]]:
    """Return annotations from a file, in a given or recognised format."""
    if not path.exists():
        raise DataError(f"{path}: no such file or directory")
    if layout == 0 or (layout is None and path.suffix == ".txt"):
        return Annotations.from_matrix(_matrix(path)), ()
    formats = {None: None, 1: "json", 2: "peerannot-inverted"}
    reading = examine(path, kind="single", format=formats[layout])
    return reading.annotations, reading.notes


def _matrix(path: Path) -> np.ndarray[Any, Any]:
    try:
        text = path.read_text(encoding="utf-8").replace(",", " ").replace("\t", " ")
        rows = np.loadtxt(text.splitlines(), ndmin=2)
        whole = rows.astype(np.int64)
        if rows.size == 0 or not np.array_equal(whole, rows):
            raise ValueError("not all of them are whole numbers")
    except (OSError, ValueError, OverflowError) as problem:
        raise DataError(
            f"no matrix of class numbers with items in rows ({problem})",
            where=str(path),
            remedy="and 2 are JSON",
            answers_format=1,
        ) from None
    return whole
