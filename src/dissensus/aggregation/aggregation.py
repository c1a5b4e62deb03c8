"""The result of a consensus: what is true of every item, and the quality of annotators."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from ..answers import Answers, kind_class
from ..base.arrays import Array, Floats, FrozenArrays
from ..base.names import as_names
from ..base.storage import State, loading_state, relation_of, relation_state, save_state
from ..base.tables import Tabular
from ..result import Aggregation, Table
from .existence import EXISTENCE, Existence


@dataclass(frozen=True, eq=False, repr=False)
class Consensus(Tabular, FrozenArrays):
    """What a method inferred from answers of any kind, and the quality of annotators.

    Attributes
    ----------
    method
        The specification of the method.
    answers
        The answers.
    items
        What is true of the items, by column. Marks have a row each, so an item may have several
        rows or none; `item`, `confidence` and what the kind adds.
    annotators
        Every annotator, by column: `annotator`, `n_answers` and what the kind adds.
    inner
        The result of the same question in classes, where there is one: its items are candidates.
    params
        Fitted parameters, arrays by name.
    trace
        The objective after every iteration; empty for methods without one.
    converged
        Whether the last iteration changed less than the tolerance.
    notes
        Remarks to show with the result.
    """

    method: str
    answers: Answers
    items: Table
    annotators: Table
    inner: Aggregation | None = None
    params: Mapping[str, Array] = field(default_factory=dict)
    trace: tuple[float, ...] = ()
    converged: bool = True
    notes: tuple[str, ...] = ()

    def __repr__(self) -> str:
        rounds = f", {len(self.trace)} iterations" if self.trace else ""
        ended = "" if self.converged else ", not converged"
        return f"<Consensus by {self.method}: {self.answers.summary}{rounds}{ended}>"

    def _table(self) -> Table:
        return self.items

    @property
    def kind(self) -> str:
        """The kind of the answers."""
        return self.answers.kind

    @property
    def confidence(self) -> Floats:
        """The calibrated probability of every row of `items`."""
        return self.items["confidence"]

    @cached_property
    def consensus(self) -> Answers:
        """The consensus as answers of one annotator, on all items."""
        return self.answers.as_answers(self.items)

    def save(self, folder: str | Path) -> None:
        """Write the result with its answers to a folder, all of it or nothing."""
        parts = {name: _table_state(getattr(self, name)) for name in _TABLES}
        if self.inner is not None:
            parts["inner"] = State.join(
                relation=relation_state(self.inner.annotations), result=self.inner.state()
            )
        notes = {name: getattr(self, name) for name in _JSON} | {"answers": self.kind}
        state = State.join(notes, **parts)
        save_state(folder, "consensus", self.answers, notes=state.notes, arrays=state.arrays)

    @classmethod
    def load(cls, folder: str | Path) -> Consensus:
        """Read a result that `save` wrote."""
        with loading_state(folder, "consensus") as state:
            content: dict[str, Any] = {name: state.notes[name] for name in _JSON}
            content |= {name: tuple(content[name]) for name in ("trace", "notes")}
            content |= {name: _table_of(state.part(name)) for name in _TABLES}
            if "inner" in state.notes:
                inner = state.part("inner")
                relation, result = relation_of(inner.part("relation")), inner.part("result")
                own = Existence.params_type if result.notes["method"] == EXISTENCE else None
                content["inner"] = Aggregation.from_state(result, relation, own)
            answers = kind_class(state.notes["answers"])(**relation_of(state))
            return cls(answers=answers, **content)


_JSON = ("method", "trace", "converged", "notes")
_TABLES = ("items", "annotators", "params")


def _table_state(table: Table) -> State:
    """Return columns as JSON where they are texts, as arrays otherwise, with their order."""
    texts = {name: values.tolist() for name, values in table.items() if values.dtype.kind == "O"}
    arrays = {name: values for name, values in table.items() if name not in texts}
    return State({"columns": list(table), "texts": texts}, arrays)


def _table_of(state: State) -> dict[str, Array]:
    texts = {name: as_names(values) for name, values in state.notes["texts"].items()}
    return {name: np.asarray((texts | state.arrays)[name]) for name in state.notes["columns"]}
