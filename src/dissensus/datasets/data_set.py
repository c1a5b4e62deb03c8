"""One data set as a folder: annotations with their numbers kept, metadata, truth and pictures."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np

from .._names import Names, numbered
from .._relation import indices_of
from ..annotations import Annotations
from ..errors import DataError
from ..readers.folders import read_metadata
from ..readers.reading import examine
from ..writers.folders import write_folder
from ..writers.table_files import write_json
from .image_links import Link, Pictures, link_all, plan_links, read_words

__all__ = ["Installed", "Layout", "read_answers", "settle"]

Layout = Literal[0, 1, 2]  # a matrix, items of annotators, annotators of items


@dataclass(frozen=True)
class Installed:
    """What was installed, and where."""

    folder: Path
    annotations: Annotations | None  # nothing where a script put them elsewhere
    n_links: int = 0
    notes: tuple[str, ...] = ()


def settle(
    folder: Path,
    annotations: Annotations,
    notes: tuple[str, ...],
    *,
    metadata: Any,
    label_names: Any,
    pictures: Pictures | None,
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
        told = metadata if "n_classes" in own else label_names
        raise DataError(f"{told}: {n_classes} classes, but labels have {annotations.n_classes}")
    truth = None
    if test_truth:
        truth = read_answers(Path(test_truth), test_truth_format)[0].to_dict()
    elif any(link.part == "test" for link in links):
        truth = _by_folder(links, names)
    more: dict[str, Any] = {"nb_workers": int((annotations.labels_per_annotator > 0).sum())}
    if names:
        more["label_names"] = names
    if name:
        more["name"] = name
    write_folder(folder, annotations, metadata={**more, **_kept(own)})
    if truth is not None:
        write_json(folder / "test_groundTruth.json", truth)
    link_all(links, folder)
    return Installed(folder, annotations, len(links), notes)


def _kept(own: Mapping[str, Any]) -> dict[str, Any]:
    """Return what metadata says, but for counts and names that are counted again."""
    return {key: value for key, value in own.items() if key not in ("n_task", "names")}


def _numbered(annotations: Annotations, n_classes: int | None) -> Annotations:
    """Return annotations whose numbers are not closed up: item 7 stays the eighth."""
    names = {
        "items": annotations.items,
        "annotators": annotations.annotators,
        "classes": annotations.classes,
    }
    least = {"items": 0, "annotators": 0, "classes": n_classes or 0}
    full = {kind: _up_to(given, least[kind]) for kind, given in names.items()}
    item, annotator, label = (
        indices_of(names[kind], full[kind]) for kind in ("items", "annotators", "classes")
    )
    return Annotations.from_codes(
        item[annotations.item], annotator[annotations.annotator], label[annotations.label], **full
    )


def _up_to(names: Names, least: int) -> Names:
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
    """Return annotations from a file, as told or as it looks."""
    if not path.exists():
        raise DataError(f"{path}: no such file or directory")
    if layout == 0 or (layout is None and path.suffix == ".txt"):
        return Annotations.from_matrix(_matrix(path)), ()
    told = {None: None, 1: "json", 2: "peerannot-inverted"}[layout]
    found = examine(path, format=told)
    return found.annotations, found.notes


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
