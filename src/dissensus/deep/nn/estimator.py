"""The contract of every estimator that learns from inputs and annotations.

    class MyEstimator(Estimator):
        nested = {"training": Training(epochs=20)}  # settings that are dataclasses, with defaults

        def __init__(self, method="…", *, encoder="auto", classes=None, training=None, seed=0): …

        def fit(self, X, y, *, folder=None, resume=False, progress=None):
            inputs = self._inputs(X, fitting=True)
            annotations = self._annotations(y, inputs)
            …
            self.model_ = …
            return self

        def predict_proba(self, X): …  # from self._inputs(X) and self.model_
        def _state(self): return State(notes, arrays)
        def _restore(self, state): self.model_ = …

- Settings are stored by `__init__` as given. `training` is a `Training` or None, which is the
  default in `nested`; `set_params(training__epochs=5)` replaces one field. `seed` takes the place
  of `training.seed`.
- `fit(X, y)` takes inputs (an array, a sparse matrix, texts, paths, `Inputs` or `Features`) and
  `Annotations`, a matrix (item, annotator) with -1 or NaN for unlabelled, or one label per item, in
  the order of the inputs; there, -1 is a class as any other. It sets `classes_`, `annotators_`,
  `kind_`, `shape_` and, last, `model_`.
- Labels come back in the dtype they came in: a matrix of integers gives integers, `Annotations`
  give texts.
- Inputs of another kind or shape than those of `fit` are a DataError, and so are missing numbers.
- Before `fit`, everything else raises scikit-learn's NotFittedError.
- `progress(done, total, message)` is the one signature of progress callbacks.
- `save(folder)` writes `model.json` and `weights.safetensors` at once or not at all; `load(folder)`
  gives an estimator with equal predictions and settings.

Networks over features begin with `Standardize`: mean zero and standard deviation one over the
training items.
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import asdict, fields, replace
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
import torch
from numpy.typing import ArrayLike
from safetensors.numpy import load_file, save_file
from scipy.sparse import issparse
from sklearn.base import BaseEstimator  # type: ignore[import-untyped]
from sklearn.utils import multiclass, validation  # type: ignore[import-untyped]
from sklearn.utils.validation import check_array, check_is_fitted  # type: ignore[import-untyped]
from torch import Tensor, nn

from ...answers.annotations import Annotations
from ...base.arrays import Array, Floats, Integers
from ...base.files import atomic_folder, read_folder_whole
from ...base.names import abbreviate, as_names, indices_of, text
from ...base.storage import State, damage, digest_of
from ...errors import DataError, DissensusError, OptionError
from ...method import Progress
from ...params import Settings
from .features import Features, features_of
from .inputs import Inputs, as_inputs
from .settings import Training

_FORMAT = 1
_MODEL, _WEIGHTS = "model.json", "weights.safetensors"


class Estimator(BaseEstimator, ABC):  # type: ignore[misc]
    """Base class of the estimators that learn from inputs and annotations."""

    encoder: Any
    seed: int
    nested: ClassVar[dict[str, Settings]] = {}  # settings that are dataclasses, with defaults
    classes_: Array  # in the dtype of the labels
    annotators_: Array  # names
    kind_: str  # of the inputs
    shape_: tuple[int, ...]  # of one input; empty for texts and files

    @abstractmethod
    def _state(self) -> State:
        """Return what was fitted, but classes, annotators and inputs."""

    @abstractmethod
    def _restore(self, state: State) -> None:
        """Set what was fitted; classes, annotators and inputs are there."""

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "model_")

    # Settings

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the settings by name; with `deep`, fields of nested ones as `training__epochs`."""
        params: dict[str, Any] = super().get_params(deep=False)
        if deep:
            for name in self.nested:
                inner = self._nested(name)
                if isinstance(inner, Settings):  # others `fit` will refuse
                    params |= {f"{name}__{f.name}": getattr(inner, f.name) for f in fields(inner)}
        return params

    def set_params(self, **params: Any) -> Self:
        """Set settings by name, or fields of nested ones as `training__epochs`."""
        inner: dict[str, dict[str, Any]] = {}
        for key in [key for key in params if key.partition("__")[0] in self.nested]:
            name, separator, field = key.partition("__")
            if separator:
                inner.setdefault(name, {})[field] = params.pop(key)
        super().set_params(**params)
        for name, changes in inner.items():
            unknown = set(changes) - {field.name for field in fields(self._nested(name))}
            if unknown:
                raise OptionError(f"{name} has no setting {unknown.pop()!r}")
            setattr(self, name, replace(self._nested(name), **changes))
        return self

    def _nested(self, name: str) -> Any:
        settings = getattr(self, name)
        return self.nested[name] if settings is None else settings

    def _training(self) -> Training:
        """Return how to train, with the estimator's random seed."""
        training = self._nested("training")
        if not isinstance(training, Training):
            raise OptionError(f"training is a {type(training).__name__}; it should be a Training")
        return replace(training, seed=self.seed)

    # Inputs and annotations

    def _inputs(self, X: Any, *, fitting: bool = False) -> Inputs:
        """Return inputs, which have to be of the kind and shape of those of `fit`."""
        if not fitting:
            check_is_fitted(self)
        if not isinstance(X, (Inputs, Tensor)) and _is_numeric(X):
            least = 1 if fitting else 0
            X = check_array(
                X,
                accept_sparse=True,
                allow_nd=True,
                ensure_all_finite=False,
                ensure_min_samples=least,
            )
        inputs = as_inputs(X)
        self._check_kind(inputs.description, inputs.shape, fitting=fitting)
        return inputs

    def _features(
        self, X: Any, *, fitting: bool = False, progress: Progress | None = None, **parts: bool
    ) -> Features:
        """Return features of inputs; `parts` are those of `features_of`."""
        if isinstance(X, Features):
            if fitting:
                self.kind_, self.shape_ = "features", ()
            return X
        inputs = self._inputs(X, fitting=fitting)
        return features_of(inputs, self.encoder, seed=self.seed, progress=progress, **parts)

    def _check_kind(self, kind: str, shape: tuple[int, ...], *, fitting: bool) -> None:
        if fitting:
            self.kind_, self.shape_ = kind, shape
            if len(shape) == 1:
                self.n_features_in_ = shape[0]
        elif self.kind_ != "features" and (kind != self.kind_ or not self._fits(shape)):
            if len(shape) == 1 and len(self.shape_) == 1:  # in scikit-learn's words
                raise DataError(
                    f"X has {shape[0]} features, but {type(self).__name__} is expecting "
                    f"{self.shape_[0]} features as input"
                )
            raise DataError(f"fitted to {self.kind_} {self.shape_ or ''}, not {kind} {shape or ''}")

    def _fits(self, shape: tuple[int, ...]) -> bool:
        """Return whether an input of this shape can be predicted."""
        return shape == self.shape_

    def _annotations(self, y: Annotations | ArrayLike, inputs: Inputs | Features) -> Annotations:
        """Return the annotations to fit to; sets `classes_` and `annotators_`."""
        classes = getattr(self, "classes", None)
        annotations, self.classes_ = labels_of(y, classes)
        self.annotators_ = annotations.annotators
        annotations.check_inputs(inputs)
        if not len(annotations):
            raise DataError("no annotations to learn from")
        return annotations

    def _recoded(self, y: Annotations | ArrayLike) -> Annotations:
        """Return annotations in the classes of `fit`; columns of a matrix are its annotators."""
        check_is_fitted(self)
        if isinstance(y, Annotations):
            return y.recode(self.classes_)
        return Annotations.from_matrix(y, classes=self.classes_, annotators=self.annotators_)

    def annotator_codes(self, annotators: ArrayLike | None) -> Integers:
        """Return the codes of annotators by name, of all by default."""
        check_is_fitted(self)
        if annotators is None:
            return np.arange(len(self.annotators_))
        names = as_names(np.atleast_1d(np.asarray(annotators)))
        codes = indices_of(names, self.annotators_)
        if (codes < 0).any():
            raise DataError(f"annotator {names[codes < 0][0]!r} gave no labels to learn from")
        return codes

    def _accuracy(self, X: Any, y: Any, sample_weight: ArrayLike | None = None) -> float:
        """Return the share of items whose label is predicted."""
        right = as_names(self.predict(X)) == as_names(np.asarray(y))
        weight = None if sample_weight is None else np.asarray(sample_weight, float)
        return float(np.average(right, weights=weight))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = tags.input_tags.three_d_array = True
        tags.target_tags.required = True
        return tags

    # Files

    def save(self, folder: str | Path) -> None:
        """Write the fitted estimator to a folder: JSON and safetensors."""
        check_is_fitted(self)
        if not isinstance(self.encoder, str):
            raise OptionError("a network given as encoder cannot be saved; name an encoder instead")
        folder = Path(folder).resolve()
        state = self._state()
        model = {
            "format": _FORMAT,
            "kind": type(self).__name__,
            "settings": {k: _plain(v) for k, v in self.get_params(deep=False).items()},
            **stored_classes(self.classes_),
            "annotators": self.annotators_.tolist() if hasattr(self, "annotators_") else None,
            "inputs": {"kind": self.kind_, "shape": list(self.shape_)},
            "notes": state.notes,
        }
        arrays = {name: np.array(value, order="C") for name, value in state.arrays.items()}
        with atomic_folder(folder, (_MODEL, _WEIGHTS)) as draft:
            save_file(arrays, draft / _WEIGHTS)
            model["digest"] = digest_of(draft / _WEIGHTS, model)
            (draft / _MODEL).write_text(json.dumps(model, indent=1), encoding="utf-8")

    @classmethod
    def load(cls, folder: str | Path) -> Self:
        """Return an estimator that `save` has written."""
        folder = Path(folder)
        if not all((folder / name).is_file() for name in (_MODEL, _WEIGHTS)):
            raise DataError(f"not a saved {cls.__name__}", where=str(folder))
        with damage(f"{folder}: a damaged {cls.__name__}", "; save it again"):
            return read_folder_whole(folder, lambda: cls._load(folder))

    @classmethod
    def _load(cls, folder: Path) -> Self:
        model = json.loads((folder / _MODEL).read_text(encoding="utf-8"))
        if model["kind"] != cls.__name__:
            kind = str(model["kind"])[:40]
            raise DataError(f"a saved {kind}, which {kind}.load reads", where=str(folder))
        if model["format"] != _FORMAT:
            raise DataError("written by another version; fit it again", where=str(folder))
        digest = model.pop("digest", None)  # earlier ones have none
        if digest not in (None, digest_of(folder / _WEIGHTS, model)):
            message = f"a damaged {cls.__name__}, changed since; save it again"
            raise DataError(message, where=str(folder))
        try:
            estimator = cls(**{k: cls._setting(k, v) for k, v in model["settings"].items()})
            estimator.classes_ = restored_classes(model)
            if model["annotators"] is not None:
                estimator.annotators_ = as_names(model["annotators"])
            inputs = model["inputs"]
            estimator._check_kind(inputs["kind"], tuple(inputs["shape"]), fitting=True)
            estimator._restore(State(model["notes"], load_file(folder / _WEIGHTS)))
        except DissensusError as problem:
            raise problem.at(str(folder)) from None
        return estimator

    @classmethod
    def _setting(cls, name: str, value: Any) -> Any:
        if name not in cls.nested or value is None:
            return value
        items = {k: tuple(v) if isinstance(v, list) else v for k, v in value.items()}
        return type(cls.nested[name])(**items)


def predicted_columns(
    classes: Array, probability: Floats, label: Array | None = None
) -> dict[str, Array]:
    """Return labels, by default the most probable, and the probability of every class: (…, class).

    >>> columns = predicted_columns(np.array(["cat", "dog"]), np.array([[0.75, 0.25]]))
    >>> {name: column.tolist() for name, column in columns.items()}
    {'label': ['cat'], 'confidence': [0.75], 'p:cat': [0.75], 'p:dog': [0.25]}
    """
    rows = probability.reshape(-1, len(classes))
    label = classes[rows.argmax(axis=1)] if label is None else label
    columns = {"label": label, "confidence": rows.max(axis=1)}
    return columns | class_columns(classes, rows)


def class_columns(classes: Array, values: Floats, prefix: str = "p") -> dict[str, Array]:
    """Return a column for every class, the last axis of the values."""
    return {f"{prefix}:{name}": values[..., k] for k, name in enumerate(classes.tolist())}


def stored_classes(classes: Array) -> dict[str, Any]:
    """Return classes and their dtype for JSON."""
    texts = classes.dtype.kind in "TUO"
    return {
        "classes": classes.tolist(),
        "dtype": classes.dtype.kind if texts else classes.dtype.str,
    }


def restored_classes(stored: Mapping[str, Any]) -> Array:
    """Return classes that `stored_classes` has stored."""
    dtype, classes = stored["dtype"], stored["classes"]
    return as_names(classes) if dtype == "T" else np.array(classes, dtype)


def is_one_label(y: Any) -> bool:
    """Return whether there is one label per item, not a matrix of labels or annotations."""
    return not isinstance(y, Annotations) and np.ndim(y) < 2


def labels_of(y: Annotations | ArrayLike, classes: Any = None) -> tuple[Annotations, Array]:
    """Return annotations, and their classes in the dtype of the labels."""
    if y is None:
        raise DataError("a classifier requires y to be passed, but the target y is None")
    if isinstance(y, Annotations):
        y.check_classes("a classifier")
        annotations = y if classes is None else y.recode(classes)
        return annotations, annotations.classes
    matrix = np.asarray(y)
    if matrix.ndim < 2:
        codes, values = class_codes(matrix, classes)
        return Annotations.from_labels(codes, as_names(values)), values
    annotations = Annotations.from_matrix(matrix, classes=classes)
    return annotations, _in_dtype_of(matrix, annotations.classes, classes)


def class_codes(y: ArrayLike, classes: Any = None) -> tuple[Integers, Array]:
    """Return one class code per item, and the classes in the dtype of the labels."""
    labels = validation.column_or_1d(y, warn=True)
    validation.assert_all_finite(labels, input_name="y")
    multiclass.check_classification_targets(labels)
    unique, codes = np.unique(labels, return_inverse=True)
    if classes is None:
        return codes, unique
    code = {label: index for index, label in enumerate(np.asarray(classes).tolist())}
    missing = [label for label in unique.tolist() if label not in code]
    if missing:
        names = abbreviate(np.asarray(classes).astype(str))
        raise DataError(f"label {missing[0]!r} is not among the classes {names}")
    return np.array([code[label] for label in unique.tolist()])[codes], np.asarray(classes)


def _plain(value: Any) -> Any:
    """Return a setting as JSON can hold it."""
    if isinstance(value, Settings):
        return asdict(value)
    return np.asarray(value).tolist() if isinstance(value, (np.ndarray, range)) else value


def _in_dtype_of(labels: Array, names: Array, classes: Any) -> Array:
    """Return classes in the dtype of the labels."""
    if labels.dtype.kind in "TU":
        return names if labels.dtype.kind == "T" else np.array(names.tolist())
    values = {text(label): label for label in ([] if classes is None else classes)}
    unique = labels.flat if labels.dtype.kind == "O" else np.unique(labels).tolist()
    values |= {text(label): label for label in unique}
    try:
        dtype = labels.dtype if labels.dtype.kind in "biuf" else None
        return np.array([values[name] for name in names.tolist()], dtype=dtype)
    except ValueError:  # classes that are no numbers
        return names


def _is_numeric(X: Any) -> bool:
    """Return whether inputs are numbers, or should be: then scikit-learn checks them."""
    if isinstance(X, (list, tuple)) and X and isinstance(X[0], (str, Path)):
        return False
    if isinstance(X, Mapping) and not issparse(X):  # of inputs by name
        return False
    kind = getattr(getattr(X, "dtype", None), "kind", None)
    if kind == "O":
        return not all(isinstance(value, str) for value in np.ravel(X))
    return kind not in ("U", "T")


def standardization(vectors: Tensor) -> tuple[Tensor, Tensor]:
    """Return the mean and one over the standard deviation, 0 for constant features.

    >>> standardization(torch.tensor([[1.0, 5.0], [3.0, 5.0]]))
    (tensor([2., 5.]), tensor([1., 0.]))
    """
    std = vectors.std(dim=0, unbiased=False)
    return vectors.mean(dim=0), torch.where(std > 1e-6, 1 / std.clamp(min=1e-6), 0.0)


class Standardize(nn.Module):
    """Scale features to mean zero and standard deviation one over the training items."""

    mean: Tensor  # (feature)
    scale: Tensor  # (feature)

    def __init__(self, n_features: int) -> None:
        super().__init__()
        self.register_buffer("mean", torch.zeros(n_features))
        self.register_buffer("scale", torch.ones(n_features))

    def fit(self, x: Tensor) -> None:
        """Estimate mean and scale from rows (row, feature), in double precision."""
        mean, scale = standardization(x.double())
        self.mean.copy_(mean)
        self.scale.copy_(scale)

    def forward(self, x: Tensor) -> Tensor:
        """Return scaled features: (…, feature)."""
        return (x - self.mean) * self.scale
