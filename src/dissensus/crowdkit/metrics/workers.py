"""How far workers agree with the aggregated labels."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..aggregation.base import TableError
from ..aggregation.classification import MajorityVote
from ..aggregation.utils import get_accuracy

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["accuracy_on_aggregates"]

_MAJORITY = MajorityVote()


def accuracy_on_aggregates(
    answers: pd.DataFrame,
    aggregator: Any = _MAJORITY,
    aggregates: pd.Series | None = None,
    by: str | None = None,
) -> float | pd.Series:
    """Return the share of answers that equal the aggregated label, in all or by a column."""
    if aggregates is None:
        if aggregator is None:
            raise TableError("no labels to compare with; give aggregates or an aggregator")
        aggregates = aggregator.fit_predict(answers)
    return get_accuracy(answers, aggregates, by=by)
