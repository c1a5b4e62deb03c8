"""Split (Raykar et al. 2010): one question with two answers for every place between two classes.

Classes stand in an order. For every threshold c, "is it above c?" is a question with two classes,
and Dawid-Skene answers it, with confusion matrices of their own. The probabilities of lying above
must fall from threshold to threshold; where they do not, they are replaced by the nearest ones
that do. Their differences are the posterior.

    V. C. Raykar, S. Yu, L. H. Zhao, G. H. Valadez, C. Florin, L. Bogoni, L. Moy. Learning from
    crowds. Journal of Machine Learning Research 11, 2010.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar, NamedTuple

import numpy as np

from .._names import numbered
from .._relation import Floats, Integers
from ..annotations import Annotations
from ..params import Count, NonNegative
from ..result import Aggregation
from ._base import Aggregator, Fit
from ._ordinal import Decision, decide
from .dawid_skene import Confusion, DawidSkene

__all__ = ["OrdinalSplit", "Thresholds"]


class Thresholds(NamedTuple):
    """What is learned: Dawid-Skene's parameters at every threshold; 1 is above, 0 is not."""

    log_prior: Floats  # (threshold, truly above)
    log_given: Floats  # (threshold, annotator and said to be above, truly above)

    def at(self, threshold: int) -> Confusion:
        """Return the parameters of one threshold."""
        return Confusion(self.log_prior[threshold], self.log_given[threshold])

    def reindex(self, indices: Integers, n_items: int) -> Thresholds:
        """Return the same for other annotators, by their places here; -1 is somebody new."""
        seated = [
            self.at(position).reindex(indices, n_items) for position in range(len(self.log_prior))
        ]
        return _together(seated, len(indices))


@dataclass(frozen=True, kw_only=True)
class OrdinalSplit(Aggregator):
    """Dawid-Skene for every threshold between classes in an order, put together.

    Parameters
    ----------
    max_iter
        Rounds at most, for each threshold.
    tol
        Stop when a round changes the objective by less than this share of it.
    smoothing
        Pseudo-count added to every cell; at 0, maximum likelihood.
    decision
        The label of an item: the most probable `class`, which is wrong least often; the `median`
        of the posterior, which is off by the fewest classes; or the class nearest to the `mean`,
        which avoids large misses.

    Examples
    --------
    >>> from dissensus import Annotations
    >>> annotations = Annotations.from_columns("aaabbbccc", "xyzxyzxyz", "001122123")
    >>> OrdinalSplit().fit(annotations).labels.tolist()
    ['0', '2', '2']
    """

    learns: ClassVar[type] = Thresholds

    max_iter: Count = 200
    tol: NonNegative = 1e-6
    smoothing: NonNegative = 0.01
    decision: Decision = "class"

    def infer(self, fit: Fit) -> Aggregation:
        runs = [self._question.infer(_above(fit, position)) for position in _thresholds(fit)]
        params = _together([run.params for run in runs], fit.annotations.n_annotators)
        posterior = _differences(fit, [run.posterior for run in runs])
        label = decide(posterior, self.decision)
        return self.conclude(
            fit,
            posterior,
            label,
            params=params,
            trace=_sum([run.trace for run in runs]),
            converged=all(run.converged for run in runs),
        )

    def judge(self, fit: Fit, params: Thresholds) -> tuple[Floats, Integers]:
        posteriors = [
            self._question.judge(_above(fit, position), params.at(position))[0]
            for position in _thresholds(fit)
        ]
        posterior = _differences(fit, posteriors)
        return posterior, decide(posterior, self.decision)

    def confusion(self, params: Thresholds) -> Floats:
        n_classes = len(params.log_prior) + 1
        n_annotators = params.log_given.shape[1] // 2
        given = np.exp(params.log_given).reshape(-1, n_annotators, 2, 2)
        threshold, true = np.ogrid[: n_classes - 1, :n_classes]
        above = given[threshold, :, 1, (true > threshold).astype(int)]
        return classes_from(above.transpose(2, 1, 0))  # was (threshold, true, annotator)

    def quality(self, params: Thresholds, agreement: Floats) -> Floats:
        prior = classes_from(np.exp(params.log_prior[:, 1]))
        return np.einsum("t,att->a", prior, self.confusion(params))

    def n_numbers(self, annotations: Annotations) -> int:
        return (
            super().n_numbers(annotations) * 3
            + 8 * annotations.n_annotators * annotations.n_classes**2
        )

    @property
    def _question(self) -> DawidSkene:
        return DawidSkene(max_iter=self.max_iter, tol=self.tol, smoothing=self.smoothing)


def classes_from(above: Floats) -> Floats:
    """Return probabilities of classes from those of lying above each threshold.

    >>> classes_from(np.array([0.9, 0.2, 0.4])).round(2).tolist()
    [0.1, 0.6, 0.0, 0.3]
    """
    end = np.ones((*above.shape[:-1], 1))
    from_here = np.concatenate([end, np.clip(falling(above), 0, 1), 0 * end], axis=-1)
    return from_here[..., :-1] - from_here[..., 1:]


def falling(values: Floats) -> Floats:
    """Return the nearest numbers, by squares, that never rise along the last axis.

    The best one at a place is the smallest over all beginnings before it of the largest mean over
    all ends behind it.

    >>> falling(np.array([[0.9, 0.2, 0.4]])).round(2).tolist()
    [[0.9, 0.3, 0.3]]
    """
    size = values.shape[-1]
    if (np.diff(values, axis=-1) <= 0).all():
        return values
    upto = np.concatenate([np.zeros((*values.shape[:-1], 1)), values.cumsum(axis=-1)], axis=-1)
    out = np.full(values.shape, np.inf)
    for first in range(size):
        highest = np.full(values.shape[:-1], -np.inf)
        for last in range(size - 1, first - 1, -1):
            mean = (upto[..., last + 1] - upto[..., first]) / (last + 1 - first)
            np.maximum(highest, mean, out=highest)
            np.minimum(out[..., last], highest, out=out[..., last])
    return np.minimum.accumulate(out, axis=-1)


def _thresholds(fit: Fit) -> range:
    return range(fit.annotations.n_classes - 1)


def _above(fit: Fit, threshold: int) -> Fit:
    """Return the question whether items are above a threshold, as a fit of its own."""
    annotations, gold = fit.annotations, fit.gold
    question = Annotations(
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
    parts = question.parts([(part.start, part.stop) for part in fit.parts], gold)
    return replace(fit, annotations=question, parts=parts, gold=gold, start=start)


def _differences(fit: Fit, posteriors: list[Floats]) -> Floats:
    """Return the posterior from the beliefs (item, above) at every threshold."""
    above = [posterior[:, 1:] for posterior in posteriors]
    return classes_from(np.concatenate([np.empty((fit.annotations.n_items, 0)), *above], axis=1))


def _together(each: list[Confusion], n_annotators: int) -> Thresholds:
    return Thresholds(
        np.array([one.log_prior for one in each]).reshape(-1, 2),
        np.array([one.log_given for one in each]).reshape(-1, 2 * n_annotators, 2),
    )


def _sum(traces: list[tuple[float, ...]]) -> tuple[float, ...]:
    """Add up objectives round by round; who is done earlier stays where they are."""
    longest = max(map(len, traces), default=0)
    rows = [[*trace, *[trace[-1]] * (longest - len(trace))] for trace in traces]
    return tuple(np.sum(rows, axis=0).tolist()) if rows else ()
