"""What an aggregation found out: labels and how sure they are, and whom to trust.

Results do not change. They save to a folder of plain arrays and JSON and load from it; nothing
is pickled.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from ._names import Names, as_names, decode
from ._relation import Array, Floats, Integers, frozen
from ._serialization import loading_state, relation_of, save_state, with_prefix
from .annotations import Annotations
from .errors import DataError, OptionError

__all__ = ["Aggregation", "Table", "gold_codes", "pack_params", "unpack_params"]

_ROUNDING = 1e-12  # a belief that misses the level by less holds it

Table = Mapping[str, Array]  # column name → values, all of one length


@dataclass(frozen=True, eq=False, repr=False)
class Aggregation:
    """The labels that a method inferred, and what it learned about the annotators.

    Attributes
    ----------
    method
        The method with its settings, as the registry writes it.
    annotations
        The annotations it speaks of.
    label
        Code of every item's class; -1 where the method leaves it undecided.
    posterior
        Belief in every class: (item, class), rows sum to one.
    quality
        For every annotator the probability of being right, as the method sees it.
    agreement
        For every annotator the mean belief in the labels they gave.
    interval
        Where the quality lies with 95 % probability, (annotator, 2); `None` where the method does
        not say. `bootstrap` gives one for every method.
    notes
        Sentences that a person should read beside the labels.
    params
        What the method learned, a tuple of arrays with names; `None` for plain votes.
    trace
        The objective after every round; it never falls.
    converged
        Whether the last round changed the objective by less than the tolerance.
    """

    method: str
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

    def __post_init__(self) -> None:
        for name in _ARRAYS:
            object.__setattr__(self, name, frozen(getattr(self, name)))

    def __repr__(self) -> str:
        rounds = f", {len(self.trace)} rounds" if self.trace else ""
        ended = "" if self.converged else ", not converged"
        return f"<Aggregation by {self.method}: {self.annotations.n_items} items{rounds}{ended}>"

    @property
    def classes(self) -> Names:
        """The classes that labels and posterior speak of."""
        return self.annotations.classes

    @cached_property
    def labels(self) -> Names:
        """The label of every item by name; `None` where undecided."""
        return decode(self.classes, self.label)

    @cached_property
    def confidence(self) -> Floats:
        """The belief in every item's label; in the best class where it is undecided."""
        chosen = np.where(self.label < 0, self.posterior.argmax(axis=1), self.label)
        return np.take_along_axis(self.posterior, chosen[:, None], axis=1)[:, 0]

    @property
    def items(self) -> Table:
        """Every item: its label, how sure it is, how many labels it got."""
        return {
            "item": self.annotations.items,
            "label": self.labels,
            "confidence": self.confidence,
            "n_labels": self.annotations.labels_per_item,
        }

    @property
    def annotators(self) -> Table:
        """Every annotator: how many labels, how good, how often with the consensus."""
        table = {
            "annotator": self.annotations.annotators,
            "n_labels": self.annotations.labels_per_annotator,
            "quality": self.quality,
            "agreement": self.agreement,
        }
        if self.interval is not None:
            table |= {"quality_low": self.interval[:, 0], "quality_high": self.interval[:, 1]}
        return table

    def credible_set(self, level: float = 0.95) -> npt.NDArray[np.bool_]:
        """Return the fewest classes of every item that hold this much belief: (item, class).

        Of classes with equal belief, the first go in.

        >>> from dissensus import Annotations, aggregate
        >>> annotations = Annotations.from_columns("aaabbbb", "xyzwxyz", "0011112")
        >>> aggregate(annotations, "naive-soft").credible_set(0.7).tolist()
        [[True, True, False], [False, True, False]]
        """
        if not 0 < level <= 1:
            raise OptionError(f"level = {level}, but it must be above 0 and at most 1")
        order = np.argsort(-self.posterior, axis=1, kind="stable")
        ranked = np.take_along_axis(self.posterior, order, axis=1)
        before = np.cumsum(ranked, axis=1) - ranked
        inside = np.empty(self.posterior.shape, dtype=bool)
        np.put_along_axis(inside, order, before < level - _ROUNDING, axis=1)
        return inside

    def predict(self, annotations: Annotations, *, features: Floats | None = None) -> Aggregation:
        """Return labels of other items by the crowd that this result has come to know.

        Nothing is learned anew. Annotators whom this result does not know count as its average
        one; methods that learn nothing are simply fitted. Features describe the other items:
        (item, feature), as the fit had them, for methods that use them.
        """
        from .registry import aggregators

        return aggregators.create(self.method).predict(self, annotations, features=features)

    def update(self, more: Annotations, **given: Any) -> Aggregation:
        """Return the result of a fit to all annotations so far and more, begun where this ended.

        Besides the annotations it takes what `Aggregator.fit` takes: gold, seed, engine, progress.
        """
        from .registry import aggregators

        return aggregators.create(self.method).fit(
            self.annotations.merge(more), start=self, **given
        )

    def save(self, folder: str | Path) -> None:
        """Write the result with its annotations to a folder, all of it or nothing."""
        learned = pack_params(self.params)
        arrays: dict[str, Any] = {
            **{name: getattr(self, name) for name in _ARRAYS},
            **{f"params.{name}": np.asarray(value) for name, value in learned.items()},
        }
        if self.interval is not None:
            arrays["interval"] = self.interval
        notes = {name: getattr(self, name) for name in ("method", "trace", "converged", "notes")}
        save_state(folder, "aggregation", self.annotations, notes, arrays)

    @classmethod
    def load(cls, folder: str | Path) -> Aggregation:
        """Read a result that `save` wrote."""
        from .registry import aggregators

        with loading_state(folder, "aggregation") as stored:
            notes, arrays = stored
            kind = aggregators.find(aggregators.resolve(notes["method"])[0]).learns
            return cls(
                notes["method"],
                Annotations(**relation_of(stored)),
                **{name: arrays[name] for name in _ARRAYS},
                params=unpack_params(kind, with_prefix("params", arrays)),
                trace=tuple(notes["trace"]),
                converged=notes["converged"],
                interval=arrays.get("interval"),
                notes=tuple(notes["notes"]),
            )


_ARRAYS = tuple(field.name for field in fields(Aggregation) if field.type in ("Floats", "Integers"))


def pack_params(params: Any) -> dict[str, Any]:
    """Return parameters as arrays by name; those that hold more than arrays pack themselves."""
    if params is None:
        return {}
    return params.pack() if hasattr(params, "pack") else params._asdict()


def unpack_params(kind: Any, arrays: dict[str, Any]) -> Any:
    """Return parameters of a kind from arrays by name."""
    if kind is None:
        return None
    return kind.unpack(arrays) if hasattr(kind, "unpack") else kind(**arrays)


def gold_codes(annotations: Annotations, gold: Mapping[Any, Any] | None) -> Integers | None:
    """Return the known class of every item, -1 where it is not known; `None` without gold.

    Gold about items that nobody was asked about is of no use here and left aside.
    """
    if not gold:
        return None
    known = dict(zip(as_names(gold.keys()).tolist(), as_names(gold.values()).tolist(), strict=True))
    classes = {name: position for position, name in enumerate(annotations.classes.tolist())}
    codes = np.full(annotations.n_items, -1, dtype=np.int64)
    for position, item in enumerate(annotations.items.tolist()):
        label = known.get(item)
        if label is None:
            continue
        if label not in classes:
            raise DataError(
                f"gold says {label!r} for item {item!r}, which is not among the classes "
                f"{', '.join(classes)}; declare it with the annotations"
            )
        codes[position] = classes[label]
    if (codes < 0).all():
        raise DataError("gold is given, but for none of the annotated items")
    return codes
