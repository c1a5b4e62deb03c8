"""Comparison of two rounds of annotation, or of two groups of annotators.

Before and after a training, people and models: each group is aggregated by itself, and differences
are reported with intervals. Whether labels are right is judged by both groups together, without
the annotator's own labels, so that no annotator seems to change because others did. An annotator's
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

from ..base.names import indices_of, union
from ..base.arrays import Integers
from ..aggregation import aggregate
from ..metrics.agreement_init import agree, cohen_kappa
from ..answers.annotations import Annotations
from ..errors import DataError, OptionError
from ..quality import identify
from ..base.proportions import Proportion
from ..quality.verdicts import LEFT_OUT
from ..metrics import evaluate
from ..formats import as_annotations, as_truth
from ..result import Table
from .group_comparison import UNCLEAR, Change, Group, GroupComparison, Z, share_of

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
        part.check_classes("a comparison of two groups")
    classes = union(both[0].classes, both[1].classes)
    scale = both[0].scale if both[0].scale == both[1].scale else "nominal"
    both = [part.recode(classes).with_scale(scale) for part in both]
    known = None if truth is None else as_truth(truth)
    joint = _joint(*both)
    fitted = aggregate(joint, method, seed=seed)
    judged = identify(joint, fitted, copying=False, seed=seed)
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
                int(np.isin(judged.verdict[own], LEFT_OUT).sum()),
                agree(part, seed=seed),
                None if known is None else evaluate(result, known, seed=seed),
            )
        )
        progress(position + 2, _STEPS)
    one, two = groups
    there = indices_of(one.annotations.items, two.annotations.items)
    common = np.flatnonzero((there >= 0) & (one.result.label >= 0))
    common = common[two.result.label[there[common]] >= 0]
    labels = np.stack([one.result.label[common], two.result.label[there[common]]], axis=1)
    difference = two.alpha.value - one.alpha.value
    reach = Z * math.hypot(one.alpha.error, two.alpha.error)
    return GroupComparison(
        one,
        two,
        len(common),
        share_of(labels[:, 0] == labels[:, 1]),
        cohen_kappa(Annotations.from_matrix(labels), min_overlap=1),
        Change(difference, difference - reach, difference + reach),
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
        scale=one.scale,
    )


def _changed_annotators(one: Group, two: Group) -> Table:
    """Return the annotators in both groups, the largest losses first."""
    there = indices_of(one.annotations.annotators, two.annotations.annotators)
    here = np.flatnonzero(there >= 0)
    groups = [(one.accuracy, here), (two.accuracy, there[here])]
    count = np.stack([score.among[which] for score, which in groups])  # (group, annotator)
    right = np.stack([score.value[which] for score, which in groups])
    kept = np.flatnonzero((count > 0).all(axis=0))
    # Agresti and Caffo: one right and one wrong label more in each group.
    share = (right * count + 1)[:, kept] / (count + 2)[:, kept]
    reach = Z * np.sqrt((share * (1 - share) / (count + 2)[:, kept]).sum(axis=0))
    change = share[1] - share[0]
    wider = float(ndtri(1 - 0.025 / max(len(kept), 1))) / Z * reach
    verdict = np.select([change - wider > 0, change + wider < 0], ["better", "worse"], UNCLEAR)
    order = np.argsort(change, kind="stable")
    columns = {
        "annotator": one.annotations.annotators[here[kept]],
        "first_labels": count[0, kept].astype(int),
        "second_labels": count[1, kept].astype(int),
        "first_right": right[0, kept],
        "second_right": right[1, kept],
        "change": change,
        "low": change - reach,
        "high": change + reach,
        "verdict": verdict,
    }
    return {name: column[order] for name, column in columns.items()}


def _changed_items(one: Group, two: Group, here: Integers, there: Integers) -> Table:
    """Return the items with different labels, those of the highest confidence first."""
    changed = one.result.label[here] != two.result.label[there]
    here, there = here[changed], there[changed]
    confidence = one.result.confidence[here], two.result.confidence[there]
    order = np.argsort(-np.minimum(*confidence), kind="stable")
    columns = {
        "item": one.annotations.items[here],
        "first_label": one.result.labels[here],
        "second_label": two.result.labels[there],
        "first_confidence": confidence[0],
        "second_confidence": confidence[1],
    }
    return {name: column[order] for name, column in columns.items()}
