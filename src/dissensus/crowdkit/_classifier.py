"""The base of crowd-kit's classifiers on our methods."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

from ..aggregation import Aggregator
from ..errors import DataError
from ..result import Aggregation
from ._table import Names, coded

if TYPE_CHECKING:
    import pandas as pd


@dataclass
class Classifier(ABC):
    """The base of all classifiers; attributes that end in `_` exist after a fit, as theirs do."""

    @abstractmethod
    def _method(self) -> Aggregator:
        """Return our method with the settings of theirs."""

    def _keep(self, result: Aggregation, names: Names) -> None:  # noqa: B027
        """Keep what else the class promises after a fit."""

    def fit(self, data: pd.DataFrame) -> Self:
        """Fit to a table of task, worker and label."""
        return self._fit(data, seed=getattr(self, "random_state", 0))

    def fit_predict(self, data: pd.DataFrame, *given: Any, **named: Any) -> pd.Series:
        """Return the label of every task."""
        return self.fit(data, *given, **named).labels_

    def fit_predict_proba(self, data: pd.DataFrame, *given: Any, **named: Any) -> pd.DataFrame:
        """Return the posterior of every task."""
        return self.fit(data, *given, **named).probas_

    def predict(self, data: pd.DataFrame) -> pd.Series:
        """Return the label of other tasks, by the same workers."""
        return self._predict(data)[0]

    def predict_proba(self, data: pd.DataFrame) -> pd.DataFrame:
        """Return the posterior of other tasks."""
        return self._predict(data)[1]

    def _fit(self, data: pd.DataFrame, method: Aggregator | None = None, **given: Any) -> Self:
        annotations, names = coded(data)
        true_labels = given.pop("true_labels", None)
        if true_labels is not None:
            given["gold"] = names.gold(true_labels)
        result = (method or self._method()).fit(annotations, **given)
        self.result_, self._names = result, names
        self.labels_, self.probas_ = names.as_pandas(result)
        self._keep(result, names)
        return self

    def _predict(self, data: pd.DataFrame) -> tuple[Any, Any]:
        if not hasattr(self, "result_"):
            raise DataError(f"this {type(self).__name__} is not fitted yet; call fit first")
        annotations, names = coded(data, self._names.labels, self._names.workers)
        return names.as_pandas(self.result_.predict(annotations))
