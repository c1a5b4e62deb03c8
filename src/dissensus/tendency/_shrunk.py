"""Linear heads of annotators, all of them drawn towards one that they share.

With x the components of an item, the logits of annotator k are

    z = W x + b                                             what all share
    logits = z + bias[k] + slope[k] z + own[k] x + Σ_r embedding[k, r] factor[r] x

and every part but b has a Gaussian prior of mean zero, whose spread decides how far annotators may
go from what all share; a spread of zero leaves the part out. The fit is the mode of the posterior,
found by L-BFGS on parameters divided by their spreads, which makes all priors alike.

Nothing here is as large as items × annotators. What items have (z, factor x) is made once per item
and gathered by the annotations; what annotators get back is a sparse product. Only `own` has to
meet every annotation with all components: annotators with about as many labels are laid in one
block, so that a block is one product of matrices, however many annotators it holds.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse
from scipy.optimize import minimize
from scipy.special import log_softmax

from .._relation import Floats, Integers
from ..annotations import Annotations

__all__ = ["Pairs", "ShrunkLinear", "Spreads", "fit_shrunk"]

_START = 0.1  # of embeddings and factors, which would never leave zero: each needs the other
_LEVEL = 10.0  # spread of the level of a class, which hardly holds it
_PIECE = 512  # pairs whose own heads are gathered together


class Spreads(NamedTuple):
    """Standard deviations of the priors; zero leaves a part out."""

    shared: float  # of an entry of W
    bias: float = 0.0
    slope: float = 0.0
    own: float = 0.0
    factor: float = 0.0  # of an entry of a factor; embeddings have spread one
    rank: int = 0  # how many factors


@dataclass(frozen=True, eq=False)
class ShrunkLinear:
    """What is learned of all and of each; parts that are left out have no entries."""

    weight: Floats  # (class, component)
    level: Floats  # (class)
    bias: Floats  # (annotator, class)
    slope: Floats  # (annotator) or (0)
    own: Floats  # (annotator, class, component) or (0, class, component)
    embedding: Floats  # (annotator, rank)
    factor: Floats  # (rank, class, component)

    def logits(self, x: Floats, item: Integers, annotator: Integers) -> Floats:
        """Return logits of pairs: (pair, class)."""
        z = x @ self.weight.T + self.level
        out = z[item] + self.bias[annotator]
        if len(self.slope):
            out += self.slope[annotator, None] * z[item]
        if len(self.own):
            for at in range(0, len(item), _PIECE):
                here = slice(at, at + _PIECE)
                rows = x[item[here], :, None]
                out[here] += np.matmul(self.own[annotator[here]], rows)[:, :, 0]
        if len(self.factor):
            seen = (x @ self.factor.reshape(-1, x.shape[1]).T).reshape(
                len(x), *self.factor.shape[:2]
            )
            out += np.einsum("nr,nrc->nc", self.embedding[annotator], seen[item])
        return out

    def arrays(self) -> dict[str, Any]:
        """Return every part by name."""
        return {one.name: getattr(self, one.name) for one in fields(self)}


class _Block(NamedTuple):
    """Annotators with about as many labels, side by side."""

    annotator: Integers  # (annotator of the block)
    place: Integers  # (annotator of the block, label): annotations, or their number where none is
    x: Floats  # (annotator of the block, label, component): zero where none is


@dataclass(frozen=True, eq=False)
class Pairs:
    """Annotations as the fit sees them."""

    x: Floats  # (item, component)
    item: Integers  # (annotation)
    annotator: Integers
    target: Floats  # (annotation, class): what was said, or a belief about it
    n_annotators: int
    weight: Floats | None = None  # (annotation): how much each counts

    @classmethod
    def of(cls, x: Floats, said: Annotations, weight: Floats | None = None) -> Pairs:
        """Return annotations on items with these components."""
        target = np.eye(said.n_classes)[said.label]
        annotator = said.annotator.astype(np.int64)
        return cls(x, said.item.astype(np.int64), annotator, target, said.n_annotators, weight)

    @cached_property
    def by_item(self) -> Any:
        """Adds up what annotations have, by item: (item, annotation)."""
        return _adder(self.item, len(self.x))

    @cached_property
    def by_annotator(self) -> Any:
        """Adds up what annotations have, by annotator: (annotator, annotation)."""
        return _adder(self.annotator, self.n_annotators)

    @cached_property
    def blocks(self) -> list[_Block]:
        """Annotators in blocks: half as many labels again is another block."""
        count = np.bincount(self.annotator, minlength=self.n_annotators)
        order = np.argsort(self.annotator, kind="stable")
        first = np.concatenate([[0], np.cumsum(count)[:-1]])
        size = np.ceil(2 * np.log2(np.maximum(count, 1))).astype(int)
        padded = np.concatenate([self.x[self.item], np.zeros((1, self.x.shape[1]))])
        found = []
        for each in np.unique(size[count > 0]):
            who = np.flatnonzero((size == each) & (count > 0))
            label = np.arange(count[who].max())
            place = order[np.minimum(first[who, None] + label, len(order) - 1)]
            place = np.where(label < count[who, None], place, len(order))
            found.append(_Block(who, place, padded[place]))
        return found


def _adder(code: Integers, size: int) -> Any:
    here = np.arange(len(code))
    return sparse.csr_array((np.ones(len(code)), (code, here)), shape=(size, len(code)))


def fit_shrunk(
    pairs: Pairs,
    spreads: Spreads,
    *,
    start: ShrunkLinear | None = None,
    seed: int = 0,
    tol: float = 1e-5,
) -> ShrunkLinear:
    """Return the heads of highest posterior.

    Parameters
    ----------
    pairs
        What was said.
    spreads
        How far annotators may go.
    start
        Heads to begin from, with the same parts or fewer.
    seed
        Decides where embeddings begin.
    tol
        Ends when a step gains less than this, relative to the objective.
    """
    model = _Model(pairs, spreads)
    found = minimize(
        model.objective,
        model.begin(start, np.random.default_rng([seed, 0xFAC7])),
        jac=True,
        method="L-BFGS-B",
        options={"maxiter": 500, "maxcor": 20, "ftol": tol, "gtol": 1e-3},
    )
    return model.heads(found.x)


class _Model:
    """The objective of a fit, over parameters in units of their spreads."""

    def __init__(self, pairs: Pairs, spreads: Spreads) -> None:
        self.pairs = pairs
        n, c, d = pairs.n_annotators, pairs.target.shape[1], pairs.x.shape[1]
        rank = spreads.rank if spreads.factor else 0
        parts: dict[str, tuple[tuple[int, ...], float]] = {
            "weight": ((c, d), spreads.shared),
            "level": ((c,), _LEVEL),
            "bias": ((n, c), spreads.bias),
            "slope": ((n if spreads.slope else 0,), spreads.slope),
            "own": ((n if spreads.own else 0, c, d), spreads.own),
            "embedding": ((n, rank), 1.0),
            "factor": ((rank, c, d), spreads.factor),
        }
        self.shapes = {name: shape for name, (shape, _) in parts.items()}
        self.units = {name: unit for name, (_, unit) in parts.items()}
        self.bounds = np.cumsum([int(np.prod(shape)) for shape in self.shapes.values()])

    def split(self, flat: Floats) -> dict[str, Floats]:
        """Return the parts of a flat vector, as views of it."""
        parts = np.split(flat, self.bounds[:-1])
        shapes = zip(self.shapes.items(), parts, strict=True)
        return {name: part.reshape(shape) for (name, shape), part in shapes}

    def heads(self, flat: Floats) -> ShrunkLinear:
        """Return the heads that a flat vector stands for."""
        parts = self.split(flat)
        return ShrunkLinear(**{name: self.units[name] * part for name, part in parts.items()})

    def begin(self, start: ShrunkLinear | None, random: np.random.Generator) -> Floats:
        """Return where the search begins."""
        flat = np.zeros(self.bounds[-1])
        parts = self.split(flat)
        for name in ("embedding", "factor"):
            parts[name][:] = _START * random.normal(size=parts[name].shape)
        if start is not None:
            for name, value in start.arrays().items():
                if value.size and value.shape == parts[name].shape and self.units[name]:
                    parts[name][:] = value / self.units[name]
        return flat

    def objective(self, flat: Floats) -> tuple[float, Floats]:
        """Return minus the log posterior, but for a constant, and its gradient."""
        pairs, heads = self.pairs, self.heads(flat)
        item, annotator = pairs.item, pairs.annotator
        z = (pairs.x @ heads.weight.T + heads.level)[item]  # (annotation, class)
        logits = z + heads.bias[annotator]
        if len(heads.slope):
            logits += heads.slope[annotator, None] * z
        if len(heads.own):
            told = np.empty((len(item) + 1, logits.shape[1]))
            for block in pairs.blocks:
                told[block.place] = block.x @ heads.own[block.annotator].swapaxes(1, 2)
            logits += told[:-1]
        if len(heads.factor):
            rank, n_classes, d = heads.factor.shape
            seen = (pairs.x @ heads.factor.reshape(-1, d).T).reshape(-1, rank, n_classes)[item]
            mine = heads.embedding[annotator]  # (annotation, rank)
            logits += np.einsum("nr,nrc->nc", mine, seen)
        log_chance = log_softmax(logits, axis=1)
        loss, residual = -pairs.target * log_chance, np.exp(log_chance) - pairs.target
        if pairs.weight is not None:
            loss, residual = loss * pairs.weight[:, None], residual * pairs.weight[:, None]

        grad = np.zeros_like(flat)
        parts = self.split(grad)
        back = residual
        if len(heads.slope):
            parts["slope"][:] = pairs.by_annotator @ (residual * z).sum(axis=1)
            back = residual * (1 + heads.slope[annotator, None])
        by_item = pairs.by_item @ back
        parts["weight"][:] = by_item.T @ pairs.x
        parts["level"][:] = by_item.sum(axis=0)
        if self.units["bias"]:
            parts["bias"][:] = pairs.by_annotator @ residual
        if len(heads.own):
            told = np.concatenate([residual, np.zeros((1, residual.shape[1]))])
            for block in pairs.blocks:
                parts["own"][block.annotator] = told[block.place].swapaxes(1, 2) @ block.x
        if len(heads.factor):
            parts["embedding"][:] = pairs.by_annotator @ np.einsum("nc,nrc->nr", residual, seen)
            outer = (mine[:, :, None] * residual[:, None]).reshape(len(item), -1)
            parts["factor"][:] = ((pairs.by_item @ outer).T @ pairs.x).reshape(heads.factor.shape)
        for name, part in parts.items():
            part *= self.units[name]
        grad += flat
        return float(loss.sum()) + 0.5 * float(flat @ flat), grad
