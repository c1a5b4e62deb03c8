"""Principal components of item features, linear or with an RBF kernel.

Features are either standardized or, for embeddings meant to be compared by cosine, scaled to length
one (`cosine`). Kernel components are those of

    exp(−gamma · ‖x − y‖² / mean ‖x − y‖²)

on at most `_ANCHORS` of the items; a ridge on a linear head then is kernel regression. Components
keep their natural variances, so a ridge shrinks directions that vary little. Their total variance
is one, so the same prior standard deviations suit all data. All of it is computed in 32 bits.

    B. Schölkopf, A. Smola, K.-R. Müller. Nonlinear component analysis as a kernel eigenvalue
    problem. Neural Computation 10(5), 1998. doi:10.1162/089976698300017467
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import torch
from scipy.linalg import eigh

from ...errors import DataError
from ..nn.features import Features, Vectors
from ..nn.standardize import standardization

_ANCHORS = 1000
_PIECE = 4096  # items compared with the anchors at a time
_TINY = 1e-6  # smallest variance of a component, relative to the first: 32 bits carry no less


class Kernel(NamedTuple):
    """What components are taken of."""

    unit_length: bool  # whether vectors are scaled to length one
    gamma: float  # of the RBF kernel; 0: linear


KERNELS = {"linear": Kernel(False, 0.0), "rbf": Kernel(False, 1.0), "cosine": Kernel(True, 1.0)}


@dataclass(frozen=True, eq=False)
class Components:
    """A map from features to components."""

    mean: Vectors  # (feature): zero for unit length
    scale: Vectors  # (feature): zero for unit length
    gamma: float
    mean_square: float  # mean squared distance of anchors
    anchors: Vectors  # (anchor, feature), scaled; (0, feature) if linear
    mean_kernel: Vectors  # (anchor): mean kernel with every anchor
    basis: Vectors  # (anchor or feature, component)

    def of(self, features: Features) -> Vectors:
        """Return the components of items: (item, component)."""
        check_width(features, len(self.mean))
        out = np.empty((len(features), self.basis.shape[1]), np.float32)
        for start in range(0, len(features), _PIECE):
            x = _scaled(features.vectors[start : start + _PIECE], self.mean, self.scale)
            if self.gamma:
                x = _kernel(x, self.anchors, self.gamma / self.mean_square)
                x -= x.mean(axis=1, keepdims=True)
                x += self.mean_kernel.mean() - self.mean_kernel
            out[start : start + _PIECE] = x @ self.basis
        return out

    def arrays(self) -> dict[str, Any]:
        """Return every field as an array."""
        return {name: np.atleast_1d(value) for name, value in vars(self).items()}

    @classmethod
    def from_arrays(cls, arrays: dict[str, Any]) -> Components:
        """Return the map with these fields."""
        numbers = {name: arrays[name].item() for name in ("gamma", "mean_square")}
        return cls(**(arrays | numbers))


def fit_components(
    vectors: Vectors, most: int, kernel: Kernel, seed: int = 0
) -> tuple[Components, Vectors]:
    """Return a map to at most `most` components of vectors (item, feature), and the components."""
    gamma = float(kernel.gamma)
    mean, scale = np.zeros((2, vectors.shape[1]), np.float32)
    if not kernel.unit_length:
        wide = torch.from_numpy(vectors.astype(np.float64))
        mean, scale = (each.numpy().astype(np.float32) for each in standardization(wide))
    x = _scaled(vectors, mean, scale)
    anchors, mean_kernel, mean_square = x[:0], np.zeros(0, np.float32), 1.0
    if gamma:
        anchors = x
        if len(x) > _ANCHORS:
            chosen = np.random.default_rng([seed, 0xA2C4]).permutation(len(x))[:_ANCHORS]
            anchors = x[np.sort(chosen)]
        mean_square = float(_squares(anchors, anchors).mean()) or 1.0
        gram = _kernel(anchors, anchors, gamma / mean_square)
        mean_kernel = gram.mean(axis=0)
        gram += mean_kernel.mean() - mean_kernel - mean_kernel[:, None]
    else:
        gram = (x - x.mean(axis=0)).T @ x
    last = len(gram) - 1
    found = eigh(gram, subset_by_index=(max(last + 1 - most, 0), last), driver="evr")
    value, basis = (each.astype(np.float32) for each in found)
    kept = np.flatnonzero(value > _TINY * max(value[-1], _TINY))[::-1]
    basis = np.ascontiguousarray(basis[:, kept])
    if gamma:
        basis /= np.sqrt(value[kept])
    components = Components(mean, scale, gamma, mean_square, anchors, mean_kernel, basis)
    x = components.of(Features(vectors))
    size = np.float32(np.sqrt(x.var(axis=0, dtype=np.float64).sum()) or 1.0)
    return replace(components, basis=basis / size), x / size


def check_width(features: Features, width: int) -> None:
    """Raise if vectors have another width than those the model was fitted to."""
    if len(features) and features.vectors.shape[1] != width:
        raise DataError(
            f"vectors of {features.vectors.shape[1]} features, but the model was fitted to {width}"
        )


def _scaled(vectors: Vectors, mean: Vectors, scale: Vectors) -> Vectors:
    """Return standardized features or, if `scale` is zero, vectors of length one."""
    if scale.any():
        return (vectors - mean) * scale
    return vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), _TINY)


def _squares(x: Vectors, y: Vectors) -> Vectors:
    """Return squared distances: (row of x, row of y)."""
    out = x @ y.T
    out *= -2
    out += (x**2).sum(axis=1)[:, None]
    out += (y**2).sum(axis=1)
    return np.maximum(out, 0, out=out)


def _kernel(x: Vectors, y: Vectors, rate: float) -> Vectors:
    """Return exp(−rate · squared distance): (row of x, row of y)."""
    out = _squares(x, y)
    out *= np.float32(-rate)
    return np.exp(out, out=out)
