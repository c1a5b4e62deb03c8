"""Numeric answers: outliers of an item, and annotators who always give the same number."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ..base.arrays import Floats
from ..answers.numbers import Numbers
from .label_sums import median_by
from ..pages.wording import many, quoted, verb
from ..pages.sections import Finding

_FAR = 8.0  # robust standard deviations
_ENOUGH = 10  # answers of an annotator to call them constant


def check_numbers(annotations: Numbers) -> Iterator[Finding]:
    """Find outliers, and annotators who always give the same number."""
    if len(annotations) == 0:
        return
    item = annotations.item
    median = median_by(item, annotations.value, annotations.n_items)
    gap = np.abs(annotations.value - median[item])
    judged = annotations.labels_per_item[item] >= 3
    scale = 1.4826 * float(np.median(gap[judged])) if judged.any() else 0.0
    if scale == 0 and judged.any():  # more than half are equal
        scale = 1.2533 * float(gap[judged].mean())
    far = np.flatnonzero(judged & (gap > _FAR * scale)) if scale else np.empty(0, np.int64)
    if len(far):
        far = far[np.argsort(-gap[far], kind="stable")]
        yield Finding(
            "outliers",
            f"{many(len(far), 'answer')} ({len(far) / len(annotations):.1%}) "
            f"{verb(len(far), 'are')} more than {_FAR:g} usual distances ({scale:.3g}) from the "
            "median of their item.",
            len(far),
            tuple(_example(annotations, median, row) for row in far[:3].tolist()),
            "typing errors or another scale; median, catd and gaussian are robust",
        )
    yield from _constant(annotations)


def _constant(annotations: Numbers) -> Iterator[Finding]:
    low = np.full(annotations.n_annotators, np.inf)
    high = np.full(annotations.n_annotators, -np.inf)
    np.minimum.at(low, annotations.annotator, annotations.value)
    np.maximum.at(high, annotations.annotator, annotations.value)
    still = np.flatnonzero((low == high) & (annotations.labels_per_annotator >= _ENOUGH))
    if len(still) and annotations.value.min() < annotations.value.max():
        yield Finding(
            "constant-numbers",
            f"{many(len(still), 'annotator')} always {verb(len(still), 'give')} the same number.",
            len(still),
            tuple(
                f"{quoted(annotations.annotators[one])}: "
                f"{annotations.labels_per_annotator[one]} × {low[one]:g}"
                for one in still[:3].tolist()
            ),
            "review their work",
        )


def _example(annotations: Numbers, median: Floats, row: int) -> str:
    item, annotator = annotations.item[row], annotations.annotator[row]
    return (
        f"{quoted(annotations.annotators[annotator])} on {quoted(annotations.items[item])}: "
        f"{annotations.value[row]:g}, median {median[item]:g}"
    )
