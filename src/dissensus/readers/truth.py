"""Known labels: a table, an array of class numbers, or the truth of a simulated folder."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from .._names import as_names
from .columns import TRUTH, find_columns
from .folders import is_folder, load_array
from .sources import open_source
from .tables import column_names, read_columns

__all__ = ["read_truth"]


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
