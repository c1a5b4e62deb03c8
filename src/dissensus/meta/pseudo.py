"""Pseudo-annotators: a crowd drawn for every episode, which makes clean source labels shaky.

Annotators are of five types, each with a confusion matrix (true class, given class):

    hammer          right with p from `accuracy`, errors even
    flipper         right with p from `accuracy`, every error of a class is the same other class
    spammer         every label alike, whatever is true
    class spammer   some labels rather than others, whatever is true
    adversary       right less often than a guess

The share of spammers is drawn for every episode, so that what is learned holds for crowds of all
sorts. Each annotator labels an item with a probability; at least one does.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from .._relation import Array, Floats, Integers
from ..errors import MethodError
from ..params import Positive, Probability, Settings

__all__ = ["PseudoCrowd", "annotate"]


@dataclass(frozen=True, kw_only=True)
class PseudoCrowd(Settings):
    """Where the annotators of an episode come from.

    Parameters
    ----------
    spammers
        Lowest and highest share of spammers; drawn evenly between them for every episode.
    accuracy
        Lowest and highest probability of a hammer to be right; drawn for every annotator.
    per_item
        Labels per item in the mean; `None` for those of all annotators.
    fixed
        Let the number of spammers be the rounded share of all, with at least one who is none;
        otherwise each annotator is a spammer or not by chance.
    flippers
        Share of the hammers whose errors are always the same.
    class_spammers
        Share of the spammers who prefer some labels.
    adversaries
        Share of the spammers who are wrong more often than a guess.
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
        spams = self._spams(rng, *sizes)
        right = _between(rng, self.accuracy, sizes)
        kind, even = rng.random(sizes), 1 / n_classes
        chance = np.where(spams, even, right)
        adversary = spams & (kind < self.adversaries)
        chance = np.where(adversary, even * rng.random(sizes), chance)
        eye = np.eye(n_classes)
        chance = chance[:, :, None, None]
        matrix = chance * eye + (1 - chance) / max(n_classes - 1, 1) * (1 - eye)
        taste = rng.dirichlet(np.ones(n_classes), size=sizes)[:, :, None]
        prefers = spams & ~adversary & (kind < self.adversaries + self.class_spammers)
        matrix = np.where(prefers[:, :, None, None], taste, matrix)
        flips = ~spams & (kind < self.flippers)
        turned = _cycles(rng, sizes, n_classes)
        return np.where(flips[:, :, None, None], chance * eye + (1 - chance) * turned, matrix)

    def _spams(self, rng: np.random.Generator, n_episodes: int, n_annotators: int) -> Array:
        """Return who is a spammer: (episode, annotator)."""
        ratio = _between(rng, self.spammers, (n_episodes, 1))
        position = rng.random((n_episodes, n_annotators))
        if not self.fixed:
            return position < ratio
        count = np.minimum(np.rint(ratio * n_annotators), n_annotators - 1)
        return position.argsort(axis=1).argsort(axis=1) < count


def annotate(
    rng: np.random.Generator,
    confusion: Floats,
    truth: Integers,
    per_item: float | None = None,
) -> Integers:
    """Return what annotators say of items.

    Parameters
    ----------
    rng
        Where chance comes from.
    confusion
        Of the annotators: (episode, annotator, true, given).
    truth
        Of the items: (episode, item).
    per_item
        Labels per item in the mean; `None` for those of all annotators.

    Returns
    -------
    (episode, item, annotator), -1 where nobody was asked.
    """
    n_annotators = confusion.shape[1]
    annotations = np.full((*truth.shape, n_annotators), -1)
    asked = np.ones(annotations.shape, dtype=bool)
    if per_item is not None and per_item < n_annotators:
        lot = np.asarray(rng.random(annotations.shape))
        asked = lot < per_item / n_annotators
        asked |= lot == lot.min(axis=2, keepdims=True)  # at least one
    episode, item, annotator = np.nonzero(asked)
    rows = confusion[episode, annotator, truth[episode, item]]  # (annotation, given)
    steps = rows.cumsum(axis=1)[:, :-1]
    annotations[asked] = (rng.random((len(rows), 1)) > steps).sum(axis=1)
    return annotations


def _between(rng: np.random.Generator, ends: Any, sizes: tuple[int, int]) -> Floats:
    return ends[0] + (ends[1] - ends[0]) * rng.random(sizes)


def _cycles(rng: np.random.Generator, sizes: tuple[int, int], n_classes: int) -> Floats:
    """Return permutations without a fixed point, as matrices: (episode, annotator, true, given)."""
    order = rng.random((*sizes, n_classes)).argsort(axis=2)
    matrix = np.zeros((*sizes, n_classes, n_classes))
    row, column = np.ogrid[: sizes[0], : sizes[1]]
    for position in range(n_classes):
        matrix[row, column, order[..., position], order[..., position - 1]] = 1.0
    return matrix
