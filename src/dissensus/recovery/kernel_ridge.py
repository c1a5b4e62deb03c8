"""Kernel ridge on one-hot labels: the mean of a Gaussian process, for all classes at once.

With y_ik = 1 where item i has label k, m the shares of labels and K_ij = exp(g (cosine_ij - 1)),

    f(x) = m + k(x) (K + noise I)⁻¹ (y - m),

clipped to at least `least` and scaled to sum to one. Least squares on 0 and 1 estimate a
probability directly, without the steepness of a softmax. Width g and noise are those of a small
grid under which every label is most likely given all the others, which has a closed form. With
K = U Λ Uᵀ, shrinkage s = Λ / (Λ + noise), fits F = U s Uᵀ y and leverage h_i = Σ_j U²_ij s_j,

    left out: f_i = (F_i - h_i y_i) / (1 - h_i).

Beyond `most` items the kernel is that of as many landmarks (Nyström), so the cost stays bounded.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
from annotated_types import Interval

from .._relation import Floats
from ..params import Count, Positive
from ._base import Kept, Recovery, RecoveryMethod, Shown, Views
from ._kernels import in_pieces, unit

__all__ = ["KernelRidge"]

_WIDTHS = (1.0, 2.0, 4.0)
_NOISES = (0.3, 1.0, 2.0, 4.0, 8.0, 16.0)
_TINY = 1e-9


class Smooth(Recovery):
    """A smooth function of the vectors for every class."""

    def __init__(
        self,
        known: Floats,
        weight: Floats,
        mean: Floats,
        center: Floats,
        width: float,
        least: float,
    ) -> None:
        self.known = known  # (landmark, feature): of length one
        self.weight = weight  # (landmark, class)
        self.mean = mean  # (class)
        self.center = center  # (feature): mean of the unit vectors, taken off before anything else
        self.width, self.least = width, least
        self.left_out: Floats | None = None  # (item, class): of the items learned from

    def members(self, views: Views) -> Floats:
        assert views.vectors is not None
        x = centred(views.vectors, self.center)
        parts = [_kernel(cosine, self.width) @ self.weight for cosine in in_pieces(x, self.known)]
        return _clipped(np.concatenate([*parts, np.zeros((0, len(self.mean)))]) + self.mean,
                        self.least)[None]  # fmt: skip

    def kept(self) -> Kept:
        names = ("known", "weight", "mean", "center")
        return Kept(
            {"width": self.width, "least": self.least},
            {name: getattr(self, name) for name in names},
        )


@dataclass(frozen=True, kw_only=True)
class KernelRidge(RecoveryMethod):
    """Kernel ridge regression on one-hot labels, tuned by leaving out one item at a time.

    Parameters
    ----------
    width
        How fast similarity falls with the cosine; `None` chooses.
    noise
        How much labels are distrusted; `None` chooses.
    least
        The least probability of a class.
    most
        Landmarks at most.
    """

    width: Positive | None = None
    noise: Positive | None = None
    least: Annotated[float, Interval(gt=0, le=0.5)] = 0.02
    most: Count = 3000

    def learn(self, views: Views, shown: Shown) -> Smooth:
        assert views.vectors is not None
        center = unit(views.vectors).mean(axis=0)
        x, label = centred(views.vectors, center), shown.label
        few = np.sort(np.random.default_rng(shown.seed).permutation(len(x))[: self.most])
        landmarks = x[few]
        mean = np.bincount(label, minlength=shown.n_classes) / len(label)
        target = np.eye(shown.n_classes)[label] - mean
        tried: list[tuple[Any, ...]] = []
        for width in _WIDTHS if self.width is None else (self.width,):
            size, left, root = _directions(x, landmarks, width)
            along = left.T @ target  # (direction, class)
            for noise in _NOISES if self.noise is None else (self.noise,):
                shrink = size / (size + noise)
                fitted = left @ (shrink[:, None] * along)
                lever = np.minimum((left**2) @ shrink, 1 - 1e-6)[:, None]
                out = _clipped((fitted - lever * target) / (1 - lever) + mean, self.least)
                good = np.log(out[np.arange(len(label)), label]).mean()
                weight = root @ ((np.sqrt(size) / (size + noise))[:, None] * along)
                tried.append((good, len(tried), width, weight, out))
        _, _, width, weight, out = max(tried, key=lambda one: one[:2])
        found = Smooth(landmarks, weight, mean, center, width, self.least)
        found.left_out = out
        return found

    def restore(self, kept: Kept) -> Smooth:
        arrays: dict[str, Any] = kept.arrays
        return Smooth(**arrays, **kept.notes)


def _directions(x: Floats, landmarks: Floats, width: float) -> tuple[Floats, Floats, Floats]:
    """Return the kernel of items as directions.

    These are its spectrum (direction), where items lie along it (item, direction), and what leads
    from the kernel with the landmarks to it, each of length one: (landmark, direction).
    """
    spectrum, turn = _positive(_kernel(landmarks @ landmarks.T, width))
    root = turn / np.sqrt(spectrum)
    if len(landmarks) == len(x):
        return spectrum, turn, root
    every = np.concatenate([_kernel(part, width) @ root for part in in_pieces(x, landmarks)])
    size, right = _positive(every.T @ every)
    return size, every @ right / np.sqrt(size), root @ right


def _positive(kernel: Floats) -> tuple[Floats, Floats]:
    """Return eigenvalues and eigenvectors, without those that are nothing but rounding."""
    size, turn = np.linalg.eigh(kernel)
    kept = size > _TINY * size[-1]
    return size[kept], turn[:, kept]


def centred(vectors: Floats, center: Floats) -> Floats:
    """Return unit vectors, less what they all share, of length one again."""
    return unit(unit(vectors) - center)


def _kernel(cosine: Floats, width: float) -> Floats:
    return np.exp(width * (cosine - 1))


def _clipped(p: Floats, least: float) -> Floats:
    p = np.clip(p, least, 1 - least)
    return p / p.sum(axis=1, keepdims=True)
