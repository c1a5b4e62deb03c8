"""A project of Label Studio that is followed: labels, predictions and agreement keep up with it."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import Any

from ..answers.annotations import NUMERIC
from ..errors import DataError, DissensusError
from ..formats import Reading
from ..formats.writers_init import write
from ..metrics import krippendorff_alpha
from ..pages.terminal import note, words_of
from .label_studio_api import LabelStudioApi, read_api_key
from .label_studio_project import LabelStudioProject
from .online import Changes, CurrentLabels
from .watching import Update, Watched
from .webhooks import WebhookReceiver

_RELOAD = 60  # looks after which the whole project is read again, though events arrive


def connected(
    url: str, number: int, key: str | None, say: Callable[[str], None] = note
) -> LabelStudioProject:
    """Return a project; say what endangers the key, or the independence of annotators.

    Parameters
    ----------
    url, number
        The address of Label Studio, and the number of the project.
    key
        A file with the API key, by default the one in the environment.
    say
        Called with sentences for the user.
    """
    api = LabelStudioApi(url, read_api_key(key))
    if api.is_exposed:
        say(f"{api.url}: the API key is sent without encryption; https would hide it")
    if api.project(number).get("show_collab_predictions"):
        say(
            f"project {number} shows predictions to annotators, and labels that follow them are "
            "not independent; switch that off in its settings"
        )
    return LabelStudioProject(api, number)


class WatchedProject(Watched):
    """A project with its labels, a table of them, and predictions in Label Studio.

    Parameters
    ----------
    project
        The project.
    labels
        The labels that follow it.
    output
        The file of labels.
    question
        The question to follow, where there are several.
    classes
        All classes, where they are declared.
    port
        Where webhooks are taken; without, the project is read again and again.
    """

    def __init__(
        self,
        project: LabelStudioProject,
        labels: CurrentLabels,
        output: Path,
        *,
        question: str | None,
        classes: list[str] | None,
        port: int | None = None,
        **settings: Any,
    ) -> None:
        super().__init__(output, **settings)
        self.project, self.labels = project, labels
        self.question, self.classes = question, classes
        self.port = None if self.once else port
        self._first = True

    def updates(self, seconds: float) -> Iterator[Update]:
        """Yield what looks and events have changed, once it is written back."""
        project, reload, changed, is_first, loaded = self.project, True, False, True, 0.0
        with nullcontext() if self.port is None else WebhookReceiver(self.port) as receiver:
            if receiver is not None:
                hint = f"in Label Studio, add the webhook {receiver.url} with its payload"
                self.say(f"listening; {hint}")
            while True:
                try:
                    if reload:
                        project.load()
                        loaded = time.monotonic()
                    if reload or changed:
                        update = self.write()
                        if update is not None:
                            yield update
                    reload = is_first = False
                except DissensusError as problem:
                    if self.once or is_first:
                        raise
                    self.say(f"{words_of(problem)}; trying again in {seconds:g} s")
                    reload = True
                if self.once:
                    return
                try:
                    changed = self._wait(receiver, seconds)
                except KeyboardInterrupt:
                    return
                rounds = 1 if receiver is None else _RELOAD
                reload = reload or time.monotonic() - loaded >= rounds * seconds
                if receiver is not None and receiver.overflowed.is_set():
                    receiver.overflowed.clear()
                    reload = True

    def _wait(self, receiver: WebhookReceiver | None, seconds: float) -> bool:
        """Wait for events or for some seconds; return whether events have changed the project."""
        if receiver is None:
            time.sleep(seconds)
            return False
        return any([self.project.apply(event) for event in receiver.take(seconds)])  # noqa: C419

    def write(self) -> Update | None:
        """Update the labels, and write whatever has changed."""
        reading = self.project.reading(self.question, self.classes)
        if reading is None and self._first:
            self.say(f"no labels in project {self.project.number} yet")
        if reading is not None and reading.annotations.scale in NUMERIC:
            raise DataError("watch needs classes, but this question is answered by numbers")
        for sentence in () if reading is None else reading.notes:
            self.say_once(sentence)
        changes = self.labels.update(None if reading is None else reading.annotations)
        result = None if reading is None else self.labels.online.result()
        if result is not None and (any(changes) or self._first):
            write(result, self.output)
        n_written = self.project.write_predictions(self.labels.method, result, reading)
        n_agreed = self.project.write_agreement(reading)
        self._first = reading is None and self._first
        if n_written or n_agreed or any(changes):
            return self._update(reading, changes, n_written)
        return None

    def _update(self, reading: Reading | None, changes: Changes, n_written: int) -> Update:
        n_labels = n_items = 0
        alpha = math.nan
        if reading is not None:
            annotations = reading.annotations
            n_labels, n_items = len(annotations), annotations.n_items
            alpha = float(krippendorff_alpha(annotations))
        agreement = "" if math.isnan(alpha) else f"; Krippendorff's alpha {alpha:.3f}"
        words = (
            f"{changes.new} new annotations, {changes.gone} gone, {n_labels} in all; "
            f"labels of {n_items} items are in {self.output}, {n_written} predictions were written "
            f"to project {self.project.number}{agreement}"
        )
        counts = {
            **changes._asdict(),
            "n_labels": n_labels,
            "n_items": n_items,
            "predictions": n_written,
            "alpha": None if math.isnan(alpha) else round(alpha, 6),
        }
        return Update(counts=counts, words=(words,))
