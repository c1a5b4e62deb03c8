"""`dissensus watch --label-studio`: a project is followed, and labels are written back."""

from __future__ import annotations

import math
import time
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING

from ..errors import DataError, DissensusError
from ..pages.terminal import note, show_json

if TYPE_CHECKING:
    from ..scale.live_init import LabelStudioProject, WebhookReceiver
    from ..scale.current_labels import CurrentLabels
    from ..formats import Reading

_RELOAD = 60  # looks after which the whole project is read again, though events arrive


class Follower:
    """A project with its labels, a table and predictions in Label Studio."""

    def __init__(
        self,
        project: LabelStudioProject,
        labels: CurrentLabels,
        target: Path,
        question: str | None,
        classes: list[str] | None,
        as_json: bool,
    ) -> None:
        self.project, self.labels, self.target = project, labels, target
        self.question, self.classes, self.as_json = question, classes, as_json
        self._first = True
        self._notes: set[str] = set()  # about what was left out, printed once

    def write(self) -> None:
        """Update the labels, and write whatever has changed."""
        from ..formats.writers_init import write

        reading = self.project.reading(self.question, self.classes)
        if reading is None and self._first:
            note(f"no labels in project {self.project.number} yet")
        if reading is not None and reading.annotations.numeric:
            raise DataError("watch needs classes, but this question is answered by numbers")
        for sentence in () if reading is None else reading.notes:
            if sentence not in self._notes:
                note(sentence)
                self._notes.add(sentence)
        changes = self.labels.update(None if reading is None else reading.annotations)
        result = None if reading is None else self.labels.online.result()
        if result is not None and (any(changes) or self._first):
            write(result, self.target)
        written = self.project.write_predictions(self.labels.method, result, reading)
        agreed = self.project.write_agreement(reading)
        if written or agreed or any(changes):
            self._report(reading, changes._asdict(), written)
        self._first = reading is None and self._first

    def _report(self, reading: Reading | None, changes: dict[str, int], written: int) -> None:
        from ..metrics.agreement_init import krippendorff_alpha

        annotations = None if reading is None else reading.annotations
        alpha = math.nan if annotations is None else float(krippendorff_alpha(annotations))
        n_labels, n_items = (
            (0, 0) if annotations is None else (len(annotations), annotations.n_items)
        )
        if self.as_json:
            summary = {**changes, "n_labels": n_labels, "n_items": n_items, "predictions": written}
            show_json({**summary, "alpha": None if math.isnan(alpha) else round(alpha, 6)})
            return
        agreement = "" if math.isnan(alpha) else f"; Krippendorff's alpha {alpha:.3f}"
        note(
            f"{changes['new']} new annotations, {changes['gone']} gone, {n_labels} in all; "
            f"labels of {n_items} items are in {self.target}, {written} predictions were written "
            f"to project {self.project.number}{agreement}"
        )


def connect(url: str, number: int, key: str | None) -> LabelStudioProject:
    """Return a project; report what endangers the key, or the independence of annotators."""
    from ..scale.live_init import LabelStudioApi, LabelStudioProject, read_api_key

    api = LabelStudioApi(url, read_api_key(key))
    if api.is_exposed:
        note(f"{api.url}: the API key is sent without encryption; https would hide it")
    if api.project(number).get("show_collab_predictions"):
        note(
            f"project {number} shows predictions to annotators, and labels that follow them are "
            "not independent; switch that off in its settings"
        )
    return LabelStudioProject(api, number)


def follow(follower: Follower, port: int | None, *, once: bool, every: float) -> None:
    """Follow a project: by events, if there is a port for them, or else by looking again."""
    from ..scale.live_init import WebhookReceiver

    project, reload, changed, first, loaded = follower.project, True, False, True, 0.0
    with nullcontext() if port is None or once else WebhookReceiver(port) as receiver:
        if receiver is not None:
            note(f"listening; in Label Studio, add the webhook {receiver.url} with its payload")
        while True:
            try:
                if reload:
                    project.load()
                    loaded = time.monotonic()
                if reload or changed:
                    follower.write()
                reload = first = False
            except DissensusError as problem:
                if once or first:
                    raise
                note(f"{problem}; trying again in {every:g} s")
                reload = True
            if once:
                return
            try:
                changed = _wait(project, receiver, every)
            except KeyboardInterrupt:
                return
            rounds = 1 if receiver is None else _RELOAD
            reload = reload or time.monotonic() - loaded >= rounds * every
            if receiver is not None and receiver.overflowed.is_set():
                receiver.overflowed.clear()
                reload = True


def _wait(project: LabelStudioProject, receiver: WebhookReceiver | None, every: float) -> bool:
    """Wait for events or for some seconds; return whether events have changed the project."""
    if receiver is None:
        time.sleep(every)
        return False
    return any([project.apply(event) for event in receiver.take(every)])  # noqa: C419
