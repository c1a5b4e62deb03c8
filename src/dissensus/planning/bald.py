"""BALD: the answer that tells most about everything unknown, the truth and the annotator.

As `joint`, but a confusion matrix is uncertain itself, with Dirichlet rows, and an answer counts
for what it tells about both. It learns fast who is good; where there are many annotators it goes
on to learn about people who will hardly be asked again.

    N. Houlsby, F. Huszár, Z. Ghahramani, M. Lengyel. Bayesian active learning for classification
    and preference learning. arXiv:1112.5745, 2011.
"""

from __future__ import annotations

from dataclasses import dataclass

from ._posterior_state import PosteriorState
from .joint import explored
from .policy import NoiseModel, PairPolicy

__all__ = ["Bald"]


@dataclass(frozen=True, kw_only=True)
class Bald(PairPolicy):
    """The answer that tells most about the truth and about the annotator together."""

    def noise_model(self, state: PosteriorState) -> NoiseModel:
        return NoiseModel(state.confusion, explored(state, 1.0))
