"""Scores of recovered distributions, with a floor, a ceiling and bootstrap intervals.

The floor is one distribution for all items. The ceiling is the same people asked again: as many
votes drawn from the shares of every item, scored as a prediction, averaged over several draws. A
score can only be judged between the two.

Every score is a function of sums over items, so a bootstrap over items only needs these sums under
other weights. Spearman's ranks are those of all items in every resample.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.stats import rankdata

from ...answers.annotations import Annotations, Floats
from ...base.names import as_names
from ...errors import DataError
from ...metrics import Score, ranks
from ...result import Predictions, Values
from . import base as measures
from .base import class_distances

LOWER_IS_BETTER = (
    "manhattan",
    "jensen_shannon",
    "unbiased_squared",
    "cross_entropy",
    "kl",
    "wasserstein",
    "expected_distance",
    "energy_distance",
    "entropy_gap",
    "perspectivist_error",
    "calibration_error",
)
_CEILING_DRAWS = 20
_BINS = 10
_BATCH = 64  # bootstrap samples in memory at a time
_CORRELATIONS = ("entropy_pearson", "entropy_spearman")


@dataclass(frozen=True)
class SoftEvaluation:
    """Scores by name, with those of the floor and the ceiling.

    Attributes
    ----------
    scores
        Each with its bootstrap interval; NaN where it is not defined.
    floor, ceiling
        Of one distribution for all items, and of people asked again.
    n_items, votes_per_item
        Number of items and mean number of votes.
    n_without_votes, n_without_prediction
        Items that were left out because they have only a prediction, or only votes.
    """

    scores: dict[str, Score]
    floor: dict[str, float]
    ceiling: dict[str, float]
    n_items: int
    votes_per_item: float
    resamples: int
    confidence: float
    n_without_votes: int = 0
    n_without_prediction: int = 0

    def as_dict(self) -> dict[str, Any]:
        """Return plain dictionaries and numbers, ready for JSON."""
        scores = {
            name: {key: plain_number(value) for key, value in score._asdict().items()}
            for name, score in self.scores.items()
        }
        plain = {
            side: {name: plain_number(value) for name, value in getattr(self, side).items()}
            for side in ("floor", "ceiling")
        }
        return {**vars(self), "scores": scores, **plain}


def plain_number(value: float) -> float | None:
    """Return a number that JSON can hold: None for NaN."""
    return None if math.isnan(value) else value


def soft_scores(
    p: ArrayLike,
    votes: ArrayLike,
    *,
    ordered: bool = False,
    distance: str | ArrayLike | None = None,
) -> dict[str, float]:
    """Return every score of distributions against votes, both (item, class).

    `ordered` and `distance` are those of `evaluate_shares`.

    >>> scores = soft_scores([[0.5, 0.5], [1, 0]], [[1, 1], [3, 0]])
    >>> scores["manhattan"], scores["accuracy"], scores["entropy_pearson"].__round__(6)
    (0.0, 0.75, 1.0)
    """
    p, votes = _validated(p, votes)
    names, terms = _terms_per_item(p, votes, ordered, distance)
    scores = _scores(terms.sum(axis=0)[None], names, votes.shape[1])
    return {name: float(value[0]) for name, value in scores.items()}


def evaluate_shares(
    p: ArrayLike,
    votes: ArrayLike,
    *,
    floor: ArrayLike | None = None,
    ordered: bool = False,
    distance: str | ArrayLike | None = None,
    resamples: int = 1000,
    confidence: float = 0.95,
    seed: int = 0,
) -> SoftEvaluation:
    """Score distributions against the votes of annotators.

    Parameters
    ----------
    p
        Recovered distributions: (item, class).
    votes
        Vote counts: (item, class); every item has at least one vote.
    floor
        One distribution for all items: (class). By default the shares of all these votes, a
        strong floor, since it uses the votes themselves.
    ordered
        Whether classes are ordered: adds the Wasserstein distance, and their distance is linear.
    distance
        Distances between classes: `linear`, `circle` or a matrix (class, class). Adds the expected
        distance and the energy distance; the perspectivist error is then the mean distance of the
        class with the least expected distance.
    resamples, confidence
        Number of bootstrap samples of items, and the confidence level of the intervals.
    seed
        Random seed of the bootstrap and of the ceiling.
    """
    p, votes = _validated(p, votes)
    random = np.random.default_rng(seed)
    options: dict[str, Any] = {"ordered": ordered, "distance": distance}
    names, terms = _terms_per_item(p, votes, **options)
    scores = _scores(_bootstrap_sums(terms, resamples, random), names, votes.shape[1])
    constant = measures.shares_of(votes).mean(axis=0) if floor is None else np.asarray(floor, float)
    return SoftEvaluation(
        scores={name: Score.from_samples(values, confidence) for name, values in scores.items()},
        floor=soft_scores(np.broadcast_to(constant, votes.shape), votes, **options),
        ceiling=ceiling_scores(votes, random=random, **options),
        n_items=len(votes),
        votes_per_item=float(votes.sum(axis=1).mean()),
        resamples=resamples,
        confidence=confidence,
    )


def evaluate_named(
    predicted: Predictions | Values, annotations: Annotations, **options: Any
) -> SoftEvaluation:
    """Score predicted probabilities against annotations, matched by the names of items.

    Further arguments are those of `evaluate_shares`. Classes on one side only have probability 0,
    or no votes.
    """
    if isinstance(predicted, Values) or predicted.posterior is None:
        raise DataError("no p:<class> columns: shares are scored by probabilities, not by labels")
    row = {name: row for row, name in enumerate(predicted.items.tolist())}
    column = {name: code for code, name in enumerate(predicted.classes.tolist())}
    annotated = np.flatnonzero(annotations.labels_per_item)
    scored = [item for item in annotated.tolist() if annotations.items[item] in row]
    if not scored:
        raise DataError("none of the annotated items is predicted; are they named alike?")
    for name in annotations.classes.tolist():
        column.setdefault(name, len(column))
    if options.get("ordered"):  # steps are between neighbours
        column = dict(zip(column, ranks(as_names(list(column))).tolist(), strict=True))
    p, votes = np.zeros((2, len(scored), len(column)))
    p[:, [column[name] for name in predicted.classes.tolist()]] = predicted.posterior[
        [row[annotations.items[item]] for item in scored]
    ]
    votes[:, [column[name] for name in annotations.classes.tolist()]] = annotations.votes()[scored]
    return replace(
        evaluate_shares(p, votes, **options),
        n_without_votes=len(row) - len(scored),
        n_without_prediction=len(annotated) - len(scored),
    )


def _validated(p: ArrayLike, votes: ArrayLike) -> tuple[Floats, Floats]:
    p, votes = np.asarray(p, dtype=np.float64), np.asarray(votes, dtype=np.float64)
    if p.shape != votes.shape or p.ndim != 2 or not len(p):
        raise DataError(f"distributions {p.shape} and votes {votes.shape} do not match")
    wrong = ~(np.abs(p.sum(axis=1) - 1) < 1e-3) | (p < 0).any(axis=1)
    if wrong.any():
        row = int(np.flatnonzero(wrong)[0])
        raise DataError(f"row {row} of the distributions is none: {p[row].tolist()}")
    return p, votes


def _terms_per_item(
    p: Floats, votes: Floats, ordered: bool, distance: str | ArrayLike | None
) -> tuple[tuple[str, ...], Floats]:
    """Return what every item adds to the sums, and the names of the first, which are means.

    The columns are those means, moments of entropies and of their ranks, calibration gaps by bin,
    hits and occurrences by class, whether there are several votes, and 1.
    """
    q = measures.shares_of(votes)
    predicted, most = measures.most_probable(p), measures.most_probable(q)
    contested = votes.sum(axis=1) > 1
    means = {
        "manhattan": measures.manhattan(p, q),
        "jensen_shannon": measures.jensen_shannon(p, q),
        "unbiased_squared": np.where(contested, measures.unbiased_squared(p, votes), 0),
        "cross_entropy": measures.cross_entropy(q, p),
        "kl": measures.kl(q, p),
        "entropy_gap": np.abs(measures.entropy(p) - measures.entropy(q)),
        "accuracy": (predicted * most).sum(axis=1),
        "perspectivist_error": measures.perspectivist_error(predicted, q),
    }
    if ordered:
        means["wasserstein"] = measures.wasserstein(p, q)
    if ordered or distance is not None:
        distances = class_distances("linear" if distance is None else distance, p.shape[1])
        nearest = measures.most_probable(-(p @ distances))
        means["perspectivist_error"] = measures.perspectivist_error(nearest, q, distance=distances)
        means["expected_distance"] = measures.expected_distance(p, q, distances)
        means["energy_distance"] = measures.energy_distance(p, q, distances)
    entropies = measures.entropy(p), measures.entropy(q)
    pairs = [entropies, (rankdata(entropies[0]), rankdata(entropies[1]))]
    centred = [((x - x.mean()), (y - y.mean())) for x, y in pairs]
    moments = [part for x, y in centred for part in (x, y, x * x, y * y, x * y)]
    bins = measures.bins_of(p, _BINS)
    gaps = [((p - q) * (bins == number)).sum(axis=1) for number in range(_BINS)]
    columns = [*means.values(), *moments, *gaps, *(2 * predicted * most).T, *(predicted + most).T]
    return tuple(means), np.stack([*columns, contested, np.ones(len(p))], axis=1)


def _bootstrap_sums(terms: Floats, resamples: int, random: np.random.Generator) -> Floats:
    """Return the sums over all items, then those of the bootstrap samples: (1 + sample, term)."""
    n_items = len(terms)
    sums = [terms.sum(axis=0)[None]]
    for start in range(0, resamples, _BATCH):
        size = min(_BATCH, resamples - start)
        sums.append(random.multinomial(n_items, np.full(n_items, 1 / n_items), size) @ terms)
    return np.concatenate(sums)


def _scores(sums: Floats, names: tuple[str, ...], n_classes: int) -> dict[str, Floats]:
    """Return every score from sums over items: (sample)."""
    n_contested, total = sums[:, -2], sums[:, -1]
    scores = dict(zip(names, (sums[:, : len(names)] / total[:, None]).T, strict=True))
    with np.errstate(invalid="ignore"):
        scores["unbiased_squared"] = scores["unbiased_squared"] * total / n_contested
    cuts = np.cumsum([len(names), 5, 5, _BINS, n_classes])
    pearson, spearman, gaps, hits, occurrences = np.split(sums[:, :-2], cuts, axis=1)[1:]
    for name, moments in zip(_CORRELATIONS, (pearson, spearman), strict=True):
        scores[name] = _correlation(moments / total[:, None])
    scores["calibration_error"] = np.abs(gaps).sum(axis=1) / (total * n_classes)
    f1 = np.divide(hits, occurrences, out=np.zeros_like(hits), where=occurrences > 0)
    scores["macro_f1"] = f1.sum(axis=1) / (occurrences > 0).sum(axis=1)
    return scores


def _correlation(mean: Floats) -> Floats:
    """Return correlations from the means of x, y, xx, yy, xy; NaN where one is constant."""
    x, y, xx, yy, xy = mean.T
    variance = np.maximum(xx - x * x, 0) * np.maximum(yy - y * y, 0)
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(variance > 1e-18, (xy - x * y) / np.sqrt(variance), np.nan)


def ceiling_scores(
    votes: Floats,
    *,
    random: np.random.Generator,
    ordered: bool = False,
    distance: str | ArrayLike | None = None,
) -> dict[str, float]:
    """Return mean scores of the same people asked again.

    `ordered` and `distance` are those of `evaluate_shares`. For scores with logarithms, one vote
    spread as all votes is added to theirs.
    """
    pooled = measures.shares_of(votes).mean(axis=0)
    draws = [measures.resample_votes(votes, random) for _ in range(_CEILING_DRAWS)]
    plain = [
        soft_scores(measures.shares_of(drawn), votes, ordered=ordered, distance=distance)
        for drawn in draws
    ]
    smoothed = [soft_scores(measures.shares_of(drawn + pooled), votes) for drawn in draws]
    scores = {name: _mean([row[name] for row in plain]) for name in plain[0]}
    return scores | {
        name: _mean([row[name] for row in smoothed]) for name in ("cross_entropy", "kl")
    }


def _mean(values: list[float]) -> float:
    """Return the mean of the numbers that are not NaN."""
    finite = [value for value in values if not math.isnan(value)]
    return float(np.mean(finite)) if finite else math.nan
