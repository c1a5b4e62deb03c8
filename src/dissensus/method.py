"""The interface of aggregators, and the steps they have in common."""

from __future__ import annotations

import os
from abc import ABC
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, ClassVar, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from .answers.annotations import Annotations, Part
from .answers.identifiability import identifiable_annotators, identifiable_items
from .base.arrays import Array, Floats, Integers
from .base.engine import Engine, Local
from .base.names import indices_of
from .base.probability import (
    ENOUGH_GOLD,
    fit_temperature,
    label_temperature,
    most_probable,
    normalize,
)
from .errors import DataError, MethodError
from .params import Settings
from .registry import aggregators
from .result import Aggregation, gold_codes

_ROUNDING = 1e-6  # tolerance of a sum of probabilities
Progress = Callable[[int, float], None]  # called with the iteration and the objective

try:
    MACHINE_MEMORY = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")  # bytes
except (AttributeError, OSError, ValueError):
    MACHINE_MEMORY = 0  # unknown


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


_WORDS = 3  # of labels that may be texts


@dataclass(frozen=True)
class FitContext:
    """Everything that an aggregator is given besides its settings."""

    annotations: Annotations
    parts: Sequence[Any]  # of type `Part`, or what the engine has instead
    gold: Integers | None  # (item): the known class, or -1
    engine: Engine
    seed: int = 0
    start: Floats | None = None  # (item, class): a posterior to start from
    progress: Progress = no_progress
    features: Floats | None = None  # (item, feature)
    checkpoints: Checkpoints | None = None
    first: int = 0  # number of items before these, where they are a shard
    n_class: Integers | None = None  # (class): labels of every class, where these are a shard

    @property
    def n_gold(self) -> int:
        """How many items with labels have a known class."""
        if self.gold is None:
            return 0
        return int(((self.gold >= 0) & (self.annotations.labels_per_item > 0)).sum())

    @property
    def labels_per_class(self) -> Integers:
        """How many labels name every class."""
        if self.n_class is not None:
            return self.n_class
        return np.bincount(self.annotations.label, minlength=self.annotations.n_classes)

    def over_items(self, work: Callable[[Part], Floats]) -> Floats:
        """Return the results of all parts, stacked: (item, class)."""
        rows = self.engine.each(work, self.parts)
        out = np.empty((self.annotations.n_items, self.annotations.n_classes))
        for part, values in zip(self.parts, rows, strict=True):
            out[part.start : part.stop] = values
        return out


@dataclass(frozen=True, kw_only=True)
class Aggregator(Settings, ABC):
    """A method that infers the labels of items from annotations."""

    params_type: ClassVar[type | None] = None  # the named tuple in `result.params`
    max_classes: ClassVar[int | None] = None
    abstains: ClassVar[bool] = False  # whether items with labels may be left undecided
    additive: ClassVar[bool] = False  # whether statistics add up over parts of the items
    side_tables: ClassVar[tuple[str, ...]] = ()  # settings that may name files

    @property
    def spec(self) -> str:
        """The specification of the method, as results name it."""
        return aggregators.describe(self)

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
            Known labels, `{item: label}`: they are kept, and methods with parameters learn from
            them.
        start
            A posterior to start from: an earlier result or an array (item, class). Only iterative
            methods use it.
        seed
            Random seed, for ties and random starts.
        engine
            Where to work; by default the threads of this machine.
        progress
            Called after every iteration with its number and the objective.
        features
            Features of the items, (item, feature), for methods that use them.
        """
        check_size(self, annotations, features)
        engine = engine or Local()
        codes = gold_codes(annotations, gold) if gold else None
        parts = annotations.parts(engine.cut(annotations), codes)
        first = None if start is None else _start_posterior(start, annotations)
        progress = progress or no_progress
        fit = FitContext(
            annotations,
            parts,
            codes,
            engine,
            seed=seed,
            start=first,
            progress=progress,
            features=features,
        )
        result = self.infer(fit)
        if codes is not None:
            result = replace(result, identifiable=identifiable_items(annotations, codes >= 0))
        enough = codes is not None and fit.n_gold >= ENOUGH_GOLD
        if not enough or result.temperature is None or result.n_gold:
            return result
        return self._calibrated(fit, result)

    def _calibrated(self, fit: FitContext, result: Aggregation) -> Aggregation:
        """Return a result with a temperature that fits one without gold to gold."""
        assert fit.gold is not None
        parts = fit.annotations.parts([(part.start, part.stop) for part in fit.parts])
        free = self.infer(replace(fit, parts=parts, gold=None))
        known = np.flatnonzero((fit.gold >= 0) & (fit.annotations.labels_per_item > 0))
        factor = fit_temperature(free.probabilities[known], fit.gold[known])
        assert free.temperature is not None
        wrong = int((free.label[known] != fit.gold[known]).sum())
        temperature = free.temperature * factor
        return replace(result, temperature=temperature, n_gold=fit.n_gold, gold_errors=wrong)

    def predict(
        self,
        fitted: Aggregation,
        annotations: Annotations,
        engine: Engine | None = None,
        features: Floats | None = None,
    ) -> Aggregation:
        """Return labels of other items under the parameters of an earlier fit.

        Annotators that the fit did not have count as its average annotator.
        """
        annotations = annotations.recode(fitted.classes)
        if fitted.params is None:
            return self.fit(annotations, engine=engine, features=features)
        check_size(self, annotations, features)
        engine = engine or Local()
        indices = indices_of(annotations.annotators, fitted.annotations.annotators)
        params = fitted.params.reindex(indices, annotations.n_items)
        parts = annotations.parts(engine.cut(annotations))
        fit = FitContext(annotations, parts, None, engine, features=features)
        result = self.result(fit, self.posterior(fit, params), Fitted(params))
        return replace(result, identifiable=_identifiable_by(fitted, annotations, indices))

    def infer(self, fit: FitContext) -> Aggregation:
        """Return the result of a fit."""
        fitted = self.estimate_params(fit)
        return self.result(fit, self.posterior(fit, fitted.params), fitted)

    def estimate_params(self, fit: FitContext) -> Fitted:
        """Return the fitted parameters; methods without parameters have none."""
        return Fitted()

    def posterior(self, fit: FitContext, params: Any) -> Floats:
        """Return the posterior under the parameters: (item, class)."""
        return fit.over_items(partial(self.part_posterior, params=params))

    def part_posterior(self, part: Part, params: Any) -> Floats:
        """Return the posterior of a part under the parameters: (item, class)."""
        raise NotImplementedError

    def decide(self, fit: FitContext, posterior: Floats, params: Any) -> Integers:
        """Return the label of every item, -1 for none."""
        return most_probable(posterior)

    def quality(self, params: Any, agreement: Floats) -> Floats:
        """Return every annotator's probability of being right."""
        confusion = self.confusion(params)
        if confusion is None:
            return agreement
        return np.minimum(np.einsum("t,att->a", params.prior, confusion), 1.0)

    def interval(self, params: Any, confidence: float) -> Floats | None:
        """Return credible intervals of the qualities, (annotator, 2), or `None`."""
        return None

    def confusion(self, params: Any) -> Floats | None:
        """Return confusion matrices, (annotator, true class, given class), or `None`."""
        return getattr(params, "confusion", None)

    def label_probabilities(self, params: Any, item: Array, annotator: Array) -> Floats | None:
        """Return P(label | truth) of annotations: (annotation, true class, given class).

        Only models in which items differ override this.
        """
        confusion = self.confusion(params)
        return None if confusion is None else confusion[annotator]

    def temperature(self, n_labels: Integers) -> Floats | None:
        """Return the temperature of items with so many labels; `None` keeps the posterior."""
        return label_temperature(n_labels)

    def n_floats(self, annotations: Annotations) -> int:
        """Return how many floats the method holds in memory at once."""
        return annotations.n_items * annotations.n_classes

    def decisions(self, fit: FitContext, posterior: Floats, params: Any) -> tuple[Floats, Integers]:
        """Return posterior and labels, with gold kept and unlabelled items undecided."""
        label = self.decide(fit, posterior, params)
        label = np.where(fit.annotations.labels_per_item == 0, -1, label)
        if fit.gold is not None:
            known = fit.gold >= 0
            label[known] = fit.gold[known]
            posterior[known] = np.eye(fit.annotations.n_classes)[fit.gold[known]]
        self._check(posterior)
        return posterior, label

    def _check(self, posterior: Floats) -> None:
        """Refuse a posterior whose rows are not probabilities."""
        with np.errstate(invalid="ignore", over="ignore"):
            sums = posterior.sum(axis=1)
            wrong = ~((np.abs(sums - 1) < _ROUNDING) & (posterior >= 0).all(axis=1))
        if wrong.any():
            name, given = self.spec, type(self)()
            odd = [n for n, value in self.get_params().items() if getattr(given, n) != value]
            remedy = f"choose another {' or '.join(odd)}" if odd else "report this, please"
            raise MethodError(
                f"{name} gave no probabilities for {int(wrong.sum())} items; {remedy}"
            )

    def result(self, fit: FitContext, posterior: Floats, fitted: Fitted) -> Aggregation:
        """Return the result of a fit."""
        params, trace, converged, notes = fitted
        posterior, label = self.decisions(fit, posterior, params)
        given = Local().add_up(
            lambda part: part.by_annotator(part.given_posterior(posterior[part.start : part.stop])),
            fit.parts,
        )
        with np.errstate(invalid="ignore"):  # NaN without labels
            agreement = given / fit.annotations.labels_per_annotator
        return Aggregation(
            method=self.spec,
            annotations=fit.annotations,
            label=label,
            posterior=posterior,
            quality=self.quality(params, agreement),
            agreement=agreement,
            params=params,
            trace=trace,
            converged=converged,
            interval=self.interval(params, 0.95),
            notes=notes,
            temperature=self.temperature(fit.annotations.labels_per_item),
        )


def check_size(
    method: Aggregator,
    annotations: Annotations,
    features: Floats | None = None,
    memory: int | None = None,
) -> None:
    """Refuse data that do not fit the method or the memory, and name a method that would work."""
    n_classes = annotations.n_classes
    if n_classes == 0:
        raise DataError("there is no class to choose from; give labels or declare classes")
    if method.max_classes is not None and n_classes > method.max_classes:
        raise MethodError(
            f"{aggregators.describe(method)} chooses between {method.max_classes} classes, "
            f"and there are {n_classes}"
        )
    if features is not None and len(features) != annotations.n_items:
        raise DataError(f"features of {len(features)} items, but there are {annotations.n_items}")
    needed = 8 * method.n_floats(annotations)
    memory = MACHINE_MEMORY if memory is None else memory
    if not memory or needed <= memory:
        return
    fitting = [
        name
        for name in ("mace", "one-coin", "majority")
        if 8 * aggregators.create(name).n_floats(annotations) <= memory
    ]
    remedy = f"{fitting[0]} would do" if fitting else "no method would do with less"
    texts = [name for name in annotations.classes.tolist() if name.count(" ") >= _WORDS]
    if 2 * n_classes > len(annotations) and 2 * len(texts) > n_classes:
        raise MethodError(
            f"{n_classes} different labels of {len(annotations)}, most of more than {_WORDS} "
            "words: every answer seems to be a class of its own",
            remedy="finds a consensus of texts",
            kind="text",
        )
    raise MethodError(
        f"{aggregators.describe(method)} needs {needed / 2**30:.3g} GiB for "
        f"{annotations.n_annotators} annotators and {n_classes} classes, and there are "
        f"{memory / 2**30:.3g}; is every answer a class of its own? If not, {remedy}"
    )


def _identifiable_by(
    fitted: Aggregation, annotations: Annotations, indices: Integers
) -> npt.NDArray[np.bool_]:
    """Return which items an annotator labelled whom a fit could judge; new ones are average."""
    identifiable = identifiable_annotators(fitted.annotations, fitted.is_identifiable)
    judged = np.where(indices < 0, identifiable.any(), identifiable[indices])
    n_judged = np.bincount(annotations.item, judged[annotations.annotator], annotations.n_items)
    return np.where(annotations.labels_per_item > 0, n_judged > 0, identifiable.any())


def _start_posterior(start: Aggregation | Floats, annotations: Annotations) -> Floats:
    """Return an earlier posterior for these items; new items start from their votes."""
    if not isinstance(start, Aggregation):
        shape = (annotations.n_items, annotations.n_classes)
        if start.shape != shape:
            raise DataError(f"a start is (item, class), here {shape}, but this is {start.shape}")
        return start
    posterior = normalize(annotations.votes())
    columns = indices_of(annotations.classes, start.classes)
    rows = indices_of(annotations.items, start.annotations.items)
    known = np.flatnonzero(rows >= 0)
    if (columns >= 0).all():
        posterior[known] = normalize(start.posterior[rows[known]][:, columns])
    return posterior
