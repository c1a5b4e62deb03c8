"""`{item: {annotator: label}}`, in a file or in the folder layout of peerannot.

In a folder (`answers.json`, `metadata.json`), items, annotators and classes are numbers from 0;
other names are kept in the metadata, and so is a scale. Some sets of peerannot are the other way
round, `{annotator: {item: label}}`; content cannot show that, so it is read only on request.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import IO, Any

import numpy as np
import polars as pl

from ...answers.left_out import LeftOut, with_left_out
from ...base.names import Names, as_names, indices_of, numbered, text
from ...base.arrays import Integers
from ...base.storage import damage
from ...answers.annotations import SCALES, Annotations
from ...errors import DataError
from ..platforms import as_label
from ..format import Export, Head, Question
from ..frames import one_answer_each
from ..json_records import load
from ..sources import Source, open_source

_MOST_UNUSED = 10**6  # numbers that may be declared without being used
_MOST_CLASSES = 10**6
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
    n_classes: int | None = None,
    inverted: bool = False,
    duplicates: str = "count",
    missing: str = "error",
) -> Annotations:
    """Return the annotations of a data set folder; inverted, of `{annotator: {item: label}}`."""
    path = Path(folder) / answers
    if not path.exists():
        raise DataError(f"{folder}: no {answers} in this folder; name the file itself")
    source = open_source(path, "json")
    given = load(source)
    if not is_nested(given):
        raise source.fail("answers should be {item: {annotator: label}}")
    people = LeftOut(annotators=tuple(given) if inverted else ())  # somebody may have no item
    if inverted:
        given = _turned(given)
    given, left_out = one_answer_each(given, duplicates, str(path), missing)
    left_out += people
    notes = read_metadata(folder, metadata)
    annotations = from_answers(
        given,
        n_items=notes.get("n_task", notes.get("n_tasks")),
        n_annotators=notes.get("n_workers"),
        n_classes=notes.get("n_classes") if n_classes is None else n_classes,
        classes=classes,
    )
    with damage(f"{folder}: the names in the metadata do not fit the answers"):
        annotations = _named(annotations, notes.get("names"))
    scale = notes.get("scale")
    annotations = annotations.with_scale(scale) if scale in SCALES else annotations
    return with_left_out(annotations, _renamed(left_out, notes.get("names")))


def from_answers(
    answers: Mapping[Any, Mapping[Any, Any]],
    *,
    n_items: Any = None,
    n_annotators: Any = None,
    n_classes: Any = None,
    classes: Any = None,
) -> Annotations:
    """Return the annotations of `{item: {annotator: label}}`.

    Where names are numbers below a count, all numbers below it are declared, so that number 7 is
    the eighth. A label that is a larger number adds classes.
    """
    if classes is None and isinstance(n_classes, int):
        classes = numbered(max(n_classes, _largest(answers) + 1))
    annotations = Annotations.from_dict(answers, classes=classes)
    items = _declared(annotations.items, n_items)
    annotators = _declared(annotations.annotators, n_annotators)
    if items is annotations.items and annotators is annotations.annotators:
        return annotations
    return annotations.with_codes(
        item=indices_of(annotations.items, items)[annotations.item],
        annotator=indices_of(annotations.annotators, annotators)[annotations.annotator],
        items=items,
        annotators=annotators,
    )


def folder_notes(annotations: Annotations, metadata: Mapping[str, Any]) -> tuple[str, ...]:
    """Return what the answers of a folder show that its metadata do not."""
    n_classes, found = metadata.get("n_classes"), annotations.n_classes
    notes = orientation_note(annotations, metadata)
    if isinstance(n_classes, int) and n_classes < found and "names" not in metadata:
        notes += (f"the metadata count {n_classes} classes, but labels need {found}",)
    return notes


def load_array(path: str | Path | IO[bytes], name: str | None = None) -> np.ndarray[Any, Any]:
    """Read an array; pickled objects are refused."""
    with damage(f"{name or path}: not an array of numbers"):
        array = np.load(path, allow_pickle=False)
        if not isinstance(array, np.ndarray):
            raise DataError(f"{name or path}: an archive of arrays; name one array, as .npy")
        return array


def read_matrices(path: str | Path) -> np.ndarray[Any, Any]:
    """Read the confusion matrices of annotators: (annotator, true, given)."""
    matrices = load_array(path)
    if matrices.ndim != 3 or matrices.dtype.kind not in "fiu":
        raise DataError(f"{path}: confusion matrices are numbers (annotator, true, given)")
    return matrices.astype(float)


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
    frame = pl.DataFrame(rows, schema=schema, orient="row")
    items = tuple(dict.fromkeys(item for answers in given.values() for item in answers))
    left_out = LeftOut(items=items, annotators=tuple(given))  # as far as they have no label
    return Export({"label": Question(frame, left_out=left_out)})


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


def _declared(names: Names, count: Any) -> Names:
    """Return all numbers below a count, where names are some of them; else the names."""
    if not isinstance(count, int) or count > len(names) * 10 + _MOST_UNUSED:
        return names
    return numbered(count) if set(names.tolist()) <= set(numbered(count).tolist()) else names


def _largest(answers: Mapping[Any, Mapping[Any, Any]]) -> int:
    """Return the largest label, where labels are class numbers; else -1."""
    labels = {
        label
        for given in answers.values()
        for one in given.values()
        for label in (one if isinstance(one, list) else [one])
    }
    whole = all(type(label) is int and 0 <= label < _MOST_CLASSES for label in labels)
    return max(labels, default=-1) if whole else -1


def _turned(given: Mapping[str, Mapping[str, Any]]) -> dict[str, dict[str, Any]]:
    """Return `{item: {annotator: label}}` of `{annotator: {item: label}}`."""
    answers: dict[str, dict[str, Any]] = {}
    for annotator, labels in given.items():
        for item, label in labels.items():
            answers.setdefault(item, {})[annotator] = label
    return answers


def _renamed(left_out: LeftOut, names: Any) -> LeftOut:
    """Return what was left out with annotators under the names that the metadata keep for them."""
    known = names.get("annotators", []) if isinstance(names, dict) else []
    numbers = dict(zip(map(str, range(len(known))), map(text, known), strict=True))
    annotators = tuple(numbers.get(name, name) for name in left_out.annotators)
    return replace(left_out, annotators=annotators)


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
