"""Aggregation of numbers: the values of items from the numbers of several annotators."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...answers.numbers import Numbers
from ...readers import as_annotations, as_truth
from ...registry import estimators
from ._base import Estimator

if TYPE_CHECKING:
    from ...result import Estimation
    from .._base import Progress
    from .catd import Catd as Catd
    from .crh import Crh as Crh
    from .gaussian import Gaussian as Gaussian
    from .lfc_n import LfcN as LfcN
    from .mean import Mean as Mean
    from .median import Median as Median
    from .pm import Pm as Pm
    from .trimmed_mean import TrimmedMean as TrimmedMean

__all__ = [
    "Estimator",
    "estimate",
    *(target.partition(":")[2] for target in estimators.table.values()),
]


def __getattr__(name: str) -> Any:
    return estimators.load(name)


def estimate(
    annotations: Numbers | str | Path | Any,
    method: str | Estimator = "mean",
    *,
    gold: Any = None,
    seed: int = 0,
    progress: Progress | None = None,
) -> Estimation:
    """Infer the value of every item.

    Parameters
    ----------
    annotations
        The numbers; or annotations, a path or a table whose labels are numbers.
    method
        A method, or `name[setting=value,…]`. Where annotators are biased and items have few
        answers, `gaussian[rate=within]` may be closer to the truth.
    gold
        Known values, as `{item: number}`, a pandas Series, a table or a file: they are kept, and
        methods with parameters learn from them.
    seed
        Random seed.
    progress
        Called after every iteration with its number and the objective.

    Examples
    --------
    >>> from dissensus import Numbers
    >>> annotations = Numbers.from_columns("aaabbb", "xyzxyz", [1, 2, 9, 4, 5, 6])
    >>> estimate(annotations, "median").value.tolist()
    [2.0, 5.0]
    """
    if not isinstance(annotations, Numbers):
        from ...readers import as_numbers

        annotations = as_numbers(as_annotations(annotations), annotations)
    chosen = estimators.create(method) if isinstance(method, str) else method
    return chosen.fit(annotations, gold=as_truth(gold), seed=seed, progress=progress)
