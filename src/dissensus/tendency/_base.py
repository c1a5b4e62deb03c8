"""What every method that foresees single annotators promises.

A `TendencyMethod` is a set of settings, as the registry knows it. Fitted to views of items and to
who said what about them, it gives a `Tendency`, which answers one question,

    log_chance(views, item, annotator)[n, l]
        = log P(annotator[n] would say l of item[n]),

at a cost that grows with the pairs asked for, never with items × annotators. A `Tendency` is never
changed: a new annotator makes a new one. What it has learned comes out of `state` as plain arrays
and what JSON can say, and goes back in by `restore` of the method.

    class Mine(TendencyMethod):
        strength: Positive = 1.0

        def learn(self, views, said, how): return MyTendency(…)
        def restore(self, state): return MyTendency(**state.arrays)
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import numpy as np

from .._progress import Progress
from .._relation import Array, Floats, Integers
from ..annotations import Annotations
from ..errors import DataError, MethodError
from ..params import Settings
from ._views import Layout, Places, Seen, Views

__all__ = [
    "How",
    "Layout",
    "Places",
    "Progress",
    "Seen",
    "State",
    "Tendency",
    "TendencyMethod",
    "Views",
]

_CELLS = 2**22  # probabilities that are worked on together


class State(NamedTuple):
    """What a fitted model is made of: arrays by name, and what JSON can say.

    >>> whole = State.of(linear=State({"a": 1}, {"w": np.ones(2)}))
    >>> whole.inner("linear").arrays["w"].tolist(), sorted(whole.arrays)
    ([1.0, 1.0], ['linear.w'])
    """

    notes: dict[str, Any]
    arrays: dict[str, Array]

    @classmethod
    def of(cls, **inner: State) -> State:
        """Return the state of a model that is made of others, each under a name of its own."""
        arrays = {
            f"{name}.{key}": value
            for name, state in inner.items()
            for key, value in state.arrays.items()
        }
        return cls({name: state.notes for name, state in inner.items()}, arrays)

    def inner(self, name: str) -> State:
        """Return the state of one of the models that this one is made of."""
        start = f"{name}."
        arrays = {
            key.removeprefix(start): value
            for key, value in self.arrays.items()
            if key.startswith(start)
        }
        return State(self.notes[name], arrays)


class Tendency(ABC):
    """A fitted model of what every annotator says."""

    n_annotators: int
    n_classes: int

    @abstractmethod
    def log_probability(self, views: Views, item: Integers, annotator: Integers) -> Floats:
        """Return log-probabilities of what annotators say of items, pair by pair: (pair, class).

        Items are places among the views, annotators are codes.
        """

    def log_proba(self, views: Views, annotator: Integers | None = None) -> Floats:
        """Return what these annotators, all by default, say of all items: (item, annotator, class).

        The one answer whose size is items × annotators.
        """
        codes = np.arange(self.n_annotators) if annotator is None else np.asarray(annotator)
        out = np.empty((len(views), len(codes), self.n_classes))
        step = max(_CELLS // max(len(codes) * self.n_classes, 1), 1)
        for at in range(0, len(views), step):
            item = np.arange(at, min(at + step, len(views)))
            pairs = self.log_probability(
                views, np.repeat(item, len(codes)), np.tile(codes, len(item))
            )
            out[item] = pairs.reshape(len(item), len(codes), self.n_classes)
        return out

    @abstractmethod
    def state(self) -> State:
        """Return what it has learned."""

    def with_annotator(
        self,
        views: Views,
        label: Integers,
        *,
        features: Floats | None = None,
        seed: int = 0,
    ) -> Tendency:
        """Return a model that knows one annotator more, with the code `n_annotators`.

        Only what is the new one's own is learned; all else stays as it is.

        Parameters
        ----------
        views
            The items that they labelled.
        label
            What they said of each, as codes of classes; none where only features are known.
        features
            What is known of them, where the model has learned from such: (feature).
        seed
            Decides what is random.
        """
        raise MethodError(f"{type(self).__name__} cannot take up a new annotator; fit it again")


@dataclass(frozen=True, kw_only=True, eq=False)
class How:
    """What `fit` is told beside the data; a method hands it on to those that it is made of."""

    metadata: Floats | None = None  # (annotator, feature): what is known of the annotators
    seed: int = 0
    progress: Progress = field(default=lambda *_: None)
    folder: Path | None = None  # where networks keep checkpoints
    resume: bool = False

    def inside(self, name: str) -> How:
        """Return the same for a part of the work, with a folder of its own."""
        return replace(self, folder=None if self.folder is None else self.folder / name)


@dataclass(frozen=True, kw_only=True)
class TendencyMethod(Settings, ABC):
    """A way to foresee what every annotator would say."""

    wants_tokens: ClassVar[bool] = False  # whether places of the items are to be given as well

    def fit(
        self,
        views: Views,
        annotations: Annotations,
        *,
        metadata: Floats | None = None,
        seed: int = 0,
        progress: Progress | None = None,
        folder: str | Path | None = None,
        resume: bool = False,
    ) -> Tendency:
        """Learn from items and who said what about them.

        Parameters
        ----------
        views
            The items, in the order of `annotations`.
        annotations
            Who said what; items without a label and annotators without one may exist.
        metadata
            What is known of the annotators: (annotator, feature).
        seed
            Decides what is random.
        progress
            Called with steps done, steps in all, and how it goes.
        folder, resume
            Where networks keep checkpoints, and whether to go on from them.
        """
        if len(views) != annotations.n_items:
            raise DataError(f"{len(views)} inputs, but annotations on {annotations.n_items} items")
        if not len(annotations):
            raise DataError("no annotations to learn from")
        if metadata is not None and len(metadata) != annotations.n_annotators:
            raise DataError(
                f"metadata of {len(metadata)} annotators, but {annotations.n_annotators} speak"
            )
        how = How(
            metadata=metadata,
            seed=seed,
            progress=progress or (lambda *_: None),
            folder=None if folder is None else Path(folder),
            resume=resume,
        )
        return self.learn(views, annotations, how)

    def looks_at_tokens(self, annotations: Annotations) -> bool:
        """Return whether places of the items are of use for these annotations."""
        return self.wants_tokens

    @abstractmethod
    def learn(self, views: Views, annotations: Annotations, how: How) -> Tendency:
        """Return the fitted model; `fit` has looked at the data."""

    @abstractmethod
    def restore(self, state: State) -> Tendency:
        """Return the fitted model whose state this is."""
