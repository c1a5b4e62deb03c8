"""Hybrid Dawid-Skene: soft rounds until the class shares stand still, then hard ones.

Begins as `dawid-skene` and ends as `fast-dawid-skene`: nearly the accuracy of the first in nearly
the time of the second. The objective is that of the hard rounds, the classification likelihood;
the soft ones are how it starts.

    V. B. Sinha, S. Rao, V. N. Balasubramanian. Fast Dawid-Skene: a fast vote aggregation scheme
    for sentiment classification. arXiv:1803.02781, 2018.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from ..annotations import Part
from ..params import NonNegative
from ._base import Fit
from .dawid_skene import Confusion, Counts, DawidSkene
from .fast_dawid_skene import FastDawidSkene

__all__ = ["HybridDawidSkene"]


@dataclass(frozen=True, kw_only=True)
class HybridDawidSkene(FastDawidSkene):
    """Dawid-Skene with beliefs first and decisions later.

    Parameters
    ----------
    switch
        Decide from the round on in which the shares of all classes together change by no more.
    max_iter
        Rounds at most, of either kind.

    Examples
    --------
    >>> from dissensus import Annotations
    >>> annotations = Annotations.from_columns("aaabbb", "xyzxyz", "001110")
    >>> HybridDawidSkene().fit(annotations).labels.tolist()
    ['0', '1']
    """

    switch: NonNegative = 0.005

    def first_counts(self, fit: Fit, attempt: int) -> Counts:
        soft = _Soft(max_iter=self.max_iter, smoothing=self.smoothing, switch=self.switch)
        params = soft.run(replace(fit, start=None, kept=None), attempt).params
        return fit.add_up(partial(self._after, soft=soft, params=params))

    def _after(self, part: Part, soft: DawidSkene, params: Confusion) -> Counts:
        return self.learn_from(part, soft.believe(part, params))


@dataclass(frozen=True, kw_only=True)
class _Soft(DawidSkene):
    """Dawid-Skene that ends when the class shares stand still."""

    switch: NonNegative

    def settled(self, trace: list[float], params: Confusion, before: Confusion) -> bool:
        return bool(np.abs(params.prior - before.prior).sum() <= self.switch)
