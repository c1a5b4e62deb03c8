"""How many independent judges a panel is worth.

The error of judge m on item i is e_mi = [f_mi ≠ t_i], where t is the known class or the one that
most people chose (items where people are tied are left out); for numbers, e_mi = f_mi - t_i. With
rho the mean correlation of the errors of two judges,

    K_eff = K / (1 + (K - 1) max(rho, 0))

is the effective number of K judges. Part of rho is the target: where people's majority is in doubt,
people's errors correlate, too. So the same figure of people is reported: the errors of two of them
against the majority of the others. Judges share errors only where theirs is clearly above it.

    L. Kish. Survey sampling. Wiley, 1965 (the design effect of a cluster).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..base.arrays import Floats, Integers
from .mixed import Mixed, by_cluster, cells, resampled, unique_majority

MIN_ITEMS = 50  # items with a target
_MIN_COMMON = 30  # items of a pair of people
_MOST_PAIRS = 2_000_000  # pairs of people's labels; beyond, items are sampled


@dataclass(frozen=True, eq=False)
class PanelWorth:
    """What a panel of judges is worth.

    Attributes
    ----------
    judges
        The judges.
    n_items
        Items with a target; below 50 nothing is computed.
    correlation
        Correlation of errors: (judge, judge), NaN where one of them makes none.
    rho, worth, low, high
        The mean correlation, and the effective number of judges with a confidence interval.
    people_rho
        The mean correlation of people's errors; NaN where it cannot be computed.
    shared
        Whether judges' errors are clearly more correlated than people's.
    accuracy, best, best_judge
        Accuracy of the panel's majority, of its best judge, and who that is; NaN for numbers.
    within, between
        Mean correlation of two judges of one family, and of two families.
    """

    judges: tuple[str, ...]
    n_items: int
    correlation: Floats
    rho: float
    worth: float
    low: float
    high: float
    people_rho: float
    shared: bool
    accuracy: float
    best: float
    best_judge: str
    within: float
    between: float


def panel(
    data: Mixed,
    *,
    families: Mapping[str, str] | None = None,
    resamples: int = 200,
    confidence: float = 0.95,
    seed: int = 0,
) -> PanelWorth | None:
    """Return what the panel of all judges is worth; nothing for fewer than two judges."""
    names = tuple(data.judge_names)
    if len(names) < 2:
        return None
    error = _errors(data)
    n_items = int((~np.isnan(error).all(axis=1)).sum())
    nan = float("nan")
    if n_items < MIN_ITEMS:
        return PanelWorth(
            judges=names,
            n_items=n_items,
            correlation=np.full((len(names), len(names)), nan),
            rho=nan,
            worth=nan,
            low=nan,
            high=nan,
            people_rho=nan,
            shared=False,
            accuracy=nan,
            best=nan,
            best_judge="",
            within=nan,
            between=nan,
        )
    drawn = resampled(data.cluster, resamples, seed)
    sums, shape = _pair_sums(error, data.cluster)
    matrix = _as_matrix(_correlations(sums.sum(axis=0)[None], shape)[0], len(names))
    rho = mean_above(matrix)
    resampled_rho = np.nanmean(_correlations(drawn @ sums, shape), axis=1)
    tail = (1 - confidence) / 2
    low, high = np.quantile(effective_number(len(names), resampled_rho), [tail, 1 - tail]).tolist()
    people_rho, resampled_people_rho = _people_correlation(data, drawn, seed)
    excess = resampled_rho - resampled_people_rho
    shared = bool(np.quantile(excess, tail) > 0) if not np.isnan(people_rho) else False
    accuracy, best, best_judge = (nan, nan, "") if data.numeric else _accuracies(data, error, names)
    within, between = _by_family(matrix, [family_of(name, families) for name in names])
    return PanelWorth(
        judges=names,
        n_items=n_items,
        correlation=matrix,
        rho=rho,
        worth=float(effective_number(len(names), rho)),
        low=low,
        high=high,
        people_rho=people_rho,
        shared=shared,
        accuracy=accuracy,
        best=best,
        best_judge=best_judge,
        within=within,
        between=between,
    )


def effective_number(n_judges: int, rho: Any) -> Any:
    """Return how many independent judges so many correlated ones are worth.

    >>> [float(effective_number(6, rho)) for rho in (1.0, 0.0, -0.2)]
    [1.0, 6.0, 6.0]
    """
    return n_judges / (1 + (n_judges - 1) * np.maximum(rho, 0.0))


def family_of(name: str, families: Mapping[str, str] | None = None) -> str:
    """Return the family of a judge: as given, or what stands before `/` in model/prompt."""
    family = (families or {}).get(name)
    return family if family is not None else name.partition("/")[0]


def mean_above(matrix: Floats) -> float:
    """Return the mean of the values above the diagonal that are known."""
    values = matrix[np.triu_indices(len(matrix), 1)]
    return float(np.nanmean(values)) if (~np.isnan(values)).any() else float("nan")


def _errors(data: Mixed) -> Floats:
    """Return the error of every judge, NaN without an answer or a target: (item, judge)."""
    out = np.full((data.n_items, len(data.judge_repeats)), np.nan)
    for judge, repeats in enumerate(data.judge_repeats):
        if data.numeric:
            out[:, judge] = data.judge_value(judge) - data.target_value
            continue
        usable = (data.majority >= 0) & (repeats[0].label >= 0 if repeats else False)
        wrong = sum(
            (
                repeat.weight * ((repeat.label >= 0) & (repeat.label != data.majority))
                for repeat in repeats
            ),
            np.zeros(data.n_items),
        )
        out[usable, judge] = wrong[usable]
    return out


def _pair_sums(error: Floats, cluster: Integers) -> tuple[Any, int]:
    """Return sums for the correlations of all pairs: (cluster, six sums of every pair)."""
    first, second = np.triu_indices(error.shape[1], 1)
    present = (~np.isnan(error)).astype(float)
    value = np.nan_to_num(error)
    n_clusters = int(cluster.max(initial=-1)) + 1
    sums = np.empty((n_clusters, 6, len(first)), dtype=np.float32)
    for pair, (i, j) in enumerate(zip(first.tolist(), second.tolist(), strict=True)):
        x, y, shared = value[:, i], value[:, j], present[:, i] * present[:, j]
        columns = (shared, x * shared, y * shared, x * x * shared, y * y * shared, x * y * shared)
        for row, column in enumerate(by_cluster(cluster, *columns)):
            sums[:, row, pair] = column
    return sums.reshape(n_clusters, -1), len(first)


def _correlations(sums: Any, n_pairs: int) -> Floats:
    """Return correlations from sums: (resample, pair); NaN without variation."""
    n, x, y, xx, yy, xy = np.asarray(sums, dtype=float).reshape(-1, 6, n_pairs).swapaxes(0, 1)
    with np.errstate(invalid="ignore", divide="ignore"):
        spread = (xx - x * x / n) * (yy - y * y / n)
        correlation = (xy - x * y / n) / np.sqrt(spread)
    correlation[~(spread > 1e-9 * (1 + xx * yy))] = np.nan
    return correlation


def _as_matrix(values: Floats, size: int) -> Floats:
    matrix = np.full((size, size), np.nan)
    above = np.triu_indices(size, 1)
    matrix[above] = values
    matrix.T[above] = values
    np.fill_diagonal(matrix, 1.0)
    return matrix


def _people_correlation(data: Mixed, drawn: Floats, seed: int) -> tuple[float, Floats]:
    """Return the mean correlation of people's errors, and that of every resample."""
    nan = float("nan")
    nothing = nan, np.full(len(drawn), nan)
    if data.numeric:
        return nothing
    people = data.people
    usable = data.n_people >= 3
    pairs_of = np.where(usable, data.n_people * (data.n_people - 1) // 2, 0)
    if pairs_of.sum() > _MOST_PAIRS:
        order = np.random.default_rng(seed).permutation(people.n_items)
        usable[order[np.cumsum(pairs_of[order]) > _MOST_PAIRS]] = False
    rows = np.flatnonzero(usable[people.item])
    if not len(rows):
        return nothing
    is_first = np.concatenate([[True], ~people.repeats])[: len(people)]
    rows = rows[is_first[rows]]  # of a person who answered again, the first answer
    item, person = people.item[rows].astype(np.int64), people.annotator[rows].astype(np.int64)
    label = people.label[rows].astype(np.int64)
    size = np.bincount(item, minlength=people.n_items)
    start = np.concatenate([[0], np.cumsum(size)])[:-1]
    first = np.repeat(np.arange(len(rows)), size[item] - 1 - (np.arange(len(rows)) - start[item]))
    number = np.arange(len(first)) - np.repeat(
        np.concatenate([[0], np.cumsum(np.bincount(first, minlength=len(rows)))])[:-1],
        np.bincount(first, minlength=len(rows)),
    )
    second = first + 1 + number
    votes = np.bincount(
        item * people.n_classes + label, minlength=people.n_items * people.n_classes
    )
    votes = votes.reshape(people.n_items, people.n_classes).astype(float)
    target = np.empty(len(first), dtype=np.int64)
    for begin in range(0, len(first), 200_000):
        part = slice(begin, begin + 200_000)
        other_votes, position = votes[item[first[part]]], np.arange(len(first[part]))
        other_votes[position, label[first[part]]] -= 1
        other_votes[position, label[second[part]]] -= 1
        target[part] = unique_majority(other_votes)
    sure = target >= 0
    first, second, target = first[sure], second[sure], target[sure]
    pair = person[first] * people.n_annotators + person[second]
    names, pair = np.unique(pair, return_inverse=True)
    often = np.bincount(pair, minlength=len(names)) >= _MIN_COMMON
    if not often.any():
        return nothing
    inside = often[pair]
    first, second, target = first[inside], second[inside], target[inside]
    pair = (np.cumsum(often) - 1)[pair[inside]]
    x, y = (label[first] != target).astype(float), (label[second] != target).astype(float)
    width, n_clusters = int(often.sum()), int(data.cluster.max(initial=-1)) + 1
    columns = (np.ones(len(x)), x, y, x * x, y * y, x * y)
    matrix = cells(
        np.tile(data.cluster[item[first]], 6),
        np.concatenate([pair + width * row for row in range(6)]),
        np.concatenate(columns),
        (n_clusters, 6 * width),
    )
    correlations = _correlations(np.asarray(matrix.sum(axis=0))[None], width)[0]
    if np.isnan(correlations).all():
        return nothing
    resampled_correlations = _correlations(drawn @ matrix, width)
    finite = ~np.isnan(resampled_correlations)
    mean = np.where(finite, resampled_correlations, 0).sum(axis=1) / np.maximum(
        finite.sum(axis=1), 1
    )
    return float(np.nanmean(correlations)), mean


def _accuracies(data: Mixed, error: Floats, names: tuple[str, ...]) -> tuple[float, float, str]:
    """Return the accuracy of the panel's majority, tied classes in parts, and of its best judge."""
    items = np.flatnonzero((data.majority >= 0) & (data.n_judges > 0))
    votes = data.judge_votes[items]
    top = votes > votes.max(axis=1)[:, None] - 1e-9
    right = top[np.arange(len(items)), data.majority[items]] / top.sum(axis=1)
    with np.errstate(invalid="ignore"):
        accuracy = 1 - np.nansum(error, axis=0) / (~np.isnan(error)).sum(axis=0)
    best = int(np.nanargmax(accuracy))
    return float(right.mean()), float(accuracy[best]), names[best]


def _by_family(matrix: Floats, families: list[str]) -> tuple[float, float]:
    """Return the mean correlation within and between families."""
    first, second = np.triu_indices(len(families), 1)
    same_family = np.array([families[i] == families[j] for i, j in zip(first, second, strict=True)])
    values = matrix[first, second]
    present = ~np.isnan(values)
    nan = float("nan")
    within, between = values[present & same_family], values[present & ~same_family]
    return (
        float(within.mean()) if len(within) else nan,
        float(between.mean()) if len(between) else nan,
    )
