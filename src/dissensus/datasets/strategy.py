"""The interface of strategies: the truth, the annotators, and their answers.

Both ways to simulate, item by item and all at once, call the same hooks. So a strategy defines its
model once, for any number of pairs of item and annotator.

Which annotators label which item is drawn for all items at once: rows are items, each with distinct
annotators in ascending order. Where more than half of all annotators label an item, those who do
not are drawn instead. Strategies whose answers are sets, rankings, marks or masks have one hook,
which draws all of it.
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

    def probabilities(self, crowd: CrowdParameters, pairs: Asked) -> Floats:
        """Return the probability of every class for every answer: (answer, class)."""
        assert crowd.confusion is not None  # or the strategy overrides this
        return crowd.confusion[pairs.annotator, pairs.truth]

    def answers(self, crowd: CrowdParameters, pairs: Asked, rng: np.random.Generator) -> Array:
        """Return what annotators answer about items."""
        return pick(self.probabilities(crowd, pairs), rng)


def dominant(matrices: Floats) -> Floats:
    """Return matrices in which every diagonal entry is swapped with its row's maximum."""
    rows = matrices.reshape(-1, matrices.shape[-1]).copy()
    index = np.arange(len(rows))
    true = index % matrices.shape[-1]
    best = rows.argmax(axis=1)
    rows[index, true], rows[index, best] = rows[index, best], rows[index, true]
    return rows.reshape(matrices.shape)


def one_coin(correct: Floats, is_true: Any) -> Floats:
    """Return `correct` for the true class; the other classes share the rest evenly."""
    n_wrong = is_true.shape[-1] - 1
    wrong = (1 - correct) / max(n_wrong, 1)
    return np.where(is_true, 1 - wrong * n_wrong, wrong)


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
    pending = np.flatnonzero(repeated(rows).any(axis=1))
    while len(pending):
        redrawn = rows[pending]
        twice = repeated(redrawn)
        redrawn[twice] = rng.integers(n_annotators, size=int(twice.sum()), dtype=dtype)
        redrawn.sort(axis=1)
        rows[pending] = redrawn
        pending = pending[repeated(redrawn).any(axis=1)]
    return rows


def loads(total: int, cap: int, n_annotators: int, rng: np.random.Generator) -> Integers:
    """Return how many labels every annotator gives, none more than `cap`."""
    load = np.zeros(n_annotators, dtype=np.int64)
    while remaining := total - int(load.sum()):
        free = np.flatnonzero(load < cap)
        load[free] += rng.multinomial(remaining, np.full(len(free), 1 / len(free)))
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
    pending = np.flatnonzero(repeated(rows).any(axis=1))
    owner = np.empty(n_items, dtype=np.int64)
    while len(pending):
        turn = np.arange(len(pending))
        position = repeated(rows[pending]).argmax(axis=1)
        partner, spot = (
            rng.integers(n_items, size=len(pending)),
            rng.integers(most, size=len(pending)),
        )
        owner[pending] = turn
        owner[partner] = turn
        own_rows, partner_rows = rows[pending], rows[partner]  # (pair, slot)
        give, take = own_rows[turn, position][:, None], partner_rows[turn, spot][:, None]
        fits = (owner[pending] == turn) & (owner[partner] == turn)  # no row in two swaps
        fits &= ~(partner_rows == give).any(axis=1)
        fits &= ~(own_rows == take).any(axis=1) | ((partner_rows == take).sum(axis=1) > 1)
        rows[pending[fits], position[fits]] = take[fits, 0]
        rows[partner[fits], spot[fits]] = give[fits, 0]
        touched = np.concatenate([pending, partner[fits]])
        rows[touched] = np.sort(rows[touched], axis=1)
        pending = np.unique(touched)
        pending = pending[repeated(rows[pending]).any(axis=1)]
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
    equal = np.zeros(rows.shape, dtype=bool)
    np.equal(rows[:, 1:], rows[:, :-1], out=equal[:, 1:])
    return equal


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
    def draw(self, assignment: Assigned, rng: np.random.Generator) -> Drawn:
        """Return answers of all who are asked, and the truth."""


def assign(
    n_items: int, n_annotators: int, feedback: int | None, rng: np.random.Generator
) -> Assigned:
    """Return who is asked: `feedback` annotators drawn for every item, or all of them."""
    for name, value in (("n_items", n_items), ("n_annotators", n_annotators)):
        if value < 1:
            raise OptionError(f"{name} = {value}, but it must be at least 1")
    n_each = n_annotators if feedback is None else min(feedback, n_annotators)
    order = rng.random((n_items, n_annotators)).argsort(axis=1)[:, :n_each]
    annotator = np.sort(order, axis=1).ravel()
    return Assigned(np.repeat(np.arange(n_items), n_each), annotator, n_items, n_annotators)
