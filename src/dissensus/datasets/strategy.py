"""The interface of strategies: the truth, the annotators, and their answers.

Both ways to simulate, item by item and all at once, call the same hooks. So a strategy defines its
model once, for any number of pairs of item and annotator.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import Annotated, Any, ClassVar, NamedTuple

import numpy as np
from annotated_types import Ge

from ..base.probability import pick
from ..base.arrays import Array, Codes, Floats, Integers
from ..errors import MethodError, OptionError
from ..params import Count, Settings, Size


@dataclass(frozen=True, kw_only=True, eq=False)
class Design(Settings):
    """The size of a simulation; parameters as in `simulate`."""

    n_items: Size = 20
    n_annotators: Size = 1
    n_classes: Count = 2
    feedback: Size | None = None
    workerload: Size | None = None
    imbalance: bool = False
    seed: Annotated[int, Ge(0)] = 0
    fast: bool = False
    matrices: object = field(default=None, repr=False)

    def __post_init__(self) -> None:
        try:
            super().__post_init__()
        except MethodError as problem:
            raise OptionError(str(problem)) from None
        if self.cap * self.n_annotators < self.n_items:
            raise OptionError(
                f"workerload = {self.cap} lets {self.n_annotators} annotators give "
                f"{self.cap * self.n_annotators} labels, but {self.n_items} items need one each"
            )

    @property
    def cap(self) -> int:
        """Labels that one annotator may give."""
        return self.workerload or self.n_items

    @property
    def most(self) -> int:
        """Labels that one item may get."""
        return min(self.cap, self.n_annotators, self.feedback or self.n_annotators)


class CrowdParameters(NamedTuple):
    """Parameters of annotators, and of items besides their truth."""

    n_classes: int
    confusion: Floats | None  # (annotator, true class, given class), where there is one
    extras: dict[str, Array]  # other parameters


class Asked(NamedTuple):
    """Who is asked about which items."""

    item: Array  # (answer)
    annotator: Array  # (answer)
    truth: Array  # (answer): of its item


class Answers(NamedTuple):
    """Answers, sorted by item, then annotator."""

    starts: Integers  # (item + 1): the answers on item i are starts[i]:starts[i + 1]
    annotator: Codes  # (answer)
    answer: Array  # (answer): a class, or a number


@dataclass(frozen=True, kw_only=True)
class Strategy(Settings, ABC):
    """A way to draw annotators and their answers."""

    numeric: ClassVar[bool] = False  # whether answers are numbers instead of classes

    def truth(self, design: Design, rng: np.random.Generator) -> Array:
        """Return the truth of every item; by default all classes are equally common."""
        return rng.choice(design.n_classes, size=design.n_items, replace=True)

    @abstractmethod
    def crowd(self, design: Design, rng: np.random.Generator) -> CrowdParameters:
        """Return the parameters of the annotators."""

    def probabilities(self, crowd: CrowdParameters, asked: Asked) -> Floats:
        """Return the probability of every class for every answer: (answer, class)."""
        assert crowd.confusion is not None  # or the strategy overrides this
        return crowd.confusion[asked.annotator, asked.truth]

    def answers(self, crowd: CrowdParameters, asked: Asked, rng: np.random.Generator) -> Array:
        """Return what annotators answer about items."""
        return pick(self.probabilities(crowd, asked), rng)


def dominant(matrices: Floats) -> Floats:
    """Return matrices in which every diagonal entry is swapped with its row's maximum."""
    rows = matrices.reshape(-1, matrices.shape[-1]).copy()
    every = np.arange(len(rows))
    true = every % matrices.shape[-1]
    best = rows.argmax(axis=1)
    rows[every, true], rows[every, best] = rows[every, best], rows[every, true]
    return rows.reshape(matrices.shape)


def one_coin(correct: Floats, is_true: Any) -> Floats:
    """Return `correct` for the true class; the other classes share the rest evenly."""
    others = is_true.shape[-1] - 1
    wrong = (1 - correct) / max(others, 1)
    return np.where(is_true, 1 - wrong * others, wrong)
