"""May a model replace an annotator? The alternative annotator test.

Person j is left out, and the model and j are compared on how well they agree with the others R on
the items of j:

    S(x) = mean over R [x = y_hi]            classes
    S(x) = -sqrt(mean over R (x - y_hi)²)    numbers and ordered classes
    d_ij = [S(y_ji) >= S(f_i)] - [S(f_i) >= S(y_ji)],    rho_j = mean_i [S(f_i) >= S(y_ji)]

The model is no worse than j if a t-test rejects mean d_ij >= epsilon; over people, the false
discovery rate is controlled for any dependence (Benjamini & Yekutieli). It passes if it is no worse
than half of them. Items of one cluster enter the test as their sum.

The verdict depends on epsilon and on the sample. So the smallest epsilon that passes, the share of
bootstrap resamples that pass, and the same test of every person are reported with it.

    N. Calderon, R. Reichart, R. Dror. The alternative annotator test for LLM-as-a-judge: how to
    statistically justify replacing human annotators with LLMs. ACL 2025. arXiv:2501.10970
    Y. Benjamini, D. Yekutieli. The control of the false discovery rate in multiple testing under
    dependency. Annals of Statistics 29(4), 2001.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from scipy.special import stdtr

from ..answers.annotations import Annotations
from ..base.arrays import Floats, Integers
from .mixed import Mixed, Repeat, cells, repeats_of, resampled, row_weights

MIN_ITEMS = 30  # of a person, each labelled by two people and the model
FALSE_DISCOVERY_RATE = 0.05
EPSILON = 0.1
UNDECIDED = (0.2, 0.8)  # shares of resamples between which nothing is decided

_GRID = np.arange(101) / 100


class Compared(NamedTuple):
    """The model compared with one person."""

    person: str
    n_items: int
    advantage: float  # rho_j
    difference: float  # mean d_ij
    p_value: float
    no_worse: bool


@dataclass(frozen=True)
class Replacement:
    """Whether a model may replace an annotator.

    Attributes
    ----------
    judge
        The model.
    epsilon
        The tolerance.
    winning_rate
        The share of people whom it is no worse than; NaN if that cannot be computed.
    advantage, low, high
        The mean probability of agreeing with the others as well as a person does, with a
        confidence interval.
    passes
        Whether the winning rate is at least one half.
    smallest_epsilon
        The smallest tolerance that passes; NaN if none does.
    stability, resamples
        The share of bootstrap resamples that pass, and their number.
    compared
        The comparison with every person.
    n_enough, most_items
        How many people have enough items, and the most that one has.
    """

    judge: str
    epsilon: float
    winning_rate: float
    advantage: float
    low: float
    high: float
    passes: bool
    smallest_epsilon: float
    stability: float
    resamples: int
    compared: tuple[Compared, ...]
    n_enough: int
    most_items: int

    @property
    def verdict(self) -> str:
        """`replaces`, `fails`, `undecided`, or `unknown` where people have too few items."""
        if self.n_enough < 2:
            return "unknown"
        if UNDECIDED[0] < self.stability < UNDECIDED[1]:
            return "undecided"
        return "replaces" if self.passes else "fails"


@dataclass(frozen=True)
class ReplacementTest:
    """The test of every model, the best first, and of people as candidates."""

    models: tuple[Replacement, ...]
    n_people_tested: int
    n_people_pass: int


def replacement(
    data: Mixed,
    *,
    epsilon: float = EPSILON,
    min_items: int = MIN_ITEMS,
    resamples: int = 200,
    confidence: float = 0.95,
    seed: int = 0,
) -> ReplacementTest:
    """Return the alternative annotator test of every judge, and of every person."""
    peers = _Peers(data.people, data.value if data.ordered else None)
    drawn = resampled(data.cluster, resamples, seed) if resamples else None
    tests = []
    for name, repeats in zip(data.judge_names, data.judge_repeats, strict=True):
        sums = _sums(peers, repeats, data.cluster, min_items)
        tests.append(_tested(name, data, sums, epsilon, drawn=drawn, confidence=confidence))
    tests.sort(key=lambda test: (np.isnan(test.advantage), -test.advantage, test.judge))
    return ReplacementTest(tuple(tests), *_people_as_candidates(data, peers, epsilon, min_items))


class _Sums(NamedTuple):
    """Sums over the items of a cluster and person, for people with enough items."""

    person: Integers  # (person)
    n_items: Integers  # (person)
    matrix: Any  # (cluster, five sums of every person)
    enough: int
    most: int


class _Peers:
    """What all other people on an item answered, for every answer of a person."""

    def __init__(self, people: Annotations, value: Floats | None) -> None:
        self.people, self.value = people, value
        self.item = people.item.astype(np.int64)
        self.person = people.annotator.astype(np.int64)
        self.label = people.label.astype(np.int64)
        self.weight = row_weights(people)
        is_first = np.concatenate([[True], ~people.repeats])[: len(people)]
        self.n_people = np.bincount(self.item[is_first], minlength=people.n_items)
        if value is None:
            self.votes = np.bincount(
                self.item * people.n_classes + self.label,
                self.weight,
                minlength=people.n_items * people.n_classes,
            )
            key = (self.item * people.n_annotators + self.person) * people.n_classes + self.label
            self.own_key, where = np.unique(key, return_inverse=True)
            self.own = np.bincount(where, self.weight, minlength=len(self.own_key))
        else:
            values = value[self.label]
            pair = self.item * people.n_annotators + self.person
            _, where = np.unique(pair, return_inverse=True)
            self.moments: list[Any] = []  # sums of values and squares of the others: (answer)
            for power in (1, 2):
                part = self.weight * values**power
                total = np.bincount(self.item, part, minlength=people.n_items)
                self.moments.append(total[self.item] - np.bincount(where, part)[where])

    def score(self, rows: Integers, label: Integers, without: Integers | None = None) -> Floats:
        """Return how well labels agree with the others, times their number: (row).

        `without` is the label of one more person on every item, who is left out as well.
        """
        if self.value is None:
            item, person = self.item[rows], self.person[rows]
            key = (item * self.people.n_annotators + person) * self.people.n_classes + label
            position = np.minimum(np.searchsorted(self.own_key, key), len(self.own_key) - 1)
            own = np.where(self.own_key[position] == key, self.own[position], 0.0)
            agree = self.votes[item * self.people.n_classes + label] - own
            return agree if without is None else agree - (without == label)
        x = self.value[label]
        first, second = self.moments[0][rows], self.moments[1][rows]
        n: Any = self.n_people[self.item[rows]] - 1.0
        if without is not None:
            gone = self.value[without]
            first, second, n = first - gone, second - gone**2, n - 1
        return -(n * x**2 - 2 * x * first + second)


def _sums(
    peers: _Peers,
    repeats: Sequence[Repeat],
    cluster: Integers,
    min_items: int,
    candidate: int | None = None,
) -> _Sums:
    """Return sums of comparisons over clusters and people.

    A candidate is a person: neither compared with, nor among the others.
    """
    n_left_out = 1 if candidate is None else 2
    n_people = peers.people.n_annotators
    columns = []
    for repeat in repeats:
        rows = np.flatnonzero(
            (repeat.label[peers.item] >= 0)
            & (peers.n_people[peers.item] > n_left_out)
            & (peers.person != (-1 if candidate is None else candidate))
        )
        label = repeat.label[peers.item[rows]]
        without = None if candidate is None else label
        person = peers.score(rows, peers.label[rows], without)
        model = peers.score(rows, label, without)
        near = 1e-9 * (1 + np.abs(model))
        weight = peers.weight[rows] * repeat.weight[peers.item[rows]]
        ahead = (person >= model - near).astype(float), (model >= person - near).astype(float)
        columns.append((rows, weight * (ahead[0] - ahead[1]), weight * ahead[1], weight))
    rows, d, wins, n = (np.concatenate(parts) for parts in zip(*columns, strict=True))
    items = np.unique(peers.item[rows] * n_people + peers.person[rows]) % n_people
    n_items = np.bincount(items, minlength=n_people)
    people = np.flatnonzero(n_items >= min_items)
    code = np.full(n_people, -1)
    code[people] = np.arange(len(people))
    inside = code[peers.person[rows]] >= 0
    rows, d, wins, n = rows[inside], d[inside], wins[inside], n[inside]
    width, n_clusters = len(people), int(cluster.max(initial=-1)) + 1
    key = cluster[peers.item[rows]] * width + code[peers.person[rows]]
    cell, where = np.unique(key, return_inverse=True)
    d, wins, n = (np.bincount(where, value, minlength=len(cell)) for value in (d, wins, n))
    parts = (d, n, wins, d * d, d * n, n * n, np.ones(len(n)))
    matrix = cells(
        np.tile(cell // max(width, 1), len(parts)),
        np.concatenate([cell % max(width, 1) + width * k for k in range(len(parts))]),
        np.concatenate(parts),
        (n_clusters, width * len(parts)),
    )
    return _Sums(people, n_items[people], matrix, len(people), int(n_items.max(initial=0)))


def _tested(
    name: str,
    data: Mixed,
    sums: _Sums,
    epsilon: float,
    *,
    drawn: Floats | None = None,
    confidence: float = 0.95,
) -> Replacement:
    stability, low, high = float("nan"), float("nan"), float("nan")
    if sums.enough < 2:
        nan = float("nan")
        return Replacement(
            judge=name,
            epsilon=epsilon,
            winning_rate=nan,
            advantage=nan,
            low=low,
            high=high,
            passes=False,
            smallest_epsilon=nan,
            stability=stability,
            resamples=0,
            compared=(),
            n_enough=sums.enough,
            most_items=sums.most,
        )
    everything = np.asarray(sums.matrix.sum(axis=0))[None, :]
    mean, error, freedom, wins = _moments(everything, sums.enough)
    p_value = _p_values(mean, error, freedom, epsilon)
    rejected = dependent_discoveries(p_value, FALSE_DISCOVERY_RATE)
    at = np.array(
        [
            dependent_discoveries(
                _p_values(mean, error, freedom, tolerance), FALSE_DISCOVERY_RATE
            ).mean()
            for tolerance in _GRID
        ]
    )
    passing = _GRID[at >= 0.5]
    names = data.people.annotators[sums.person].tolist()
    numbers = zip(wins[0], mean[0], p_value[0], strict=True)
    compared = tuple(
        Compared(
            person=person,
            n_items=int(n_items),
            advantage=float(rho),
            difference=float(difference),
            p_value=float(p),
            no_worse=bool(no_worse),
        )
        for person, n_items, (rho, difference, p), no_worse in zip(
            names, sums.n_items, numbers, rejected[0], strict=True
        )
    )
    if drawn is not None:
        moments = _moments(drawn @ sums.matrix, sums.enough)
        won = dependent_discoveries(_p_values(*moments[:3], epsilon), FALSE_DISCOVERY_RATE)
        stability = float((won.mean(axis=1) >= 0.5).mean())
        tail = (1 - confidence) / 2
        low, high = np.quantile(moments[3].mean(axis=1), [tail, 1 - tail]).tolist()
    rate = float(rejected.mean())
    return Replacement(
        judge=name,
        epsilon=epsilon,
        winning_rate=rate,
        advantage=float(wins.mean()),
        low=low,
        high=high,
        passes=rate >= 0.5,
        smallest_epsilon=float(passing.min()) if len(passing) else float("nan"),
        stability=stability,
        resamples=0 if drawn is None else len(drawn),
        compared=compared,
        n_enough=sums.enough,
        most_items=sums.most,
    )


def _moments(sums: Floats, n_people: int) -> tuple[Floats, Floats, Floats, Floats]:
    """Return mean, standard error, degrees of freedom and rho: (resample, person)."""
    d, n, wins, dd, dn, nn, count = (
        sums.reshape(len(sums), 7, n_people).astype(float).swapaxes(0, 1)
    )
    with np.errstate(invalid="ignore", divide="ignore"):
        mean = d / n
        spread = np.maximum(dd - 2 * mean * dn + mean**2 * nn, 0)
        spread[spread < 1e-12 * dd] = 0
        error = np.sqrt(spread * count / (count - 1)) / n
        return mean, error, count - 1, wins / n


def _p_values(mean: Floats, error: Floats, freedom: Floats, epsilon: float) -> Floats:
    """Return one-sided p-values of mean < epsilon; 0 or 1 where there is no variation."""
    with np.errstate(invalid="ignore", divide="ignore"):
        p_value = stdtr(np.maximum(freedom, 1), (mean - epsilon) / error)
    constant = ~(error > 0)
    p_value[constant] = np.where(mean[constant] < epsilon, 0.0, 1.0)
    return p_value


def dependent_discoveries(p_value: Floats, rate: float) -> Any:
    """Return which hypotheses Benjamini and Yekutieli reject, along the last axis.

    >>> dependent_discoveries(np.array([0.9, 0.001, 0.03, 0.02]), 0.05).tolist()
    [False, True, False, False]
    """
    m = p_value.shape[-1]
    order = np.argsort(p_value, axis=-1, kind="stable")
    ranked = np.take_along_axis(p_value, order, -1)
    bound = rate * np.arange(1, m + 1) / (m * (1 / np.arange(1, m + 1)).sum())
    last = np.where(ranked <= bound, np.arange(1, m + 1), 0).max(axis=-1, keepdims=True)
    rejected = np.empty(p_value.shape, dtype=bool)
    np.put_along_axis(rejected, order, np.arange(m) < last, -1)
    return rejected


def _people_as_candidates(
    data: Mixed, peers: _Peers, epsilon: float, min_items: int
) -> tuple[int, int]:
    """Return how many people were tested as candidates, and how many pass."""
    shared = peers.n_people[peers.item] > 2
    often = np.bincount(peers.person[shared], minlength=data.people.n_annotators) >= min_items
    tested = passed = 0
    for person in np.flatnonzero(often).tolist():
        answers = data.people.keep(data.people.annotator == person)
        near = np.isin(data.people.item, answers.item)
        part = _Peers(data.people.keep(near), peers.value)
        (repeats,) = repeats_of(answers)[person : person + 1]
        sums = _sums(part, repeats[:1], data.cluster, min_items, candidate=person)
        if sums.enough >= 2:
            tested += 1
            passed += _tested("", data, sums, epsilon).passes
    return tested, passed
