"""Linear heads of annotators, all of them drawn towards one that they share.

With x the components of an item and m what is known of an annotator, the logits of annotator k are

    z = W x                                                  what all share
    own = U[k] x + Σ_r e[k, r] F[r] x + Σ_f m[k, f] G[f] x   what is k's own
    logits = level + bias[k] + m[k] B + ((1 + slope[k]) z + own) T

and every part but the level has a Gaussian prior of mean zero, whose spread decides how far
annotators may go from what all share; a spread of zero leaves the part out. T says what a direction
of z does to the classes: where they stand in an order, z is one number, and T their places in it
(logits of neighbours then differ by z); otherwise T are contrasts.

The fit is the mode of the posterior, found by L-BFGS on parameters divided by their spreads, which
makes all priors alike. Nothing here is as large as items × annotators. What items have (z, F x) is
made once per item and gathered by the annotations; what annotators get back is a sparse product.
Only U has to meet every annotation, with the first 64 components: annotators with about as many
labels are laid in one block, so that a block is one product of matrices, however many it holds.

L-BFGS ends before all is still, and factors have several modes: where it ends rests on roundings.
So sums are taken in an order that follows from what annotators said, not from their places.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse
from scipy.linalg import helmert
from scipy.optimize import minimize
from scipy.special import log_softmax

from .._relation import Floats, Integers
from ..annotations import Annotations

__all__ = ["Fit", "Pairs", "ShrunkLinear", "Spreads", "class_basis", "fit_shrunk"]

_PIECE = 512  # pairs whose own heads are gathered together
_OF_ANNOTATORS = ("bias", "slope", "own", "embedding")  # parts with a row for every annotator
OWN = 64  # components that heads of annotators' own look at: the first ones


class Spreads(NamedTuple):
    """Standard deviations of the priors; zero leaves a part out."""

    shared: float  # of an entry of W
    bias: float = 0.0
    slope: float = 0.0
    own: float = 0.0  # of an entry of U
    factor: float = 0.0  # of an entry of F; embeddings e have spread one
    rank: int = 0  # how many factors
    known: float = 0.0  # of an entry of B; of G it is this times `shared`
    level: float = 10.0  # hardly holds it


@dataclass(frozen=True, eq=False)
class ShrunkLinear:
    """What is learned of all and of each; parts that are left out have no entries."""

    basis: Floats  # (direction, class)
    weight: Floats  # (direction, component)
    level: Floats  # (class)
    bias: Floats  # (annotator, class), with what is known of them
    slope: Floats  # (annotator)
    own: Floats  # (annotator or 0, direction, component): of the first components
    embedding: Floats  # (annotator, factor), with what is known of them
    factor: Floats  # (factor, direction, component)
    known_bias: Floats  # (feature of annotators, class)

    @property
    def n_known(self) -> int:
        """How many features of annotators were learned from."""
        return len(self.known_bias)

    def logits(self, x: Floats, item: Integers, annotator: Integers) -> Floats:
        """Return logits of pairs: (pair, class)."""
        told = (x @ self.weight.T)[item] * (1 + self.slope[annotator, None])  # (pair, direction)
        if len(self.own):
            for at in range(0, len(item), _PIECE):
                here = slice(at, at + _PIECE)
                rows = x[item[here], : self.own.shape[2], None]
                told[here] += np.matmul(self.own[annotator[here]], rows)[:, :, 0]
        if len(self.factor):
            n_factors, n_directions, d = self.factor.shape
            seen = (x @ self.factor.reshape(-1, d).T).reshape(-1, n_factors, n_directions)
            told += np.einsum("nr,nrq->nq", self.embedding[annotator], seen[item])
        return told @ self.basis + self.level + self.bias[annotator]

    def arrays(self) -> dict[str, Any]:
        """Return every part by name."""
        return {one.name: getattr(self, one.name) for one in fields(self)}

    def joined(self, bias: Floats, slope: float, own: Floats, embedding: Floats) -> ShrunkLinear:
        """Return the same with one annotator more."""
        return replace(
            self,
            bias=np.concatenate([self.bias, bias[None]]),
            slope=np.append(self.slope, slope),
            own=np.concatenate([self.own, own[None]]) if len(self.own) else self.own,
            embedding=np.concatenate([self.embedding, embedding[None]]),
        )


class _Block(NamedTuple):
    """Annotators with about as many labels, side by side."""

    annotator: Integers  # (annotator of the block)
    position: (
        Integers  # (annotator of the block, label): annotations, or their number where none is
    )
    x: Floats  # (annotator of the block, label, component): zero where none is


@dataclass(frozen=True, eq=False)
class Pairs:
    """Annotations as the fit sees them."""

    x: Floats  # (item, component)
    item: Integers  # (annotation)
    annotator: Integers
    target: Floats  # (annotation, class): what was said, or a belief about it
    known: Floats  # (annotator, feature): what is known of annotators
    basis: Floats  # (direction, class)
    weight: Floats | None = None  # (annotation): how much each counts

    @classmethod
    def of(
        cls,
        x: Floats,
        annotations: Annotations,
        *,
        known: Floats | None = None,
        ordinal: bool = False,
        weight: Floats | None = None,
    ) -> Pairs:
        """Return annotations on items with these components."""
        return cls(
            x,
            annotations.item.astype(np.int64),
            annotations.annotator.astype(np.int64),
            np.eye(annotations.n_classes)[annotations.label],
            np.zeros((annotations.n_annotators, 0)) if known is None else known,
            class_basis(annotations.n_classes, ordinal),
            weight,
        )

    @property
    def n_annotators(self) -> int:
        """How many annotators there are."""
        return len(self.known)

    @cached_property
    def order(self) -> Integers:
        """The annotators, sorted by what they said and what is known of them."""
        rows = np.argsort(self.annotator, kind="stable")
        ends = np.cumsum(np.bincount(self.annotator, minlength=self.n_annotators))[:-1]
        columns = [self.item, self.target, *([] if self.weight is None else [self.weight])]
        split = [np.split(column[rows], ends) for column in columns]
        keys = [
            tuple(part.tobytes() for part in key) for key in zip(*split, self.known, strict=True)
        ]
        return np.array(sorted(range(self.n_annotators), key=keys.__getitem__), dtype=np.int64)

    @cached_property
    def in_order(self) -> Pairs:
        """The same with annotators, and annotations of an item, in that order."""
        annotator = np.argsort(self.order)[self.annotator]
        rows = np.lexsort((annotator, self.item))
        return replace(
            self,
            item=self.item[rows],
            annotator=annotator[rows],
            target=self.target[rows],
            known=self.known[self.order],
            weight=None if self.weight is None else self.weight[rows],
        )

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
        first_few = self.x[:, :OWN]
        padded = np.concatenate([first_few[self.item], np.zeros((1, first_few.shape[1]))])
        found = []
        for each in np.unique(size[count > 0]):
            who = np.flatnonzero((size == each) & (count > 0))
            label = np.arange(count[who].max())
            position = order[np.minimum(first[who, None] + label, len(order) - 1)]
            position = np.where(label < count[who, None], position, len(order))
            found.append(_Block(who, position, padded[position]))
        return found


def class_basis(n_classes: int, ordinal: bool) -> Floats:
    """Return what directions do to classes: (direction, class).

    Without an order they are contrasts of length one: what all classes have in common changes no
    chance, and its prior would keep it at zero.

    >>> class_basis(3, ordinal=True).tolist()
    [[-1.0, 0.0, 1.0]]
    >>> class_basis(2, ordinal=False).round(2).tolist()
    [[0.71, -0.71]]
    """
    if not ordinal:
        return helmert(n_classes) if n_classes > 1 else np.zeros((1, 1))
    position = np.arange(n_classes, dtype=np.float64)
    return (position - position.mean())[None]


def _adder(code: Integers, size: int) -> Any:
    here = np.arange(len(code))
    return sparse.csr_array((np.ones(len(code)), (code, here)), shape=(size, len(code)))


class Fit(NamedTuple):
    """Heads, and the parameters that another search may begin from."""

    heads: ShrunkLinear
    parts: dict[str, Floats]


def fit_shrunk(
    pairs: Pairs,
    spreads: Spreads,
    *,
    start: dict[str, Floats] | None = None,
    tol: float = 1e-7,
    max_iter: int = 150,
) -> Fit:
    """Return the heads of highest posterior.

    Parameters
    ----------
    pairs
        What was said.
    spreads
        How far annotators may go.
    start
        Parameters to begin from; those of other shapes are left.
    tol
        Ends when a step gains less than this, relative to the objective.
    max_iter
        Ends after so many steps in any case: strengths can be compared before all is still.
    """
    model = _Model(pairs.in_order, spreads)
    found = minimize(
        model.objective,
        model.begin(_seated(start or {}, pairs.order)),
        jac=True,
        method="L-BFGS-B",
        options={"maxiter": max_iter, "maxcor": 10, "ftol": tol, "gtol": 1e-4},
    )
    parts = _seated(model.parts(found.x), np.argsort(pairs.order))
    return Fit(_Model(pairs, spreads).heads(parts), parts)


def _seated(parts: dict[str, Floats], seats: Integers) -> dict[str, Floats]:
    """Return parameters with annotators in other places; parts that are left out stay so."""
    return {
        name: part[seats] if name in _OF_ANNOTATORS and len(part) == len(seats) else part
        for name, part in parts.items()
    }


class _Model:
    """The objective of a fit, over parameters in units of their spreads."""

    def __init__(self, pairs: Pairs, spreads: Spreads) -> None:
        self.pairs = pairs
        n, (q, c), d = pairs.n_annotators, pairs.basis.shape, pairs.x.shape[1]
        rank = spreads.rank if spreads.factor else 0
        known = pairs.known.shape[1] if spreads.known else 0
        self.known = pairs.known[:, :known]
        parts: dict[str, tuple[tuple[int, ...], float]] = {
            "weight": ((q, d), spreads.shared),
            "level": ((c,), spreads.level),
            "bias": ((n, c) if spreads.bias else (0, c), spreads.bias),
            "slope": ((n if spreads.slope else 0,), spreads.slope),
            "own": ((n if spreads.own else 0, q, min(d, OWN)), spreads.own),
            "embedding": ((n, rank), 1.0),
            "factor": ((rank, q, d), spreads.factor),
            "known_bias": ((known, c), spreads.known),
            "known_factor": ((known, q, d), spreads.known * spreads.shared),
        }
        self.shapes = {name: shape for name, (shape, _) in parts.items()}
        self.units = {name: unit for name, (_, unit) in parts.items()}
        self.bounds = np.cumsum([int(np.prod(shape)) for shape in self.shapes.values()])

    def split(self, flat: Floats) -> dict[str, Floats]:
        """Return the parts of a flat vector, as views of it."""
        parts = np.split(flat, self.bounds[:-1])
        shapes = zip(self.shapes.items(), parts, strict=True)
        return {name: part.reshape(shape) for (name, shape), part in shapes}

    def begin(self, start: dict[str, Floats]) -> Floats:
        """Return where the search begins.

        Embeddings and factors would never leave zero, each needing the other. They begin at the
        first principal axes of what would pull heads of annotators' own.
        """
        flat = np.zeros(self.bounds[-1])
        parts = self.split(flat)
        for name, value in start.items():
            if value.size and value.shape == parts[name].shape and self.units[name]:
                parts[name][:] = value / self.units[name]
        n, rank = parts["embedding"].shape
        if rank and not parts["embedding"].any():
            pull = self.pull(self.heads(self.parts(flat)))  # (annotator, direction, component)
            flat_pull = pull.reshape(n, -1)
            axes = np.linalg.eigh(flat_pull.T @ flat_pull)[1][:, ::-1][:, :rank]
            position, found = flat_pull @ axes, axes.shape[1]
            size = np.maximum(np.sqrt((position**2).mean(axis=0)), 1e-12)
            parts["embedding"][:, :found] = position / size
            parts["factor"][:found, :, : pull.shape[2]] = axes.T.reshape(found, *pull.shape[1:])
        return flat

    def pull(self, heads: ShrunkLinear) -> Floats:
        """Return where heads of their own would go at first: (annotator, direction, component)."""
        pairs = self.pairs
        log_probability = log_softmax(heads.logits(pairs.x, pairs.item, pairs.annotator), axis=1)
        back = (pairs.target - np.exp(log_probability)) @ heads.basis.T
        if pairs.weight is not None:
            back = back * pairs.weight[:, None]
        out = np.zeros((pairs.n_annotators, back.shape[1], min(pairs.x.shape[1], OWN)))
        return self.by_blocks(back, out)

    def by_blocks(self, back: Floats, out: Floats) -> Floats:
        """Add up annotations' numbers times their components, by annotator, into `out`."""
        padded = np.concatenate([back, np.zeros((1, back.shape[1]))])
        for block in self.pairs.blocks:
            out[block.annotator] = padded[block.position].swapaxes(1, 2) @ block.x
        return out

    def parts(self, flat: Floats) -> dict[str, Floats]:
        """Return the parameters that a flat vector stands for, in their own units."""
        return {name: self.units[name] * part for name, part in self.split(flat).items()}

    def heads(self, parts: dict[str, Floats]) -> ShrunkLinear:
        """Return the heads that parameters make."""
        n = self.pairs.n_annotators
        bias = np.zeros((n, len(parts["level"])))
        bias += parts["bias"] if len(parts["bias"]) else 0.0
        return ShrunkLinear(
            self.pairs.basis,
            parts["weight"],
            parts["level"],
            bias + self.known @ parts["known_bias"],
            parts["slope"] if len(parts["slope"]) else np.zeros(n),
            parts["own"],
            np.concatenate([parts["embedding"], self.known], axis=1),
            np.concatenate([parts["factor"], parts["known_factor"]]),
            parts["known_bias"],
        )

    def objective(self, flat: Floats) -> tuple[float, Floats]:
        """Return minus the log posterior, but for a constant, and its gradient."""
        pairs = self.pairs
        heads = self.heads(self.parts(flat))
        item, annotator = pairs.item, pairs.annotator
        z = (pairs.x @ heads.weight.T)[item]  # (annotation, direction)
        told = z * (1 + heads.slope[annotator, None])
        if len(heads.own):
            mine = np.empty((len(item) + 1, told.shape[1]))
            for block in pairs.blocks:
                mine[block.position] = block.x @ heads.own[block.annotator].swapaxes(1, 2)
            told += mine[:-1]
        if len(heads.factor):
            n_factors, n_directions, d = heads.factor.shape
            seen = pairs.x @ heads.factor.reshape(-1, d).T
            seen = seen.reshape(-1, n_factors, n_directions)[item]
            told += np.einsum("nr,nrq->nq", heads.embedding[annotator], seen)
        logits = told @ heads.basis + heads.level + heads.bias[annotator]
        log_probability = log_softmax(logits, axis=1)
        loss, residual = -pairs.target * log_probability, np.exp(log_probability) - pairs.target
        if pairs.weight is not None:
            loss, residual = loss * pairs.weight[:, None], residual * pairs.weight[:, None]

        grad = np.zeros_like(flat)
        parts = self.split(grad)
        parts["level"][:] = residual.sum(axis=0)
        by_annotator = pairs.by_annotator @ residual
        if len(parts["bias"]):
            parts["bias"][:] = by_annotator
        parts["known_bias"][:] = self.known.T @ by_annotator
        back = residual @ heads.basis.T  # (annotation, direction)
        if len(parts["slope"]):
            parts["slope"][:] = pairs.by_annotator @ (back * z).sum(axis=1)
        by_item = pairs.by_item @ (back * (1 + heads.slope[annotator, None]))
        parts["weight"][:] = by_item.T @ pairs.x
        if len(heads.own):
            self.by_blocks(back, parts["own"])
        if len(heads.factor):
            rank = parts["embedding"].shape[1]
            met = np.einsum("nq,nrq->nr", back, seen[:, :rank])
            parts["embedding"][:] = pairs.by_annotator @ met
            outer = (heads.embedding[annotator][:, :, None] * back[:, None]).reshape(len(item), -1)
            both = ((pairs.by_item @ outer).T @ pairs.x).reshape(heads.factor.shape)
            parts["factor"][:], parts["known_factor"][:] = both[:rank], both[rank:]
        for name, part in parts.items():
            part *= self.units[name]
        grad += flat
        return float(loss.sum()) + 0.5 * float(flat @ flat), grad
