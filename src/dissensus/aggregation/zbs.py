"""Zero-based skill: skills move towards the accuracy under the vote that they weigh.

Skills begin alike, a little above chance. In every round the weighted vote decides, and each
skill moves a step towards its annotator's agreement with it. Steps begin at `step` and shrink by
`shrink` every `every` rounds. The schedule ends early once all skills equal the agreement, for
then nothing moves any more.

    D. Ustalov, N. Pavlichenko, B. Tseitlin. Learning from crowds with Crowd-Kit. Journal of Open
    Source Software 9(96), 2024. doi:10.21105/joss.06227
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..params import Count, Positive, Probability
from ._base import Fit
from ._votes import Found, WeightedVote, Weights

__all__ = ["Zbs"]

_STILL = 1e-12


@dataclass(frozen=True, kw_only=True)
class Zbs(WeightedVote):
    """Votes weighted by skills that follow agreement with the vote.

    Parameters
    ----------
    max_iter
        Rounds at most.
    step
        The first step, as a share of the way to the agreement.
    every
        Rounds after which steps shrink.
    shrink
        By what steps are multiplied then.
    above
        How far above chance skills begin.

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

    def weigh(self, fit: Fit) -> Found:
        skill = np.full(fit.annotations.n_annotators, 1 / fit.annotations.n_classes + self.above)
        step, record = self.step, self.record(fit)
        for turn in range(1, self.max_iter + 1):
            if turn % self.every == 0:
                step *= self.shrink
            record = record._replace(right=self.right(fit, skill))
            gap = record.average_others(record.accuracy) - skill
            if np.all(np.abs(gap) <= _STILL):
                break
            skill = skill + step * gap
        skill = np.clip(skill, 0, 1)
        return Found(Weights(skill, skill))
