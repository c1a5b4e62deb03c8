"""Annotations held out while training, to choose the epoch where no truth is known.

Whole items are held out. A network that has seen an item's input with one of its labels foresees
the other labels on it by memory; only items it has never seen tell how well it has learned.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from .batches import Examples

__all__ = ["hold_out"]


def hold_out(examples: Examples, share: float, seed: int) -> tuple[Examples, Examples]:
    """Return examples to learn from and examples held out; items keep their codes in both."""
    annotations = examples.annotations
    labelled = np.flatnonzero(annotations.labels_per_item)
    chosen = np.random.default_rng([seed, 0x5E1D]).permutation(labelled)
    chosen = chosen[: round(share * len(labelled))]
    held = np.zeros(annotations.n_items, dtype=bool)
    held[chosen] = True
    of = held[annotations.item]
    return replace(examples, annotations=annotations.keep(~of)), replace(
        examples, annotations=annotations.keep(of), augment=None
    )
