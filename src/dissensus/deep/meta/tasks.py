"""Source tasks: inputs, their classes, and which classes belong together.

They are read from files (`read_source`):

folder      images in a folder per class; with folders in folders, as in Omniglot, the outermost is
            the task
.npz        `x` and `y`, and `task` where there are several
table       a column of texts or image files, one of classes, and optionally one of tasks
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from hashlib import blake2b
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import ArrayLike
from torch import Tensor

from ...answers.annotations import Annotations, Integers
from ...base.names import as_names, indices_of
from ...base.storage import damage, load_arrays
from ...errors import DataError
from ..nn.batches import Examples, Source, chunks, inputs_of, subset
from ..nn.inputs import Arrays, Images, Inputs, Texts, as_inputs

_CHUNK = 4096  # inputs loaded at a time
_IN_MEMORY = 2**28  # largest number of values to hold in memory


@dataclass(frozen=True, eq=False)
class Tasks:
    """Items of known class, grouped into tasks.

    Parameters
    ----------
    x
        Inputs: a tensor, or a source that loads them batch by batch.
    label
        Class code of every item.
    task
        Task of every class; episodes stay within one. `None`: all classes belong to one task.
    rotations
        With 4, images rotated by 90, 180 and 270 degrees form new classes.
    annotations
        Annotations of the items with the same class codes, if there are any: they can replace
        pseudo-annotators.
    """

    x: Tensor | Source
    label: Integers  # (item)
    task: Integers | None = None  # (class)
    rotations: int = 1
    annotations: Annotations | None = None

    def __post_init__(self) -> None:
        if len(self.x) != len(self.label):
            raise DataError(f"{len(self.x)} inputs, but {len(self.label)} labels")
        if self.annotations is not None:
            self.annotations.check_inputs(self.x)

    @cached_property
    def members(self) -> list[Integers]:
        """The items of every class."""
        order = np.argsort(self.label, kind="stable")
        n_classes = 0 if self.task is None else len(self.task)
        ends = np.cumsum(np.bincount(self.label, minlength=n_classes))
        return np.split(order, ends[:-1])

    @property
    def n_classes(self) -> int:
        """Number of classes, without rotations."""
        return len(self.members)

    def usable(self, least: int) -> list[Integers]:
        """Return the classes of every task that have enough items, with rotations."""
        enough = np.array([len(items) >= least for items in self.members])
        task = np.zeros(len(enough), dtype=int) if self.task is None else self.task
        offsets = self.n_classes * np.arange(self.rotations)[:, None]
        by_task = [np.flatnonzero(enough & (task == code)) for code in np.unique(task)]
        return [(classes + offsets).ravel() for classes in by_task if len(classes) > 1]

    def inputs(self, items: Integers, rotation: Integers) -> Tensor:
        """Return the inputs of items, rotated by multiples of 90 degrees."""
        x = inputs_of(self.x, items)
        for angle in np.unique(rotation[rotation > 0]).tolist():
            rows = torch.from_numpy(np.flatnonzero(rotation == angle))
            x = x.index_copy(0, rows, torch.rot90(x[rows], angle, (-2, -1)))
        return x

    def labels_in_episodes(self, items: Integers, classes: Integers) -> Integers:
        """Return the source's own annotations of items in episodes.

        Labels that are no class of the episode are left out. The annotators of an episode are
        those with labels in it, renumbered.

        Parameters
        ----------
        items
            Codes: (episode, item).
        classes
            Classes of the episodes: (episode, class).

        Returns
        -------
        (episode, item, annotator), -1 for unlabelled.
        """
        assert self.annotations is not None
        n_episodes, n_items = items.shape
        annotations = self.annotations.take(items.ravel())
        episode, item = np.divmod(annotations.item, n_items)
        code = np.full((n_episodes, self.n_classes), -1)
        np.put_along_axis(code, classes, np.arange(classes.shape[1])[None], axis=1)
        label = code[episode, annotations.label]
        in_episode = label >= 0
        episode, item, label = episode[in_episode], item[in_episode], label[in_episode]
        pair = episode * annotations.n_annotators + annotations.annotator[in_episode]
        pairs, column = np.unique(pair, return_inverse=True)
        start = np.searchsorted(pairs, np.arange(n_episodes) * annotations.n_annotators)
        column = column - start[episode]
        labels = np.full((n_episodes, n_items, int(column.max(initial=0)) + 1), -1)
        labels[episode, item, column] = label
        return labels

    def keep(self, classes: Integers) -> Tasks:
        """Return the tasks with some of the classes."""
        code = np.full(self.n_classes, -1)
        code[classes] = np.arange(len(classes))
        members = self.items(np.flatnonzero(code[self.label] >= 0))
        task = None if self.task is None else self.task[classes]
        annotations = members.annotations
        if annotations is not None:
            annotations = _recoded(annotations, code, len(classes))
        return Tasks(
            members.x, code[members.label], task, rotations=self.rotations, annotations=annotations
        )

    def items(self, items: Integers) -> Tasks:
        """Return the tasks with some of the items; classes keep their codes."""
        x = subset(self.x, items)
        annotations = None if self.annotations is None else self.annotations.take(items)
        label = self.label[items]
        return Tasks(x, label, self.task, rotations=self.rotations, annotations=annotations)

    def unrotated(self) -> Tasks:
        """Return the tasks without rotations."""
        return replace(self, rotations=1)

    def digest(self) -> str:
        """Return a digest of the contents."""
        digest = blake2b(f"{len(self.x)} {self.rotations}".encode(), digest_size=8)
        for part in (self.label, np.zeros(0) if self.task is None else self.task):
            digest.update(np.asarray(part).astype("<i8").tobytes())
        if isinstance(self.x, Tensor):
            digest.update(self.x.contiguous().view(torch.uint8).numpy().data)
        return digest.hexdigest()


def _recoded(annotations: Annotations, code: Integers, n_classes: int) -> Annotations:
    """Return annotations with other class codes, without those of missing classes."""
    label = code[annotations.label]
    has_class = label >= 0
    return annotations.keep(has_class).with_codes(label=label[has_class], classes=n_classes)


class SourceItems(NamedTuple):
    """Items of known class, as read from files."""

    inputs: Inputs
    label: list[str]  # (item)
    task: list[str]  # (item)


def read_source(
    path: str | Path,
    *,
    column: str | None = None,
    label: str | None = None,
    task: str | None = None,
) -> SourceItems:
    """Return source tasks from a file or folder.

    Parameters
    ----------
    path
        A folder of images, a `.npz`, or a table.
    column, label, task
        Of a table: the columns of inputs, classes and tasks, where their names are not known.
    """
    path = Path(path)
    if not path.exists():
        raise DataError(f"{path}: no such file or folder")
    if path.is_dir():
        return _folder(path)
    if path.suffix == ".npz":
        return _arrays(path)
    return _table(path, column, label, task)


def join_sources(sources: Sequence[SourceItems]) -> SourceItems:
    """Return several sources as one, with the tasks of all."""
    if len(sources) == 1:
        return sources[0]
    kinds = {source.inputs.kind for source in sources}
    if len(kinds) > 1:
        raise DataError(f"sources of {' and '.join(sorted(kinds))}; all have to be of one kind")
    label = [name for source in sources for name in source.label]
    task = [f"{n}:{name}" for n, source in enumerate(sources) for name in source.task]
    inputs = sources[0].inputs
    if isinstance(inputs, Texts):
        inputs = Texts(tuple(t for source in sources for t in source.inputs.texts))  # type: ignore[attr-defined]
    elif isinstance(inputs, Images):
        inputs = Images(tuple(p for source in sources for p in source.inputs.paths))  # type: ignore[attr-defined]
    else:
        values = [source.inputs.values for source in sources]  # type: ignore[attr-defined]
        sizes = {tuple(value.shape[1:]) for value in values}
        if len(sizes) > 1:
            raise DataError(f"features of {len(sizes)} sizes; all sources have to have the same")
        inputs = Arrays(torch.cat(values))
    return SourceItems(inputs, label, task)


def _folder(folder: Path) -> SourceItems:
    from ..nn.reading import input_files

    files = input_files(folder)
    parents = [file.relative_to(folder).parent for file in files]
    if any(not parent.parts for parent in parents):
        raise DataError(
            f"{folder}: images outside of the folders; each has to be in that of its class"
        )
    task = [parent.parts[0] if len(parent.parts) > 1 else "" for parent in parents]
    return SourceItems(Images(tuple(files)), [parent.as_posix() for parent in parents], task)


def _arrays(path: Path) -> SourceItems:
    with damage(f"{path}: not an archive of arrays"):
        stored = load_arrays(path)
        arrays = {name: stored[name] for name in ("x", "y", "task") if name in stored}
    if "x" not in arrays or "y" not in arrays:
        raise DataError(f"{path}: arrays x (item, feature) and y (item) are needed")
    task = arrays.get("task", np.zeros(len(arrays["y"]), dtype=int))
    if not len(arrays["x"]) == len(arrays["y"]) == len(task):
        raise DataError(f"{path}: x, y and task have different lengths")
    return SourceItems(as_inputs(arrays["x"]), _texts(arrays["y"]), _texts(task))


def _texts(values: Any) -> list[str]:
    return as_names(values).tolist()


def _table(path: Path, column: str | None, label: str | None, task: str | None) -> SourceItems:
    from ...formats.columns import TRUTH, find_columns
    from ...formats.sources import open_source
    from ...formats.tables import column_names, read_columns
    from ..nn.reading import INPUT_COLUMNS, as_texts_or_files

    source = open_source(path)
    present = column_names(source)
    synonyms = {"input": INPUT_COLUMNS, "label": TRUTH["label"]}
    columns_by_role = {"input": column, "label": label}
    requested = {role: name for role, name in columns_by_role.items() if name is not None}
    roles = find_columns(present, synonyms, requested, source.name)
    if task is not None and task not in present:
        raise source.fail(f"no column {task!r}; there are {', '.join(present)}")
    group = task or next((name for name in present if name.casefold() == "task"), None)
    group = None if group in roles.values() else group
    columns = list(dict.fromkeys([*roles.values(), *([group] if group else [])]))
    frame = read_columns(source, columns).drop_nulls()
    inputs = as_texts_or_files(path.parent, frame[roles["input"]].cast(str).to_list())
    tasks = frame[group].cast(str).to_list() if group else [""] * len(frame)
    return SourceItems(inputs, frame[roles["label"]].cast(str).to_list(), tasks)


def as_tasks(
    x: Tensor | Source,
    y: ArrayLike,
    task: ArrayLike | None = None,
    rotations: int = 1,
    annotations: Annotations | None = None,
) -> Tasks:
    """Return source tasks from the names of classes and tasks."""
    label = as_names(np.asarray(y))
    if len(label) != len(x):
        raise DataError(f"{len(x)} inputs, but {len(label)} classes")
    if task is None:
        names = as_names(sorted(set(label.tolist())))
        annotations = None if annotations is None else annotations.recode(names)
        codes = indices_of(label, names)
        return Tasks(x, codes, rotations=rotations, annotations=annotations)
    if annotations is not None:
        raise DataError("annotations of a source are of one task; leave out task, or annotations")
    group = as_names(np.asarray(task))
    if len(group) != len(x):
        raise DataError(f"{len(x)} inputs, but {len(group)} tasks")
    pairs = list(zip(group.tolist(), label.tolist(), strict=True))
    classes = {pair: code for code, pair in enumerate(sorted(set(pairs)))}
    groups = {name: code for code, name in enumerate(sorted({name for name, _ in classes}))}
    of_class = np.array([groups[name] for name, _ in classes])
    return Tasks(x, np.array([classes[pair] for pair in pairs]), of_class, rotations)


def labelled(tasks: Tasks) -> Examples:
    """Return all items of the source with their classes, rotations included."""
    label = np.concatenate(
        [tasks.label + rotation * tasks.n_classes for rotation in range(tasks.rotations)]
    )
    n_classes = tasks.n_classes * tasks.rotations
    return Examples(_Rotated(tasks), Annotations.from_labels(label, n_classes))


class _Rotated:
    """The inputs of a source, once for every rotation."""

    def __init__(self, tasks: Tasks) -> None:
        self.tasks = tasks

    def __len__(self) -> int:
        return len(self.tasks.label) * self.tasks.rotations

    def __getitem__(self, items: Any, /) -> Tensor:
        rotation, item = np.divmod(np.asarray(items), len(self.tasks.label))
        return self.tasks.inputs(item, rotation)


def in_memory(x: Tensor | Source) -> Tensor | Source:
    """Return inputs in memory, unless they are too large."""
    if isinstance(x, Tensor) or not len(x):
        return x
    sample = inputs_of(x, np.arange(1))
    if not sample.is_floating_point() or sample.numel() * len(x) > _IN_MEMORY:
        return x
    return torch.cat([*chunks(x, _CHUNK)])
