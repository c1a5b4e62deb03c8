"""The scikit-learn face of models of annotators.

    TendencyClassifier().fit(texts, annotations).predict_annotator_proba(new_texts)

Items of the inputs and of the annotations are in the same order. Annotations may also be a matrix
(item, annotator) with -1 or NaN where nobody spoke.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator  # type: ignore[import-untyped]
from sklearn.utils.validation import check_is_fitted  # type: ignore[import-untyped]

from .._files import atomic_folder
from .._names import as_names, text
from .._relation import Array, Floats, Integers, indices_of
from ..annotations import Annotations
from ..errors import DataError
from ..registry import tendencies
from ._base import Progress, State, Tendency, Views
from .jury import Verdict, jury
from .metadata import Metadata, Table
from .own_majority import habits
from .scores import TendencyScores, score, vote

__all__ = ["TendencyClassifier"]

_FORMAT = 1
_CELLS = 2**22


class TendencyClassifier(BaseEstimator):  # type: ignore[misc]
    """A model of what every annotator would say.

    Parameters
    ----------
    method
        How to learn, as the registry writes it: `name[setting=value,…]`.
    encoder
        What turns inputs into vectors, by name; `auto` takes numbers as they are and finds one
        that fits texts and images. It learns nothing here.
    classes
        All classes, in order; by default those of the annotations.
    seed
        Decides what is random.

    Examples
    --------
    >>> random = np.random.default_rng(0)
    >>> x = random.normal(size=(200, 2))
    >>> annotations = np.stack([x[:, 0] > 0, x[:, 1] > 0], axis=1).astype(int)  # (item, annotator)
    >>> made = TendencyClassifier("linear").fit(x, annotations)
    >>> made.predict_annotators([[2.0, -2.0], [-2.0, 2.0]]).tolist()
    [['1', '0'], ['0', '1']]
    """

    def __init__(
        self,
        method: str = "auto",
        *,
        encoder: str = "auto",
        classes: Any = None,
        seed: int = 0,
    ) -> None:
        self.method = method
        self.encoder = encoder
        self.classes = classes
        self.seed = seed

    def fit(
        self,
        X: Any,  # noqa: N803
        annotations: Annotations | ArrayLike,
        metadata: Table | None = None,
        *,
        folder: str | Path | None = None,
        resume: bool = False,
        progress: Progress | None = None,
        encoding: Progress | None = None,
    ) -> Self:
        """Learn from inputs and what annotators said of them.

        Parameters
        ----------
        X
            Inputs, one per item: texts, paths of images, an array, or views.
        annotations
            Who said what, items in the order of the inputs.
        metadata
            What is known of annotators: name → column → value.
        folder, resume
            Where networks keep checkpoints, and whether to go on from them.
        progress, encoding
            Told how the fit goes, and how the encoder does before it.
        """
        method = tendencies.create(self.method)
        annotations = self._as_annotations(annotations)
        self.tokens_ = method.looks_at_tokens(annotations)
        views = self._views(X, encoding)
        self.metadata_ = None if metadata is None else Metadata.learn(metadata)
        self.known_: Table = {} if metadata is None else metadata
        known = None
        if self.metadata_ is not None and metadata is not None:
            known = self.metadata_.features(metadata, annotations.annotators.tolist())
        self.tendency_: Tendency = method.fit(
            views,
            annotations,
            metadata=known,
            seed=self.seed,
            progress=progress,
            folder=folder,
            resume=resume,
        )
        self.classes_, self.annotators_ = annotations.classes, annotations.annotators
        self.n_features_ = views.vectors.shape[1]
        self.habits_ = habits(annotations, 2.0)  # (annotator, class)
        return self

    def _as_annotations(self, annotations: Annotations | ArrayLike) -> Annotations:
        if isinstance(annotations, Annotations):
            return annotations if self.classes is None else annotations.recode(self.classes)
        return Annotations.from_matrix(annotations, classes=self.classes)

    def _views(self, given: Any, encoding: Progress | None = None) -> Views:
        given = np.asarray(given) if _is_rows(given) else given
        return Views.of(given, self.encoder, tokens=self.tokens_, progress=encoding)

    def _codes(self, annotators: ArrayLike | None) -> Integers:
        check_is_fitted(self, "tendency_")
        if annotators is None:
            return np.arange(len(self.annotators_))
        names = as_names(np.atleast_1d(np.asarray(annotators)))
        codes = indices_of(names, self.annotators_)
        if (codes < 0).any():
            unknown = names[codes < 0][0]
            raise DataError(
                f"annotator {unknown!r} gave no labels to learn from; add_annotator takes some"
            )
        return codes

    def predict_annotator_proba(
        self,
        X: Any,  # noqa: N803
        annotators: ArrayLike | None = None,
        *,
        encoding: Progress | None = None,
    ) -> Floats:
        """Return what annotators, all by default, would say: (item, annotator, class)."""
        codes = self._codes(annotators)
        return np.exp(self.tendency_.log_proba(self._views(X, encoding), codes))

    def predict_annotators(self, X: Any, annotators: ArrayLike | None = None) -> Array:  # noqa: N803
        """Return the most probable label of annotators, all by default: (item, annotator)."""
        return self.classes_[self.predict_annotator_proba(X, annotators).argmax(axis=2)]

    def predict_consensus_proba(
        self,
        X: Any,  # noqa: N803
        how: Literal["vote", "sum", "confidence"] = "vote",
    ) -> Floats:
        """Return what annotators would make of items together: (item, class).

        Parameters
        ----------
        X
            Inputs.
        how
            `vote`: the share of annotators of whom a class is the most probable; `sum`: the mean of
            their probabilities; `confidence`: the same, the sure ones (of low entropy) weighing
            more.
        """
        codes, views = self._codes(None), self._views(X)
        n_classes = len(self.classes_)
        out = np.empty((len(views), n_classes))
        step = max(_CELLS // max(len(codes) * n_classes, 1), 1)
        for at in range(0, len(views), step):
            items = np.arange(at, min(at + step, len(views)))
            log = self.tendency_.log_proba(views.take(items), codes)
            out[items] = _together(log, how)
        return out

    def predict_consensus(
        self,
        X: Any,  # noqa: N803
        how: Literal["vote", "sum", "confidence"] = "vote",
    ) -> Array:
        """Return the label that annotators would give together; ties are drawn by the seed."""
        return self.classes_[vote(self.predict_consensus_proba(X, how), self.seed)]

    def predict_jury(
        self,
        X: Any,  # noqa: N803
        column: str,
        quota: Mapping[str, float],
        *,
        n_seats: int = 12,
        juries: int = 100,
    ) -> Verdict:
        """Return what juries would say whose seats are shared out by a column of the metadata."""
        check_is_fitted(self, "tendency_")
        found = [self.known_.get(name, {}).get(column) for name in self.annotators_.tolist()]
        if all(value is None for value in found):
            raise DataError(f"no metadata {column!r} of annotators; give them to fit")
        groups = [None if value is None else text(value) for value in found]
        return jury(
            self.tendency_,
            self._views(X),
            groups,
            quota,
            n_seats=n_seats,
            juries=juries,
            seed=self.seed,
        )

    def evaluate(self, X: Any, annotations: Annotations, **options: Any) -> TendencyScores:  # noqa: N803
        """Return how well annotations on items that were not learned from are foreseen.

        Annotators that the model does not know are left out; options are those of `score`.
        """
        annotations, log_probability = self.foreseen(X, annotations)
        return score(annotations, log_probability, **{"seed": self.seed, **options})

    def score(self, X: Any, annotations: Annotations | ArrayLike) -> float:  # noqa: N803
        """Return the mean log-likelihood of annotations."""
        annotations, log_probability = self.foreseen(X, annotations)
        return float(log_probability[np.arange(len(annotations)), annotations.label].mean())

    def foreseen(
        self,
        X: Any,  # noqa: N803
        annotations: Annotations | ArrayLike,
    ) -> tuple[Annotations, Floats]:
        """Return annotations by annotators that are known, and the chances they were given.

        The annotations are in the codes of this model, the chances are logs: (annotation, class).
        """
        check_is_fitted(self, "tendency_")
        if not isinstance(annotations, Annotations):
            annotations = Annotations.from_matrix(
                annotations, classes=self.classes_, annotators=self.annotators_
            )
        annotations = annotations.recode(self.classes_)
        known = indices_of(annotations.annotators, self.annotators_)
        kept = known[annotations.annotator] >= 0
        if not kept.any():
            raise DataError("none of these annotators gave labels to learn from")
        annotations = Annotations.from_codes(
            annotations.item[kept],
            known[annotations.annotator[kept]],
            annotations.label[kept],
            items=annotations.items,
            annotators=self.annotators_,
            classes=self.classes_,
        )
        views = self._views(X)
        if len(views) != annotations.n_items:
            raise DataError(f"{len(views)} inputs, but annotations on {annotations.n_items} items")
        item, annotator = annotations.item.astype(np.int64), annotations.annotator.astype(np.int64)
        return annotations, self.tendency_.log_probability(views, item, annotator)

    def add_annotator(
        self,
        X: Any,  # noqa: N803
        labels: ArrayLike,
        name: str,
        metadata: Mapping[str, Any] | None = None,
    ) -> Self:
        """Take up a new annotator from a few labels; nothing changes for the others.

        Parameters
        ----------
        X
            Inputs that they labelled; may be empty where metadata are known.
        labels
            What they said of each.
        name
            Who they are.
        metadata
            What is known of them: column → value.
        """
        check_is_fitted(self, "tendency_")
        if text(name) in set(self.annotators_.tolist()):
            raise DataError(f"annotator {name!r} is known already; fit again with their labels")
        given = as_names(np.atleast_1d(np.asarray(labels))) if np.size(labels) else as_names([])
        codes = indices_of(given, self.classes_)
        if (codes < 0).any():
            raise DataError(f"label {given[codes < 0][0]!r} is not among the classes")
        views = self._views(X) if len(codes) else self._no_views()
        if len(views) != len(codes):
            raise DataError(f"{len(views)} inputs, but {len(codes)} labels")
        known = None
        if metadata is not None:
            if self.metadata_ is None:
                raise DataError("metadata of the new annotator, but none were given to fit")
            known = self.metadata_.features({"": metadata}, [""])[0]
        self.tendency_ = self.tendency_.with_annotator(views, codes, features=known, seed=self.seed)
        self.annotators_ = as_names([*self.annotators_.tolist(), text(name)])
        counts = np.bincount(codes, minlength=len(self.classes_)) + 2 * self.habits_.mean(axis=0)
        self.habits_ = np.vstack([self.habits_, counts / counts.sum()])
        if metadata is not None:
            self.known_ = {**self.known_, text(name): metadata}
        return self

    def _no_views(self) -> Views:
        return Views(np.zeros((0, self.n_features_), np.float32))

    def save(self, folder: str | Path) -> None:
        """Write the model to a folder: arrays as safetensors, the rest as JSON."""
        from safetensors.numpy import save_file

        check_is_fitted(self, "tendency_")
        folder = Path(folder)
        if folder.exists() and any(folder.iterdir()) and not (folder / "tendency.json").exists():
            raise DataError(f"{folder}: holds something else; name a new folder")
        state = self.tendency_.state()
        told = {
            "format": _FORMAT,
            "settings": self.get_params() | {"classes": None},
            "classes": self.classes_.tolist(),
            "annotators": self.annotators_.tolist(),
            "metadata": None if self.metadata_ is None else vars(self.metadata_),
            "known": {
                name: {k: text(v) for k, v in row.items()} for name, row in self.known_.items()
            },
            "features": self.n_features_,
            "tokens": self.tokens_,
            "habits": self.habits_.tolist(),
            "notes": state.notes,
        }
        arrays = {name: np.ascontiguousarray(value) for name, value in state.arrays.items()}
        with atomic_folder(folder) as draft:
            save_file(arrays, draft / "arrays.safetensors")
            (draft / "tendency.json").write_text(json.dumps(told, indent=1), encoding="utf-8")

    @classmethod
    def load(cls, folder: str | Path) -> Self:
        """Return a model that `save` has written."""
        from safetensors import SafetensorError
        from safetensors.numpy import load_file

        folder = Path(folder)
        try:
            told = json.loads((folder / "tendency.json").read_text(encoding="utf-8"))
            if told["format"] != _FORMAT:
                raise DataError(f"{folder}: written by another version; fit it again")
            state = State(told["notes"], load_file(folder / "arrays.safetensors"))
            made = cls(**told["settings"])
            made.classes_, made.annotators_ = (
                as_names(told["classes"]),
                as_names(told["annotators"]),
            )
            kept = told["metadata"]
            made.metadata_ = None if kept is None else _metadata(kept)
            made.known_, made.n_features_ = told["known"], told["features"]
            made.tokens_, made.habits_ = told["tokens"], np.array(told["habits"])
            made.tendency_ = tendencies.create(made.method).restore(state)
        except DataError:
            raise
        except (OSError, ValueError, KeyError, TypeError, SafetensorError) as problem:
            raise DataError(f"{folder}: not a saved model of annotators ({problem})") from None
        return made


def _together(log: Floats, how: str) -> Floats:
    """Return what annotators make of items together: (item, class)."""
    chance = np.exp(log)  # (item, annotator, class)
    if how == "sum":
        return chance.mean(axis=1)
    if how == "confidence":
        entropy = -(chance * log).sum(axis=2, keepdims=True) / np.log(max(log.shape[2], 2))
        weight = np.maximum(1 - entropy, 1e-6)
        return (weight * chance).sum(axis=1) / weight.sum(axis=1)
    if how == "vote":
        best = log.argmax(axis=2)
        return (best[:, :, None] == np.arange(log.shape[2])).mean(axis=1)
    raise DataError(f"no consensus {how!r}; there are vote, sum and confidence")


def _metadata(kept: dict[str, Any]) -> Metadata:
    numbers = {
        name: (float(mean), float(spread)) for name, (mean, spread) in kept["numbers"].items()
    }
    return Metadata(numbers, kept["groups"])


def _is_rows(given: Any) -> bool:
    """Return whether it is a list of lists of numbers."""
    return (
        isinstance(given, (list, tuple))
        and len(given) > 0
        and not isinstance(given[0], (str, Path))
    )
