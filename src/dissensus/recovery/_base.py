"""What every way of recovering promises: from inputs with one label each to distributions.

    views, label ─method.fit─▶ Recovery ─proba(views)─▶ (item, class)

A method is a set of settings, as the registry knows it. It sees inputs through `Views` (a vector
per item, vectors of its places, or the input itself) and one class code per item. An oracle sees
the annotations too: it says what could be reached, not what can be had.

What it learns is a `Recovery` of one or more members. `members` is what each member believes,
`votes` the share of members for every class, `proba` the recovered distribution: the mean of the
members, flattened by the number of votes behind the labels where that is known (`_flattening`).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from .._progress import Progress
from .._relation import Array, Floats, Integers
from ..annotations import Annotations
from ..errors import DataError, OptionError
from ..params import NonNegative, Settings
from ._flattening import flattened, vote_slope
from .measures import best

__all__ = ["Kept", "People", "Places", "Progress", "Recovery", "RecoveryMethod", "Shown", "Views"]


class Places(NamedTuple):
    """Vectors of the words or patches of every item."""

    values: Array  # (item, place, feature): an array, or one over a file
    mask: Array  # (item, place): whether something is there


@dataclass(frozen=True, eq=False)
class Views:
    """What a method may look at; what it did not ask for is `None`."""

    vectors: Floats | None = None  # (item, feature)
    positions: Places | None = None
    raw: Any = None  # an encoder and its inputs (`_nets.views.Raw`), for those who tune it

    def __len__(self) -> int:
        for view in (self.vectors, self.raw):
            if view is not None:
                return len(view)
        return 0 if self.positions is None else len(self.positions.values)

    def only(self, wanted: Collection[str]) -> Views:
        """Return these views and no others."""
        return Views(**{name: view for name, view in vars(self).items() if name in wanted})

    def take(self, items: Integers) -> Views:
        """Return the views of items, by code."""
        positions = self.positions
        return Views(
            None if self.vectors is None else self.vectors[items],
            None if positions is None else Places(positions.values[items], positions.mask[items]),
            None if self.raw is None else self.raw.take(items),
        )


class People(NamedTuple):
    """What is known of people for whom members shall stand; at least one of the three."""

    features: Floats | None = None  # (person, feature)
    marginal: Floats | None = None  # (person, class): how often each gives every label
    annotations: Annotations | None = (
        None  # a few labels of theirs; annotators are these people, in order
    )

    def checked(self, n_classes: int, n_items: int) -> tuple[Floats, Floats | None]:
        """Return features, one of their own for each if none are known, and marginals."""
        sizes = [len(part) for part in (self.features, self.marginal) if part is not None]
        sizes += [] if self.annotations is None else [self.annotations.n_annotators]
        if not sizes or min(sizes) != max(sizes) or not sizes[0]:
            raise DataError(f"people need features, marginals or labels, as many of each: {sizes}")
        if self.marginal is not None and np.shape(self.marginal) != (sizes[0], n_classes):
            raise DataError(f"marginals {np.shape(self.marginal)}, but {n_classes} classes")
        if self.annotations is not None and self.annotations.n_items != n_items:
            raise DataError(
                f"people said something of {self.annotations.n_items} items, not {n_items}"
            )
        features = np.eye(sizes[0]) if self.features is None else np.asarray(self.features, float)
        return features, None if self.marginal is None else np.asarray(self.marginal, float)


class Shown(NamedTuple):
    """What a method learns from."""

    label: Integers  # (item)
    n_classes: int
    annotations: Annotations | None  # for oracles: who said what, items in the order of the views
    seed: int
    progress: Progress | None = None
    folder: Path | None = None  # for checkpoints of long trainings
    people: People | None = None  # for members that stand for somebody


class Kept(NamedTuple):
    """What has to be written down to have a recovery again."""

    notes: dict[str, Any]  # what JSON can say
    arrays: dict[str, Array]


class Recovery(ABC):
    """What a method has learned."""

    temperature: float = 1.0

    @abstractmethod
    def members(self, views: Views) -> Floats:
        """Return what every member believes: (member, item, class)."""

    @abstractmethod
    def kept(self) -> Kept:
        """Return what has to be written down."""

    def mixed(self, views: Views) -> Floats:
        """Return the belief of all members together, if not overridden their mean."""
        return self.members(views).mean(axis=0)

    def proba(self, views: Views) -> Floats:
        """Return the recovered distribution: (item, class)."""
        return flattened(self.mixed(views), self.temperature)

    def votes(self, views: Views) -> Floats:
        """Return the share of members for every class: (item, class)."""
        return best(self.members(views)).mean(axis=0)

    def chosen(self, views: Views) -> Integers:
        """Return the class that most people would give, if not overridden the most probable."""
        return self.proba(views).argmax(axis=1)


@dataclass(frozen=True, kw_only=True)
class RecoveryMethod(Settings, ABC):
    """A way to recover distributions.

    Parameters
    ----------
    flatten
        Power of the vote-count slope by which logits are divided where `vote_count` is known;
        0 leaves them.
    """

    needs: ClassVar[tuple[str, ...]] = ("vectors",)  # views without which it cannot work
    likes: ClassVar[tuple[str, ...]] = ()  # views that it uses where they are
    oracle: ClassVar[bool] = False  # whether it sees the annotations

    flatten: NonNegative = 0.0

    def fit(
        self,
        views: Views,
        label: ArrayLike,
        *,
        n_classes: int | None = None,
        vote_count: ArrayLike | None = None,
        annotations: Annotations | None = None,
        seed: int = 0,
        progress: Progress | None = None,
        folder: Path | None = None,
        people: People | None = None,
    ) -> Recovery:
        """Learn from inputs with one label each.

        Parameters
        ----------
        views
            Of the inputs.
        label
            Class codes: (item).
        n_classes
            How many classes there are; by default as many as occur.
        vote_count
            How many people stand behind a label, one number or one for every item.
        annotations
            For oracles, what they said.
        seed
            Decides what is random.
        progress
            Called with steps done, steps in all, and how it goes.
        folder
            Where long trainings keep checkpoints, to go on from them.
        people
            What is known of people, for members that stand for them.
        """
        codes = np.asarray(label, dtype=np.int64)
        if codes.shape != (len(views),):
            raise DataError(f"{len(views)} inputs, but labels of the shape {codes.shape}")
        if not len(codes):
            raise DataError("no items to learn from")
        size = int(codes.max()) + 1 if n_classes is None else n_classes
        if codes.min() < 0 or codes.max() >= size:
            raise DataError(f"a label has the code {codes.max()}, but there are {size} classes")
        for view in self.needs:
            if getattr(views, view) is None:
                raise OptionError(f"this method needs {view} of the inputs")
        if self.oracle and annotations is None:
            raise OptionError("an oracle learns from annotations; give said=…")
        if annotations is not None and (annotations.n_items, annotations.n_classes) != (
            len(codes),
            size,
        ):
            raise DataError(
                f"annotations on {annotations.n_items} items in {annotations.n_classes} classes, "
                f"but {len(codes)} items in {size} classes"
            )
        found = self.learn(views, Shown(codes, size, annotations, seed, progress, folder, people))
        if vote_count is not None and self.flatten:
            found.temperature *= vote_slope(vote_count) ** self.flatten
        return found

    @abstractmethod
    def learn(self, views: Views, shown: Shown) -> Recovery:
        """Return what is learned from these views."""

    @abstractmethod
    def restore(self, kept: Kept) -> Recovery:
        """Return a recovery as it was written down."""
