"""What a small task gave: labels of all items, its annotators, and what to ask next."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...base.arrays import Floats
from ...base.names import Names, as_names
from ...base.storage import as_rows
from ...errors import OptionError
from ...formats import Reading
from ...pages.sections import Section
from ...pages.sections import Table as SmallTable
from ...result import Result, Table
from ..learning.outcome import confusion_columns
from ..nn.estimator import predicted_columns
from ..nn.inputs import Inputs
from ..nn.reading import read_inputs, read_others
from .target import FewShotTask

_SHOWN = 10  # annotators and requests on the terminal


@dataclass(frozen=True, eq=False, repr=False)
class Adapted(Result):
    """An adapted task, with the labels of all items and the labels to request next.

    Attributes
    ----------
    task
        The task.
    further, posterior
        Names of items without annotations, and their classes: (item, class).
    requests
        Pairs of item and annotator, the most informative first; `None` where none were asked for.
    """

    task: FewShotTask
    further: Names
    posterior: Floats
    requests: Table | None = None

    @property
    def tables(self) -> Mapping[str, Table]:
        """Labels of all items, confusion matrices, and requests."""
        task = self.task
        columns = predicted_columns(task.classes_, np.concatenate([task.posterior, self.posterior]))
        n_labels = np.pad(task.annotations.labels_per_item, (0, len(self.further)))
        items = as_names([*task.annotations.items.tolist(), *self.further.tolist()])
        first = {name: columns.pop(name) for name in ("label", "confidence")}
        tables: dict[str, Table] = {
            "labels": {"item": items} | first | {"n_labels": n_labels} | columns,
            "confusion": confusion_columns(task.confusion, task.annotators_, task.classes_),
        }
        return tables | ({} if self.requests is None else {"requests": self.requests})

    @property
    def sentences(self) -> tuple[str, ...]:
        """How sure the labels are, and what to ask next."""
        task = self.task
        labelled = f"{task.annotations.n_items} items with {len(task.annotations)} labels"
        sentence = f"{labelled}: mean confidence {task.posterior.max(axis=1).mean():.0%}"
        if len(self.further):
            confidence = self.posterior.max(axis=1).mean()
            sentence += f"; {len(self.further)} new items: {confidence:.0%}"
        sentences = [f"{sentence}."]
        if self.requests is not None:
            rows = as_rows(self.requests)[:_SHOWN]
            suggestions = [f"{row['annotator']} about {row['item']}" for row in rows]
            sentences.append(f"Ask next: {'; '.join(suggestions)}.")
        return tuple(sentences)

    def sections(self) -> tuple[Section, ...]:
        """Return a table of the annotators, the best first, then the sentences."""
        ranked = sorted(as_rows(self.task.annotators), key=lambda row: -row["accuracy"])
        rows = [
            (row["annotator"], str(row["n_labels"]), f"{row['accuracy']:.0%}")
            for row in ranked[:_SHOWN]
        ]
        if len(ranked) > _SHOWN:
            rows.append(("…", f"{len(ranked) - _SHOWN} more", ""))
        title = f"Annotators, by {self.task.model.adapter_}"
        table = SmallTable(title, ("annotator", "labels", "right"), rows)
        below = Section("labels", "", text=self.sentences)
        return (Section("annotators", title, panels=[[table]], subsections=[below]),)

    def as_dict(self) -> dict[str, Any]:
        """Return the labels and what was learned of annotators."""
        task = self.task
        names = task.annotations.items.tolist()
        content: dict[str, Any] = {
            "adapter": task.model.adapter_,
            "classes": task.classes_.tolist(),
            "items": task.annotations.n_items,
            "new_items": len(self.further),
            "labels": dict(zip(names, task.labels.tolist(), strict=True)),
            "annotators": as_rows(task.annotators),
            "confusion": dict(zip(task.annotators_.tolist(), task.confusion.tolist(), strict=True)),
        }
        return content | ({} if self.requests is None else {"ask": as_rows(self.requests)})


def read_support(
    reading: Reading, path: str | None = None, *, column: str | None = None
) -> tuple[Any, Names, Inputs | None]:
    """Return the inputs of annotated items, and names and inputs of others.

    Parameters
    ----------
    reading
        The annotations, perhaps with the texts of their items.
    path, column
        Where the inputs are, otherwise, and which column or array.
    """
    items = reading.annotations.items
    if path is not None:
        names, others = read_others(path, items, column=column)
        return read_inputs(path, items, column=column), names, others
    if reading.texts is None:
        remedy = "what are the items? {} names a folder, a table or a .npz"
        raise OptionError(remedy=remedy, inputs=...)
    texts = dict(reading.texts.select("item", "text").iter_rows())
    lost = [item for item in items.tolist() if item not in texts]
    if lost:
        raise OptionError(
            f"no text for item {lost[0]!r}", remedy="names where they are", inputs=...
        )
    return [texts[item] for item in items.tolist()], as_names([]), None


def adapted(
    task: FewShotTask,
    further: Names,
    inputs: Inputs | None,
    *,
    budget: int | None = None,
    seed: int = 0,
) -> Adapted:
    """Return the labels of a task and of further items, and what to ask for with a budget."""
    posterior = np.zeros((0, len(task.classes_)))
    if len(further):
        posterior = task.predict_proba(inputs)
    return Adapted(task, further, posterior, task.next(budget, seed=seed) if budget else None)
