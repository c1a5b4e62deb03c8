"""The scikit-learn face of recovery.

    DistributionRecovery().fit(texts, labels, vote_count=5).predict_proba(texts)
    DistributionRecovery("seedbert", n_members=5).fit(texts, labels).predict_votes(texts)

Inputs are an array of features, a list of texts, or a list of image files; labels are one per item.
"""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from safetensors import SafetensorError
from safetensors.numpy import load_file, save_file
from sklearn.base import BaseEstimator, ClassifierMixin  # type: ignore[import-untyped]
from sklearn.utils.multiclass import check_classification_targets  # type: ignore[import-untyped]
from sklearn.utils.validation import (  # type: ignore[import-untyped]
    assert_all_finite,
    check_array,
    check_consistent_length,
    check_is_fitted,
    column_or_1d,
)

from .._files import atomic_folder
from .._relation import Array, Floats, abbreviate
from ..annotations import Annotations
from ..errors import DataError, MethodError
from ..nn.encoders import Encoder, encoder_for
from ..nn.inputs import Arrays, Inputs, as_inputs
from ..registry import recoverers
from ._base import Kept, People, Progress, Recovery, RecoveryMethod, Views
from ._flattening import likeliest_temperature
from ._nets.features import views_of

__all__ = ["DistributionRecovery"]

_FORMAT = 1


class DistributionRecovery(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """How people would have split, learned from one aggregated label per item.

    Parameters
    ----------
    method
        How to recover, as the registry writes it: `name[setting=value,…]`.
    encoder
        What turns inputs into vectors, by name; `auto` takes features as they are and finds one
        that fits texts and images.
    n_members
        How many members, for methods that have them; by default as many as the method has.
    classes
        All classes, in order; by default those that occur.
    seed
        Decides what is random.

    Examples
    --------
    >>> x = np.repeat(np.eye(2), 20, axis=0)
    >>> y = ["yes"] * 18 + ["no"] * 22
    >>> made = DistributionRecovery("kernel-ridge").fit(x, y)
    >>> made.predict(np.eye(2)).tolist(), made.predict_proba(np.eye(2)).argmax(axis=1).tolist()
    (['yes', 'no'], [1, 0])
    """

    def __init__(
        self,
        method: str = "auto",
        *,
        encoder: str = "auto",
        n_members: int | None = None,
        classes: Any = None,
        seed: int = 0,
    ) -> None:
        self.method = method
        self.encoder = encoder
        self.n_members = n_members
        self.classes = classes
        self.seed = seed

    def fit(
        self,
        X: Any,  # noqa: N803
        y: ArrayLike,
        *,
        vote_count: ArrayLike | None = None,
        annotations: Annotations | None = None,
        people: People | None = None,
        folder: str | Path | None = None,
        progress: Progress | None = None,
    ) -> Self:
        """Learn from inputs and one label each.

        Parameters
        ----------
        X
            Inputs: (item, …).
        y
            Labels: (item).
        vote_count
            How many people stand behind a label, where that is known.
        annotations
            For oracles: who said what, items in the order of the inputs.
        people
            What is known of people, for the method `people`.
        folder
            Where long trainings keep checkpoints; what is there is gone on from.
        progress
            Called with steps done, steps in all, and how it goes.
        """
        method = self._method()
        inputs = self._inputs(X, fitting=True)
        labels = column_or_1d(np.asarray(y), warn=True)
        assert_all_finite(labels, input_name="y")
        check_classification_targets(labels)
        check_consistent_length(inputs, labels)
        self.classes_, code = _coded(labels, self.classes)
        self.encoder_: Encoder = encoder_for(self.encoder, inputs, seed=self.seed)
        self.marginal_: Floats = np.bincount(code, minlength=len(self.classes_)) / len(code)
        annotations = None if annotations is None else annotations.recode(self.classes_)
        self.recovery_: Recovery = method.fit(
            views_of(self.encoder_, inputs, (*method.needs, *method.likes)),
            code,
            n_classes=len(self.classes_),
            vote_count=vote_count,
            annotations=annotations,
            seed=self.seed,
            progress=progress,
            people=people,
            folder=None if folder is None else Path(folder),
        )
        return self

    def calibrate(self, X: Any, annotations: Annotations) -> Self:  # noqa: N803
        """Set the temperature by some items on which everybody's labels are known.

        A few hundred of them tell more than a rule by the number of votes; thirty do not.

        Parameters
        ----------
        X
            Inputs of these items.
        annotations
            Who said what, items in the same order.
        """
        check_is_fitted(self, "recovery_")
        votes = annotations.recode(self.classes_).votes()
        posterior = self.recovery_.mixed(self.views(X))
        if len(votes) != len(posterior):
            raise DataError(f"{len(posterior)} inputs, but annotations on {len(votes)} items")
        self.recovery_.temperature = likeliest_temperature(posterior, votes)
        return self

    def predict_proba(self, X: Any) -> Floats:  # noqa: N803
        """Return how people would split: (item, class)."""
        return self._asked(X, "proba")

    def predict_votes(self, X: Any) -> Floats:  # noqa: N803
        """Return the share of members for every class: (item, class)."""
        return self._asked(X, "votes")

    def members_predict_proba(self, X: Any) -> Floats:  # noqa: N803
        """Return what every member believes: (member, item, class)."""
        return self._asked(X, "members")

    def members_predict(self, X: Any) -> Array:  # noqa: N803
        """Return the label of every member: (member, item)."""
        posterior = self.members_predict_proba(X)
        return self.classes_[posterior.argmax(axis=2)]

    def predict(self, X: Any) -> Array:  # noqa: N803
        """Return the label that most people would give."""
        code = self._asked(X, "chosen")
        return self.classes_[code]

    def save(self, folder: str | Path) -> None:
        """Write it to a folder: weights as safetensors, the rest as JSON."""
        check_is_fitted(self, "recovery_")
        kept = self.recovery_.kept()
        told = {
            "format": _FORMAT,
            "settings": self.get_params() | {"classes": None},
            "classes": self.classes_.tolist(),
            "marginal": self.marginal_.tolist(),
            "temperature": self.recovery_.temperature,
            "kind": self.kind_,
            "shape": list(self.shape_),
            "notes": kept.notes,
        }
        target = Path(folder)
        if target.exists() and any(target.iterdir()) and not (target / "recovery.json").exists():
            raise DataError(f"{folder}: holds something else; name a new folder")
        with atomic_folder(target) as draft:
            arrays = {name: np.ascontiguousarray(value) for name, value in kept.arrays.items()}
            save_file(arrays, draft / "recovery.safetensors")
            (draft / "recovery.json").write_text(json.dumps(told, indent=1), encoding="utf-8")

    @classmethod
    def load(cls, folder: str | Path) -> Self:
        """Return what `save` has written."""
        folder = Path(folder)
        try:
            told = json.loads((folder / "recovery.json").read_text(encoding="utf-8"))
            arrays = load_file(folder / "recovery.safetensors")
            if told["format"] != _FORMAT:
                raise DataError(f"{folder}: written by another version; update dissensus")
            made = cls(**told["settings"])
            made.classes_ = np.array(told["classes"])
            made.marginal_ = np.array(told["marginal"])
            made.kind_, made.shape_ = told["kind"], tuple(told["shape"])
            made.recovery_ = made._method().restore(Kept(told["notes"], arrays))
            made.recovery_.temperature = told["temperature"]
        except DataError:
            raise
        except (OSError, ValueError, KeyError, TypeError, SafetensorError) as problem:
            raise DataError(f"{folder}: not a saved recovery ({problem})") from None
        if len(made.shape_) == 1:
            made.n_features_in_ = made.shape_[0]
        return made

    def views(self, X: Any) -> Views:  # noqa: N803
        """Return inputs as the method sees them."""
        method, inputs = self._method(), self._inputs(X)
        if not hasattr(self, "encoder_"):  # loaded: made when there is something to encode
            self.encoder_ = encoder_for(self.encoder, inputs, seed=self.seed)
        return views_of(self.encoder_, inputs, (*method.needs, *method.likes))

    def _asked(self, given: Any, question: str) -> Any:
        check_is_fitted(self, "recovery_")
        return getattr(self.recovery_, question)(self.views(given))

    def _method(self) -> RecoveryMethod:
        method = recoverers.create(self.method)
        if self.n_members is None:
            return method
        for name in ("n", "passes", "draws"):
            if hasattr(method, name):
                return replace(method, **{name: self.n_members})
        raise MethodError(f"{self.method} has no members to have {self.n_members} of")

    def _inputs(self, given: Any, *, fitting: bool = False) -> Inputs:
        """Return inputs that are of the kind that was learned from."""
        if not isinstance(given, Inputs) and _numeric(given):
            given = check_array(given, dtype=np.float32, allow_nd=True)
        inputs = as_inputs(given)
        shape = tuple(inputs.values.shape[1:]) if isinstance(inputs, Arrays) else ()
        if fitting:
            self.kind_, self.shape_ = inputs.kind, shape
            if len(shape) == 1:
                self.n_features_in_ = shape[0]
        elif (inputs.kind, shape) != (self.kind_, self.shape_):
            if len(shape) == 1 and len(self.shape_) == 1:  # in the words of scikit-learn
                raise DataError(
                    f"X has {shape[0]} features, but {type(self).__name__} is expecting "
                    f"{self.shape_[0]} features as input"
                )
            raise DataError(f"learned from {self.kind_} {self.shape_}, not {inputs.kind} {shape}")
        return inputs


def _numeric(given: Any) -> bool:
    """Return whether inputs are numbers, or should be: then scikit-learn checks them."""
    if isinstance(given, (list, tuple)) and given and isinstance(given[0], (str, Path)):
        return False
    kind = getattr(getattr(given, "dtype", None), "kind", None)
    if kind == "O":
        return not all(isinstance(each, str) for each in np.ravel(given))
    return kind not in ("U", "T")


def _coded(labels: Array, classes: Any) -> tuple[Array, Array]:
    """Return the classes, and the place of every label among them."""
    found, code = np.unique(labels, return_inverse=True)
    if classes is None:
        return found, code
    known = np.asarray(classes)
    position = {each: at for at, each in enumerate(known.tolist())}
    for each in found.tolist():
        if each not in position:
            raise DataError(
                f"label {each!r} is not among the classes {abbreviate(known.astype(str))}"
            )
    return known, np.array([position[each] for each in found.tolist()])[code]
