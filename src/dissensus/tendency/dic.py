"""DIC: whether predicted annotators agree with each other as the true ones do.

With M[k, l] the agreement of annotators k and l (Cohen's kappa, if not told otherwise) on what
they said, and M′[k, l] on what they are predicted to say,

    DIC = ‖M − M′‖ = √(2 Σ_{k<l} (M[k, l] − M′[k, l])²),   dic_rms = √(mean over pairs of squares).

DIC grows with the number of annotators; `dic_rms` can be compared between crowds. Matched, both
matrices look at the items that both annotators labelled; with `scope="all"` the predicted one
looks at all that is predicted. Pairs with fewer than `min_overlap` common items are in neither.

Nothing should be chosen by DIC. Labels of highest probability agree with each other more than
people do, so a model that errs at random, for each annotator on its own, comes nearer to M than a
better one: a head per annotator without shrinkage often has the least DIC and foresees labels
worst. Nor can DIC fall below the noise of M itself, which `split_half` and `redrawn` measure.

    L. Zhang, Z. Lian, H. Liu, T. Takebe, Y. Nakashima. QuMATL: query-based multi-annotator
    tendency learning. 2025. arXiv:2503.15237
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np

from .._relation import Floats, Integers
from ..agreement.co_annotation import CoAnnotations
from ..agreement.differences import WeightsLike, weights_to_difference
from ..agreement.intervals import draws
from ..annotations import Annotations
from ..errors import DataError, OptionError
from ..metrics import Score

__all__ = ["Dic", "Measure", "Scope", "dic", "dic_interval", "redrawn", "split_half", "with_labels"]

Measure = Literal["cohen", "scott", "alpha", "percent"]
Scope = Literal["matched", "all"]

_MEASURES = ("cohen", "scott", "alpha", "percent")


class Dic(NamedTuple):
    """How far predicted agreement is from the true one."""

    dic: float
    dic_rms: float
    correlation: float  # Pearson's, between true and predicted agreement, over pairs
    n_pairs_used: int
    one: Integers  # (pair): the annotators of every pair used, by code
    other: Integers  # (pair)
    true: Floats  # (pair)
    predicted: Floats  # (pair)

    def matrices(self, n_annotators: int) -> tuple[Floats, Floats]:
        """Return M and M′, NaN where a pair is not used, 1 on the diagonal."""
        out = np.full((2, n_annotators, n_annotators), np.nan)
        for table, values in zip(out, (self.true, self.predicted), strict=True):
            table[self.one, self.other] = table[self.other, self.one] = values
            np.fill_diagonal(table, 1.0)
        return out[0], out[1]

    def as_dict(self) -> dict[str, Any]:
        """Return the numbers for JSON, `None` for what cannot be said."""
        told = {"dic": self.dic, "dic_rms": self.dic_rms, "correlation": self.correlation}
        return {name: None if math.isnan(value) else value for name, value in told.items()} | {
            "n_pairs_used": self.n_pairs_used
        }


def dic(
    annotations: Annotations,
    predicted: Annotations,
    *,
    scope: Scope = "matched",
    min_overlap: int = 10,
    measure: Measure = "cohen",
    weights: WeightsLike = "identity",
) -> Dic:
    """Return how far predicted agreement is from the true one.

    Parameters
    ----------
    annotations
        What annotators said, of items that no model has learned from.
    predicted
        What they are predicted to say, of these items at least.
    scope
        `matched`, or `all` for predictions on all items that are predicted.
    min_overlap
        Common items below which a pair is left out.
    measure
        `cohen`, `scott`, `alpha` (Krippendorff's) or `percent` (plain agreement).
    weights
        Of kappas, for classes in an order: `linear`, `quadratic`, … or a matrix.

    Examples
    --------
    >>> annotations = Annotations.from_matrix([[0, 1], [1, 1], [0, 0], [1, 0]])
    >>> everybody_the_same = Annotations.from_matrix([[0, 0], [1, 1], [0, 0], [1, 1]])
    >>> dic(annotations, everybody_the_same, min_overlap=1).dic  # √2 (1 − 0)
    1.414...
    >>> dic(annotations, annotations, min_overlap=1).dic
    0.0
    """
    return _Compared(annotations, predicted, scope, min_overlap, measure, weights).found()


def dic_interval(
    annotations: Annotations,
    predicted: Annotations,
    *,
    resamples: int = 200,
    confidence: float = 0.95,
    seed: int = 0,
    **options: Any,
) -> dict[str, Score]:
    """Return `dic` and `dic_rms` with bootstrap intervals over items; options as of `dic`.

    A draw repeats items, which adds noise to both matrices: the interval tends to lie high.
    """
    if options.get("scope", "matched") != "matched":
        raise OptionError("items are drawn for scope matched; for all of them take dic itself")
    compared = _Compared(annotations, predicted, **options)
    whole = compared.found()
    times = np.ones(compared.annotations.n_items, dtype=np.int64)
    drawn = [compared.found(weight) for piece in draws(times, resamples, seed) for weight in piece]
    edges = [50 * (1 - confidence), 50 * (1 + confidence)]
    out = {}
    for name in ("dic", "dic_rms"):
        values = [getattr(one, name) for one in drawn]
        low, high = np.nanpercentile(values, edges) if drawn else (math.nan, math.nan)
        out[name] = Score(getattr(whole, name), float(low), float(high))
    return out


def split_half(
    annotations: Annotations, *, repeats: int = 20, seed: int = 0, **options: Any
) -> tuple[float, float]:
    """Return the DIC, and its rms, that chance alone gives: the noise of the labels themselves.

    The items are cut into halves, and the two matrices compared. A half has half the items, so
    the difference is divided by √2: as if as many items had been labelled a second time.
    """
    found = []
    for repeat in range(repeats):
        order = np.random.default_rng([seed, repeat, 0x4A1F]).permutation(annotations.n_items)
        halves = [annotations.take(np.sort(half)) for half in np.array_split(order, 2)]
        one, other = (_agreement(half, **options) for half in halves)
        both, left, right = np.intersect1d(one.key, other.key, return_indices=True)
        if len(both):
            found.append(((one.value[left] - other.value[right]) ** 2) / 2)
    return _pooled(found)


def redrawn(
    annotations: Annotations,
    log_probability: Floats,
    *,
    repeats: int = 20,
    seed: int = 0,
    **options: Any,
) -> tuple[float, float]:
    """Return the DIC, and its rms, between two draws of all labels from the same law.

    Parameters
    ----------
    annotations
        Who labelled what; the labels themselves are not looked at.
    log_probability
        The law of every label: (annotation, class). Where it is known, as in a simulation, this
        is the DIC of a model that knows everything and draws rather than decides.
    """
    found = []
    cumulated = np.exp(log_probability).cumsum(axis=1)
    for repeat in range(repeats):
        random = np.random.default_rng([seed, repeat, 0xD4A3])
        labels = [
            (random.random((len(annotations), 1)) > cumulated[:, :-1]).sum(axis=1) for _ in range(2)
        ]
        one, other = (_agreement(with_labels(annotations, label), **options) for label in labels)
        both, left, right = np.intersect1d(one.key, other.key, return_indices=True)
        if len(both):
            found.append((one.value[left] - other.value[right]) ** 2)
    return _pooled(found)


def with_labels(annotations: Annotations, label: Integers) -> Annotations:
    """Return the same annotations with other labels: (annotation)."""
    return Annotations.from_codes(
        annotations.item,
        annotations.annotator,
        label,
        items=annotations.items,
        annotators=annotations.annotators,
        classes=annotations.classes,
    )


class _Agreement(NamedTuple):
    """The agreement of pairs that have enough items in common."""

    key: Integers  # (pair): one × annotators + other
    value: Floats  # (pair)


@dataclass(frozen=True, eq=False)
class _Panel:
    """Annotators two by two, under any weights of the items."""

    meetings: CoAnnotations
    measure: Measure

    @classmethod
    def of(cls, annotations: Annotations, measure: Measure, weights: WeightsLike) -> _Panel:
        if measure not in _MEASURES:
            raise OptionError(f"no measure {measure!r}; there are {', '.join(_MEASURES)}")
        return cls(
            CoAnnotations(annotations, weights_to_difference(weights, annotations.classes)), measure
        )

    @property
    def key(self) -> Integers:
        return self.meetings.one * self.meetings.annotations.n_annotators + self.meetings.other

    def values(self, times: Floats | None = None) -> Floats:
        """Return the agreement of every pair: (pair)."""
        if self.measure != "alpha":
            return self.meetings.values(self.measure, times)[0]
        pi = self.meetings.values("scott", times)[0]  # alpha corrects it for few items
        return 1 - (1 - pi) * (1 - 1 / (2 * np.maximum(self.meetings.overlap, 1)))


def _agreement(
    annotations: Annotations,
    min_overlap: int = 10,
    measure: Measure = "cohen",
    weights: WeightsLike = "identity",
) -> _Agreement:
    panel = _Panel.of(annotations, measure, weights)
    value = panel.values()
    kept = (panel.meetings.overlap >= min_overlap) & ~np.isnan(value)
    return _Agreement(panel.key[kept], value[kept])


class _Compared:
    """Both matrices, pair by pair, under any weights of the items."""

    def __init__(
        self,
        annotations: Annotations,
        predicted: Annotations,
        scope: Scope = "matched",
        min_overlap: int = 10,
        measure: Measure = "cohen",
        weights: WeightsLike = "identity",
    ) -> None:
        if scope not in ("matched", "all"):
            raise OptionError(f"no scope {scope!r}; there are matched and all")
        predicted = _alike(annotations, predicted)
        self.annotations = annotations
        true = _Panel.of(annotations, measure, weights)
        other = _Panel.of(
            _matched(annotations, predicted) if scope == "matched" else predicted, measure, weights
        )
        enough = true.meetings.overlap >= min_overlap
        _, here, there = np.intersect1d(true.key[enough], other.key, return_indices=True)
        self._true, self._predicted = true, other
        self._here, self._there = np.flatnonzero(enough)[here], there

    def found(self, times: Floats | None = None) -> Dic:
        """Return the comparison, items counting so many times."""
        true = self._true.values(times)[self._here]
        predicted = self._predicted.values(times)[self._there]
        known = ~np.isnan(true) & ~np.isnan(predicted)
        true, predicted = true[known], predicted[known]
        squares = (true - predicted) ** 2
        meetings = self._true.meetings
        return Dic(
            math.sqrt(2 * squares.sum()),
            math.sqrt(squares.mean()) if len(squares) else math.nan,
            _pearson(true, predicted),
            len(squares),
            meetings.one[self._here][known],
            meetings.other[self._here][known],
            true,
            predicted,
        )


def _alike(annotations: Annotations, predicted: Annotations) -> Annotations:
    """Return predictions with the codes of the annotations: for the same names, the same."""
    same = ("items", "annotators", "classes")
    if all(np.array_equal(getattr(annotations, name), getattr(predicted, name)) for name in same):
        return predicted
    names = annotations.annotators.tolist()
    known = np.isin(predicted.annotators.tolist(), names)
    if not known.any():
        raise DataError(
            f"predictions of {predicted.n_annotators} annotators, none of whom gave one of these "
            "labels; are they named alike?"
        )
    kept = predicted.subset(annotators=known)
    return Annotations.from_columns(
        kept.items[kept.item],
        kept.annotators[kept.annotator],
        kept.classes[kept.label],
        annotators=annotations.annotators,
        items=[
            *annotations.items.tolist(),
            *sorted(set(kept.items.tolist()) - set(annotations.items.tolist())),
        ],
        classes=[
            *annotations.classes.tolist(),
            *sorted(set(kept.classes.tolist()) - set(annotations.classes.tolist())),
        ],
    )


def _matched(annotations: Annotations, predicted: Annotations) -> Annotations:
    """Return the prediction of every annotation; there has to be one."""
    key, position = (
        each.item.astype(np.int64) * annotations.n_annotators + each.annotator
        for each in (annotations, predicted)
    )
    at = np.searchsorted(position, key)
    found = (at < len(position)) & (position[np.minimum(at, max(len(position) - 1, 0))] == key)
    if not found.all():
        row = int(np.flatnonzero(~found)[0])
        item, annotator = (
            annotations.items[annotations.item[row]],
            annotations.annotators[annotations.annotator[row]],
        )
        raise DataError(
            f"no prediction of what annotator {annotator!r} says of item {item!r}; "
            f"{int((~found).sum()) - 1} more like this"
        )
    return Annotations.from_codes(
        annotations.item,
        annotations.annotator,
        predicted.label[at],
        items=annotations.items,
        annotators=annotations.annotators,
        classes=predicted.classes,
    )


def _pearson(one: Floats, other: Floats) -> float:
    one, other = (
        one - one.mean() if len(one) else one,
        other - other.mean() if len(other) else other,
    )
    length = math.sqrt(float(one @ one) * float(other @ other))
    return float(one @ other) / length if length > 1e-12 else math.nan


def _pooled(squares: list[Floats]) -> tuple[float, float]:
    """Return the mean DIC and the rms of differences, over repeats."""
    if not squares:
        return math.nan, math.nan
    whole = float(np.mean([math.sqrt(2 * each.sum()) for each in squares]))
    return whole, math.sqrt(float(np.concatenate(squares).mean()))
