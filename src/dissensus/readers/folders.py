"""The folder layout of peerannot: `answers.json`, `metadata.json`, truth and label files.

There, items, annotators and classes are numbers from 0. Other names are written as their codes,
with the names kept in the metadata, and come back when the folder is read.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import IO, Any

import numpy as np

from .._files import atomic_file
from .._names import as_names, numbered
from .._relation import Integers
from ..annotations import Annotations
from ..errors import DataError
from ..result import Aggregation
from .inverted import turned
from .records import parse
from .sources import open_source

__all__ = [
    "is_folder",
    "load_array",
    "read_folder",
    "read_metadata",
    "write_folder",
    "write_labels",
]


def is_folder(path: str | Path) -> bool:
    """Return whether a path is a data set folder."""
    return str(path) != "-" and Path(path).is_dir()


def read_metadata(folder: str | Path, file: str | Path | None = None) -> dict[str, Any]:
    """Return what the folder says about itself; nothing if it is silent."""
    path = Path(file) if file else Path(folder) / "metadata.json"
    if not path.exists() and file is None:
        return {}
    source = open_source(path, "json")
    notes = parse(source, source.text(), None)
    if not isinstance(notes, dict):
        raise source.fail("metadata should be an object with name and n_classes")
    return notes


def read_folder(
    folder: str | Path,
    *,
    answers: str | Path = "answers.json",
    metadata: str | Path | None = None,
    classes: Any = None,
    inverted: bool = False,
) -> Annotations:
    """Return the annotations of a data set folder; inverted, of `{annotator: {item: label}}`."""
    path = Path(folder) / answers
    if not path.exists():
        raise DataError(f"{folder}: no {answers} in this folder; name the file itself")
    source = open_source(path, "json")
    given = parse(source, source.text(), None)
    if not isinstance(given, dict) or not all(isinstance(one, dict) for one in given.values()):
        raise source.fail("answers should be {item: {annotator: label}}")
    if inverted:
        given = turned(given)
    notes = read_metadata(folder, metadata)
    if classes is None and isinstance(notes.get("n_classes"), int):
        classes = numbered(notes["n_classes"])
    n_items = notes.get("n_task", notes.get("n_tasks"))
    if isinstance(n_items, int) and set(given) <= set(numbered(n_items).tolist()):
        given = {name: given.get(name, {}) for name in numbered(n_items).tolist()}
    annotations = Annotations.from_dict(given, classes=classes)
    return _named(annotations, notes.get("names"))


def write_folder(
    folder: str | Path,
    annotations: Annotations,
    *,
    notes: Mapping[str, Any] | None = None,
    arrays: Mapping[str, np.ndarray[Any, Any]] | None = None,
) -> None:
    """Write annotations, metadata and any arrays beside them as a data set folder."""
    target = Path(folder)
    target.mkdir(parents=True, exist_ok=True)
    metadata = {
        "name": target.resolve().name,
        "n_classes": annotations.n_classes,
        "n_workers": annotations.n_annotators,
        "n_task": annotations.n_items,
        **(notes or {}),
    }
    names = {
        "items": annotations.items,
        "annotators": annotations.annotators,
        "classes": annotations.classes,
    }
    if any(_is_other(given) for given in names.values()):
        metadata["names"] = {kind: given.tolist() for kind, given in names.items()}
    write_notes(target / "answers.json", annotations.to_dict(coded=True))
    write_notes(target / "metadata.json", metadata)
    for name, array in (arrays or {}).items():
        save_array(target / f"{name}.npy", array)


def write_labels(
    folder: str | Path,
    result: Aggregation,
    strategy: str,
    *,
    hard: bool,
    suffix: bool,
    name: str | None = None,
) -> Path:
    """Write a label file as peerannot names it, and return where it is.

    Hard labels are class numbers, otherwise it is the posterior; the suffix only names the file.
    """
    name = name or read_metadata(folder).get("name") or Path(folder).resolve().name
    file = f"labels_{name}_{strategy.lower()}{'_hard' if suffix else ''}.npy"
    if "/" in file or "\\" in file:
        raise DataError(f"{folder}: the name {name!r} with {strategy!r} cannot be a file name")
    path = Path(folder) / "labels" / file
    save_array(path, result.label if hard else result.posterior)
    return path


def write_notes(path: Path, content: Any) -> None:
    """Write JSON, all of it or nothing."""
    with atomic_file(path) as draft:
        draft.write_text(json.dumps(content), encoding="utf-8")


def save_array(path: Path, array: np.ndarray[Any, Any]) -> None:
    """Write an array, all of it or nothing."""
    with atomic_file(path) as draft, draft.open("wb") as file:
        np.save(file, array, allow_pickle=False)


def load_array(path: str | Path | IO[bytes], name: str | None = None) -> np.ndarray[Any, Any]:
    """Read an array; nothing in it is run."""
    try:
        return np.load(path, allow_pickle=False)
    except (OSError, ValueError, EOFError) as problem:
        raise DataError(f"{name or path}: not an array of numbers ({problem})") from None


def _is_other(names: np.ndarray[Any, Any]) -> bool:
    return not np.array_equal(names, numbered(len(names)))


def _named(annotations: Annotations, names: Any) -> Annotations:
    """Return annotations on numbers under the names that the metadata keeps for them."""
    if not isinstance(names, dict):
        return annotations
    kept = {kind: as_names(names.get(kind, [])) for kind in ("items", "annotators", "classes")}

    def code(given: np.ndarray[Any, Any], codes: Any) -> Integers:
        return np.array([int(name) for name in given.tolist()], dtype=np.int64)[codes]

    return Annotations.from_codes(
        code(annotations.items, annotations.item),
        code(annotations.annotators, annotations.annotator),
        code(annotations.classes, annotations.label),
        items=kept["items"],
        annotators=kept["annotators"],
        classes=kept["classes"],
    )
