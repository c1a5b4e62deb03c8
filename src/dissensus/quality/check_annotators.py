"""Whether there is enough evidence, and annotators who always give one class or copy.

Without a prior, three labels on an item are the least that identify errors of single annotators;
groups of annotators without a common item cannot be compared; and a confusion matrix needs labels
in its cells.

An annotator who always gives one class is reported if others would hardly have given it every time
on the same items. Two annotators are copies if their labels on all common items are equal, and
neither the labels of others on these items, nor their own label marginals, nor their accuracy make
that probable. Only pairs with common items are compared, and of very large data a sample.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, cast

import numpy as np
from scipy import sparse
from scipy.sparse.csgraph import connected_components

from ..aggregation.comparison import cells_per_label, groups
from ..answers.annotations import Annotations
from ..answers.base import Relation
from ..answers.identifiability import identifiable_items, why_unidentifiable
from ..base.arrays import Floats, Integers
from ..metrics.statistics import repeats_previous
from ..pages.sections import KNOWING, SERIOUS, Finding
from ..pages.wording import first_quoted, many, quoted, verb
from .findings import is_free_text

_SPARSE = 0.3  # cells for every label above which confusion matrices are mostly prior
_LIGHT = 5  # labels below which an annotator cannot be judged
_APART = 0.05  # share of labels outside the largest group that is serious
_LEAST = 5  # labels of one class to judge
_COMMON = 20  # items that copies have in common
_FALSE_ALARM = 1e-4  # probability of a false alarm
_PAIRS = 2 * 10**7  # label pairs to compare
_PRIOR = 2.0  # pseudo-labels of others with the usual frequencies


def check_identifiability(annotations: Annotations, gold: Mapping[str, str]) -> Iterator[Finding]:
    """Find items whose agreement does not show whether they are labelled right."""
    has_gold = np.array([item in gold for item in annotations.items.tolist()], dtype=bool)
    identifiable = identifiable_items(annotations, has_gold)
    unidentifiable = why_unidentifiable(annotations, identifiable)
    if unidentifiable is not None:
        count = int((~identifiable & (annotations.labels_per_item > 0)).sum())
        remedy = f"{unidentifiable.remedy[:1].lower()}{unidentifiable.remedy[1:].rstrip('.')}"
        yield Finding("cannot-be-told", unidentifiable.reason, count, remedy=remedy)


def check_items(annotations: Relation) -> Iterator[Finding]:
    """Find items with too few labels."""
    size = annotations.labels_per_item
    unlabelled = np.flatnonzero(size == 0)
    if len(unlabelled):
        yield Finding(
            "unlabelled-items",
            f"{many(len(unlabelled), 'item')} {verb(len(unlabelled), 'have')} no label.",
            len(unlabelled),
            examples=first_quoted(annotations.items[unlabelled[:3]]),
            remedy="have them labelled, or leave them out",
        )
    labelled = int((size > 0).sum())
    single = np.flatnonzero(size == 1)
    if labelled and len(single) == labelled:
        yield Finding(
            "no-overlap",
            "No item has two labels: nobody can be compared with anybody.",
            labelled,
            remedy="have a part of the items labelled by three annotators",
            severity=SERIOUS,
        )
        return
    if len(single):
        share = len(single) / labelled
        yield Finding(
            "single-labels",
            f"{many(len(single), 'item')} ({share:.1%}) {verb(len(single), 'have')} one label: "
            "nothing can correct it.",
            len(single),
            examples=first_quoted(annotations.items[single[:3]]),
            remedy="`dissensus next` says where more labels help most",
            severity=SERIOUS if share > 0.5 else KNOWING,
        )


def check_third_labels(annotations: Annotations) -> Iterator[Finding]:
    """Find that no item has three labels, although some have two."""
    size = annotations.labels_per_item
    if size.max(initial=0) == 2:
        yield Finding(
            "two-labels",
            "No item has three labels: where two differ, the data do not identify the right one.",
            int((size > 0).sum()),
            remedy="a third label for a part of the items, gold, or methods with a prior",
            severity=SERIOUS,
        )


def check_crowd(annotations: Relation) -> Iterator[Finding]:
    """Find too few annotators, and annotators with too few labels or most of them."""
    load = annotations.labels_per_annotator
    active = int((load > 0).sum())
    if 0 < active < 3:
        yield Finding(
            "few-annotators",
            f"{'One annotator' if active == 1 else 'Two annotators'}: labels alone do not "
            "identify who is right.",
            active,
            examples=first_quoted(annotations.annotators[load > 0]),
            remedy="a third annotator, or gold",
            severity=SERIOUS,
        )
    elif active and 2 * load.max() > len(annotations):
        most = int(load.argmax())
        yield Finding(
            "dominant-annotator",
            f"One annotator gave {load.max() / len(annotations):.0%} of the labels.",
            int(load.max()),
            examples=(f"{quoted(annotations.annotators[most])} ({load.max()} labels)",),
            remedy="most estimates are this annotator's opinion; spread the work",
        )
    light = np.flatnonzero((load > 0) & (load < _LIGHT))
    if 2 * len(light) > active:
        yield Finding(
            "light-annotators",
            f"{len(light)} of {active} annotators gave fewer than {_LIGHT} labels "
            f"({load[light].sum() / len(annotations):.0%} of all): too few to judge each of them.",
            len(light),
            remedy="methods that pool annotators: hierarchical, dawid-skene-map, cbcc",
        )


def check_confusion(annotations: Annotations) -> Iterator[Finding]:
    """Find too few labels for the cells of confusion matrices."""
    active = int((annotations.labels_per_annotator > 0).sum())
    if active >= 3 and not is_free_text(annotations):
        cells = cells_per_label(annotations)
        if cells > _SPARSE:
            yield Finding(
                "sparse-confusion",
                f"Confusion matrices have {cells:.2g} free cells for every label: "
                "plain Dawid-Skene is unreliable.",
                round(cells * len(annotations)),
                remedy="methods with a prior or fewer parameters: dawid-skene-map, one-coin",
            )


def check_groups(annotations: Relation) -> Iterator[Finding]:
    """Find annotators who share no item, directly or through others, with the largest group."""
    load = annotations.labels_per_annotator
    if not (annotations.labels_per_item > 1).any():
        return
    group = groups(cast(Annotations, annotations))  # uses items and annotators only
    labels = np.bincount(group, load)
    size = np.bincount(group, load > 0).astype(int)
    order = np.argsort(-labels, kind="stable")
    order = order[size[order] > 0]
    if len(order) < 2:
        return
    outside = int(labels[order[1:]].sum())
    examples = []
    for number in order[:4]:
        names = ", ".join(first_quoted(annotations.annotators[(group == number) & (load > 0)], 2))
        ellipsis = ", …" if size[number] > 2 else ""
        examples.append(
            f"{many(size[number], 'annotator')}, {many(int(labels[number]), 'label')} "
            f"({names}{ellipsis})"
        )
    yield Finding(
        "groups",
        f"Annotators fall into {len(order)} groups that share no item: "
        "they cannot be compared between groups.",
        len(order),
        examples=tuple(examples),
        remedy="give some items to annotators of every group, or analyse each group separately",
        severity=SERIOUS if outside > _APART * len(annotations) else KNOWING,
    )


class Streams:
    """The labels of annotators, and how often an item got the same label."""

    def __init__(self, annotations: Annotations) -> None:
        self.annotations = annotations
        self.item = annotations.item.astype(np.int64)
        # The cell (item and class) of every annotation, and the cells' counts.
        _, self.cell, self.count = np.unique(
            self.item * annotations.n_classes + annotations.label,
            return_inverse=True,
            return_counts=True,
        )
        least = np.full(annotations.n_annotators, annotations.n_classes, dtype=np.int64)
        most = np.full(annotations.n_annotators, -1, dtype=np.int64)
        np.minimum.at(least, annotations.annotator, annotations.label)
        np.maximum.at(most, annotations.annotator, annotations.label)
        self.only = np.where(least == most, most, -1)  # (annotator): their only class, or -1


def check_streams(annotations: Annotations) -> Iterator[Finding]:
    """Find annotators who always give one class, and annotators with equal labels."""
    if len(annotations) and not is_free_text(annotations):
        streams = Streams(annotations)
        yield from _one_class(streams)
        yield from _copies(streams)


def _one_class(streams: Streams) -> Iterator[Finding]:
    """Find annotators who always give one class where others would not."""
    annotations, only = streams.annotations, streams.only
    load, cell, count = annotations.labels_per_annotator, streams.cell, streams.count
    usual = np.bincount(annotations.label, minlength=annotations.n_classes) / len(annotations)
    n_others = annotations.labels_per_item[streams.item] - 1
    probability = (count[cell] - 1 + _PRIOR * usual[annotations.label]) / (n_others + _PRIOR)
    log = np.bincount(
        annotations.annotator, np.log(probability), minlength=annotations.n_annotators
    )
    flagged = np.flatnonzero((only >= 0) & (load >= _LEAST) & (log < np.log(_FALSE_ALARM)))
    if len(flagged) == 0:
        return
    flagged = flagged[np.argsort(-load[flagged], kind="stable")]
    total = int(load[flagged].sum())
    yield Finding(
        "always-the-same",
        f"{many(len(flagged), 'annotator')} always {verb(len(flagged), 'give')} one class where "
        f"others do not ({total / len(annotations):.1%} of the labels).",
        len(flagged),
        examples=tuple(
            f"{quoted(annotations.annotators[code])}: {load[code]} × "
            f"{quoted(annotations.classes[only[code]])}"
            for code in flagged[:3]
        ),
        remedy="review their work; models of annotators (dawid-skene) account for it, votes do not",
        severity=SERIOUS if total > 0.2 * len(annotations) else KNOWING,
    )


def _copies(streams: Streams) -> Iterator[Finding]:
    """Find annotators with equal labels on all common items."""
    annotations = streams.annotations
    pairs = _same_everywhere(streams)
    if len(pairs) == 0:
        return
    graph = sparse.coo_array(
        (np.ones(len(pairs)), (pairs[:, 0], pairs[:, 1])), shape=(annotations.n_annotators,) * 2
    )
    _, group = connected_components(graph, directed=False)
    size = np.bincount(group)
    clusters = np.flatnonzero(size > 1)
    clusters = clusters[np.argsort(-size[clusters], kind="stable")]
    examples = []
    for cluster in clusters[:3]:
        common = pairs[group[pairs[:, 0]] == cluster, 2].max()
        names = ", ".join(first_quoted(annotations.annotators[group == cluster], 4))
        ellipsis = ", …" if size[cluster] > 4 else ""
        examples.append(f"{names}{ellipsis}: the same on {common} items")
    n_annotators = int(size[clusters].sum())
    yield Finding(
        "copies",
        f"{many(n_annotators, 'annotator')} gave the same labels as another wherever both labelled "
        "an item.",
        n_annotators,
        examples=tuple(examples),
        remedy="copies, or two who know more than the rest: review where they differ from the "
        "others",
        severity=SERIOUS if size.max() > 2 else KNOWING,
    )


def _same_everywhere(streams: Streams) -> Integers:
    """Return pairs of annotators with equal labels on all common items, and their number.

    Labels given once are compared, of annotators who use two classes.
    """
    annotations, count = streams.annotations, streams.count
    none = np.empty((0, 3), dtype=np.int64)
    twice = repeats_previous(annotations)
    twice[:-1] |= twice[1:]
    able = (streams.only < 0) & (annotations.labels_per_annotator >= _COMMON)
    compared = ~twice & able[annotations.annotator]
    size = np.bincount(streams.item[compared], minlength=annotations.n_items).astype(float)
    if (size**2).sum() > _PAIRS:  # a part of the items, drawn once for all
        order = np.random.default_rng(0).permutation(annotations.n_items)
        inside = np.zeros(annotations.n_items, dtype=bool)
        inside[order[np.cumsum(size[order] ** 2) <= _PAIRS]] = True
        compared &= inside[streams.item]
    if not compared.any():
        return none
    annotator, item = annotations.annotator[compared].astype(np.int64), streams.item[compared]
    cell, weight = streams.cell[compared], np.ones(len(annotator))
    shape = annotations.n_annotators, len(count)
    co_annotated: Any = sparse.csr_array(
        (weight, (annotator, item)), shape=(shape[0], annotations.n_items)
    )
    gave: Any = sparse.csr_array((weight, (annotator, cell)), shape=shape)
    common = sparse.triu(co_annotated @ co_annotated.T, k=1).tocsr()
    enough = common >= _COMMON
    if enough.nnz == 0:
        return none
    alike = sparse.triu(gave @ gave.T, k=1).tocsr().multiply(enough).tocoo()
    shared = common[alike.row, alike.col]
    all_same = np.flatnonzero(alike.data == shared)
    if len(all_same) == 0:
        return none
    row, column = alike.row[all_same], alike.col[all_same]
    rare: Any = sparse.csr_array(
        (_log_probability(streams)[compared], (annotator, cell)), shape=shape
    )
    rare = rare @ gave.T
    log = np.maximum(rare[row, column], rare[column, row])
    right = _with_most(streams)
    agreement = right[row] * right[column] + (1 - right[row]) * (1 - right[column])
    log = np.maximum(
        log, shared[all_same] * np.log(agreement)
    )  # good annotators agree without copying
    certain = all_same[log < np.log(_FALSE_ALARM / enough.nnz)]
    return np.stack([alike.row, alike.col, shared])[:, certain].T.astype(np.int64)


def _with_most(streams: Streams) -> Floats:
    """Return how often every annotator gives the majority label of the others."""
    annotations, cell, count = streams.annotations, streams.cell, streams.count
    owner = np.empty(len(count), dtype=np.int64)  # the item of every cell
    owner[cell] = streams.item
    starts = np.flatnonzero(np.r_[True, np.diff(owner) > 0])
    position = np.zeros(annotations.n_items, dtype=np.int64)  # of an item among those with labels
    position[owner[starts]] = np.arange(len(starts))
    top = np.maximum.reduceat(count, starts)[position[owner]]
    first = np.flatnonzero(count == top)
    first = first[np.r_[True, np.diff(owner[first]) > 0]]
    lesser = count.copy()
    lesser[first] = 0
    second = np.maximum.reduceat(lesser, starts)[position[owner]]
    rival = top.copy()  # the most common other class of the item
    rival[first] = second[first]
    hit = count[cell] - 1 >= rival[cell]
    hits = np.bincount(annotations.annotator[hit], minlength=annotations.n_annotators)
    return (hits + 0.5) / (annotations.labels_per_annotator + 1)


def _log_probability(streams: Streams) -> Floats:
    """Return the log probability of every label, the larger of two estimates.

    From the labels of others on the item: two annotators are left out of the count, and `_PRIOR`
    pseudo-labels agree as often as two labels do given that one of them is this class. Or from the
    label marginals of this annotator.
    """
    annotations, cell, count = streams.annotations, streams.cell, streams.count
    size = annotations.labels_per_item[streams.item]
    co_annotated = np.bincount(annotations.label, size - 1, minlength=annotations.n_classes)
    agreed = np.bincount(annotations.label, count[cell] - 1, minlength=annotations.n_classes)
    usual = (agreed + 1) / (co_annotated + 2)  # (class)
    agreeing = np.maximum(count[cell] - 2, 0)
    n_others = np.maximum(size - 2, 0)
    about_item = (agreeing + _PRIOR * usual[annotations.label]) / (n_others + _PRIOR)
    own = annotations.annotator * np.int64(annotations.n_classes) + annotations.label
    _, position, often = np.unique(own, return_inverse=True, return_counts=True)
    of_annotator = often[position] / annotations.labels_per_annotator[annotations.annotator]
    return np.log(np.maximum(about_item, of_annotator))
