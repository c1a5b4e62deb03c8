"""Hierarchical logistic regression: linear heads of annotators, shrunk towards a shared head.

With x the components of an item and m the metadata of an annotator, the logits of annotator k are

    z = W x                                                  shared
    own = U[k] x + Σ_r e[k, r] F[r] x + Σ_f m[k, f] G[f] x   of annotator k
    logits = level + bias[k] + m[k] B + ((1 + slope[k]) z + own) T

Every parameter but the level has a Gaussian prior of mean zero, whose standard deviation decides
how far annotators may deviate from what is shared; zero leaves the parameter out. T maps directions
of z to classes: for ordinal classes z is one number and T holds their ranks (logits of neighbours
differ by z); otherwise T are contrasts.

The fit is the posterior mode, found by L-BFGS. Parameters are divided by an estimate of their
posterior standard deviations, s / sqrt(1 + s² h) with the prior's s and the curvature h of the
likelihood at the class shares: components are uncorrelated, so the diagonal is most of the Hessian,
and a tenth of the steps suffices. Nothing is as large as items × annotators. What depends on the
item (z, F x) is computed once per item and gathered by annotation. Only U needs a product per
annotation, with the first 64 components: one per annotator with many labels; others with similar
numbers of labels form a block, which is one batched product.

L-BFGS stops before convergence, and factors have several modes: the result depends on rounding. So
sums are taken in an order that depends on the annotations, not on the codes of annotators.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import minimize

from ...base.arrays import Array, Floats, Integers
from .pairs import OWN, Pairs

_PIECE = 512  # pairs whose heads are gathered at a time
_SPREAD = 0.3  # typical variance of z, where it is not known, by that of its prior
_TINY = 1e-12
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

    def logits(self, x: Array, item: Integers, annotator: Integers) -> Floats:
        """Return logits of pairs: (pair, class)."""
        z = (x @ self.weight.T)[item] * (1 + self.slope[annotator, None])  # (pair, direction)
        for start in range(0, len(item), _PIECE) if len(self.own) else ():
            pairs = slice(start, start + _PIECE)
            rows = x[item[pairs], : self.own.shape[2], None]
            z[pairs] += np.matmul(self.own[annotator[pairs]], rows)[:, :, 0]
        if len(self.factor):
            z += np.einsum("nr,nrq->nq", self.embedding[annotator], self.factors(x)[item])
        return z @ self.basis + self.level + self.bias[annotator]

    def rounded(self, dtype: Any) -> ShrunkLinear:
        """Return the parameters in another precision."""
        return ShrunkLinear(**{name: part.astype(dtype) for name, part in vars(self).items()})

    def factors(self, x: Array) -> Floats:
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
    tol: float = 1e-6,
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
    initial = _reindex(start or {}, pairs.order)
    model = _Model(pairs.in_order, priors, initial)
    solution = minimize(
        model.objective,
        model.start(initial),
        jac=True,
        method="L-BFGS-B",
        options={"maxiter": max_iter, "maxcor": 10, "ftol": tol, "gtol": 1e-4},
    )
    parts, back = model.parts(solution.x), np.argsort(pairs.order)
    return Fit(ShrunkLinear(**_reindex(vars(model.heads(parts)), back)), _reindex(parts, back))


def _reindex(parts: dict[str, Floats], order: Integers) -> dict[str, Floats]:
    """Return parameters with annotators in another order; parameters left out stay so."""
    return {
        name: part[order] if name in _PER_ANNOTATOR and len(part) == len(order) else part
        for name, part in parts.items()
    }


class _Model:
    """The objective of a fit to data in order, over parameters in units of their posterior."""

    def __init__(
        self, pairs: Pairs, priors: Priors, start: dict[str, Floats] | None = None
    ) -> None:
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
        self.bounds = np.cumsum([int(np.prod(shape)) for shape in self.shapes.values()])
        spread = np.repeat(
            [unit for _, unit in parts.values()], np.diff(self.bounds, prepend=0)
        )  # prior standard deviations
        curvature = np.zeros(self.bounds[-1])
        curvatures = self._curvatures(priors, (start or {}).get("weight"))
        for name, part in self.split(curvature).items():
            if part.size:
                part[:] = curvatures[name]
        self.shrinkage = 1 / np.sqrt(1 + spread**2 * curvature)
        self.units = spread * self.shrinkage

    def _curvatures(self, priors: Priors, weight: Floats | None) -> dict[str, Floats]:
        """Return the diagonal of the Hessian of the likelihood, at the class shares."""
        pairs = self.pairs
        share = pairs.target_of_class.astype(np.float64) @ pairs.weight_or_one
        total = max(float(share.sum()), _TINY)
        share /= total
        n_labels = pairs.sum_by_annotator(pairs.weight_or_one).astype(np.float64)  # (annotator)
        binomial = share * (1 - share)  # (class)
        mean = pairs.basis @ share
        direction = (pairs.basis**2) @ share - mean**2  # (direction)
        squares = direction[:, None] * pairs.squares  # (direction, component)
        z = _SPREAD * len(direction) * priors.shared**2
        if weight is not None and weight.shape == squares.shape:
            z = float((weight**2 @ pairs.squares).sum()) / total
        squared = self.metadata**2 * n_labels[:, None]
        factor = _SPREAD * len(direction) * direction.mean() * priors.factor**2
        return {
            "weight": squares,
            "level": binomial * total,
            "bias": binomial * n_labels[:, None],
            "slope": direction.mean() * z * n_labels,
            "own": direction[:, None] * pairs.own_squares[:, None],
            "embedding": factor * n_labels[:, None],
            "factor": squares,
            "metadata_bias": binomial * squared.sum(axis=0)[:, None],
            "metadata_factor": squares * (squared.sum(axis=0) / total)[:, None, None],
        }

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
        parts, units = self.split(flat), self.split(self.units)
        for name, value in start.items():
            if value.size and value.shape == parts[name].shape:
                np.divide(value, units[name], out=parts[name], where=units[name] > 0)
        n, rank = parts["embedding"].shape
        if rank and not parts["embedding"].any():
            gradient = self.own_gradient(flat)
            rows = gradient.reshape(n, -1)
            axes = np.linalg.eigh(rows.T @ rows)[1][:, ::-1][:, :rank]
            scores, n_axes = rows @ axes, axes.shape[1]
            size = np.maximum(np.sqrt((scores**2).mean(axis=0)), 1e-12)
            # As large as their priors.
            shrinkage = self.split(self.shrinkage)
            parts["embedding"][:, :n_axes] = scores / size
            shape, d = (n_axes, *gradient.shape[1:]), gradient.shape[2]
            parts["factor"][:n_axes, :, :d] = axes.T.reshape(shape)
            for name in ("embedding", "factor"):
                parts[name] /= shrinkage[name]
        return flat

    def own_gradient(self, flat: Floats) -> Floats:
        """Return the descent direction of heads U: (annotator, direction, component)."""
        residual = self.forward(self.heads(self.parts(flat))).residual
        back = self.pairs.basis.astype(residual.dtype) @ residual
        shape = self.pairs.n_annotators, len(back), min(self.pairs.x.shape[1], OWN)
        return -self.sum_own(back, np.zeros(shape))

    def sum_own(self, back: Array, out: Floats) -> Floats:
        """Sum outer products of `back` and components by annotator, into `out`."""
        pairs = self.pairs
        for annotator, rows in pairs.slices:
            out[annotator] = back[:, rows] @ pairs.own_x[rows]
        padded = np.concatenate([back.T, np.zeros((1, len(back)), back.dtype)])
        for block in pairs.blocks:
            out[block.annotator] = padded[block.position].swapaxes(1, 2) @ block.x
        return out

    def parts(self, flat: Floats) -> dict[str, Floats]:
        """Return the parameters of a flat vector, in their own units."""
        return self.split(self.units * flat)

    def heads(self, parts: dict[str, Floats]) -> ShrunkLinear:
        """Return the heads with these parameters."""
        n = self.pairs.n_annotators
        bias = np.zeros((n, len(parts["level"])))
        bias += parts["bias"] if len(parts["bias"]) else 0.0
        return ShrunkLinear(
            basis=self.pairs.basis,
            weight=parts["weight"],
            level=parts["level"],
            bias=bias + self.metadata @ parts["metadata_bias"],
            slope=parts["slope"] if len(parts["slope"]) else np.zeros(n),
            own=parts["own"],
            embedding=np.concatenate([parts["embedding"], self.metadata], axis=1),
            factor=np.concatenate([parts["factor"], parts["metadata_factor"]]),
            metadata_bias=parts["metadata_bias"],
        )

    def forward(self, heads: ShrunkLinear) -> _Forward:
        """Return the loss, its gradient with respect to the logits, and what they depend on."""
        pairs = self.pairs
        single = heads.rounded(pairs.x.dtype)
        z = (single.weight @ pairs.x.T)[:, pairs.item]  # (direction, annotation)
        steepness = pairs.repeat(1 + single.slope)
        out = z * steepness
        if len(heads.own):
            for annotator, rows in pairs.slices:
                out[:, rows] += single.own[annotator] @ pairs.own_x[rows].T
            if pairs.blocks:
                own = np.zeros((len(pairs.item) + 1, len(out)), out.dtype)
                for block in pairs.blocks:
                    own[block.position] = block.x @ single.own[block.annotator].swapaxes(1, 2)
                out += own[:-1].T
        embedding = factors = out[:0]
        if len(heads.factor):
            rank, q, d = heads.factor.shape
            factors = (single.factor.reshape(-1, d) @ pairs.x.T)[:, pairs.item]
            factors = factors.reshape(rank, q, -1)  # (factor, direction, annotation)
            embedding = pairs.repeat(np.ascontiguousarray(single.embedding.T))
            for position, factor in zip(embedding, factors, strict=True):
                out += position * factor
        logits = single.basis.T @ out  # (class, annotation)
        logits += single.level[:, None]
        logits += pairs.repeat(np.ascontiguousarray(single.bias.T))
        logits -= logits.max(axis=0)
        score = (pairs.target_of_class * logits).sum(axis=0)
        residual = np.exp(logits, out=logits)
        total = residual.sum(axis=0)
        residual /= total
        residual -= pairs.target_of_class
        loss = np.log(total) - score
        if pairs.weight is not None:
            loss *= pairs.weight_or_one
            residual *= pairs.weight_or_one
        return _Forward(
            loss=float(loss.sum(dtype=np.float64)),
            residual=residual,
            z=z,
            steepness=steepness,
            embedding=embedding,
            factors=factors,
        )

    def objective(self, flat: Floats) -> tuple[float, Floats]:
        """Return the negative log posterior, up to a constant, and its gradient."""
        pairs = self.pairs
        heads = self.heads(self.parts(flat))
        loss, residual, z, steepness, embedding, factors = self.forward(heads)
        grad = np.zeros_like(flat)
        parts = self.split(grad)
        by_annotator = pairs.sum_by_annotator(residual).T  # (annotator, class)
        parts["level"][:] = by_annotator.sum(axis=0, dtype=np.float64)
        if len(parts["bias"]):
            parts["bias"][:] = by_annotator
        parts["metadata_bias"][:] = self.metadata.T @ by_annotator
        back = pairs.basis.astype(residual.dtype) @ residual  # (direction, annotation)
        if len(parts["slope"]):
            parts["slope"][:] = pairs.sum_by_annotator((back * z).sum(axis=0))
        parts["weight"][:] = self._outer(back * steepness)
        if len(heads.own):
            self.sum_own(back, parts["own"])
        if len(heads.factor):
            rank = parts["embedding"].shape[1]
            by_factor = np.stack([(back * factor).sum(axis=0) for factor in factors])
            parts["embedding"][:] = pairs.sum_by_annotator(by_factor[:rank]).T
            outer = (embedding[:, None] * back).reshape(-1, back.shape[1])
            gradients = self._outer(outer).reshape(heads.factor.shape)
            parts["factor"][:], parts["metadata_factor"][:] = gradients[:rank], gradients[rank:]
        prior = self.shrinkage * flat
        grad *= self.units
        grad += self.shrinkage * prior
        return loss + 0.5 * float(prior @ prior), grad

    def _outer(self, values: Array) -> Array:
        """Return sums over annotations of values times components: (row of values, component)."""
        return (self.pairs.by_item @ values.T).T @ self.pairs.x


class _Forward(NamedTuple):
    """The loss, and what its gradient needs."""

    loss: float
    residual: Array  # (class, annotation): gradient of the loss with respect to the logits
    z: Array  # (direction, annotation)
    steepness: Array  # (annotation): 1 + slope
    embedding: Array  # (factor, annotation)
    factors: Array  # (factor, direction, annotation)
