"""Copying: annotators who agree more than two independent annotators would.

Given the truth, the labels of independent annotators are independent, and the posterior without
the two gives the probability of every pair of labels. If instead, with probability c, one label is
a copy of the other,

    P(same label g) = (1 - c) P(one gives g, other gives g) + c P(one of them gives g)

The evidence, from the items that both labelled, is the best c and how much better it fits than
c = 0: z, the root of twice the log likelihood ratio. Equal errors are rare among independent
annotators, so they weigh much; being right together weighs little. The cost grows with the label
pairs of items. Labels that an annotator gave to an item more than once are left out.

Copies distort the consensus they are measured with, so the pair itself has no vote in it. A clique
may still dominate a model; in plain votes it weighs no more than its size. So where votes show a
clique (three or more, nearly all of whose pairs stand out, with at least half of the labels
copied), the model is fitted again with one member of it, and the stronger evidence counts. Votes
alone would not do: they are uncertain, and two good annotators then seem to copy.

Finally, z is scaled by the bulk of the pairs, because misleading items make all pairs agree more,
and the false discovery rate is controlled (Benjamini & Hochberg). The direction of copying is not
identified by labels.

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

from ..aggregation.aggregation import ClassAggregation
from ..aggregation.dawid_skene import pseudo_counts
from ..answers.annotations import Annotations
from ..answers.gold import gold_codes
from ..base.arrays import Array, Floats, FrozenArrays, Integers
from ..base.names import Names
from ..base.probability import normalize
from ..errors import OptionError
from ..metrics.pairs import PairIndex, co_annotating, label_pairs
from ..metrics.statistics import repeats_previous
from ..registry import aggregators
from .leave_one_out import LeaveOneOut, leave_one_out, leave_subset_out

MIN_COMMON = 20  # common items of a pair
FALSE_DISCOVERY_RATE = 0.01
MAX_LABEL_PAIRS = 3_000_000  # label pairs to compare; beyond, items are sampled

_QUARTER = 0.6744897501960817  # the upper quartile of a standard normal
_CLIQUE = 3  # of two, neither has a vote anyway
_DENSE = 0.9  # the share of a clique's pairs that stand out
_MUCH = 0.5  # the share of labels that members of a clique copy
_APART = 3.0  # beyond this many deviations a pair is not of the bulk

# Shares of copied labels that are tried.
_SHARES = np.array([0.01, 0.02, 0.04, 0.07, *np.arange(0.1, 0.95, 0.1), 0.15, 0.97])
_STRENGTH, _ACCURACY = 1.0, 0.7  # of the prior on confusion matrices
_CELLS = 2**18  # numbers in memory at a time


class Pair(NamedTuple):
    """Two annotators who agree too much."""

    one: str
    other: str
    common: int  # items that both labelled
    equal: int  # … with the same label
    expected: float  # … if independent
    share: float  # estimated share of copied labels
    z: float


@dataclass(frozen=True, eq=False, repr=False)
class Copies(FrozenArrays):
    """Pairs of annotators with enough common items, and which of them agree too much.

    Attributes
    ----------
    one, other
        The two annotators of every pair, by code.
    common, equal, errors
        Common items, those with equal labels, and those of them that contradict the consensus.
    expected, deviation, expected_errors
        The mean and standard deviation of `equal`, and the mean of `errors`, if independent.
    share
        The estimated share of copied labels.
    z
        The evidence in standard deviations, relative to the bulk of the pairs.
    flagged
        Whether they agree too much.
    cluster
        For every annotator the group connected by flagged pairs, or -1.
    sampled
        The share of items that was compared.
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

    def __repr__(self) -> str:
        return f"<Copies: {int(self.flagged.sum())} of {len(self.one)} pairs agree too much>"

    @property
    def pairs(self) -> list[Pair]:
        """The pairs that agree too much, the clearest first."""
        order = np.flatnonzero(self.flagged)
        order = order[np.argsort(-self.z[order], kind="stable")]
        names = (self.annotators[self.one], self.annotators[self.other])
        columns = (*names, self.common, self.equal, self.expected, self.share, self.z)
        rows = zip(*(values[order].tolist() for values in columns), strict=True)
        return [Pair(*row) for row in rows]

    @cached_property
    def partner(self) -> Integers:
        """For every annotator the one they agree with most clearly too much, or -1."""
        partner = np.full(len(self.annotators), -1)
        order = np.flatnonzero(self.flagged)
        order = order[np.argsort(self.z[order], kind="stable")]  # the clearest is written last
        members = np.stack([self.one[order], self.other[order]], axis=1)
        partner[members.ravel()] = members[:, ::-1].ravel()
        return partner

    def as_dict(self) -> dict[str, Any]:
        """Return plain dictionaries and numbers, ready for JSON."""
        groups = [
            self.annotators[self.cluster == group].tolist()
            for group in range(int(self.cluster.max(initial=-1)) + 1)
        ]
        return {
            "n_pairs": len(self.one),
            "sampled": self.sampled,
            "pairs": [pair._asdict() for pair in self.pairs],
            "clusters": groups,
        }


def copies(
    annotations: Annotations,
    result: ClassAggregation | None = None,
    *,
    gold: Any = None,
    min_common: int = MIN_COMMON,
    false_discovery_rate: float = FALSE_DISCOVERY_RATE,
    max_label_pairs: int = MAX_LABEL_PAIRS,
    fitted: LeaveOneOut | None = None,
    seed: int = 0,
    progress: Callable[[int, int], None] | None = None,
) -> Copies:
    """Return pairs and groups of annotators who agree more than independent annotators would.

    Parameters
    ----------
    annotations
        The annotations.
    result
        A fitted consensus; by default that of `dawid-skene-map`.
    gold
        Known labels, `{item: label}`.
    min_common
        Common items that a pair of annotators needs.
    false_discovery_rate
        The accepted share of false positives among flagged pairs.
    max_label_pairs
        Pairs of labels to compare; where there are more, items are sampled.
    fitted
        The leave-one-out posteriors of the result, if already computed.
    seed
        Random seed.
    progress
        Called with the label pairs done and their number.

    Examples
    --------
    >>> from dissensus import simulate
    >>> crowd = simulate("student-teacher[ratio=0.2,copy_prob=0.8]", n_items=100, n_annotators=10,
    ...                  n_classes=4, seed=3)
    >>> [(pair.one, pair.other) for pair in copies(crowd.annotations).pairs]
    [('2', '8'), ('4', '9')]
    >>> crowd.extras["student_teacher_association"].tolist()
    [[8, 2], [9, 4]]
    """
    if min_common < 1:
        raise OptionError(f"min_common = {min_common}, but it must be at least 1")
    progress = progress or (lambda _step, _total: None)
    result = result or aggregators.create("dawid-skene-map").fit(annotations, gold=gold, seed=seed)
    truth = gold_codes(annotations, gold)
    pairs = find_co_annotated(annotations, min_common, max_label_pairs, seed)
    votes = leave_one_out(aggregators.create("naive-soft").fit(annotations), truth)
    consensus = [fitted or leave_one_out(result, truth), votes]
    first, by_votes = pair_evidence(annotations, consensus, pairs, progress)
    z, shares, n_tests = first.z / _bulk(first.z), first.share, 1
    voters, inside = _cliques(annotations, pairs, by_votes, false_discovery_rate)
    if inside.any():
        method = aggregators.create(result.method)
        of_voters = annotations.keep(voters[annotations.annotator])
        refit = method.fit(of_voters, gold=gold, seed=seed)
        refitted = leave_subset_out(refit, annotations, voters, truth)
        (second,) = pair_evidence(annotations, [refitted], pairs, progress)
        stronger = second.z / _bulk(second.z)
        stronger[~inside | (second.share < _MUCH)] = 0.0
        shares = np.where(stronger > z, second.share, shares)
        z, n_tests = np.maximum(z, stronger), 2
    p_value = np.minimum(n_tests * ndtr(-z), 1.0)
    flagged = discoveries(p_value, false_discovery_rate) & (z > 0)
    cluster = _clusters(annotations.n_annotators, pairs.left[flagged], pairs.right[flagged])
    return Copies(
        annotators=annotations.annotators,
        one=pairs.left,
        other=pairs.right,
        common=first.common,
        equal=first.equal,
        errors=first.errors,
        expected=first.expected,
        deviation=first.deviation,
        expected_errors=first.expected_errors,
        share=shares,
        z=z,
        flagged=flagged,
        cluster=cluster,
        sampled=pairs.sampled,
    )


def discoveries(p_value: Floats, false_discovery_rate: float) -> npt.NDArray[np.bool_]:
    """Return which hypotheses the procedure of Benjamini and Hochberg rejects.

    >>> discoveries(np.array([0.9, 0.001, 0.03, 0.04]), 0.05).tolist()
    [False, True, False, False]
    """
    order, n = np.argsort(p_value, kind="stable"), len(p_value)
    passed = p_value[order] <= false_discovery_rate * np.arange(1, n + 1) / max(n, 1)
    rejected = np.zeros(n, dtype=bool)
    rejected[order[: np.flatnonzero(passed).max(initial=-1) + 1]] = True
    return rejected


class CoAnnotatedPairs(NamedTuple):
    """Pairs of annotators with enough common items, and the labels to compare."""

    rows: Integers  # (row): positions of annotations, by item
    size: Integers  # (item): how many rows it has
    left: Integers  # (pair)
    right: Integers  # (pair)
    sampled: float  # share of the items


class PairEvidence(NamedTuple):
    """Agreement of every pair compared with independence, under one consensus."""

    common: Integers
    equal: Integers
    errors: Integers
    expected: Floats
    deviation: Floats
    expected_errors: Floats
    share: Floats
    z: Floats


def find_co_annotated(
    annotations: Annotations, min_common: int, max_label_pairs: int, seed: int
) -> CoAnnotatedPairs:
    """Return the pairs to compare: labels given once, by annotators with enough of them."""
    item = annotations.item.astype(np.int64)
    repeated = repeats_previous(annotations)
    once = ~repeated & ~np.append(repeated[1:], False)[: len(repeated)]
    labels = np.bincount(annotations.annotator[once], minlength=annotations.n_annotators)
    once &= (labels >= min_common)[annotations.annotator]
    size = np.bincount(item[once], minlength=annotations.n_items)
    share = min(max_label_pairs / max(int((size * (size - 1) // 2).sum()), 1), 1.0)
    if share < 1:
        in_sample = np.random.default_rng(seed).random(annotations.n_items) < share
        once &= in_sample[item]
        size = np.where(in_sample, size, 0)
    rows = np.flatnonzero(once)
    start = np.concatenate([[0], np.cumsum(size)])
    labelled: sparse.csr_array[Any, Any] = sparse.csr_array(
        (np.ones(len(rows), dtype=np.int32), annotations.annotator[rows].astype(np.int32), start),
        shape=(annotations.n_items, annotations.n_annotators),
    )
    return CoAnnotatedPairs(rows, size, *co_annotating(labelled, min_common), share)


class PairStatistics:
    """Sums over the label pairs of every pair of annotators, under one consensus."""

    def __init__(
        self, annotations: Annotations, leave_out: LeaveOneOut, pairs: CoAnnotatedPairs
    ) -> None:
        n_classes = annotations.n_classes
        prior = pseudo_counts(_STRENGTH, _ACCURACY, n_classes).T
        # (annotator, true class, given class)
        confusion = normalize(leave_out.comparison.counts + prior)
        self.annotations, self.leave_out = annotations, leave_out
        # The probability that both give one label: (pair, true class).
        self.same = np.empty((len(pairs.left), n_classes))
        step = max(1, _CELLS // n_classes**2)
        for start in range(0, len(pairs.left), step):
            part = slice(start, start + step)
            left, right = confusion[pairs.left[part]], confusion[pairs.right[part]]
            self.same[part] = np.einsum("ptg,ptg->pt", left, right)
        self.given = np.ascontiguousarray(confusion.swapaxes(1, 2)).reshape(-1, n_classes)
        self.sums = np.zeros((6, len(pairs.left)))
        self.fit = np.zeros((len(_SHARES), len(pairs.left)))

    def add(self, first: Integers, second: Integers, pair: Integers) -> None:
        """Add label pairs: the positions of both annotations, and the pair of annotators."""
        annotations, n_pairs = self.annotations, len(self.same)
        posterior = self.leave_out.without_pair(first, second)  # (label pair, true class)
        label, best = annotations.label[first], posterior.argmax(axis=1)
        equal = label == annotations.label[second]
        expected = np.einsum("mt,mt->m", posterior, self.same[pair])
        right = self.probability(first, best)
        right *= self.probability(second, best)
        wrong = expected - np.einsum("mt,mt->m", posterior, right)
        variance = expected * (1 - expected)
        values = (np.ones(len(pair)), equal, equal & (label != best), expected, variance, wrong)
        for position, value in enumerate(values):
            self.sums[position] += np.bincount(pair, value, minlength=n_pairs)
        one_gives, other_gives = (
            self.probability(positions[equal], label[equal]) for positions in (first, second)
        )
        either = np.einsum("mt,mt->m", posterior[equal], one_gives + other_gives) / 2
        # How much more probable an equal label is as a copy than independently.
        independently = np.einsum("mt,mt,mt->m", posterior[equal], one_gives, other_gives)
        gain = either / independently - 1
        for position, copied in enumerate(_SHARES):
            fit = np.log1p(copied * gain)
            self.fit[position] += np.bincount(pair[equal], fit, minlength=n_pairs)

    def probability(self, position: Integers, label: Array) -> Floats:
        """Return the probability of labels for every true class: (annotation, true class)."""
        annotator = self.annotations.annotator[position].astype(np.int64)
        return self.given.take(annotator * self.annotations.n_classes + label, axis=0)

    def evidence(self) -> PairEvidence:
        """Return the evidence for copying."""
        common, equal, errors = (np.round(value).astype(np.int64) for value in self.sums[:3])
        fit = self.fit + np.log1p(-_SHARES)[:, None] * (common - equal)
        z = np.sqrt(2 * np.maximum(fit.max(axis=0), 0.0))
        copied = np.where(z > 0, _SHARES[fit.argmax(axis=0)], 0.0)
        expected, variance, wrong = self.sums[3:]
        return PairEvidence(
            common=common,
            equal=equal,
            errors=errors,
            expected=expected,
            deviation=np.sqrt(variance),
            expected_errors=wrong,
            share=copied,
            z=z,
        )


def pair_evidence(
    annotations: Annotations,
    leave_outs: list[LeaveOneOut],
    pairs: CoAnnotatedPairs,
    progress: Callable[[int, int], None],
) -> list[PairEvidence]:
    """Return how well a share of copied labels explains every pair, under every consensus."""
    statistics = [PairStatistics(annotations, leave_out, pairs) for leave_out in leave_outs]
    index = PairIndex(pairs.left, pairs.right, annotations.n_annotators)
    n_done, total = 0, int((pairs.size * (pairs.size - 1) // 2).sum())
    step = max(1, _CELLS // annotations.n_classes, len(pairs.left))
    for left, right in label_pairs(pairs.size, step):
        first, second = pairs.rows[left], pairs.rows[right]
        pair = index.find(annotations.annotator[first], annotations.annotator[second])
        indexed = np.flatnonzero(pair >= 0)
        for statistic in statistics:
            statistic.add(first[indexed], second[indexed], pair[indexed])
        n_done += len(left)
        progress(n_done, total)
    return [statistic.evidence() for statistic in statistics]


def _cliques(
    annotations: Annotations, pairs: CoAnnotatedPairs, evidence: PairEvidence, rate: float
) -> tuple[npt.NDArray[np.bool_], npt.NDArray[np.bool_]]:
    """Return the annotators with only one member of every clique, and the pairs inside cliques."""
    z = evidence.z / _bulk(evidence.z)
    flagged = discoveries(ndtr(-z), rate) & (z > 0)
    group = _clusters(annotations.n_annotators, pairs.left[flagged], pairs.right[flagged])
    size = np.bincount(group[group >= 0])  # the largest first
    voters = np.ones(annotations.n_annotators, dtype=bool)
    inside = np.zeros(len(z), dtype=bool)
    for number in np.flatnonzero((size >= _CLIQUE) & (2 * size <= len(voters))).tolist():
        within = (group[pairs.left] == number) & (group[pairs.right] == number)
        if flagged[within].mean() >= _DENSE and np.median(evidence.share[within]) >= _MUCH:
            members = np.flatnonzero(group == number)
            voters[members] = False
            voters[members[annotations.labels_per_annotator[members].argmax()]] = True
            inside |= within
    return voters, inside


def _bulk(z: Floats) -> float:
    """Return the scale of the bulk of the pairs relative to a standard normal, at least 1.

    Outliers are those beyond `_APART` scales, so both are updated in turn.
    """
    scale, bulk = 1.0, np.ones(len(z), dtype=bool)
    for _ in range(50):
        if not bulk.any():
            break
        scale = max(1.0, float(np.quantile(z[bulk], 0.75)) / _QUARTER)
        inside = z < _APART * scale
        if np.array_equal(inside, bulk):
            break
        bulk = inside
    return scale


def _clusters(n_annotators: int, left: Integers, right: Integers) -> Integers:
    """Return the connected components of pairs, the largest first; -1 for single annotators."""
    graph: sparse.coo_array[Any, Any] = sparse.coo_array(
        (np.ones(len(left)), (left, right)), shape=(n_annotators, n_annotators)
    )
    _, group = connected_components(graph, directed=False)
    size = np.bincount(group, minlength=1)
    rank = np.argsort(np.argsort(-size, kind="stable"))
    return np.where(size[group] > 1, rank[group], -1)
