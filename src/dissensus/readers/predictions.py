"""Labels and beliefs, or numbers, that `aggregate` wrote, read again to be scored."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Literal

import numpy as np
import polars as pl

from .._names import Names, as_names, numbered, text
from .columns import TRUTH, find_columns
from .folders import load_array
from .numeric import kind_of_labels
from .sources import Source, open_source
from .tables import column_names, read_columns

if TYPE_CHECKING:
    from ..result import Predictions, Values

__all__ = ["read_predictions"]


def read_predictions(
    source: str | Path, *, labels: Literal["auto", "nominal", "numeric"] = "auto"
) -> Predictions | Values:
    """Return what `aggregate` wrote, as a table or as an array.

    Labels are classes where beliefs stand beside them, and numbers beside standard errors; where
    there are neither, they are what they look like, unless `labels` tells.
    """
    opened = open_source(source)
    if opened.format == "npy":
        return _from_array(opened, source)
    present = column_names(opened)
    roles = find_columns(present, TRUTH, None, opened.name)
    posteriors = [name for name in present if name.startswith("p:")]
    frame = read_columns(opened, [*roles.values(), *posteriors])
    items, label = as_names(frame[roles["item"]].to_list()), frame[roles["label"]]
    if labels == "auto":
        classes = bool(posteriors) or "confidence" in present
        numbers = not classes and ("deviation" in present or kind_of_labels(label)[0] == "numeric")
        labels = "numeric" if numbers else "nominal"
    if labels == "numeric":
        return _numbers(opened, items, label)
    return _classes(opened, items, label, frame.select(posteriors))


def _from_array(opened: Source, source: str | Path) -> Predictions:
    from ..result import Predictions

    found = load_array(source)
    if found.ndim == 2:
        label, posterior = found.argmax(axis=1), found.astype(float)
        return Predictions(numbered(len(found)), numbered(found.shape[1]), label, posterior)
    if found.ndim == 1 and found.dtype.kind in "iu":
        n_classes = int(found.max(initial=0)) + 1
        return Predictions(numbered(len(found)), numbered(n_classes), found.astype(np.int64))
    raise opened.fail("labels should be (item) or (item, class)")


def _numbers(opened: Source, items: Names, label: pl.Series) -> Values:
    from ..result import Values

    value = label.cast(pl.Float64, strict=False)
    wrong = label.filter(value.is_null() & label.is_not_null() | value.is_infinite())
    if len(wrong):
        raise opened.fail(f"label {text(wrong[0])!r} is not a number; take the labels for classes")
    return Values(items, value.fill_null(np.nan).to_numpy())


def _classes(
    opened: Source, items: Names, label: pl.Series, posteriors: pl.DataFrame
) -> Predictions:
    from ..result import Predictions

    labels = label.to_list()
    classes = [name.removeprefix("p:") for name in posteriors.columns]
    classes += sorted({str(label) for label in labels if label is not None} - set(classes))
    positions = {name: position for position, name in enumerate(classes)}
    codes = np.array([-1 if label is None else positions[str(label)] for label in labels], np.int64)
    posterior = None
    if posteriors.width:
        posterior = np.zeros((len(codes), len(classes)))
        numbers = posteriors.cast(pl.Float64, strict=False)
        if numbers.null_count().sum_horizontal().item():
            raise opened.fail("every p: column should hold a probability for every item")
        posterior[:, : posteriors.width] = numbers.to_numpy()
    return Predictions(items, as_names(classes), codes, posterior)
