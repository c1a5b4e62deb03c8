"""Masks: ellipses with uncertain borders, and annotators who are far off."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.ndimage import gaussian_filter

from ..base.arrays import Floats
from ..answers.masks import Masks as MaskAnswers
from ..params import Count, NonNegative, Probability
from .answer_strategy import AnswerStrategy, Assigned, Drawn


@dataclass(frozen=True, kw_only=True)
class Masks(AnswerStrategy):
    """Annotators who paint one object in an image.

    Masks: ellipses with uncertain borders, and annotators who are far off.

        mask of a = pixels with distance to the border + smooth noise + shift[a] > 0
        bad annotators: the same, moved elsewhere

    When it fails: Every object is one ellipse; real ones have holes, and details that annotators
    leave out together.

    Parameters
    ----------
    size
        Height and width of images in pixels.
    noise
        Standard deviation of the border of a mask in pixels.
    shift
        Standard deviation of how much too large or too small an annotator's masks are.
    bad
        Share of annotators whose masks are elsewhere.

    Examples
    --------
    >>> from dissensus import simulate
    >>> simulate("masks", n_items=4, n_annotators=3).answers
    <masks: 4 items, 3 annotators>
    """

    size: Count = 64
    noise: NonNegative = 1.5
    shift: NonNegative = 1.0
    bad: Probability = 0.1

    def draw(self, asked: Assigned, rng: np.random.Generator) -> Drawn:
        shift = rng.normal(0, self.shift, asked.n_annotators)
        bad = rng.random(asked.n_annotators) < self.bad
        border = [self._border(rng) for _ in range(asked.n_items)]
        counts = []
        for item, annotator in zip(asked.item.tolist(), asked.annotator.tolist(), strict=True):
            noise = gaussian_filter(rng.normal(size=(self.size, self.size)), 4)
            noise *= self.noise / max(float(noise.std()), 1e-9)
            inside = border[item] + noise + shift[annotator] > 0
            if bad[annotator]:
                far = rng.integers(-self.size // 3, self.size // 3 + 1, 2)
                inside = np.roll(inside, far, axis=(0, 1))
            counts.append(_runs(inside))
        names = asked.names
        size = dict.fromkeys(names["items"].tolist(), (self.size, self.size))
        answers = MaskAnswers.from_columns(
            names["items"][asked.item], names["annotators"][asked.annotator], counts,
            size=size, **names,
        )  # fmt: skip
        known = [_runs(one > 0) for one in border]
        items = names["items"]
        truth = MaskAnswers.from_columns(items, ["truth"] * len(items), known, size=size)
        return Drawn(answers, truth, {"shift": shift, "bad": bad})

    def _border(self, rng: np.random.Generator) -> Floats:
        """Return about how far pixels are inside an ellipse: (row, column)."""
        middle = self.size * rng.uniform(0.375, 0.625, 2)
        axes = self.size * rng.uniform(0.125, 0.28, 2)
        angle = rng.uniform(0, np.pi)
        y, x = np.mgrid[: self.size, : self.size] - middle[:, None, None]
        along = (x * np.cos(angle) + y * np.sin(angle)) / axes[0]
        across = (y * np.cos(angle) - x * np.sin(angle)) / axes[1]
        return (1 - np.hypot(along, across)) * np.sqrt(axes[0] * axes[1])


def _runs(inside: npt.NDArray[np.bool_]) -> list[int]:
    """Return run lengths, column by column, those outside first."""
    flat = inside.T.ravel()
    change = np.flatnonzero(np.diff(flat, prepend=False))
    return np.diff(np.concatenate([[0], change, [len(flat)]])).tolist()
