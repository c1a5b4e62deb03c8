"""Joint: the item and the annotator whose answer tells most about the truth, for its cost.

An answer of annotator a on item i tells the mutual information of the answer and the true class,

    entropy of (posterior[i] @ confusion[a]) - posterior[i] @ entropy of the rows of confusion[a]

so items that are known are worth nothing, nor are annotators who guess, and somebody who errs only
between two classes is worth most where the others are in doubt. Who is good is found out on the
way: somebody new is taken for one of the crowd, which is better than whoever has shown to be worse.
And nobody gets more labels in one plan than have been learned from, prior included, while there is
somebody else: a difference that luck may have made does not decide over a whole batch. A share
`explore` of what an answer tells about its annotator may count as well: see `bald`.

    V. S. Sheng, F. Provost, P. G. Ipeirotis. Get another label? KDD, 2008.
    doi:10.1145/1401890.1401965
"""

from __future__ import annotations

from dataclasses import dataclass

from .._relation import Floats
from ..params import Positive, Probability
from ._information import entropy, expected_entropy
from ._posterior_state import PosteriorState
from .policy import NoiseModel, PairPolicy

__all__ = ["Joint", "explored"]


@dataclass(frozen=True, kw_only=True)
class Joint(PairPolicy):
    """The item and the annotator whose answer tells most about the truth, for its cost.

    Parameters
    ----------
    explore
        How much of what an answer tells about its annotator counts.
    trust
        Labels in one plan for every label that has been learned from, before others are asked.
    """

    explore: Probability = 0.0
    trust: Positive = 1.0

    def noise_model(self, state: PosteriorState) -> NoiseModel:
        return NoiseModel(state.confusion, explored(state, self.explore))

    def trusted(self, state: PosteriorState) -> Floats:
        return self.trust * super().trusted(state)


def explored(state: PosteriorState, explore: float) -> Floats:
    """Return the noise of answers, less what it tells about annotators: (annotator, class)."""
    known = entropy(state.confusion)
    return known + explore * (expected_entropy(state.counts) - known) if explore else known
