"""The scikit-learn face of learning from annotators.

    CrowdClassifier("crowd-layer").fit(features, annotations).predict(features)
    CrowdClassifier("raykar", encoder="minilm").fit(texts, annotations).predict(texts)

Items of the inputs and of the annotations are in the same order. Annotations may also be a matrix
(item, annotator) with -1 or NaN where nobody spoke; then scikit-learn can cut it along the items,
and its cross-validation keeps all labels of an item together.

Nothing is asked of the test set. The epoch is chosen by the likelihood of annotations on items held
out or, where `valid` gives items of known truth, by accuracy on these; `history_.chosen_by` says
which.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Self

import numpy as np
import torch
from numpy.typing import ArrayLike
from safetensors.torch import load_file, save_file
from sklearn.base import BaseEstimator, ClassifierMixin  # type: ignore[import-untyped]
from sklearn.utils.validation import check_is_fitted  # type: ignore[import-untyped]
from torch import Tensor, nn

from .._names import as_names
from .._relation import Array, Floats, places
from ..annotations import Annotations
from ..errors import DataError, OptionError
from ..nn.batches import Examples, Known
from ..nn.holding import hold_out
from ..nn.training import Training, train
from ..registry import learners
from ._base import Crowd, CrowdModel
from ._encoding import Encoding, encoding_for, pieces
from ._network import Classifier

__all__ = ["CrowdClassifier"]

_PIECE = 4096  # items or pairs that are predicted at once


class CrowdClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """A classifier learned from annotators who disagree.

    Parameters
    ----------
    method
        How to learn, as the registry writes it: `name[setting=value,…]`.
    encoder
        What turns inputs into vectors, by name or as a network; `auto` takes features as they
        are and finds one that fits texts and images.
    hidden
        Width of the hidden layer; 0 for none.
    dropout
        Share of the hidden layer that is left out in every step.
    input_dropout
        Share of the inputs' vectors that is left out in every step.
    classes
        All classes, in order; by default those of the annotations.
    epochs, batch, optimizer, lr, decay, scheduler, patience, held_out, clip, seed
        How to train; see `dissensus.nn.training.Training`.

    Examples
    --------
    >>> x = np.repeat(np.eye(2), 20, axis=0)
    >>> said = np.repeat([[0, 0, 1], [1, 1, 1]], 20, axis=0)  # (item, annotator)
    >>> CrowdClassifier("crowd-layer", epochs=20).fit(x, said).predict(np.eye(2)).tolist()
    ['0', '1']
    """

    def __init__(
        self,
        method: str = "crowd-layer",
        *,
        encoder: str | nn.Module = "auto",
        hidden: int = 128,
        dropout: float = 0.5,
        input_dropout: float = 0.3,
        classes: Any = None,
        epochs: int = 100,
        batch: int = 64,
        optimizer: str = "adam",
        lr: float = 1e-3,
        decay: float = 0.0,
        scheduler: str = "constant",
        patience: int = 20,
        held_out: float = 0.1,
        clip: float = 0.0,
        seed: int = 0,
    ) -> None:
        self.method = method
        self.encoder = encoder
        self.hidden = hidden
        self.dropout = dropout
        self.input_dropout = input_dropout
        self.classes = classes
        self.epochs = epochs
        self.batch = batch
        self.optimizer = optimizer
        self.lr = lr
        self.decay = decay
        self.scheduler = scheduler
        self.patience = patience
        self.held_out = held_out
        self.clip = clip
        self.seed = seed

    def fit(
        self,
        X: ArrayLike,  # noqa: N803
        annotations: Annotations | ArrayLike,
        *,
        valid: tuple[ArrayLike, ArrayLike] | None = None,
        features: ArrayLike | None = None,
        folder: str | Path | None = None,
        resume: bool = False,
        progress: Any = None,
    ) -> Self:
        """Learn from inputs and what annotators said of them.

        Parameters
        ----------
        X
            Inputs: (item, …).
        annotations
            Who said what, items in the order of the inputs.
        valid
            Inputs and their true classes, to choose the epoch by.
        features
            What is known of the annotators, for methods that use it: (annotator, feature).
        folder, resume, progress
            Where to keep checkpoints, whether to go on from them, whom to tell.
        """
        said = self._said(annotations)
        self.encoding_: Encoding = encoding_for(self.encoder, X, self.seed)
        x = self.encoding_.prepare(X)
        examples = Examples(x, said)
        known: Examples | Known | None = None
        if valid is not None:
            known = Known(self.encoding_.prepare(valid[0]), _coded(valid[1], said.classes))
        elif self.held_out > 0 and examples.n_labelled > 1:
            examples, held = hold_out(examples, self.held_out, self.seed)
            known = held if held.n_labelled else None
        told = None if features is None else torch.as_tensor(np.asarray(features, np.float32))
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(self.seed)
            self._build(self.encoding_.vectors(x), examples.said, told)
            self.history_ = train(
                self.model_,
                examples,
                self._training(),
                valid=known,
                folder=folder,
                resume=resume,
                progress=progress,
            )
        self.shape_ = tuple(np.shape(X)[1:])
        if len(self.shape_) == 1:
            self.n_features_in_ = self.shape_[0]
        return self

    def _said(self, annotations: Annotations | ArrayLike) -> Annotations:
        if isinstance(annotations, Annotations):
            return annotations if self.classes is None else annotations.recode(self.classes)
        return Annotations.from_matrix(annotations, classes=self.classes)

    def _training(self) -> Training:
        return Training(
            epochs=self.epochs,
            batch=self.batch,
            optimizer=self.optimizer,  # type: ignore[arg-type]
            lr=self.lr,
            decay=self.decay,
            scheduler=self.scheduler,  # type: ignore[arg-type]
            patience=self.patience,
            held_out=0.0,  # held out before the annotators' network was built, or not at all
            clip=self.clip,
            seed=self.seed,
        )

    def _build(self, vectors: Tensor, said: Annotations, features: Tensor | None) -> None:
        width = vectors.shape[1]

        def classifier() -> Classifier:
            made = Classifier(
                self.encoding_.network(),
                width,
                said.n_classes,
                self.hidden,
                self.dropout,
                self.input_dropout,
            )
            made.fit_scale(vectors)
            return made

        self.model_: CrowdModel = learners.create(self.method).build(
            Crowd(said, classifier, features)
        )
        self.model_.eval()
        self.classes_ = said.classes
        self.annotators_ = said.annotators

    @torch.no_grad()
    def predict_proba(self, X: ArrayLike) -> Floats:  # noqa: N803
        """Return the probability of every class: (item, class)."""
        check_is_fitted(self, "model_")
        x = self.encoding_.prepare(X)
        logs = [self.model_.log_truth(piece) for piece in pieces(x, _PIECE)]
        return torch.cat(logs).double().softmax(dim=1).numpy()

    def predict(self, X: ArrayLike) -> Array:  # noqa: N803
        """Return the most probable class of every item."""
        return self.classes_[self.predict_proba(X).argmax(axis=1)]

    def predict_annotator_proba(
        self,
        X: ArrayLike,  # noqa: N803
        annotators: ArrayLike | None = None,
    ) -> Floats:
        """Return what annotators, all by default, would say: (item, annotator, class)."""
        return self._by_pairs(X, annotators, CrowdModel.annotator_proba)

    def annotator_performance(
        self,
        X: ArrayLike,  # noqa: N803
        annotators: ArrayLike | None = None,
    ) -> Floats:
        """Return how probably annotators, all by default, are right: (item, annotator)."""
        return self._by_pairs(X, annotators, CrowdModel.performance)

    @torch.no_grad()
    def _by_pairs(self, x: ArrayLike, annotators: ArrayLike | None, work: Any) -> Floats:
        check_is_fitted(self, "model_")
        names = self.annotators_ if annotators is None else as_names(np.atleast_1d(annotators))
        code = places(names, self.annotators_)
        if (code < 0).any():
            raise DataError(f"annotator {names[code < 0][0]!r} gave no labels to learn from")
        who = torch.from_numpy(code.astype(np.int64))
        size = max(_PIECE // max(len(who), 1), 1)
        found = [work(self.model_, piece, who) for piece in pieces(self.encoding_.prepare(x), size)]
        return torch.cat(found).double().numpy()

    @property
    def confusion_(self) -> Floats:
        """What every annotator says of an average item: (annotator, true, given)."""
        check_is_fitted(self, "model_")
        with torch.no_grad():
            return self.model_.confusion().double().numpy()

    @torch.no_grad()
    def score(self, X: ArrayLike, y: Any, sample_weight: ArrayLike | None = None) -> float:  # noqa: N803
        """Return the accuracy; of annotations, the mean log-likelihood of the labels given."""
        if not isinstance(y, Annotations) and np.ndim(y) < 2:
            right = self.predict(X) == as_names(np.asarray(y))
            return float(
                np.average(
                    right, weights=None if sample_weight is None else np.asarray(sample_weight)
                )
            )
        given = y if isinstance(y, Annotations) else self._matrix(y)
        examples = Examples(self.encoding_.prepare(X), given)
        found = [
            self.model_.log_chance(batch) for batch in examples.batches(_PIECE, 0, 0, shuffle=False)
        ]
        return float(torch.cat(found).double().mean())

    def _matrix(self, y: ArrayLike) -> Annotations:
        return Annotations.from_matrix(y, classes=self.classes_, annotators=self.annotators_)

    def save(self, folder: str | Path) -> None:
        """Write the classifier to a folder: weights as safetensors, the rest as JSON."""
        check_is_fitted(self, "model_")
        if not isinstance(self.encoder, str):
            raise OptionError("a network given as encoder cannot be saved; name an encoder instead")
        folder = Path(folder)
        folder.mkdir(parents=True, exist_ok=True)
        state = self.model_.state_dict()
        kept = {k: v.contiguous() for k, v in state.items() if k not in self.model_.per_item}
        save_file(kept, folder / "weights.safetensors")
        told = {
            "settings": self.get_params() | {"classes": None},
            "classes": self.classes_.tolist(),
            "annotators": self.annotators_.tolist(),
            "shape": self.shape_,
            "width": self.model_.classifier.width,
        }
        (folder / "classifier.json").write_text(json.dumps(told, indent=1), encoding="utf-8")

    @classmethod
    def load(cls, folder: str | Path) -> Self:
        """Return a classifier that `save` has written."""
        folder = Path(folder)
        told = json.loads((folder / "classifier.json").read_text(encoding="utf-8"))
        state = load_file(folder / "weights.safetensors")
        made = cls(**told["settings"])
        nobody: list[int] = []
        said = Annotations.from_columns(
            nobody, nobody, nobody, annotators=told["annotators"], classes=told["classes"]
        )
        made.shape_ = tuple(told["shape"])
        sample = np.zeros((1, *made.shape_)) if made.shape_ else ["a text"]
        made.encoding_ = encoding_for(made.encoder, sample, made.seed)
        made._build(torch.zeros(1, told["width"]), said, state.get("features"))
        made.model_.load_state_dict(state, strict=False)
        made.model_.eval()
        if len(made.shape_) == 1:
            made.n_features_in_ = made.shape_[0]
        return made

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.two_d_labels = True
        tags.input_tags.three_d_array = True
        return tags


def _coded(truth: ArrayLike, classes: Array) -> Any:
    code = places(as_names(np.asarray(truth)), classes)
    if (code < 0).any():
        raise DataError("the truth of valid items holds a class that nobody declared")
    return code
