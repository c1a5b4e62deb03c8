"""Methods for ordered classes without latent positions: distances, and thresholds.

Errors are less probable the further a label is from the truth (`OrdinalDistance`), or the order is
cut into one binary problem for every threshold between classes, as Raykar et al. (2010) do
(`OrdinalSplit`).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Annotated, ClassVar, Literal, NamedTuple

import numpy as np
from annotated_types import Interval
from scipy.special import log_softmax

from ..answers.annotations import Annotations, Part
from ..base.arrays import Floats, Integers
from ..base.names import numbered
from ..base.probability import normalize, safe_log
from ..method import Fitted
from ..params import Count, NonNegative
from .classes import ClassContext
from .dawid_skene import Confusion, ConfusionModel, Counts, DawidSkene
from .ordinal_latent import OrdinalAggregator, blocks

_LOWEST, _HIGHEST = -5.0, 20.0  # range of the sharpness
_STEP = 0.25  # of the grid of shifts


class Sharpness(NamedTuple):
    """Parameters of the model."""

    log_prior: Floats  # (true class)
    sharpness: Floats  # (annotator)
    shift: Floats  # (annotator)

    @property
    def prior(self) -> Floats:
        """Prevalence of the classes: (true class)."""
        return np.exp(self.log_prior)

    def reindex(self, indices: Integers, n_items: int) -> Sharpness:
        """Return the parameters of other annotators by their indices here; -1 is a new one."""
        values = (self.sharpness, self.shift)
        return Sharpness(
            self.log_prior, *(np.append(value, value.mean())[indices] for value in values)
        )


@dataclass(frozen=True, kw_only=True)
class OrdinalDistance(OrdinalAggregator, ConfusionModel[Sharpness]):
    """One sharpness and shift per annotator for ordered classes, fitted with EM.

    Ordinal distance: errors are less probable the further a label is from the truth.

    The truth of an item is drawn from `prior`. Annotator a gives an item of class t the label g
    with a probability proportional to exp(-sharpness[a] · |t + shift[a] - g|): two parameters per
    annotator instead of a matrix, so that few labels suffice. Sharpness 0 is random guessing, a
    negative one adversarial; a positive shift rates too high. Every cell of an annotator's matrix
    gets `smoothing` added to its count, as in Dawid-Skene. The sharpness is found by Newton's
    method, the shift on a grid; the objective never falls.

        P(label g of a | t) ∝ exp(-sharpness[a] · |t + shift[a] - g|)

    When it fails: On classes without an order, or where one class lies outside it; on s_rel it
    loses 37 points to the best method.

        D. Zhou, Q. Liu, J. C. Platt, C. Meek. Aggregating ordinal labels from crowds by minimax
        conditional entropy. Proceedings of ICML, 2014. (The idea that confusion follows the order;
        the formula is ours.)

    Parameters
    ----------
    distance
        The distance between classes: `absolute` or `squared`.
    most_shift
        Largest shift of an annotator, in classes; 0 for none.
    smoothing
        Pseudo-count added to every cell; 0 is maximum likelihood.

    Examples
    --------
    >>> from dissensus import Annotations
    >>> annotations = Annotations.from_columns("aaabbbccc", "xyzxyzxyz", "001122123")
    >>> OrdinalDistance().fit(annotations).labels.tolist()
    ['0', '2', '2']
    """

    params_type: ClassVar[type] = Sharpness
    matrix_copies: ClassVar[int] = 6

    distance: Literal["absolute", "squared"] = "absolute"
    most_shift: Annotated[float, Interval(ge=0, le=100)] = 1.0
    smoothing: NonNegative = 0.01

    def log_joint(self, part: Part, params: Sharpness) -> Floats:
        n_classes = len(params.log_prior)
        log_given = self.log_given(params).transpose(2, 1, 0).reshape(-1, n_classes)
        return part.labels @ log_given + params.log_prior

    def update(self, counts: Counts, last: Sharpness | None) -> Sharpness:
        n_classes = len(counts.true)
        counts_given = counts.given_true.reshape(-1, n_classes, n_classes) + self.smoothing
        start = np.ones(len(counts_given)) if last is None else last.sharpness
        sharpness, shift = np.empty(len(counts_given)), np.empty(len(counts_given))
        for block in blocks(counts_given, len(self._grid)):
            cells = np.ascontiguousarray(counts_given[block].transpose(2, 1, 0))
            sharpness[block], shift[block] = self._best(cells, start[block])
        return Sharpness(safe_log(normalize(counts.true + self.smoothing)), sharpness, shift)

    def _best(self, counts: Floats, start: Floats) -> tuple[Floats, Floats]:
        """Return the best sharpness and shift of annotators; all shifts are tried."""
        times, size = len(self._grid), len(start)
        shift = np.repeat(self._grid, size)  # (shift and annotator)
        cells, distance = np.tile(counts, (1, 1, times)), self._distance(len(counts), shift)
        sharpness = _sharpen(cells, distance, np.tile(start, times))
        value = np.einsum("tga,tga->a", cells, _log_given(sharpness, distance))
        best = value.reshape(times, -1).argmax(axis=0) * size + np.arange(size)
        return sharpness[best], shift[best]

    def log_prior(self, params: Sharpness) -> float:
        cells = params.log_prior.sum() + self.log_given(params).sum()
        return self.smoothing * float(cells)

    def confusion(self, params: Sharpness) -> Floats:
        return np.exp(self.log_given(params)).transpose(2, 0, 1)

    def log_given(self, params: Sharpness) -> Floats:
        """Return the logarithm of every annotator's confusion: (true, given, annotator)."""
        distance = self._distance(len(params.log_prior), params.shift)
        return _log_given(params.sharpness, distance)

    def _distance(self, n_classes: int, shift: Floats) -> Floats:
        """Return the distance of every label from every truth: (true, given, annotator)."""
        true, label = np.ogrid[:n_classes, :n_classes]
        steps = np.abs((true - label)[:, :, None] + shift)
        return steps**2 if self.distance == "squared" else steps

    @property
    def _grid(self) -> Floats:
        """The shifts to try, by size."""
        steps = int(self.most_shift / _STEP + 1e-9)
        return _STEP * np.array(sorted(range(-steps, steps + 1), key=abs))


def _log_given(sharpness: Floats, distance: Floats) -> Floats:
    return log_softmax(-sharpness * distance, axis=1)


def _sharpen(counts: Floats, distance: Floats, start: Floats) -> Floats:
    """Return the most probable sharpness of every annotator, for counts (true, given, annotator).

    The log-likelihood is concave. Newton steps that leave the bracket are replaced by bisection.
    """
    true = counts.sum(axis=1)  # (true, annotator)
    missed = np.einsum("tga,tga->a", counts, distance)

    def derivatives(sharpness: Floats) -> tuple[Floats, Floats]:
        probability = np.exp(_log_given(sharpness, distance))
        mean = np.einsum("tga,tga->ta", probability, distance)
        spread = np.einsum("tga,tga,tga->ta", probability, distance, distance) - mean**2
        gradient = np.einsum("ta,ta->a", true, mean) - missed
        return gradient, np.maximum(np.einsum("ta,ta->a", true, spread), 1e-300)

    low, high = np.full(len(start), _LOWEST), np.full(len(start), _HIGHEST)
    lowest, highest = derivatives(low)[0] <= 0, derivatives(high)[0] >= 0
    point = np.where(lowest, low, np.where(highest, high, start))
    for _ in range(60):
        gradient, curvature = derivatives(point)
        low, high = np.where(gradient > 0, point, low), np.where(gradient < 0, point, high)
        proposal = point + np.clip(gradient / curvature, -100, 100)
        proposal = np.where((proposal >= low) & (proposal <= high), proposal, (low + high) / 2)
        proposal = np.where(lowest | highest | (gradient == 0), point, proposal)
        change, point = np.abs(proposal - point).max(initial=0), proposal
        if change < 1e-8:  # convergence is quadratic
            break
    return point


class Thresholds(NamedTuple):
    """Parameters of Dawid-Skene at every threshold; 1 is above, 0 is not."""

    log_prior: Floats  # (threshold, truly above)
    log_given: Floats  # (threshold, annotator and labelled above, truly above)

    def at(self, threshold: int) -> Confusion:
        """Return the parameters of one threshold."""
        return Confusion(self.log_prior[threshold], self.log_given[threshold])

    def reindex(self, indices: Integers, n_items: int) -> Thresholds:
        """Return the parameters of other annotators by their indices here; -1 is a new one."""
        thresholds = range(len(self.log_prior))
        return _stack(
            [self.at(threshold).reindex(indices, n_items) for threshold in thresholds], len(indices)
        )


@dataclass(frozen=True, kw_only=True)
class OrdinalSplit(OrdinalAggregator):
    """Dawid-Skene for every threshold between ordered classes.

    Ordinal split (Raykar et al. 2010): one binary problem for every threshold between classes.

    Classes are ordered. For every threshold c, "is it above c?" is a binary problem, solved by
    Dawid-Skene with confusion matrices of its own. The probabilities of lying above must decrease
    from threshold to threshold; where they do not, they are replaced by their isotonic regression.
    Their differences are the posterior.

        P(t > c) by dawid-skene on "is the label above c?", for every threshold c
        posterior[t] = P(t > t - 1) - P(t > t)

    When it fails: Thresholds with few items on one side are binary problems with a rare class, so
    extreme classes are estimated poorly. It ignores that the thresholds share annotators.

        V. C. Raykar, S. Yu, L. H. Zhao, G. H. Valadez, C. Florin, L. Bogoni, L. Moy. Learning from
        crowds. Journal of Machine Learning Research 11, 2010.

    Parameters
    ----------
    max_iter
        Maximum number of iterations, for each threshold.
    tol
        Relative change of the objective below which the fit has converged.
    smoothing
        Pseudo-count added to every cell; 0 is maximum likelihood.

    Examples
    --------
    >>> from dissensus import Annotations
    >>> annotations = Annotations.from_columns("aaabbbccc", "xyzxyzxyz", "001122123")
    >>> OrdinalSplit().fit(annotations).labels.tolist()
    ['0', '2', '2']
    """

    params_type: ClassVar[type] = Thresholds

    max_iter: Count = 200
    tol: NonNegative = 1e-6
    smoothing: NonNegative = 0.01

    def estimate_params(self, fit: ClassContext) -> Fitted:
        runs = [
            self._binary.estimate_params(_above(fit, threshold)) for threshold in _thresholds(fit)
        ]
        return Fitted(
            _stack([run.params for run in runs], fit.answers.n_annotators),
            _sum([run.trace for run in runs]),
            all(run.converged for run in runs),
        )

    def posterior(self, fit: ClassContext, params: Thresholds) -> Floats:
        return _differences(
            fit,
            [
                self._binary.posterior(_above(fit, threshold), params.at(threshold))
                for threshold in _thresholds(fit)
            ],
        )

    def confusion(self, params: Thresholds) -> Floats:
        n_classes = len(params.log_prior) + 1
        n_annotators = params.log_given.shape[1] // 2
        cells = np.exp(params.log_given).reshape(-1, n_annotators, 2, 2)
        threshold, true = np.ogrid[: n_classes - 1, :n_classes]
        above = cells[threshold, :, 1, (true > threshold).astype(int)]
        return classes_from(above.transpose(2, 1, 0))  # was (threshold, true, annotator)

    def quality(self, params: Thresholds, agreement: Floats) -> Floats:
        prior = classes_from(np.exp(params.log_prior[:, 1]))
        return np.einsum("t,att->a", prior, self.confusion(params))

    def n_floats(self, annotations: Annotations) -> int:
        return (
            super().n_floats(annotations) * 3
            + 8 * annotations.n_annotators * annotations.n_classes**2
        )

    @property
    def _binary(self) -> DawidSkene:
        return DawidSkene(max_iter=self.max_iter, tol=self.tol, smoothing=self.smoothing)


def classes_from(above: Floats) -> Floats:
    """Return probabilities of classes from those of lying above each threshold.

    >>> classes_from(np.array([0.9, 0.2, 0.4])).round(2).tolist()
    [0.1, 0.6, 0.0, 0.3]
    """
    end = np.ones((*above.shape[:-1], 1))
    from_here = np.concatenate([end, np.clip(decreasing(above), 0, 1), 0 * end], axis=-1)
    return from_here[..., :-1] - from_here[..., 1:]


def decreasing(values: Floats) -> Floats:
    """Return the decreasing isotonic regression along the last axis.

    The value at an index is the minimum over all starts before it of the maximum mean over all
    ends behind it.

    >>> decreasing(np.array([[0.9, 0.2, 0.4]])).round(2).tolist()
    [[0.9, 0.3, 0.3]]
    """
    size = values.shape[-1]
    if (np.diff(values, axis=-1) <= 0).all():
        return values
    cumulative = np.concatenate(
        [np.zeros((*values.shape[:-1], 1)), values.cumsum(axis=-1)], axis=-1
    )
    out = np.full(values.shape, np.inf)
    for first in range(size):
        highest = np.full(values.shape[:-1], -np.inf)
        for last in range(size - 1, first - 1, -1):
            mean = (cumulative[..., last + 1] - cumulative[..., first]) / (last + 1 - first)
            np.maximum(highest, mean, out=highest)
            np.minimum(out[..., last], highest, out=out[..., last])
    return np.minimum.accumulate(out, axis=-1)


def _thresholds(fit: ClassContext) -> range:
    return range(fit.answers.n_classes - 1)


def _above(fit: ClassContext, threshold: int) -> ClassContext:
    """Return the binary problem of a threshold."""
    annotations, gold = fit.answers, fit.gold
    binary = Annotations(
        index=annotations.index,
        annotator=annotations.annotator,
        label=(annotations.label > threshold).astype(np.uint8),
        items=annotations.items,
        annotators=annotations.annotators,
        classes=numbered(2),
    )
    if gold is not None:
        gold = np.where(gold < 0, -1, gold > threshold)
    start = None
    if fit.start is not None:
        above = fit.start[:, threshold + 1 :].sum(axis=1)
        start = np.stack([1 - above, above], axis=1)
    parts = binary.parts([(part.start, part.stop) for part in fit.parts], gold)
    return replace(fit, answers=binary, parts=parts, gold=gold, start=start)


def _differences(fit: ClassContext, posteriors: list[Floats]) -> Floats:
    """Return the posterior from those of every threshold, (item, above)."""
    above = [posterior[:, 1:] for posterior in posteriors]
    return classes_from(np.concatenate([np.empty((fit.answers.n_items, 0)), *above], axis=1))


def _stack(confusions: list[Confusion], n_annotators: int) -> Thresholds:
    return Thresholds(
        np.array([binary.log_prior for binary in confusions]).reshape(-1, 2),
        np.array([binary.log_given for binary in confusions]).reshape(-1, 2 * n_annotators, 2),
    )


def _sum(traces: list[tuple[float, ...]]) -> tuple[float, ...]:
    """Add up objectives by iteration; shorter traces keep their last value."""
    longest = max(map(len, traces), default=0)
    rows = [[*trace, *[trace[-1]] * (longest - len(trace))] for trace in traces]
    return tuple(np.sum(rows, axis=0).tolist()) if rows else ()
