"""What in the annotations speaks for caution, whatever the method.

Three things can be seen before anything is fitted: confusion matrices with hardly any labels for
their cells, annotators who share no item with the others, and items with a single label.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse
from scipy.sparse.csgraph import connected_components

from ._relation import Integers
from .annotations import Annotations

__all__ = ["cells_per_label", "groups", "n_groups", "single_share", "warning_signs"]

_SPARSE = 0.3  # cells for every label above which confusion matrices are mostly prior
_SINGLE = 0.1  # share of items with one label that is worth a sentence


def warning_signs(said: Annotations) -> list[str]:
    """Return, a sentence each, what in the data speaks for caution with any method."""
    signs = []
    cells = cells_per_label(said)
    if cells > _SPARSE:
        signs.append(
            f"There are {cells:.2g} parameters of confusion matrices for every label: "
            "plain Dawid-Skene is not to be trusted, methods with a prior are."
        )
    apart = n_groups(said)
    if apart > 1:
        signs.append(
            f"Annotators fall into {apart} groups that share no item: "
            "quality cannot be compared between groups."
        )
    single = single_share(said)
    if single > _SINGLE:
        signs.append(f"{single:.0%} of the items have one label: nothing can correct it.")
    return signs


def cells_per_label(said: Annotations) -> float:
    """Return how many free cells of confusion matrices there are for every label."""
    cells = said.n_annotators * said.n_classes * (said.n_classes - 1)
    return cells / len(said) if len(said) else 0.0


def single_share(said: Annotations) -> float:
    """Return the share of items that have exactly one label."""
    return float((said.labels_per_item == 1).mean()) if said.n_items else 0.0


def n_groups(said: Annotations) -> int:
    """Return into how many groups annotators fall that share no item, directly or not."""
    return len(np.unique(groups(said)[said.labels_per_annotator > 0]))


def groups(said: Annotations) -> Integers:
    """Return the group of every annotator; those share it who are joined by items.

    Who gave no label is a group of their own.

    >>> said = Annotations.from_columns("aabcc", "vwwxy", "00000")
    >>> groups(said).tolist()
    [0, 0, 1, 1]
    """
    n_nodes = said.n_items + said.n_annotators  # items first
    ends = np.full(said.n_annotators, len(said))
    met: sparse.csr_array[Any, Any] = sparse.csr_array(
        (
            np.ones(len(said)),
            said.annotator + np.int64(said.n_items),
            np.concatenate([said.index, ends]),
        ),
        shape=(n_nodes, n_nodes),
    )
    found = connected_components(met, directed=False)[1][said.n_items :]
    return np.unique(found, return_inverse=True)[1].astype(np.int64)
