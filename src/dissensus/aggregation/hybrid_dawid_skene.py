"""Hybrid Dawid-Skene: soft EM until the prevalence converges, then hard EM."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from ..answers.annotations import Part
from ..params import NonNegative
from ..method import FitContext
from .em import Step
from .dawid_skene import Confusion, Counts, DawidSkene
from .fast_dawid_skene import FastDawidSkene


@dataclass(frozen=True, kw_only=True)
class HybridDawidSkene(FastDawidSkene):
    """Dawid-Skene with soft EM first and hard EM later.

    Hybrid Dawid-Skene: soft EM until the prevalence converges, then hard EM.

    Starts as `dawid-skene` and ends as `fast-dawid-skene`: nearly the accuracy of the first in
    nearly the time of the second. The objective is that of hard EM, the classification likelihood.

        E-step of dawid-skene until the prevalence changes by little, then that of fast-dawid-skene

    When it fails: Where `dawid-skene` fails in its first iterations, as with few labels and many
    classes: the hard phase then fixes the error.

        V. B. Sinha, S. Rao, V. N. Balasubramanian. Fast Dawid-Skene: a fast vote aggregation scheme
        for sentiment classification. arXiv:1803.02781, 2018.

    Parameters
    ----------
    switch
        Change of the prevalence, summed over classes, at which hard EM starts.
    max_iter
        Maximum number of iterations of either kind.

    Examples
    --------
    >>> from dissensus import Annotations
    >>> annotations = Annotations.from_columns("aaabbb", "xyzxyz", "001110")
    >>> HybridDawidSkene().fit(annotations).labels.tolist()
    ['0', '1']
    """

    switch: NonNegative = 0.005

    def first_counts(self, fit: FitContext, attempt: int) -> Counts:
        soft = _Soft(max_iter=self.max_iter, smoothing=self.smoothing, switch=self.switch)
        params = soft.run(replace(fit, start=None, checkpoints=None), attempt).params
        return fit.engine.add_up(partial(self._after, soft=soft, params=params), fit.parts)

    def _after(self, part: Part, soft: DawidSkene, params: Confusion) -> Counts:
        return self.initial_counts(part, soft.part_posterior(part, params))


@dataclass(frozen=True, kw_only=True)
class _Soft(DawidSkene):
    """Dawid-Skene that stops when the prevalence has converged."""

    switch: NonNegative

    def has_converged(self, trace: list[float], step: Step, last: Step) -> bool:
        if last.params is None:
            return False
        return bool(np.abs(step.params.prior - last.params.prior).sum() <= self.switch)
