"""A view of a small task: its items in the plane, and their classes before and after steps of EM.

Embeddings have tens or hundreds of features. t-SNE arranges the items in the plane so that
neighbours stay neighbours; distances between far groups, and the axes, mean nothing.

    L. van der Maaten, G. Hinton. Visualizing data using t-SNE. JMLR 9, 2008.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ...base.names import as_names
from ...base.arrays import Array, Floats, Integers
from ...base.tables import Drawable, Table

if TYPE_CHECKING:
    from ...pages.charts import Figure

_PERPLEXITY = 30.0  # most; of few items a third of them


class Stage(NamedTuple):
    """Probabilities of the classes of all items at one time."""

    name: str
    probability: Floats  # (item, class)


@dataclass(frozen=True, eq=False, repr=False)
class EmbeddingView(Drawable):
    """Items of a task in the plane, with their true and inferred classes.

    Attributes
    ----------
    items, classes
        Names.
    position
        (item, 2).
    labelled
        Whether an item has annotations: (item).
    stages
        Inferred classes, from the votes to those after the last step.
    truth
        Codes of the true classes, -1 where unknown: (item).
    """

    items: Array
    classes: Array
    position: Floats
    labelled: Array
    stages: tuple[Stage, ...]
    truth: Integers

    def inferred(self, stage: Stage) -> Integers:
        """Return the most probable class of every item, -1 where several are: (item)."""
        best = stage.probability.max(axis=1, keepdims=True)
        tied = (stage.probability >= best - 1e-9).sum(axis=1) > 1
        return np.where(tied, -1, stage.probability.argmax(axis=1))

    def accuracy(self, stage: Stage) -> float:
        """Return the share of items with labels whose known class is inferred; NaN without any."""
        known = self.labelled & (self.truth >= 0)
        right = self.inferred(stage)[known] == self.truth[known]
        return float(right.mean()) if known.any() else float("nan")

    def name_of(self, code: Integers) -> Array:
        """Return names of classes, empty for -1."""
        return as_names(["", *self.classes.tolist()])[code + 1]

    def _chart(self) -> tuple[Figure | None, str]:
        from .few_shot_figures import embedding_figure

        return embedding_figure(self), ""

    def _table(self) -> Table:
        columns = {"item": self.items, "x": self.position[:, 0], "y": self.position[:, 1]}
        columns |= {"labelled": self.labelled, "truth": self.name_of(self.truth)}
        return columns | {each.name: self.name_of(self.inferred(each)) for each in self.stages}

    def __repr__(self) -> str:
        return (
            f"<EmbeddingView: {len(self.items)} items, {len(self.classes)} classes, "
            f"{len(self.stages)} stages>"
        )


def in_plane(vectors: Floats, seed: int = 0) -> Floats:
    """Return positions by t-SNE: (item, 2).

    >>> in_plane(np.repeat(np.eye(2), 5, axis=0)).shape
    (10, 2)
    """
    from sklearn.manifold import TSNE  # type: ignore[import-untyped]

    n_items = len(vectors)
    if n_items < 3 or not np.ptp(vectors, axis=0).any():  # no neighbours to keep
        return np.stack([np.arange(n_items), np.zeros(n_items)], axis=1)
    perplexity = min(_PERPLEXITY, (n_items - 1) / 3)
    tsne = TSNE(perplexity=perplexity, init="random", random_state=seed)
    return tsne.fit_transform(vectors.astype(np.float64)).astype(np.float64)


def stage_names(n_steps: int) -> Sequence[str]:
    """Return the names of the stages.

    >>> stage_names(2)
    ['votes', 'step 1', 'step 2']
    """
    return ["votes", *(f"step {step}" for step in range(1, n_steps + 1))]
