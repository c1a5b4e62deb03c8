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

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
from scipy.special import stdtr

from ..answers.annotations import Annotations
from ..base.arrays import Floats, Integers
from ..base.names import as_names
from ..base.tables import Table
from ..pages.sections import Table as SmallTable
from ..pages.wording import formatted, percent, verb
from .clusters import cells, n_clusters, quantiles, resampled
from .mixed import Mixed, Repeat, repeats_of, row_weights, voices, weighted_votes
from .question import ENOUGH, Question, table_of, too_few

_MIN_ITEMS = 30  # of a person, each labelled by two people and the model
EPSILON = 0.1
_FALSE_DISCOVERY_RATE = 0.05
_UNDECIDED = (0.2, 0.8)  # shares of resamples between which nothing is decided
_FEW = 100  # items of a person, below which failing is no evidence
_GRID = np.arange(101) / 100


class Compared(NamedTuple):
    """The model compared with one person."""

    person: str
    n_items: int
    advantage: float  # rho_j
    difference: float  # mean d_ij
    p_value: float
    no_worse: bool


@dataclass(frozen=True, kw_only=True)
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
    winning_rate: float = math.nan
    advantage: float = math.nan
    low: float = math.nan
    high: float = math.nan
    passes: bool = False
    smallest_epsilon: float = math.nan
    stability: float = math.nan
    resamples: int = 0
    compared: tuple[Compared, ...] = ()
    n_enough: int
    most_items: int

    @property
    def verdict(self) -> str:
        """`replaces`, `fails`, `undecided`, or `unknown` where people have too few items."""
        if self.n_enough < 2:
            return "unknown"
        if _UNDECIDED[0] < self.stability < _UNDECIDED[1]:
            return "undecided"
        return "replaces" if self.passes else "fails"

    @property
    def sentence(self) -> str:
        """The verdict, and how sure it is."""
        if self.verdict == "unknown":
            return f"May {self.judge} replace an annotator? {too_few(self.most_items, ENOUGH)}"
        better = sum(comparison.no_worse for comparison in self.compared)
        smallest = self.smallest_epsilon
        would = "no tolerance would do" if math.isnan(smallest) else f"{smallest:g} would do"
        held = f"{round(self.stability * self.resamples)} of {self.resamples} resamples"
        compared = (
            f"it is no worse than {better} of {len(self.compared)} annotators at agreeing with "
            f"the others, at a tolerance of {self.epsilon:g} ({would})"
        )
        if self.verdict == "undecided":
            return (
                f"It is undecided whether {self.judge} may replace an annotator: {compared}; "
                f"it passes in {held}."
            )
        if self.verdict == "replaces":
            return f"{self.judge} may replace an annotator here: {compared}; this holds in {held}."
        few = max(comparison.n_items for comparison in self.compared) < _FEW
        caution = " With so few items, failing is no evidence against it." if few else ""
        return (
            f"{self.judge} may not replace an annotator here: {compared}; it passes in {held}."
            f"{caution}"
        )


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class ReplacementTest(Question):
    """The test of every model, the best first, and of people as candidates."""

    name: ClassVar[str] = "replacement"
    title: ClassVar[str] = "May a model replace an annotator?"

    models: tuple[Replacement, ...]
    epsilon: float
    n_people_tested: int
    n_people_pass: int

    @property
    def tables(self) -> Mapping[str, Table]:
        """The test of every model."""
        verdict = as_names([model.verdict for model in self.models])
        return {self.name: {**table_of(self.models), "verdict": verdict}}

    @property
    def sentences(self) -> tuple[str, ...]:
        """The verdict on every model; the first has how people fare in the same test."""
        if self.models and all(model.verdict == "unknown" for model in self.models):
            labels = max(model.most_items for model in self.models)
            need = max(_MIN_ITEMS, ENOUGH) if labels < _MIN_ITEMS else 2 * _MIN_ITEMS
            return (
                f"{self.title} {too_few(labels, need)} The test needs two people with {_MIN_ITEMS} "
                "items each that others labelled, too.",
            )
        passed, tested = self.n_people_pass, self.n_people_tested
        people = f" {passed} of {tested} people {verb(passed, 'pass')} the same test."
        sentences = [model.sentence for model in self.models]
        judged = [number for number, model in enumerate(self.models) if model.verdict != "unknown"]
        if judged and tested:
            sentences[judged[0]] += people
        return tuple(sentences)

    @property
    def small_table(self) -> SmallTable:
        """The models with enough items."""
        rows = [
            (
                test.judge,
                test.verdict,
                f"{test.winning_rate:.2f}",
                f"{test.advantage:.2f} ({test.low:.2f} to {test.high:.2f})",
                formatted(test.smallest_epsilon, ".2f"),
                percent(test.stability),
            )
            for test in self.models
            if test.n_enough > 1
        ]
        caption = f"The alternative annotator test, tolerance {self.epsilon:g}"
        heads = ("model", "verdict", "winning rate", "advantage", "smallest tolerance")
        return SmallTable(caption, [*heads, "resamples that pass"], rows, 2)


def replacement(
    data: Mixed,
    *,
    epsilon: float = EPSILON,
    min_items: int = _MIN_ITEMS,
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
    tested, passed = _people_as_candidates(data, peers, epsilon, min_items)
    return ReplacementTest(
        models=tuple(tests), epsilon=epsilon, n_people_tested=tested, n_people_pass=passed
    )


class _Sums(NamedTuple):
    """Sums over the items of a cluster and person, for people with enough items."""

    person: Integers  # (person)
    n_items: Integers  # (person)
    matrix: Any  # (cluster, seven sums of every person)
    most: int  # items of a person, also of those without enough


class _Peers:
    """What all other people on an item answered, for every answer of a person."""

    def __init__(self, people: Annotations, value: Floats | None) -> None:
        self.people, self.value = people, value
        self.item = people.item.astype(np.int64)
        self.person = people.annotator.astype(np.int64)
        self.label = people.label.astype(np.int64)
        self.weight = row_weights(people)
        self.n_people = voices(people)
        if value is None:
            self.votes = weighted_votes(people)
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
            agree = self.votes[item, label] - own
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
    width = len(people)
    key = cluster[peers.item[rows]] * width + code[peers.person[rows]]
    cell, where = np.unique(key, return_inverse=True)
    d, wins, n = (np.bincount(where, value, minlength=len(cell)) for value in (d, wins, n))
    parts = (d, n, wins, d * d, d * n, n * n, np.ones(len(n)))
    matrix = cells(
        np.tile(cell // max(width, 1), len(parts)),
        np.concatenate([cell % max(width, 1) + width * k for k in range(len(parts))]),
        np.concatenate(parts),
        (n_clusters(cluster), width * len(parts)),
    )
    return _Sums(people, n_items[people], matrix, int(n_items.max(initial=0)))


def _tested(
    name: str,
    data: Mixed,
    sums: _Sums,
    epsilon: float,
    *,
    drawn: Floats | None = None,
    confidence: float = 0.95,
) -> Replacement:
    size: dict[str, Any] = {"n_enough": len(sums.person), "most_items": sums.most}
    if len(sums.person) < 2:
        return Replacement(judge=name, epsilon=epsilon, **size)
    everything = np.asarray(sums.matrix.sum(axis=0))[None, :]
    mean, error, freedom, wins = _moments(everything, len(sums.person))
    p_value, rejected = _no_worse(mean, error, freedom, epsilon)
    rate = float(rejected.mean())
    passing = [at for at in _GRID if _no_worse(mean, error, freedom, at)[1].mean() >= 0.5]
    names = data.people.annotators[sums.person]
    columns = (names, sums.n_items, wins[0], mean[0], p_value[0], rejected[0])
    compared = tuple(map(Compared, *(column.tolist() for column in columns)))
    of_resamples: dict[str, Any] = {}
    if drawn is not None:
        mean, error, freedom, wins_drawn = _moments(drawn @ sums.matrix, len(sums.person))
        won = _no_worse(mean, error, freedom, epsilon)[1].mean(axis=1) >= 0.5
        low, high = quantiles(wins_drawn.mean(axis=1), confidence)
        of_resamples = {"stability": float(won.mean()), "low": low, "high": high}
        of_resamples["resamples"] = len(drawn)
    return Replacement(
        judge=name,
        epsilon=epsilon,
        winning_rate=rate,
        advantage=float(wins.mean()),
        passes=rate >= 0.5,
        smallest_epsilon=float(min(passing, default=math.nan)),
        compared=compared,
        **size,
        **of_resamples,
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


def _no_worse(mean: Floats, error: Floats, freedom: Floats, epsilon: float) -> tuple[Floats, Any]:
    """Return p-values, and which people the model is no worse than: (resample, person)."""
    p_value = _p_values(mean, error, freedom, epsilon)
    return p_value, dependent_discoveries(p_value, _FALSE_DISCOVERY_RATE)


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
        if len(sums.person) >= 2:
            tested += 1
            passed += _tested("", data, sums, epsilon).passes
    return tested, passed
