"""One opinion for everybody: a classifier of the majority label, whoever is asked.

What most work with annotations does. It cannot tell annotators apart, and it is surer than they
are: the majority of five is nearly certain where each of the five is not. Ridge and space are
chosen by the log-loss of majority labels on items held out, as for any classifier.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Literal

import numpy as np
from annotated_types import Ge
from scipy.special import log_softmax

from .._relation import Floats, Integers
from ..annotations import Annotations
from ..params import Count
from ._base import How, State, Tendency, TendencyMethod, Views
from ._components import Components, Space, find_components
from ._shrunk import Pairs, ShrunkLinear, Spreads, class_basis, fit_shrunk
from .linear import SPACES

__all__ = ["Consensus", "ConsensusTendency", "Opinion", "believed"]

_SHARED = (0.06, 0.12, 0.25, 0.5, 1.0, 2.0)
_USUAL = 0.5  # by which spaces are compared


class Opinion:
    """A classifier of beliefs about items: components and one linear head."""

    def __init__(self, components: Components, weight: Floats, level: Floats) -> None:
        self.components, self.weight, self.level = components, weight, level

    def log_belief(self, views: Views) -> Floats:
        """Return log-probabilities of the classes: (item, class)."""
        return log_softmax(self.components.of(views) @ self.weight.T + self.level, axis=1)

    def state(self) -> State:
        """Return what it has learned."""
        head = State({}, {"weight": self.weight, "level": self.level})
        return State.of(components=State({}, self.components.arrays()), head=head)

    @classmethod
    def from_state(cls, state: State) -> Opinion:
        """Return it again."""
        components = Components.from_arrays(state.inner("components").arrays)
        return cls(components, **state.inner("head").arrays)

    @classmethod
    def learn(
        cls, views: Views, posterior: Floats, spaces: list[Space], most: int, folds: int, seed: int
    ) -> Opinion:
        """Learn beliefs (item, class); items whose row is zero are left out."""
        known = np.flatnonzero(posterior.sum(axis=1) > 0)
        views, posterior = views.take(known), posterior[known]
        folds = min(folds, len(known))
        fold = np.random.default_rng([seed, 0xF01D]).permutation(len(known)) % folds
        parts = [(fold == each) for each in range(folds)] if folds > 1 else []

        def losses(space: Space, spreads: Sequence[float]) -> Floats:
            """Return the log-loss of beliefs held out, under every spread."""
            out = np.zeros(len(spreads))
            for held in parts:
                found = find_components(views.vectors[~held], most, space, seed)
                x, start = found.of(views), None
                for position, shared in enumerate(spreads):
                    heads, start = fit_shrunk(
                        _pairs(x[~held], posterior[~held]), Spreads(shared), start=start
                    )
                    log = log_softmax(x[held] @ _weight(heads).T + heads.level, axis=1)
                    out[position] -= float((posterior[held] * log).sum())
            return out

        space = min(spaces, key=lambda each: float(losses(each, [_USUAL])[0]))
        shared = _SHARED[int(losses(space, _SHARED).argmin())]
        found = find_components(views.vectors, most, space, seed)
        heads = fit_shrunk(
            _pairs(found.of(views), posterior), Spreads(shared), tol=1e-8, max_iter=600
        ).heads
        return cls(found, _weight(heads), heads.level)


def _weight(heads: ShrunkLinear) -> Floats:
    """Return the shared head, class by class: (class, component)."""
    return heads.basis.T @ heads.weight


def _pairs(x: Floats, posterior: Floats) -> Pairs:
    """Return items as if one annotator had spoken of them."""
    item, n_classes = np.arange(len(x)), posterior.shape[1]
    nobody = np.zeros(len(x), dtype=np.int64)
    basis = class_basis(n_classes, ordinal=False)
    return Pairs(x, item, nobody, posterior, np.zeros((1, 0)), basis)


def believed(annotations: Annotations) -> Floats:
    """Return the majority label of every item, shared where several tie: (item, class)."""
    votes = annotations.votes()
    most = votes.max(axis=1, keepdims=True)
    ahead = ((votes == most) & (most > 0)).astype(np.float64)
    return ahead / np.maximum(ahead.sum(axis=1, keepdims=True), 1)


class ConsensusTendency(Tendency):
    """An opinion that everybody has."""

    def __init__(self, opinion: Opinion, n_annotators: int) -> None:
        self.opinion, self.n_annotators = opinion, n_annotators
        self.n_classes = len(opinion.level)

    def log_probability(self, views: Views, item: Integers, annotator: Integers) -> Floats:
        asked, row = np.unique(np.asarray(item), return_inverse=True)
        return self.opinion.log_belief(views.take(asked))[row]

    def state(self) -> State:
        told = State.of(opinion=self.opinion.state())
        return State(told.notes | {"n_annotators": self.n_annotators}, told.arrays)

    def with_annotator(
        self, views: Views, label: Integers, *, features: Floats | None = None, seed: int = 0
    ) -> ConsensusTendency:
        return ConsensusTendency(self.opinion, self.n_annotators + 1)


@dataclass(frozen=True, kw_only=True)
class Consensus(TendencyMethod):
    """One opinion for everybody, learned from majority labels.

    Parameters
    ----------
    space
        What components are taken of, as in `linear`.
    components
        How many, at most.
    folds
        Parts of the items that are held out in turn to choose.
    """

    space: Literal["auto", "straight", "curved", "direction"] = "auto"
    components: Count = 256
    folds: Annotated[int, Ge(2)] = 3

    def opinion(self, views: Views, posterior: Floats, how: How) -> Opinion:
        """Return a classifier of beliefs."""
        spaces = list(SPACES.values()) if self.space == "auto" else [SPACES[self.space]]
        return Opinion.learn(views, posterior, spaces, self.components, self.folds, how.seed)

    def learn(self, views: Views, annotations: Annotations, how: How) -> Tendency:
        return ConsensusTendency(
            self.opinion(views, believed(annotations), how), annotations.n_annotators
        )

    def restore(self, state: State) -> Tendency:
        opinion = Opinion.from_state(state.inner("opinion"))
        return ConsensusTendency(opinion, state.notes["n_annotators"])
