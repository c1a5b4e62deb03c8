"""Numbers as answers: those far from the others on an item, and annotators who never move."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from .._relation import Floats, Integers
from ..answers.numbers import Numbers
from ._finding import KNOWING, CheckContext, Finding, many, verb

__all__ = ["check_numbers"]

_FAR = 8.0  # robust standard deviations
_ENOUGH = 10  # answers of an annotator to call them constant


def check_numbers(context: CheckContext) -> Iterator[Finding]:
    """Find answers far from the others on the same item, and annotators who never move."""
    annotations = context.annotations
    if not isinstance(annotations, Numbers) or len(annotations) == 0:
        return
    middle = _medians(annotations)
    gap = np.abs(annotations.value - middle[context.item])
    judged = annotations.labels_per_item[context.item] >= 3
    scale = 1.4826 * float(np.median(gap[judged])) if judged.any() else 0.0
    if scale == 0 and judged.any():  # more than half say the very same
        scale = 1.2533 * float(gap[judged].mean())
    far = np.flatnonzero(judged & (gap > _FAR * scale)) if scale else np.empty(0, np.int64)
    if len(far):
        far = far[np.argsort(-gap[far], kind="stable")]
        yield Finding(
            "outliers",
            KNOWING,
            f"{many(len(far), 'answer')} ({len(far) / len(annotations):.1%}) {verb(len(far), 'are')} "
            f"more than {_FAR:g} usual distances ({scale:.3g}) from the median of their item.",
            len(far),
            tuple(_example(context, annotations, middle, row) for row in far[:3].tolist()),
            "slips of the keyboard or another scale; median, catd and gaussian bear them best",
        )
    yield from _constant(context, annotations)


def _constant(context: CheckContext, annotations: Numbers) -> Iterator[Finding]:
    low = np.full(annotations.n_annotators, np.inf)
    high = np.full(annotations.n_annotators, -np.inf)
    np.minimum.at(low, annotations.annotator, annotations.value)
    np.maximum.at(high, annotations.annotator, annotations.value)
    still = np.flatnonzero((low == high) & (annotations.labels_per_annotator >= _ENOUGH))
    if len(still) and annotations.value.min() < annotations.value.max():
        yield Finding(
            "constant-numbers",
            KNOWING,
            f"{many(len(still), 'annotator')} always {verb(len(still), 'give')} the same number.",
            len(still),
            tuple(
                f"{context.name('annotators', one)}: {annotations.labels_per_annotator[one]} × {low[one]:g}"
                for one in still[:3].tolist()
            ),
            "look at their work",
        )


def _medians(annotations: Numbers) -> Floats:
    """Return the median of every item, NaN where there is no answer."""
    item: Integers = annotations.item.astype(np.int64)
    value = annotations.value[np.lexsort((annotations.value, item))]
    start, size = annotations.index[:-1], annotations.labels_per_item
    filled = size > 0
    middle = np.full(annotations.n_items, np.nan)
    low = start[filled] + (size[filled] - 1) // 2
    middle[filled] = (value[low] + value[start[filled] + size[filled] // 2]) / 2
    return middle


def _example(context: CheckContext, annotations: Numbers, middle: Floats, row: int) -> str:
    item, annotator = context.item[row], annotations.annotator[row]
    return (
        f"{context.name('annotators', annotator)} on {context.name('items', item)}: "
        f"{annotations.value[row]:g}, median {middle[item]:g}"
    )
