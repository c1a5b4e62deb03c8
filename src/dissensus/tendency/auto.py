"""The default: linear heads in several forms, and a query model where it pays, weighted together.

    linear       a shared head, and each annotator's bias, slope and head, drawn towards it
    factors      the same, and annotators as points in a space of three dimensions
    elsewhere    the same in another space of components
    queries      a query per annotator over words or patches, mean of three fits

Strengths and weights are chosen by the log-loss of annotations on items held out: nothing is set by
hand, and no annotation is foreseen by a model that has seen its item. Members that get less than a
twentieth of the weight are left out. A query model is trained only where places of the items are
given, the crowd is small (64 at most) and its members have labelled enough (a hundred items each):
elsewhere it has never been ahead, and it costs a hundred times as much.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
from annotated_types import Ge

from .._names import NUMBER
from .._relation import Floats, Integers
from ..annotations import Annotations
from ..params import Count
from ._base import How, State, Tendency, TendencyMethod, Views
from ._pool import pool, pool_weights
from ._strengths import CrossFit, Trial, deal
from .linear import SPACES, Linear, LinearTendency

__all__ = ["Auto", "AutoTendency"]

_LEAST = 0.05  # weight below which a member is left out
_RANK = 3
_FEW = 64  # annotators whose queries can see each other
_ENOUGH = 100  # labels of the median annotator
_EPOCHS, _PATIENCE = 12, 3  # of queries, which are at their best after a few epochs


class AutoTendency(Tendency):
    """Models and how much each counts."""

    def __init__(
        self, members: Sequence[tuple[str, Tendency]], weight: Sequence[float] | Floats
    ) -> None:
        self.members, self.weight = tuple(members), np.asarray(weight, dtype=np.float64)
        first = members[0][1]
        self.n_annotators, self.n_classes = first.n_annotators, first.n_classes

    def log_probability(self, views: Views, item: Integers, annotator: Integers) -> Floats:
        found = [model.log_probability(views, item, annotator) for _, model in self.members]
        return pool(np.stack(found), self.weight)

    def with_annotator(
        self, views: Views, label: Integers, *, features: Floats | None = None, seed: int = 0
    ) -> AutoTendency:
        joined = [
            (name, model.with_annotator(views, label, features=features, seed=seed))
            for name, model in self.members
        ]
        return AutoTendency(joined, self.weight)

    def state(self) -> State:
        whole = State.of(**{name: model.state() for name, model in self.members})
        told = {"members": [name for name, _ in self.members], "weight": self.weight.tolist()}
        return State(whole.notes | told, whole.arrays)


@dataclass(frozen=True, kw_only=True)
class Auto(TendencyMethod):
    """Linear heads in several forms, and a query model where it pays, weighted together.

    Parameters
    ----------
    queries
        Whether a query model is among them: where it can pay (auto), always or never.
    fits
        How often the query model is fitted; its chances are averaged.
    ordinal
        Whether classes stand in an order; `None`: tried where all of at least four are numbers.
    components
        Of the items, at most.
    folds
        Parts of the items that are held out in turn to choose.
    """

    wants_tokens: ClassVar[bool] = True

    queries: Literal["auto", "always", "never"] = "auto"
    fits: Count = 3
    ordinal: bool | None = None
    components: Count = 256
    folds: Annotated[int, Ge(2)] = 3

    def learn(self, views: Views, annotations: Annotations, how: How) -> AutoTendency:
        plain = Views(views.vectors)
        linear = self._linear(self.ordinal or False)
        cross = linear.cross(plain, annotations, how)
        best = linear.choose(cross, how)
        trials = {"linear": (linear, cross, best)} | {
            name: (linear, cross, trial) for name, trial in _variants(cross, best).items()
        }
        if self.ordinal is None and _in_order(annotations):
            ordered = self._linear(True)
            crossed = ordered.cross(plain, annotations, how)
            trial = crossed.best(
                [Trial(best.space, best.spreads._replace(shared=each)) for each in (0.25, 0.5, 1.0)]
            )
            trials["ordinal"] = ordered, crossed, trial
        names = list(trials)
        foreseen = np.stack([crossed.foreseen(trial) for _, crossed, trial in trials.values()])
        label = annotations.label.astype(np.int64)
        weight = pool_weights(foreseen, label, _LEAST)
        kept = [position for position in np.argsort(-weight) if weight[position] > 0]
        members: list[tuple[str, Tendency]] = [
            (
                names[position],
                trials[names[position]][0].fitted(
                    plain, annotations, trials[names[position]][2], how
                ),
            )
            for position in kept
        ]
        shares = weight[kept]
        if self.looks_at_tokens(annotations) and (
            views.tokens is not None or self.queries == "always"
        ):
            share = self._query_weight(views, annotations, pool(foreseen, weight), how)
            if share >= _LEAST:
                asked = self._query(self.fits).learn(views, annotations, how.inside("queries"))
                members.append(("queries", asked))
                shares = np.append((1 - share) * shares, share)
        return AutoTendency(members, shares)

    def _linear(self, ordinal: bool) -> Linear:
        return Linear(components=self.components, folds=self.folds, ordinal=ordinal)

    def _query(self, fits: int) -> Any:
        from .query import Query

        return Query(fits=fits, epochs=_EPOCHS, patience=_PATIENCE)

    def looks_at_tokens(self, annotations: Annotations) -> bool:
        """Return whether a query model is to be tried."""
        if self.queries != "auto":
            return self.queries == "always"
        enough = float(np.median(annotations.labels_per_annotator)) >= _ENOUGH
        return annotations.n_annotators <= _FEW and enough

    def _query_weight(
        self, views: Views, annotations: Annotations, rest: Floats, how: How
    ) -> float:
        """Return what a query model counts beside the rest, by annotations on one fold."""
        held = (deal(annotations, self.folds, how.seed) == 0)[annotations.item]
        asked = self._query(1).learn(views, annotations.keep(~held), how.inside("trial"))
        there = annotations.keep(held)
        item, annotator = there.item.astype(np.int64), there.annotator.astype(np.int64)
        foreseen = np.stack([rest[held], asked.log_probability(views, item, annotator)])
        return float(pool_weights(foreseen, there.label.astype(np.int64))[1])

    def restore(self, state: State) -> AutoTendency:
        members: list[tuple[str, Tendency]] = [
            (
                name,
                self._query(self.fits).restore(state.inner(name))
                if name == "queries"
                else LinearTendency.from_state(state.inner(name)),
            )
            for name in state.notes["members"]
        ]
        return AutoTendency(members, state.notes["weight"])


def _variants(cross: CrossFit, best: Trial) -> dict[str, Trial]:
    """Return what stands beside the best trial: with factors, and in another space."""
    factors = [
        Trial(best.space, best.spreads._replace(rank=_RANK, factor=each)) for each in (0.1, 0.2)
    ]
    others = [space for space in SPACES.values() if space.curve and space != best.space]
    return {
        "factors": cross.best(factors),
        "elsewhere": cross.best([Trial(space, best.spreads) for space in others]),
    }


def _in_order(annotations: Annotations) -> bool:
    """Return whether classes look like a scale: at least four, and all of them numbers."""
    names = annotations.classes.tolist()
    return len(names) >= 4 and all(re.match(NUMBER, name) for name in names)
