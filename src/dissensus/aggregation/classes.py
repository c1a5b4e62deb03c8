"""Methods for classes: what they are given, and the steps that they have in common.

A method writes the hooks that it needs: `estimate_params`, `part_posterior`, `decide`, `quality`.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from ..answers.annotations import Annotations, Part
from ..answers.gold import gold_codes
from ..answers.identifiability import identifiable_annotators, identifiable_items
from ..base.arrays import Array, Floats, Integers
from ..base.engine import Engine, Local
from ..base.names import indices_of
from ..base.probability import (
    ENOUGH_GOLD,
    fit_temperature,
    label_temperature,
    most_probable,
    normalize,
)
from ..errors import DataError, MethodError
from ..method import FitContext, Fitted, Method
from ..registry import aggregators
from .aggregation import ClassAggregation

_ROUNDING = 1e-6  # tolerance of a sum of probabilities
_WORDS = 3  # of labels that may be texts

try:
    MACHINE_MEMORY = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")  # bytes
except (AttributeError, OSError, ValueError):
    MACHINE_MEMORY = 0  # unknown


@dataclass(frozen=True, kw_only=True)
class ClassContext(FitContext[Annotations]):
    """What a method for classes is given: parts of the items, and gold as codes."""

    parts: Sequence[Any]  # of type `Part`, or what the engine has instead
    gold: Integers | None = None  # (item): the known class, or -1
    start: Floats | None = None  # (item, class): a posterior to start from
    first: int = 0  # number of items before these, where they are a shard
    n_class: Integers | None = None  # (class): labels of every class, where these are a shard

    @property
    def n_gold(self) -> int:
        """How many items with labels have a known class."""
        if self.gold is None:
            return 0
        return int(((self.gold >= 0) & (self.answers.labels_per_item > 0)).sum())

    @property
    def labels_per_class(self) -> Integers:
        """How many labels name every class."""
        if self.n_class is not None:
            return self.n_class
        return np.bincount(self.answers.label, minlength=self.answers.n_classes)

    def over_items(self, work: Callable[[Part], Floats]) -> Floats:
        """Return the results of all parts, stacked: (item, class)."""
        rows = self.engine.each(work, self.parts)
        out = np.empty((self.answers.n_items, self.answers.n_classes))
        for part, values in zip(self.parts, rows, strict=True):
            out[part.start : part.stop] = values
        return out


@dataclass(frozen=True, kw_only=True)
class ClassMethod(Method[Annotations, ClassAggregation]):
    """A method that infers the labels of items from annotations."""

    kinds: ClassVar[tuple[str, ...]] = ("classes",)
    gold_is_labels: ClassVar[bool] = True
    params_type: ClassVar[type | None] = None  # the named tuple in `result.params`
    max_classes: ClassVar[int | None] = None
    abstains: ClassVar[bool] = False  # whether items with labels may be left undecided
    additive: ClassVar[bool] = False  # whether statistics add up over parts of the items

    @property
    def spec(self) -> str:
        """The specification of the method, as results name it."""
        return aggregators.describe(self)

    def context(
        self,
        answers: Annotations,
        *,
        gold: Any,
        start: ClassAggregation | Floats | None,
        features: Floats | None,
        **given: Any,
    ) -> ClassContext:
        check_size(self, answers, features)
        codes = gold_codes(answers, gold) if gold else None
        return ClassContext(
            answers=answers,
            parts=answers.parts(given["engine"].cut(answers), codes),
            gold=codes,
            start=None if start is None else _start_posterior(start, answers),
            features=features,
            **given,
        )

    def finish(self, fit: ClassContext, result: ClassAggregation) -> ClassAggregation:
        if fit.gold is None:
            return result
        result = replace(result, identifiable=identifiable_items(fit.answers, fit.gold >= 0))
        if fit.n_gold < ENOUGH_GOLD or result.temperature is None or result.n_gold:
            return result
        return self._calibrated(fit, result)

    def _calibrated(self, fit: ClassContext, result: ClassAggregation) -> ClassAggregation:
        """Return a result with a temperature that fits one without gold to gold."""
        assert fit.gold is not None
        parts = fit.answers.parts([(part.start, part.stop) for part in fit.parts])
        free = self.infer(replace(fit, parts=parts, gold=None))
        known = np.flatnonzero((fit.gold >= 0) & (fit.answers.labels_per_item > 0))
        factor = fit_temperature(free.probabilities[known], fit.gold[known])
        assert free.temperature is not None
        wrong = int((free.label[known] != fit.gold[known]).sum())
        temperature = free.temperature * factor
        return replace(result, temperature=temperature, n_gold=fit.n_gold, gold_errors=wrong)

    def predict(
        self,
        fitted: ClassAggregation,
        annotations: Annotations,
        engine: Engine | None = None,
        features: Floats | None = None,
    ) -> ClassAggregation:
        """Return labels of other items under the parameters of an earlier fit.

        Annotators that the fit did not have count as its average annotator.
        """
        annotations = annotations.recode(fitted.classes)
        if fitted.params is None:
            return self.fit(annotations, engine=engine, features=features)
        check_size(self, annotations, features)
        engine = engine or Local()
        indices = indices_of(annotations.annotators, fitted.answers.annotators)
        params = fitted.params.reindex(indices, annotations.n_items)
        parts = annotations.parts(engine.cut(annotations))
        fit = ClassContext(answers=annotations, parts=parts, engine=engine, features=features)
        result = self.result(fit, self.posterior(fit, params), Fitted(params))
        return replace(result, identifiable=_identifiable_by(fitted, annotations, indices))

    def infer(self, fit: ClassContext) -> ClassAggregation:
        """Return the result of a fit."""
        fitted = self.estimate_params(fit)
        return self.result(fit, self.posterior(fit, fitted.params), fitted)

    def estimate_params(self, fit: ClassContext) -> Fitted:
        """Return the fitted parameters; methods without parameters have none."""
        return Fitted()

    def posterior(self, fit: ClassContext, params: Any) -> Floats:
        """Return the posterior under the parameters: (item, class)."""
        return fit.over_items(partial(self.part_posterior, params=params))

    def part_posterior(self, part: Part, params: Any) -> Floats:
        """Return the posterior of a part under the parameters: (item, class)."""
        raise NotImplementedError

    def decide(self, fit: ClassContext, posterior: Floats, params: Any) -> Integers:
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

    def decisions(
        self, fit: ClassContext, posterior: Floats, params: Any
    ) -> tuple[Floats, Integers]:
        """Return posterior and labels, with gold kept and unlabelled items undecided."""
        label = self.decide(fit, posterior, params)
        label = np.where(fit.answers.labels_per_item == 0, -1, label)
        if fit.gold is not None:
            known = fit.gold >= 0
            label[known] = fit.gold[known]
            posterior[known] = np.eye(fit.answers.n_classes)[fit.gold[known]]
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

    def result(self, fit: ClassContext, posterior: Floats, fitted: Fitted) -> ClassAggregation:
        """Return the result of a fit."""
        params, trace, converged, notes = fitted
        posterior, label = self.decisions(fit, posterior, params)
        given = Local().add_up(
            lambda part: part.by_annotator(part.given_posterior(posterior[part.start : part.stop])),
            fit.parts,
        )
        with np.errstate(invalid="ignore"):  # NaN without labels
            agreement = given / fit.answers.labels_per_annotator
        return ClassAggregation(
            method=self.spec,
            answers=fit.answers,
            label=label,
            posterior=posterior,
            quality=self.quality(params, agreement),
            agreement=agreement,
            params=params,
            trace=trace,
            converged=converged,
            interval=self.interval(params, 0.95),
            notes=notes,
            temperature=self.temperature(fit.answers.labels_per_item),
        )


def check_size(
    method: ClassMethod,
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
    fitted: ClassAggregation, annotations: Annotations, indices: Integers
) -> npt.NDArray[np.bool_]:
    """Return which items an annotator labelled whom a fit could judge; new ones are average."""
    identifiable = identifiable_annotators(fitted.answers, fitted.is_identifiable)
    judged = np.where(indices < 0, identifiable.any(), identifiable[indices])
    n_judged = np.bincount(annotations.item, judged[annotations.annotator], annotations.n_items)
    return np.where(annotations.labels_per_item > 0, n_judged > 0, identifiable.any())


def _start_posterior(start: ClassAggregation | Floats, annotations: Annotations) -> Floats:
    """Return an earlier posterior for these items; new items start from their votes."""
    if not isinstance(start, ClassAggregation):
        shape = (annotations.n_items, annotations.n_classes)
        if start.shape != shape:
            raise DataError(f"a start is (item, class), here {shape}, but this is {start.shape}")
        return start
    posterior = normalize(annotations.votes())
    columns = indices_of(annotations.classes, start.classes)
    rows = indices_of(annotations.items, start.answers.items)
    known = np.flatnonzero(rows >= 0)
    if (columns >= 0).all():
        posterior[known] = normalize(start.posterior[rows[known]][:, columns])
    return posterior
