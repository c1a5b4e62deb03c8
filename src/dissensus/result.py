"""Results: what every verb returns, and what the methods of aggregation infer.

A verb's result writes by hand what only it knows: `tables`, `sentences`, `figures`, and `sections`
where these three in a row do not do. Dataframes, JSON, the terminal, notebooks, pages and the
workbench follow from them once, here. Results are immutable. Those of methods save to a folder of
plain arrays and JSON; nothing is pickled.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
import numpy.typing as npt

from .answers.annotations import Annotations
from .answers.base import Relation
from .answers.identifiability import (
    Unidentifiable,
    identifiable_annotators,
    identifiable_items,
    why_unidentifiable,
)
from .answers.numbers import Numbers
from .base.arrays import Floats, FrozenArrays, Integers
from .base.names import Names, decode, text
from .base.probability import temper
from .base.storage import State, as_plain, loading_state, relation_of, save_state, with_prefix
from .base.tables import Drawable, Tabular
from .base.tables import Table as Table
from .errors import DataError, OptionError

if TYPE_CHECKING:
    from .base.engine import Engine
    from .pages.charts import Figure
    from .pages.sections import Section

_ROUNDING = 1e-12  # tolerance of a sum of probabilities


@dataclass(frozen=True, eq=False, repr=False)
class Result(Drawable):
    """What a verb returns: tables, sentences and figures, from which every view follows.

    Attributes
    ----------
    notes
        Remarks to show with the result, a sentence each.
    """

    notes: tuple[str, ...] = field(default=(), kw_only=True)

    @property
    def tables(self) -> Mapping[str, Table]:
        """Columns by name, in tables by title; the first is the main one."""
        return {}

    @property
    def sentences(self) -> tuple[str, ...]:
        """What the result says, a sentence each."""
        return ()

    @property
    def figures(self) -> Mapping[str, Figure]:
        """Charts by name; the first is what `plot` returns."""
        return {}

    def sections(self) -> tuple[Section, ...]:
        """Return what every view shows, as data without layout: by default sentences and tables."""
        from .pages.sections import Section, plain_table

        panels = [[plain_table(title, table)] for title, table in self.tables.items()]
        return (Section("result", "", text=self.sentences, notes=self.notes, panels=panels),)

    def as_dict(self) -> dict[str, Any]:
        """Return plain dictionaries, lists and numbers, ready for JSON; `None` for NaN."""
        return as_plain(self)

    def show(self) -> None:
        """Print the sections to the terminal."""
        from .pages.terminal import print_sections

        print_sections(self.sections())

    def _table(self) -> Table:
        return next(iter(self.tables.values()))

    def _chart(self) -> tuple[Figure | None, str]:
        return next(iter(self.figures.values()), None), "there is nothing to draw"


@dataclass(frozen=True, eq=False)
class Predictions(FrozenArrays):
    """A label for every item, perhaps with a posterior."""

    items: Names
    classes: Names
    label: Integers  # (item): -1 where undecided
    posterior: Floats | None = None  # (item, class)
    ordered: bool = False  # whether classes are in order


@dataclass(frozen=True, eq=False)
class Values(FrozenArrays):
    """A number for every item."""

    items: Names
    value: Floats  # (item): NaN where there is none


@dataclass(frozen=True, eq=False, repr=False)
class _Result(Tabular, FrozenArrays):
    """What results for classes and for numbers have in common."""

    relation_type: ClassVar[type[Relation]]

    method: str
    annotations: Any

    def __repr__(self) -> str:
        trace, converged = vars(self)["trace"], vars(self)["converged"]
        rounds = f", {len(trace)} iterations" if trace else ""
        ended = "" if converged else ", not converged"
        name, n_items = type(self).__name__, self.annotations.n_items
        return f"<{name} by {self.method}: {n_items} items{rounds}{ended}>"

    def save(self, folder: str | Path) -> None:
        """Write the result with its annotations to a folder, all of it or nothing."""
        notes, arrays = self.state()
        save_state(folder, type(self).__name__.lower(), self.annotations, notes, arrays)

    def state(self) -> State:
        """Return everything but the annotations, as JSON values and arrays."""
        notes: dict[str, Any] = {}
        arrays: dict[str, Any] = {}
        for name in (declared.name for declared in fields(self)):
            value = getattr(self, name)
            if isinstance(value, np.ndarray):
                arrays[name] = value
            elif name == "params":
                packed = pack_params(value)
                arrays |= {f"params.{key}": np.asarray(one) for key, one in packed.items()}
            elif name in _JSON:
                notes[name] = value
        return State(notes, arrays)

    @classmethod
    def load(cls, folder: str | Path) -> Self:
        """Read a result that `save` wrote."""
        with loading_state(folder, cls.__name__.lower()) as state:
            return cls.from_state(state, relation_of(state))

    @classmethod
    def from_state(
        cls, state: State, relation: Mapping[str, Any], params_type: type | None = None
    ) -> Self:
        """Return a result from its state and the fields of its annotations."""
        notes, arrays = state
        content = {name: notes[name] for name in _JSON if name in notes} | arrays
        for name in ("trace", "notes"):
            if name in content:
                content[name] = tuple(content[name])
        accepted = {declared.name for declared in fields(cls)}
        content = {name: value for name, value in content.items() if name in accepted}
        if "params" in accepted:
            from .registry import aggregators

            kind, packed = params_type, with_prefix("params", arrays)
            if kind is None and packed:
                kind = aggregators.find(aggregators.resolve(notes["method"])[0]).params_type
            content["params"] = unpack_params(kind, packed)
        return cls(annotations=cls.relation_type(**relation), **content)


_JSON = ("method", "trace", "converged", "notes", "n_gold", "gold_errors")


@dataclass(frozen=True, eq=False, repr=False)
class Aggregation(Drawable, _Result):
    """The labels that a method inferred, and the quality of annotators.

    Attributes
    ----------
    method
        The specification of the method.
    annotations
        The annotations.
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
    notes
        Remarks to show with the labels.
    params
        Fitted parameters, a named tuple of arrays; `None` for plain votes.
    trace
        The objective after every iteration; it never falls.
    converged
        Whether the last iteration changed the objective by less than the tolerance.
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

    relation_type: ClassVar[type[Relation]] = Annotations

    annotations: Annotations
    label: Integers  # (item)
    posterior: Floats  # (item, class)
    quality: Floats  # (annotator)
    agreement: Floats  # (annotator)
    params: Any = None
    trace: tuple[float, ...] = ()
    converged: bool = True
    interval: Floats | None = None  # (annotator, 2)
    notes: tuple[str, ...] = ()
    temperature: Floats | None = None  # (item)
    n_gold: int = 0
    gold_errors: int = 0
    identifiable: npt.NDArray[np.bool_] | None = None  # (item)

    @property
    def classes(self) -> Names:
        """The names of the classes."""
        return self.annotations.classes

    @cached_property
    def labels(self) -> Names:
        """The label of every item by name; `None` where undecided."""
        return decode(self.annotations.classes, self.label)

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
        return (
            identifiable_items(self.annotations) if self.identifiable is None else self.identifiable
        )

    @cached_property
    def unidentifiable(self) -> Unidentifiable | None:
        """Why it cannot be told how many labels are right, and what would show it; or `None`."""
        return why_unidentifiable(self.annotations, self.is_identifiable)

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
            "item": self.annotations.items,
            "label": self.labels,
            "confidence": self.confidence,
            "n_labels": self.annotations.labels_per_item,
        }

    def _chart(self) -> tuple[Figure | None, str]:
        from .aggregation.sections import confidence_figure

        why = " ".join(self.unidentifiable or ())
        return confidence_figure(self), f"there is nothing to draw: {why}"

    def _table(self) -> Table:
        posterior = zip(self.classes.tolist(), self.probabilities.T, strict=True)
        return {
            "item": self.annotations.items,
            "label": self.labels,
            "confidence": self.confidence,
            **{f"p:{name}": probability for name, probability in posterior},
        }

    @property
    def annotators(self) -> Table:
        """Every annotator: number of labels, quality, agreement with the consensus.

        The latter are NaN where they cannot be told: see `is_identifiable`.
        """
        columns = {"quality": self.quality, "agreement": self.agreement}
        if self.interval is not None:
            columns |= {"quality_low": self.interval[:, 0], "quality_high": self.interval[:, 1]}
        identifiable = identifiable_annotators(self.annotations, self.is_identifiable)
        return {
            "annotator": self.annotations.annotators,
            "n_labels": self.annotations.labels_per_annotator,
            **{name: np.where(identifiable, values, np.nan) for name, values in columns.items()},
        }

    @property
    def predictions(self) -> Predictions:
        """Labels and calibrated probabilities, to evaluate."""
        ordered = self.annotations.scale == "ordinal"
        return Predictions(
            self.annotations.items, self.classes, self.label, self.probabilities, ordered
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
    ) -> Aggregation:
        """Return labels of other items under the parameters of this result.

        Annotators that this result does not have count as its average annotator; methods without
        parameters are fitted. Features describe the other items, (item, feature), for methods that
        use them.
        """
        from .formats import as_answers
        from .registry import aggregators

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
    ) -> Aggregation:
        """Return the result of a fit to these and more annotations, started from this result."""
        from .formats import as_answers, as_truth
        from .registry import aggregators

        method = aggregators.create(self.method)
        merged = self.annotations.merge(as_answers(more, kind="classes"))
        return method.fit(
            merged, start=self, gold=as_truth(gold), seed=seed, engine=engine, progress=progress
        )


@dataclass(frozen=True, eq=False, repr=False)
class Estimation(_Result):
    """The values that a method inferred, and bias and noise of annotators.

    Attributes
    ----------
    method
        The specification of the method.
    annotations
        The numbers.
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
    trace
        The objective after every iteration; it never falls. Empty for methods without one.
    converged
        Whether the last iteration changed less than the tolerance.
    """

    relation_type: ClassVar[type[Relation]] = Numbers

    annotations: Numbers
    value: Floats  # (item)
    deviation: Floats  # (item)
    weight: Floats  # (annotator)
    bias: Floats  # (annotator)
    noise: Floats  # (annotator)
    trace: tuple[float, ...] = ()
    converged: bool = True

    @property
    def precision(self) -> Floats:
        """One over the squared noise of every annotator."""
        with np.errstate(divide="ignore"):
            return 1 / self.noise**2

    @property
    def items(self) -> Table:
        """Every item: its value, standard error and number of answers."""
        return {
            "item": self.annotations.items,
            "value": self.value,
            "deviation": self.deviation,
            "n_labels": self.annotations.labels_per_item,
        }

    def _table(self) -> Table:
        return {"item": self.annotations.items, "label": self.value, "deviation": self.deviation}

    @property
    def annotators(self) -> Table:
        """Every annotator: number of answers, weight, bias and noise."""
        return {
            "annotator": self.annotations.annotators,
            "n_labels": self.annotations.labels_per_annotator,
            "weight": self.weight,
            "bias": self.bias,
            "noise": self.noise,
        }

    @property
    def predictions(self) -> Values:
        """The values, to evaluate."""
        return Values(self.annotations.items, self.value)


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


def gold_codes(annotations: Annotations, gold: Mapping[Any, Any] | None) -> Integers | None:
    """Return the known class of every item, -1 where it is unknown; `None` without gold."""
    if not gold:
        return None
    classes = {name: code for code, name in enumerate(annotations.classes.tolist())}
    codes = np.full(annotations.n_items, -1, dtype=np.int64)
    for code, item, label in _known(annotations, gold):
        name = text(label)
        if name not in classes:
            raise DataError(
                f"gold says {name!r} for item {item!r}, which is not among the classes "
                f"{', '.join(classes)}; declare it with the annotations"
            )
        codes[code] = classes[name]
    return codes


def gold_values(annotations: Numbers, gold: Mapping[Any, Any] | None) -> Floats:
    """Return the known value of every item, NaN where it is unknown."""
    values = np.full(annotations.n_items, np.nan)
    for code, item, value in _known(annotations, gold) if gold else ():
        values[code] = as_number(value)
        if not math.isfinite(values[code]):
            raise DataError(f"gold says {value!r} for item {item!r}, which is not a number")
    return values


def as_number(value: Any) -> float:
    """Return a value as a number, NaN if it is none."""
    try:
        return float(value)
    except (TypeError, ValueError):
        return math.nan


def _known(annotations: Relation, gold: Mapping[Any, Any]) -> list[tuple[int, str, Any]]:
    """Return code, name and gold of every annotated item with gold; other gold is ignored."""
    by_name = {text(item): value for item, value in gold.items()}
    rows = enumerate(annotations.items.tolist())
    known = [(code, item, by_name[item]) for code, item in rows if item in by_name]
    if not known:
        raise DataError("gold is given, but for none of the annotated items")
    return known
