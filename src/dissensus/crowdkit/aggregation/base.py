"""The base of crowd-kit's classifiers on our methods.

Where crowd-kit is installed, its own base class is a base of ours, too, so that crowd-kit accepts
our classes wherever it asks for its own, as in its `BinaryRelevance`. Tables of task, worker and
label become annotations, and results become Series and tables again.
"""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np

from ...aggregation import Majority
from ...aggregation.aggregation import ClassAggregation
from ...aggregation.classes import ClassMethod
from ...answers.annotations import Annotations
from ...base.arrays import Floats
from ...base.progress import iterations, progress_bar
from ...errors import DataError, OptionError

if TYPE_CHECKING:
    import pandas as pd


__all__ = ["BaseClassificationAggregator"]


ANSWERS = ("task", "worker", "label")


class TableError(DataError, KeyError, AssertionError):
    """A table lacks a column, or skills lack a worker.

    crowd-kit raises a `KeyError` or an `AssertionError` there; this is all three.
    """


@dataclass
class Names:
    """The values behind our codes, with the types they came with."""

    tasks: list[Any]
    workers: list[Any]
    labels: list[Any]

    def as_pandas(self, result: ClassAggregation) -> tuple[pd.Series, pd.DataFrame]:
        """Return labels by task, and probabilities by task and label."""
        import pandas as pd

        values = [None if code < 0 else self.labels[code] for code in result.label.tolist()]
        labels = pd.Series(values, index=self.by_task(result.label).index, name="agg_label")
        return labels, self.by_task_and_label(result.posterior)

    def by_task(self, values: Any, name: str | None = None) -> pd.Series:
        """Return one value for every task."""
        import pandas as pd

        return pd.Series(values, index=pd.Index(self.tasks, name="task"), name=name)

    def by_task_and_label(self, values: Floats) -> pd.DataFrame:
        """Return one value for every task and label."""
        import pandas as pd

        tasks, labels = pd.Index(self.tasks, name="task"), pd.Index(self.labels, name="label")
        return pd.DataFrame(values, index=tasks, columns=labels)

    def by_worker(self, values: Any, name: str) -> pd.Series:
        """Return one value for every worker."""
        import pandas as pd

        return pd.Series(values, index=pd.Index(self.workers, name="worker"), name=name)

    def by_label(self, values: Any, name: str) -> pd.Series:
        """Return one value for every label."""
        import pandas as pd

        return pd.Series(values, index=pd.Index(self.labels, name="label"), name=name)

    def errors(self, confusion: Floats) -> pd.DataFrame:
        """Return confusion matrices by worker and given label; a column for every true label."""
        import pandas as pd

        rows = pd.MultiIndex.from_product([self.workers, self.labels], names=["worker", "label"])
        table = confusion.swapaxes(1, 2).reshape(len(rows), -1)
        return pd.DataFrame(table, index=rows, columns=self.labels)

    def gold(self, true_labels: pd.Series) -> dict[str, str]:
        """Return known labels under our names."""
        tasks = {task: str(code) for code, task in enumerate(self.tasks)}
        labels = {label: str(code) for code, label in enumerate(self.labels)}
        return {
            tasks[task]: labels[label]
            for task, label in true_labels.items()
            if task in tasks and label in labels  # NaN is neither
        }


def require(data: pd.DataFrame, columns: Sequence[str] = ANSWERS) -> pd.DataFrame:
    """Return these columns of a table; refuse a table without them."""
    for name in columns:
        if name not in data.columns:
            raise TableError(f"no column {name!r}; crowd-kit's tables have {', '.join(columns)}")
    return data[list(columns)]


def complete(data: pd.DataFrame) -> pd.DataFrame:
    """Return the rows that have task, worker and label."""
    data = require(data)
    whole = data.dropna()
    if len(whole) < len(data):
        lost = f"{len(data) - len(whole)} rows without task, worker or label are left out"
        warnings.warn(lost, stacklevel=5)
    return whole


def coded(
    data: pd.DataFrame, labels: list[Any] | None = None, workers: list[Any] | None = None
) -> tuple[Annotations, Names]:
    """Return the annotations under numbers, and the values behind the numbers."""
    data = complete(data)
    tasks = in_order(data["task"].unique().tolist())
    labels = labels or in_order(data["label"].unique().tolist())
    fitted_workers = workers or []
    fitted = set(fitted_workers)
    new = [worker for worker in in_order(data["worker"].unique().tolist()) if worker not in fitted]
    names = Names(tasks, [*fitted_workers, *new], labels)
    annotations = Annotations.from_codes(
        _codes(data["task"], names.tasks),
        _codes(data["worker"], names.workers),
        _codes(data["label"], names.labels),
        items=len(names.tasks),
        annotators=len(names.workers),
        classes=len(names.labels),
    )
    return annotations, names


def in_order(values: list[Any]) -> list[Any]:
    """Return values sorted; those of several types, and sets, by type and by what they print."""
    try:
        if not any(isinstance(value, frozenset) for value in values):
            return sorted(values)
    except TypeError:  # of several types
        pass
    return sorted(values, key=_sort_key)


def _sort_key(value: Any) -> tuple[str, str]:
    printed = str(sorted(map(str, value))) if isinstance(value, frozenset) else str(value)
    return type(value).__name__, printed


def _codes(column: pd.Series, values: list[Any]) -> Any:
    position = {value: code for code, value in enumerate(values)}
    codes = column.map(position)
    if codes.isna().any():
        value = column[codes.isna()].iloc[0]
        raise DataError(f"{column.name} {value!r} is not known from the fit")
    return codes.to_numpy(dtype=np.int64)


class _NoBase:
    """The base where crowd-kit is missing, or broken."""


def _theirs() -> type:
    """Return crowd-kit's base class."""
    if find_spec("crowdkit") is None:
        return _NoBase
    try:
        return import_module("crowdkit.aggregation.base").BaseClassificationAggregator
    except Exception:  # of any kind: it breaks with new versions of what it stands on
        return _NoBase


_SERIES = {
    "labels_": "agg_label",
    "skills_": "skill",
    "priors_": "prior",
    "alphas_": "alpha",
    "betas_": "beta",
}
_Theirs: Any = _theirs()


@dataclass
class BaseClassificationAggregator(_Theirs, ABC):  # type: ignore[misc]
    """The base of all classifiers; attributes that end in `_` exist after a fit, as theirs do."""

    _fitted: ClassVar[tuple[str, ...]] = ("labels_", "probas_")  # what exists after a fit

    @abstractmethod
    def _method(self) -> ClassMethod:
        """Return our method with the settings of theirs."""

    def _keep(self, result: ClassAggregation, annotations: Annotations, names: Names) -> None:
        """Keep what else the class promises after a fit."""

    def fit(self, data: pd.DataFrame) -> Self:
        """Fit to a table of task, worker and label."""
        return self._fit(data)

    def fit_predict(self, data: pd.DataFrame, *arguments: Any, **options: Any) -> pd.Series:
        """Return the label of every task."""
        return self.fit(data, *arguments, **options).labels_

    def fit_predict_proba(
        self, data: pd.DataFrame, *arguments: Any, **options: Any
    ) -> pd.DataFrame:
        """Return the posterior of every task."""
        return self.fit(data, *arguments, **options).probas_

    def predict(self, data: pd.DataFrame) -> pd.Series:
        """Return the label of other tasks, by the same workers."""
        return self._predict(data)[0]

    def predict_proba(self, data: pd.DataFrame) -> pd.DataFrame:
        """Return the posterior of other tasks."""
        return self._predict(data)[1]

    def _fit(self, data: pd.DataFrame, true_labels: pd.Series | None = None) -> Self:
        data = complete(data)
        if data.empty:
            return self._fit_nothing()
        annotations, names = coded(data)
        gold = None if true_labels is None else names.gold(true_labels)
        return self._set(self._result(annotations, gold), annotations, names)

    def _result(
        self,
        annotations: Annotations,
        gold: dict[str, str] | None,
        start: Any = None,
        method: ClassMethod | None = None,
    ) -> ClassAggregation:
        """Return the result of our method; without iterations, the vote that it starts from."""
        if self._has_no_iterations():
            return Majority(ties="first").fit(annotations, gold=gold)
        seed, title = getattr(self, "random_state", 0), type(self).__name__
        loud = not getattr(self, "silent", True) or getattr(self, "verbose", 0) > 0
        with progress_bar(title) as bar:
            return (method or self._method()).fit(
                annotations,
                gold=gold,
                start=start,
                seed=seed,
                progress=iterations(bar) if loud else None,
            )

    def _has_no_iterations(self) -> bool:
        n_iter = getattr(self, "n_iter", 1)
        if n_iter < 0:
            raise OptionError(f"n_iter = {n_iter}, but it must be at least 0")
        return n_iter == 0

    def _set(self, result: ClassAggregation, annotations: Annotations, names: Names) -> Self:
        self.result_, self._names = result, names
        self.labels_, self.probas_ = names.as_pandas(result)
        self._keep(result, annotations, names)
        return self

    def _fit_nothing(self) -> Self:
        """Keep what crowd-kit keeps of a table without rows."""
        import pandas as pd

        for name in self._fitted:
            if name in _SERIES:
                setattr(self, name, pd.Series(dtype=float, name=_SERIES[name]))
            elif name == "loss_history_":
                setattr(self, name, [])
            else:
                arrays = name in ("spamming_", "thetas_")
                setattr(self, name, np.empty((0, 0)) if arrays else pd.DataFrame())
        return self

    def _predict(self, data: pd.DataFrame) -> tuple[Any, Any]:
        if not hasattr(self, "result_"):
            raise DataError(f"this {type(self).__name__} is not fitted yet; call fit first")
        annotations, names = coded(data, self._names.labels, self._names.workers)
        return names.as_pandas(self.result_.predict(annotations))
