"""`{item: {annotator: label}}`, in a file or in the folder layout of peerannot.

In a folder (`answers.json`, `metadata.json`), items, annotators and classes are numbers from 0;
other names are kept in the metadata. Some sets of peerannot are the other way round,
`{annotator: {item: label}}`; content cannot show that, so it is read only on request.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import IO, Any

import numpy as np
import polars as pl

from .._names import as_names, numbered
from .._relation import Integers
from .._serialization import damage
from ..annotations import Annotations
from ..errors import DataError
from ._platforms import as_label
from .exports import Export, Head, Question
from .frames import one_answer_each
from .json_records import load
from .sources import Source, open_source

_PEOPLE = ("worker", "annotator", "user", "rater", "performer", "coder")


def is_nested(answers: Any) -> bool:
    """Return whether this is an object of objects."""
    return isinstance(answers, dict) and all(isinstance(one, dict) for one in answers.values())


def read_metadata(folder: str | Path, file: str | Path | None = None) -> dict[str, Any]:
    """Return the metadata of a folder; nothing if it has none."""
    path = Path(file) if file else Path(folder) / "metadata.json"
    if not path.exists() and file is None:
        return {}
    source = open_source(path, "json")
    metadata = load(source)
    if not isinstance(metadata, dict):
        raise source.fail("metadata should be an object with name and n_classes")
    return metadata


def read_folder(
    folder: str | Path,
    *,
    answers: str | Path = "answers.json",
    metadata: str | Path | None = None,
    classes: Any = None,
    inverted: bool = False,
    duplicates: str = "count",
) -> Annotations:
    """Return the annotations of a data set folder; inverted, of `{annotator: {item: label}}`."""
    path = Path(folder) / answers
    if not path.exists():
        raise DataError(f"{folder}: no {answers} in this folder; name the file itself")
    source = open_source(path, "json")
    given = load(source)
    if not is_nested(given):
        raise source.fail("answers should be {item: {annotator: label}}")
    if inverted:
        given = _turned(given)
    given = one_answer_each(given, duplicates, str(path))
    notes = read_metadata(folder, metadata)
    if classes is None and isinstance(notes.get("n_classes"), int):
        classes = numbered(notes["n_classes"])
    n_items = notes.get("n_task", notes.get("n_tasks"))
    if isinstance(n_items, int) and set(given) <= set(numbered(n_items).tolist()):
        given = {name: given.get(name, {}) for name in numbered(n_items).tolist()}
    annotations = Annotations.from_dict(given, classes=classes)
    with damage(f"{folder}: the names in the metadata do not fit the answers"):
        return _named(annotations, notes.get("names"))


def load_array(path: str | Path | IO[bytes], name: str | None = None) -> np.ndarray[Any, Any]:
    """Read an array; pickled objects are refused."""
    with damage(f"{name or path}: not an array of numbers"):
        array = np.load(path, allow_pickle=False)
        if not isinstance(array, np.ndarray):
            raise DataError(f"{name or path}: an archive of arrays; name one array, as .npy")
        return array


def recognises(head: Head) -> bool:  # noqa: ARG001
    """Return False: the inverted form is only read on request."""
    return False


def read(source: Source) -> Export:
    """Return the answers of `{annotator: {item: label}}`."""
    given = load(source)
    if not is_nested(given):
        raise source.fail("answers should be {annotator: {item: label}}")
    rows = [
        (item, annotator, as_label(label))
        for annotator, answers in given.items()
        for item, labels in answers.items()
        for label in (labels if isinstance(labels, list) else [labels])
    ]
    schema = {"item": pl.String, "annotator": pl.String, "label": pl.String}
    return Export({"label": Question(pl.DataFrame(rows, schema=schema, orient="row"))})


def orientation_note(
    annotations: Annotations, metadata: Mapping[str, Any] | None = None
) -> tuple[str, ...]:
    """Return a note if the outer names can hardly be items, by their words or their number."""
    outer = annotations.items[annotations.labels_per_item > 0].tolist()
    inner = annotations.annotators.tolist()
    if outer and all(name.casefold().startswith(_PEOPLE) for name in outer):
        inverted = not any(name.casefold().startswith(_PEOPLE) for name in inner)
    else:
        metadata = metadata or {}
        n_workers: Any = metadata.get("n_workers")
        n_items: Any = metadata.get("n_task", metadata.get("n_tasks"))
        counted = isinstance(n_workers, int) and isinstance(n_items, int) and n_workers != n_items
        inverted = counted and len(outer) <= n_workers < len(inner) <= n_items
    if not inverted:
        return ()
    return ("the outer names look like annotators; --format peerannot-inverted turns them",)


def _turned(given: Mapping[str, Mapping[str, Any]]) -> dict[str, dict[str, Any]]:
    """Return `{item: {annotator: label}}` of `{annotator: {item: label}}`."""
    answers: dict[str, dict[str, Any]] = {}
    for annotator, labels in given.items():
        for item, label in labels.items():
            answers.setdefault(item, {})[annotator] = label
    return answers


def _named(annotations: Annotations, names: Any) -> Annotations:
    """Return annotations on numbers under the names that the metadata keeps for them."""
    if not isinstance(names, dict):
        return annotations

    def code(given: np.ndarray[Any, Any], codes: Any) -> Integers:
        return np.array([int(name) for name in given.tolist()], dtype=np.int64)[codes]

    known: Any = {
        kind: as_names(names.get(kind, [])) for kind in ("items", "annotators", "classes")
    }
    return Annotations.from_codes(
        code(annotations.items, annotations.item),
        code(annotations.annotators, annotations.annotator),
        code(annotations.classes, annotations.label),
        **known,
    )
