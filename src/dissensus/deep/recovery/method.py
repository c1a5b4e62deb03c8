"""The contract of recovery methods: from inputs with one label each to label distributions.

    features, label ─method.fit─▶ Recovery ─predict_proba(features)─▶ (item, class)

A method is a set of settings in the registry. It sees features of the inputs (a vector per item,
token features, or the inputs themselves) and one class code per item. An oracle also sees the
annotations: it shows what is possible, not what can be recovered.

A fitted `Recovery` has one or more members. `members` are the probabilities of each, `votes` the
share of members for every class, `predict_proba` the recovered distribution: the mean of the
members, flattened by the number of votes behind the labels where that is known (`_temperature`).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike

from ...base.progress import Progress
from ...base.arrays import Array
from ...base.storage import State
from ...base.threads import one_blas_thread
from ...answers.annotations import Annotations, Floats, Integers
from ...base.calibration import fit_temperature, temper
from ...errors import DataError, OptionError
from ...params import NonNegative, Settings
from .temperature import vote_slope
from .distances import class_distances, soft_labels
from .base import most_probable

if TYPE_CHECKING:
    from ..nn.features import Features

__all__ = ["FitInputs", "Mixture", "Recovery", "RecoveryMethod", "State"]


class FitInputs(NamedTuple):
    """What a method is fitted to, in addition to the features."""

    label: Integers  # (item)
    n_classes: int
    annotations: Annotations | None  # for oracles; items in the order of the features
    seed: int
    progress: Progress | None = None
    folder: Path | None = None  # for checkpoints of long trainings
    soft_labels: Floats | None = None  # (label, class): what a label teaches; one-hot by default


class Recovery(ABC):
    """A fitted recovery method."""

    temperature: float = 1.0
    distance: Floats | None = None  # (class, class)
    held_out_proba: Floats | None = None  # (item, class): of the items of `fit`, NaN where unknown

    @abstractmethod
    def members(self, features: Features) -> Floats:
        """Return the probabilities of every member: (member, item, class)."""

    @abstractmethod
    def state(self) -> State:
        """Return what has to be saved."""

    def mean_proba(self, features: Features) -> Floats:
        """Return the probabilities of all members together, before the temperature."""
        return self.members(features).mean(axis=0)

    def predict_proba(self, features: Features) -> Floats:
        """Return the recovered distribution: (item, class)."""
        p = self.mean_proba(features)
        return temper(p, np.full(len(p), self.temperature))

    def votes(self, features: Features) -> Floats:
        """Return the share of members for every class: (item, class)."""
        return most_probable(self.members(features)).mean(axis=0)

    def predict(self, features: Features) -> Integers:
        """Return the most probable class, or that of least expected distance: (item)."""
        p = self.predict_proba(features)
        return p.argmax(axis=1) if self.distance is None else (p @ self.distance).argmin(axis=1)

    def calibrate(self, label: Array, item: Array | None = None) -> None:
        """Set the temperature by labels of held-out items, if there are any.

        Parameters
        ----------
        label
            Class codes: (item), or (annotation).
        item
            The item of every annotation, where an item may have several.
        """
        assert self.held_out_proba is not None
        item = np.arange(len(label)) if item is None else item
        known = ~np.isnan(self.held_out_proba[:, 0])  # (item)
        if known.any():
            used = known[item]
            p = self.held_out_proba[item[used]]
            self.temperature = fit_temperature(p, label[used].astype(np.int64))
            self.held_out_proba = self.held_out_proba.copy()
            self.held_out_proba[known] = temper(
                self.held_out_proba[known], np.full(known.sum(), self.temperature)
            )


class Mixture(Recovery):
    """A weighted mixture of recoveries; the members of all are its members.

    Parts in `without_members`, such as a constant, only enter the mean.
    """

    def __init__(
        self, parts: Mapping[str, Recovery], weight: Floats, without_members: tuple[str, ...] = ()
    ) -> None:
        self.parts, self.weight, self.without_members = dict(parts), weight, without_members

    def members(self, features: Features) -> Floats:
        return np.concatenate([
            part.members(features)
            for name, part in self.parts.items()
            if name not in self.without_members
        ])  # fmt: skip

    def mean_proba(self, features: Features) -> Floats:
        each = np.stack([part.predict_proba(features) for part in self.parts.values()])
        return np.einsum("p,pik->ik", self.weight, each)

    @classmethod
    def restored(
        cls,
        state: State,
        restore: Callable[[str, State], Recovery],
        without_members: tuple[str, ...] = (),
    ) -> Self:
        """Return a mixture from its state; `restore` takes the name and the state of a part."""
        weight = state.notes["weight"]
        parts = {name: restore(name, state.part(name)) for name in weight}
        for name, temperature in state.notes.get("temperature", {}).items():
            parts[name].temperature = temperature
        return cls(parts, np.array(list(weight.values())), without_members)

    def state(self) -> State:
        notes = {
            "weight": dict(zip(self.parts, self.weight.tolist(), strict=True)),
            "temperature": {name: part.temperature for name, part in self.parts.items()},
        }
        return State.join(notes, **{name: part.state() for name, part in self.parts.items()})


@dataclass(frozen=True, kw_only=True)
class RecoveryMethod(Settings, ABC):
    """A method that recovers label distributions.

    Parameters
    ----------
    flatten
        Power of the vote-count slope by which logits are divided where `vote_count` is known;
        0 leaves them unchanged.
    """

    needs: ClassVar[tuple[str, ...]] = ("vectors",)  # features that it cannot do without
    oracle: ClassVar[bool] = False  # whether it sees the annotations

    flatten: NonNegative = 0.0

    @property
    def uses(self) -> tuple[str, ...]:
        """Features that it uses where there are any."""
        return ()

    def fit(
        self,
        features: Features,
        label: ArrayLike,
        *,
        n_classes: int | None = None,
        vote_count: ArrayLike | None = None,
        annotations: Annotations | None = None,
        distance: str | ArrayLike | None = None,
        seed: int = 0,
        progress: Progress | None = None,
        folder: Path | None = None,
    ) -> Recovery:
        """Fit to inputs with one label each.

        Parameters
        ----------
        features
            Of the inputs.
        label
            Class codes: (item).
        n_classes
            Number of classes; by default as many as occur.
        vote_count
            Number of votes behind a label, for all items or for each.
        annotations
            For oracles.
        distance
            Distances between classes: `linear`, `circle`, or a matrix (class, class).
        seed
            Random seed.
        progress
            Called with steps done, steps in total and a message.
        folder
            For checkpoints, from which an interrupted training resumes.
        """
        codes = np.asarray(label, dtype=np.int64)
        if codes.shape != (len(features),):
            raise DataError(f"{len(features)} inputs, but labels of the shape {codes.shape}")
        if not len(codes):
            raise DataError("no items to learn from")
        size = int(codes.max()) + 1 if n_classes is None else n_classes
        if codes.min() < 0 or codes.max() >= size:
            raise DataError(f"a label has the code {codes.max()}, but there are {size} classes")
        for part in self.needs:
            if part not in features.parts:
                raise OptionError(f"this method needs {part} of the inputs")
        if self.oracle and annotations is None:
            raise OptionError("an oracle learns from annotations; give annotations=…")
        if annotations is not None:
            shape = annotations.n_items, annotations.n_classes
            if shape != (len(codes), size):
                raise DataError(
                    f"annotations on {shape[0]} items in {shape[1]} classes, "
                    f"but {len(codes)} items in {size} classes"
                )
        apart = None if distance is None else class_distances(distance, size)
        soft = None if apart is None else soft_labels(apart)
        context = FitInputs(codes, size, annotations, seed, progress, folder, soft)
        with one_blas_thread():
            recovery = self._fit(features, context)
        recovery.distance = apart
        if vote_count is not None and self.flatten:
            recovery.temperature *= vote_slope(vote_count) ** self.flatten
        return recovery

    @abstractmethod
    def _fit(self, features: Features, context: FitInputs) -> Recovery:
        """Return the fitted recovery."""

    @abstractmethod
    def restore(self, state: State) -> Recovery:
        """Return a recovery from its state."""
