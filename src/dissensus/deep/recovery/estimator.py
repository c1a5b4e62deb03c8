"""Recovery of label distributions as a scikit-learn estimator, and its default method.

    DistributionRecovery().fit(texts, labels, vote_count=5).predict_proba(texts)
    DistributionRecovery("seedbert", n_members=5).fit(texts, labels).predict_votes(texts)

Inputs are an array of features, a list of texts, or a list of image files. Without a method it is
`auto`: several methods of this room, mixed by their held-out likelihood.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any, Self

import numpy as np
from annotated_types import Ge
from numpy.typing import ArrayLike
from sklearn.base import ClassifierMixin  # type: ignore[import-untyped]
from sklearn.utils.validation import check_consistent_length  # type: ignore[import-untyped]

from ...answers.annotations import Annotations
from ...base.arrays import Array, Floats
from ...base.names import Names, as_names, numbered
from ...base.probability import added_weight, fit_temperature, mixture_weights
from ...base.progress import out_of_time, share_of_time
from ...base.storage import State
from ...errors import DataError, MethodError
from ...method import Progress
from ...metrics import ranks
from ...params import Count, NonNegative
from ...registry import recoverers
from ..nn import Estimator, Features
from ..nn.estimator import class_codes, class_columns, predicted_columns
from .base import FitInputs, Mixture, Recovery, RecoveryMethod, class_distances
from .baselines import KernelRidge, Marginal
from .cross_validation import majority
from .heads import AttentionHeads, EnsembleOfHeads
from .seedbert import SeedBert

_EPOCHS, _PATIENCE = 12, 2  # of heads, which peak after a few epochs where items are many
_COST = {"marginal": 0, "ridge": 0, "heads": 2, "attention": 3, "tuned": 15}  # relative times
_WITHOUT_MEMBERS = ("marginal",)


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

    def prediction_columns(self, X: Any, items: Names, *, votes: bool = False) -> dict[str, Array]:
        """Return recovered distributions with a row for every item, and the votes of members."""
        label = as_names(self.predict(X).tolist())
        columns = {"item": items} | predicted_columns(self.classes_, self.predict_proba(X), label)
        if votes:
            columns |= class_columns(self.classes_, self.predict_votes(X), "v")
        return columns

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
        fitted = {
            "temperature": self.model_.temperature,
            "marginal": self.marginal_.tolist(),
            "distance": None if distance is None else distance.tolist(),
        }
        return State({**fitted, "model": notes}, arrays)

    def _restore(self, state: State) -> None:
        self.marginal_ = np.array(state.notes["marginal"])
        self.model_ = self._method().restore(State(state.notes["model"], state.arrays))
        self.model_.temperature = state.notes["temperature"]
        distance = state.notes.get("distance")
        self.model_.distance = None if distance is None else np.array(distance)

    def _distances(self, distance: Any) -> Any:
        """Return distances in the order of `classes_`; numbers are ordered by value."""
        if not isinstance(distance, str) or distance != "linear":
            return distance
        rank = ranks(as_names(self.classes_.tolist()))
        return class_distances(distance, len(rank))[np.ix_(rank, rank)]

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


@dataclass(frozen=True, kw_only=True)
class Auto(RecoveryMethod):
    """Heads, attention heads and kernel ridge, mixed by their held-out likelihood.

    The default: a mixture by held-out likelihood, flattened by the number of votes.

    Several kinds of members are trained, all from one label per item:

    - n heads on one vector per item, each without another part of the items
      (`heads[sample=folds]`);
    - five heads with their own attention over words or patches, where there are token features;
    - kernel ridge on one-hot labels, the mean of a Gaussian process;
    - on request, copies of a text encoder whose last two layers are tuned, each without another
      part of the items (`seedbert[mode=folds,layers=2]`): much slower, and better on most sets
      measured.

    Each has probabilities of held-out labels: the networks by their folds, kernel ridge in closed
    form. The mixture is the one with the highest likelihood of these labels, with the label
    marginal as one more component, so that uninformative inputs lead to a constant. Tuned copies
    come last, with a temperature of their own, since they are overconfident: their weight is set
    against this mixture, and is zero unless the likelihood of the labels that they hold out rises.
    The temperature is set by the same labels; where the number of votes behind a label is known,
    logits are then divided by the vote-count slope to the power `flatten`.

    Nothing here makes members differ as people do. The result is a well-calibrated probability of
    the majority, a little flatter. On six sets that was as close to people as an oracle that learns
    from all annotations, and still far from people asked again (benchmarks/deep/recovering.json).

        p(x) = softmax(log Σ_m weight[m] p_m(x) / temperature / slope(vote_count)**flatten)

    When it fails: Where inputs say nothing about the class it returns one distribution for all. On
    which items people disagree is predicted poorly, also by oracles on the same features.

    Parameters
    ----------
    n
        Number of heads.
    pools
        Number of attention heads, where there are token features.
    steps
        Minimum number of steps of the heads; attention heads take half as many.
    tuned
        Number of copies of a text encoder whose last two layers are tuned; 0 for none. A copy takes
        about 40 processor seconds for 1000 short texts, 60 for longer ones.
    """

    flatten: NonNegative = 0.375
    n: Count = 10
    pools: Count = 5
    steps: Count = 600
    tuned: Annotated[int, Ge(0)] = 0

    @property
    def uses(self) -> tuple[str, ...]:
        return ("tokens", "raw") if self.tuned else ("tokens",)

    def _parts(self) -> dict[str, RecoveryMethod]:
        return {
            "marginal": Marginal(),
            "ridge": KernelRidge(),
            "heads": EnsembleOfHeads(
                n=self.n, sample="folds", steps=self.steps, epochs=_EPOCHS, patience=_PATIENCE
            ),
            "attention": AttentionHeads(n=self.pools, steps=-(-self.steps // 2)),
            "tuned": SeedBert(
                n=max(self.tuned, 1),
                mode="folds",
                layers=2,
                epochs=5,
                lr=1e-4,
                head_lr=1e-3,
                scheduler="warmup-cosine",
            ),
        }

    def _fit(self, features: Features, context: FitInputs) -> Mixture:
        methods = self._parts()
        if features.tokens is None or np.shape(features.tokens.mask)[1] < 2:
            del methods["attention"]
        if not self.tuned:
            del methods["tuned"]
        parts: dict[str, Any] = {}
        for name, method in methods.items():
            if not _COST[name]:
                parts[name] = method._fit(features, context)
            elif not out_of_time():
                costs = [_COST[unfitted] for unfitted in methods if unfitted not in parts]
                with share_of_time(_COST[name] / sum(costs)):
                    parts[name] = method._fit(features, context)
        return self._mixed(parts, context)

    def _mixed(self, parts: dict[str, Any], context: FitInputs) -> Mixture:
        """Return the mixture of the parts, with tuned copies only if they pay."""
        tuned = parts.pop("tuned", None)
        held_out = np.stack([part.held_out_proba for part in parts.values()])  # (part, item, class)
        predicted = ~np.isnan(held_out).any(axis=(0, 2))
        held_out, label = held_out[:, predicted], context.label[predicted]
        weight = mixture_weights(held_out[:, np.arange(len(label)), label])
        mean = np.einsum("p,pik->ik", weight, held_out)
        if tuned is not None:
            added = tuned.held_out_proba[predicted]
            rows = np.flatnonzero(~np.isnan(added).any(axis=1))
            likelihood = np.stack([mean[rows, label[rows]], added[rows, label[rows]]])
            share = added_weight(likelihood)
            if share:
                parts["tuned"], weight = tuned, np.append((1 - share) * weight, share)
                mean[rows] += share * (added[rows] - mean[rows])
        mixture = Mixture(parts, weight, _WITHOUT_MEMBERS)
        if context.n_classes > 1:
            mixture.temperature = fit_temperature(mean, label)
        return mixture

    def restore(self, state: State) -> Mixture:
        methods = self._parts()
        return Mixture.restored(
            state, lambda name, part: methods[name].restore(part), _WITHOUT_MEMBERS
        )
