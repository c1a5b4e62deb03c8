"""Whether there is enough evidence: labels per item, per annotator, and per confusion matrix.

Without a prior, three labels on an item are the least that identify errors of single annotators;
groups of annotators without a common item cannot be compared; and a confusion matrix needs labels
in its cells.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import cast

import numpy as np

from ..answers.identifiability import identifiable_items, why_unidentifiable
from ..answers.annotations import Annotations
from ..answers.base import Relation
from ..aggregation.diagnosis import cells_per_label, groups
from ..pages.wording import first_quoted, many, quoted, verb
from ..pages.sections import KNOWING, SERIOUS, Finding
from .findings import is_free_text

_SPARSE = 0.3  # cells for every label above which confusion matrices are mostly prior
_LIGHT = 5  # labels below which an annotator cannot be judged
_APART = 0.05  # share of labels outside the largest group that is serious


def check_identifiability(annotations: Annotations, gold: Mapping[str, str]) -> Iterator[Finding]:
    """Find items whose agreement does not show whether they are labelled right."""
    known = np.array([item in gold for item in annotations.items.tolist()], dtype=bool)
    identifiable = identifiable_items(annotations, known)
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
            first_quoted(annotations.items[unlabelled[:3]]),
            "have them labelled, or leave them out",
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
            first_quoted(annotations.items[single[:3]]),
            "`dissensus next` says where more labels help most",
            severity=SERIOUS if share > 0.5 else KNOWING,
        )
    if labelled and size.max() == 2 and isinstance(annotations, Annotations):
        yield Finding(
            "two-labels",
            "No item has three labels: where two differ, the data do not identify the right one.",
            labelled,
            remedy="a third label for a part of the items, gold, or methods with a prior",
            severity=SERIOUS,
        )


def check_crowd(annotations: Relation) -> Iterator[Finding]:
    """Find too few annotators, annotators with too few labels, and matrices with too few."""
    load = annotations.labels_per_annotator
    active = int((load > 0).sum())
    if 0 < active < 3:
        yield Finding(
            "few-annotators",
            f"{'One annotator' if active == 1 else 'Two annotators'}: labels alone do not "
            "identify who is right.",
            active,
            first_quoted(annotations.annotators[load > 0]),
            "a third annotator, or gold",
            severity=SERIOUS,
        )
    elif active and 2 * load.max() > len(annotations):
        most = int(load.argmax())
        yield Finding(
            "dominant-annotator",
            f"One annotator gave {load.max() / len(annotations):.0%} of the labels.",
            int(load.max()),
            (f"{quoted(annotations.annotators[most])} ({load.max()} labels)",),
            "most estimates are this annotator's opinion; spread the work",
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
    if isinstance(annotations, Annotations) and active >= 3 and not is_free_text(annotations):
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
    for one in order[:4]:
        names = ", ".join(first_quoted(annotations.annotators[(group == one) & (load > 0)], 2))
        more = ", …" if size[one] > 2 else ""
        examples.append(
            f"{many(size[one], 'annotator')}, {many(int(labels[one]), 'label')} ({names}{more})"
        )
    yield Finding(
        "groups",
        f"Annotators fall into {len(order)} groups that share no item: "
        "they cannot be compared between groups.",
        len(order),
        tuple(examples),
        "give some items to annotators of every group, or analyse each group separately",
        severity=SERIOUS if outside > _APART * len(annotations) else KNOWING,
    )
