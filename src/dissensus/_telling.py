"""Which labels can be judged by the agreement of annotators, and what would tell of the others.

The agreement of two annotators estimates the product of their skills. In the graph of annotators,
with an edge where two labelled a common item, a connected part without an odd cycle (a single
annotator, two, a chain, a star) fixes no single skill: the same labels fit a careful annotator and a
careless one. Three annotators on any item are an odd cycle. `KNOWN` known items tie the annotators
of a part to the truth instead.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from ._relation import Integers, Relation

KNOWN = 10  # known items of a part of the graph that say how good its annotators are
_BY_OTHERS, _BY_A_THIRD = 100, 50  # items to be labelled by others, which would tell

Mask = npt.NDArray[np.bool_]


def items_told(annotations: Relation, known: Mask | None = None) -> Mask:
    """Return which items have labels that can be judged: (item).

    Known items are among them. Items without labels are where any other is.

    >>> from dissensus import Annotations
    >>> items_told(Annotations.from_columns("aaabbc", "xyzuvw", "010101")).tolist()
    [True, False, False]
    """
    told = _annotators_told(annotations, known)
    labelled = annotations.labels_per_item > 0
    out = np.full(annotations.n_items, bool(told.any()) or not labelled.any())
    out[labelled] = told[annotations.annotator[annotations.index[:-1][labelled]]]
    return out if known is None else out | known


def annotators_told(annotations: Relation, items: Mask) -> Mask:
    """Return which annotators labelled only items that can be judged, and at least one."""
    judged = np.bincount(
        annotations.annotator,
        ~np.repeat(items, annotations.labels_per_item),
        minlength=annotations.n_annotators,
    )
    return (judged == 0) & (annotations.labels_per_annotator > 0)


def what_would_tell(annotations: Relation, items: Mask, label: Integers) -> str:
    """Return why labels cannot be judged and what would tell; empty where all can.

    `items` are those that `items_told` returned, `label` the codes of all labels.
    """
    labelled = annotations.labels_per_item > 0
    untold = labelled & ~items
    n_untold, n_items = int(untold.sum()), int(labelled.sum())
    if not n_untold:
        return ""
    item, annotator, label = _first_labels(annotations, label)
    here = np.flatnonzero((item[1:] == item[:-1]) & untold[item[1:]])
    if len(here):
        same = float((label[here] == label[here + 1]).mean())
        n_people = len(np.unique(annotator[untold[item]]))
        who = "these two" if n_people == 2 and n_untold == n_items else "two annotators of an item"
        why = f"{who} agree on {same:.0%} of {len(here)} items"
        if n_people > 2:
            why += ", and no three can be compared with each other"
        remedy = f"A third person on {min(_BY_A_THIRD, len(here))} of them would tell."
    else:
        why = "nobody labelled what another labelled"
        n_again = min(_BY_OTHERS, n_untold)
        items_again = "1 item" if n_again == 1 else f"{n_again} items"
        people = "two more people" if n_untold == n_items else "two others"
        remedy = f"{items_again} labelled by {people} would tell."
    which = "" if n_untold == n_items else f" of {n_untold} of {n_items} items"
    return f"How many labels{which} are right cannot be told from these labels: {why}. {remedy}"


def _annotators_told(annotations: Relation, known: Mask | None) -> Mask:
    """Return which annotators are in a part with an odd cycle, or with enough known items."""
    n_annotators = annotations.n_annotators
    item, annotator, _ = _first_labels(annotations, annotations.annotator)
    told = np.zeros(n_annotators, dtype=bool)
    third = np.flatnonzero(item[2:] == item[:-2])
    for place in range(3):
        told[annotator[third + place]] = True
    if told[annotator].all():
        return told
    second = np.flatnonzero(item[1:] == item[:-1])
    one = np.concatenate([annotator[second], annotator[third]])
    other = np.concatenate([annotator[second + 1], annotator[third + 2]])
    # Every annotator on both sides: a part has an odd cycle where its two sides are connected.
    root = _parts(
        np.concatenate([one, one + n_annotators]),
        np.concatenate([other + n_annotators, other]),
        2 * n_annotators,
    )
    sides = root[:n_annotators], root[n_annotators:]
    told = sides[0] == sides[1]
    if known is not None:
        part = np.minimum(*sides)
        labelled = known & (annotations.labels_per_item > 0)
        first = annotations.annotator[annotations.index[:-1][labelled]]
        told |= np.bincount(part[first], minlength=n_annotators)[part] >= KNOWN
    return told


def _first_labels(annotations: Relation, label: Integers) -> tuple[Integers, Integers, Integers]:
    """Return item, annotator and label of every annotation but repeated ones."""
    first = np.concatenate([[True], ~annotations.repeats])[: len(annotations)]
    item = annotations.item[first].astype(np.int64)
    return item, annotations.annotator[first].astype(np.int64), label[first]


def _parts(one: Integers, other: Integers, size: int) -> Integers:
    """Return the smallest node that every node is connected with."""
    root = np.arange(size)
    while True:
        low, high = np.minimum(root[one], root[other]), np.maximum(root[one], root[other])
        apart = low < high
        if not apart.any():
            return root
        one, other = one[apart], other[apart]
        np.minimum.at(root, high[apart], low[apart])
        while (root[root] < root).any():
            root = root[root]
