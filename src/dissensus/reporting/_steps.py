"""Steps of a report, as large as the data let them be."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ..agreement import Pairs, pairwise
from ..annotations import Annotations
from ..comparison import Comparison, compare
from ..planning import plan
from ..result import Aggregation

if TYPE_CHECKING:
    from ..planning import Plan

__all__ = ["compared", "met", "planned"]

COMPARED = ("majority", "wawa", "dawid-skene", "one-coin", "hierarchical", "mace", "glad")
_LARGE = 100_000  # labels above which methods are compared on a sample of items
_PAIRS = 20_000_000  # pairs of labels above which annotators are not laid side by side
_PLANNED = 20_000  # items up to which more labels are planned
_MOST_ASKED = 500  # labels in a plan
_FUTURES = 5  # draws behind the budget curve


def met(annotations: Annotations) -> Pairs | None:
    """Return annotators two by two, where that is not too much."""
    size = annotations.labels_per_item.astype(np.int64)
    if (
        annotations.n_annotators < 2
        or annotations.n_classes < 2
        or int((size * (size - 1)).sum()) > _PAIRS
    ):
        return None
    found = pairwise(annotations, "cohen", min_overlap=5)
    return found if found.known.any() else None


def compared(
    annotations: Annotations, truth: Any, gold: Any, seed: int
) -> tuple[Comparison | None, tuple[str, ...]]:
    """Return methods side by side, on a sample of the items of large data."""
    if annotations.n_classes < 2 or not (annotations.labels_per_item > 1).any():
        return None, ()
    if len(annotations) <= _LARGE:
        return compare(annotations, COMPARED, truth=truth, gold=gold, seed=seed), ()
    n_items = max(1, annotations.n_items * _LARGE // len(annotations))
    which = np.random.default_rng(seed).choice(annotations.n_items, n_items, replace=False)
    some = annotations.subset(items=np.isin(np.arange(annotations.n_items), which))
    told = f"Methods were compared on {n_items} of {annotations.n_items} items, drawn at random."
    kept = [one for one in COMPARED if one != "glad"]
    return compare(some, kept, truth=truth, seed=seed), (told,)


def planned(annotations: Annotations, result: Aggregation, seed: int) -> Plan | None:
    """Return whom to ask what next: half as many labels as there are items, or 500."""
    if annotations.n_classes < 2 or annotations.n_items > _PLANNED:
        return None
    budget = min(max(20, annotations.n_items // 2), _MOST_ASKED)
    return plan(annotations, result, budget=budget, draws=_FUTURES, seed=seed)
