"""DIC: whether predicted annotators agree with each other as the real ones do.

With M[k, l] the agreement of annotators k and l on their labels (Cohen's kappa by default), and
M′[k, l] that on their predicted labels,

    DIC = ‖M − M′‖ = √(2 Σ_{k<l} (M[k, l] − M′[k, l])²),   dic_rms = √(mean over pairs of squares).

DIC grows with the number of annotators; `dic_rms` can be compared between crowds. With
`scope="matched"` both matrices use the items that both annotators labelled; with `scope="all"` M′
uses all predicted items. Pairs with fewer than `min_overlap` common items are in neither; without
any pair, both distances are NaN.

Do not select models by DIC. Most probable labels agree with each other more than people do, so a
model that errs at random, independently for each annotator, comes closer to M than a better one:
an unregularized head per annotator often has the lowest DIC and the worst predictions. Nor can
DIC fall below the noise of M itself, which `split_half` measures.

    L. Zhang, Z. Lian, H. Liu, T. Takebe, Y. Nakashima. QuMATL: query-based multi-annotator
    tendency learning. 2025. arXiv:2503.15237
"""

from __future__ import annotations

import math
from typing import Any, Literal, NamedTuple

import numpy as np

from ...answers.annotations import Annotations, Floats, Integers
from ...base.storage import as_plain
from ...errors import DataError, OptionError
from ...metrics import Score
from ...metrics.joint import draws
from ...metrics.pairs import CoAnnotations
from ...metrics.statistics import WeightsLike, weights_to_difference

Measure = Literal["cohen", "scott", "alpha", "percent"]
Scope = Literal["matched", "all"]

_MEASURES = ("cohen", "scott", "alpha", "percent")


class Dic(NamedTuple):
    """The distance between predicted and true agreement."""

    dic: float  # NaN where no pair can be compared
    dic_rms: float
    correlation: float  # Pearson's, between true and predicted agreement, over pairs
    n_pairs_used: int
    one: Integers  # (pair): codes of its annotators
    other: Integers  # (pair)
    true: Floats  # (pair)
    predicted: Floats  # (pair)

    def matrices(self, n_annotators: int) -> tuple[Floats, Floats]:
        """Return M and M′, NaN for ignored pairs, 1 on the diagonal."""
        out = np.full((2, n_annotators, n_annotators), np.nan)
        for table, values in zip(out, (self.true, self.predicted), strict=True):
            table[self.one, self.other] = table[self.other, self.one] = values
            np.fill_diagonal(table, 1.0)
        return out[0], out[1]

    def as_dict(self) -> dict[str, Any]:
        """Return the scores for JSON, `None` for undefined ones."""
        names = ("dic", "dic_rms", "correlation", "n_pairs_used")
        return {name: as_plain(getattr(self, name)) for name in names}


def dic(
    annotations: Annotations,
    predicted: Annotations,
    *,
    scope: Scope = "matched",
    min_overlap: int = 10,
    measure: Measure = "cohen",
    weights: WeightsLike = "identity",
) -> Dic:
    """Return the distance between predicted and true agreement.

    Parameters
    ----------
    annotations
        Labels on held-out items.
    predicted
        Predicted labels, of these pairs of item and annotator at least.
    scope
        `matched`, or `all` to use all predicted items.
    min_overlap
        Common items below which a pair is ignored.
    measure
        `cohen`, `scott`, `alpha` (Krippendorff's) or `percent` (plain agreement).
    weights
        Of kappas, for ordered classes: `linear`, `quadratic`, … or a matrix.

    Examples
    --------
    >>> annotations = Annotations.from_matrix([[0, 1], [1, 1], [0, 0], [1, 0]])
    >>> identical = Annotations.from_matrix([[0, 0], [1, 1], [0, 0], [1, 1]])
    >>> dic(annotations, identical, min_overlap=1).dic  # √2 (1 − 0)
    1.414...
    >>> dic(annotations, annotations, min_overlap=1).dic
    0.0
    """
    predicted = _aligned(annotations, predicted, scope)
    comparison = _Comparison(
        annotations, predicted, min_overlap=min_overlap, measure=measure, weights=weights
    )
    return comparison.dic()


def dic_interval(
    annotations: Annotations,
    predicted: Annotations,
    *,
    resamples: int = 200,
    confidence: float = 0.95,
    seed: int = 0,
    **options: Any,
) -> dict[str, Score]:
    """Return `dic` and `dic_rms` with bootstrap intervals over items; options are those of `dic`.

    A resample repeats items, which adds noise to both matrices: the interval is biased upwards.
    """
    if options.pop("scope", "matched") != "matched":
        raise OptionError("intervals need scope matched; for scope all use dic")
    comparison = _Comparison(annotations, _aligned(annotations, predicted), **options)
    whole = comparison.dic()
    times = np.ones(annotations.n_items, dtype=np.int64)
    samples = [
        comparison.dic(weight) for piece in draws(times, resamples, seed) for weight in piece
    ]
    edges = [50 * (1 - confidence), 50 * (1 + confidence)]
    out = {}
    for name in ("dic", "dic_rms"):
        values = [value for sample in samples if not math.isnan(value := getattr(sample, name))]
        low, high = np.percentile(values, edges) if values else (math.nan, math.nan)
        out[name] = Score(getattr(whole, name), float(low), float(high))
    return out


def split_half(
    annotations: Annotations, *, repeats: int = 20, seed: int = 0, **options: Any
) -> tuple[float, float]:
    """Return the DIC and its rms that are due to noise of the labels alone.

    Items are split into halves, and the two matrices compared. A half has half the items, so the
    difference is divided by √2, as if as many items had been labelled twice.
    """
    squares = []
    for repeat in range(repeats):
        order = np.random.default_rng([seed, repeat, 0x4A1F]).permutation(annotations.n_items)
        first, second = (annotations.take(np.sort(half)) for half in np.array_split(order, 2))
        squares.append(_squares(first, second, **options) / 2)
    return _pooled(squares)


class _Agreement:
    """Agreement of pairs of annotators, under any weights of the items."""

    def __init__(self, annotations: Annotations, measure: Measure, weights: WeightsLike) -> None:
        if measure not in _MEASURES:
            raise OptionError(f"no measure {measure!r}; there are {', '.join(_MEASURES)}")
        difference = weights_to_difference(weights, annotations.classes)
        self.pairs, self.measure = CoAnnotations(annotations, difference), measure
        self.key = self.pairs.one * annotations.n_annotators + self.pairs.other

    def values(self, times: Floats | None = None) -> Floats:
        """Return the agreement of every pair: (pair)."""
        if self.measure != "alpha":
            return self.pairs.values(self.measure, times)[0]
        pi = self.pairs.values("scott", times)[0]  # alpha corrects it for few items
        return 1 - (1 - pi) * (1 - 1 / (2 * np.maximum(self.pairs.overlap, 1)))


class _Comparison:
    """Agreement of the same pairs in two sets of annotations, under any weights of the items."""

    def __init__(
        self,
        annotations: Annotations,
        predicted: Annotations,
        *,
        min_overlap: int = 10,
        measure: Measure = "cohen",
        weights: WeightsLike = "identity",
    ) -> None:
        self._true = _Agreement(annotations, measure, weights)
        self._predicted = _Agreement(predicted, measure, weights)
        true_pair, predicted_pair = (
            np.flatnonzero(agreement.pairs.overlap >= min_overlap)
            for agreement in (self._true, self._predicted)
        )
        keys = self._true.key[true_pair], self._predicted.key[predicted_pair]
        _, in_true, in_predicted = np.intersect1d(keys[0], keys[1], return_indices=True)
        self._true_pair = true_pair[in_true]
        self._predicted_pair = predicted_pair[in_predicted]

    def dic(self, times: Floats | None = None) -> Dic:
        """Return the comparison, with items repeated so many times."""
        true = self._true.values(times)[self._true_pair]
        predicted = self._predicted.values(times)[self._predicted_pair]
        defined = ~np.isnan(true) & ~np.isnan(predicted)
        true, predicted, pair = true[defined], predicted[defined], self._true_pair[defined]
        squares = (true - predicted) ** 2
        return Dic(
            dic=math.sqrt(2 * squares.sum()) if len(squares) else math.nan,
            dic_rms=math.sqrt(squares.mean()) if len(squares) else math.nan,
            correlation=_pearson(true, predicted),
            n_pairs_used=len(squares),
            one=self._true.pairs.one[pair],
            other=self._true.pairs.other[pair],
            true=true,
            predicted=predicted,
        )


def _squares(first: Annotations, second: Annotations, **options: Any) -> Floats:
    """Return squared differences of agreement, of pairs with enough overlap in both: (pair)."""
    compared = _Comparison(first, second, **options).dic()
    return (compared.true - compared.predicted) ** 2


def _aligned(
    annotations: Annotations, predicted: Annotations, scope: Scope = "matched"
) -> Annotations:
    """Return predictions with the codes of the annotations; if matched, one per annotation."""
    if scope not in ("matched", "all"):
        raise OptionError(f"no scope {scope!r}; there are matched and all")
    columns = ("items", "annotators", "classes")
    if any(not np.array_equal(getattr(annotations, of), getattr(predicted, of)) for of in columns):
        predicted = _recoded(annotations, predicted)
    return _matched(annotations, predicted) if scope == "matched" else predicted


def _recoded(annotations: Annotations, predicted: Annotations) -> Annotations:
    """Return predictions with the codes of the annotations."""
    is_known = np.isin(predicted.annotators.tolist(), annotations.annotators.tolist())
    if not is_known.any():
        raise DataError(
            f"predictions of {predicted.n_annotators} annotators, none of whom gave one of these "
            "labels; are they named alike?"
        )
    common = predicted.subset(annotators=is_known)

    def names(name: str) -> list[str]:
        known_names = getattr(annotations, name).tolist()
        return [*known_names, *sorted(set(getattr(common, name).tolist()) - set(known_names))]

    return Annotations.from_columns(
        common.items[common.item],
        common.annotators[common.annotator],
        common.classes[common.label],
        annotators=annotations.annotators,
        items=names("items"),
        classes=names("classes"),
    )


def _matched(annotations: Annotations, predicted: Annotations) -> Annotations:
    """Return the prediction of every annotation; there has to be one."""
    key, predicted_key = (
        labels.item.astype(np.int64) * annotations.n_annotators + labels.annotator
        for labels in (annotations, predicted)
    )
    index = np.searchsorted(predicted_key, key)
    is_predicted = (index < len(predicted_key)) & (
        predicted_key[np.minimum(index, max(len(predicted_key) - 1, 0))] == key
    )
    if not is_predicted.all():
        row = int(np.flatnonzero(~is_predicted)[0])
        item = annotations.items[annotations.item[row]]
        annotator = annotations.annotators[annotations.annotator[row]]
        raise DataError(
            f"no prediction for annotator {annotator!r} on item {item!r}; "
            f"{int((~is_predicted).sum()) - 1} more like this"
        )
    return annotations.with_codes(label=predicted.label[index], classes=predicted.classes)


def _pearson(first: Floats, second: Floats) -> float:
    if not len(first):
        return math.nan
    first, second = first - first.mean(), second - second.mean()
    length = math.sqrt(float(first @ first) * float(second @ second))
    return float(first @ second) / length if length > 1e-12 else math.nan


def _pooled(squares: list[Floats]) -> tuple[float, float]:
    """Return the mean DIC and the rms of differences, over repeats."""
    squares = [values for values in squares if len(values)]
    if not squares:
        return math.nan, math.nan
    mean = float(np.mean([math.sqrt(2 * values.sum()) for values in squares]))
    return mean, math.sqrt(float(np.concatenate(squares).mean()))
