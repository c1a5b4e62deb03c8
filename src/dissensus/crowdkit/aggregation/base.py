"""The base of crowd-kit's classifiers on our methods.

Where crowd-kit is installed, its own base class is a base of ours, too, so that crowd-kit accepts
our classes wherever it asks for its own, as in its `BinaryRelevance`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np

from ...base.progress import iterations, progress_bar
from ...aggregation import Aggregator, Majority
from ...answers.annotations import Annotations
from ...errors import DataError, OptionError
from ...result import Aggregation
from .table import Names, coded, complete

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["BaseClassificationAggregator"]


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
    def _method(self) -> Aggregator:
        """Return our method with the settings of theirs."""

    def _keep(self, result: Aggregation, annotations: Annotations, names: Names) -> None:
        """Keep what else the class promises after a fit."""

    def fit(self, data: pd.DataFrame) -> Self:
        """Fit to a table of task, worker and label."""
        return self._fit(data)

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
        method: Aggregator | None = None,
    ) -> Aggregation:
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
        wanted = getattr(self, "n_iter", 1)
        if wanted < 0:
            raise OptionError(f"n_iter = {wanted}, but it must be at least 0")
        return wanted == 0

    def _set(self, result: Aggregation, annotations: Annotations, names: Names) -> Self:
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
