"""Class probabilities of a classifier: an array, or a table as `aggregate` writes it."""

from __future__ import annotations

import zipfile
from collections import Counter
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from ..base.names import Names, abbreviate, as_names, indices_of
from .probabilities import as_models
from ..base.arrays import Array, Floats
from ..base.storage import damage, load_arrays
from ..answers.annotations import Annotations
from ..errors import DataError
from .columns import NEEDED
from .tools.peerannot import load_array
from .predictions import PREFIX, probabilities_in
from .sources import Source, open_source
from .tables import read_roles


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
        raise DataError(f"{path}: {problem}") from None
    return probabilities


def _from_table(source: Source, annotations: Annotations) -> Floats:
    frame = read_roles(source, {"item": NEEDED["item"]}, prefix=PREFIX)
    classes, probabilities = probabilities_in(frame, source.fail)
    if probabilities is None:
        raise source.fail(f"no column {PREFIX}<class>, such as {PREFIX}{annotations.classes[0]}")
    items = as_names(frame["item"].to_list())
    return _aligned(probabilities, items, as_names(classes), annotations, source.name)


def _from_arrays(path: str | Path, annotations: Annotations) -> Floats:
    arrays = _unpacked(path)
    if "probabilities" not in arrays and len(arrays) != 1:
        raise DataError(
            f"{path}: none of {', '.join(arrays) or 'its arrays'} is named probabilities"
        )
    posterior = _numbers(arrays.get("probabilities", next(iter(arrays.values()))), str(path))
    named = {"items": annotations.items, "classes": annotations.classes}
    for axis, (what, known) in zip((-2, -1), named.items(), strict=True):
        if what in arrays:
            named[what] = as_names(arrays[what].tolist())
        length = posterior.shape[axis] if posterior.ndim >= 2 else 0
        if what in arrays and len(named[what]) != length:
            where = "rows" if axis == -2 else "columns"
            raise DataError(f"{path}: {len(named[what])} {what} for {length} {where}")
        if what not in arrays and length != len(known):
            return posterior  # its shape is an error that is raised later
    return _aligned(posterior, named["items"], named["classes"], annotations, str(path))


def _unpacked(path: str | Path) -> Mapping[str, Array]:
    with damage(f"{path}: not an array of numbers"):
        return load_arrays(Path(path))


def _numbers(array: Array, name: str) -> Floats:
    if array.dtype.kind not in "fiu":
        raise DataError(f"{name}: an array of {array.dtype}, not numbers")
    return array.astype(np.float64, copy=False)


def _aligned(
    posterior: Floats, items: Names, classes: Names, annotations: Annotations, name: str
) -> Floats:
    """Return rows and columns in the order of the annotations: (…, item, class)."""
    for what, names in (("item", items), ("class", classes)):
        if len(set(names.tolist())) < len(names):
            twice = next(one for one, often in Counter(names.tolist()).items() if often > 1)
            raise DataError(f"{name}: {what} {twice!r} appears twice")
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
