"""What an aggregation found out: labels and how sure they are, and whom to trust.

Results do not change. They save to a folder of plain arrays and JSON and load from it; nothing
is pickled.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ._files import replacing_folder
from ._names import Names, as_names, with_gaps
from ._relation import Floats, Integers, frozen
from .errors import DataError

if TYPE_CHECKING:
    from .annotations import Annotations

__all__ = ["Aggregation", "Table"]

Table = Mapping[str, np.ndarray[Any, Any]]  # column name → values, all of one length

_FORMAT = 1


@dataclass(frozen=True, eq=False, repr=False)
class Aggregation:
    """The labels that a method inferred, and what it learned about the annotators.

    Attributes
    ----------
    method
        The method with its settings, as `registry` writes it.
    label
        Code of every item's class; -1 where the method leaves it undecided.
    posterior
        Belief in every class: (item, class), rows sum to one.
    params
        What the method learned, a tuple of arrays with names; `None` for plain votes.
    trace
        The objective after every round; it never falls.
    converged
        Whether the last round changed the objective by less than the tolerance.
    quality
        For every annotator the probability of being right, as the method sees it.
    agreement
        For every annotator the mean belief in the labels they gave.
    """

    method: str
    item_names: Names
    annotator_names: Names
    classes: Names
    label: Integers
    posterior: Floats
    labels_per_item: Integers
    labels_per_annotator: Integers
    quality: Floats
    agreement: Floats
    params: Any = None
    trace: tuple[float, ...] = ()
    converged: bool = True

    def __post_init__(self) -> None:
        for name, value in list(vars(self).items()):
            if isinstance(value, np.ndarray):
                object.__setattr__(self, name, frozen(value))

    def __repr__(self) -> str:
        rounds = f", {len(self.trace)} rounds" if self.trace else ""
        ended = "" if self.converged else ", not converged"
        return f"<Aggregation by {self.method}: {len(self.item_names)} items{rounds}{ended}>"

    @cached_property
    def labels(self) -> Names:
        """The label of every item by name; `None` where undecided."""
        return with_gaps(self.classes, self.label)

    @cached_property
    def confidence(self) -> Floats:
        """The belief in every item's label; in the best class where it is undecided."""
        if self.posterior.shape[1] == 0:
            return np.zeros(len(self.item_names))
        chosen = np.where(self.label < 0, self.posterior.argmax(axis=1), self.label)
        return np.take_along_axis(self.posterior, chosen[:, None], axis=1)[:, 0]

    @property
    def items(self) -> Table:
        """Every item: its label, how sure it is, how many labels it got."""
        return {
            "item": self.item_names,
            "label": self.labels,
            "confidence": self.confidence,
            "n_labels": self.labels_per_item,
        }

    @property
    def annotators(self) -> Table:
        """Every annotator: how many labels, how good, how often with the consensus."""
        return {
            "annotator": self.annotator_names,
            "n_labels": self.labels_per_annotator,
            "quality": self.quality,
            "agreement": self.agreement,
        }

    def save(self, folder: str | Path) -> None:
        """Write the result to a folder, all of it or nothing."""
        arrays: dict[str, Any] = {
            name: value
            for name, value in vars(self).items()
            if isinstance(value, np.ndarray) and name not in _NAMES
            if name in self.__dataclass_fields__
        }
        params = self.params._asdict() if self.params is not None else {}
        arrays |= {f"params.{name}": np.asarray(value) for name, value in params.items()}
        notes = {
            "format": _FORMAT,
            "method": self.method,
            "trace": self.trace,
            "converged": self.converged,
            **{name: getattr(self, name).tolist() for name in _NAMES},
        }
        folder = Path(folder)
        if folder.exists() and any(folder.iterdir()) and not (folder / "result.json").exists():
            raise DataError(f"{folder}: holds something else; name a new folder")
        with replacing_folder(folder) as target:
            np.savez(target / "arrays.npz", **arrays)
            (target / "result.json").write_text(json.dumps(notes), encoding="utf-8")

    @classmethod
    def load(cls, folder: str | Path) -> Aggregation:
        """Read a result that `save` wrote."""
        from .registry import aggregators

        folder = Path(folder)
        try:
            notes = json.loads((folder / "result.json").read_text(encoding="utf-8"))
            with np.load(folder / "arrays.npz", allow_pickle=False) as stored:
                arrays = dict(stored)
            if notes.pop("format") != _FORMAT:
                raise DataError(
                    f"{folder}: written by a newer version; update dissensus to read it"
                )
            names = {name: as_names(notes.pop(name)) for name in _NAMES}
            learned = {k.removeprefix("params."): arrays.pop(k) for k in [*arrays] if "." in k}
            kind = type(aggregators.create(notes["method"])).learns
            params = None if kind is None else kind(**learned)
            trace = tuple(notes.pop("trace"))
            found: dict[str, Any] = {**notes, **names, **arrays}
            return cls(**found, params=params, trace=trace)
        except (OSError, ValueError, KeyError, TypeError) as problem:
            if isinstance(problem, DataError):
                raise
            raise DataError(f"{folder}: not a saved result ({problem})") from None


_NAMES = ("item_names", "annotator_names", "classes")


def gold_codes(said: Annotations, gold: Mapping[Any, Any] | None) -> Integers | None:
    """Return the known class of every item, -1 where it is not known; `None` without gold.

    Gold about items that nobody was asked about is of no use here and left aside.
    """
    if not gold:
        return None
    known = dict(zip(as_names(gold.keys()).tolist(), as_names(gold.values()).tolist(), strict=True))
    classes = {name: place for place, name in enumerate(said.classes.tolist())}
    codes = np.full(said.n_items, -1, dtype=np.int64)
    for place, item in enumerate(said.items.tolist()):
        label = known.get(item)
        if label is None:
            continue
        if label not in classes:
            raise DataError(
                f"gold says {label!r} for item {item!r}, which is not among the classes "
                f"{', '.join(classes)}; declare it with the annotations"
            )
        codes[place] = classes[label]
    if (codes < 0).all():
        raise DataError("gold is given, but for none of the annotated items")
    return codes
