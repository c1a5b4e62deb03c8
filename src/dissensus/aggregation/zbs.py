"""Zero-based skill: skills move towards the agreement with the vote that they weight."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..params import Count, Positive, Probability
from ..method import FitContext, Fitted
from .votes import WeightedVote, Weights

_TOLERANCE = 1e-12


@dataclass(frozen=True, kw_only=True)
class Zbs(WeightedVote):
    """Votes weighted by skills that move towards agreement with the vote.

    Zero-based skill: skills move towards the agreement with the vote that they weight.

    All skills start equal, a little above chance level. In every iteration each skill moves towards
    its annotator's agreement with the weighted vote. The step size starts at `step` and is
    multiplied by `shrink` every `every` iterations. The fit stops early once all skills equal the
    agreement.

        skill[a] ← skill[a] + step · (agreement[a] - skill[a])

    When it fails: As `wawa`, to which it is close: the vote judges the annotators. The result
    depends on the schedule of step sizes where the agreement keeps changing.

        D. Ustalov, N. Pavlichenko, B. Tseitlin. Learning from crowds with Crowd-Kit. Journal of
        Open Source Software 9(96), 2024. doi:10.21105/joss.06227

    Parameters
    ----------
    max_iter
        Maximum number of iterations.
    step
        The first step, as a fraction of the distance to the agreement.
    every
        Number of iterations after which steps shrink.
    shrink
        Factor by which steps shrink.
    above
        How far above chance level skills start.

    Examples
    --------
    >>> from dissensus import Annotations
    >>> annotations = Annotations.from_columns("aaabbb", "xyzxyz", "001110")
    >>> Zbs().fit(annotations).params.weight.tolist()
    [1.0, 1.0, 0.0]
    """

    max_iter: Count = 100
    step: Probability = 1.0
    every: Count = 20
    shrink: Probability = 0.5
    above: Positive = 1e-5

    def estimate_params(self, fit: FitContext) -> Fitted:
        skill = np.full(fit.annotations.n_annotators, 1 / fit.annotations.n_classes + self.above)
        step = self.step
        for iteration in range(1, self.max_iter + 1):
            if iteration % self.every == 0:
                step *= self.shrink
            record = self.record(fit, skill)
            gap = record.impute(record.accuracy) - skill
            if np.all(np.abs(gap) <= _TOLERANCE):
                break
            skill = skill + step * gap
        skill = np.clip(skill, 0, 1)
        return Fitted(Weights(skill, skill))
