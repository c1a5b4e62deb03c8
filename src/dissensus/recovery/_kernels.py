"""Similarities of vectors, a piece at a time."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from .._relation import Floats

__all__ = ["in_pieces", "unit"]

_CELLS = 2**23  # similarities held at a time


def unit(vectors: Floats) -> Floats:
    """Return vectors of length one; zero stays zero."""
    vectors = np.asarray(vectors, dtype=np.float64)
    vectors = vectors.reshape(len(vectors), int(np.prod(vectors.shape[1:])))
    length = np.linalg.norm(vectors, axis=1, keepdims=True)
    return vectors / np.where(length > 0, length, 1)


def in_pieces(left: Floats, right: Floats) -> Iterator[Floats]:
    """Yield cosines of unit vectors, some rows at a time: (some of left, right)."""
    step = max(_CELLS // max(len(right), 1), 1)
    for at in range(0, len(left), step):
        yield left[at : at + step] @ right.T
