"""Linear heads on components of the items, drawn towards a head that all annotators share.

    logits of annotator k = (1 + slope[k]) z(x) + bias[k] + U[k] x,   z(x) = W x + level

W is learned from all labels of all annotators; bias, slope and U are what is k's own, and how far
each may go is decided by the log-loss of annotations on items held out, where "not at all" is
always among the answers. So annotators with thousands of labels get heads of their own, and those
with six a bias. Components are those of a kernel where that foresees better, which makes z a kernel
regression. What is known of annotators (metadata) gives them a bias and a head as well, so that one
who has said nothing yet is foreseen by those alike.

Shared head and bias are HuBi's "simple" model; the shrinkage and the choice of strengths are ours.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal

import numpy as np
from annotated_types import Ge
from scipy.optimize import minimize
from scipy.special import log_softmax

from .._relation import Floats, Integers
from ..annotations import Annotations
from ..errors import DataError
from ..params import Count, NonNegative, Positive
from ._base import How, State, Tendency, TendencyMethod, Views
from ._components import Components, Space, find_components
from ._shrunk import Pairs, ShrunkLinear, Spreads, fit_shrunk
from ._strengths import CrossFit, Trial, search

__all__ = ["Linear", "LinearTendency"]

SPACES = {
    "straight": Space(False, 0.0),
    "curved": Space(False, 1.0),
    "direction": Space(True, 1.0),
}
_START = Spreads(0.5, bias=1.0, slope=0.3)
_MOST = 600  # steps of the fit to everything


class LinearTendency(Tendency):
    """Components of items, and heads on them."""

    def __init__(self, components: Components, heads: ShrunkLinear, spreads: Spreads) -> None:
        self.components, self.heads, self.spreads = components, heads, spreads
        self.n_annotators, self.n_classes = heads.bias.shape

    def log_probability(self, views: Views, item: Integers, annotator: Integers) -> Floats:
        return log_softmax(self.logits(views, item, annotator), axis=1)

    def logits(self, views: Views, item: Integers, annotator: Integers) -> Floats:
        """Return logits of pairs: (pair, class)."""
        asked, row = np.unique(np.asarray(item), return_inverse=True)
        return self.heads.logits(self.components.of(views.take(asked)), row, np.asarray(annotator))

    def state(self) -> State:
        parts = {
            "components": State({}, self.components.arrays()),
            "heads": State({}, self.heads.arrays()),
        }
        whole = State.of(**parts)
        return State(whole.notes | {"spreads": list(self.spreads)}, whole.arrays)

    @classmethod
    def from_state(cls, state: State) -> LinearTendency:
        """Return it again."""
        return cls(
            Components.from_arrays(state.inner("components").arrays),
            ShrunkLinear(**state.inner("heads").arrays),
            Spreads(*state.notes["spreads"]),
        )

    def with_annotator(
        self,
        views: Views,
        label: Integers,
        *,
        features: Floats | None = None,
        seed: int = 0,
    ) -> LinearTendency:
        known = np.zeros(self.heads.n_known)
        if features is not None and len(features) != len(known):
            raise DataError(
                f"{len(features)} features of the annotator, but {len(known)} are known"
            )
        if features is not None:
            known = np.asarray(features, dtype=np.float64)
        x = self.components.of(views)
        return LinearTendency(
            self.components, _newcomer(self.heads, self.spreads, x, label, known), self.spreads
        )


def _newcomer(
    heads: ShrunkLinear, spreads: Spreads, x: Floats, label: Integers, known: Floats
) -> ShrunkLinear:
    """Return the heads with one annotator more, the mode of what is theirs alone."""
    q, c = heads.basis.shape
    rank = heads.embedding.shape[1] - len(known)
    fixed, free = heads.factor[rank:], heads.factor[:rank]
    base = known @ heads.known_bias
    z = x @ heads.weight.T  # (item, direction)
    given = heads.level + base + (z + np.einsum("f,fqd,id->iq", known, fixed, x)) @ heads.basis
    seen = np.einsum("rqd,id->irq", free, x)
    own = spreads.own if len(heads.own) else 0.0
    few = x[:, : heads.own.shape[2]]
    sizes = [c, 1, rank, q * few.shape[1] if own else 0]
    units = np.repeat([spreads.bias, spreads.slope, 1.0, own], sizes)
    target = np.eye(c)[np.asarray(label, dtype=np.int64)]

    def objective(flat: Floats) -> tuple[float, Floats]:
        bias, slope, embedding, mine = np.split(flat * units, np.cumsum(sizes)[:-1])
        told = slope * z + np.einsum("r,irq->iq", embedding, seen)
        if own:
            told = told + few @ mine.reshape(q, -1).T
        log = log_softmax(given + bias + told @ heads.basis, axis=1)
        residual = np.exp(log) - target
        back = residual @ heads.basis.T
        grad = [residual.sum(axis=0), [(back * z).sum()], np.einsum("iq,irq->r", back, seen)]
        grad.append((back.T @ few).ravel() if own else np.zeros(0))
        loss = -float((target * log).sum()) + 0.5 * float(flat @ flat)
        return loss, np.concatenate(grad) * units + flat

    found = minimize(objective, np.zeros(sum(sizes)), jac=True, method="L-BFGS-B").x * units
    bias, slope, embedding, mine = np.split(found, np.cumsum(sizes)[:-1])
    return heads.joined(
        bias + base,
        float(slope[0]),
        mine.reshape(q, -1) if own else np.zeros(heads.own.shape[1:]),
        np.concatenate([embedding, known]),
    )


@dataclass(frozen=True, kw_only=True)
class Linear(TendencyMethod):
    """Linear heads on components of the items, drawn towards a head that all share.

    Parameters
    ----------
    space
        What components are taken of: the features (straight), their kernel (curved), the kernel
        of vectors whose length does not count (direction), or what foresees best (auto).
    components
        How many, at most.
    shared
        Standard deviation of the prior on the shared head; `None`: chosen, as for those below.
    bias
        The same of an annotator's bias; 0 for none.
    slope
        The same of how much more or less the shared head counts for an annotator.
    own
        The same of a head of an annotator's own.
    known
        The same of what metadata say of an annotator, where there are any.
    ordinal
        Whether classes stand in an order: logits of neighbours differ by one number.
    folds
        Parts of the items that are held out in turn to choose.
    """

    space: Literal["auto", "straight", "curved", "direction"] = "auto"
    components: Count = 256
    shared: Positive | None = None
    bias: NonNegative | None = None
    slope: NonNegative | None = None
    own: NonNegative | None = None
    known: NonNegative | None = None
    ordinal: bool = False
    folds: Annotated[int, Ge(2)] = 3

    def learn(self, views: Views, annotations: Annotations, how: How) -> LinearTendency:
        trial = self.choose(self.cross(views, annotations, how), how)
        return self.fitted(views, annotations, trial, how)

    def cross(self, views: Views, annotations: Annotations, how: How) -> CrossFit:
        """Return what trials foresee of annotations on items held out."""
        known = _scaled(how.metadata)
        return CrossFit(
            views, annotations, known, self.ordinal, self.components, self.folds, how.seed
        )

    def choose(self, cross: CrossFit, how: How) -> Trial:
        """Return the trial that foresees best."""
        grid = self.grid(cross.known is not None)
        spaces = SPACES if self.space == "auto" else {self.space: SPACES[self.space]}
        start = Trial(next(iter(spaces.values())), self.start(cross.known is not None))
        return search(cross, start, {"space": list(spaces.values()), **grid}, how.progress)

    def start(self, known: bool) -> Spreads:
        """Return the spreads that are told, and where the others begin."""
        given = {name: getattr(self, name) for name in ("shared", "bias", "slope", "own", "known")}
        told = {name: value for name, value in given.items() if value is not None}
        return _START._replace(**told | ({} if known else {"known": 0.0}))

    def grid(self, known: bool) -> dict[str, Sequence[float]]:
        """Return what is tried of every part that is not told."""
        every: dict[str, Sequence[float]] = {
            "shared": (0.12, 0.25, 0.5, 1.0),
            "bias": (0.0, 0.3, 0.6, 1.0, 2.0),
            "slope": (0.0, 0.15, 0.3, 0.6),
            "known": (0.0, 0.1, 0.3, 1.0) if known else (),
            "own": (0.0, 0.1, 0.2, 0.4, 0.8),
        }
        return {
            part: values for part, values in every.items() if values and getattr(self, part) is None
        }

    def fitted(
        self, views: Views, annotations: Annotations, trial: Trial, how: How
    ) -> LinearTendency:
        """Return the model of a trial, fitted to everything."""
        components = find_components(views.vectors, self.components, trial.space, how.seed)
        known = _scaled(how.metadata)
        pairs = Pairs.of(components.of(views), annotations, known=known, ordinal=self.ordinal)
        start = None
        if trial.spreads.rank:  # factors begin where the rest leaves off
            start = fit_shrunk(pairs, trial.spreads._replace(rank=0), max_iter=_MOST).parts
        heads = fit_shrunk(pairs, trial.spreads, start=start, max_iter=_MOST).heads
        return LinearTendency(components, heads, trial.spreads)

    def restore(self, state: State) -> LinearTendency:
        return LinearTendency.from_state(state)


def _scaled(metadata: Any) -> Floats | None:
    return None if metadata is None else np.asarray(metadata, dtype=np.float64)
