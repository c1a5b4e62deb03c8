"""Warnings about annotations, whatever the method.

Three things can be checked before any fit: too few labels for confusion matrices, annotators
without co-annotated items, and items with a single label.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse
from scipy.sparse.csgraph import connected_components

from ..base.arrays import Integers
from ..answers.annotations import Annotations

_SPARSE = 0.3  # parameters per label above which confusion matrices are mostly prior
_SINGLE = 0.1  # fraction of items with one label above which there is a warning


def data_warnings(annotations: Annotations) -> list[str]:
    """Return warnings about the data, a sentence each."""
    warnings = []
    cells = cells_per_label(annotations)
    if cells > _SPARSE:
        warnings.append(
            f"There are {cells:.2g} parameters of confusion matrices for every label: "
            "plain Dawid-Skene is not to be trusted, methods with a prior are."
        )
    apart = n_groups(annotations)
    if apart > 1:
        warnings.append(
            f"Annotators fall into {apart} groups that share no item: "
            "quality cannot be compared between groups."
        )
    single = single_share(annotations)
    if single > _SINGLE:
        warnings.append(f"{single:.0%} of the items have one label: nothing can correct it.")
    return warnings


def cells_per_label(annotations: Annotations) -> float:
    """Return the number of free parameters of confusion matrices per label."""
    cells = annotations.n_annotators * annotations.n_classes * (annotations.n_classes - 1)
    return cells / len(annotations) if len(annotations) else 0.0


def single_share(annotations: Annotations) -> float:
    """Return the fraction of items with exactly one label."""
    return float((annotations.labels_per_item == 1).mean()) if annotations.n_items else 0.0


def n_groups(annotations: Annotations) -> int:
    """Return the number of connected groups of annotators with labels."""
    return len(np.unique(groups(annotations)[annotations.labels_per_annotator > 0]))


def groups(annotations: Annotations) -> Integers:
    """Return the connected group of every annotator, linked by co-annotated items.

    An annotator without labels is a group of their own.

    >>> annotations = Annotations.from_columns("aabcc", "vwwxy", "00000")
    >>> groups(annotations).tolist()
    [0, 0, 1, 1]
    """
    n_nodes = annotations.n_items + annotations.n_annotators  # items first
    ends = np.full(annotations.n_annotators, len(annotations))
    graph: sparse.csr_array[Any, Any] = sparse.csr_array(
        (
            np.ones(len(annotations)),
            annotations.annotator + np.int64(annotations.n_items),
            np.concatenate([annotations.index, ends]),
        ),
        shape=(n_nodes, n_nodes),
    )
    group = connected_components(graph, directed=False)[1][annotations.n_items :]
    return np.unique(group, return_inverse=True)[1].astype(np.int64)
