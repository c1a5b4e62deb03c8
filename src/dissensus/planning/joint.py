"""Joint: the item and the annotator whose answer is most informative about the truth per cost."""

from __future__ import annotations

from dataclasses import dataclass

from ..base.arrays import Floats
from ..params import Positive, Probability
from ._posterior_state import PosteriorState
from .policy import NoiseModel, PairPolicy, noise_model_of


@dataclass(frozen=True, kw_only=True)
class Joint(PairPolicy):
    """The item and the annotator whose answer is most informative about the truth per cost.

    Joint: the item and the annotator whose answer is most informative about the truth per cost.

    The information of annotator a's answer on item i is its mutual information with the true class,

        H(posterior[i] @ confusion[a]) - posterior[i] @ H(rows of confusion[a]),   H the entropy

    so certain items have no utility, nor do annotators who guess, and an annotator who confuses two
    classes is most useful where other classes are uncertain. New annotators have the prior of all
    annotators, which is better than those who have proved worse. No annotator gets more labels in
    one plan than the evidence about them, prior included, while there are others: a random
    difference does not decide over a whole batch. A share `explore` of the information about the
    annotator may count as well: see `bald`.

    When it fails: With few labels the annotators' matrices are mostly prior, and the plan is close
    to `uncertainty`. It trusts the posterior: confident errors are never asked about again.

        V. S. Sheng, F. Provost, P. G. Ipeirotis. Get another label? KDD, 2008.
        doi:10.1145/1401890.1401965

    Parameters
    ----------
    explore
        The share of the information about the annotator that counts.
    trust
        Labels in one plan for every label of evidence, before others are asked.
    """

    explore: Probability = 0.0
    trust: Positive = 1.0

    def noise_model(self, state: PosteriorState) -> NoiseModel:
        return noise_model_of(state, self.explore)

    def trusted(self, state: PosteriorState) -> Floats:
        return self.trust * super().trusted(state)
