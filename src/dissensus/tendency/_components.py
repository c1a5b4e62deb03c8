"""Principal components of the items' vectors, in a straight or a curved space.

Vectors are taken by their direction (length one), as those of encoders are meant to be compared, or
by their features, each brought to mean zero and spread one. Straight, the components are those of
the vectors. Curved, they are those of the kernel

    exp(−curve · ‖x − y‖² / mean ‖x − y‖²)

among at most `_ANCHORS` of the items, which a ridge on a linear head turns into kernel regression.
Components keep their natural sizes, so that a ridge holds what varies little. All of them together
have variance one: one scale of spreads serves all data.

    B. Schölkopf, A. Smola, K.-R. Müller. Nonlinear component analysis as a kernel eigenvalue
    problem. Neural Computation 10(5), 1998. doi:10.1162/089976698300017467
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from .._relation import Array, Floats
from ..errors import DataError
from ._views import Views, standardised

__all__ = ["Components", "Space", "find_components"]

_ANCHORS = 1000
_PIECE = 4096  # items that are compared with the anchors together
_TINY = 1e-8  # the least variance of a component, beside the first


@dataclass(frozen=True, eq=False)
class Components:
    """From vectors to components."""

    mean: Floats  # (feature): zero where only the direction counts
    scale: Floats  # (feature): zero where only the direction counts
    curve: float  # 0 for straight
    apart: float  # the mean squared distance of anchors
    anchors: Floats  # (anchor, feature), scaled; (0, feature) where straight
    middle: Floats  # (anchor): the mean similarity to every anchor
    basis: Floats  # (anchor or feature, component)

    def of(self, views: Views) -> Floats:
        """Return the components of items: (item, component)."""
        if views.vectors.shape[1] != len(self.mean):
            raise DataError(
                f"vectors of {views.vectors.shape[1]} features, but the model has learned from "
                f"{len(self.mean)}"
            )
        out = np.empty((len(views), self.basis.shape[1]))
        for at in range(0, len(views), _PIECE):
            piece = _scaled(views.vectors[at : at + _PIECE], self.mean, self.scale)
            out[at : at + _PIECE] = self._seen(piece) @ self.basis
        return out

    def _seen(self, x: Floats) -> Floats:
        if not self.curve:
            return x
        alike = np.exp(-self.curve * _squares(x, self.anchors) / self.apart)
        return alike - alike.mean(axis=1, keepdims=True) - self.middle + self.middle.mean()

    def arrays(self) -> dict[str, Any]:
        """Return every part by name."""
        return {name: np.atleast_1d(value) for name, value in vars(self).items()}

    @classmethod
    def from_arrays(cls, arrays: dict[str, Any]) -> Components:
        """Return them again."""
        numbers = {name: arrays[name].item() for name in ("curve", "apart")}
        return cls(**(arrays | numbers))


class Space(NamedTuple):
    """What components are taken of."""

    direction: bool  # whether the length of a vector does not count
    curve: float  # 0 for straight


def find_components(
    vectors: npt.NDArray[np.float32], most: int, space: Space, seed: int = 0
) -> Components:
    """Return at most so many components of vectors: (item, feature)."""
    curve = float(space.curve)
    mean, scale = np.zeros((2, vectors.shape[1])) if space.direction else standardised(vectors)
    x = _scaled(vectors, mean, scale)
    anchors, middle, apart = np.zeros((0, x.shape[1])), np.zeros(0), 1.0
    if curve:
        anchors = x
        if len(x) > _ANCHORS:
            chosen = np.random.default_rng([seed, 0xA2C4]).permutation(len(x))[:_ANCHORS]
            anchors = x[np.sort(chosen)]
        squares = _squares(anchors, anchors)
        apart = float(squares.mean()) or 1.0
        alike = np.exp(-curve * squares / apart)
        middle = alike.mean(axis=0)
        gram = alike - middle - middle[:, None] + middle.mean()
    else:
        gram = (x - x.mean(axis=0)).T @ x
    value, basis = np.linalg.eigh(gram)
    kept = np.flatnonzero(value > _TINY * max(value[-1], _TINY))[::-1][:most]
    basis = basis[:, kept]
    if curve:
        basis = basis / np.sqrt(value[kept])
    made = Components(mean, scale, curve, apart, anchors, middle, basis)
    total = float(made.of(Views(vectors)).var(axis=0).sum())
    return replace(made, basis=basis / np.sqrt(total)) if total > 0 else made


def _scaled(vectors: Array, mean: Floats, scale: Floats) -> Floats:
    """Return features of mean zero and spread one, or, where nothing tells these, directions."""
    if scale.any():
        return (vectors - mean) * scale
    wide = vectors.astype(np.float64)
    return wide / np.maximum(np.linalg.norm(wide, axis=1, keepdims=True), _TINY)


def _squares(one: Floats, other: Floats) -> Floats:
    """Return squared distances: (row of one, row of the other)."""
    found = (one**2).sum(axis=1)[:, None] + (other**2).sum(axis=1) - 2 * one @ other.T
    return np.maximum(found, 0)
