"""The base of peerannot's aggregations on our methods."""

from __future__ import annotations

import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np

from ..base.arrays import Array, Floats
from ..aggregation import Aggregator, as_method
from ..errors import MethodError
from ..result import Aggregation
from .template import CrowdModel


class AggregationModel(CrowdModel):
    """An aggregation by one of our methods; `result` is what it returned.

    Parameters
    ----------
    answers
        `{task: {worker: label}}`.
    n_classes
        Number of classes; larger labels add classes.
    n_workers
        Number of workers; by default those with answers.
    dataset
        A folder for the files that peerannot writes under `identification/`.
    path_remove
        A file with tasks to leave out.
    """

    only_hard = False  # whether peerannot has no soft labels, and says so

    def __init__(
        self,
        answers: Any,
        n_classes: int = 2,
        *,
        n_workers: int | None = None,
        dataset: str | Path | None = None,
        path_remove: str | Path | None = None,
        **_unused: Any,
    ) -> None:
        for name, count in {"n_classes": n_classes, "n_workers": n_workers}.items():
            _check_count(type(self).__name__, name, count)
        super().__init__(answers, path_remove)
        self.n_classes, self.dataset = int(n_classes), dataset
        self.n_workers = None if n_workers is None else int(n_workers)
        self._result: Aggregation | None = None

    @property
    def result(self) -> Aggregation:
        """Our result."""
        if self._result is None:
            raise MethodError(f"this {type(self).__name__} has not run yet; call run() first")
        return self._result

    def fit(self, method: str | Aggregator) -> Aggregation:
        """Fit one of our methods, and return its result."""
        self._result = as_method(method).fit(self.annotations)
        return self._result

    def get_probas(self) -> Floats | Array:
        """Return soft labels, (task, class); hard labels where peerannot has no others."""
        if self.only_hard:
            warnings.warn(f"{type(self).__name__} only returns hard labels", stacklevel=2)
            return self.get_answers()
        return self.result.posterior

    def get_answers(self) -> Array:
        """Return the label of every task; -1 where there is none."""
        classes = self.annotations.classes
        if classes.tolist() == [str(number) for number in range(len(classes))]:
            return self.result.label
        return np.append(classes.astype(object), -1)[self.result.label]


def _check_count(model: str, name: str, count: int | None) -> None:
    """Fail unless a count is at least 1; with pydantic's error where the script uses pydantic."""
    if count is None or count >= 1:
        return
    if "pydantic" in sys.modules:
        error: Any = sys.modules["pydantic"].ValidationError
        line = {"type": "greater_than_equal", "loc": (name,), "input": count, "ctx": {"ge": 1}}
        raise error.from_exception_data(model, [line])
    raise MethodError(f"{name} = {count}, but it must be at least 1")
