"""Labels of people and of models on the same items, as arrays for the sections.

Numbers and ordered classes have a value each; nominal classes have none. An annotator who labelled
an item r times is one voice there: each label counts 1/r.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ..answers.annotations import NUMERIC, Annotations
from ..answers.annotators import PREFIX
from ..base.arrays import Array, Floats, Integers
from ..base.names import Names, as_names, as_values, code
from ..errors import DataError
from .clusters import n_clusters

Mask = npt.NDArray[np.bool_]


class Repeat(NamedTuple):
    """The labels of one annotator, one for each item; of those who answered again, one answer."""

    label: Integers  # (item): code, -1 where there is none
    weight: Floats  # (item): 1 / number of answers


@dataclass(frozen=True, eq=False)
class Mixed:
    """Annotations of people and models, with what is known about their items.

    Attributes
    ----------
    people, judges, code
        The annotations of every kind, on all items; annotators without a kind are people.
    cluster
        The cluster of every item; every item is one of its own by default.
    group, groups
        The group of every item, -1 for none, and the names of the groups.
    truth
        The known class of every item, or -1.
    """

    people: Annotations
    judges: Annotations
    code: Annotations
    cluster: Integers  # (item)
    group: Integers  # (item)
    groups: Names
    truth: Integers  # (item)

    @property
    def n_items(self) -> int:
        """Number of items."""
        return self.people.n_items

    @property
    def n_classes(self) -> int:
        """Number of classes."""
        return self.people.n_classes

    @property
    def classes(self) -> Names:
        """Names of the classes."""
        return self.people.classes

    @property
    def clustered(self) -> bool:
        """Whether some items belong together."""
        return n_clusters(self.cluster) < self.n_items

    @property
    def numeric(self) -> bool:
        """Whether labels are numbers."""
        return self.people.scale in NUMERIC

    @property
    def ordered(self) -> bool:
        """Whether labels are numbers or classes in order."""
        return self.people.scale != "nominal"

    @cached_property
    def value(self) -> Floats:
        """The value of every class: its number, or its rank where names are no numbers."""
        values = as_values(self.classes)
        return np.arange(self.n_classes, dtype=float) if values is None else values

    @property
    def judge_names(self) -> list[str]:
        """Names of the judges, without their prefix where that leaves them different."""
        names: list[str] = self.judges.annotators.tolist()
        short = [name.removeprefix(PREFIX) for name in names]
        people = self.people.annotators.tolist()
        distinct = len({*short, *people}) == len(names) + len(people)
        return short if distinct and all(short) else names

    @cached_property
    def judge_repeats(self) -> list[list[Repeat]]:
        """The labels of every judge."""
        return repeats_of(self.judges)

    @cached_property
    def person_votes(self) -> Floats:
        """People who chose a class, in parts where they answered again: (item, class)."""
        return weighted_votes(self.people)

    @cached_property
    def judge_votes(self) -> Floats:
        """Judges who chose a class, likewise: (item, class)."""
        return weighted_votes(self.judges)

    @cached_property
    def n_people(self) -> Integers:
        """Number of people on every item."""
        return voices(self.people)

    @cached_property
    def n_judges(self) -> Integers:
        """Number of judges on every item."""
        return voices(self.judges)

    @cached_property
    def people_agree(self) -> Floats:
        """The probability that two people on an item agree, NaN with fewer: (item)."""
        votes, n = self.person_votes, self.n_people
        with np.errstate(invalid="ignore", divide="ignore"):
            equal = np.maximum((votes**2).sum(axis=1) - n, 0) / (n * (n - 1.0))
        return np.where(n > 1, equal, np.nan)

    @cached_property
    def known(self) -> Mask:
        """Items that a person labelled, or whose class is known."""
        return (self.n_people > 0) | (self.truth >= 0)

    @cached_property
    def target_shares(self) -> Floats:
        """The known class, or else people's vote shares, NaN without either: (item, class)."""
        with np.errstate(invalid="ignore"):
            shares = self.person_votes / self.n_people[:, None]
        sure = self.truth >= 0
        shares[sure] = np.eye(self.n_classes)[self.truth[sure]]
        return shares

    @cached_property
    def target_value(self) -> Floats:
        """The known value, or else the mean of people's, NaN without either: (item)."""
        mean = mean_value(self.people, self.value)
        return np.where(self.truth >= 0, self.value[self.truth], mean)

    @cached_property
    def majority(self) -> Integers:
        """The known class, or else the one that most people chose; -1 where they are tied."""
        return np.where(self.truth >= 0, self.truth, unique_majority(self.person_votes))

    def chosen(self, judge: int | None) -> Floats:
        """Return the class that a judge, or most of the panel, chose, tied ones in parts.

        Rows are NaN without an answer: (item, class).
        """
        votes = self.judge_votes
        if judge is not None:
            votes = weighted_votes(self.judges.keep(self.judges.annotator == judge))
        most = votes.max(axis=1, initial=0)[:, None]
        top = (votes > most - 1e-9) & (most > 0)
        with np.errstate(invalid="ignore"):
            return top / np.where(most > 0, top.sum(axis=1)[:, None], np.nan)

    @cached_property
    def panel_value(self) -> Floats:
        """The mean of the judges' values, NaN without judges: (item)."""
        return mean_value(self.judges, self.value)

    def judge_value(self, judge: int | None) -> Floats:
        """Return the mean value of a judge's answers, or of the panel's, NaN without: (item)."""
        if judge is None:
            return self.panel_value
        return mean_value(self.judges.keep(self.judges.annotator == judge), self.value)

    @property
    def rate_labels(self) -> list[str | None]:
        """The classes whose shares tell all: of two, the second; `None` for a mean of values."""
        if self.ordered:
            return [None]
        labels: list[str | None] = self.classes.tolist()
        return labels[1:] if len(labels) == 2 else labels

    def compared(
        self, judge: int | None, labels: Sequence[str | None]
    ) -> Iterator[tuple[str | None, Floats, Floats]]:
        """Yield people's and a judge's values, or shares of each class: (item), NaN without."""
        names, choices = self.classes.tolist(), None
        for label in labels:
            if label is None:
                yield label, self.target_value, self.judge_value(judge)
                continue
            choices = self.chosen(judge) if choices is None else choices
            number = names.index(label)
            yield label, self.target_shares[:, number], choices[:, number]

    def restrict(self, items: Mask) -> Mixed:
        """Return only these items."""
        return Mixed(
            people=self.people.subset(items=items),
            judges=self.judges.subset(items=items),
            code=self.code.subset(items=items),
            cluster=np.unique(self.cluster[items], return_inverse=True)[1],
            group=self.group[items],
            groups=self.groups,
            truth=self.truth[items],
        )

    def per_group(self) -> Iterator[tuple[str, Mask]]:
        """Yield the name and the items of every group; without groups, all items."""
        if not len(self.groups):
            yield "", np.ones(self.n_items, dtype=bool)
        for number, name in enumerate(self.groups.tolist()):
            yield name, self.group == number


def mixed(
    annotations: Annotations,
    *,
    cluster: Mapping[str, Any] | Sequence[Any] | str | None = None,
    by: Mapping[str, Any] | Sequence[Any] | str | None = None,
    truth: Mapping[Any, Any] | None = None,
) -> Mixed:
    """Return annotations as labels of people and of models.

    Clusters and groups are a column of the annotations, `{item: name}`, or one name for each item.
    """
    model, code_ = annotations.is_kind("model"), annotations.is_kind("code")
    if not model.any():
        names = annotations.annotators.tolist()
        listed = ", ".join(names[:20]) + (f" … ({len(names)} in all)" if len(names) > 20 else "")
        raise DataError(
            "no annotator is known to be a model",
            remedy=f"name them with {{}}, there are {listed}",
            models=...,
        )
    annotations, truth_codes = _with_truth(annotations, truth)
    people, judges, checks = (
        annotations.subset(annotators=members) for members in (~model & ~code_, model, code_)
    )
    cluster_of = item_values(annotations, cluster, "cluster")
    group_of = item_values(annotations, by, "group")
    codes = np.arange(annotations.n_items)
    if cluster_of is not None:
        own = [
            f"\0{position}" if name is None else name for position, name in enumerate(cluster_of)
        ]
        codes = code(own)[0].astype(np.int64)
    group, groups = np.full(annotations.n_items, -1), as_names([])
    if group_of is not None:
        groups = code([name for name in group_of if name is not None])[1]
        table = {name: position for position, name in enumerate(groups.tolist())}
        group = np.array([-1 if name is None else table[name] for name in group_of])
    return Mixed(
        people=people,
        judges=judges,
        code=checks,
        cluster=codes,
        group=group,
        groups=groups,
        truth=truth_codes,
    )


def _with_truth(
    annotations: Annotations, truth: Mapping[Any, Any] | None
) -> tuple[Annotations, Integers]:
    """Return annotations with the classes of the truth, and the known class of every item."""
    from ..answers.gold import gold_codes

    if truth:
        names = set(annotations.classes.tolist())
        items = set(annotations.items.tolist())
        new = {str(label) for item, label in truth.items() if str(item) in items} - names
        if new:
            classes = code([*annotations.classes.tolist(), *sorted(new)])[1]
            annotations = annotations.recode(
                classes if annotations.scale != "nominal" else [*annotations.classes, *sorted(new)]
            )
    codes = gold_codes(annotations, truth)
    return annotations, np.full(annotations.n_items, -1) if codes is None else codes


def item_values(
    annotations: Annotations, source: Mapping[str, Any] | Sequence[Any] | str | None, purpose: str
) -> list[str | None] | None:
    """Return a text for every item, from a column, a mapping or a list; `None` for none."""
    from ..base.names import text

    if source is None:
        return None
    if isinstance(source, str):
        if source not in annotations.columns:
            have = ", ".join(annotations.columns) or "none"
            raise DataError(f"no column {source!r} for the {purpose}; the annotations carry {have}")
        values: Array = annotations.columns[source]
        out: list[str | None] = [None] * annotations.n_items
        for item, value in zip(annotations.item.tolist(), values.tolist(), strict=True):
            if value is not None and value == value:
                name = text(value)
                if out[item] not in (None, name):
                    raise DataError(
                        f"item {annotations.items[item]!r} has two values of {source!r}: "
                        f"{out[item]!r} and {name!r}"
                    )
                out[item] = name
        return out
    if isinstance(source, Mapping):
        table = {text(item): value for item, value in source.items()}
        source = [table.get(name) for name in annotations.items.tolist()]
    if len(source) != annotations.n_items:
        raise DataError(f"{len(source)} values of the {purpose} for {annotations.n_items} items")
    return [None if value is None or value != value else text(value) for value in source]


def repeats_of(annotations: Annotations) -> list[list[Repeat]]:
    """Return, for every annotator, as many labels of every item as there are at most."""
    item, annotator = annotations.item.astype(np.int64), annotations.annotator.astype(np.int64)
    order = np.lexsort((np.arange(len(item)), item, annotator))
    item, annotator = item[order], annotator[order]
    label = annotations.label.astype(np.int64)[order]
    key = annotator * annotations.n_items + item
    run_start = np.flatnonzero(np.diff(key, prepend=-1))
    size = np.diff(np.append(run_start, len(key)))
    number = np.arange(len(key)) - np.repeat(run_start, size)
    weight = 1 / np.repeat(size, size)
    starts = np.searchsorted(annotator, np.arange(annotations.n_annotators + 1))
    out = []
    for start, stop in zip(starts[:-1].tolist(), starts[1:].tolist(), strict=True):
        repeats = []
        for repeat in range(int(number[start:stop].max(initial=-1)) + 1):
            rows = start + np.flatnonzero(number[start:stop] == repeat)
            labels, weights = np.full(annotations.n_items, -1), np.zeros(annotations.n_items)
            labels[item[rows]], weights[item[rows]] = label[rows], weight[rows]
            repeats.append(Repeat(labels, weights))
        out.append(repeats)
    return out


def expected_share(shares: Floats, repeats: Sequence[Repeat]) -> Floats:
    """Return the mean share of the classes that a judge chose: (item)."""
    row = np.arange(len(shares))
    return sum(
        (
            repeat.weight * np.where(repeat.label >= 0, shares[row, repeat.label], 0)
            for repeat in repeats
        ),
        np.zeros(len(shares)),
    )


def is_first(annotations: Annotations) -> Mask:
    """Return which labels are the first that an annotator gave to an item."""
    return np.concatenate([[True], ~annotations.repeats])[: len(annotations)]


def row_weights(annotations: Annotations) -> Floats:
    """Return 1 / the number of labels that the same annotator gave to the same item."""
    run_start = np.flatnonzero(is_first(annotations))
    size = np.diff(np.append(run_start, len(annotations)))
    return np.repeat(1 / size, size)


def voices(annotations: Annotations) -> Integers:
    """Return the number of annotators of every item."""
    return np.bincount(annotations.item[is_first(annotations)], minlength=annotations.n_items)


def weighted_votes(annotations: Annotations) -> Floats:
    """Return annotators who chose a class, in parts: (item, class)."""
    cell = annotations.item.astype(np.int64) * annotations.n_classes + annotations.label
    size = annotations.n_items * annotations.n_classes
    votes = np.bincount(cell, row_weights(annotations), minlength=size)
    return votes.reshape(annotations.n_items, annotations.n_classes).astype(float)


def mean_value(annotations: Annotations, value: Floats) -> Floats:
    """Return the mean value of every item, annotators counting the same; NaN without labels."""
    weighted = row_weights(annotations) * value[annotations.label]
    total = np.bincount(annotations.item, weighted, minlength=annotations.n_items)
    with np.errstate(invalid="ignore"):
        return total / voices(annotations)


def unique_majority(votes: Floats) -> Integers:
    """Return the class with most votes, -1 where several have, or nobody voted."""
    top = votes.max(axis=1, initial=0)
    tied = (votes > top[:, None] - 1e-9).sum(axis=1) > 1
    return np.where(tied | (top == 0), -1, votes.argmax(axis=1) if votes.shape[1] else -1)
