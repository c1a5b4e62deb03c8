"""Policies: how useful one more label is, by the item or by item and annotator.

An `ItemPolicy` chooses items, and annotators are drawn at random; a `PairPolicy` chooses both by
the information of the answer, under the noise models of annotators.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np

from ..base.arrays import Floats, Integers
from ..params import Positive, Probability, Settings
from .information import PosteriorState, entropy, expected_entropy


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


@dataclass(frozen=True, kw_only=True)
class ActiveLab(ItemPolicy):
    """The items on which a classifier and the annotators are least certain.

    ActiveLab: the items on which a classifier and the annotators are least certain.

    Needs the probabilities of a classifier. The score is that of
    `dissensus.quality.crowdlab`, and the lowest comes first. Every pending label moves a
    score half of the way towards one. Annotators are drawn at random.

        score[i] = (total[i] * consensus_quality[i] + mean / n_classes) / (total[i] + mean)

    When it fails: It needs a classifier; one that is sure and wrong hides its errors.

        H. W. Goh, J. Mueller. ActiveLab: active learning with re-labeling by multiple annotators.
        2023.
        arXiv:2301.11856
    """

    needs_probabilities: ClassVar[bool] = True

    def utility(
        self, state: PosteriorState, pending: Integers, remaining_entropy: Floats
    ) -> Floats:
        from ..quality.crowdlab import activelab

        assert state.probabilities is not None  # `plan` checks it
        return (1 - activelab(state.annotations, state.probabilities)) * np.power(0.5, pending)


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


@dataclass(frozen=True, kw_only=True)
class Random(ItemPolicy):
    """The items with the fewest labels.

    Random: the items with the fewest labels, and random annotators who have not labelled them.

    The baseline, and what most platforms do: every item gets equally many labels.

        utility[i] = -number of labels on i

    When it fails: It spends most labels on items that are already certain.

    Parameters
    ----------
    balanced
        Whether items with fewer labels come first; otherwise items are random.
    """

    balanced: bool = True

    def utility(
        self, state: PosteriorState, pending: Integers, remaining_entropy: Floats
    ) -> Floats:
        if not self.balanced:
            return 0.0 * remaining_entropy
        return -(state.annotations.labels_per_item + pending).astype(float)


@dataclass(frozen=True, kw_only=True)
class Uncertainty(ItemPolicy):
    """The items with the highest posterior entropy.

    Uncertainty sampling: the items with the highest posterior entropy, and random annotators.

    With pending labels, the entropy is the expected one after these.

        utility[i] = entropy(posterior[i])

    When it fails: Items that are ambiguous for everybody stay uncertain and are asked again and
    again; who answers is left to the draw.

        D. D. Lewis, W. A. Gale. A sequential algorithm for training text classifiers. SIGIR, 1994.
    """

    def utility(
        self, state: PosteriorState, pending: Integers, remaining_entropy: Floats
    ) -> Floats:
        return remaining_entropy
