"""A project of Label Studio as it is now: its tasks, annotations and our predictions.

The project is read as a whole at first, then events change it: an annotation is created, updated
or deleted. Label Studio is the store, so nothing has to be kept here between runs. An event that
is older than what is known is ignored, and so is one about an annotation that was deleted.

Written back are a prediction for every labelled task (label, confidence, `dissensus <method>` as
its version) and, in the meta of the task, the share of its pairs of labels that agree.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from typing import Any, NamedTuple

from ..aggregation.aggregation import ClassAggregation
from ..base.storage import as_plain
from ..errors import DataError
from ..formats import Reading, ReadOptions, examine
from ..formats.collecting import options_of_label
from ..formats.sources import Source
from ..metrics import item_agreement
from .label_studio_api import LabelStudioApi

META = "dissensus"  # our key in the meta of a task
_PREFIX = "dissensus "  # of the versions of our predictions
_MOVED = 0.005  # a confidence that changed by less is not written again
_SAVED = ("ANNOTATION_CREATED", "ANNOTATIONS_CREATED", "ANNOTATION_UPDATED")
_DELETED = ("ANNOTATION_DELETED", "ANNOTATIONS_DELETED")
_TASKS_DELETED = ("TASK_DELETED", "TASKS_DELETED")

Record = dict[str, Any]


class Control(NamedTuple):
    """A control of the labelling interface, as results name it."""

    from_name: str
    to_name: str
    type: str


class LabelStudioProject:
    """The state of one project."""

    def __init__(self, api: LabelStudioApi, number: int) -> None:
        self.api, self.number = api, number
        self.tasks: dict[int, Record] = {}  # with annotations by id
        self._home: dict[int, int] = {}  # annotation → task
        self._deleted: set[int] = set()

    def load(self) -> None:
        """Read the whole project."""
        tasks, home = {}, {}
        for task in self.api.tasks(self.number):
            number = task.get("id")
            if not isinstance(number, int):
                raise DataError(f"{self.api.url}: a task without an id")
            annotations = {}
            for annotation in _records(task.get("annotations")):
                if isinstance(annotation.get("id"), int):
                    annotations[annotation["id"]] = annotation
                    home[annotation["id"]] = number
            tasks[number] = {**task, "annotations": annotations}
        self.tasks, self._home, self._deleted = tasks, home, set()

    @property
    def n_annotations(self) -> int:
        """How many annotations there are, cancelled ones included."""
        return len(self._home)

    def apply(self, event: Mapping[str, Any]) -> bool:
        """Change the state by an event; return whether it changed anything."""
        project = event.get("project")
        number = project.get("id") if isinstance(project, dict) else project
        if number is not None and number != self.number:
            return False
        action = event.get("action")
        if action in _SAVED:
            changed = [self._save(annotation) for annotation in _subjects(event, "annotation")]
        elif action in _DELETED:
            changed = [
                self._delete(annotation.get("id")) for annotation in _subjects(event, "annotation")
            ]
        elif action in _TASKS_DELETED:
            changed = [self._delete_task(task.get("id")) for task in _subjects(event, "task")]
        else:
            return False
        return any(changed)

    def reading(self, question: str | None, classes: list[str] | None = None) -> Reading | None:
        """Return the annotations of people, as the export has them; nothing without any label."""
        tasks: list[Record] = [
            {
                "id": number,
                "data": task.get("data") or {},
                "annotations": [_by_id(annotation) for annotation in task["annotations"].values()],
            }
            for number, task in self.tasks.items()
            if task["annotations"]
        ]
        if not any(
            annotation.get("result") and not annotation.get("was_cancelled")
            for task in tasks
            for annotation in task["annotations"]
        ):
            return None
        source = Source(self.api.url, json.dumps(tasks).encode(), "json")
        options = ReadOptions(
            format="label-studio", kind="single", question=question, classes=classes
        )
        return examine(source, options)

    def control(self, question: str) -> Control:
        """Return the control of a question."""
        for result in self._results():
            if result.get("from_name") == question:
                return Control(question, str(result.get("to_name")), str(result.get("type")))
        raise DataError(f"{self.api.url}: no control {question!r}")

    def write_predictions(
        self, method: str, result: ClassAggregation | None, reading: Reading | None
    ) -> int:
        """Write labels and confidences that differ from what is there; return how many.

        Our predictions of tasks that have no labels any more are deleted.
        """
        version, written = f"{_PREFIX}{method}", 0
        bodies = {} if result is None or reading is None else self._bodies(result, reading, version)
        for number, task in self.tasks.items():
            predictions = [
                prediction
                for prediction in _records(task.get("predictions"))
                if prediction.get("model_version") == version
                and isinstance(prediction.get("id"), int)
            ]
            if number in bodies:
                written += self._write_prediction(task, predictions[:1], bodies[number])
            for prediction in predictions[1:] if number in bodies else predictions:
                self.api.delete_prediction(prediction["id"])
                task["predictions"].remove(prediction)
                written += 1
        return written

    def write_agreement(self, reading: Reading | None) -> int:
        """Write the share of agreeing pairs to the meta of tasks; return how many were changed."""
        agreements: dict[int, Record] = {}
        if reading is not None:
            annotations = reading.annotations
            shares = item_agreement(annotations)
            columns = annotations.items, shares, annotations.labels_per_item
            for item, share, n_labels in zip(*(values.tolist() for values in columns), strict=True):
                agreed = None if math.isnan(share) else round(share, 4)
                agreements[int(item)] = {"agreement": agreed, "labels": n_labels}
        written = 0
        for number, task in self.tasks.items():
            meta, new = task.get("meta") or {}, agreements.get(number)
            if not isinstance(meta, dict) or meta.get(META) == new:
                continue
            other_meta = {name: value for name, value in meta.items() if name != META}
            changed = other_meta if new is None else {**other_meta, META: new}
            self.api.set_meta(number, changed)
            task["meta"] = changed
            written += 1
        return written

    def _bodies(
        self, result: ClassAggregation, reading: Reading, version: str
    ) -> dict[int, Record]:
        """Return the prediction of every task with a label."""
        control = self.control(reading.question or "")
        confidence = [
            value if value is None else round(value, 4) for value in as_plain(result.confidence)
        ]
        columns = result.answers.items.tolist(), result.labels.tolist(), confidence
        return {
            int(item): {
                "task": int(item),
                "result": _result(control, label, reading.kind),
                "score": score,
                "model_version": version,
            }
            for item, label, score in zip(*columns, strict=True)
            if label is not None
        }

    def _write_prediction(self, task: Record, predictions: list[Record], body: Record) -> bool:
        if not predictions:
            number = self.api.create_prediction(body)
            task["predictions"] = [*_records(task.get("predictions")), {"id": number, **body}]
            return True
        prediction = predictions[0]
        score, new = prediction.get("score"), body["score"]
        close = score is None and new is None
        if isinstance(score, (int, float)) and new is not None:
            close = abs(score - new) < _MOVED
        if close and _values(prediction.get("result")) == _values(body["result"]):
            return False
        if self.api.update_prediction(prediction["id"], body):
            prediction.update(body)
            return True
        task["predictions"].remove(prediction)  # somebody deleted it
        return self._write_prediction(task, [], body)

    def _save(self, annotation: Mapping[str, Any]) -> bool:
        number, task = annotation.get("id"), annotation.get("task")
        if not isinstance(number, int) or not isinstance(task, int) or number in self._deleted:
            return False
        home = self.tasks.setdefault(task, {"id": task, "annotations": {}})
        old = home["annotations"].get(number, {})
        if _time(annotation) < _time(old):
            return False
        home["annotations"][number] = dict(annotation)
        self._home[number] = task
        return old != annotation

    def _delete(self, number: Any) -> bool:
        if not isinstance(number, int):
            return False
        self._deleted.add(number)
        task = self._home.pop(number, None)
        if task is None:
            return False
        del self.tasks[task]["annotations"][number]
        return True

    def _delete_task(self, number: Any) -> bool:
        task = self.tasks.pop(number, None) if isinstance(number, int) else None
        if task is None:
            return False
        for annotation in task["annotations"]:
            self._home.pop(annotation, None)
            self._deleted.add(annotation)
        return True

    def _results(self) -> Iterator[Record]:
        for task in self.tasks.values():
            for annotation in task["annotations"].values():
                yield from _records(annotation.get("result"))


def _records(content: Any) -> list[Record]:
    return (
        [record for record in content if isinstance(record, dict)]
        if isinstance(content, list)
        else []
    )


def _subjects(event: Mapping[str, Any], word: str) -> Iterable[Mapping[str, Any]]:
    """Return what an event is about: one, several, or only an id."""
    for name in (f"{word}s", word):
        subjects = event.get(name)
        if isinstance(subjects, dict):
            return [subjects]
        if isinstance(subjects, list):
            return _records(subjects)
    return [event]


def _time(annotation: Mapping[str, Any]) -> float:
    """Return when an annotation was changed; Label Studio writes no microseconds if there are 0."""
    try:
        return datetime.fromisoformat(str(annotation.get("updated_at"))).timestamp()
    except (ValueError, OverflowError):
        return 0.0


def _by_id(annotation: Mapping[str, Any]) -> Record:
    """Return an annotation whose annotator is an id, as events have it."""
    by = annotation.get("completed_by")
    number = by.get("id", by.get("email")) if isinstance(by, dict) else by
    return {**annotation, "completed_by": number}


def _result(control: Control, label: str, kind: str) -> list[Record]:
    """Return a label as the control itself would give it."""
    options = options_of_label(label) if kind == "sets" else [label]
    value: Record
    match control.type:
        case "rating":
            value = {"rating": int(label) if label.lstrip("-").isdigit() else label}
        case "taxonomy":
            value = {"taxonomy": [option.split(" / ") for option in options]}
        case "pairwise":
            value = {"selected": label}
        case _:
            value = {"choices": options}
    return [{**control._asdict(), "value": value}]


def _values(result: Any) -> list[Any]:
    """Return what a result says; Label Studio adds ids and the like to it."""
    return [(record.get("from_name"), record.get("value")) for record in _records(result)]
