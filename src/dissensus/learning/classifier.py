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

from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path
from typing import Any, Self

import numpy as np
import torch
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, ClassifierMixin  # type: ignore[import-untyped]
from sklearn.utils.validation import check_is_fitted  # type: ignore[import-untyped]
from torch import Tensor, nn

from .._names import as_names
from .._relation import Array, Floats, indices_of
from ..annotations import Annotations
from ..errors import DataError, OptionError
from ..nn.augment import augment_for
from ..nn.batches import Batch, Examples, Known
from ..nn.inputs import Arrays, Inputs, as_inputs
from ..nn.training import Training, train
from ..nn.validation_split import hold_out
from ..registry import learners
from . import _saving
from ._base import Crowd, CrowdModel
from ._encoding import Encoding, encoding_for, pieces
from ._network import Classifier
from .two_stage import TwoStage

__all__ = ["CrowdClassifier"]

_PIECE = 4096  # vectors or pairs that are predicted at once
_FEW = 64  # inputs that go through an encoder at once


class CrowdClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """A classifier learned from annotators who disagree.

    Parameters
    ----------
    method
        How to learn, as the registry writes it: `name[setting=value,…]`.
    encoder
        What turns inputs into vectors, by name or as a network; `auto` takes features as they
        are and finds one that fits texts and images.
    frozen
        Whether the encoder learns nothing; if not told, those that know something already are.
    augment
        Change images at random while training.
    hidden
        Width of the hidden layer; 0 for none.
    dropout
        Share of the hidden layer that is left out in every step.
    input_dropout
        Share of the inputs' vectors that is left out in every step.
    classes
        All classes, in order; by default those of the annotations.
    epochs, batch, optimizer, lr, momentum, decay, scheduler, milestones, lr_decay, warmup
        How to train; see `dissensus.nn.settings.Training`.
    patience, held_out, clip, precision, devices, seed, save_every
        The same.

    Examples
    --------
    >>> x = np.repeat(np.eye(2), 20, axis=0)
    >>> annotations = np.repeat([[0, 0, 1], [1, 1, 1]], 20, axis=0)  # (item, annotator)
    >>> CrowdClassifier("crowd-layer", epochs=20).fit(x, annotations).predict(np.eye(2)).tolist()
    ['0', '1']
    """

    def __init__(
        self,
        method: str = "crowd-layer",
        *,
        encoder: str | nn.Module = "auto",
        frozen: bool | None = None,
        augment: bool = False,
        hidden: int = 128,
        dropout: float = 0.5,
        input_dropout: float = 0.3,
        classes: Any = None,
        epochs: int = 100,
        batch: int = 64,
        optimizer: str = "adam",
        lr: float = 1e-3,
        momentum: float = 0.9,
        decay: float = 0.0,
        scheduler: str = "constant",
        milestones: tuple[int, ...] = (50,),
        lr_decay: float = 0.1,
        warmup: float = 0.1,
        patience: int = 20,
        held_out: float = 0.1,
        clip: float = 0.0,
        precision: str = "32",
        devices: int = 1,
        seed: int = 0,
        save_every: int = 200,
    ) -> None:
        self.method = method
        self.encoder = encoder
        self.frozen = frozen
        self.augment = augment
        self.hidden = hidden
        self.dropout = dropout
        self.input_dropout = input_dropout
        self.classes = classes
        self.epochs = epochs
        self.batch = batch
        self.optimizer = optimizer
        self.lr = lr
        self.momentum = momentum
        self.decay = decay
        self.scheduler = scheduler
        self.milestones = milestones
        self.lr_decay = lr_decay
        self.warmup = warmup
        self.patience = patience
        self.held_out = held_out
        self.clip = clip
        self.precision = precision
        self.devices = devices
        self.seed = seed
        self.save_every = save_every

    def fit(
        self,
        X: ArrayLike | Inputs,  # noqa: N803
        annotations: Annotations | ArrayLike,
        *,
        valid: tuple[ArrayLike | Inputs, ArrayLike] | None = None,
        features: ArrayLike | None = None,
        posterior: ArrayLike | None = None,
        folder: str | Path | None = None,
        resume: bool = False,
        progress: Any = None,
    ) -> Self:
        """Learn from inputs and what annotators said of them.

        Parameters
        ----------
        X
            Inputs: an array (item, …), texts, or image files.
        annotations
            Who said what, items in the order of the inputs.
        valid
            Inputs and their true classes, to choose the epoch by.
        features
            What is known of the annotators, for methods that use it: (annotator, feature).
        posterior
            For two-stage, what to learn of every labelled item: (item, class). No aggregator is
            asked then.
        folder, resume, progress
            Where to keep checkpoints, whether to go on from them, whom to tell.
        """
        annotations, inputs = self._as_annotations(annotations), as_inputs(X)
        augment = augment_for(inputs) if self.augment else None
        self.kind_ = inputs.kind
        self.shape_ = tuple(inputs.values.shape[1:]) if isinstance(inputs, Arrays) else ()
        self.encoding_: Encoding = self._encoding(inputs)
        encoding = progress and (lambda done, total: progress(done, total, "inputs read"))
        x = self.encoding_.prepare(inputs, encoding)
        examples = Examples(x, annotations, augment)
        known: Examples | Known | None = None
        if valid is not None:
            known = Known(self.encoding_.prepare(valid[0]), _coded(valid[1], annotations.classes))
        elif self.held_out > 0 and examples.n_labelled > 1:
            examples, held = hold_out(examples, self.held_out, self.seed)
            known = held if held.n_labelled else None
        told, wanted = _tensor(features), _tensor(posterior)
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(self.seed)
            self._build(self.encoding_.vectors(x), examples.annotations, told, wanted)
            self.history_ = train(
                self.model_,
                examples,
                self._training(),
                valid=known,
                folder=folder,
                resume=resume,
                progress=progress,
                about=self._about(),
            )
        self._ready()
        return self

    def _as_annotations(self, annotations: Annotations | ArrayLike) -> Annotations:
        if isinstance(annotations, Annotations):
            return annotations if self.classes is None else annotations.recode(self.classes)
        return Annotations.from_matrix(annotations, classes=self.classes)

    def _training(self) -> Training:
        told = self.get_params(deep=False)
        names = {field.name for field in fields(Training)} & set(told)
        settings = {name: told[name] for name in names}
        # Held out before the annotators' network was built, or not at all.
        return Training(**settings | {"milestones": tuple(self.milestones), "held_out": 0.0})

    def _encoding(self, inputs: Inputs) -> Encoding:
        return encoding_for(
            self.encoder, inputs, self.seed, frozen=self.frozen, changing=self.augment
        )

    def _about(self) -> str:
        encoder = self.encoding_.encoder
        told = {"hidden": self.hidden, "dropout": self.dropout, "augment": self.augment}
        words = ", ".join(f"{name} {value}" for name, value in told.items())
        return f"{self.method} on {getattr(encoder, 'name', 'a network')} ({words})"

    def _build(
        self,
        vectors: Tensor,
        annotations: Annotations,
        features: Tensor | None = None,
        posterior: Tensor | None = None,
    ) -> None:
        width = vectors.shape[1]

        def classifier() -> Classifier:
            made = Classifier(
                self.encoding_.network(),
                width,
                annotations.n_classes,
                self.hidden,
                self.dropout,
                self.input_dropout,
            )
            made.fit_scale(vectors)
            return made

        method = learners.create(self.method)
        if posterior is not None and not isinstance(method, TwoStage):
            raise OptionError(f"{self.method} learns from annotations; beliefs are for two-stage")
        self.model_: CrowdModel = method.build(Crowd(annotations, classifier, features, posterior))
        self.model_.eval()
        self.classes_ = annotations.classes
        self.annotators_ = annotations.annotators

    @torch.no_grad()
    def predict_proba(self, X: ArrayLike | Inputs) -> Floats:  # noqa: N803
        """Return the probability of every class: (item, class)."""
        check_is_fitted(self, "model_")
        found = [np.zeros((0, len(self.classes_)))]
        for piece in self._pieces(X, _PIECE):
            found.append(self.model_.log_truth(piece).double().softmax(dim=1).cpu().numpy())
        return np.concatenate(found)

    def _pieces(self, given: ArrayLike | Inputs, size: int) -> Iterator[Tensor]:
        """Yield what the classifier takes, a few items at a time, where it is."""
        for piece in pieces(self.encoding_.prepare(given), self._few(size)):
            yield piece.to(self.model_.count.device)

    def _few(self, size: int) -> int:
        """Return how many items go through the network at once."""
        return size if self.encoding_.before or self.kind_ == "arrays" else min(size, _FEW)

    def predict(self, X: ArrayLike | Inputs) -> Array:  # noqa: N803
        """Return the most probable class of every item."""
        return self.classes_[self.predict_proba(X).argmax(axis=1)]

    def predict_annotator_proba(
        self,
        X: ArrayLike | Inputs,  # noqa: N803
        annotators: ArrayLike | None = None,
    ) -> Floats:
        """Return what annotators, all by default, would say: (item, annotator, class)."""
        return self._by_pairs(X, annotators, CrowdModel.annotator_proba)

    def annotator_performance(
        self,
        X: ArrayLike | Inputs,  # noqa: N803
        annotators: ArrayLike | None = None,
    ) -> Floats:
        """Return how probably annotators, all by default, are right: (item, annotator)."""
        return self._by_pairs(X, annotators, CrowdModel.performance)

    @torch.no_grad()
    def _by_pairs(self, x: ArrayLike | Inputs, annotators: ArrayLike | None, work: Any) -> Floats:
        check_is_fitted(self, "model_")
        names = self.annotators_ if annotators is None else as_names(np.atleast_1d(annotators))
        code = indices_of(names, self.annotators_)
        if (code < 0).any():
            raise DataError(f"annotator {names[code < 0][0]!r} gave no labels to learn from")
        who = torch.from_numpy(code.astype(np.int64)).to(self.model_.count.device)
        size = max(_PIECE // max(len(who), 1), 1)
        found = [work(self.model_, piece, who).double().cpu() for piece in self._pieces(x, size)]
        return torch.cat(found).numpy()

    @torch.no_grad()
    def annotator_scores(
        self,
        X: ArrayLike | Inputs,  # noqa: N803
        annotations: Annotations | ArrayLike,
    ) -> dict[str, Array]:
        """Return what is known of every annotator, by their own labels; a column each.

        `performance` is how probably their labels are right, as the network sees it; `agreement`
        the share that are the classifier's best class; `log_likelihood` how well it foresees them,
        per label.
        """
        check_is_fitted(self, "model_")
        annotations = (
            annotations if isinstance(annotations, Annotations) else self._matrix(annotations)
        )
        sums = torch.zeros(4, len(self.annotators_), dtype=torch.float64)
        for batch in self._batches(X, annotations):
            vector = self.model_.classifier.encode(batch.x)
            seen = self.model_.seen(self.model_.log_class(vector), vector, batch)
            best = seen.log_truth.argmax(dim=1) == batch.label
            right, log = self.model_.right(seen), self.model_.log_probability(batch)
            told = torch.stack([torch.ones_like(right), right, best.to(right), log])
            sums.index_add_(1, batch.annotator.cpu(), told.double().cpu())
        count, *rest = sums.numpy()
        columns = ("performance", "agreement", "log_likelihood")
        means = [
            np.divide(each, count, np.full_like(each, np.nan), where=count > 0) for each in rest
        ]
        return {
            "annotator": self.annotators_,
            "n_labels": count.astype(np.int64),
            **dict(zip(columns, means, strict=True)),
        }

    @property
    def confusion_(self) -> Floats:
        """What every annotator says of an average item: (annotator, true, given)."""
        check_is_fitted(self, "model_")
        with torch.no_grad():
            return self.model_.confusion().double().cpu().numpy()

    @torch.no_grad()
    def score(self, X: ArrayLike | Inputs, y: Any, sample_weight: ArrayLike | None = None) -> float:  # noqa: N803
        """Return the accuracy; of annotations, the mean log-likelihood of the labels given."""
        if not isinstance(y, Annotations) and np.ndim(y) < 2:
            right = self.predict(X) == as_names(np.asarray(y))
            return float(
                np.average(
                    right, weights=None if sample_weight is None else np.asarray(sample_weight)
                )
            )
        given = y if isinstance(y, Annotations) else self._matrix(y)
        found = [self.model_.log_probability(batch) for batch in self._batches(X, given)]
        return float(torch.cat(found).double().mean())

    def _batches(self, given: ArrayLike | Inputs, annotations: Annotations) -> Iterator[Batch]:
        """Yield annotations with the inputs of their items, where the classifier is."""
        examples = Examples(self.encoding_.prepare(given), annotations)
        for batch in examples.batches(self._few(_PIECE), 0, 0, shuffle=False):
            yield Batch(*(part.to(self.model_.count.device) for part in batch))

    def _matrix(self, y: ArrayLike) -> Annotations:
        return Annotations.from_matrix(y, classes=self.classes_, annotators=self.annotators_)

    def save(self, folder: str | Path) -> None:
        """Write the classifier to a folder: weights as safetensors, the rest as JSON."""
        check_is_fitted(self, "model_")
        _saving.write(self, Path(folder))

    @classmethod
    def load(cls, folder: str | Path) -> Self:
        """Return a classifier that `save` has written."""
        told, state = _saving.read(Path(folder))
        made = cls(**told["settings"])
        _saving.restore(made, told, state)
        made._ready()
        return made

    def _ready(self) -> None:
        self.model_.eval()
        if len(self.shape_) == 1:
            self.n_features_in_ = self.shape_[0]

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.two_d_labels = True
        tags.input_tags.three_d_array = True
        return tags


def _tensor(values: ArrayLike | None) -> Tensor | None:
    if values is None:
        return None
    return torch.as_tensor(np.asarray(values), dtype=torch.get_default_dtype())


def _coded(truth: ArrayLike, classes: Array) -> Any:
    code = indices_of(as_names(np.asarray(truth)), classes)
    if (code < 0).any():
        raise DataError("the truth of valid items holds a class that nobody declared")
    return code
