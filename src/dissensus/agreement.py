"""How much annotators agree, before anybody asks who is right.

All measures look at the pairs of labels that an item got, so items may have any number of labels;
those with fewer than two say nothing. The cost is that of one walk over the annotations.

    K. Krippendorff. Computing Krippendorff's alpha-reliability. 2011.
    J. R. Landis, G. G. Koch. The measurement of observer agreement for categorical data.
    Biometrics 33(1), 1977. doi:10.2307/2529310
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from scipy import sparse

from ._relation import Floats
from .annotations import Annotations

__all__ = ["in_words", "item_agreement", "krippendorff_alpha", "percent_agreement"]

# Below the number, the word; Landis & Koch (1977).
_WORDS = {
    0.0: "poor",
    0.2: "slight",
    0.4: "fair",
    0.6: "moderate",
    0.8: "substantial",
    math.inf: "almost perfect",
}


def item_agreement(said: Annotations) -> Floats:
    """Return for every item the share of its pairs of labels that agree; NaN without a pair.

    >>> item_agreement(Annotations.from_columns("aaabbc", "xyzxyx", "001111")).round(3).tolist()
    [0.333, 1.0, nan]
    """
    pairs = said.labels_per_item * (said.labels_per_item - 1)
    with np.errstate(invalid="ignore"):
        return _equal_pairs(said) / pairs


def percent_agreement(said: Annotations) -> float:
    """Return the mean share of agreeing pairs over the items with two labels or more.

    It lies between 0 and 1, and is NaN where no item has two labels.
    """
    shares = item_agreement(said)[said.labels_per_item > 1]
    return float(shares.mean()) if len(shares) else math.nan


def krippendorff_alpha(said: Annotations) -> float:
    """Return nominal alpha: 1 is full agreement, 0 what chance would give.

    It is NaN where no item has two labels, and also where everybody uses one and the same class:
    nothing varies then, and agreement beyond chance is undefined.
    """
    size = said.labels_per_item
    paired = size > 1
    n_values = int(size[paired].sum())
    common = np.bincount(said.label[np.repeat(paired, size)], minlength=said.n_classes)
    expected = float(n_values**2 - (common.astype(np.float64) ** 2).sum())
    if expected == 0:
        return math.nan
    observed = size[paired] - _equal_pairs(said)[paired] / (size[paired] - 1)
    return 1 - (n_values - 1) * float(observed.sum()) / expected


def in_words(alpha: float) -> str:
    """Return the usual word for an alpha: below 0 poor, 0.2 slight, and so on in steps of 0.2.

    >>> in_words(0.7), in_words(math.nan)
    ('substantial', 'undefined')
    """
    return next((word for limit, word in _WORDS.items() if alpha < limit), "undefined")


def _equal_pairs(said: Annotations) -> Floats:
    """Return how many ordered pairs of equal labels every item has."""
    votes: sparse.csr_array[Any, Any] = sparse.csr_array(
        (np.ones(len(said)), said.label.astype(np.int64), said.index.copy()),
        shape=(said.n_items, said.n_classes),
    )
    votes.sum_duplicates()
    return np.asarray((votes * votes - votes).sum(axis=1), dtype=np.float64)
