"""The validation split: annotations held out to choose the epoch where no truth is known.

Whole items are held out: a network that has seen an input with one label memorizes it, so only
unseen items measure how well it predicts annotations.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from .batches import Examples


def hold_out(examples: Examples, share: float, seed: int) -> tuple[Examples, Examples]:
    """Return examples to train on and held-out examples; items keep their codes in both."""
    annotations = examples.annotations
    labelled = np.flatnonzero(annotations.labels_per_item)
    items = np.random.default_rng([seed, 0x5E1D]).permutation(labelled)
    held = np.isin(annotations.item, items[: round(share * len(items))])
    return replace(examples, annotations=annotations.keep(~held)), replace(
        examples, annotations=annotations.keep(held), augment=None
    )
