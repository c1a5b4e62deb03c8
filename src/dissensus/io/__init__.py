"""Reading and writing: files and tables outside, `Annotations` and results inside."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from .._names import as_names, numbered
from ..annotations import Annotations
from ..errors import DataError
from ..measurements import Numbers
from .columns import CARRIED, NEEDED, TRUTH, find_columns
from .folders import is_folder, load_array, read_folder, write_folder
from .sources import open_source
from .tables import annotations_from, column_names, read_columns
from .writing import losses, write

if TYPE_CHECKING:
    from ..metrics import Predictions

__all__ = [
    "as_numbers",
    "losses",
    "read",
    "read_predictions",
    "read_truth",
    "write",
    "write_folder",
]


def read(
    source: Any,
    *,
    format: str | None = None,  # noqa: A002
    columns: Mapping[str, str] | None = None,
    classes: Sequence[Any] | None = None,
    missing: str = "error",
) -> Annotations:
    """Return the annotations in a file, folder or table.

    Parameters
    ----------
    source
        A path to a table (csv, tsv, parquet, arrow, jsonl, json; text also as .gz or .zst), to a
        folder with `answers.json`, or `-` for standard input; a polars, pandas or Arrow table; or
        `{item: {annotator: label}}`.
    format
        The format, where its content does not tell.
    columns
        Which column is which, `{"item": …, "annotator": …, "label": …}`, where the names do not
        tell. Further entries are carried along under their key.
    classes
        All classes there are, in order, where labels may not show them all.
    missing
        What to do with rows that lack an item, annotator or label: `error` or `drop`.

    Examples
    --------
    >>> read({"a": {"ann": "cat", "bob": "dog"}})
    <Annotations: 2 labels by 2 annotators on 1 items; classes cat, dog>
    """
    if isinstance(source, Annotations):
        return source
    if isinstance(source, Mapping):
        return Annotations.from_dict(source, classes=classes)
    if not isinstance(source, (str, Path)):
        return annotations_from(source, columns=columns, classes=classes, missing=missing)
    if is_folder(source):
        return read_folder(source, classes=classes)
    opened = open_source(source, format)
    if opened.format == "npy":
        return Annotations.from_matrix(load_array(source), classes=classes)
    if opened.format == "json":
        from .records import parse

        found = parse(opened, opened.text(), None)
        if isinstance(found, dict) and all(isinstance(one, dict) for one in found.values()):
            return _nested(found, classes, opened.name)
    present = column_names(opened)
    roles = find_columns(present, NEEDED, columns, opened.name, CARRIED)
    frame = read_columns(opened, list(dict.fromkeys(roles.values())))
    said = annotations_from(frame, columns=roles, classes=classes, missing=missing, source=opened)
    if len(said) == 0:
        raise opened.fail("no labels in it, only a header")
    return said


def as_numbers(said: Annotations) -> Numbers:
    """Return annotations whose classes are numbers as numbers."""
    try:
        value = np.array([float(name) for name in said.classes.tolist()])
    except ValueError as problem:
        raise DataError(f"labels that are numbers were expected ({problem})") from None
    return Numbers.from_codes(
        said.item,
        said.annotator,
        value[said.label],
        items=said.items,
        annotators=said.annotators,
        **said.columns,
    )


def read_truth(source: Any, *, columns: Mapping[str, str] | None = None) -> dict[str, str]:
    """Return `{item: label}` from a table, an array of class numbers, or a simulated folder."""
    if isinstance(source, Mapping):
        pairs = source.items()
        return dict(zip(as_names(k for k, _ in pairs), as_names(v for _, v in pairs), strict=True))
    path = Path(source) / "ground_truth.npy" if is_folder(source) else source
    opened = open_source(path)
    if opened.format == "npy":
        truth = load_array(path)
        if truth.ndim != 1 or truth.dtype.kind not in "iu":
            raise opened.fail("truth should be one class number for every item")
        return {str(item): str(label) for item, label in enumerate(truth.tolist()) if label >= 0}
    roles = find_columns(column_names(opened), TRUTH, columns, opened.name)
    frame = read_columns(opened, list(roles.values()))
    known = frame.drop_nulls().unique(maintain_order=True)
    items = as_names(known[roles["item"]].to_list()).tolist()
    labels = as_names(known[roles["label"]].to_list()).tolist()
    truth_of: dict[str, str] = {}
    for item, label in zip(items, labels, strict=True):
        if truth_of.setdefault(item, label) != label:
            raise opened.fail(
                f"item {item!r} has two true labels, {truth_of[item]!r} and {label!r}"
            )
    return truth_of


def read_predictions(source: str | Path) -> Predictions:
    """Return labels and beliefs that `aggregate` wrote, as a table or as an array."""
    from ..metrics import Predictions

    opened = open_source(source)
    if opened.format == "npy":
        found = load_array(source)
        if found.ndim == 2:
            label, posterior = found.argmax(axis=1), found.astype(float)
            n_classes = found.shape[1]
        elif found.ndim == 1 and found.dtype.kind in "iu":
            label, posterior, n_classes = (
                found.astype(np.int64),
                None,
                int(found.max(initial=0)) + 1,
            )
        else:
            raise opened.fail("labels should be (item) or (item, class)")
        return Predictions(numbered(len(found)), numbered(n_classes), label, posterior)
    present = column_names(opened)
    roles = find_columns(present, TRUTH, None, opened.name)
    beliefs = [name for name in present if name.startswith("p:")]
    frame = read_columns(opened, [*roles.values(), *beliefs])
    labels = frame[roles["label"]].to_list()
    classes = [name.removeprefix("p:") for name in beliefs]
    classes += sorted({str(label) for label in labels if label is not None} - set(classes))
    places = {name: place for place, name in enumerate(classes)}
    codes = np.array([-1 if label is None else places[str(label)] for label in labels], np.int64)
    posterior = None
    if beliefs:
        posterior = np.zeros((len(codes), len(classes)))
        numbers = frame.select(pl.col(beliefs).cast(pl.Float64, strict=False))
        if numbers.null_count().sum_horizontal().item():
            raise opened.fail("every p: column should hold a probability for every item")
        posterior[:, : len(beliefs)] = numbers.to_numpy()
    items = as_names(frame[roles["item"]].to_list())
    return Predictions(items, as_names(classes), codes, posterior)


def _nested(found: Mapping[str, Any], classes: Any, name: str) -> Annotations:
    try:
        return Annotations.from_dict(found, classes=classes)
    except DataError as problem:
        raise DataError(f"{name}: {problem}") from None
