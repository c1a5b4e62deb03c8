"""The interface of methods for answers that are no classes, and the steps they have in common."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from .aggregation import Progress, no_progress
from .aggregation.aggregation import Consensus
from .answers import Answers
from .base.arrays import Array
from .base.engine import Engine, Local
from .errors import DataError
from .params import Settings
from .registry import registries
from .result import Aggregation, Table


@dataclass(frozen=True)
class ConsensusContext:
    """Everything that a method is given besides its settings."""

    answers: Any  # of the method's kind
    gold: Any | None  # the known answers: one on every known item, with the same items
    engine: Engine
    seed: int = 0
    progress: Progress = no_progress

    @cached_property
    def known(self) -> npt.NDArray[np.bool_]:
        """Whether the answer to an item is known: (item)."""
        if self.gold is None:
            return np.zeros(self.answers.n_items, dtype=bool)
        return self.gold.labels_per_item > 0


@dataclass(frozen=True, kw_only=True)
class ConsensusMethod(Settings, ABC):
    """A method that infers what is true of items from answers of some kind."""

    def fit(
        self,
        answers: Answers,
        *,
        gold: Answers | Mapping[Any, Any] | None = None,
        seed: int = 0,
        engine: Engine | None = None,
        progress: Progress | None = None,
    ) -> Consensus:
        """Infer the consensus.

        Parameters
        ----------
        answers
            The answers.
        gold
            Known answers: `{item: value}` with values as in rows, or answers of one annotator.
            They are kept, and methods with parameters learn from them.
        seed
            Random seed.
        engine
            Where to work; by default the threads of this machine.
        progress
            Called after every iteration with its number and the objective.
        """
        if len(answers) == 0:
            raise DataError("there is no answer to aggregate")
        known = as_gold(answers, gold)
        return self.infer(
            ConsensusContext(answers, known, engine or Local(), seed, progress or no_progress)
        )

    @abstractmethod
    def infer(self, fit: ConsensusContext) -> Consensus:
        """Return the result of a fit."""

    def result(
        self,
        fit: ConsensusContext,
        items: Table,
        annotators: Mapping[str, Array],
        *,
        inner: Aggregation | None = None,
        params: Mapping[str, Array] | None = None,
        trace: tuple[float, ...] = (),
        converged: bool = True,
        notes: tuple[str, ...] = (),
    ) -> Consensus:
        """Return the result of a fit; every annotator's name and number of answers are added."""
        answers = fit.answers
        people = {"annotator": answers.annotators, "n_answers": answers.labels_per_annotator}
        if answers.n_annotators == 1:
            notes = (*notes, "There is one annotator: the consensus is what they answered.")
        return Consensus(
            method=registries[answers.kind].describe(self),
            answers=answers,
            items=items,
            annotators=people | dict(annotators),
            inner=inner,
            params=params or {},
            trace=trace,
            converged=converged,
            notes=notes,
        )


def as_gold(answers: Answers, gold: Answers | Mapping[Any, Any] | None) -> Answers | None:
    """Return known answers with the items of the answers; refuse those of another kind."""
    if gold is None or len(gold) == 0:
        return None
    if isinstance(gold, Mapping):
        who = ["gold"] * len(gold)
        gold = type(answers).from_values(list(gold), who, list(gold.values()))
    if gold.kind != answers.kind:
        raise DataError(f"the answers are {answers.kind}, but gold is {gold.kind}")
    known = answers.align(gold)
    if len(known) == 0:
        raise DataError("gold is given, but for none of the annotated items")
    if known.labels_per_item.max() > 1:
        twice = answers.items[known.labels_per_item.argmax()]
        raise DataError(f"gold has several answers to item {twice!r}; keep one of them")
    return known
