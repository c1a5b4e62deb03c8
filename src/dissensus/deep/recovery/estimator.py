"""Recovery of label distributions as a scikit-learn estimator.

    DistributionRecovery().fit(texts, labels, vote_count=5).predict_proba(texts)
    DistributionRecovery("seedbert", n_members=5).fit(texts, labels).predict_votes(texts)

Inputs are an array of features, a list of texts, or a list of image files.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import ClassifierMixin  # type: ignore[import-untyped]
from sklearn.utils.validation import check_consistent_length  # type: ignore[import-untyped]

from ...base.names import as_names, numbered
from ...base.progress import Progress
from ...base.arrays import Array, Floats
from ...base.storage import State
from ...answers.annotations import Annotations
from ...errors import DataError, MethodError
from ...metrics import ranks
from ..nn import Estimator, Features
from ..nn.estimator import class_codes
from ...registry import recoverers
from .cross_validation import majority
from .distances import class_distances
from .method import Recovery, RecoveryMethod


class DistributionRecovery(ClassifierMixin, Estimator):  # type: ignore[misc]
    """Label distributions, learned from one aggregated label per item.

    Parameters
    ----------
    method
        Recovery method as the registry writes it: `name[setting=value,…]`.
    encoder
        Name of the encoder; `auto` takes features as they are and chooses one for texts and
        images.
    n_members
        Number of members, for methods that have members; by default that of the method.
    classes
        All classes, in order; by default those that occur.
    distance
        Distances between classes, where some are closer than others: `linear` for ordered classes,
        `circle` for emotions in the order of `classes`, or a matrix (class, class). `None` is
        linear for annotations on an ordinal scale, and none otherwise.
    seed
        Random seed.

    Examples
    --------
    >>> x = np.repeat(np.eye(2), 20, axis=0)
    >>> y = ["yes"] * 18 + ["no"] * 22
    >>> model = DistributionRecovery("kernel-ridge").fit(x, y)
    >>> model.predict(np.eye(2)).tolist(), model.predict_proba(np.eye(2)).argmax(axis=1).tolist()
    (['yes', 'no'], [1, 0])
    """

    model_: Recovery
    marginal_: Floats  # (class): of the labels

    def __init__(
        self,
        method: str = "auto",
        *,
        encoder: str = "auto",
        n_members: int | None = None,
        classes: Any = None,
        distance: Any = None,
        seed: int = 0,
    ) -> None:
        self.method = method
        self.encoder = encoder
        self.n_members = n_members
        self.classes = classes
        self.distance = distance
        self.seed = seed

    def fit(
        self,
        X: Any,
        y: Annotations | ArrayLike,
        *,
        vote_count: ArrayLike | None = None,
        annotations: Annotations | None = None,
        folder: str | Path | None = None,
        progress: Progress | None = None,
    ) -> Self:
        """Fit to inputs and one label each.

        Parameters
        ----------
        X
            Inputs: (item, …).
        y
            Labels: (item). Of annotations, or a matrix (item, annotator), methods see the majority
            label and the number of votes, and oracles everything.
        vote_count
            Number of votes behind a label, where it is known.
        annotations
            For oracles, where `y` is one label per item; items in the order of the inputs.
        folder
            For checkpoints, from which an interrupted training resumes.
        progress
            Called with steps done, steps in total and a message.
        """
        method = self._method()
        features = self._features(X, fitting=True, progress=progress, **_parts(method))
        distance = self.distance
        if distance is None and isinstance(y, Annotations) and y.scale == "ordinal":
            distance = "linear"
        y = y if isinstance(y, Annotations) else np.asarray(y)
        if isinstance(y, Annotations) or (y.ndim == 2 and y.shape[1] > 1):
            annotations = self._annotations(y, features)
            if not annotations.labels_per_item.all():
                raise DataError("some items have no annotations; leave them out")
            label = majority(annotations.votes(), self.seed)
            vote_count = annotations.labels_per_item if vote_count is None else vote_count
        else:
            label, self.classes_ = class_codes(y, self.classes)
            check_consistent_length(features, label)
            self.annotators_ = numbered(1)
            annotations = None if annotations is None else annotations.recode(self.classes_)
        self.marginal_ = np.bincount(label, minlength=len(self.classes_)) / len(label)
        self.model_ = method.fit(
            features,
            label,
            n_classes=len(self.classes_),
            vote_count=vote_count,
            annotations=annotations,
            distance=self._distances(distance),
            seed=self.seed,
            progress=progress,
            folder=None if folder is None else Path(folder),
        )
        return self

    def features(self, X: Any) -> Features:
        """Return the features of inputs, which all predictions take in place of the inputs."""
        return self._features(X, progress=None, **_parts(self._method()))

    def predict_proba(self, X: Any) -> Floats:
        """Return the recovered label distributions: (item, class)."""
        features = self.features(X)
        return self.model_.predict_proba(features)

    def predict(self, X: Any) -> Array:
        """Return the label of the majority, or that with the least expected distance."""
        features = self.features(X)
        return self.classes_[self.model_.predict(features)]

    def predict_votes(self, X: Any) -> Floats:
        """Return the share of members for every class: (item, class)."""
        features = self.features(X)
        return self.model_.votes(features)

    def members_predict_proba(self, X: Any) -> Floats:
        """Return the probabilities of every member: (member, item, class)."""
        features = self.features(X)
        return self.model_.members(features)

    def members_predict(self, X: Any) -> Array:
        """Return the label of every member: (member, item)."""
        label = self.members_predict_proba(X).argmax(axis=2)
        return self.classes_[label]

    def _state(self) -> State:
        notes, arrays = self.model_.state()
        distance = self.model_.distance
        known = {
            "temperature": self.model_.temperature,
            "marginal": self.marginal_.tolist(),
            "distance": None if distance is None else distance.tolist(),
        }
        return State({**known, "model": notes}, arrays)

    def _restore(self, state: State) -> None:
        self.marginal_ = np.array(state.notes["marginal"])
        self.model_ = self._method().restore(State(state.notes["model"], state.arrays))
        self.model_.temperature = state.notes["temperature"]
        distance = state.notes.get("distance")
        self.model_.distance = None if distance is None else np.array(distance)

    def _distances(self, given: Any) -> Any:
        """Return distances in the order of `classes_`; numbers are ordered by value."""
        if not isinstance(given, str) or given != "linear":
            return given
        rank = ranks(as_names(self.classes_.tolist()))
        return class_distances(given, len(rank))[np.ix_(rank, rank)]

    def _method(self) -> RecoveryMethod:
        method = recoverers.create(self.method)
        if self.n_members is None:
            return method
        for name in ("n", "passes", "draws"):
            if hasattr(method, name):
                return replace(method, **{name: self.n_members})
        raise MethodError(f"{self.method} has no members to have {self.n_members} of")


def _parts(method: RecoveryMethod) -> dict[str, bool]:
    """Return which features a method takes."""
    return {part: part in method.needs + method.uses for part in ("vectors", "tokens", "raw")}
