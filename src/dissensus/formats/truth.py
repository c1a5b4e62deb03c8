"""Known labels: a table, an array of class numbers, or the truth of a simulated folder."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import polars as pl

from ..answers.left_out import short_name
from ..errors import DataError
from .columns import TRUTH, find_columns, is_known, plain_name
from .tools.peerannot import load_array
from .frames import frame_of_labels, names_of
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
        Which column is which, `{"item": …, "label": …}`, where their names are not known ones; the
        two columns of a table in memory are item and label.
    """
    if not isinstance(source, (str, Path)):
        return _unique_labels(labels_in_memory(source, columns).select("item", "label"), "truth")
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


def labels_in_memory(source: Any, columns: Mapping[str, str] | None = None) -> pl.DataFrame:
    """Return a table, mapping or pandas Series with `item` and `label`, and its other columns.

    >>> labels_in_memory({"photo": ["a", "b"], "species": ["cat", "dog"]}).columns
    ['item', 'label']
    """
    frame = frame_of_labels(source)
    unknown = [name for name in frame.columns if not is_known(name)]
    if not columns and unknown and frame.width == 2:
        named = {plain_name(name) for name in frame.columns}
        free = [role for role in TRUTH if len(unknown) == 2 or named.isdisjoint(TRUTH[role])]
        columns = dict(zip(free, unknown, strict=False))
    roles = find_columns(frame.columns, TRUTH, columns, "truth")
    return frame.rename({name: role for role, name in roles.items()})


def _unique_labels(frame: pl.DataFrame, name: str) -> dict[str, str]:
    """Return the label of every item in a table of two columns, item and label."""
    known = frame.select(names_of(column).alias(column.name) for column in frame.iter_columns())
    items, labels = (column.to_list() for column in known.drop_nulls().unique(maintain_order=True))
    truth: dict[str, str] = {}
    for item, label in zip(items, labels, strict=True):
        if truth.setdefault(item, label) != label:
            one, other = short_name(truth[item]), short_name(label)
            raise DataError(
                f"{name}: item {short_name(item)!r} has two true labels, {one!r} and {other!r}"
            )
    return truth
