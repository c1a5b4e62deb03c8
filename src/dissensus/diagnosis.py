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


def warning_signs(annotations: Annotations) -> list[str]:
    """Return, a sentence each, what in the data speaks for caution with any method."""
    signs = []
    cells = cells_per_label(annotations)
    if cells > _SPARSE:
        signs.append(
            f"There are {cells:.2g} parameters of confusion matrices for every label: "
            "plain Dawid-Skene is not to be trusted, methods with a prior are."
        )
    apart = n_groups(annotations)
    if apart > 1:
        signs.append(
            f"Annotators fall into {apart} groups that share no item: "
            "quality cannot be compared between groups."
        )
    single = single_share(annotations)
    if single > _SINGLE:
        signs.append(f"{single:.0%} of the items have one label: nothing can correct it.")
    return signs


def cells_per_label(annotations: Annotations) -> float:
    """Return how many free cells of confusion matrices there are for every label."""
    cells = annotations.n_annotators * annotations.n_classes * (annotations.n_classes - 1)
    return cells / len(annotations) if len(annotations) else 0.0


def single_share(annotations: Annotations) -> float:
    """Return the share of items that have exactly one label."""
    return float((annotations.labels_per_item == 1).mean()) if annotations.n_items else 0.0


def n_groups(annotations: Annotations) -> int:
    """Return into how many groups annotators fall that share no item, directly or not."""
    return len(np.unique(groups(annotations)[annotations.labels_per_annotator > 0]))


def groups(annotations: Annotations) -> Integers:
    """Return the group of every annotator; those share it who are joined by items.

    Who gave no label is a group of their own.

    >>> annotations = Annotations.from_columns("aabcc", "vwwxy", "00000")
    >>> groups(annotations).tolist()
    [0, 0, 1, 1]
    """
    n_nodes = annotations.n_items + annotations.n_annotators  # items first
    ends = np.full(annotations.n_annotators, len(annotations))
    met: sparse.csr_array[Any, Any] = sparse.csr_array(
        (
            np.ones(len(annotations)),
            annotations.annotator + np.int64(annotations.n_items),
            np.concatenate([annotations.index, ends]),
        ),
        shape=(n_nodes, n_nodes),
    )
    found = connected_components(met, directed=False)[1][annotations.n_items :]
    return np.unique(found, return_inverse=True)[1].astype(np.int64)
