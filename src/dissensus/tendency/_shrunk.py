"""Hierarchical logistic regression: linear heads of annotators, shrunk towards a shared head.

With x the components of an item and m the metadata of an annotator, the logits of annotator k are

    z = W x                                                  shared
    own = U[k] x + Σ_r e[k, r] F[r] x + Σ_f m[k, f] G[f] x   of annotator k
    logits = level + bias[k] + m[k] B + ((1 + slope[k]) z + own) T

Every parameter but the level has a Gaussian prior of mean zero, whose standard deviation decides
how far annotators may deviate from what is shared; zero leaves the parameter out. T maps directions
of z to classes: for ordinal classes z is one number and T holds their ranks (logits of neighbours
differ by z); otherwise T are contrasts.

The fit is the posterior mode, found by L-BFGS on parameters divided by their prior standard
deviations. Nothing is as large as items × annotators. What depends on the item (z, F x) is computed
once per item and gathered by annotation; gradients are summed per annotator by a sparse product.
Only U needs a product per annotation, with the first 64 components: annotators with similar numbers
of labels form a block, which is one batched matrix product.

L-BFGS stops before convergence, and factors have several modes: the result depends on rounding. So
sums are taken in an order that depends on the annotations, not on the codes of annotators.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from scipy.optimize import minimize
from scipy.special import log_softmax

from .._relation import Floats, Integers
from ._pairs import OWN, Pairs

_PIECE = 512  # pairs whose heads are gathered at a time
_PER_ANNOTATOR = ("bias", "slope", "own", "embedding")  # parameters with a row per annotator


class Priors(NamedTuple):
    """Prior standard deviations; zero leaves a parameter out."""

    shared: float  # of an entry of W
    bias: float = 0.0
    slope: float = 0.0
    own: float = 0.0  # of an entry of U
    factor: float = 0.0  # of an entry of F; that of embeddings e is one
    rank: int = 0  # number of factors
    metadata: float = 0.0  # of an entry of B; of G it is this times `shared`
    level: float = 10.0  # nearly flat


@dataclass(frozen=True, eq=False)
class ShrunkLinear:
    """Fitted parameters; those left out have no entries."""

    basis: Floats  # (direction, class)
    weight: Floats  # (direction, component)
    level: Floats  # (class)
    bias: Floats  # (annotator, class), including metadata
    slope: Floats  # (annotator)
    own: Floats  # (annotator or 0, direction, component): the first components
    embedding: Floats  # (annotator, factor), followed by metadata
    factor: Floats  # (factor, direction, component)
    metadata_bias: Floats  # (feature of annotators, class)

    def logits(self, x: Floats, item: Integers, annotator: Integers) -> Floats:
        """Return logits of pairs: (pair, class)."""
        z = (x @ self.weight.T)[item] * (1 + self.slope[annotator, None])  # (pair, direction)
        for start in range(0, len(item), _PIECE) if len(self.own) else ():
            pairs = slice(start, start + _PIECE)
            rows = x[item[pairs], : self.own.shape[2], None]
            z[pairs] += np.matmul(self.own[annotator[pairs]], rows)[:, :, 0]
        if len(self.factor):
            z += np.einsum("nr,nrq->nq", self.embedding[annotator], self.factors(x)[item])
        return z @ self.basis + self.level + self.bias[annotator]

    def factors(self, x: Floats) -> Floats:
        """Return F x: (item, factor, direction)."""
        n_factors, n_directions, d = self.factor.shape
        return (x @ self.factor.reshape(-1, d).T).reshape(len(x), n_factors, n_directions)

    def with_annotator(
        self, bias: Floats, slope: float, own: Floats, embedding: Floats
    ) -> ShrunkLinear:
        """Return the same heads and those of one more annotator."""
        return replace(
            self,
            bias=np.concatenate([self.bias, bias[None]]),
            slope=np.append(self.slope, slope),
            own=np.concatenate([self.own, own[None]]) if len(self.own) else self.own,
            embedding=np.concatenate([self.embedding, embedding[None]]),
        )


class Fit(NamedTuple):
    """Heads, and the parameters to start another fit from."""

    heads: ShrunkLinear
    parts: dict[str, Floats]


def fit_shrunk(
    pairs: Pairs,
    priors: Priors,
    *,
    start: dict[str, Floats] | None = None,
    tol: float = 1e-7,
    max_iter: int = 150,
) -> Fit:
    """Return the heads at the posterior mode.

    Parameters
    ----------
    pairs
        The data.
    priors
        Prior standard deviations.
    start
        Parameters to start from; those of other shapes are ignored.
    tol
        Stop when a step improves the objective by less than this, relatively.
    max_iter
        Maximal number of steps: priors can be compared before convergence.
    """
    model = _Model(pairs.in_order, priors)
    solution = minimize(
        model.objective,
        model.start(_reindex(start or {}, pairs.order)),
        jac=True,
        method="L-BFGS-B",
        options={"maxiter": max_iter, "maxcor": 10, "ftol": tol, "gtol": 1e-4},
    )
    parts = _reindex(model.parts(solution.x), np.argsort(pairs.order))
    return Fit(_Model(pairs, priors).heads(parts), parts)


def _reindex(parts: dict[str, Floats], order: Integers) -> dict[str, Floats]:
    """Return parameters with annotators in another order; parameters left out stay so."""
    return {
        name: part[order] if name in _PER_ANNOTATOR and len(part) == len(order) else part
        for name, part in parts.items()
    }


class _Model:
    """The objective of a fit, over parameters in units of their prior standard deviations."""

    def __init__(self, pairs: Pairs, priors: Priors) -> None:
        self.pairs = pairs
        n, (q, c), d = pairs.n_annotators, pairs.basis.shape, pairs.x.shape[1]
        rank = priors.rank if priors.factor else 0
        metadata = pairs.metadata.shape[1] if priors.metadata else 0
        self.metadata = pairs.metadata[:, :metadata]
        parts: dict[str, tuple[tuple[int, ...], float]] = {
            "weight": ((q, d), priors.shared),
            "level": ((c,), priors.level),
            "bias": ((n, c) if priors.bias else (0, c), priors.bias),
            "slope": ((n if priors.slope else 0,), priors.slope),
            "own": ((n if priors.own else 0, q, min(d, OWN)), priors.own),
            "embedding": ((n, rank), 1.0),
            "factor": ((rank, q, d), priors.factor),
            "metadata_bias": ((metadata, c), priors.metadata),
            "metadata_factor": ((metadata, q, d), priors.metadata * priors.shared),
        }
        self.shapes = {name: shape for name, (shape, _) in parts.items()}
        self.units = {name: unit for name, (_, unit) in parts.items()}
        self.bounds = np.cumsum([int(np.prod(shape)) for shape in self.shapes.values()])

    def split(self, flat: Floats) -> dict[str, Floats]:
        """Return the parts of a flat vector, without copying."""
        parts = np.split(flat, self.bounds[:-1])
        shapes = zip(self.shapes.items(), parts, strict=True)
        return {name: part.reshape(shape) for (name, shape), part in shapes}

    def start(self, start: dict[str, Floats]) -> Floats:
        """Return the starting point.

        Embeddings and factors cannot both start at zero, where their gradients vanish: they start
        at the first principal axes of the gradient with respect to heads of annotators.
        """
        flat = np.zeros(self.bounds[-1])
        parts = self.split(flat)
        for name, value in start.items():
            if value.size and value.shape == parts[name].shape and self.units[name]:
                parts[name][:] = value / self.units[name]
        n, rank = parts["embedding"].shape
        if rank and not parts["embedding"].any():
            gradient = self.own_gradient(self.heads(self.parts(flat)))
            rows = gradient.reshape(n, -1)
            axes = np.linalg.eigh(rows.T @ rows)[1][:, ::-1][:, :rank]
            scores, n_axes = rows @ axes, axes.shape[1]
            size = np.maximum(np.sqrt((scores**2).mean(axis=0)), 1e-12)
            parts["embedding"][:, :n_axes] = scores / size
            shape = n_axes, *gradient.shape[1:]
            parts["factor"][:n_axes, :, : gradient.shape[2]] = axes.T.reshape(shape)
        return flat

    def own_gradient(self, heads: ShrunkLinear) -> Floats:
        """Return the descent direction of heads U: (annotator, direction, component)."""
        pairs = self.pairs
        log_probability = log_softmax(heads.logits(pairs.x, pairs.item, pairs.annotator), axis=1)
        back = (pairs.target - np.exp(log_probability)) @ heads.basis.T
        if pairs.weight is not None:
            back = back * pairs.weight[:, None]
        out = np.zeros((pairs.n_annotators, back.shape[1], min(pairs.x.shape[1], OWN)))
        return self.sum_blocks(back, out)

    def sum_blocks(self, back: Floats, out: Floats) -> Floats:
        """Sum outer products of `back` and components by annotator, into `out`."""
        padded = np.concatenate([back, np.zeros((1, back.shape[1]))])
        for block in self.pairs.blocks:
            out[block.annotator] = padded[block.position].swapaxes(1, 2) @ block.x
        return out

    def parts(self, flat: Floats) -> dict[str, Floats]:
        """Return the parameters of a flat vector, in their own units."""
        return {name: self.units[name] * part for name, part in self.split(flat).items()}

    def heads(self, parts: dict[str, Floats]) -> ShrunkLinear:
        """Return the heads with these parameters."""
        n = self.pairs.n_annotators
        bias = np.zeros((n, len(parts["level"])))
        bias += parts["bias"] if len(parts["bias"]) else 0.0
        return ShrunkLinear(
            self.pairs.basis,
            parts["weight"],
            parts["level"],
            bias + self.metadata @ parts["metadata_bias"],
            parts["slope"] if len(parts["slope"]) else np.zeros(n),
            parts["own"],
            np.concatenate([parts["embedding"], self.metadata], axis=1),
            np.concatenate([parts["factor"], parts["metadata_factor"]]),
            parts["metadata_bias"],
        )

    def objective(self, flat: Floats) -> tuple[float, Floats]:
        """Return the negative log posterior, up to a constant, and its gradient."""
        pairs = self.pairs
        heads = self.heads(self.parts(flat))
        item, annotator = pairs.item, pairs.annotator
        z = (pairs.x @ heads.weight.T)[item]  # (annotation, direction)
        out = z * (1 + heads.slope[annotator, None])
        if len(heads.own):
            own = np.empty((len(item) + 1, out.shape[1]))
            for block in pairs.blocks:
                own[block.position] = block.x @ heads.own[block.annotator].swapaxes(1, 2)
            out += own[:-1]
        if len(heads.factor):
            factors = heads.factors(pairs.x)[item]
            out += np.einsum("nr,nrq->nq", heads.embedding[annotator], factors)
        logits = out @ heads.basis + heads.level + heads.bias[annotator]
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
        parts["metadata_bias"][:] = self.metadata.T @ by_annotator
        back = residual @ heads.basis.T  # (annotation, direction)
        if len(parts["slope"]):
            parts["slope"][:] = pairs.by_annotator @ (back * z).sum(axis=1)
        by_item = pairs.by_item @ (back * (1 + heads.slope[annotator, None]))
        parts["weight"][:] = by_item.T @ pairs.x
        if len(heads.own):
            self.sum_blocks(back, parts["own"])
        if len(heads.factor):
            rank = parts["embedding"].shape[1]
            by_factor = np.einsum("nq,nrq->nr", back, factors[:, :rank])
            parts["embedding"][:] = pairs.by_annotator @ by_factor
            outer = (heads.embedding[annotator][:, :, None] * back[:, None]).reshape(len(item), -1)
            both = ((pairs.by_item @ outer).T @ pairs.x).reshape(heads.factor.shape)
            parts["factor"][:], parts["metadata_factor"][:] = both[:rank], both[rank:]
        for name, part in parts.items():
            part *= self.units[name]
        grad += flat
        return float(loss.sum()) + 0.5 * float(flat @ flat), grad
