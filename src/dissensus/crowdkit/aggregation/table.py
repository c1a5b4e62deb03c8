"""Tables of task, worker and label as annotations, and results as Series and tables again."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ...base.arrays import Floats
from ...answers.annotations import Annotations
from ...errors import DataError
from ...result import Aggregation

if TYPE_CHECKING:
    import pandas as pd

ANSWERS = ("task", "worker", "label")


class TableError(DataError, KeyError, AssertionError):
    """A table lacks a column, or skills lack a worker.

    crowd-kit raises a `KeyError` or an `AssertionError` there; this is all three.
    """

    def __str__(self) -> str:
        """Return the message without the quotes of a `KeyError`."""
        return " ".join(str(self.args[0]).splitlines())


@dataclass
class Names:
    """The values behind our codes, with the types they came with."""

    tasks: list[Any]
    workers: list[Any]
    labels: list[Any]

    def as_pandas(self, result: Aggregation) -> tuple[pd.Series, pd.DataFrame]:
        """Return labels by task, and probabilities by task and label."""
        import pandas as pd

        chosen = [None if code < 0 else self.labels[code] for code in result.label.tolist()]
        labels = pd.Series(chosen, index=self.by_task(result.label).index, name="agg_label")
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
    known = workers or []
    seen = set(known)
    new = [one for one in in_order(data["worker"].unique().tolist()) if one not in seen]
    names = Names(tasks, [*known, *new], labels)
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
    found = column.map(position)
    if found.isna().any():
        what = column[found.isna()].iloc[0]
        raise DataError(f"{column.name} {what!r} is not known from the fit")
    return found.to_numpy(dtype=np.int64)
