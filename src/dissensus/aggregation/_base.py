"""What every aggregator promises, and the steps that all of them share."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from .._relation import Floats, Integers
from ..annotations import Annotations, Part
from ..engine import Engine, Local
from ..errors import DataError, MethodError
from ..params import Settings
from ..registry import aggregators
from ..result import Aggregation, gold_codes

__all__ = ["TIE", "Aggregator", "Fit", "Progress", "first_best", "share"]

Progress = Callable[[int, float], None]  # called with the round and the objective
TIE = 1e-12  # beliefs closer than this are equal


@dataclass(frozen=True)
class Fit:
    """All that an aggregator is given besides its settings."""

    said: Annotations
    parts: list[Part]
    gold: Integers | None  # (item): the known class, or -1
    engine: Engine
    seed: int
    start: Floats | None  # (item, class): a belief to begin with
    progress: Progress

    def over_items(self, work: Callable[[Part], Floats]) -> Floats:
        """Return what the work says of every item, all parts together."""
        rows = self.engine.each(work, self.parts)
        out = np.empty((self.said.n_items, self.said.n_classes))
        for part, values in zip(self.parts, rows, strict=True):
            out[part.start : part.stop] = values
        return out


@dataclass(frozen=True, kw_only=True)
class Aggregator(Settings, ABC):
    """A way to infer the labels of items from what annotators said."""

    learns: ClassVar[type | None] = None  # the named tuple a fit leaves in `result.params`

    def fit(
        self,
        said: Annotations,
        *,
        gold: Mapping[Any, Any] | None = None,
        start: Aggregation | Floats | None = None,
        seed: int = 0,
        engine: Engine | None = None,
        progress: Progress | None = None,
    ) -> Aggregation:
        """Infer the labels.

        Parameters
        ----------
        said
            The annotations.
        gold
            Known labels, `{item: label}`; they are kept, and methods that learn learn from them.
        start
            A belief to begin with: an earlier result or an array (item, class). Only methods that
            work in rounds use it.
        seed
            Decides ties and random starts.
        engine
            Where to work; by default the threads of this machine.
        progress
            Called after every round with its number and the objective.
        """
        if said.n_classes == 0:
            raise DataError("there is no class to choose from; give labels or declare classes")
        _check_memory(self, said)
        engine = engine or Local()
        codes = gold_codes(said, gold)
        belief = _belief(start, said)
        fit = Fit(
            said,
            said.parts(engine.cut(said), codes),
            codes,
            engine,
            seed,
            belief,
            progress or (lambda _round, _objective: None),
        )
        return self.infer(fit)

    def n_numbers(self, said: Annotations) -> int:
        """Return how many numbers the method has to hold at once."""
        return said.n_items * said.n_classes

    @abstractmethod
    def infer(self, fit: Fit) -> Aggregation:
        """Return the result of a fit."""

    def quality(self, params: Any, agreement: Floats) -> Floats:
        """Return every annotator's probability of being right."""
        return agreement

    def conclude(
        self,
        fit: Fit,
        posterior: Floats,
        label: Integers,
        *,
        params: Any = None,
        trace: tuple[float, ...] = (),
        converged: bool = True,
    ) -> Aggregation:
        """Return the result, with gold kept and silence left undecided."""
        said = fit.said
        label = np.where(said.labels_per_item == 0, -1, label)
        if fit.gold is not None:
            known = fit.gold >= 0
            label[known] = fit.gold[known]
            posterior[known] = np.eye(said.n_classes)[fit.gold[known]]
        agreement = _agreement(fit, posterior)
        return Aggregation(
            aggregators.describe(self),
            said,
            label,
            posterior,
            self.quality(params, agreement),
            agreement,
            params,
            trace,
            converged,
        )


def _check_memory(method: Aggregator, said: Annotations) -> None:
    """Refuse what cannot fit, before it is tried."""
    needed, memory = 8 * method.n_numbers(said), _memory()
    if memory and needed > memory:
        raise MethodError(
            f"{aggregators.describe(method)} needs {needed / 2**30:.3g} GiB for "
            f"{said.n_annotators} annotators and {said.n_classes} classes, and there are "
            f"{memory / 2**30:.3g}; is every answer a class of its own?"
        )


def _memory() -> int:
    """Return how many bytes this machine has; 0 where it does not tell."""
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, OSError, ValueError):
        return 0


def share(counts: Floats, axis: int = -1) -> Floats:
    """Divide by the sum along an axis; where that is zero, everything is equally likely.

    >>> share(np.array([[1.0, 3.0], [0.0, 0.0]])).tolist()
    [[0.25, 0.75], [0.5, 0.5]]
    """
    total = counts.sum(axis=axis, keepdims=True)
    size = counts.shape[axis]
    with np.errstate(invalid="ignore"):
        return np.where(total > 0, counts / total, 1 / size)


def first_best(posterior: Floats) -> Integers:
    """Return the best class of every item; among equals, the first."""
    return (posterior >= posterior.max(axis=1, keepdims=True) - TIE).argmax(axis=1)


def _agreement(fit: Fit, posterior: Floats) -> Floats:
    """Return the mean belief in the labels every annotator gave; NaN for those who gave none."""
    said = fit.said
    width = said.n_annotators

    def believed(part: Part) -> Floats:
        columns = part.said.indices
        rows = np.repeat(np.arange(part.stop - part.start), np.diff(part.said.indptr))
        belief = posterior[part.start : part.stop][rows, columns % said.n_classes]
        annotators = columns // said.n_classes
        return np.bincount(annotators, belief, minlength=width).astype(np.float64, copy=False)

    total = np.zeros(width)
    for more in Local().each(believed, fit.parts):
        total += more
    with np.errstate(invalid="ignore"):
        return total / said.labels_per_annotator


def _belief(start: Aggregation | Floats | None, said: Annotations) -> Floats | None:
    """Return an earlier belief about these items; those it did not know start from their votes."""
    if not isinstance(start, Aggregation):
        shape = (said.n_items, said.n_classes)
        if start is not None and start.shape != shape:
            raise DataError(f"a start is (item, class), here {shape}, but this is {start.shape}")
        return start
    belief = share(said.votes())
    places = {name: place for place, name in enumerate(start.said.items.tolist())}
    classes = {name: place for place, name in enumerate(start.classes.tolist())}
    columns = np.array([classes.get(name, -1) for name in said.classes.tolist()])
    rows = np.array([places.get(name, -1) for name in said.items.tolist()])
    known = np.flatnonzero(rows >= 0)
    if (columns >= 0).all():
        belief[known] = share(start.posterior[rows[known]][:, columns])
    return belief
