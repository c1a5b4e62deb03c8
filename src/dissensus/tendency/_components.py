"""Principal components of item features, linear or with an RBF kernel.

Features are either standardized or, for embeddings meant to be compared by cosine, scaled to length
one (`cosine`). Kernel components are those of

    exp(−gamma · ‖x − y‖² / mean ‖x − y‖²)

on at most `_ANCHORS` of the items; a ridge on a linear head then is kernel regression. Components
keep their natural variances, so a ridge shrinks directions that vary little. Their total variance
is one, so the same prior standard deviations suit all data.

    B. Schölkopf, A. Smola, K.-R. Müller. Nonlinear component analysis as a kernel eigenvalue
    problem. Neural Computation 10(5), 1998. doi:10.1162/089976698300017467
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import torch

from .._relation import Array, Floats
from ..errors import DataError
from ..nn.features import Features
from ..nn.standardize import standardization

_ANCHORS = 1000
_PIECE = 4096  # items compared with the anchors at a time
_TINY = 1e-8  # smallest variance of a component, relative to the first


class Kernel(NamedTuple):
    """What components are taken of."""

    unit_length: bool  # whether vectors are scaled to length one
    gamma: float  # of the RBF kernel; 0: linear


KERNELS = {"linear": Kernel(False, 0.0), "rbf": Kernel(False, 1.0), "cosine": Kernel(True, 1.0)}


@dataclass(frozen=True, eq=False)
class Components:
    """A map from features to components."""

    mean: Floats  # (feature): zero for unit length
    scale: Floats  # (feature): zero for unit length
    gamma: float
    mean_square: float  # mean squared distance of anchors
    anchors: Floats  # (anchor, feature), scaled; (0, feature) if linear
    mean_kernel: Floats  # (anchor): mean kernel with every anchor
    basis: Floats  # (anchor or feature, component)

    def of(self, features: Features) -> Floats:
        """Return the components of items: (item, component)."""
        check_width(features, len(self.mean))
        out = np.empty((len(features), self.basis.shape[1]))
        for start in range(0, len(features), _PIECE):
            x = _scaled(features.vectors[start : start + _PIECE], self.mean, self.scale)
            if self.gamma:
                x = np.exp(-self.gamma * _squares(x, self.anchors) / self.mean_square)
                x = x - x.mean(axis=1, keepdims=True) - self.mean_kernel + self.mean_kernel.mean()
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
    vectors: npt.NDArray[np.float32], most: int, kernel: Kernel, seed: int = 0
) -> Components:
    """Return a map to at most `most` components of vectors: (item, feature)."""
    gamma = float(kernel.gamma)
    mean, scale = np.zeros((2, vectors.shape[1]))
    if not kernel.unit_length:
        wide = torch.from_numpy(vectors.astype(np.float64))
        mean, scale = (each.numpy() for each in standardization(wide))
    x = _scaled(vectors, mean, scale)
    anchors, mean_kernel, mean_square = np.zeros((0, x.shape[1])), np.zeros(0), 1.0
    if gamma:
        anchors = x
        if len(x) > _ANCHORS:
            chosen = np.random.default_rng([seed, 0xA2C4]).permutation(len(x))[:_ANCHORS]
            anchors = x[np.sort(chosen)]
        squares = _squares(anchors, anchors)
        mean_square = float(squares.mean()) or 1.0
        gram = np.exp(-gamma * squares / mean_square)
        mean_kernel = gram.mean(axis=0)
        gram = gram - mean_kernel - mean_kernel[:, None] + mean_kernel.mean()
    else:
        gram = (x - x.mean(axis=0)).T @ x
    value, basis = np.linalg.eigh(gram)
    kept = np.flatnonzero(value > _TINY * max(value[-1], _TINY))[::-1][:most]
    basis = np.ascontiguousarray(basis[:, kept])
    basis = basis / np.sqrt(value[kept]) if gamma else basis
    components = Components(mean, scale, gamma, mean_square, anchors, mean_kernel, basis)
    total = float(components.of(Features(vectors)).var(axis=0).sum())
    return replace(components, basis=basis / np.sqrt(total)) if total > 0 else components


def check_width(features: Features, width: int) -> None:
    """Raise if vectors have another width than those the model was fitted to."""
    if len(features) and features.vectors.shape[1] != width:
        raise DataError(
            f"vectors of {features.vectors.shape[1]} features, but the model was fitted to {width}"
        )


def _scaled(vectors: Array, mean: Floats, scale: Floats) -> Floats:
    """Return standardized features or, if `scale` is zero, vectors of length one."""
    if scale.any():
        return (vectors - mean) * scale
    wide = vectors.astype(np.float64)
    return wide / np.maximum(np.linalg.norm(wide, axis=1, keepdims=True), _TINY)


def _squares(x: Floats, y: Floats) -> Floats:
    """Return squared distances: (row of x, row of y)."""
    return np.maximum((x**2).sum(axis=1)[:, None] + (y**2).sum(axis=1) - 2 * x @ y.T, 0)
