"""Gold compared with the annotations: the same items, the same classes, and no contradiction."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from ..base.names import as_names, indices_of
from ..base.arrays import Array, Integers
from ..answers.annotations import Annotations
from ..answers.base import Relation
from ..pages.wording import first_quoted, many, quoted
from ..pages.sections import KNOWING, SERIOUS, Finding
from .findings import is_free_text

_AGAINST = 0.2  # share of gold items against all labels that is serious
_ENOUGH = 3  # labels on an item to compare with gold
_LABELS = 20  # labels on a gold class to compare with it


def check_gold(annotations: Relation, gold: Mapping[str, str]) -> Iterator[Finding]:
    """Find gold that cannot be used, and gold that contradicts all labels."""
    item = indices_of(as_names(gold.keys()), annotations.items)
    labelled = item >= 0
    labelled[labelled] = annotations.labels_per_item[item[labelled]] > 0
    if not labelled.all():
        names = [name for name, there in zip(gold, labelled, strict=True) if not there]
        none = not labelled.any()
        yield Finding(
            "gold-elsewhere",
            f"{'All' if none else len(names)} {'' if none else 'of '}{len(gold)} gold "
            "labels are about items without labels.",
            len(names),
            first_quoted(names),
            "check that items have the same names in both files" if none else "",
            severity=SERIOUS if none else KNOWING,
        )
    if not isinstance(annotations, Annotations) or not labelled.any() or is_free_text(annotations):
        return
    label = indices_of(as_names(gold.values()), annotations.classes)
    foreign = labelled & (label < 0)
    if foreign.any():
        values = list(gold.values())
        others = dict.fromkeys(values[position] for position in np.flatnonzero(foreign).tolist())
        yield Finding(
            "gold-classes",
            f"Gold has classes for {int(foreign.sum())} items that no label has.",
            int(foreign.sum()),
            first_quoted(others),
            "write classes the same way in both files, or declare them with --classes",
            severity=SERIOUS,
        )
    truth = np.full(annotations.n_items, -1, dtype=np.int64)
    usable = labelled & (label >= 0)
    truth[item[usable]] = label[usable]
    moved = list(_moved(annotations, truth))
    yield from moved
    if not any(one.severity == SERIOUS for one in moved):
        yield from _against(annotations, truth)


def _moved(annotations: Annotations, truth: Integers) -> Iterator[Finding]:
    """Find gold classes that are mostly labelled as another."""
    known = truth[annotations.item] >= 0
    cell = truth[annotations.item][known] * annotations.n_classes + annotations.label[known]
    pair, count = np.unique(cell, return_counts=True)  # (gold class and label)
    true, given = np.divmod(pair, annotations.n_classes)
    total = np.bincount(true, count, minlength=annotations.n_classes)
    best = np.full(annotations.n_classes, -1, dtype=np.int64)
    order = np.argsort(count, kind="stable")
    best[true[order]] = given[order]  # the last one written is the most common
    judged = total >= _LABELS
    other = np.flatnonzero(judged & (best != np.arange(annotations.n_classes)))
    if len(other) == 0:
        return
    share = {(t, g): n / total[t] for t, g, n in zip(true, given, count, strict=True)}
    everywhere = len(other) == judged.sum() > 1
    yield Finding(
        "gold-moved",
        f"{len(other)} of {int(judged.sum())} gold classes are mostly labelled as another.",
        len(other),
        tuple(
            f"gold {quoted(annotations.classes[t])} is labelled "
            f"{quoted(annotations.classes[best[t]])} ({share[t, best[t]]:.0%})"
            for t in other[:3].tolist()
        ),
        "class names or numbers seem to be shifted in one of the files"
        if everywhere
        else "a hard class, or exchanged names",
        severity=SERIOUS if everywhere else KNOWING,
    )


def _against(annotations: Annotations, truth: Integers) -> Iterator[Finding]:
    """Find gold items with several labels, none of which is the gold one."""
    right = annotations.label == truth[annotations.item]
    hits = np.bincount(annotations.item[right], minlength=annotations.n_items)
    judged: Array = (truth >= 0) & (annotations.labels_per_item >= _ENOUGH)
    alone = np.flatnonzero(judged & (hits == 0))
    if len(alone) == 0:
        return
    share = len(alone) / judged.sum()
    yield Finding(
        "gold-alone",
        f"On {many(len(alone), 'item')} ({share:.1%} of those with gold and {_ENOUGH} labels) gold "
        "contradicts all labels.",
        len(alone),
        tuple(_example(annotations, truth, one) for one in alone[:3].tolist()),
        "review these items: gold is sometimes wrong",
        severity=SERIOUS if share > _AGAINST else KNOWING,
    )


def _example(annotations: Annotations, truth: Integers, item: int) -> str:
    given = annotations.label[annotations.index[item] : annotations.index[item + 1]]
    count = np.bincount(given)
    best = int(count.argmax())
    return (
        f"{quoted(annotations.items[item])}: gold {quoted(annotations.classes[truth[item]])}, "
        f"{count[best]} of {len(given)} say {quoted(annotations.classes[best])}"
    )
