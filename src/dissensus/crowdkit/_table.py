"""Tables of task, worker and label as annotations, and results as Series and tables again."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ..annotations import Annotations
from ..errors import DataError
from ..result import Aggregation

if TYPE_CHECKING:
    import pandas as pd


@dataclass
class Names:
    """The values behind our codes, with the types they came with."""

    tasks: list[Any]
    workers: list[Any]
    labels: list[Any]

    def as_pandas(self, result: Aggregation) -> tuple[pd.Series, pd.DataFrame]:
        import pandas as pd

        tasks = pd.Index(self.tasks, name="task")
        chosen = [None if code < 0 else self.labels[code] for code in result.label.tolist()]
        columns = pd.Index(self.labels, name="label")
        return (
            pd.Series(chosen, index=tasks, name="agg_label"),
            pd.DataFrame(result.posterior, index=tasks, columns=columns),
        )

    def by_worker(self, values: Any, name: str) -> pd.Series:
        import pandas as pd

        return pd.Series(values, index=pd.Index(self.workers, name="worker"), name=name)

    def gold(self, true_labels: pd.Series) -> dict[str, str]:
        tasks = {task: str(code) for code, task in enumerate(self.tasks)}
        labels = {label: str(code) for code, label in enumerate(self.labels)}
        return {
            tasks[task]: labels[label]
            for task, label in true_labels.items()
            if task in tasks and label in labels  # NaN is neither
        }


def coded(
    data: pd.DataFrame, labels: list[Any] | None = None, workers: list[Any] | None = None
) -> tuple[Annotations, Names]:
    """Return the annotations under numbers, and the values behind the numbers."""
    missing = [name for name in ("task", "worker", "label") if name not in data.columns]
    if missing:
        raise DataError(f"no column {missing[0]!r}; crowd-kit's tables have task, worker and label")
    whole = data[["task", "worker", "label"]].dropna()
    if len(whole) < len(data):
        lost = f"{len(data) - len(whole)} rows without task, worker or label are left out"
        warnings.warn(lost, stacklevel=4)
        data = whole
    tasks = _sorted(data["task"].unique().tolist())
    labels = labels or _sorted(data["label"].unique().tolist())
    known = workers or []
    worker = known + [one for one in _sorted(data["worker"].unique().tolist()) if one not in known]
    annotations = Annotations.from_codes(
        _codes(data["task"], tasks),
        _codes(data["worker"], worker),
        _codes(data["label"], labels),
        items=len(tasks),
        annotators=len(worker),
        classes=len(labels),
    )
    return annotations, Names(tasks, worker, labels)


def _codes(column: pd.Series, values: list[Any]) -> Any:
    position = {value: code for code, value in enumerate(values)}
    found = column.map(position)
    if found.isna().any():
        what = column[found.isna()].iloc[0]
        raise DataError(f"{column.name} {what!r} is not known from the fit")
    return found.to_numpy(dtype=np.int64)


def _sorted(values: list[Any]) -> list[Any]:
    try:
        return sorted(values)
    except TypeError:  # of several types
        return sorted(values, key=lambda value: (type(value).__name__, str(value)))
