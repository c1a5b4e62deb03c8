"""The interface of policies: the utility of an answer by an annotator on an item."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

from ..base.arrays import Floats, Integers
from ..params import Settings
from .information import entropy, expected_entropy
from ._posterior_state import PosteriorState


class NoiseModel(NamedTuple):
    """Annotators' noise models."""

    matrix: Floats  # (annotator, true class, given class)
    noise: Floats  # (annotator, true class): conditional entropy of an answer, in nats


@dataclass(frozen=True, kw_only=True)
class Policy(Settings, ABC):
    """A way to choose the next labels."""

    needs_probabilities: ClassVar[bool] = False  # of a classifier


@dataclass(frozen=True, kw_only=True)
class ItemPolicy(Policy):
    """A policy that chooses items; annotators are drawn at random."""

    @abstractmethod
    def utility(
        self, state: PosteriorState, pending: Integers, remaining_entropy: Floats
    ) -> Floats:
        """Return the utility of a label: (item).

        `pending` counts the labels planned so far, and `remaining_entropy` is the expected entropy
        of an item after these.
        """


@dataclass(frozen=True, kw_only=True)
class PairPolicy(Policy):
    """A policy that chooses an item and an annotator together."""

    @abstractmethod
    def noise_model(self, state: PosteriorState) -> NoiseModel:
        """Return the noise models that define the information of answers."""

    def trusted(self, state: PosteriorState) -> Floats:
        """Return how many labels to request of an annotator before others: (annotator).

        By default the evidence about them. Where little is known, a tiny difference would
        otherwise send everything to one annotator, who may turn out to guess.
        """
        return state.counts.sum(axis=(1, 2))


def noise_model_of(state: PosteriorState, explore: float = 0.0) -> NoiseModel:
    """Return the noise models of mean confusion matrices.

    A share `explore` of the information on annotators is subtracted from the noise.
    """
    noise = entropy(state.confusion)
    if explore:
        noise = noise + explore * (expected_entropy(state.counts) - noise)
    return NoiseModel(state.confusion, noise)
