"""The base of peerannot's models: the answers of workers to tasks."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from numbers import Integral
from pathlib import Path
from typing import Any

from ..base.names import code, text
from ..answers.annotations import Annotations
from ..formats.tools.peerannot import from_answers
from ..formats.side_tables import read_removed

__all__ = ["CrowdModel"]


class CrowdModel:
    """Answers of workers to tasks; a strategy of your own adds `get_probas` and `get_answers`.

    Parameters
    ----------
    answers
        `{task: {worker: label}}`.
    path_remove
        A file whose rows end with a task to leave out, as `too_hard.txt`.

    Examples
    --------
    >>> CrowdModel({"10": {"0": 1}, "9": {"0": 0, "2": 1}}).answers
    {9: {0: 0, 2: 1}, 10: {0: 1}}
    """

    n_classes: int | None = None
    n_workers: int | None = None

    def __init__(
        self, answers: Mapping[Any, Mapping[Any, Any]], path_remove: str | Path | None = None
    ) -> None:
        named = {text(task): given for task, given in answers.items()}
        removed = read_removed(path_remove) if path_remove else ()
        self.answers: dict[Any, dict[Any, Any]] = {
            _number(task): {
                _number(text(worker)): int(label) if isinstance(label, Integral) else label
                for worker, label in named[task].items()
            }
            for task in code(list(named))[1].tolist()
            if task not in removed
        }
        self.n_task = len(self.answers)

    @cached_property
    def annotations(self) -> Annotations:
        """The answers as annotations, in the order of tasks."""
        counts = {"n_annotators": self.n_workers, "n_classes": self.n_classes}
        if not all(
            isinstance(label, int) for one in self.answers.values() for label in one.values()
        ):
            del counts["n_classes"]  # classes have names
        return from_answers(self.answers, **counts)


def _number(name: str) -> Any:
    return int(name) if name.isascii() and name.isdigit() else name
