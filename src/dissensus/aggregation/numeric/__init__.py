"""From many numbers to one: estimators, one file per method."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from ...registry import estimators
from .result import Estimation

if TYPE_CHECKING:
    from ...answers.numbers import Numbers
    from ._base import Estimator
    from .catd import Catd
    from .crh import Crh
    from .gaussian import Gaussian
    from .lfc_n import LfcN
    from .mean import Mean
    from .median import Median
    from .pm import Pm
    from .trimmed_mean import TrimmedMean

__all__ = [
    "Catd",
    "Crh",
    "Estimation",
    "Estimator",
    "Gaussian",
    "LfcN",
    "Mean",
    "Median",
    "Pm",
    "TrimmedMean",
    "estimate",
]


def __getattr__(name: str) -> Any:
    for position in (*estimators.table.values(), f"{__name__}._base:Estimator"):
        module, _, method = position.partition(":")
        if method == name:
            return getattr(import_module(module), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def estimate(annotations: Numbers, method: str | Estimator = "mean", **given: Any) -> Estimation:
    """Infer the value of every item.

    Parameters
    ----------
    annotations
        The numbers.
    method
        A method, or `name[setting=value,…]`. Where annotators answer too high or too low by habit
        and items have few answers, `gaussian[rate=within]` may be closer to the truth.
    **given
        What `Estimator.fit` takes: gold, seed, progress.

    Examples
    --------
    >>> from dissensus import Numbers
    >>> annotations = Numbers.from_columns("aaabbb", "xyzxyz", [1, 2, 9, 4, 5, 6])
    >>> estimate(annotations, "median").value.tolist()
    [2.0, 5.0]
    """
    chosen = estimators.create(method) if isinstance(method, str) else method
    return chosen.fit(annotations, **given)
