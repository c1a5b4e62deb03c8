"""Labels and probabilities, or numbers, that a method or a classifier gave to items.

A table as `aggregate` writes it has item, label, and `p:<class>` for every class; predictions for
every annotator, as `tendency predict` writes them, have annotator too.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from ..base.names import as_names, indices_of, numbered, text
from ..base.arrays import Floats, Integers
from ..answers.annotations import Annotations
from ..errors import DataError
from ..result import Predictions, Values
from .columns import NEEDED, TRUTH
from .tools.peerannot import load_array
from .frames import names_of
from .scales import kind_of_labels
from .sources import open_source
from .tables import column_names, read_roles
from .truth import labels_in_memory

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
        return Predictions(items, as_names(classes), codes_of, None, ordered)
    posterior = np.zeros((len(codes_of), len(classes)))
    posterior[:, : probabilities.shape[1]] = probabilities
    return Predictions(items, as_names(classes), codes_of, posterior, ordered)


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
        mine = self.annotations
        item, annotator = (
            indices_of(getattr(annotations, names), getattr(mine, names))
            for names in ("items", "annotators")
        )
        item, annotator = item[annotations.item], annotator[annotations.annotator]
        key = item * mine.n_annotators + annotator
        known = mine.item.astype(np.int64) * mine.n_annotators + mine.annotator
        row = np.minimum(np.searchsorted(known, key), max(len(known) - 1, 0))
        return np.where((item >= 0) & (annotator >= 0) & (known[row] == key), row, -1)

    def log_probability(self, annotations: Annotations) -> Floats:
        """Return log-probabilities for annotations with a prediction: (annotation, their class).

        Predicted labels without probabilities have probability one.
        """
        mine, probability = self.annotations, self.probability
        if probability is None:
            probability = np.eye(mine.n_classes)[mine.label]
        column = indices_of(annotations.classes, mine.classes)
        chosen = probability[self.rows(annotations)][:, np.maximum(column, 0)]
        return np.log(np.maximum(np.where(column >= 0, chosen, 0.0), 1e-15))


def read_annotator_predictions(path: str | Path) -> AnnotatorPredictions:
    """Read a table of item, annotator, label and, where there are any, p:<class>."""
    source = open_source(path)
    frame = read_roles(source, NEEDED, prefix=PREFIX).drop_nulls(list(NEEDED))
    columns = [as_names([text(name) for name in frame[role].to_list()]) for role in NEEDED]
    classes, probabilities = probabilities_in(frame, source.fail)
    more = sorted(set(columns[2].tolist()) - set(classes))
    annotations = Annotations.from_columns(
        *columns, classes=[*classes, *more] if classes else None, row=np.arange(len(frame))
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
