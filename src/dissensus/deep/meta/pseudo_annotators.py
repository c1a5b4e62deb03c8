"""Pseudo-annotators, drawn for every episode, who add noise to clean source labels.

Annotators are of five types, each with a confusion matrix (true class, given class):

    hammer          right with p from `accuracy`, errors uniform
    flipper         right with p from `accuracy`, all errors of a class are the same other class
    spammer         uniform labels, whatever the true class
    class spammer   some labels more often than others, whatever the true class
    adversary       less accurate than guessing

The share of spammers is drawn for every episode, so that what is learned holds for all mixtures of
annotators. Each annotator labels an item with some probability; at least one does.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ...base.arrays import Array, Floats, Integers
from ...errors import MethodError
from ...params import Positive, Probability, Settings


@dataclass(frozen=True, kw_only=True)
class PseudoAnnotators(Settings):
    """The distribution of the annotators of an episode.

    Parameters
    ----------
    spammers
        Lowest and highest share of spammers; drawn uniformly for every episode.
    accuracy
        Lowest and highest accuracy of a hammer; drawn uniformly for every annotator.
    per_item
        Mean number of labels per item; `None` for labels of all annotators.
    fixed
        Round the share of spammers to a number, which leaves at least one other annotator;
        otherwise every annotator is a spammer with that probability.
    flippers
        Share of the hammers who are flippers.
    class_spammers
        Share of the spammers who are class spammers.
    adversaries
        Share of the spammers who are adversaries.
    """

    spammers: tuple = (0.0, 0.8)  # type: ignore[type-arg] # lowest, highest
    accuracy: tuple = (0.8, 1.0)  # type: ignore[type-arg] # lowest, highest
    per_item: Positive | None = None
    fixed: bool = False
    flippers: Probability = 0.0
    class_spammers: Probability = 0.0
    adversaries: Probability = 0.0

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("spammers", "accuracy"):
            low, *high = getattr(self, name)
            if len(high) != 1 or not 0 <= low <= high[0] <= 1:
                raise MethodError(
                    f"{name} = {getattr(self, name)!r}, but it must be two probabilities, "
                    "the lower one first"
                )
        if self.class_spammers + self.adversaries > 1:
            raise MethodError("class_spammers and adversaries are shares that add up to at most 1")

    def draw(
        self, rng: np.random.Generator, n_episodes: int, n_annotators: int, n_classes: int
    ) -> Floats:
        """Return confusion matrices: (episode, annotator, true, given)."""
        sizes = n_episodes, n_annotators
        spammer = self._draw_spammers(rng, *sizes)
        accuracy = _uniform(rng, self.accuracy, sizes)
        type_, guess = rng.random(sizes), 1 / n_classes
        accuracy = np.where(spammer, guess, accuracy)
        adversary = spammer & (type_ < self.adversaries)
        accuracy = np.where(adversary, guess * rng.random(sizes), accuracy)[:, :, None, None]
        eye = np.eye(n_classes)
        matrix = accuracy * eye + (1 - accuracy) / max(n_classes - 1, 1) * (1 - eye)
        preference = rng.dirichlet(np.ones(n_classes), size=sizes)[:, :, None]
        class_spammer = spammer & ~adversary & (type_ < self.adversaries + self.class_spammers)
        matrix = np.where(class_spammer[:, :, None, None], preference, matrix)
        flipper = (~spammer & (type_ < self.flippers))[:, :, None, None]
        cycles = _random_cycles(rng, sizes, n_classes)
        return np.where(flipper, accuracy * eye + (1 - accuracy) * cycles, matrix)

    def _draw_spammers(self, rng: np.random.Generator, n_episodes: int, n_annotators: int) -> Array:
        """Return which annotators are spammers: (episode, annotator)."""
        ratio = _uniform(rng, self.spammers, (n_episodes, 1))
        rank = rng.random((n_episodes, n_annotators))
        if not self.fixed:
            return rank < ratio
        count = np.minimum(np.rint(ratio * n_annotators), n_annotators - 1)
        return rank.argsort(axis=1).argsort(axis=1) < count


def annotate(
    rng: np.random.Generator, confusion: Floats, truth: Integers, per_item: float | None = None
) -> Integers:
    """Return labels of items.

    Parameters
    ----------
    rng
        Random generator.
    confusion
        Of the annotators: (episode, annotator, true, given).
    truth
        Of the items: (episode, item).
    per_item
        Mean number of labels per item; `None` for labels of all annotators.

    Returns
    -------
    (episode, item, annotator), -1 for unlabelled.
    """
    n_annotators = confusion.shape[1]
    annotations = np.full((*truth.shape, n_annotators), -1)
    selected = np.ones(annotations.shape, dtype=bool)
    if per_item is not None and per_item < n_annotators:
        score = np.asarray(rng.random(annotations.shape))
        selected = score < per_item / n_annotators
        selected |= score == score.min(axis=2, keepdims=True)  # at least one
    episode, item, annotator = np.nonzero(selected)
    rows = confusion[episode, annotator, truth[episode, item]]  # (annotation, given)
    cumulative = rows.cumsum(axis=1)[:, :-1]
    annotations[selected] = (rng.random((len(rows), 1)) > cumulative).sum(axis=1)
    return annotations


def _uniform(rng: np.random.Generator, limits: Any, sizes: tuple[int, int]) -> Floats:
    return limits[0] + (limits[1] - limits[0]) * rng.random(sizes)


def _random_cycles(rng: np.random.Generator, sizes: tuple[int, int], n_classes: int) -> Floats:
    """Return permutations without a fixed point, as matrices: (episode, annotator, true, given)."""
    order = rng.random((*sizes, n_classes)).argsort(axis=2)
    matrix = np.zeros((*sizes, n_classes, n_classes))
    row, column = np.ogrid[: sizes[0], : sizes[1]]
    for rank in range(n_classes):
        matrix[row, column, order[..., rank], order[..., rank - 1]] = 1.0
    return matrix
