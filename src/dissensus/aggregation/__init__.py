"""From many labels to one: aggregators, one file per method."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..registry import aggregators
from ._base import Aggregator
from .dawid_skene import DawidSkene
from .majority import Majority
from .naive_soft import NaiveSoft

if TYPE_CHECKING:
    from ..annotations import Annotations
    from ..result import Aggregation

__all__ = ["Aggregator", "DawidSkene", "Majority", "NaiveSoft", "aggregate"]


def aggregate(
    said: Annotations, method: str | Aggregator = "dawid-skene", **given: Any
) -> Aggregation:
    """Infer the label of every item.

    Parameters
    ----------
    said
        The annotations.
    method
        A method, or `name[setting=value,…]`.
    **given
        What `Aggregator.fit` takes: gold, start, seed, engine, progress.

    Examples
    --------
    >>> from dissensus import Annotations
    >>> said = Annotations.from_columns("aaabbb", "xyzxyz", "001110")
    >>> aggregate(said, "majority").labels.tolist()
    ['0', '1']
    """
    chosen = aggregators.create(method) if isinstance(method, str) else method
    return chosen.fit(said, **given)
