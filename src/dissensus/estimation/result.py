"""What an estimation found out: values and how sure they are, and whom to trust.

Results do not change. They save to a folder of plain arrays and JSON and load from it; nothing
is pickled.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np

from .._files import replacing_folder
from .._names import as_names
from .._relation import Floats, frozen
from ..errors import DataError
from ..measurements import Numbers
from ..result import Table

__all__ = ["Estimation"]

_FORMAT = 1
_KIND = "estimation"
_RELATION = ("index", "annotator", "value")  # arrays of the numbers in a saved result
_NAMES = ("items", "annotators")


@dataclass(frozen=True, eq=False, repr=False)
class Estimation:
    """The values that a method inferred, and what it learned about the annotators.

    Attributes
    ----------
    method
        The method with its settings, as the registry writes it.
    said
        The numbers it speaks of.
    value
        The value of every item; NaN where nobody answered and nothing is known.
    deviation
        The standard error of every value, 0 for gold; NaN where the method does not say.
    weight
        How much every annotator counts, in the method's own units.
    bias
        By how much every annotator answers too high.
    noise
        Standard deviation of every annotator's answers, bias apart; NaN after a single answer,
        unless the method has a prior.
    trace
        The objective after every round; it never falls. Empty for methods without one.
    converged
        Whether the last round changed less than the tolerance.
    """

    method: str
    said: Numbers
    value: Floats  # (item)
    deviation: Floats  # (item)
    weight: Floats  # (annotator)
    bias: Floats  # (annotator)
    noise: Floats  # (annotator)
    trace: tuple[float, ...] = ()
    converged: bool = True

    def __post_init__(self) -> None:
        for name in _ARRAYS:
            object.__setattr__(self, name, frozen(getattr(self, name)))

    def __repr__(self) -> str:
        rounds = f", {len(self.trace)} rounds" if self.trace else ""
        ended = "" if self.converged else ", not converged"
        return f"<Estimation by {self.method}: {self.said.n_items} items{rounds}{ended}>"

    @property
    def precision(self) -> Floats:
        """One over the squared noise of every annotator."""
        with np.errstate(divide="ignore"):
            return 1 / self.noise**2

    @property
    def items(self) -> Table:
        """Every item: its value, how sure it is, how many answers it got."""
        return {
            "item": self.said.items,
            "value": self.value,
            "deviation": self.deviation,
            "n_labels": self.said.labels_per_item,
        }

    @property
    def annotators(self) -> Table:
        """Every annotator: how many answers, how much they count, how they err."""
        return {
            "annotator": self.said.annotators,
            "n_labels": self.said.labels_per_annotator,
            "weight": self.weight,
            "bias": self.bias,
            "noise": self.noise,
        }

    def save(self, folder: str | Path) -> None:
        """Write the result with its numbers to a folder, all of it or nothing."""
        folder = Path(folder)
        if folder.exists() and any(folder.iterdir()) and not (folder / "result.json").exists():
            raise DataError(f"{folder}: holds something else; name a new folder")
        arrays: dict[str, Any] = {
            **{name: getattr(self, name) for name in _ARRAYS},
            **{f"said.{name}": getattr(self.said, name) for name in _RELATION},
        }
        notes = {
            "format": _FORMAT,
            "kind": _KIND,
            "method": self.method,
            "trace": self.trace,
            "converged": self.converged,
            **{name: getattr(self.said, name).tolist() for name in _NAMES},
        }
        with replacing_folder(folder) as target:
            np.savez(target / "arrays.npz", **arrays)
            (target / "result.json").write_text(json.dumps(notes), encoding="utf-8")

    @classmethod
    def load(cls, folder: str | Path) -> Estimation:
        """Read a result that `save` wrote."""
        folder = Path(folder)
        try:
            notes = json.loads((folder / "result.json").read_text(encoding="utf-8"))
            if notes.get("kind") != _KIND:
                raise DataError(f"{folder}: a saved aggregation; Aggregation.load reads it")
            if notes["format"] != _FORMAT:
                raise DataError(
                    f"{folder}: written by another version; update dissensus to read it"
                )
            with np.load(folder / "arrays.npz", allow_pickle=False) as stored:
                arrays = dict(stored)
            relation: dict[str, Any] = {
                **{name: arrays[f"said.{name}"] for name in _RELATION},
                **{name: as_names(notes[name]) for name in _NAMES},
            }
            return cls(
                notes["method"],
                Numbers(**relation),
                **{name: arrays[name] for name in _ARRAYS},
                trace=tuple(notes["trace"]),
                converged=notes["converged"],
            )
        except (OSError, ValueError, KeyError, TypeError, AttributeError) as problem:
            if isinstance(problem, DataError):
                raise
            raise DataError(f"{folder}: not a saved result ({problem})") from None


_ARRAYS = tuple(field.name for field in fields(Estimation) if field.type == "Floats")
