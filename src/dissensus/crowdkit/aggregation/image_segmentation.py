"""Masks of images: is a pixel in it or not, as crowd-kit calls them.

Masks are arrays of pixels, all of one shape within a task. Every task is decided on its own.

    J. Li, F. Fukumoto. A dataset of crowdsourced word sequences: collections and answer aggregation
    for ground truth creation. AnnoNLP 2019. doi:10.18653/v1/D19-5904
    D. Jung-Lin Lee, A. Das Sarma, A. Parameswaran. Aggregating crowdsourced image segmentations.
    CEUR Workshop Proceedings 2173, 2018.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, Self

import numpy as np

from ...base.arrays import Floats
from ...errors import DataError, OptionError
from .base import in_order, require
from .classification import answers_that_count

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["SegmentationEM", "SegmentationMajorityVote", "SegmentationRASA"]

_COLUMNS = ["task", "worker", "segmentation"]
_LEAST = 1e-10  # of a distance, and of a probability


@dataclass
class SegmentationMajorityVote:
    """Pixels that at least half of the workers marked, perhaps weighted by skills.

    Our method `weighted-masks` differs: it takes pixels with more than half, and learns weights.
    """

    default_skill: float | None = None
    on_missing_skill: Literal["error", "ignore", "value"] = "error"

    def fit(self, data: pd.DataFrame, skills: pd.Series | None = None) -> Self:
        """Fit to a table of task, worker and segmentation, with skills by worker if given."""
        data = require(data, _COLUMNS)
        skill_of: dict[Any, float] = {}
        if skills is not None:
            data = answers_that_count(data, skills, self.on_missing_skill, self.default_skill)
            skill_of = skills.dropna().to_dict()
        missing = 1.0 if self.default_skill is None else self.default_skill
        weight = np.array([skill_of.get(worker, missing) for worker in data["worker"]], dtype=float)

        def decide(masks: Floats, rows: Any) -> Any:
            return 2 * np.tensordot(weight[rows], masks, 1) >= weight[rows].sum()

        self.segmentations_ = _each(data, decide)
        return self

    def fit_predict(self, data: pd.DataFrame, skills: pd.Series | None = None) -> pd.Series:
        """Return the mask of every task."""
        return self.fit(data, skills).segmentations_


@dataclass
class _IteratedMasks(ABC):
    """Masks and weights of workers in turns, for every task alone."""

    n_iter: int = 10
    tol: float = 1e-5

    @abstractmethod
    def _one(self, masks: Floats) -> Any:
        """Return the mask of a task from those of its workers: (worker, row, column)."""

    def fit(self, data: pd.DataFrame) -> Self:
        """Fit to a table of task, worker and segmentation."""
        if self.n_iter < 0:
            raise OptionError(f"n_iter = {self.n_iter}, but it must be at least 0")
        self.segmentations_ = _each(require(data, _COLUMNS), lambda masks, _rows: self._one(masks))
        return self

    def fit_predict(self, data: pd.DataFrame) -> pd.Series:
        """Return the mask of every task."""
        return self.fit(data).segmentations_


@dataclass
class SegmentationRASA(_IteratedMasks):
    """Pixels with at least half of the weight; who overlaps more with these has more weight.

    The distance of a worker is one minus intersection over union. Our method `weighted-masks`
    differs: weights are powers of intersection over union.
    """

    def _one(self, masks: Floats) -> Any:
        weight = np.full(len(masks), 1 / len(masks))
        share = np.tensordot(weight, masks, 1)
        for step in range(self.n_iter):
            last, share = share, np.tensordot(weight, masks, 1)
            inside = share >= 0.5
            overlap = (masks * inside).sum(axis=(1, 2))
            either = np.maximum(masks, inside).sum(axis=(1, 2))
            distance = 1 - np.divide(overlap, either, out=np.ones(len(masks)), where=either > 0)
            weight = np.log(1 / (distance + _LEAST) + 1)
            weight = weight / weight.sum()
            change = ((share - last) ** 2).sum() / max((share**2).sum(), _LEAST)
            if step and change < self.tol:
                break
        return share >= 0.5


@dataclass
class SegmentationEM(_IteratedMasks):
    """Pixels that are in the mask with more than probability one half; one coin for every worker.

    Pixels have probabilities of their own, at first the share of workers who marked them. Only
    pixels that somebody marked count for the accuracy of workers. Our method `staple` differs:
    a mask has a sensitivity and a specificity, and all pixels count.
    """

    def _one(self, masks: Floats) -> Any:
        marked = masks.any(axis=0)
        if not marked.any():
            return marked
        votes = masks[:, marked]  # (worker, pixel)
        prior = votes.mean(axis=0)
        accuracy = _accuracy(votes, np.round(prior))
        gains: list[float] = []
        for _ in range(self.n_iter):
            with np.errstate(divide="ignore"):
                inside = np.log(prior) + _log_given(votes, accuracy)
                outside = np.log1p(-prior) + _log_given(1 - votes, accuracy)
            evidence = np.logaddexp(inside, outside)
            prior = np.exp(inside - evidence)
            accuracy = _accuracy(votes, prior)
            gains.append(float(evidence.sum()) / masks.size)
            if len(gains) > 1 and gains[-1] - gains[-2] < self.tol:
                break
        mask = np.zeros(marked.shape, dtype=bool)
        mask[marked] = prior > 0.5
        return mask


def _log_given(votes: Floats, accuracy: Floats) -> Floats:
    """Return log P(votes | the pixel is in the mask): (pixel)."""
    return np.log(accuracy) @ votes + np.log1p(-accuracy) @ (1 - votes)


def _accuracy(votes: Floats, posterior: Floats) -> Floats:
    """Return the probability that a worker is right about a pixel: (worker)."""
    right = votes * posterior + (1 - votes) * (1 - posterior)
    return np.clip(right.mean(axis=1), _LEAST, 1 - _LEAST)


def _each(data: pd.DataFrame, decide: Any) -> pd.Series:
    """Return the mask of every task, decided from its masks and their rows."""
    import pandas as pd

    tasks = in_order(data["task"].unique().tolist())
    masks, of_task = data["segmentation"].tolist(), data["task"].to_numpy()
    decided = []
    for task in tasks:
        rows = np.flatnonzero(of_task == task)
        shapes = {np.shape(masks[row]) for row in rows}
        if len(shapes) > 1:
            raise DataError(f"task {task!r} has masks of shapes {shapes}; they must be the same")
        decided.append(decide(np.stack([masks[row] for row in rows]).astype(float), rows))
    return pd.Series(decided, index=pd.Index(tasks, name="task"), name="agg_segmentation")
