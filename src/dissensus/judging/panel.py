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

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from ..base.arrays import Floats, Integers, count_up
from ..base.names import as_names
from ..base.storage import as_plain
from ..base.tables import Table
from ..pages import charts
from ..pages.charts import Figure
from .clusters import by_cluster, cells, known_mean, known_means, n_clusters, quantiles, resampled
from .mixed import Mixed, expected_share, is_first, unique_majority, weighted_votes
from .question import Question, names_axis, shortened, too_few, whole_percent

_MIN_ITEMS = 50  # items with a target
_MIN_COMMON = 30  # items of a pair of people
_MAX_CELLS = 40  # judges in a heat map
_WRITTEN = 12  # judges up to which correlations are written into the cells
_NO_LINES = ("ticks", "domain", "grid", "labelOverlap")
_MOST_PAIRS = 2_000_000  # pairs of people's labels; beyond, items are sampled


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class PanelWorth(Question):
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
    from_truth
        Whether classes are known, so that no target is people's majority in doubt.
    people
        How many people the panel counts for on an item; NaN where that is not known.
    """

    name: ClassVar[str] = "panel"
    title: ClassVar[str] = "What is the panel worth?"

    judges: tuple[str, ...]
    n_items: int
    correlation: Floats
    rho: float = math.nan
    worth: float = math.nan
    low: float = math.nan
    high: float = math.nan
    people_rho: float = math.nan
    shared: bool = False
    accuracy: float = math.nan
    best: float = math.nan
    best_judge: str = ""
    within: float = math.nan
    between: float = math.nan
    from_truth: bool = False
    people: float = math.nan

    @property
    def tables(self) -> Mapping[str, Table]:
        """The correlation of every two judges' errors."""
        names, above = as_names(self.judges), np.triu_indices(len(self.judges), 1)
        pairs = {"one": names[above[0]], "other": names[above[1]]}
        return {"correlation": {**pairs, "correlation": self.correlation[above]}}

    @property
    def sentences(self) -> tuple[str, ...]:
        """How many independent judges and people it is worth, and why."""
        if math.isnan(self.worth):
            return (f"{self.title} {too_few(self.n_items, _MIN_ITEMS)}",)
        count, worth = len(self.judges), judges_in_words(self.worth)
        independent = f"worth about {worth} independent ones ({self.low:.1f} to {self.high:.1f})"
        why = mistakes = ""
        if self.shared or (math.isnan(self.people_rho) and self.from_truth and self.rho > 0.1):
            mistakes = "make the same mistakes: they "
        elif self.worth <= 0.9 * count and not math.isnan(self.people_rho):
            why = ", but people's errors are as alike, because items are in doubt"
        people = ""
        if not math.isnan(self.people):
            people = f"; on an item, about {people_in_words(self.people)}"
        sentences = [f"Your {count} judges {mistakes}are {independent}{why}{people}."]
        if self.best > self.accuracy + 0.005:
            sentences.append(
                f"The majority of the panel is right on {whole_percent(self.accuracy)} of items, "
                f"its best judge ({self.best_judge}) on {whole_percent(self.best)}."
            )
        if not math.isnan(self.within) and not math.isnan(self.between):
            sentences.append(
                f"Errors of two judges of one family have a correlation of {self.within:.2f}, of "
                f"two families {self.between:.2f}."
            )
        return tuple(sentences)

    @property
    def figures(self) -> Mapping[str, Figure]:
        """The correlations of judges' errors as a heat map, unless there are too many."""
        drawn = not math.isnan(self.rho) and len(self.judges) <= _MAX_CELLS
        return {"correlation": _figure(self)} if drawn else {}

    def as_dict(self) -> dict[str, Any]:
        """Return its numbers, ready for JSON."""
        own = ("notes", "from_truth", "people")
        return {name: value for name, value in as_plain(self).items() if name not in own}


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
    if n_items < _MIN_ITEMS:
        unknown = np.full((len(names), len(names)), np.nan)
        return PanelWorth(judges=names, n_items=n_items, correlation=unknown)
    drawn = resampled(data.cluster, resamples, seed)
    sums, shape = _pair_sums(error, data.cluster)
    matrix = _as_matrix(_correlations(sums.sum(axis=0)[None], shape)[0], len(names))
    rho = mean_above(matrix)
    resampled_rho = known_means(_correlations(drawn @ sums, shape))
    low, high = quantiles(effective_number(len(names), resampled_rho), confidence)
    people_rho, resampled_people_rho = _people_correlation(data, drawn, seed)
    least, _ = quantiles(resampled_rho - resampled_people_rho, confidence)
    accuracy, best, best_judge = math.nan, math.nan, ""
    if not data.numeric:
        accuracy, best, best_judge = _accuracies(data, error, names)
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
        shared=least > 0,
        accuracy=accuracy,
        best=best,
        best_judge=best_judge,
        within=within,
        between=between,
        from_truth=bool((data.truth >= 0).any()),
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
    return known_mean(matrix[np.triu_indices(len(matrix), 1)])


def _errors(data: Mixed) -> Floats:
    """Return the error of every judge, NaN without an answer or a target: (item, judge)."""
    if data.numeric:
        values = [data.judge_value(judge) for judge in range(data.judges.n_annotators)]
        return np.stack(values, axis=1) - data.target_value[:, None]
    out = np.full((data.n_items, data.judges.n_annotators), np.nan)
    right = np.eye(data.n_classes)[data.majority]
    for judge, repeats in enumerate(data.judge_repeats):
        usable = (data.majority >= 0) & (repeats[0].label >= 0 if repeats else False)
        out[usable, judge] = 1 - expected_share(right, repeats)[usable]
    return out


def _pair_sums(error: Floats, cluster: Integers) -> tuple[Any, int]:
    """Return sums for the correlations of all pairs: (cluster, six sums of every pair)."""
    first, second = np.triu_indices(error.shape[1], 1)
    present = (~np.isnan(error)).astype(float)
    value = np.nan_to_num(error)
    sums = np.empty((n_clusters(cluster), 6, len(first)), dtype=np.float32)
    for pair, (i, j) in enumerate(zip(first.tolist(), second.tolist(), strict=True)):
        x, y, shared = value[:, i], value[:, j], present[:, i] * present[:, j]
        columns = (shared, x * shared, y * shared, x * x * shared, y * y * shared, x * y * shared)
        for row, column in enumerate(by_cluster(cluster, *columns)):
            sums[:, row, pair] = column
    return sums.reshape(len(sums), -1), len(first)


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
    nothing = math.nan, np.full(len(drawn), np.nan)
    if data.numeric:
        return nothing
    people, usable = data.people, data.n_people >= 3
    pairs_of = np.where(usable, data.n_people * (data.n_people - 1) // 2, 0)
    if pairs_of.sum() > _MOST_PAIRS:
        order = np.random.default_rng(seed).permutation(people.n_items)
        usable[order[np.cumsum(pairs_of[order]) > _MOST_PAIRS]] = False
    # Of a person who answered again, the first answer.
    people = people.keep(usable[people.item] & is_first(people))
    item, person = people.item.astype(np.int64), people.annotator.astype(np.int64)
    label, votes = people.label.astype(np.int64), weighted_votes(people)
    after = np.repeat(people.index[1:], people.labels_per_item) - np.arange(len(people)) - 1
    first = np.repeat(np.arange(len(people)), after)
    second = first + 1 + count_up(after)
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
    width = int(often.sum())
    columns = (np.ones(len(x)), x, y, x * x, y * y, x * y)
    matrix = cells(
        np.tile(data.cluster[item[first]], 6),
        np.concatenate([pair + width * row for row in range(6)]),
        np.concatenate(columns),
        (n_clusters(data.cluster), 6 * width),
    )
    correlations = _correlations(np.asarray(matrix.sum(axis=0))[None], width)[0]
    if np.isnan(correlations).all():
        return nothing
    mean = known_means(_correlations(drawn @ matrix, width))
    return known_mean(correlations), np.nan_to_num(mean)


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
    return known_mean(values[same_family]), known_mean(values[~same_family])


def judges_in_words(worth: float) -> str:
    """Return a number of judges: whole where it is close to one.

    >>> judges_in_words(2.04), judges_in_words(1.52)
    ('2', '1.5')
    """
    return f"{worth:.0f}" if abs(worth - round(worth)) < 0.1 else f"{worth:.1f}"


def people_in_words(worth: float) -> str:
    """Return a number of people, likewise."""
    words = judges_in_words(worth)
    return "1 person" if words == "1" else f"{words} people"


def _figure(panel: PanelWorth) -> Figure:
    short = [shortened(name, 32) for name in panel.judges]
    names = short if len(set(short)) == len(short) else list(panel.judges)
    rows = [
        {"one": names[i], "other": names[j], "correlation": round(float(correlation), 3)}
        for (i, j), correlation in np.ndenumerate(panel.correlation)
        if i != j and not math.isnan(correlation)
    ]
    place = names_axis(names, 140, **dict.fromkeys(_NO_LINES, False))
    place["scale"] = {"domain": names}
    scale = {"domain": [-1, 0, 1], "range": ["#2166ac", "#f7f7f7", "#b2182b"]}
    encoding: dict[str, Any] = {"x": {**place, "field": "one"}, "y": {**place, "field": "other"}}
    colour = {
        "color": charts.number("correlation", scale=scale, legend={"title": None}),
        "tooltip": charts.tooltip(one="", other="", correlation=".2f"),
    }
    layers: list[dict[str, Any]] = [{"mark": {"type": "rect"}, "encoding": {**encoding, **colour}}]
    written = len(names) <= _WRITTEN
    if written:
        dark = {"test": "abs(datum.correlation) > 0.65", "value": "white"}
        text = {
            "text": charts.number("correlation", format=".2f"),
            "color": {"condition": dark, "value": "#222"},
        }
        mark = {"type": "text", "fontSize": 11}
        layers.append({"mark": mark, "encoding": {**encoding, **text}})
    of_people = f", over pairs of people {panel.people_rho:.2f}"
    words = f"The mean over pairs of judges is {panel.rho:.2f}"
    words += "." if math.isnan(panel.people_rho) else f"{of_people}."
    height = max((32 if written else 18) * len(names), 100)
    spec = charts.chart(rows, height=height, layer=layers)
    return Figure("Correlation of errors", words, spec)
