"""How good each judge is beside people, and which items people should check after them.

People's agreement with each other is the yardstick. For classes: the probability that the judge and
a person who labelled the same item chose the same class (the mean over people, every item counting
the same), and that of two people. Accuracy is against the known class or people's majority, where
tied classes count in parts. For numbers and ordered classes also the mean error, the mean absolute
error and the correlation. Intervals come from resampling items, or clusters of items.

To check: the judges' prediction s of a person's label, learned from a random seed of human labels,
is least sure where max_c s_i(c) is lowest, so people are asked about these items first, and the
pool labels them. What the answer of one person about item i adds is taken as

    Σ_c s_i(c) max_c' ([c = c'] + s_i(c')) / 2 - max_c s_i(c)

as if the judges counted for one person. They often count for more, but their predictions are
learned again from the new labels, so that an answer also helps other items. A tenth of what people
label is chosen at random instead, and only these labels are a random sample for estimates.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ..base.arrays import Floats, Integers
from ..base.names import Names
from ..metrics.pairs import pairwise
from .mixed import Mixed, Repeat, by_cluster, resampled
from .pool import Pooled

MIN_ITEMS = 50  # items with two people, below which only one person is needed
MIN_SEED = 50  # items that people labelled, chosen at random
SHORTCUT = 0.8  # beyond this share of the items there is no short cut

_ENOUGH = 0.9  # of the gain of asking about everything
_AUDIT = 0.1


@dataclass(frozen=True, eq=False)
class Judge:
    """One judge against people. NaN is what cannot be computed.

    Attributes
    ----------
    judge
        The model.
    n_items
        Items that it and people labelled.
    missing
        Share of all items without an answer of it.
    agreement, low, high
        Agreement with one person, with a confidence interval.
    people
        Agreement of two people on the same items.
    kappa, people_kappa
        Cohen's kappa, weighted by the scale, averaged over pairs.
    accuracy
        Against the known class or people's majority.
    bias, absolute_error, correlation
        Of numbers and ordered classes: mean error, mean absolute error, Pearson's r.
    consistency
        Probability that two answers to the same item are equal, where it was asked again.
    confusion
        Target class and given class, in items; empty for numbers.
    """

    judge: str
    n_items: int
    missing: float
    agreement: float
    low: float
    high: float
    people: float
    kappa: float
    people_kappa: float
    accuracy: float
    bias: float
    absolute_error: float
    correlation: float
    consistency: float
    confusion: Floats  # (target class, given class)


def judges(
    data: Mixed, *, resamples: int = 200, confidence: float = 0.95, seed: int = 0
) -> tuple[Judge, ...]:
    """Return how good every judge is, in the order of their names."""
    nan = float("nan")
    drawn = resampled(data.cluster, resamples, seed)
    kappas, people_kappa = _kappas(data)
    people_agree = np.full(data.n_items, nan) if data.numeric else _two_people(data)
    out = []
    for number, (name, repeats) in enumerate(
        zip(data.judge_names, data.judge_repeats, strict=True)
    ):
        answered = _answered(repeats, data.n_items)
        labelled = answered & data.known
        agreement = low = high = people = accuracy = bias = absolute = correlation = nan
        confusion = np.zeros((0, 0))
        if not data.numeric and labelled.any():
            judge_agrees = _with_one_person(data, repeats)
            doubly_labelled = labelled & (data.n_people > 1)
            compared = (
                doubly_labelled
                if doubly_labelled.sum() >= MIN_ITEMS
                else labelled & (data.n_people > 0)
            )
            agreement, low, high = _mean(
                judge_agrees, compared, cluster=data.cluster, drawn=drawn, confidence=confidence
            )
            people = float(people_agree[doubly_labelled].mean()) if doubly_labelled.any() else nan
            confusion = _confusion(data, repeats)
            accuracy = float(_accuracy(data, repeats)[labelled].mean())
        if data.ordered and labelled.any():
            error = (data.judge_value(number) - data.target_value)[labelled]
            bias, absolute = float(error.mean()), float(np.abs(error).mean())
            correlation = _correlation(
                data.judge_value(number)[labelled], data.target_value[labelled]
            )
        out.append(
            Judge(
                judge=name,
                n_items=int(labelled.sum()),
                missing=1 - float(answered.mean()) if data.n_items else nan,
                agreement=agreement,
                low=low,
                high=high,
                people=people,
                kappa=kappas[number],
                people_kappa=people_kappa,
                accuracy=accuracy,
                bias=bias,
                absolute_error=absolute,
                correlation=correlation,
                consistency=_consistency(repeats),
                confusion=confusion,
            )
        )
    return tuple(out)


def _answered(repeats: list[Repeat], n_items: int) -> np.ndarray:
    return repeats[0].label >= 0 if repeats else np.zeros(n_items, dtype=bool)


def _with_one_person(data: Mixed, repeats: list[Repeat]) -> Floats:
    """Return the probability of agreeing with one of the people on every item."""
    with np.errstate(invalid="ignore"):
        shares = data.person_votes / data.n_people[:, None]
    return _expected(shares, repeats)


def _expected(shares: Floats, repeats: list[Repeat]) -> Floats:
    """Return the mean share of the classes that a judge chose: (item)."""
    row = np.arange(len(shares))
    return sum(
        (
            repeat.weight * np.where(repeat.label >= 0, shares[row, repeat.label], 0)
            for repeat in repeats
        ),
        np.zeros(len(shares)),
    )


def _accuracy(data: Mixed, repeats: list[Repeat]) -> Floats:
    """Return the probability of the target class, tied classes in parts: (item)."""
    votes = np.nan_to_num(data.target_shares)
    best = (votes > votes.max(axis=1)[:, None] - 1e-9) & (votes > 0)
    return _expected(best / np.maximum(best.sum(axis=1), 1)[:, None], repeats)


def _confusion(data: Mixed, repeats: list[Repeat]) -> Floats:
    """Return how often a class of the target was given a class: (target class, given class)."""
    confusion = np.zeros((data.n_classes, data.n_classes))
    for repeat in repeats:
        rows = np.flatnonzero((repeat.label >= 0) & data.known)
        answers = np.zeros((len(rows), data.n_classes))
        answers[np.arange(len(rows)), repeat.label[rows]] = repeat.weight[rows]
        confusion += data.target_shares[rows].T @ answers
    return confusion


def _two_people(data: Mixed) -> Floats:
    """Return the probability that two people on an item agree: (item)."""
    votes, n = data.person_votes, data.n_people
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(n > 1, np.maximum((votes**2).sum(axis=1) - n, 0) / (n * (n - 1.0)), np.nan)


def _mean(
    value: Floats, counted: np.ndarray, *, cluster: Integers, drawn: Floats, confidence: float
) -> tuple[float, float, float]:
    """Return a mean with its bootstrap interval."""
    total, count = by_cluster(cluster, np.where(counted, value, 0), counted.astype(float))
    if not counted.any():
        return float("nan"), float("nan"), float("nan")
    tail = (1 - confidence) / 2
    with np.errstate(invalid="ignore"):
        low, high = np.nanquantile((drawn @ total) / (drawn @ count), [tail, 1 - tail])
    return float(value[counted].mean()), float(low), float(high)


def _correlation(first: Floats, second: Floats) -> float:
    if len(first) < 3 or np.ptp(first) == 0 or np.ptp(second) == 0:
        return float("nan")
    return float(np.corrcoef(first, second)[0, 1])


def _consistency(repeats: list[Repeat]) -> float:
    """Return the probability that two answers of a judge to one item are equal."""
    equal = pairs = 0
    for number, first in enumerate(repeats):
        for second in repeats[:number]:
            answered = (first.label >= 0) & (second.label >= 0)
            equal += int((first.label == second.label)[answered].sum())
            pairs += int(answered.sum())
    return equal / pairs if pairs else float("nan")


def _kappas(data: Mixed) -> tuple[list[float], float]:
    """Return the mean kappa of every judge with people, and that of people."""
    everybody = data.people.merge(data.judges)
    pairs = pairwise(everybody, "cohen", weights=data.people.scale, min_overlap=5)
    is_judge = np.isin(everybody.annotators, data.judges.annotators)
    person = ~is_judge
    of_people = _known_mean(pairs.value[person[pairs.one] & person[pairs.other]])
    position = {name: code for code, name in enumerate(everybody.annotators.tolist())}
    out = []
    for name in data.judges.annotators.tolist():
        code = position[name]
        with_people = ((pairs.one == code) & person[pairs.other]) | (
            (pairs.other == code) & person[pairs.one]
        )
        out.append(_known_mean(pairs.value[with_people]))
    return out, of_people


def _known_mean(values: Floats) -> float:
    """Return the mean of the values that are known, NaN without any."""
    return float(np.nanmean(values)) if (~np.isnan(values)).any() else float("nan")


@dataclass(frozen=True, eq=False)
class Escalation:
    """The items that people should check, the most doubtful first.

    Attributes
    ----------
    items
        Names of the items without human labels, in order.
    doubt
        1 - max_c s_i(c).
    gain
        What a person's answer adds.
    gained
        The share of the gain of asking about all, with the first k of them asked, k = 0 … all:
        (item + 1).
    enough
        How many of them have 90 % of the gain of all.
    chosen, audit
        Positions of items within the budget, and which of them were chosen at random.
    n_seed
        Items that people labelled.
    """

    items: Names
    doubt: Floats
    gain: Floats
    gained: Floats
    enough: int
    chosen: Integers
    audit: npt.NDArray[np.bool_]
    n_seed: int

    @property
    def shortcut(self) -> bool:
        """Whether far fewer items than all do."""
        return self.enough <= SHORTCUT * len(self.items)

    @property
    def part(self) -> float:
        """How much of the gain of asking about everything the chosen items have."""
        total = float(self.gain.sum())
        return float(self.gain[self.chosen].sum()) / total if total > 0 else 1.0

    @property
    def table(self) -> dict[str, npt.NDArray[np.generic]]:
        """The items to check as columns: audit marks those that were chosen at random."""
        return {
            "item": self.items[self.chosen],
            "doubt": self.doubt[self.chosen],
            "audit": self.audit,
        }


def escalate(
    data: Mixed, pooled: Pooled, *, budget: int | None = None, seed: int = 0
) -> Escalation:
    """Return which items people should check, the most doubtful first.

    Without a budget, those that do nearly as much as all.
    """
    free = np.flatnonzero(~data.known & (data.n_judges > 0))
    s = pooled.predicted[free]
    top = s.max(axis=1)
    gain = np.maximum(_after_answer(s) - top, 0)
    order = np.lexsort((free, top.round(12)))
    free, top, gain = free[order], top[order], gain[order]
    cumulative, total = np.concatenate([[0.0], np.cumsum(gain)]), float(gain.sum())
    gained = cumulative / total if total > 0 else np.ones(len(cumulative))
    enough = int(np.searchsorted(gained, _ENOUGH))
    count = min(enough if budget is None else budget, len(free))
    positions, audit = _with_audit(len(free), count, seed)
    return Escalation(
        items=data.people.items[free],
        doubt=1 - top,
        gain=gain,
        gained=gained,
        enough=enough,
        chosen=positions,
        audit=audit,
        n_seed=int(data.known.sum()),
    )


def _after_answer(s: Floats) -> Floats:
    """Return the expected probability of the label after one answer: (item)."""
    out = np.zeros(len(s))
    for label in range(s.shape[1]):
        after = s.copy()
        after[:, label] += 1
        out += s[:, label] * after.max(axis=1) / 2
    return out


def _with_audit(n_items: int, count: int, seed: int) -> tuple[Integers, npt.NDArray[np.bool_]]:
    """Return positions: the first ones, and a tenth of the count at random from all."""
    n_random = math.ceil(_AUDIT * count) if count < n_items else 0
    drawn = np.random.default_rng(seed).permutation(n_items)[:n_random]
    most_doubtful = np.setdiff1d(np.arange(n_items), drawn)[: count - n_random]
    positions = np.union1d(drawn, most_doubtful)
    everything = count >= n_items
    return positions, np.isin(positions, drawn) | everything
