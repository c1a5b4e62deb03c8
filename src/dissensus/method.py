"""Methods: settings and one function, from answers of a kind to what is true.

    @dataclass(frozen=True, kw_only=True)
    class MeanBox(Method[Boxes, AnswerAggregation]):
        kinds = ("boxes",)

        def infer(self, fit: FitContext[Boxes]) -> AnswerAggregation: ...

`fit` is the same for all; a family of methods computes what it needs before as its own context.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Generic, NamedTuple, Protocol, Self, TypeVar

import numpy as np
import numpy.typing as npt

from .answers.base import Relation
from .answers.gold import as_gold
from .base.arrays import Floats
from .base.engine import Engine, Local
from .errors import DataError, OptionError
from .params import Settings
from .registry import methods

if TYPE_CHECKING:
    from .aggregation.aggregation import Aggregation

Kind = TypeVar("Kind", bound=Relation)
Inferred = TypeVar("Inferred", bound="Aggregation")
Progress = Callable[..., None]  # called with the iteration and the objective


def no_progress(_iteration: int, _objective: float) -> None:
    """Report nothing."""


class Fitted(NamedTuple):
    """Fitted parameters, and how they were reached."""

    params: Any = None
    trace: tuple[float, ...] = ()
    converged: bool = True
    notes: tuple[str, ...] = ()


class Checkpoints(Protocol):
    """Storage for the state of a fit, so that an interrupted fit can be resumed."""

    def load(self, params_type: type | None, attempt: int) -> Fitted | None:
        """Return the state after the last iteration of an attempt; `None` where there is none."""
        ...

    def save(self, fitted: Fitted, attempt: int) -> None:
        """Store the state of an attempt."""
        ...


@dataclass(frozen=True, kw_only=True)
class FitContext(Generic[Kind]):
    """Everything that a method is given besides its settings.

    Attributes
    ----------
    answers
        The answers.
    gold
        Known answers: one answer to every known item, with the same items, or `None`. Methods for
        classes have codes here, those for numbers values.
    engine
        Where to work.
    seed
        Random seed.
    progress
        Called after every iteration with its number and the objective.
    start
        What to start from; only methods for classes have it.
    features
        Features of the items, (item, feature); only methods for classes have them.
    checkpoints
        Storage for the state, where a fit can be resumed.
    """

    answers: Kind
    gold: Any = None
    engine: Engine
    seed: int = 0
    progress: Progress = no_progress
    start: Any = None
    features: Floats | None = None
    checkpoints: Checkpoints | None = None

    @cached_property
    def known(self) -> npt.NDArray[np.bool_]:
        """Whether the answer to an item is known: (item)."""
        if self.gold is None:
            return np.zeros(self.answers.n_items, dtype=bool)
        return np.asarray(self.gold.labels_per_item > 0)


@dataclass(frozen=True, kw_only=True)
class Method(Settings, ABC, Generic[Kind, Inferred]):
    """A method that infers what is true of items from answers of some kinds."""

    kinds: ClassVar[tuple[str, ...]] = ()  # of a method of another package: what it is for
    side_tables: ClassVar[tuple[str, ...]] = ()  # settings that may name files
    gold_is_labels: ClassVar[bool] = False  # `{item: label}`, not answers of the kind

    def fit(
        self,
        answers: Kind,
        *,
        gold: Any = None,
        start: Any = None,
        features: Floats | None = None,
        seed: int = 0,
        engine: Engine | None = None,
        progress: Progress | None = None,
    ) -> Inferred:
        """Infer what is true.

        Parameters
        ----------
        answers
            The answers.
        gold
            Known answers, `{item: answer}`: they are kept, and methods with parameters learn from
            them. For kinds other than classes and numbers also answers of one annotator.
        start
            What to start from: an earlier result or a posterior (item, class). Only iterative
            methods for classes use it.
        features
            Features of the items, (item, feature), for methods for classes that use them.
        seed
            Random seed, for ties and random starts.
        engine
            Where to work; by default the threads of this machine.
        progress
            Called after every iteration with its number and the objective.
        """
        fit = self.context(
            answers,
            gold=gold,
            start=start,
            features=features,
            seed=seed,
            engine=engine or Local(),
            progress=progress or no_progress,
        )
        return self.finish(fit, self.infer(fit))

    def context(
        self, answers: Any, *, gold: Any, start: Any, features: Floats | None, **given: Any
    ) -> FitContext[Any]:
        """Return what `infer` is given; data that cannot be aggregated are refused."""
        if len(answers) == 0:
            raise DataError("there is no answer to aggregate")
        if start is not None or features is not None:
            unused = "start" if start is not None else "features"
            raise OptionError(f"methods for {answers.kind} use no {unused}")
        return FitContext(answers=answers, gold=as_gold(answers, gold), **given)

    @abstractmethod
    def infer(self, fit: Any) -> Inferred:
        """Return the result of a fit."""

    def finish(self, fit: Any, result: Inferred) -> Inferred:
        """Return a result with what follows from the whole fit."""
        return result

    def with_authors(self, author_of: Mapping[str, str]) -> Self:
        """Return the method for answers without those of authors about their own items."""
        return self

    def spec_for(self, kind: str) -> str:
        """Return the specification of this method among those for a kind."""
        return methods[kind].describe(self)
