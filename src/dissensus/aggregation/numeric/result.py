"""What an estimation found out: values and how sure they are, and whom to trust.

Results do not change. They save to a folder of plain arrays and JSON and load from it; nothing
is pickled.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from pathlib import Path

import numpy as np

from ..._relation import Floats, frozen
from ..._serialization import loading_state, relation_of, save_state
from ...answers.numbers import Numbers
from ...result import Table

__all__ = ["Estimation"]


@dataclass(frozen=True, eq=False, repr=False)
class Estimation:
    """The values that a method inferred, and what it learned about the annotators.

    Attributes
    ----------
    method
        The method with its settings, as the registry writes it.
    annotations
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
    annotations: Numbers
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
        return f"<Estimation by {self.method}: {self.annotations.n_items} items{rounds}{ended}>"

    @property
    def precision(self) -> Floats:
        """One over the squared noise of every annotator."""
        with np.errstate(divide="ignore"):
            return 1 / self.noise**2

    @property
    def items(self) -> Table:
        """Every item: its value, how sure it is, how many answers it got."""
        return {
            "item": self.annotations.items,
            "value": self.value,
            "deviation": self.deviation,
            "n_labels": self.annotations.labels_per_item,
        }

    @property
    def annotators(self) -> Table:
        """Every annotator: how many answers, how much they count, how they err."""
        return {
            "annotator": self.annotations.annotators,
            "n_labels": self.annotations.labels_per_annotator,
            "weight": self.weight,
            "bias": self.bias,
            "noise": self.noise,
        }

    def save(self, folder: str | Path) -> None:
        """Write the result with its numbers to a folder, all of it or nothing."""
        arrays = {name: getattr(self, name) for name in _ARRAYS}
        notes = {name: getattr(self, name) for name in ("method", "trace", "converged")}
        save_state(folder, "estimation", self.annotations, notes, arrays)

    @classmethod
    def load(cls, folder: str | Path) -> Estimation:
        """Read a result that `save` wrote."""
        with loading_state(folder, "estimation") as stored:
            notes, arrays = stored
            return cls(
                notes["method"],
                Numbers(**relation_of(stored)),
                **{name: arrays[name] for name in _ARRAYS},
                trace=tuple(notes["trace"]),
                converged=notes["converged"],
            )


_ARRAYS = tuple(field.name for field in fields(Estimation) if field.type == "Floats")
