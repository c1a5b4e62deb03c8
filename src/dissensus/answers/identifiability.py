"""Which labels the agreement of annotators can judge, and what would show it of the others.

The agreement of two annotators estimates the product of their skills. In the graph of annotators,
with an edge where two labelled a common item, a connected part without an odd cycle (a single
annotator, two, a chain, a star) fixes no single skill: the same labels fit a careful annotator and
a careless one. Three annotators on any item are an odd cycle. `KNOWN` known items tie the
annotators of a part to the truth instead.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from ..base.arrays import Codes, Integers
from .base import Relation

if TYPE_CHECKING:
    from .annotations import Annotations

KNOWN = 10  # known items of a part of the graph that say how good its annotators are
_PAIR = 2  # annotators
_BY_OTHERS, _BY_A_THIRD = 100, 50  # items to be labelled by others, which would show it

Mask = npt.NDArray[np.bool_]


class Rows(Protocol):
    """Annotations in the order of items, or a part of them."""

    @property
    def index(self) -> Integers:
        """The annotations on item i are at index[i]:index[i + 1]: (item + 1)."""
        ...

    @property
    def annotator(self) -> Codes:
        """Who gave every annotation: (annotation)."""
        ...

    @property
    def n_annotators(self) -> int:
        """Number of annotators."""
        ...


class Unidentifiable(NamedTuple):
    """Why it cannot be told how many labels are right, and what would show it."""

    reason: str
    remedy: str


def identifiable_items(
    rows: Rows, known: Mask | None = None, identifiable: Mask | None = None
) -> Mask:
    """Return which items have labels that can be judged: (item).

    Known items are among them. Items without labels are where any other is. `identifiable` are the
    annotators, if they are known from more than these rows.

    >>> from dissensus import Annotations
    >>> identifiable_items(Annotations.from_columns("aaabbc", "xyzuvw", "010101")).tolist()
    [True, False, False]
    """
    labelled = np.diff(rows.index) > 0
    if identifiable is None:
        n_known = None if known is None else known_by_first(rows, known)
        identifiable = identifiable_by_links(links(rows), rows.n_annotators, n_known)
        identifiable |= not labelled.any()  # there is nothing to say
    out = np.full(len(labelled), bool(identifiable.any()))
    out[labelled] = identifiable[rows.annotator[rows.index[:-1][labelled]]]
    return out if known is None else out | known


def identifiable_annotators(annotations: Relation, items: Mask) -> Mask:
    """Return which annotators labelled only items that can be judged, and at least one."""
    unidentifiable = ~np.repeat(items, annotations.labels_per_item)
    judged = np.bincount(annotations.annotator, unidentifiable, annotations.n_annotators) == 0
    return judged & (annotations.labels_per_annotator > 0)


def why_unidentifiable(annotations: Annotations, items: Mask) -> Unidentifiable | None:
    """Return why labels cannot be judged and what would show it; `None` where all can.

    `items` are those that can, as `identifiable_items` has them.
    """
    labelled = annotations.labels_per_item > 0
    unidentifiable = labelled & ~items
    n_unidentifiable, n_items = int(unidentifiable.sum()), int(labelled.sum())
    if not n_unidentifiable:
        return None
    item, annotator, is_new = _first_of_each(annotations)
    label = annotations.label[is_new]
    pair = np.flatnonzero((item[1:] == item[:-1]) & unidentifiable[item[1:]])
    people = "two more people" if n_unidentifiable == n_items else "two others"
    if len(pair):
        agreement = float((label[pair] == label[pair + 1]).mean())
        in_pair = np.unique(annotator[unidentifiable[item]])
        one_pair = n_unidentifiable == n_items and len(in_pair) <= _PAIR
        subject = "these two" if one_pair else "two annotators of an item"
        reason = f"{subject} agree on {agreement:.0%} of {_items(len(pair))}"
        if not one_pair:
            reason += ", and no three can be compared with each other"
        share = "" if len(pair) <= _BY_A_THIRD else f"{_BY_A_THIRD} of "
        objects = "this item" if len(pair) == 1 else f"these {len(pair)} items"
        remedy = f"Have {share}{objects} labelled by a third person"
    else:
        reason = "nobody labelled what another labelled"
        remedy = f"Have {_items(min(_BY_OTHERS, n_unidentifiable))} labelled by {people}"
    extent = "" if n_unidentifiable == n_items else f" of {n_unidentifiable} of {_items(n_items)}"
    return Unidentifiable(
        f"How many labels{extent} are right cannot be told from these labels: {reason}.",
        f"{remedy}, which would show how many labels are right.",
    )


def _items(count: int) -> str:
    return "1 item" if count == 1 else f"{count} items"


def links(rows: Rows) -> Integers:
    """Return which annotators are connected, with both sides of each: (2 annotators).

    In the double cover of the graph, an edge connects each side of one with the other side of the
    other. So both sides of an annotator are connected where the part has an odd cycle. Every
    node has the smallest node that it is connected with. Annotators with odd cycles can all be
    judged, so those who are among three on some item count as one.
    """
    n_annotators = rows.n_annotators
    item, annotator, _ = _first_of_each(rows)
    second, third = (np.flatnonzero(item[step:] == item[:-step]) for step in (1, 2))
    in_three = np.zeros(n_annotators, dtype=bool)
    for place in range(3):
        in_three[annotator[third + place]] = True
    three = np.flatnonzero(in_three)
    tail, head = annotator[second], annotator[second + 1]
    crossing = ~(in_three[tail] & in_three[head])
    tail, head = tail[crossing], head[crossing]
    judged = np.concatenate([three, three + n_annotators])
    return _connected(
        np.concatenate([tail, tail + n_annotators, judged]),
        np.concatenate(
            [head + n_annotators, head, np.full_like(judged, judged[0] if len(judged) else 0)]
        ),
        2 * n_annotators,
    )


def joined(parts: Iterable[Integers]) -> Integers:
    """Return the links of several parts of the items together."""
    total: Integers | None = None
    for root in parts:
        nodes = np.arange(len(root))
        if total is None:
            total = root
        else:
            total = _connected(np.tile(nodes, 2), np.concatenate([total, root]), len(root))
    return np.zeros(0, dtype=np.int64) if total is None else total


def identifiable_by_links(root: Integers, n_annotators: int, known: Integers | None = None) -> Mask:
    """Return which annotators are in a part with an odd cycle, or with enough known items."""
    sides = root[:n_annotators], root[n_annotators:]
    identifiable = sides[0] == sides[1]
    if known is not None:
        part = np.minimum(*sides)
        identifiable |= np.bincount(part, known, n_annotators)[part] >= KNOWN
    return identifiable


def known_by_first(rows: Rows, known: Mask) -> Integers:
    """Return how many known items there are by the first of their annotators: (annotator)."""
    labelled = known & (np.diff(rows.index) > 0)
    return np.bincount(rows.annotator[rows.index[:-1][labelled]], minlength=rows.n_annotators)


def _first_of_each(rows: Rows) -> tuple[Integers, Integers, Mask]:
    """Return item and annotator of every annotation but repeated ones, and which these are."""
    item = np.repeat(np.arange(len(rows.index) - 1), np.diff(rows.index))
    is_new = np.ones(len(item), dtype=bool)
    is_new[1:] = (item[1:] != item[:-1]) | (rows.annotator[1:] != rows.annotator[:-1])
    return item[is_new], rows.annotator[is_new].astype(np.int64), is_new


def _connected(tail: Integers, head: Integers, size: int) -> Integers:
    """Return the smallest node that every node is connected with."""
    root = np.arange(size)
    while True:
        low, high = np.minimum(root[tail], root[head]), np.maximum(root[tail], root[head])
        differs = low < high
        if not differs.any():
            return root
        tail, head = tail[differs], head[differs]
        np.minimum.at(root, high[differs], low[differs])
        while (root[root] < root).any():
            root = root[root]
