"""What every aggregator promises, and the steps that all of them share."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar, NamedTuple, Protocol, TypeVar

import numpy as np

from .._relation import Array, Floats, Integers, indices_of
from ..annotations import Annotations, Part
from ..engine import Engine, Local
from ..errors import DataError, MethodError
from ..params import Settings
from ..registry import aggregators
from ..result import Aggregation, gold_codes

__all__ = ["TIE", "Aggregator", "Fit", "Found", "Kept", "Progress", "first_best", "share"]

Progress = Callable[[int, float], None]  # called with the round and the objective
Result = TypeVar("Result")
TIE = 1e-12  # beliefs closer than this are equal


class Found(NamedTuple):
    """What a method learned from all parts, and how it came by it."""

    params: Any = None
    trace: tuple[float, ...] = ()
    converged: bool = True


class Kept(Protocol):
    """A place where rounds are kept, so that a fit that was ended can be taken up again."""

    def load(self, kind: type | None, attempt: int) -> Found | None:
        """Return what was found until the last round of an attempt; `None` where nothing was."""
        ...

    def save(self, found: Found, attempt: int) -> None:
        """Keep what was found so far."""
        ...


@dataclass(frozen=True)
class Fit:
    """All that an aggregator is given besides its settings."""

    annotations: Annotations
    parts: Sequence[Any]  # of type `Part`, or what the engine has in its place
    gold: Integers | None  # (item): the known class, or -1
    engine: Engine
    seed: int
    start: Floats | None  # (item, class): a belief to begin with
    progress: Progress
    features: Floats | None = None  # (item, feature): what is known of the items themselves
    kept: Kept | None = None
    first: int = 0  # items before these, where they are a piece of more
    n_class: Integers | None = None  # (class): labels of every class, where these are a piece

    @property
    def labels_per_class(self) -> Integers:
        """How many labels name every class, in all there are."""
        if self.n_class is not None:
            return self.n_class
        return np.bincount(self.annotations.label, minlength=self.annotations.n_classes)

    def add_up(self, work: Callable[[Part], Result]) -> Result:
        """Return what the work makes of every part, added up field by field."""
        return self.engine.add_up(work, self.parts)

    def keep_gold(self, label: Integers) -> Integers:
        """Return labels with the known ones in their places."""
        if self.gold is None:
            return label
        return np.where(self.gold >= 0, self.gold, label)

    def over_items(self, work: Callable[[Part], Floats]) -> Floats:
        """Return what the work says of every item, all parts together."""
        rows = self.engine.each(work, self.parts)
        out = np.empty((self.annotations.n_items, self.annotations.n_classes))
        for part, values in zip(self.parts, rows, strict=True):
            out[part.start : part.stop] = values
        return out


@dataclass(frozen=True, kw_only=True)
class Aggregator(Settings, ABC):
    """A way to infer the labels of items from what annotators said."""

    learns: ClassVar[type | None] = None  # the named tuple a fit leaves in `result.params`
    most_classes: ClassVar[int | None] = None  # where a method cannot choose between more
    random_folds: ClassVar[bool] = False  # whether it deals annotations to folds, by their places
    abstains: ClassVar[bool] = False  # whether items with labels may be left undecided
    additive: ClassVar[bool] = False  # whether it learns from sums over parts, and judges by them

    def fit(
        self,
        annotations: Annotations,
        *,
        gold: Mapping[Any, Any] | None = None,
        start: Aggregation | Floats | None = None,
        seed: int = 0,
        engine: Engine | None = None,
        progress: Progress | None = None,
        features: Floats | None = None,
    ) -> Aggregation:
        """Infer the labels.

        Parameters
        ----------
        annotations
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
        features
            Numbers that describe the items: (item, feature). Only methods that say so use them.
        """
        _check_possible(self, annotations)
        check_memory(self, annotations)
        _check_features(features, annotations)
        engine = engine or Local()
        codes = gold_codes(annotations, gold)
        fit = Fit(
            annotations,
            annotations.parts(engine.cut(annotations), codes),
            codes,
            engine,
            seed,
            _belief(start, annotations),
            progress or (lambda _round, _objective: None),
            features,
        )
        return self.infer(fit)

    def predict(
        self,
        known: Aggregation,
        annotations: Annotations,
        engine: Engine | None = None,
        features: Floats | None = None,
    ) -> Aggregation:
        """Return labels of other items by a crowd that an earlier fit has come to know.

        Nothing is learned anew. Annotators whom the fit did not know count as its average one.
        """
        annotations = annotations.recode(known.classes)
        if known.params is None:
            return self.fit(annotations, engine=engine, features=features)
        _check_features(features, annotations)
        engine = engine or Local()
        indices = indices_of(annotations.annotators, known.annotations.annotators)
        params = known.params.reindex(indices, annotations.n_items)
        parts = annotations.parts(engine.cut(annotations))
        fit = Fit(annotations, parts, None, engine, 0, None, lambda *_: None, features)
        posterior, label = self.judge(fit, params)
        return self.conclude(fit, posterior, label, params=params)

    def n_numbers(self, annotations: Annotations) -> int:
        """Return how many numbers the method has to hold at once."""
        return annotations.n_items * annotations.n_classes

    @abstractmethod
    def infer(self, fit: Fit) -> Aggregation:
        """Return the result of a fit."""

    def find(self, fit: Fit) -> Found:
        """Return what is learned from all parts; only additive methods say."""
        raise NotImplementedError

    def judge(self, fit: Fit, params: Any) -> tuple[Floats, Integers]:
        """Return posterior and labels under parameters that are known."""
        raise NotImplementedError  # only for methods without parameters

    def quality(self, params: Any, agreement: Floats) -> Floats:
        """Return every annotator's probability of being right."""
        return agreement

    def interval(self, params: Any, level: float) -> Floats | None:
        """Return where the quality of every annotator lies with this probability: (annotator, 2).

        `None` where the method does not say.
        """
        return None

    def confusion(self, params: Any) -> Floats | None:
        """Return what annotators make of every class: (annotator, true class, given class).

        `None` where the method has no such model.
        """
        return None

    def chances(self, params: Any, item: Array, annotator: Array) -> Floats | None:
        """Return how probable every label is for every truth: (answer, true class, given class).

        Only models in which items differ have to say more than the confusion of annotators.
        """
        confusion = self.confusion(params)
        return None if confusion is None else confusion[annotator]

    def conclude(
        self,
        fit: Fit,
        posterior: Floats,
        label: Integers,
        *,
        params: Any = None,
        trace: tuple[float, ...] = (),
        converged: bool = True,
        notes: tuple[str, ...] = (),
    ) -> Aggregation:
        """Return the result, with gold kept and silence left undecided."""
        posterior, label = decided(fit, posterior, label)
        agreement = _agreement(fit, posterior)
        return Aggregation(
            aggregators.describe(self),
            fit.annotations,
            label,
            posterior,
            self.quality(params, agreement),
            agreement,
            params,
            trace,
            converged,
            self.interval(params, 0.95),
            notes,
        )


def decided(fit: Fit, posterior: Floats, label: Integers) -> tuple[Floats, Integers]:
    """Return posterior and labels with gold kept and silence left undecided."""
    label = np.where(fit.annotations.labels_per_item == 0, -1, label)
    if fit.gold is not None:
        known = fit.gold >= 0
        label[known] = fit.gold[known]
        posterior[known] = np.eye(fit.annotations.n_classes)[fit.gold[known]]
    return posterior, label


def _check_possible(method: Aggregator, annotations: Annotations) -> None:
    if annotations.n_classes == 0:
        raise DataError("there is no class to choose from; give labels or declare classes")
    if method.most_classes is not None and annotations.n_classes > method.most_classes:
        raise MethodError(
            f"{aggregators.describe(method)} chooses between {method.most_classes} classes, "
            f"and there are {annotations.n_classes}"
        )


def _check_features(features: Floats | None, annotations: Annotations) -> None:
    if features is not None and len(features) != annotations.n_items:
        raise DataError(f"features of {len(features)} items, but there are {annotations.n_items}")


def check_memory(method: Aggregator, annotations: Annotations, memory: int | None = None) -> None:
    """Refuse what cannot fit, before it is tried, and say what would."""
    needed = 8 * method.n_numbers(annotations)
    memory = machine_memory() if memory is None else memory
    if not memory or needed <= memory:
        return
    fitting = [
        name
        for name in ("mace", "one-coin", "majority")
        if 8 * aggregators.create(name).n_numbers(annotations) <= memory
    ]
    remedy = f"{fitting[0]} would do" if fitting else "no method would do with less"
    raise MethodError(
        f"{aggregators.describe(method)} needs {needed / 2**30:.3g} GiB for "
        f"{annotations.n_annotators} annotators and {annotations.n_classes} classes, and there are "
        f"{memory / 2**30:.3g}; is every answer a class of its own? If not, {remedy}"
    )


def machine_memory() -> int:
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
    if counts.ndim == 2 and axis == -1:
        total = np.einsum("ik->i", counts)[:, None]  # several times faster than a sum
    else:
        total = counts.sum(axis=axis, keepdims=True)
    empty = total == 0
    if not empty.any():
        return counts / total
    return np.where(empty, 1 / counts.shape[axis], counts / np.where(empty, 1, total))


def first_best(posterior: Floats) -> Integers:
    """Return the best class of every item; among equals, the first."""
    best = posterior.argmax(axis=1)
    top = posterior[np.arange(len(best)), best]
    return (posterior >= top[:, None] - TIE).argmax(axis=1)


def _agreement(fit: Fit, posterior: Floats) -> Floats:
    """Return the mean belief in the labels every annotator gave; NaN for those who gave none."""
    told = Local().add_up(partial(_believed, posterior=posterior), fit.parts)
    with np.errstate(invalid="ignore"):
        return told / fit.annotations.labels_per_annotator


def _believed(part: Part, posterior: Floats) -> Floats:
    return part.by_annotator(part.given_posterior(posterior[part.start : part.stop]))


def _belief(start: Aggregation | Floats | None, annotations: Annotations) -> Floats | None:
    """Return an earlier belief about these items; those it did not know start from their votes."""
    if not isinstance(start, Aggregation):
        shape = (annotations.n_items, annotations.n_classes)
        if start is not None and start.shape != shape:
            raise DataError(f"a start is (item, class), here {shape}, but this is {start.shape}")
        return start
    posterior = share(annotations.votes())
    columns = indices_of(annotations.classes, start.classes)
    rows = indices_of(annotations.items, start.annotations.items)
    known = np.flatnonzero(rows >= 0)
    if (columns >= 0).all():
        posterior[known] = share(start.posterior[rows[known]][:, columns])
    return posterior
