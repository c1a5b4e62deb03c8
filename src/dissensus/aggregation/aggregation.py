"""Results of aggregation: what is true of every item, how sure that is, and who is reliable."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
import numpy.typing as npt

from ..answers import Answers, kind_class
from ..answers.annotations import Annotations
from ..answers.identifiability import (
    Unidentifiable,
    identifiable_annotators,
    identifiable_items,
    why_unidentifiable,
)
from ..answers.numbers import Numbers
from ..base.arrays import Array, Floats, FrozenArrays, Integers
from ..base.names import Names, as_names, decode
from ..base.probability import temper
from ..base.storage import (
    State,
    as_rows,
    loading_state,
    relation_of,
    relation_state,
    save_state,
    with_prefix,
)
from ..base.tables import Table
from ..errors import OptionError
from ..formats import as_answers, as_truth
from ..registry import aggregators, methods
from ..result import Predictions, Result, Values

if TYPE_CHECKING:
    from ..base.engine import Engine
    from ..method import FitContext, Method
    from ..pages.charts import Figure

_ROUNDING = 1e-12  # tolerance of a sum of probabilities
_JSON = ("method", "trace", "converged", "notes", "n_gold", "gold_errors")
_TABLES = ("items", "annotators", "params")


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Aggregation(FrozenArrays, Result):
    """What a method inferred from answers: what is true of every item, and about annotators.

    Attributes
    ----------
    method
        The specification of the method.
    answers
        The answers.
    trace
        The objective after every iteration; it never falls. Empty for methods without one.
    converged
        Whether the last iteration changed the objective by less than the tolerance.
    notes
        Remarks to show with the result.
    """

    saved_as: ClassVar[str]  # what a folder says that it holds

    method: str
    answers: Any
    trace: tuple[float, ...] = ()
    converged: bool = True

    if TYPE_CHECKING:  # fields of some, properties of others

        @property
        def items(self) -> Table:
            """Every item, or mark of an item: what is true of it, and how sure that is."""

        @property
        def annotators(self) -> Table:
            """Every annotator: number of answers, and what was learned about them."""

        @property
        def truth(self) -> Any:
            """What is true, as answers of one annotator."""

    def __repr__(self) -> str:
        rounds = f", {len(self.trace)} iterations" if self.trace else ""
        ended = "" if self.converged else ", not converged"
        return f"<Aggregation by {self.method}: {self._extent}{rounds}{ended}>"

    @property
    def _extent(self) -> str:
        return f"{self.answers.n_items} items"

    @property
    def kind(self) -> str:
        """The kind of the answers."""
        return str(self.answers.kind)

    @property
    def tables(self) -> Mapping[str, Table]:
        """What is true of the items, and what was learned about annotators."""
        return {"items": self._table(), "annotators": self.annotators}

    def as_dict(self) -> dict[str, Any]:
        """Return the tables as rows, and how the result was reached."""
        return {
            "kind": self.kind,
            "method": self.method,
            "converged": self.converged,
            "rounds": len(self.trace),
            "notes": list(self.notes),
            **{name: as_rows(table) for name, table in self.tables.items()},
        }

    def save(self, folder: str | Path) -> None:
        """Write the result with its answers to a folder, all of it or nothing."""
        notes, arrays = self.state()
        save_state(folder, self.saved_as, self.answers, notes, arrays)

    def state(self) -> State:
        """Return everything but the answers, as JSON values and arrays."""
        notes: dict[str, Any] = {}
        arrays: dict[str, Any] = {}
        for name in (declared.name for declared in fields(self)):
            value = getattr(self, name)
            if isinstance(value, np.ndarray):
                arrays[name] = value
            elif name == "params":
                packed = pack_params(value)
                arrays |= {f"params.{key}": np.asarray(array) for key, array in packed.items()}
            elif name in _JSON:
                notes[name] = value
        return State(notes, arrays)

    @classmethod
    def load(cls, folder: str | Path) -> Self:
        """Read a result that `save` wrote, of any kind of answers."""
        classes = {leaf.saved_as: leaf for leaf in cls.__subclasses__() or (cls,)}
        with loading_state(folder, *classes) as state:
            leaf = classes[state.notes["kind"]]
            return leaf.from_state(state, leaf.answers_of(state))

    @classmethod
    def answers_of(cls, state: State) -> Any:
        """Return the answers of a saved result."""
        raise NotImplementedError

    @classmethod
    def from_state(cls, state: State, answers: Any) -> Self:
        """Return a result from its state and its answers."""
        notes, arrays = state
        content = {name: notes[name] for name in _JSON if name in notes} | arrays
        for name in ("trace", "notes"):
            if name in content:
                content[name] = tuple(content[name])
        accepted = {declared.name for declared in fields(cls)}
        content = {name: value for name, value in content.items() if name in accepted}
        return cls(answers=answers, **content)


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class ClassAggregation(Aggregation):
    """The labels that a method inferred, and the quality of annotators.

    Attributes, beside those of every aggregation
    ---------------------------------------------
    label
        Code of every item's class; -1 where it is undecided.
    posterior
        Posterior probabilities, as the model has them: (item, class). They are often too high;
        `probabilities` are calibrated.
    quality
        Every annotator's probability of being right, according to the method.
    agreement
        Mean posterior probability of every annotator's labels.
    interval
        95 % credible intervals of the quality, (annotator, 2); `None` where the method has none.
        `bootstrap` gives intervals for every method.
    params
        Fitted parameters, a named tuple of arrays; `None` for plain votes.
    temperature
        What the log posterior of every item is divided by, see `calibration`; `None` where the
        posterior is kept, as for vote shares.
    n_gold
        Number of known items that the temperature was fitted to, beyond what holds for all data.
    gold_errors
        How many of them a fit without gold labels wrongly.
    identifiable
        Which items have labels that can be judged, where gold or an earlier fit counts, too; `None`
        where only the annotations do. `is_identifiable` has it in any case.
    """

    saved_as: ClassVar[str] = "aggregation"

    answers: Annotations
    label: Integers  # (item)
    posterior: Floats  # (item, class)
    quality: Floats  # (annotator)
    agreement: Floats  # (annotator)
    params: Any = None
    interval: Floats | None = None  # (annotator, 2)
    temperature: Floats | None = None  # (item)
    n_gold: int = 0
    gold_errors: int = 0
    identifiable: npt.NDArray[np.bool_] | None = None  # (item)

    @property
    def classes(self) -> Names:
        """The names of the classes."""
        return self.answers.classes

    @cached_property
    def labels(self) -> Names:
        """The label of every item by name; `None` where undecided."""
        return decode(self.answers.classes, self.label)

    @cached_property
    def probabilities(self) -> Floats:
        """Calibrated probabilities of the classes: (item, class)."""
        if self.temperature is None:
            return self.posterior
        return temper(self.posterior, self.temperature)

    @cached_property
    def is_identifiable(self) -> npt.NDArray[np.bool_]:
        """Which items have labels that can be judged by the agreement of annotators: (item).

        Not those whose annotators are connected, by common items, in pairs, chains or stars only:
        labels of careful annotators and of careless ones look alike there.
        """
        return identifiable_items(self.answers) if self.identifiable is None else self.identifiable

    @cached_property
    def unidentifiable(self) -> Unidentifiable | None:
        """Why it cannot be told how many labels are right, and what would show it; or `None`."""
        return why_unidentifiable(self.answers, self.is_identifiable)

    @cached_property
    def confidence(self) -> Floats:
        """The calibrated probability of every item's label, or of its most probable class.

        NaN where it cannot be told: see `is_identifiable`.
        """
        chosen = np.where(self.label < 0, self.posterior.argmax(axis=1), self.label)
        confidence = np.take_along_axis(self.probabilities, chosen[:, None], axis=1)[:, 0]
        confidence[~self.is_identifiable] = np.nan
        return confidence

    @property
    def calibration(self) -> str:
        """How probabilities and confidence were calibrated, in a sentence."""
        if self.n_gold:
            return f"Confidence is calibrated on {self.n_gold} known items."
        if self.method.partition("[")[0] == "auto" or self.temperature is not None:
            return "Confidence is calibrated on public data sets whose truth is known."
        return "Confidence is the share of votes, which is not calibrated."

    @property
    def items(self) -> Table:
        """Every item: its label, confidence and number of labels."""
        return {
            "item": self.answers.items,
            "label": self.labels,
            "confidence": self.confidence,
            "n_labels": self.answers.labels_per_item,
        }

    def _chart(self) -> tuple[Figure | None, str]:
        from .sections import confidence_figure

        why = " ".join(self.unidentifiable or ())
        return confidence_figure(self), f"there is nothing to draw: {why}"

    def _table(self) -> Table:
        posterior = zip(self.classes.tolist(), self.probabilities.T, strict=True)
        return {
            "item": self.answers.items,
            "label": self.labels,
            "confidence": self.confidence,
            **{f"p:{name}": probability for name, probability in posterior},
        }

    @property
    def annotators(self) -> Table:
        """Every annotator: number of labels, quality, agreement with the consensus.

        The latter are NaN where they cannot be told: see `is_identifiable`.
        """
        return annotators_table(
            self.answers,
            quality=self.quality,
            agreement=self.agreement,
            interval=self.interval,
            identifiable=identifiable_annotators(self.answers, self.is_identifiable),
        )

    @property
    def truth(self) -> Annotations:
        """The labels as annotations of one annotator; items left undecided have none."""
        decided = np.flatnonzero(self.label >= 0)
        nobody = np.zeros(len(decided), dtype=np.int64)
        return Annotations.from_codes(
            decided,
            nobody,
            self.label[decided],
            items=self.answers.items,
            annotators=as_names(["consensus"]),
            classes=self.classes,
            scale=self.answers.scale,
        )

    @property
    def predictions(self) -> Predictions:
        """Labels and calibrated probabilities, to evaluate."""
        ordered = self.answers.scale == "ordinal"
        return Predictions(
            self.answers.items, self.classes, self.label, self.probabilities, ordered
        )

    def credible_set(self, confidence: float = 0.95) -> npt.NDArray[np.bool_]:
        """Return the fewest classes with this posterior probability: (item, class).

        They hold the truth as often as that where the model holds; the posterior is not calibrated.
        Of tied classes, the first go in.

        >>> from dissensus import Annotations, aggregate
        >>> annotations = Annotations.from_columns("aaabbbb", "xyzwxyz", "0011112")
        >>> aggregate(annotations, "naive-soft").credible_set(0.7).tolist()
        [[True, True, False], [False, True, False]]
        """
        if not 0 < confidence <= 1:
            raise OptionError(f"confidence = {confidence}, but it must be above 0 and at most 1")
        order = np.argsort(-self.posterior, axis=1, kind="stable")
        ranked = np.take_along_axis(self.posterior, order, axis=1)
        before = np.cumsum(ranked, axis=1) - ranked
        inside = np.empty(self.posterior.shape, dtype=bool)
        np.put_along_axis(inside, order, before < confidence - _ROUNDING, axis=1)
        return inside

    def predict(
        self, annotations: Annotations | Any, *, features: Floats | None = None
    ) -> ClassAggregation:
        """Return labels of other items under the parameters of this result.

        Annotators that this result does not have count as its average annotator; methods without
        parameters are fitted. Features describe the other items, (item, feature), for methods that
        use them.
        """
        method = aggregators.create(self.method)
        return method.predict(self, as_answers(annotations, kind="classes"), features=features)

    def update(
        self,
        more: Annotations | Any,
        *,
        gold: Any = None,
        seed: int = 0,
        engine: Engine | None = None,
        progress: Callable[[int, float], None] | None = None,
    ) -> ClassAggregation:
        """Return the result of a fit to these and more annotations, started from this result."""
        method = aggregators.create(self.method)
        merged = self.answers.merge(as_answers(more, kind="classes"))
        return method.fit(
            merged, start=self, gold=as_truth(gold), seed=seed, engine=engine, progress=progress
        )

    @classmethod
    def answers_of(cls, state: State) -> Annotations:
        return Annotations(**relation_of(state))

    @classmethod
    def from_state(
        cls, state: State, answers: Annotations, params_type: type | None = None
    ) -> Self:
        """Return a result from its state and its annotations; the method knows its parameters."""
        result, packed = super().from_state(state, answers), with_prefix("params", state.arrays)
        if params_type is None and packed:
            method = aggregators.resolve(state.notes["method"])[0]
            params_type = aggregators.find(method).params_type
        return replace(result, params=unpack_params(params_type, packed))


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class NumberAggregation(Aggregation):
    """The values that a method inferred, and bias and noise of annotators.

    Attributes, beside those of every aggregation
    ---------------------------------------------
    value
        The value of every item; NaN for items without answers and gold.
    deviation
        The standard error of every value, 0 for gold; NaN where the method has none.
    weight
        The weight of every annotator, in the method's own units.
    bias
        The mean error of every annotator.
    noise
        Standard deviation of every annotator's errors; NaN after a single answer, unless the
        method has a prior.
    """

    saved_as: ClassVar[str] = "estimation"

    answers: Numbers
    value: Floats  # (item)
    deviation: Floats  # (item)
    weight: Floats  # (annotator)
    bias: Floats  # (annotator)
    noise: Floats  # (annotator)

    @property
    def precision(self) -> Floats:
        """One over the squared noise of every annotator."""
        with np.errstate(divide="ignore"):
            return 1 / self.noise**2

    @property
    def items(self) -> Table:
        """Every item: its value, standard error and number of answers."""
        return {
            "item": self.answers.items,
            "value": self.value,
            "deviation": self.deviation,
            "n_labels": self.answers.labels_per_item,
        }

    def _table(self) -> Table:
        return {"item": self.answers.items, "label": self.value, "deviation": self.deviation}

    @property
    def annotators(self) -> Table:
        """Every annotator: number of answers, weight, bias and noise."""
        return {
            "annotator": self.answers.annotators,
            "n_labels": self.answers.labels_per_annotator,
            "weight": self.weight,
            "bias": self.bias,
            "noise": self.noise,
        }

    @property
    def truth(self) -> Numbers:
        """The values as numbers of one annotator; items without a value have none."""
        known = np.flatnonzero(~np.isnan(self.value))
        nobody = np.zeros(len(known), dtype=np.int64)
        who = as_names(["consensus"])
        return Numbers.from_codes(
            known, nobody, self.value[known], items=self.answers.items, annotators=who
        )

    @property
    def predictions(self) -> Values:
        """The values, to evaluate."""
        return Values(self.answers.items, self.value)

    @classmethod
    def answers_of(cls, state: State) -> Numbers:
        return Numbers(**relation_of(state))


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class AnswerAggregation(Aggregation):
    """What a method inferred from answers of other kinds, as tables.

    Attributes, beside those of every aggregation
    ---------------------------------------------
    items
        What is true of the items, by column. Marks have a row each, so an item may have several
        rows or none; `item`, `confidence` and what the kind adds.
    annotators
        Every annotator, by column: `annotator`, `n_answers` and what the kind adds.
    inner
        The result of the same question in classes, where there is one: its items are candidates.
    params
        Fitted parameters, arrays by name.
    """

    saved_as: ClassVar[str] = "consensus"

    answers: Answers
    items: Table
    annotators: Table
    inner: ClassAggregation | None = None
    params: Mapping[str, Array] = field(default_factory=dict)

    @classmethod
    def of(
        cls,
        method: Method[Any, Any],
        fit: FitContext[Any],
        items: Table,
        annotators: Mapping[str, Array],
        *,
        notes: tuple[str, ...] = (),
        **fitted: Any,
    ) -> AnswerAggregation:
        """Return the result of a fit; every annotator's name and number of answers are added.

        `fitted` are other fields: inner, params, trace, converged.
        """
        answers = fit.answers
        people = {"annotator": answers.annotators, "n_answers": answers.labels_per_annotator}
        if answers.n_annotators == 1:
            notes = (*notes, "There is one annotator: the consensus is what they answered.")
        return AnswerAggregation(
            method=methods[answers.kind].describe(method),
            answers=answers,
            items=items,
            annotators=people | dict(annotators),
            notes=notes,
            **fitted,
        )

    @property
    def _extent(self) -> str:
        return self.answers.summary

    def _table(self) -> Table:
        return self.items

    @property
    def confidence(self) -> Floats:
        """The calibrated probability of every row of `items`."""
        return self.items["confidence"]

    @cached_property
    def truth(self) -> Answers:
        """The consensus as answers of one annotator, on all items."""
        return self.answers.as_answers(self.items)

    def state(self) -> State:
        """Return everything but the answers, as JSON values and arrays."""
        parts = {name: _table_state(getattr(self, name)) for name in _TABLES}
        if self.inner is not None:
            parts["inner"] = State.join(
                relation=relation_state(self.inner.answers), result=self.inner.state()
            )
        notes = {name: getattr(self, name) for name in _JSON if hasattr(self, name)}
        return State.join(notes | {"answers": self.kind}, **parts)

    @classmethod
    def answers_of(cls, state: State) -> Answers:
        return kind_class(state.notes["answers"])(**relation_of(state))

    @classmethod
    def from_state(cls, state: State, answers: Answers) -> Self:
        """Return a result from its state and its answers."""
        from .existence import EXISTENCE, Existence

        content: dict[str, Any] = {n: state.notes[n] for n in _JSON if n in state.notes}
        content |= {name: tuple(content[name]) for name in ("trace", "notes")}
        content |= {name: _table_of(state.part(name)) for name in _TABLES}
        if "inner" in state.notes:
            inner = state.part("inner")
            result, relation = inner.part("result"), relation_of(inner.part("relation"))
            params_type = Existence.params_type if result.notes["method"] == EXISTENCE else None
            annotations = Annotations(**relation)
            content["inner"] = ClassAggregation.from_state(result, annotations, params_type)
        return cls(answers=answers, **content)


def annotators_table(
    answers: Any,
    *,
    quality: Floats,
    agreement: Floats,
    interval: Floats | None,
    identifiable: npt.NDArray[np.bool_],
) -> dict[str, Array]:
    """Return what a method learned about annotators, NaN for those who cannot be judged."""
    columns = {"quality": quality, "agreement": agreement}
    if interval is not None:
        columns |= {"quality_low": interval[:, 0], "quality_high": interval[:, 1]}
    return {
        "annotator": answers.annotators,
        "n_labels": answers.labels_per_annotator,
        **{name: np.where(identifiable, values, np.nan) for name, values in columns.items()},
    }


def pack_params(params: Any) -> dict[str, Any]:
    """Return parameters as arrays by name; those with other fields have a method for it."""
    if params is None:
        return {}
    return params.pack() if hasattr(params, "pack") else params._asdict()


def unpack_params(kind: Any, arrays: dict[str, Any]) -> Any:
    """Return parameters of a type from arrays by name."""
    if kind is None:
        return None
    return kind.unpack(arrays) if hasattr(kind, "unpack") else kind(**arrays)


def _table_state(table: Table) -> State:
    """Return columns as JSON where they are texts, as arrays otherwise, with their order."""
    texts = {name: values.tolist() for name, values in table.items() if values.dtype.kind == "O"}
    arrays = {name: values for name, values in table.items() if name not in texts}
    return State({"columns": list(table), "texts": texts}, arrays)


def _table_of(state: State) -> dict[str, Array]:
    texts = {name: as_names(values) for name, values in state.notes["texts"].items()}
    return {name: np.asarray((texts | state.arrays)[name]) for name in state.notes["columns"]}
