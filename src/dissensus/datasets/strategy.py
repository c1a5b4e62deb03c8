"""The interface of strategies: the truth, the annotators, and their answers.

Both ways to simulate, item by item and all at once, call the same hooks. So a strategy defines its
model once, for any number of pairs of item and annotator.

Which annotators label which item, for all items at once.

Rows are items, each with distinct annotators in ascending order. Where more than half of all
annotators label an item, those who do not are drawn instead.

The interface of strategies whose answers are sets, rankings, marks or masks.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import Annotated, Any, ClassVar, NamedTuple

import numpy as np
import numpy.typing as npt
from annotated_types import Ge

from ..answers import Answers
from ..base.arrays import Array, Codes, Floats, Integers, smallest_dtype
from ..base.names import numbered
from ..base.probability import pick
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


class Labels(NamedTuple):
    """Labels, sorted by item, then annotator."""

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


def drawn(n_items: int, most: int, n_annotators: int, rng: np.random.Generator) -> Codes:
    """Return `most` annotators for every item, every set of them equally probable.

    Repeats are drawn again, as often as needed, which treats all annotators alike.

    >>> drawn(2, 3, 3, np.random.default_rng(0)).tolist()
    [[0, 1, 2], [0, 1, 2]]
    """
    if 2 * most > n_annotators:
        return others(drawn(n_items, n_annotators - most, n_annotators, rng), n_annotators)
    dtype: Any = smallest_dtype(n_annotators)
    rows = rng.integers(n_annotators, size=(n_items, most), dtype=dtype)
    rows.sort(axis=1)
    again = np.flatnonzero(repeated(rows).any(axis=1))
    while len(again):
        some = rows[again]
        twice = repeated(some)
        some[twice] = rng.integers(n_annotators, size=int(twice.sum()), dtype=dtype)
        some.sort(axis=1)
        rows[again] = some
        again = again[repeated(some).any(axis=1)]
    return rows


def loads(total: int, cap: int, n_annotators: int, rng: np.random.Generator) -> Integers:
    """Return how many labels every annotator gives, none more than `cap`."""
    load = np.zeros(n_annotators, dtype=np.int64)
    while left := total - int(load.sum()):
        free = np.flatnonzero(load < cap)
        load[free] += rng.multinomial(left, np.full(len(free), 1 / len(free)))
        np.minimum(load, cap, out=load)
    return load


def assign_loads(n_items: int, load: Integers, rng: np.random.Generator) -> Codes:
    """Return annotators for every item, each as often as `load` says, at most once per item.

    The labels of all annotators are shuffled and assigned in order. An annotator who is then in a
    row twice is swapped with one of another row, if that makes fewer repeats. Such a swap always
    exists while no load exceeds the number of items, so random tries come to an end.
    """
    n_annotators = len(load)
    most = int(load.sum()) // n_items
    if 2 * most > n_annotators:
        return others(assign_loads(n_items, n_items - load, rng), n_annotators)
    slots = np.repeat(np.arange(n_annotators, dtype=smallest_dtype(n_annotators)), load)
    rng.shuffle(slots)
    rows = slots.reshape(n_items, most)
    rows.sort(axis=1)
    again = np.flatnonzero(repeated(rows).any(axis=1))
    owner = np.empty(n_items, dtype=np.int64)
    while len(again):
        turn = np.arange(len(again))
        position = repeated(rows[again]).argmax(axis=1)
        other, spot = rng.integers(n_items, size=len(again)), rng.integers(most, size=len(again))
        owner[again] = turn
        owner[other] = turn
        mine, theirs = rows[again], rows[other]  # (pair, slot)
        give, take = mine[turn, position][:, None], theirs[turn, spot][:, None]
        fits = (owner[again] == turn) & (owner[other] == turn)  # no row in two swaps
        fits &= ~(theirs == give).any(axis=1)
        fits &= ~(mine == take).any(axis=1) | ((theirs == take).sum(axis=1) > 1)
        rows[again[fits], position[fits]] = take[fits, 0]
        rows[other[fits], spot[fits]] = give[fits, 0]
        touched = np.concatenate([again, other[fits]])
        rows[touched] = np.sort(rows[touched], axis=1)
        again = np.unique(touched)
        again = again[repeated(rows[again]).any(axis=1)]
    return rows


def others(absent: Codes, n_annotators: int) -> Codes:
    """Return the annotators who are not in a row.

    >>> others(np.array([[1], [0]], dtype=np.uint8), 3).tolist()
    [[0, 2], [1, 2]]
    """
    present = np.ones((len(absent), n_annotators), dtype=bool)
    np.put_along_axis(present, absent, False, axis=1)
    codes = np.nonzero(present)[1].astype(smallest_dtype(n_annotators))
    return codes.reshape(len(absent), n_annotators - absent.shape[1])


def repeated(rows: Codes) -> npt.NDArray[np.bool_]:
    """Return where a sorted row has the same annotator as before."""
    same = np.zeros(rows.shape, dtype=bool)
    np.equal(rows[:, 1:], rows[:, :-1], out=same[:, 1:])
    return same


class Drawn(NamedTuple):
    """Answers, the truth, and what was drawn of annotators."""

    answers: Answers
    truth: Answers | dict[str, float]  # one answer per item, or the scores of things
    crowd: dict[str, Array]


class Assigned(NamedTuple):
    """Who is asked about what: (answer), sorted by item."""

    item: Integers
    annotator: Integers
    n_items: int
    n_annotators: int

    @property
    def names(self) -> dict[str, Any]:
        """The names of items and annotators."""
        return {"items": numbered(self.n_items), "annotators": numbered(self.n_annotators)}


@dataclass(frozen=True, kw_only=True)
class AnswerStrategy(Settings, ABC):
    """A crowd that answers questions of some kind."""

    @abstractmethod
    def draw(self, asked: Assigned, rng: np.random.Generator) -> Drawn:
        """Return answers of all who are asked, and the truth."""


def assign(
    n_items: int, n_annotators: int, feedback: int | None, rng: np.random.Generator
) -> Assigned:
    """Return who is asked: `feedback` annotators drawn for every item, or all of them."""
    for name, value in (("n_items", n_items), ("n_annotators", n_annotators)):
        if value < 1:
            raise OptionError(f"{name} = {value}, but it must be at least 1")
    each = n_annotators if feedback is None else min(feedback, n_annotators)
    order = rng.random((n_items, n_annotators)).argsort(axis=1)[:, :each]
    annotator = np.sort(order, axis=1).ravel()
    return Assigned(np.repeat(np.arange(n_items), each), annotator, n_items, n_annotators)
