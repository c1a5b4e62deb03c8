"""Comparison of two rounds of annotation, or of two groups of annotators.

Before and after a training, people and models: each group is aggregated by itself, and differences
are reported with intervals. Whether labels are right is judged by both groups together, without
the annotator's own labels, so that nobody seems to change because others did. An annotator's
change is the difference of two shares of right labels (Agresti and Caffo); that of alpha takes the
groups for independent, which errs towards caution where they share items. A change of an annotator
is called clear if it holds although so many annotators are compared (Bonferroni).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.special import ndtri

from .._relation import Floats, Integers, indices_of, union
from ..aggregation import aggregate
from ..agreement import agree
from ..annotations import Annotations
from ..errors import DataError, OptionError
from ..identification import identify
from ..identification.proportions import Proportion
from ..metrics import evaluate
from ..readers import as_annotations, as_truth
from .group_comparison import (
    Change,
    ChangedAnnotator,
    ChangedItem,
    Group,
    GroupComparison,
    Z,
    share_of,
)

__all__ = ["report_groups", "split_by"]

_STEPS = 3


def report_groups(
    first: Any,
    second: Any,
    method: str = "auto",
    *,
    names: tuple[str, str] = ("first", "second"),
    truth: Any = None,
    seed: int = 0,
    progress: Callable[[int, int], None] | None = None,
) -> GroupComparison:
    """Compare two rounds of annotation, or two groups of annotators.

    Parameters
    ----------
    first, second
        Annotations, or what `read` takes.
    method
        How to aggregate each of the two.
    names
        Their names.
    truth
        Known labels to score both with, `{item: label}` or a table.
    seed
        Random seed.
    progress
        Called with the number of completed steps and their total.

    Examples
    --------
    >>> from dissensus import demo
    >>> annotations, _ = demo()
    >>> groups = report_groups(annotations, annotations, "majority", names=("before", "after"))
    >>> groups.sentences[-2:]
    ['Of 500 items in both, 0 (0%) got another label.',
     'Of 40 annotators in both, nobody got clearly better or worse.']
    """
    progress = progress or (lambda _done, _total: None)
    if names[0] == names[1]:
        raise OptionError(f"both groups are called {names[0]}; give them different names")
    both = [as_annotations(first), as_annotations(second)]
    for name, part in zip(names, both, strict=True):
        if len(part) == 0:
            raise DataError(f"there are no labels in {name}")
    classes = union(both[0].classes, both[1].classes)
    both = [part.recode(classes) for part in both]
    known = None if truth is None else as_truth(truth)
    joint = _joint(*both)
    fitted = aggregate(joint, method, seed=seed)
    judged = identify(joint, fitted, models=False, copying=False, seed=seed)
    progress(1, _STEPS)
    groups = []
    for position, (name, part) in enumerate(zip(names, both, strict=True)):
        start = position * both[0].n_annotators
        own = slice(start, start + part.n_annotators)
        result = aggregate(part, method, seed=seed)
        groups.append(
            Group(
                name,
                part,
                result,
                Proportion(*(column[own] for column in judged.accuracy)),
                int((judged.verdict[own] == "spammer").sum()),
                agree(part, seed=seed),
                None if known is None else evaluate(result, known, seed=seed),
            )
        )
        progress(position + 2, _STEPS)
    one, two = groups
    there = indices_of(one.annotations.items, two.annotations.items)
    common = np.flatnonzero((there >= 0) & (one.result.label >= 0))
    common = common[two.result.label[there[common]] >= 0]
    labels = one.result.label[common], two.result.label[there[common]]
    difference, error = (
        two.alpha.value - one.alpha.value,
        math.hypot(one.alpha.error, two.alpha.error),
    )
    return GroupComparison(
        one,
        two,
        len(common),
        share_of(labels[0] == labels[1]),
        _kappa(*labels, len(classes)),
        _change(difference, Z * error),
        _changed_annotators(one, two),
        _changed_items(one, two, common, there[common]),
        seed,
    )


def split_by(annotations: Annotations, column: str) -> dict[str, Annotations]:
    """Return the annotations of both values of a column, by value.

    >>> source = ["person", "model"] * 2
    >>> annotations = Annotations.from_columns("aabb", "xyxy", "0110", source=source)
    >>> list(split_by(annotations, "source"))
    ['model', 'person']
    """
    if column not in annotations.columns:
        present = ", ".join(annotations.columns) or "none"
        raise OptionError(f"no column {column!r} besides the labels; there are: {present}")
    values = np.asarray([str(value) for value in annotations.columns[column].tolist()])
    distinct = sorted(set(values.tolist()))
    if len(distinct) != 2:
        some = ", ".join(distinct[:5])
        raise OptionError(f"{column} has {len(distinct)} values ({some}), but two are compared")
    groups = {}
    for value in distinct:
        part = annotations.keep(values == value)
        groups[value] = part.subset(
            items=part.labels_per_item > 0, annotators=part.labels_per_annotator > 0
        )
    return groups


def _joint(one: Annotations, two: Annotations) -> Annotations:
    """Return both together; an annotator of both counts as two."""
    items = union(one.items, two.items)
    item = [indices_of(part.items, items)[part.item] for part in (one, two)]
    annotator = one.annotator.astype(np.int64), two.annotator.astype(np.int64) + one.n_annotators
    return Annotations.from_codes(
        np.concatenate(item),
        np.concatenate(annotator),
        np.concatenate([one.label, two.label]),
        items=items,
        annotators=one.n_annotators + two.n_annotators,
        classes=one.classes,
    )


def _kappa(one: Integers, other: Integers, n_classes: int) -> float:
    """Return Cohen's kappa of two columns of labels."""
    if not len(one):
        return math.nan
    shares = [np.bincount(each, minlength=n_classes) / len(one) for each in (one, other)]
    expected = float(shares[0] @ shares[1])
    observed = float((one == other).mean())
    return math.nan if expected >= 1 else (observed - expected) / (1 - expected)


def _change(value: float, reach: float) -> Change:
    return Change(float(value), float(value - reach), float(value + reach))


def _changed_annotators(one: Group, two: Group) -> tuple[ChangedAnnotator, ...]:
    there = indices_of(one.annotations.annotators, two.annotations.annotators)
    here = np.flatnonzero(there >= 0)
    index = np.stack([here, there[here]])  # (group, annotator)
    scores = list(zip((one.accuracy, two.accuracy), index, strict=True))
    count = np.stack([score.among[which] for score, which in scores])
    right = np.stack([score.value[which] for score, which in scores])
    kept = (count > 0).all(axis=0)
    index, count, right = index[:, kept], count[:, kept], right[:, kept]
    change, reach = _agresti_caffo(right * count, count)
    wider = float(ndtri(1 - 0.025 / max(len(change), 1))) / Z
    return tuple(
        ChangedAnnotator(
            one.annotations.annotators[index[0, k]],
            (int(count[0, k]), int(count[1, k])),
            (float(right[0, k]), float(right[1, k])),
            _change(change[k], reach[k]),
            _change(change[k], wider * reach[k]).word,
        )
        for k in np.argsort(change, kind="stable").tolist()
    )


def _agresti_caffo(right: Floats, count: Floats) -> tuple[Floats, Floats]:
    """Return how much larger second shares are than first ones, and the reach: from (2, …)."""
    share = (right + 1) / (count + 2)
    reach = Z * np.sqrt((share * (1 - share) / (count + 2)).sum(axis=0))
    return share[1] - share[0], reach


def _changed_items(
    one: Group, two: Group, here: Integers, there: Integers
) -> tuple[ChangedItem, ...]:
    labels = one.result.label[here], two.result.label[there]
    confidence = one.result.confidence[here], two.result.confidence[there]
    changed = np.flatnonzero(labels[0] != labels[1])
    order = changed[np.argsort(-np.minimum(*confidence)[changed], kind="stable")]
    names, classes = one.annotations.items, one.annotations.classes
    return tuple(
        ChangedItem(
            names[here[k]],
            (classes[labels[0][k]], classes[labels[1][k]]),
            (float(confidence[0][k]), float(confidence[1][k])),
        )
        for k in order.tolist()
    )
