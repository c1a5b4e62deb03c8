"""What every policy promises: how much an answer of this annotator on this item is worth."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np

from .._relation import Floats, Integers
from ..params import Settings
from ._information import entropy
from ._posterior_state import PosteriorState

__all__ = ["ItemPolicy", "NoiseModel", "PairPolicy", "Policy"]


class NoiseModel(NamedTuple):
    """What annotators are taken to say."""

    matrix: Floats  # (annotator, true class, given class)
    noise: Floats  # (annotator, true class): what of an answer is noise, in nats


@dataclass(frozen=True, kw_only=True)
class Policy(Settings, ABC):
    """A way to choose what to ask next, and whom."""

    needs_probabilities: ClassVar[bool] = False  # whether a classifier has to speak


@dataclass(frozen=True, kw_only=True)
class ItemPolicy(Policy):
    """A policy that chooses items; annotators are drawn at random."""

    @abstractmethod
    def utility(
        self, state: PosteriorState, pending: Integers, remaining_entropy: Floats
    ) -> Floats:
        """Return how much a label is worth: (item).

        `pending` are the labels that are planned already, and `remaining_entropy` is the entropy of an item
        that is expected after these.
        """


@dataclass(frozen=True, kw_only=True)
class PairPolicy(Policy):
    """A policy that chooses an item and an annotator together."""

    @abstractmethod
    def noise_model(self, state: PosteriorState) -> NoiseModel:
        """Return what annotators are taken to say, by which answers are judged."""

    def trusted(self, state: PosteriorState) -> Floats:
        """Return how many labels to plan of one annotator before others are asked: (annotator).

        By default as many as have been learned from. Where little is known, a hair's difference
        would else send everything to one person, who may turn out to guess.
        """
        return state.counts.sum(axis=(1, 2))


def mean_noise_model(state: PosteriorState) -> NoiseModel:
    """Return annotators as they are in the mean."""
    return NoiseModel(state.confusion, np.asarray(entropy(state.confusion)))
