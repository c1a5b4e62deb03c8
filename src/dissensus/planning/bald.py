"""BALD: the most informative answer about the truth and the annotator."""

from __future__ import annotations

from dataclasses import dataclass

from ._posterior_state import PosteriorState
from .policy import NoiseModel, PairPolicy, noise_model_of


@dataclass(frozen=True, kw_only=True)
class Bald(PairPolicy):
    """The most informative answer about the truth and the annotator together.

    BALD: the most informative answer about the truth and the annotator.

    As `joint`, but confusion matrices are uncertain themselves, with Dirichlet rows, and the
    information about both counts. It learns fast which annotators are good; with many annotators it
    keeps learning about some who will hardly label again.

        information = entropy of the expected answer - expected entropy of the answer

    When it fails: With many annotators it spends labels on learning about people who will hardly
    label again.

        N. Houlsby, F. Huszár, Z. Ghahramani, M. Lengyel. Bayesian active learning for
        classification and preference learning. arXiv:1112.5745, 2011.
    """

    def noise_model(self, state: PosteriorState) -> NoiseModel:
        return noise_model_of(state, explore=1.0)
