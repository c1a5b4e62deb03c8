"""Annotators who agree more than two people who both look at the items would.

Take two annotators and the items they both labelled. If they work on their own, then once the truth
is known their labels are independent, and the belief about the truth without the two says how
probable every pair of labels is. If instead, with probability c, one label is a copy of the other,

    P(same label g) = (1 - c) P(one says g, other says g) + c P(one of them says g)

The best c and how much better it fits than c = 0 (z, the root of twice the log likelihood ratio)
are the evidence. An equal error is rare among people on their own, so it weighs much; being right
together weighs little. Equal labels and equal errors are also counted beside their expectation.

Copies distort the very consensus they are measured with. The pair itself therefore has no vote in
it. A clique may have become the model's truth nevertheless; but in plain votes it weighs no more
than its size. So where votes show a clique (three or more, nearly all of whose pairs stand out,
with at least half of the labels copied), the crowd is fitted again with one member of it, and pairs
of the clique are judged by that too; the stronger evidence counts. Votes alone would not do: they
are unsure, and two good annotators then seem to copy.

Last, z is scaled by the bulk of the pairs, because items that mislead everybody make all pairs
agree more, and false discoveries are held at a level (Benjamini & Hochberg). Who copied from whom
is not claimed: labels do not tell.

    X. L. Dong, L. Berti-Equille, D. Srivastava. Integrating conflicting data: the role of source
    dependence. PVLDB 2(1), 2009. doi:10.14778/1687627.1687690
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy import sparse
from scipy.sparse.csgraph import connected_components
from scipy.special import ndtr

from .._names import Names
from .._relation import Floats, Integers, frozen
from ..annotations import Annotations
from ..errors import OptionError
from ..registry import aggregators
from ..result import Aggregation, gold_codes
from ._co_annotated import PairEvidence, CoAnnotatedPairs, pair_evidence, find_co_annotated
from .leave_one_out import LeaveOneOut, leave_one_out_subset, others

__all__ = ["MIN_COMMON", "Copies", "Pair", "copies", "discoveries"]

MIN_COMMON = 20  # pairs with fewer items in common say too little
LEVEL = 0.01  # the share of flagged pairs that may be flagged by chance
MAX_LABEL_PAIRS = 3_000_000  # meetings of two labels to look at; beyond, a random part of the items

_QUARTER = 0.6744897501960817  # the upper quartile of a standard normal
_CLIQUE = 3  # two of them have no vote on themselves as it is
_DENSE = 0.9  # the share of a clique's pairs that stand out
_MUCH = 0.5  # the share of labels that members of a clique copy
_APART = 3.0  # beyond this many deviations a pair is not of the bulk


class Pair(NamedTuple):
    """Two annotators who agree too much."""

    one: str
    other: str
    common: int  # items that both labelled
    equal: int  # … with the same label
    expected: float  # … as they would on their own
    share: float  # of labels that look copied
    z: float


@dataclass(frozen=True, eq=False, repr=False)
class Copies:
    """Every pair of annotators that met often enough, and which of them agree too much.

    Attributes
    ----------
    one, other
        The two annotators of every pair, by code.
    common, equal, errors
        How many items they both labelled, with how many equal labels, and how many of these are
        not what the others say.
    expected, deviation, expected_errors
        The mean and standard deviation of `equal`, and the mean of `errors`, if both work on
        their own.
    share
        The share of labels that look copied.
    z
        How strong the evidence is, in standard deviations, against the bulk of the pairs.
    flagged
        Whether they agree too much.
    cluster
        For every annotator the group of those connected by flagged pairs, -1 for nobody.
    sampled
        The share of items that was looked at.
    """

    annotators: Names
    one: Integers  # (pair), and so is what follows
    other: Integers
    common: Integers
    equal: Integers
    errors: Integers
    expected: Floats
    deviation: Floats
    expected_errors: Floats
    share: Floats
    z: Floats
    flagged: npt.NDArray[np.bool_]
    cluster: Integers  # (annotator)
    sampled: float = 1.0

    def __post_init__(self) -> None:
        for name, value in list(vars(self).items()):
            if isinstance(value, np.ndarray):
                object.__setattr__(self, name, frozen(value))

    def __repr__(self) -> str:
        return f"<Copies: {int(self.flagged.sum())} of {len(self.one)} pairs agree too much>"

    @property
    def pairs(self) -> list[Pair]:
        """The pairs that agree too much, the clearest first."""
        order = np.flatnonzero(self.flagged)
        order = order[np.argsort(-self.z[order], kind="stable")]
        columns = (
            self.annotators[self.one[order]],
            self.annotators[self.other[order]],
            *(
                values[order]
                for values in (self.common, self.equal, self.expected, self.share, self.z)
            ),
        )
        return [Pair(*row) for row in zip(*(values.tolist() for values in columns), strict=True)]

    @cached_property
    def partner(self) -> Integers:
        """For every annotator the one they agree with most clearly too much, or -1."""
        found = np.full(len(self.annotators), -1)
        order = np.flatnonzero(self.flagged)
        order = order[np.argsort(self.z[order], kind="stable")]  # the clearest is written last
        both = np.stack([self.one[order], self.other[order]], axis=1)
        found[both.ravel()] = both[:, ::-1].ravel()
        return found

    def as_dict(self) -> dict[str, Any]:
        """Return plain dictionaries and numbers, ready for JSON."""
        groups = [
            self.annotators[self.cluster == group].tolist()
            for group in range(int(self.cluster.max(initial=-1)) + 1)
        ]
        return {
            "n_pairs": len(self.one),
            "looked": self.sampled,
            "pairs": [pair._asdict() for pair in self.pairs],
            "clusters": groups,
        }


def copies(
    annotations: Annotations,
    result: Aggregation | None = None,
    *,
    gold: Any = None,
    least: int = MIN_COMMON,
    level: float = LEVEL,
    most: int = MAX_LABEL_PAIRS,
    leave_out: LeaveOneOut | None = None,
    seed: int = 0,
    progress: Callable[[int, int], None] | None = None,
) -> Copies:
    """Return pairs and groups of annotators who agree more than they would on their own.

    Parameters
    ----------
    annotations
        The annotations.
    result
        A fitted crowd; by default one is fitted with `dawid-skene-map`.
    gold
        Known labels, `{item: label}`.
    least
        How many items two annotators must have in common.
    level
        The share of flagged pairs that may be flagged by chance.
    most
        How many meetings of two labels to look at; where there are more, a random part of the
        items is looked at.
    leave_out
        The result as `others` sees it, where somebody has it already.
    seed
        Decides which part.
    progress
        Called with the meetings that were looked at and how many there are.

    Examples
    --------
    >>> from dissensus import simulate
    >>> made = simulate("student-teacher[ratio=0.2,copy_prob=0.8]", n_items=100, n_annotators=10,
    ...                 n_classes=4, seed=3)
    >>> found = copies(made.annotations)
    >>> [(pair.one, pair.other) for pair in found.pairs]
    [('2', '8'), ('4', '9')]
    >>> made.extras["student_teacher_association"].tolist()
    [[8, 2], [9, 4]]
    """
    if least < 1:
        raise OptionError(f"least = {least}, but two annotators need an item in common")
    fitted = result or aggregators.create("dawid-skene-map").fit(annotations, gold=gold, seed=seed)
    known = gold_codes(annotations, gold)
    co_annotated = find_co_annotated(annotations, least, most, seed)
    progress = progress or (lambda _done, _total: None)
    votes = others(aggregators.create("naive-soft").fit(annotations), known)
    first, plain = pair_evidence(annotations, [leave_out or others(fitted, known), votes], co_annotated, progress)
    z, shares, looks = first.z / _bulk(first.z), first.share, 1
    alone, inside = _cliques(annotations, co_annotated, plain, level)
    if inside.any():
        method = aggregators.create(fitted.method)
        again = method.fit(annotations.keep(alone[annotations.annotator]), gold=gold, seed=seed)
        second = pair_evidence(annotations, [leave_one_out_subset(again, annotations, alone, known)], co_annotated, progress)[0]
        stronger = second.z / _bulk(second.z)
        stronger[~inside | (second.share < _MUCH)] = 0.0
        shares = np.where(stronger > z, second.share, shares)
        z, looks = np.maximum(z, stronger), 2
    flagged = discoveries(np.minimum(looks * ndtr(-z), 1.0), level) & (z > 0)
    return Copies(
        annotations.annotators,
        co_annotated.one,
        co_annotated.other,
        first.common,
        first.equal,
        first.errors,
        first.expected,
        first.deviation,
        first.expected_errors,
        shares,
        z,
        flagged,
        _clusters(annotations.n_annotators, co_annotated.one[flagged], co_annotated.other[flagged]),
        co_annotated.sampled,
    )


def discoveries(chance: Floats, level: float) -> npt.NDArray[np.bool_]:
    """Return which of many tests to believe, so that at most a share of these is wrong.

    >>> discoveries(np.array([0.9, 0.001, 0.03, 0.04]), 0.05).tolist()
    [False, True, False, False]
    """
    order = np.argsort(chance, kind="stable")
    passed = chance[order] <= level * np.arange(1, len(chance) + 1) / max(len(chance), 1)
    accepted = np.zeros(len(chance), dtype=bool)
    accepted[order[: np.flatnonzero(passed).max(initial=-1) + 1]] = True
    return accepted


def _cliques(
    annotations: Annotations, co_annotated: CoAnnotatedPairs, plain: PairEvidence, level: float
) -> tuple[npt.NDArray[np.bool_], npt.NDArray[np.bool_]]:
    """Return everybody but all members of cliques save one, and which pairs are inside of one."""
    z = plain.z / _bulk(plain.z)
    flagged = discoveries(ndtr(-z), level) & (z > 0)
    group = _clusters(annotations.n_annotators, co_annotated.one[flagged], co_annotated.other[flagged])
    size = np.bincount(group[group >= 0])  # the largest first
    alone = np.ones(annotations.n_annotators, dtype=bool)
    inside = np.zeros(len(z), dtype=bool)
    for position in np.flatnonzero(
        (size >= _CLIQUE) & (2 * size <= annotations.n_annotators)
    ).tolist():
        pairs = (group[co_annotated.one] == position) & (group[co_annotated.other] == position)
        if flagged[pairs].mean() >= _DENSE and np.median(plain.share[pairs]) >= _MUCH:
            members = np.flatnonzero(group == position)
            alone[members] = False
            alone[members[annotations.labels_per_annotator[members].argmax()]] = True
            inside |= pairs
    return alone, inside


def _bulk(z: Floats) -> float:
    """Return how much wider than a standard normal the bulk of the pairs is, at least 1.

    Pairs far outside are not of the bulk; what that is follows from the width, so both are found
    in turn.
    """
    scale, kept = 1.0, np.ones(len(z), dtype=bool)
    for _ in range(50):
        if not kept.any():
            break
        scale = max(1.0, float(np.quantile(z[kept], 0.75)) / _QUARTER)
        inside = z < _APART * scale
        if np.array_equal(inside, kept):
            break
        kept = inside
    return scale


def _clusters(n_annotators: int, one: Integers, other: Integers) -> Integers:
    """Return groups of annotators connected by pairs, the largest first; -1 for nobody."""
    graph: sparse.coo_array[Any, Any] = sparse.coo_array(
        (np.ones(len(one)), (one, other)), shape=(n_annotators, n_annotators)
    )
    _, group = connected_components(graph, directed=False)
    size = np.bincount(group, minlength=1)
    order = np.argsort(-size, kind="stable")
    position = np.empty(len(size), dtype=np.int64)
    position[order] = np.arange(len(size))
    return np.where(size[group] > 1, position[group], -1) if n_annotators else np.zeros(0, np.int64)
