"""Scores of recovered distributions, each beside a floor and a ceiling, with intervals.

The floor is one distribution for all items. The ceiling is the same people asked again: as many
votes drawn from the shares on every item, scored as a prediction, a mean over several draws. What
a score is worth shows only between the two.

Every score is a function of sums over items, so a bootstrap over items needs only those sums under
other weights. Spearman's ranks are those of all items in every draw.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.stats import rankdata

from .._relation import Floats
from ..annotations import Annotations
from ..errors import DataError
from ..metrics import Score
from ..result import Predictions, Values
from . import measures

__all__ = [
    "LOWER_IS_BETTER",
    "SoftEvaluation",
    "evaluate_named",
    "evaluate_shares",
    "people_again",
    "soft_scores",
]

LOWER_IS_BETTER = (
    "manhattan",
    "jensen_shannon",
    "unbiased_squared",
    "cross_entropy",
    "kl",
    "wasserstein",
    "entropy_gap",
    "perspectivist_error",
    "calibration_error",
)
_AGAIN = 20  # how often people are asked again for the ceiling
_BINS = 10
_DRAWS = 64  # bootstrap samples at a time
_CORRELATED = ("entropy_pearson", "entropy_spearman")


@dataclass(frozen=True)
class SoftEvaluation:
    """Scores by name, and those of the floor and the ceiling.

    Attributes
    ----------
    scores
        Each with its bootstrap interval; NaN where it is not defined.
    floor, ceiling
        Of one distribution for all, and of people asked again.
    n_items, votes_per_item
        What they rest on.
    n_without_votes, n_without_prediction
        Items left aside because the other side does not know them.
    """

    scores: dict[str, Score]
    floor: dict[str, float]
    ceiling: dict[str, float]
    n_items: int
    votes_per_item: float
    resamples: int
    level: float
    n_without_votes: int = 0
    n_without_prediction: int = 0

    def as_dict(self) -> dict[str, Any]:
        """Return plain dictionaries and numbers, ready for JSON."""

        def plain(value: float) -> float | None:
            return None if math.isnan(value) else value

        return {
            **vars(self),
            "scores": {
                name: {key: plain(value) for key, value in score._asdict().items()}
                for name, score in self.scores.items()
            },
            "floor": {name: plain(value) for name, value in self.floor.items()},
            "ceiling": {name: plain(value) for name, value in self.ceiling.items()},
        }


class _Numbers(NamedTuple):
    """What every item adds to the sums: (item, number); the names of the first are means."""

    names: tuple[str, ...]
    values: Floats


def soft_scores(p: ArrayLike, votes: ArrayLike, *, ordered: bool = False) -> dict[str, float]:
    """Return every score of distributions against votes, both (item, class).

    >>> told = soft_scores([[0.5, 0.5], [1, 0]], [[1, 1], [3, 0]])
    >>> told["manhattan"], told["accuracy"], told["entropy_pearson"].__round__(6)
    (0.0, 0.75, 1.0)
    """
    posterior, counts = _checked(p, votes)
    numbers = _numbers(posterior, counts, ordered)
    found = _scores(numbers.values.sum(axis=0)[None], numbers.names, counts.shape)
    return {name: float(value[0]) for name, value in found.items()}


def evaluate_shares(
    p: ArrayLike,
    votes: ArrayLike,
    *,
    floor: ArrayLike | None = None,
    ordered: bool = False,
    resamples: int = 1000,
    level: float = 0.95,
    seed: int = 0,
) -> SoftEvaluation:
    """Score distributions against the votes of people.

    Parameters
    ----------
    p
        Recovered distributions: (item, class).
    votes
        How many people said what: (item, class); every item has at least one vote.
    floor
        One distribution for all items: (class). By default the shares of all these votes, which
        is a strong floor: it has seen them.
    ordered
        Whether classes stand in order: adds the Wasserstein distance, and counts steps.
    resamples, level
        Bootstrap samples of items, and the share that an interval covers.
    seed
        Decides these, and the votes of people asked again.
    """
    posterior, counts = _checked(p, votes)
    random = np.random.default_rng(seed)
    numbers = _numbers(posterior, counts, ordered)
    found = _scores(_sums(numbers.values, resamples, random), numbers.names, counts.shape)
    pooled = measures.shares_of(counts).mean(axis=0)
    constant = pooled if floor is None else np.asarray(floor, dtype=np.float64)
    low = soft_scores(np.broadcast_to(constant, counts.shape), counts, ordered=ordered)
    return SoftEvaluation(
        {name: _score(value, level) for name, value in found.items()},
        low,
        people_again(counts, ordered=ordered, random=random),
        len(counts),
        float(counts.sum(axis=1).mean()),
        resamples,
        level,
    )


def evaluate_named(
    predicted: Predictions | Values, annotations: Annotations, **more: Any
) -> SoftEvaluation:
    """Score predictions with beliefs against annotations, matched by the names of items.

    What else there is goes to `evaluate_shares`. Classes that only one side knows have no belief,
    or no votes.
    """
    if isinstance(predicted, Values) or predicted.posterior is None:
        raise DataError("no p:<class> columns: shares are scored by probabilities, not by labels")
    position = {name: row for row, name in enumerate(predicted.items.tolist())}
    column = {name: code for code, name in enumerate(predicted.classes.tolist())}
    voted = np.flatnonzero(annotations.labels_per_item)
    known = [item for item in voted.tolist() if annotations.items[item] in position]
    if not known:
        raise DataError("none of the annotated items is predicted; are they named alike?")
    every = [*column, *(name for name in annotations.classes.tolist() if name not in column)]
    p = np.zeros((len(known), len(every)))
    p[:, : len(column)] = predicted.posterior[[position[annotations.items[item]] for item in known]]
    votes = np.zeros_like(p)
    votes[:, [every.index(name) for name in annotations.classes.tolist()]] = annotations.votes()[
        known
    ]
    found = evaluate_shares(p, votes, **more)
    return replace(
        found,
        n_without_votes=len(position) - len(known),
        n_without_prediction=len(voted) - len(known),
    )


def _checked(p: ArrayLike, votes: ArrayLike) -> tuple[Floats, Floats]:
    posterior, counts = np.asarray(p, dtype=np.float64), np.asarray(votes, dtype=np.float64)
    if posterior.shape != counts.shape or posterior.ndim != 2 or not len(posterior):
        raise DataError(f"distributions {posterior.shape} and votes {counts.shape} do not match")
    wrong = ~(np.abs(posterior.sum(axis=1) - 1) < 1e-3) | (posterior < 0).any(axis=1)
    if wrong.any():
        at = int(np.flatnonzero(wrong)[0])
        raise DataError(f"row {at} of the distributions is none: {posterior[at].tolist()}")
    return posterior, counts


def _numbers(p: Floats, votes: Floats, ordered: bool) -> _Numbers:
    q = measures.shares_of(votes)
    chosen, most = measures.best(p), measures.best(q)
    several = votes.sum(axis=1) > 1
    means = {
        "manhattan": measures.manhattan(p, q),
        "jensen_shannon": measures.jensen_shannon(p, q),
        "unbiased_squared": np.where(several, measures.unbiased_squared(p, votes), 0),
        "cross_entropy": measures.cross_entropy(q, p),
        "kl": measures.kl(q, p),
        "entropy_gap": np.abs(measures.entropy(p) - measures.entropy(q)),
        "accuracy": (chosen * most).sum(axis=1),
        "perspectivist_error": measures.perspectivist_error(chosen, q, ordered=ordered),
    }
    if ordered:
        means["wasserstein"] = measures.wasserstein(p, q)
    one, other = measures.entropy(p), measures.entropy(q)
    pairs = [(one, other), (rankdata(one), rankdata(other))]
    centred = [((x - x.mean()), (y - y.mean())) for x, y in pairs]
    moments = [part for x, y in centred for part in (x, y, x * x, y * y, x * y)]
    bins = measures.bins_of(p, _BINS)
    gaps = [((p - q) * (bins == each)).sum(axis=1) for each in range(_BINS)]
    columns = [*means.values(), *moments, *gaps, *(2 * chosen * most).T, *(chosen + most).T]
    return _Numbers(tuple(means), np.stack([*columns, several, np.ones(len(p))], axis=1))


def _sums(values: Floats, resamples: int, random: np.random.Generator) -> Floats:
    """Return the sums of all items, and behind them those of bootstrap samples."""
    n_items = len(values)
    found = [values.sum(axis=0)[None]]
    for at in range(0, resamples, _DRAWS):
        size = min(_DRAWS, resamples - at)
        weight = random.multinomial(n_items, np.full(n_items, 1 / n_items), size)
        found.append(weight @ values)
    return np.concatenate(found)


def _scores(sums: Floats, names: tuple[str, ...], shape: tuple[int, ...]) -> dict[str, Floats]:
    """Return every score from sums over items: (sample)."""
    n_classes = shape[1]
    several, total = sums[:, -2], sums[:, -1]
    found = dict(zip(names, (sums[:, : len(names)] / total[:, None]).T, strict=True))
    with np.errstate(invalid="ignore"):
        found["unbiased_squared"] = found["unbiased_squared"] * total / several
    cuts = np.cumsum([len(names), 5, 5, _BINS, n_classes])
    pearson, spearman, gaps, hits, occurs = np.split(sums[:, :-2], cuts, axis=1)[1:]
    for name, part in zip(_CORRELATED, (pearson, spearman), strict=True):
        found[name] = _correlation(part / total[:, None])
    found["calibration_error"] = np.abs(gaps).sum(axis=1) / (total * n_classes)
    f1 = np.divide(hits, occurs, out=np.zeros_like(hits), where=occurs > 0)
    found["macro_f1"] = f1.sum(axis=1) / (occurs > 0).sum(axis=1)
    return found


def _correlation(mean: Floats) -> Floats:
    """Return correlations from the means of x, y, xx, yy, xy; NaN where one does not vary."""
    x, y, xx, yy, xy = mean.T
    spread = np.maximum(xx - x * x, 0) * np.maximum(yy - y * y, 0)
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(spread > 1e-18, (xy - x * y) / np.sqrt(spread), np.nan)


def people_again(
    votes: Floats, *, random: np.random.Generator, ordered: bool = False
) -> dict[str, float]:
    """Return mean scores of the same people asked again.

    Where logarithms are taken, one vote spread as all votes is added to theirs: nobody would bet
    everything on five people.
    """
    pooled = measures.shares_of(votes).mean(axis=0)
    drawn = [measures.asked_again(votes, random) for _ in range(_AGAIN)]
    found = [soft_scores(measures.shares_of(each), votes, ordered=ordered) for each in drawn]
    careful = [soft_scores(measures.shares_of(each + pooled), votes) for each in drawn]
    told = {name: _mean([one[name] for one in found]) for name in found[0]}
    return told | {name: _mean([one[name] for one in careful]) for name in ("cross_entropy", "kl")}


def _mean(values: list[float]) -> float:
    """Return the mean of what is known, NaN where nothing is."""
    known = [value for value in values if not math.isnan(value)]
    return float(np.mean(known)) if known else math.nan


def _score(values: Floats, level: float) -> Score:
    value, drawn = float(values[0]), values[1:][~np.isnan(values[1:])]
    if math.isnan(value) or not len(drawn):
        return Score(value, math.nan, math.nan)
    low, high = np.quantile(drawn, [(1 - level) / 2, (1 + level) / 2])
    return Score(value, float(low), float(high))
