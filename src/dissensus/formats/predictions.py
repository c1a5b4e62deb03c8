"""Labels and probabilities, or numbers, that a method or a classifier gave to items.

A table as `aggregate` writes it has item, label, and `p:<class>` for every class; predictions for
every annotator, as `tendency predict` writes them, have annotator too. Probabilities of a
classifier may also be an array; they are checked against the annotations and put in their order.
"""

from __future__ import annotations

import zipfile
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import polars as pl

from ..answers.annotations import Annotations
from ..base.arrays import Array, Floats, Integers
from ..base.names import Names, abbreviate, as_names, indices_of, numbered, text
from ..base.storage import damage, load_arrays
from ..errors import DataError
from ..result import Predictions, Values
from .columns import NEEDED, TRUTH
from .frames import names_of
from .known import labels_in_memory
from .scales import kind_of_labels
from .sources import Source, open_source
from .tables import column_names, read_roles
from .tools.peerannot import load_array

PREFIX = "p:"


def read_predictions(source: Any, *, scale: str = "auto") -> Predictions | Values:
    """Return the labels and posteriors that `aggregate` wrote, as a table or as an array.

    A pandas, polars or Arrow table, a mapping and a pandas Series of items are read as files are.
    Labels are classes if the table has probabilities or confidence, and numbers if it has standard
    errors; otherwise they are what they look like, unless `scale` says which.
    """
    ordered = scale == "ordinal"
    if not isinstance(source, (str, Path)):
        frame = labels_in_memory(source)
        return _predictions(frame, frame.columns, scale, DataError)
    opened = open_source(source)
    if opened.format == "npy":
        array = load_array(source)
        if array.ndim == 2:
            names = numbered(len(array)), numbered(array.shape[1])
            return Predictions(*names, array.argmax(axis=1), array.astype(float), ordered)
        if array.ndim == 1 and array.dtype.kind in "iu":
            names = numbered(len(array)), numbered(int(array.max(initial=0)) + 1)
            return Predictions(*names, array.astype(np.int64), None, ordered)
        raise opened.fail("labels should be (item) or (item, class)")
    frame = read_roles(opened, TRUTH, prefix=PREFIX)
    return _predictions(frame, column_names(opened), scale, opened.fail)


def _predictions(
    frame: pl.DataFrame, present: list[str], scale: str, fail: Callable[[str], DataError]
) -> Predictions | Values:
    """Return the predictions of a table with item, label and perhaps probabilities."""
    ordered = scale == "ordinal"
    items, label = as_names(names_of(frame["item"]).to_list()), frame["label"]
    classes, probabilities = probabilities_in(frame, fail)
    numeric = scale in ("interval", "ratio")
    if scale == "auto" and not classes:
        numeric = "deviation" in present or kind_of_labels(label).kind == "numeric"
        numeric = numeric and "confidence" not in present
    if numeric:
        value = label.cast(pl.Float64, strict=False)
        wrong = label.filter(value.is_null() & label.is_not_null() | value.is_infinite())
        if len(wrong):
            raise fail(f"label {text(wrong[0])!r} is not a number; take the labels for classes")
        return Values(items, value.fill_null(np.nan).to_numpy())
    label = names_of(label)
    classes += sorted(set(label.drop_nulls()) - set(classes))
    codes = {name: code for code, name in enumerate(classes)}
    codes_of = np.array([-1 if name is None else codes[name] for name in label], np.int64)
    if probabilities is None:
        return Predictions(items, as_names(classes), codes_of, None, ordered=ordered)
    posterior = np.zeros((len(codes_of), len(classes)))
    posterior[:, : probabilities.shape[1]] = probabilities
    return Predictions(items, as_names(classes), codes_of, posterior, ordered=ordered)


def probabilities_in(
    frame: pl.DataFrame, fail: Callable[[str], DataError]
) -> tuple[list[str], Floats | None]:
    """Return the classes of the `p:` columns of a table and their probabilities: (row, class)."""
    columns = [name for name in frame.columns if name.startswith(PREFIX)]
    if not columns:
        return [], None
    numbers = frame.select(pl.col(columns).cast(pl.Float64, strict=False))
    if numbers.null_count().sum_horizontal().item():
        raise fail("every p: column should hold a probability for every row")
    return [name.removeprefix(PREFIX) for name in columns], numbers.to_numpy()


class AnnotatorPredictions(NamedTuple):
    """Predicted labels for pairs of item and annotator, and perhaps class probabilities."""

    annotations: Annotations
    probability: Floats | None  # (annotation, class)

    def rows(self, annotations: Annotations) -> Integers:
        """Return the row of the prediction for every given annotation, -1 for none."""
        predicted = self.annotations
        item, annotator = (
            indices_of(getattr(annotations, names), getattr(predicted, names))
            for names in ("items", "annotators")
        )
        item, annotator = item[annotations.item], annotator[annotations.annotator]
        key = item * predicted.n_annotators + annotator
        keys = predicted.item.astype(np.int64) * predicted.n_annotators + predicted.annotator
        row = np.minimum(np.searchsorted(keys, key), max(len(keys) - 1, 0))
        return np.where((item >= 0) & (annotator >= 0) & (keys[row] == key), row, -1)

    def log_probability(self, annotations: Annotations) -> Floats:
        """Return log-probabilities for annotations with a prediction: (annotation, their class).

        Predicted labels without probabilities have probability one.
        """
        predicted, probability = self.annotations, self.probability
        if probability is None:
            probability = np.eye(predicted.n_classes)[predicted.label]
        column = indices_of(annotations.classes, predicted.classes)
        reported = probability[self.rows(annotations)][:, np.maximum(column, 0)]
        return np.log(np.maximum(np.where(column >= 0, reported, 0.0), 1e-15))


def read_annotator_predictions(path: str | Path) -> AnnotatorPredictions:
    """Read a table of item, annotator, label and, where there are any, p:<class>."""
    source = open_source(path)
    frame = read_roles(source, NEEDED, prefix=PREFIX).drop_nulls(list(NEEDED))
    columns = [as_names([text(name) for name in frame[role].to_list()]) for role in NEEDED]
    classes, probabilities = probabilities_in(frame, source.fail)
    further_classes = sorted(set(columns[2].tolist()) - set(classes))
    annotations = Annotations.from_columns(
        *columns,
        classes=[*classes, *further_classes] if classes else None,
        row=np.arange(len(frame)),
    )
    item, annotator = annotations.item, annotations.annotator
    repeated = np.flatnonzero((item[1:] == item[:-1]) & (annotator[1:] == annotator[:-1]))
    if len(repeated):
        names = annotations.annotators[annotator[repeated[0]]], annotations.items[item[repeated[0]]]
        raise source.fail(f"two predictions for annotator {names[0]!r} and item {names[1]!r}")
    if probabilities is None:
        return AnnotatorPredictions(annotations, None)
    ordered = np.zeros((len(annotations), annotations.n_classes))
    ordered[:, : len(classes)] = probabilities[annotations.columns["row"]]
    return AnnotatorPredictions(annotations, ordered)


def as_models(annotations: Annotations, probabilities: npt.ArrayLike | Sequence[Floats]) -> Floats:
    """Return probabilities of one or several classifiers, checked: (model, item, class)."""
    if annotations.n_classes == 0:
        raise DataError("there is no class to choose from; give labels or declare classes")
    models = np.asarray(probabilities, dtype=np.float64)
    if models.ndim == 2:
        models = models[None]
    shape = (annotations.n_items, annotations.n_classes)
    if models.ndim != 3 or models.shape[1:] != shape or len(models) == 0:
        raise DataError(
            f"probabilities are (item, class), here {shape}, or (model, item, class), "
            f"but these are {np.shape(probabilities)}"
        )
    bad = ~(np.abs(models.sum(axis=2) - 1) < 1e-3) | (models.min(axis=2, initial=0) < 0)
    if bad.any():
        item = bad.any(axis=0).argmax()
        raise DataError(
            f"probabilities of item {annotations.items[item]!r} are not from 0 to 1 with sum 1; "
            f"{bad.any(axis=0).sum()} items are like this"
        )
    return models


def read_probabilities(path: str | Path, annotations: Annotations) -> Floats:
    """Return the probabilities in a file in the order of the annotations: (item, class).

    Parameters
    ----------
    path
        A table with a column for the item and one column `p:<class>` for every class; an array
        (`.npy`) in the order of the annotations' items and classes; or arrays (`.npz`), of which
        `probabilities` is in the order of `items` and `classes` where these are there too. An array
        may have one more axis, the first, for several classifiers.
    annotations
        The annotations. Other items in the file are ignored.
    """
    if zipfile.is_zipfile(path) or str(path).endswith(".npz"):
        probabilities = _from_arrays(path, annotations)
    else:
        source = open_source(path)
        if source.format == "npy":
            probabilities = _numbers(load_array(path), str(path))
        else:
            probabilities = _from_table(source, annotations)
    try:
        as_models(annotations, probabilities)
    except DataError as problem:
        raise problem.at(str(path)) from None
    return probabilities


def _from_table(source: Source, annotations: Annotations) -> Floats:
    frame = read_roles(source, {"item": NEEDED["item"]}, prefix=PREFIX)
    classes, probabilities = probabilities_in(frame, source.fail)
    if probabilities is None:
        raise source.fail(f"no column {PREFIX}<class>, such as {PREFIX}{annotations.classes[0]}")
    items = as_names(frame["item"].to_list())
    names = as_names(classes)
    return _aligned(probabilities, annotations, items=items, classes=names, where=source.name)


def _from_arrays(path: str | Path, annotations: Annotations) -> Floats:
    arrays = _unpacked(path)
    if "probabilities" not in arrays and len(arrays) != 1:
        message = f"none of {', '.join(arrays) or 'its arrays'} is named probabilities"
        raise DataError(message, where=str(path))
    posterior = _numbers(arrays.get("probabilities", next(iter(arrays.values()))), str(path))
    axis_names = {"items": annotations.items, "classes": annotations.classes}
    for axis, (word, expected) in zip((-2, -1), axis_names.items(), strict=True):
        if word in arrays:
            axis_names[word] = as_names(arrays[word].tolist())
        length = posterior.shape[axis] if posterior.ndim >= 2 else 0
        if word in arrays and len(axis_names[word]) != length:
            where = "rows" if axis == -2 else "columns"
            message = f"{len(axis_names[word])} {word} for {length} {where}"
            raise DataError(message, where=str(path))
        if word not in arrays and length != len(expected):
            return posterior  # its shape is an error that is raised later
    return _aligned(posterior, annotations, **axis_names, where=str(path))


def _unpacked(path: str | Path) -> Mapping[str, Array]:
    with damage(f"{path}: not an array of numbers"):
        return load_arrays(Path(path))


def _numbers(array: Array, name: str) -> Floats:
    if array.dtype.kind not in "fiu":
        raise DataError(f"an array of {array.dtype}, not numbers", where=name)
    return array.astype(np.float64, copy=False)


def _aligned(
    posterior: Floats, annotations: Annotations, *, items: Names, classes: Names, where: str
) -> Floats:
    """Return rows and columns in the order of the annotations: (…, item, class)."""
    for word, names in (("item", items), ("class", classes)):
        if len(set(names.tolist())) < len(names):
            twice = next(name for name, often in Counter(names.tolist()).items() if often > 1)
            raise DataError(f"{word} {twice!r} appears twice", where=where)
    rows, columns = indices_of(annotations.items, items), indices_of(annotations.classes, classes)
    unknown = classes[indices_of(classes, annotations.classes) < 0]
    if len(unknown):
        raise DataError(
            f"class {str(unknown[0])!r} is not among the classes "
            f"{abbreviate(annotations.classes)}; declare it with the annotations",
            where=where,
        )
    if (columns < 0).any():
        raise DataError(
            f"no probability of class {str(annotations.classes[columns.argmin()])!r}; "
            f"there are {abbreviate(classes)}",
            where=where,
        )
    if (rows < 0).any():
        raise DataError(
            f"no probabilities of item {str(annotations.items[rows.argmin()])!r}; "
            f"{(rows < 0).sum()} items have none",
            where=where,
        )
    return posterior[..., rows, :][..., columns]
