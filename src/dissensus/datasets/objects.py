"""Objects: boxes in images, some missed, some spurious, with imprecise corners."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..base.arrays import Floats
from ..answers.marks import Boxes
from ..params import NonNegative, Positive
from .answer_strategy import AnswerStrategy, Assigned, Drawn

_SIZE = (640.0, 480.0)  # width and height of images


@dataclass(frozen=True, kw_only=True)
class Objects(AnswerStrategy):
    """Annotators who draw boxes around objects.

    Objects: boxes in images, some missed, some spurious, with imprecise corners.

        corner of a = true corner + spread · size · N(0, 1), with probability found[a]
        number of spurious boxes ~ Poisson(clutter)

    When it fails: Misses do not depend on what the object looks like; real objects that are small
    or hidden are missed by most.

    Parameters
    ----------
    objects
        Mean number of objects in an image; it is drawn from a Poisson distribution.
    yes, no
        The Beta distribution of the share of objects that an annotator finds.
    clutter
        Mean number of spurious boxes in an answer.
    spread
        Standard deviation of corners, relative to the size of a box.

    Examples
    --------
    >>> from dissensus import simulate
    >>> simulate("objects", n_items=5, n_annotators=3).answers
    <boxes: 5 items, 3 annotators, ... marks...>
    """

    objects: NonNegative = 4.0
    yes: Positive = 6.0
    no: Positive = 3.0
    clutter: NonNegative = 0.3
    spread: NonNegative = 0.05

    def draw(self, asked: Assigned, rng: np.random.Generator) -> Drawn:
        n = rng.poisson(self.objects, asked.n_items)
        true_item = np.repeat(np.arange(asked.n_items), n)
        true = _boxes(len(true_item), rng)
        found = rng.beta(self.yes, self.no, asked.n_annotators)
        first = np.cumsum(n) - n
        seen = n[asked.item]
        row = np.repeat(np.arange(len(asked.item)), seen)
        at = np.arange(len(row)) - np.repeat(np.cumsum(seen) - seen, seen)
        at += np.repeat(first[asked.item], seen)
        hit = rng.random(len(row)) < found[asked.annotator[row]]
        row, at = row[hit], at[hit]
        extent = np.tile(true[at, 2:], 2)
        corners = np.hstack([true[at, :2], true[at, :2] + true[at, 2:]])
        corners = corners + rng.normal(size=corners.shape) * self.spread * extent
        low, high = (
            np.minimum(corners[:, :2], corners[:, 2:]),
            np.maximum(corners[:, :2], corners[:, 2:]),
        )
        extra = np.repeat(np.arange(len(asked.item)), rng.poisson(self.clutter, len(asked.item)))
        place = np.vstack([np.hstack([low, high - low]), _boxes(len(extra), rng)])
        rows = np.concatenate([row, extra])
        bare = np.setdiff1d(np.arange(len(asked.item)), rows)
        rows = np.concatenate([rows, bare])
        place = np.vstack([place, np.full((len(bare), 4), np.nan)]).round(1)
        names = asked.names
        answers = Boxes.from_columns(
            names["items"][asked.item[rows]],
            names["annotators"][asked.annotator[rows]],
            *place.T,
            **names,
        )
        empty = np.flatnonzero(n == 0)
        known = np.vstack([true, np.full((len(empty), 4), np.nan)]).round(1)
        items = names["items"][np.concatenate([true_item, empty])]
        truth = Boxes.from_columns(items, ["truth"] * len(items), *known.T, items=names["items"])
        return Drawn(answers, truth, {"found": found})


def _boxes(count: int, rng: np.random.Generator) -> Floats:
    """Return boxes inside an image: x, y, w, h."""
    size = rng.uniform(0.05, 0.25, (count, 2)) * _SIZE
    return np.hstack([rng.random((count, 2)) * (np.array(_SIZE) - size), size])
