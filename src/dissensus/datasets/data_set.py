"""One data set as a folder: annotations, metadata, truth and pictures."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np

from ..base.names import Names, indices_of, numbered
from ..answers.annotations import Annotations
from ..errors import DataError
from ..formats.tools.peerannot import read_metadata
from ..formats.reading import examine
from ..formats.tools.folders import write_answers, write_folder
from ..formats.writing import write_json
from .image_links import ImageFolders, Link, absent_folders, link_all, plan_links, read_words

Layout = Literal[0, 1, 2]  # a matrix, items of annotators, annotators of items


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
    more = {"label_names": names, "name": name}
    own = {key: value for key, value in own.items() if key not in ("n_task", "names")}
    given = {key: value for key, value in more.items() if value}
    write_folder(folder, annotations, metadata={**counted, **given, **own})
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
    known = names or sorted({link.label for link in links if link.part != "test"})
    codes = {name: code for code, name in enumerate(known)}
    tested = [link for link in links if link.part == "test"]
    for link in tested:
        if link.label not in codes:
            raise DataError(f"{link.file.parent}: not among the classes {', '.join(known)}")
    return {str(link.item): {"0": codes[link.label]} for link in tested}


def read_answers(path: Path, layout: Layout | None) -> tuple[Annotations, tuple[str, ...]]:
    """Return annotations from a file, in a given or recognised format."""
    if not path.exists():
        raise DataError(f"{path}: no such file or directory")
    if layout == 0 or (layout is None and path.suffix == ".txt"):
        return Annotations.from_matrix(_matrix(path)), ()
    reading = examine(path, format={None: None, 1: "json", 2: "peerannot-inverted"}[layout])
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
            f"{path}: no matrix of class numbers with items in rows ({problem}); "
            "--answers-format 1 and 2 are JSON"
        ) from None
    return whole
