"""One coin: every annotator is right with a probability of their own, for all classes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..errors import MethodError
from ..params import Positive, Probability
from .strategy import CrowdParameters, Design, Strategy, one_coin


@dataclass(frozen=True, kw_only=True)
class OneCoin(Strategy):
    """One probability of being right per annotator.

    One coin: every annotator is right with a probability of their own, for all classes.

    The probabilities are drawn from a Beta(a, b), stretched from [0, 1] to [low, high]. A wrong
    label is any other class with the same probability.

        right[a] = low + (high - low) · Beta(a, b)

    When it fails: All classes are equally hard and all errors equally probable, which no real task
    has.

        Y. Zhang, X. Chen, D. Zhou, M. I. Jordan. Spectral methods meet EM: a provably optimal
        algorithm for crowdsourcing. Journal of Machine Learning Research 17, 2016.

    Parameters
    ----------
    a
        First shape of the Beta distribution; more of it, more annotators near `high`.
    b
        Second shape; more of it, more annotators near `low`.
    low
        The smallest probability of being right.
    high
        The largest probability of being right.

    Examples
    --------
    >>> from dissensus import simulate
    >>> drawn = simulate(OneCoin(low=0.75, high=0.75), n_classes=2)
    >>> drawn.crowd.confusion.tolist()
    [[[0.75, 0.25], [0.25, 0.75]]]
    """

    a: Positive = 1.0
    b: Positive = 1.0
    low: Probability = 0.5
    high: Probability = 1.0

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.low > self.high:
            raise MethodError(f"low = {self.low}, but it must be at most high = {self.high}")

    def crowd(self, design: Design, rng: np.random.Generator) -> CrowdParameters:
        correct = self.low + (self.high - self.low) * rng.beta(
            self.a, self.b, size=design.n_annotators
        )
        is_true = np.eye(design.n_classes, dtype=bool)
        confusion = one_coin(correct[:, None, None], is_true)
        return CrowdParameters(design.n_classes, confusion, {"correct": correct})
