"""What a classifier says of items: an array, or a table as `aggregate` writes it."""

from __future__ import annotations

import zipfile
from collections import Counter
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import polars as pl

from .._names import Names, as_names
from .._relation import Array, Floats, abbreviate, indices_of
from ..annotations import Annotations
from ..errors import DataError
from .columns import NEEDED, find_columns
from .folders import load_array
from .sources import Source, open_source
from .tables import column_names, read_columns

__all__ = ["read_probabilities"]

_BELIEF = "p:"


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
        The annotations. Items that it does not know are left aside.
    """
    from ..identification.crowdlab import as_models

    if zipfile.is_zipfile(path) or str(path).endswith(".npz"):
        found = _from_arrays(path, annotations)
    else:
        source = open_source(path)
        if source.format == "npy":
            found = _numbers(load_array(path), str(path))
        else:
            found = _from_table(source, annotations)
    try:
        as_models(annotations, found)
    except DataError as problem:
        raise DataError(f"{path}: {problem}") from None
    return found


def _from_table(source: Source, annotations: Annotations) -> Floats:
    present = column_names(source)
    posteriors = [name for name in present if name.startswith(_BELIEF)]
    if not posteriors:
        raise source.fail(f"no column {_BELIEF}<class>, such as {_BELIEF}{annotations.classes[0]}")
    item = find_columns(present, {"item": NEEDED["item"]}, None, source.name)["item"]
    frame = read_columns(source, [item, *posteriors])
    numbers = frame.select(pl.col(posteriors).cast(pl.Float64, strict=False))
    if numbers.null_count().sum_horizontal().item():
        raise source.fail(f"every {_BELIEF} column should hold a probability for every item")
    items = as_names(frame[item].to_list())
    classes = as_names([name.removeprefix(_BELIEF) for name in posteriors])
    return _aligned(numbers.to_numpy(), items, classes, annotations, source.name)


def _from_arrays(path: str | Path, annotations: Annotations) -> Floats:
    kept = _unpacked(path)
    if "probabilities" not in kept and len(kept) != 1:
        raise DataError(f"{path}: none of {', '.join(kept) or 'its arrays'} is named probabilities")
    posterior = _numbers(kept.get("probabilities", next(iter(kept.values()))), str(path))
    named = {"items": annotations.items, "classes": annotations.classes}
    for axis, (what, known) in zip((-2, -1), named.items(), strict=True):
        if what in kept:
            named[what] = as_names(kept[what].tolist())
        length = posterior.shape[axis] if posterior.ndim >= 2 else 0
        if what in kept and len(named[what]) != length:
            where = "rows" if axis == -2 else "columns"
            raise DataError(f"{path}: {len(named[what])} {what} for {length} {where}")
        if what not in kept and length != len(known):
            return posterior  # whose shape will be explained
    return _aligned(posterior, named["items"], named["classes"], annotations, str(path))


def _unpacked(path: str | Path) -> Mapping[str, Array]:
    try:
        with Path(path).open("rb") as file, np.load(file, allow_pickle=False) as kept:
            return {name: kept[name] for name in kept.files}
    except (OSError, ValueError, EOFError, zipfile.BadZipFile) as problem:
        raise DataError(f"{path}: not an array of numbers ({problem})") from None


def _numbers(found: Array, name: str) -> Floats:
    if found.dtype.kind not in "fiu":
        raise DataError(f"{name}: an array of {found.dtype}, not numbers")
    return found.astype(np.float64, copy=False)


def _aligned(
    posterior: Floats, items: Names, classes: Names, annotations: Annotations, name: str
) -> Floats:
    """Return rows and columns in the order of the annotations: (…, item, class)."""
    for what, names in (("item", items), ("class", classes)):
        if len(set(names.tolist())) < len(names):
            twice = next(one for one, often in Counter(names.tolist()).items() if often > 1)
            raise DataError(f"{name}: {what} {twice!r} stands there twice")
    rows, columns = indices_of(annotations.items, items), indices_of(annotations.classes, classes)
    unknown = classes[indices_of(classes, annotations.classes) < 0]
    if len(unknown):
        raise DataError(
            f"{name}: class {str(unknown[0])!r} is not among the classes "
            f"{abbreviate(annotations.classes)}; declare it with the annotations"
        )
    if (columns < 0).any():
        raise DataError(
            f"{name}: no probability of class {str(annotations.classes[columns.argmin()])!r}; "
            f"there are {abbreviate(classes)}"
        )
    if (rows < 0).any():
        raise DataError(
            f"{name}: no probabilities of item {str(annotations.items[rows.argmin()])!r}; "
            f"{(rows < 0).sum()} items have none"
        )
    return posterior[..., rows, :][..., columns]
