"""What a classifier is learned from and tried on: annotations, inputs, and items of known truth.

A folder as peerannot has them holds `train/`, `val/` and `test/`, each with a folder of images for
every class. The classes are those of the annotations: by name, by `label_names` of the metadata,
or, as torchvision counts them, by the folders' order. Elsewhere all inputs are in one place, and
known labels say which items choose the epoch and which are for the test. Nobody learns from these.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

import numpy as np

from .._names import Names, as_names, numbered
from .._relation import Floats, Integers, abbreviate, indices_of
from ..annotations import Annotations
from ..errors import DataError
from ..nn.inputs import Inputs
from ..nn.reading import InputIndex, class_folders, read_input_index
from ..result import Predictions

__all__ = ["DataSet", "Part", "aligned", "labelled", "open_data_set", "open_folder"]


class Part(NamedTuple):
    """Some items that nothing is learned from."""

    items: Names
    inputs: Inputs
    truth: Integers | None = None  # (item): class codes, where it is known


@dataclass(frozen=True, eq=False)
class DataSet:
    """Annotations with the inputs of their items, and items beside them.

    Attributes
    ----------
    annotations, inputs
        What to learn from: items that somebody labelled and that have an input, in one order.
    valid, test
        Items of known truth, to choose the epoch by and to test on.
    others
        Items with an input and nothing else.
    folders
        Of images in `train/`, the class of the folder that they lie in, where folders are classes.
    notes
        What was left out, a sentence each.
    """

    annotations: Annotations
    inputs: Inputs
    valid: Part | None = None
    test: Part | None = None
    others: Part | None = None
    folders: dict[str, str] | None = None
    notes: tuple[str, ...] = ()


def open_data_set(
    annotations: Annotations,
    input_index: InputIndex,
    *,
    valid: Mapping[str, str] | None = None,
    test: Mapping[str, str] | None = None,
) -> DataSet:
    """Return annotations beside their inputs.

    Parameters
    ----------
    annotations
        The annotations.
    input_index
        The inputs, by the names of items.
    valid, test
        Known classes by item; these items are not learned from.
    """
    return _with_known(annotations, input_index, {"valid": valid, "test": test}, {})


def open_folder(
    annotations: Annotations,
    folder: str | Path,
    *,
    label_names: Sequence[str] | None = None,
    valid: Mapping[str, str] | None = None,
    test: Mapping[str, str] | None = None,
) -> DataSet:
    """Return annotations beside the images of a folder with `train/`, and `val/`, `test/` if there.

    Parameters
    ----------
    annotations
        The annotations on the items of `train/`.
    folder
        The data set.
    label_names
        What the classes are called in the folders, in the order of the classes.
    valid, test
        Known classes by item of `train/`, to be taken instead of `val/` and `test/`.
    """
    folder = Path(folder)
    if not (folder / "train").is_dir():
        raise DataError(f"{folder}: no train/ in it; say where the inputs are")
    told = {"valid": valid, "test": test}
    tried = {
        name: class_folders(folder / position)
        for name, position in (("valid", "val"), ("test", "test"))
        if told[name] is None and (folder / position).is_dir()
    }
    named = {name for _, truth in tried.values() for name in truth.values()}
    named |= {position.name for position in (folder / "train").iterdir() if position.is_dir()}
    annotations = _with_all(annotations, len(named))
    code = _codes(sorted(named), annotations.classes, label_names)
    if tried and not code:
        raise DataError(
            f"{folder}: folders {abbreviate(as_names(sorted(named)))} for the classes "
            f"{abbreviate(annotations.classes)}; name the folders like the classes"
        )
    parts = {name: _tried(input_index, truth, code) for name, (input_index, truth) in tried.items()}
    input_index = read_input_index(folder / "train", annotations.items)
    above = {name: file.parent.name for name, file in input_index.content.items()}
    truth = {
        name: str(annotations.classes[code[position]])
        for name, position in above.items()
        if position in code
    }
    return replace(_with_known(annotations, input_index, told, parts), folders=truth or None)


def labelled(given: Predictions, *, hard: bool = False) -> tuple[Annotations, Floats]:
    """Return labels as the annotations of one annotator, and what to believe of every item.

    Items without a label are left out. Where there are beliefs, these are what is learned, unless
    hard ones are wanted.
    """
    label = np.asarray(given.label, dtype=np.int64)
    posterior = np.eye(len(given.classes))[label.clip(min=0)]
    if given.posterior is not None and not hard:
        posterior = np.nan_to_num(np.asarray(given.posterior, dtype=float)).clip(min=0)
    if given.posterior is not None:
        usual = (np.nan_to_num(given.posterior, nan=-1.0) >= 0).all(axis=1)
        label = np.where(usual & (given.posterior.sum(axis=1) > 0), label, -1)
    item = np.flatnonzero(label >= 0)
    if not len(item):
        raise DataError("no item has a label; nothing to learn from")
    annotations = Annotations.from_codes(
        np.arange(len(item)),
        np.zeros(len(item), dtype=np.int64),
        label[item],
        items=given.items[item],
        annotators=as_names(["labels"]),
        classes=given.classes,
    )
    return annotations, posterior[item] / posterior[item].sum(axis=1, keepdims=True)


def aligned(posterior: Floats, of: Annotations, to: Annotations) -> Floats:
    """Return beliefs of items and classes of one relation in the order of another."""
    rows, columns = indices_of(to.items, of.items), indices_of(to.classes, of.classes)
    return np.where(columns >= 0, posterior[rows][:, columns], 0.0)


def _with_known(
    annotations: Annotations,
    input_index: InputIndex,
    told: Mapping[str, Mapping[str, str] | None],
    parts: dict[str, Part],
) -> DataSet:
    """Return the data set with items of the stock held back, where their truth is told."""
    held = {
        name: _known(name, truth, input_index, annotations.classes)
        for name, truth in told.items()
        if truth is not None
    }
    names = {item for part in held.values() for item in part.items.tolist()}
    parts = parts | held
    return _joined(annotations, input_index, parts.get("valid"), parts.get("test"), names)


def _joined(
    annotations: Annotations,
    input_index: InputIndex,
    valid: Part | None,
    test: Part | None,
    held: set[str],
) -> DataSet:
    asked = annotations.labels_per_item > 0
    mine = np.array([name not in held for name in annotations.items.tolist()], dtype=bool)
    known = input_index.knows(annotations.items)
    if not (asked & mine).any():
        raise DataError("no annotations are left: all labelled items are held for valid and test")
    if not (asked & mine & known).any():
        input_index.take(annotations.items[asked & mine])  # which says what is missing
    without = int((asked & mine & ~known).sum())
    notes = (f"{without} labelled items have no input in {input_index.name} and are left out",)
    labelled_items = annotations.subset(items=asked & mine & known)
    taken = held | set(labelled_items.items.tolist())
    rest = as_names([name for name in input_index.content if name not in taken])
    return DataSet(
        labelled_items,
        input_index.take(labelled_items.items),
        valid,
        test,
        Part(rest, input_index.take(rest)) if len(rest) else None,
        notes=notes if without else (),
    )


def _tried(input_index: InputIndex, folders: Mapping[str, str], code: Mapping[str, int]) -> Part:
    items = as_names(folders)
    truth = [code[folders[name]] for name in items.tolist()]
    return Part(items, input_index.take(items), np.array(truth, dtype=np.int64))


def _known(what: str, truth: Mapping[str, str], input_index: InputIndex, classes: Names) -> Part:
    items = as_names([name for name in truth if name in input_index.content])
    if not len(items):
        raise DataError(f"none of the {len(truth)} {what} items has an input in {input_index.name}")
    told = as_names([truth[name] for name in items.tolist()])
    code = indices_of(told, classes)
    if (code < 0).any():
        raise DataError(
            f"{what} item {items[code.argmin()]!r} is {told[code.argmin()]!r}, which is not among "
            f"the classes {abbreviate(classes)}"
        )
    return Part(items, input_index.take(items), code)


def _with_all(annotations: Annotations, n_classes: int) -> Annotations:
    """Return annotations whose classes are numbers with those that nobody has named."""
    full = numbered(max(n_classes, annotations.n_classes))
    return (
        annotations.recode(full)
        if (indices_of(annotations.classes, full) >= 0).all()
        else annotations
    )


def _codes(folders: list[str], classes: Names, label_names: Sequence[str] | None) -> dict[str, int]:
    """Return the class of every folder; nothing if these are not the classes."""
    for names in (classes.tolist(), label_names):
        if names and set(folders) <= set(names):
            return {name: list(names).index(name) for name in folders}
    if len(folders) == len(classes):
        return {name: code for code, name in enumerate(folders)}
    return {}
