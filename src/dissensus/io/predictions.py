"""Labels and beliefs that `aggregate` wrote, read again to be scored."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from .._names import as_names, numbered
from .columns import TRUTH, find_columns
from .folders import load_array
from .sources import open_source
from .tables import column_names, read_columns

if TYPE_CHECKING:
    from ..metrics import Predictions

__all__ = ["read_predictions"]


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
