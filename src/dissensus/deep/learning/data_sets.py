"""Annotations with the inputs of their items, and items of known truth to validate and test on.

A folder of peerannot holds `train/`, `val/` and `test/`, each with a subfolder of images for every
class. The classes are those of the annotations: by name, by `label_names` of the metadata, or, as
torchvision counts them, by the order of the subfolders. Elsewhere all inputs are in one file or
folder, and known labels say which items are for validation and test; nothing is learned from these.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ...aggregation import as_method
from ...answers.annotations import Annotations
from ...base.arrays import Floats, Integers
from ...base.names import Names, abbreviate, as_names, indices_of, numbered
from ...errors import DataError
from ...formats.predictions import read_predictions
from ...formats.tools.peerannot import read_folder, read_metadata
from ...method import Progress
from ...result import Predictions
from ..nn.inputs import Inputs
from ..nn.reading import InputIndex, class_folders, index_of_texts, read_input_index

Truth = Mapping[str, str]  # item → class


class Split(NamedTuple):
    """Items that are not learned from."""

    items: Names
    inputs: Inputs
    truth: Integers | None = None  # (item): class codes, where known


@dataclass(frozen=True, eq=False)
class DataSet:
    """Annotations with the inputs of their items, and further items.

    Attributes
    ----------
    annotations, inputs
        Labelled items with an input, in one order.
    valid, test
        Items of known truth, to choose the epoch by and to test on.
    others
        Unlabelled items with an input.
    folders
        Classes of images in `train/` by their subfolders, where these are classes.
    notes
        Sentences about what was left out.
    """

    annotations: Annotations
    inputs: Inputs
    valid: Split | None = None
    test: Split | None = None
    others: Split | None = None
    folders: dict[str, str] | None = None
    notes: tuple[str, ...] = ()

    @property
    def known_valid(self) -> tuple[Inputs, Names] | None:
        """Inputs and classes of the validation items."""
        if self.valid is None:
            return None
        return self.valid.inputs, self.annotations.classes[self.valid.truth]


def read_data_set(
    annotations: Annotations,
    path: str | Path,
    *,
    inputs: str | Path | None = None,
    column: str | None = None,
    texts: Any = None,
    metadata: str | Path | None = None,
    valid: Truth | None = None,
    test: Truth | None = None,
) -> DataSet:
    """Return annotations with the inputs of their items, wherever these are.

    Parameters
    ----------
    annotations
        The annotations.
    path
        A data set folder with `train/`, or what holds the inputs.
    inputs, column
        Where the inputs are, if not in `path`; the column of a table, or which array.
    texts
        A table of item and text that came with the annotations.
    metadata
        Metadata of the folder, if not in its own file.
    valid, test
        Known classes by item; these items are not learned from.
    """
    known_labels: dict[str, Any] = {"valid": valid, "test": test}
    if inputs is None and (Path(path) / "train").is_dir():
        names = read_metadata(path, metadata).get("label_names")
        return open_folder(annotations, path, label_names=names, **known_labels)
    try:
        if inputs is None and texts is not None:
            index = index_of_texts(str(path), texts.select("item", "text").iter_rows())
        else:
            index = read_input_index(inputs or path, annotations.items, column=column)
    except DataError as problem:
        if inputs is None:
            problem.or_else("say where inputs are", inputs=..., column=...)
        raise
    return open_data_set(annotations, index, **known_labels)


def open_data_set(
    annotations: Annotations,
    index: InputIndex,
    *,
    valid: Truth | None = None,
    test: Truth | None = None,
) -> DataSet:
    """Return annotations with their inputs.

    Parameters
    ----------
    annotations
        The annotations.
    index
        The inputs, by the names of items.
    valid, test
        Known classes by item; these items are not learned from.
    """
    splits = {
        name: _split_of(name, truth, index, annotations.classes)
        for name, truth in (("valid", valid), ("test", test))
        if truth is not None
    }
    split_items = {item for split in splits.values() for item in split.items.tolist()}
    free = ~np.isin(annotations.items, as_names(split_items)) & (annotations.labels_per_item > 0)
    has_input = index.knows(annotations.items)
    if not free.any():
        raise DataError("no annotations are left: all labelled items are held for valid and test")
    if not (free & has_input).any():
        index.take(annotations.items[free])  # which names what is missing
    missing = int((free & ~has_input).sum())
    note = f"{missing} labelled items have no input in {index.name} and are left out"
    annotations = annotations.subset(items=free & has_input)
    labelled_items = split_items | set(annotations.items.tolist())
    unlabelled = as_names([name for name in index.content if name not in labelled_items])
    return DataSet(
        annotations=annotations,
        inputs=index.take(annotations.items),
        valid=splits.get("valid"),
        test=splits.get("test"),
        others=Split(unlabelled, index.take(unlabelled)) if len(unlabelled) else None,
        notes=(note,) if missing else (),
    )


def open_folder(
    annotations: Annotations,
    folder: str | Path,
    *,
    label_names: Sequence[str] | None = None,
    valid: Truth | None = None,
    test: Truth | None = None,
) -> DataSet:
    """Return annotations with the images of a folder with `train/`, and `val/`, `test/` if present.

    Parameters
    ----------
    annotations
        The annotations on the items of `train/`.
    folder
        The data set.
    label_names
        Names of the classes in the folders, in the order of the classes.
    valid, test
        Known classes by item of `train/`, instead of `val/` and `test/`.
    """
    folder = Path(folder)
    if not (folder / "train").is_dir():
        raise DataError(
            "no train/ in it", where=str(folder), remedy="names another folder", inputs=...
        )
    subfolders = {
        name: class_folders(folder / subfolder)
        for name, subfolder, truth in (("valid", "val", valid), ("test", "test", test))
        if truth is None and (folder / subfolder).is_dir()
    }
    names = {name for _, class_of in subfolders.values() for name in class_of.values()}
    names |= {subfolder.name for subfolder in (folder / "train").iterdir() if subfolder.is_dir()}
    annotations = _with_numbered(annotations, len(names))
    code = _class_codes(sorted(names), annotations.classes, label_names)
    if subfolders and not code:
        raise DataError(
            f"folders {abbreviate(as_names(sorted(names)))} for the classes "
            f"{abbreviate(annotations.classes)}; name the folders like the classes",
            where=str(folder),
        )
    splits = {}
    for name, (index, class_of) in subfolders.items():
        truth = np.array([code[parent] for parent in class_of.values()], dtype=np.int64)
        splits[name] = Split(as_names(class_of), index.take(as_names(class_of)), truth)
    index = read_input_index(folder / "train", annotations.items)
    parents = {name: file.parent.name for name, file in index.content.items()}
    classes = {
        name: str(annotations.classes[code[parent]])
        for name, parent in parents.items()
        if parent in code
    }
    data = open_data_set(annotations, index, valid=valid, test=test)
    return replace(
        data,
        valid=data.valid or splits.get("valid"),
        test=data.test or splits.get("test"),
        folders=classes or None,
    )


def aggregated(
    annotations: Annotations, strategy: str, seed: int, progress: Progress | None = None
) -> Predictions:
    """Return the labels of a method of aggregation, to learn from."""
    annotations.check_classes("a classifier")
    result = as_method(strategy).fit(annotations, seed=seed, progress=progress)
    label = np.where(annotations.labels_per_item > 0, result.label, -1)
    return Predictions(annotations.items, result.classes, label, result.probabilities)


def read_labels(
    labels: str,
    path: str | Path,
    *,
    metadata: str | Path | None = None,
    n_classes: int | None = None,
) -> Predictions:
    """Return one label per item from a file; rows of an array are the items of a data set folder.

    Parameters
    ----------
    labels
        A table or an array of labels.
    path, metadata
        The data set, and its metadata, if not in its own file.
    n_classes
        Number of classes, where labels may not show them all.
    """
    predicted = read_predictions(labels, scale="nominal")
    assert isinstance(predicted, Predictions)
    if not labels.endswith(".npy"):
        return predicted
    items, classes = predicted.items, predicted.classes
    if (Path(path) / "answers.json").exists():
        annotations = read_folder(path, metadata=metadata)
        items = annotations.items if annotations.n_items == len(items) else items
        classes = annotations.classes if annotations.n_classes >= len(classes) else classes
    if n_classes is not None:
        if n_classes < len(predicted.classes):
            raise DataError(f"{labels}: {len(predicted.classes)} classes, more than {n_classes}")
        classes = classes if len(classes) == n_classes else numbered(n_classes)
    posterior = predicted.posterior
    if posterior is not None:
        posterior = np.pad(posterior, ((0, 0), (0, len(classes) - posterior.shape[1])))
    return Predictions(items, classes, predicted.label, posterior)


def labelled(predictions: Predictions, *, hard: bool = False) -> tuple[Annotations, Floats]:
    """Return labels as the annotations of one annotator, and the class probabilities to learn.

    Unlabelled items are left out. Where there is a posterior it is learned, unless `hard`.
    """
    label = np.asarray(predictions.label, dtype=np.int64)
    posterior = np.eye(len(predictions.classes))[label.clip(min=0)]
    if predictions.posterior is not None and not hard:
        posterior = np.nan_to_num(np.asarray(predictions.posterior, dtype=float)).clip(min=0)
    if predictions.posterior is not None:
        valid = (np.nan_to_num(predictions.posterior, nan=-1.0) >= 0).all(axis=1)
        label = np.where(valid & (predictions.posterior.sum(axis=1) > 0), label, -1)
    item = np.flatnonzero(label >= 0)
    if not len(item):
        raise DataError("no item has a label; nothing to learn from")
    annotations = Annotations.from_labels(
        label[item], predictions.classes, items=predictions.items[item], annotator="labels"
    )
    return annotations, posterior[item] / posterior[item].sum(axis=1, keepdims=True)


def aligned(posterior: Floats, of: Annotations, to: Annotations) -> Floats:
    """Return a posterior of one relation in the items and classes of another."""
    rows, columns = indices_of(to.items, of.items), indices_of(to.classes, of.classes)
    return np.where(columns >= 0, posterior[rows][:, columns], 0.0)


def _split_of(name: str, truth: Truth, index: InputIndex, classes: Names) -> Split:
    items = as_names([item for item in truth if item in index.content])
    if not len(items):
        raise DataError(f"none of the {len(truth)} {name} items has an input in {index.name}")
    true = as_names([truth[item] for item in items.tolist()])
    code = indices_of(true, classes)
    if (code < 0).any():
        raise DataError(
            f"{name} item {items[code.argmin()]!r} is {true[code.argmin()]!r}, which is not among "
            f"the classes {abbreviate(classes)}"
        )
    return Split(items, index.take(items), code)


def _with_numbered(annotations: Annotations, n_classes: int) -> Annotations:
    """Return annotations with all of `n_classes`, where their classes are numbers."""
    full = numbered(max(n_classes, annotations.n_classes))
    if (indices_of(annotations.classes, full) < 0).any():
        return annotations
    return annotations.recode(full)


def _class_codes(
    folders: list[str], classes: Names, label_names: Sequence[str] | None
) -> dict[str, int]:
    """Return the class of every folder; empty if folders are not the classes."""
    for names in (classes.tolist(), label_names):
        if names and set(folders) <= set(names):
            return {name: list(names).index(name) for name in folders}
    if len(folders) == len(classes):
        return {name: code for code, name in enumerate(folders)}
    return {}
