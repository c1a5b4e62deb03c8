"""Several labels for a task: every label is a question of its own, yes or no."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Self

from ...errors import OptionError
from .base import complete, in_order
from .classification import MajorityVote

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["BinaryRelevance"]


@dataclass
class BinaryRelevance:
    """Any classifier, ours or crowd-kit's, for tables whose labels are lists.

    `aggregators_` has a fitted copy of it for every label. Our method `per-option` differs: it
    returns probabilities, and takes the names of our methods.
    """

    base_aggregator: Any = field(default_factory=MajorityVote)

    def __post_init__(self) -> None:
        if not hasattr(self.base_aggregator, "fit_predict"):
            raise OptionError(f"base_aggregator = {self.base_aggregator!r} is no aggregator")

    def fit(self, data: pd.DataFrame) -> Self:
        """Fit to a table of task, worker and label, where labels are lists."""
        import pandas as pd

        data = complete(data)
        option_sets = data["label"].map(frozenset)
        options = in_order(list(frozenset().union(*option_sets)))
        tasks = in_order(data["task"].unique().tolist())
        self.aggregators_: dict[Any, Any] = {}
        labels: dict[Any, list[Any]] = {task: [] for task in tasks}
        for option in options:
            aggregator = self.aggregators_[option] = _unfitted(self.base_aggregator)
            binary = data.assign(label=[int(option in option_set) for option_set in option_sets])
            for task, answer in aggregator.fit_predict(binary).items():
                if answer:
                    labels[task].append(option)
        if labels:
            index = pd.Index(tasks, name="task")
            self.labels_ = pd.Series(list(labels.values()), index=index, name="agg_label")
        else:
            self.labels_ = pd.Series(dtype=float, name="agg_label")
        return self

    def fit_predict(self, data: pd.DataFrame) -> pd.Series:
        """Return the list of labels of every task."""
        return self.fit(data).labels_


def _unfitted(aggregator: Any) -> Any:
    """Return an aggregator with the same settings: the attributes without underscores."""
    settings = {
        name: value
        for name, value in vars(aggregator).items()
        if not (name.startswith("_") or name.endswith("_"))
    }
    return type(aggregator)(**settings)
