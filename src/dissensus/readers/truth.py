"""Known labels: a table, an array of class numbers, or the truth of a simulated folder."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import polars as pl

from .._names import as_names
from ..errors import DataError
from .columns import TRUTH, find_columns
from .folders import load_array
from .frames import as_frame, names_of
from .sources import is_folder, open_source
from .tables import read_roles


def read_truth(source: Any, *, columns: Mapping[str, str] | None = None) -> dict[str, str]:
    """Return `{item: label}`; items without a label are left out.

    Parameters
    ----------
    source
        A path to a table, to an array of class numbers or to a simulated folder; a pandas, polars
        or Arrow table; a mapping, or a pandas Series, of items to labels.
    columns
        Which column is which, `{"item": …, "label": …}`, where their names are not known ones.
    """
    if isinstance(source, Mapping):
        known = {
            item: label for item, label in source.items() if label is not None and label == label
        }
        return dict(zip(as_names(known), as_names(known.values()), strict=True))
    if type(source).__module__.startswith("pandas") and source.ndim == 1:
        source = {"item": source.index, "label": source}
        return _unique_labels(as_frame(source), "truth")
    if not isinstance(source, (str, Path)):
        frame = as_frame(source)
        roles = find_columns(frame.columns, TRUTH, columns, "table")
        return _unique_labels(frame.select(roles.values()), "table")
    path = Path(source) / "ground_truth.npy" if is_folder(source) else source
    opened = open_source(path)
    if opened.format == "npy":
        with opened.file() as file:
            truth = load_array(file, opened.name)
        if truth.ndim != 1 or truth.dtype.kind not in "iu":
            raise opened.fail("truth should be one class number for every item")
        return {str(item): str(label) for item, label in enumerate(truth.tolist()) if label >= 0}
    frame = read_roles(opened, TRUTH, columns=columns)
    return _unique_labels(frame.select("item", "label"), opened.name)


def _unique_labels(frame: pl.DataFrame, name: str) -> dict[str, str]:
    """Return the label of every item in a table of two columns, item and label."""
    known = frame.select(names_of(column).alias(column.name) for column in frame.iter_columns())
    items, labels = (column.to_list() for column in known.drop_nulls().unique(maintain_order=True))
    truth: dict[str, str] = {}
    for item, label in zip(items, labels, strict=True):
        if truth.setdefault(item, label) != label:
            raise DataError(
                f"{name}: item {item!r} has two true labels, {truth[item]!r} and {label!r}"
            )
    return truth
