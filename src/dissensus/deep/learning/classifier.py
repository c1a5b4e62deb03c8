"""CrowdClassifier: a scikit-learn classifier learned from annotators who disagree.

    CrowdClassifier("crowd-layer").fit(X, annotations).predict(X)
    CrowdClassifier("raykar", encoder="minilm").fit(texts, annotations).predict(texts)

Annotations may also be a matrix (item, annotator); then scikit-learn can split it along the items,
and its cross-validation keeps all labels of an item together.

The epoch is chosen by the likelihood of annotations on held-out items or, where `valid` gives items
of known truth, by accuracy on these; `history_.chosen_by` says which.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any, Self

import numpy as np
import torch
from numpy.typing import ArrayLike
from sklearn.base import ClassifierMixin  # type: ignore[import-untyped]
from sklearn.utils.validation import check_is_fitted  # type: ignore[import-untyped]
from torch import Tensor, nn

from ...answers.annotations import Annotations
from ...base.arrays import Array, Floats, Integers
from ...base.names import as_names, indices_of
from ...base.storage import State
from ...errors import DataError, OptionError
from ...method import Progress
from ...registry import learners
from ..nn import Estimator, Training
from ..nn.batches import Batch, Examples, LabelledInputs, Source, chunks
from ..nn.encoding import Encoding, encoding_for
from ..nn.estimator import is_one_label
from ..nn.inputs import Inputs, as_inputs, augment_for, digests, empty_inputs
from ..nn.training import build_and_train
from .base import BuildParts, Classifier, CrowdModel, Network
from .raykar import TwoStage

_CHUNK = 4096  # vectors or pairs that are predicted at once
_ENCODED = 64  # inputs that go through an encoder at once


class CrowdClassifier(ClassifierMixin, Estimator):  # type: ignore[misc]
    """A classifier learned from annotators who disagree.

    Parameters
    ----------
    method
        Specification of the method: `name[setting=value,…]`.
    encoder
        Network that turns inputs into vectors, or its name; `auto` takes features as they are
        and chooses one for texts and images.
    frozen
        Whether the encoder is not trained; by default pretrained ones are frozen.
    augment
        Augment images while training.
    hidden
        Width of the hidden layer; 0 for none.
    dropout
        Dropout of the hidden layer.
    input_dropout
        Dropout of the input vectors.
    classes
        All classes, in order; by default those of the annotations.
    training
        Epochs, batches, learning rates, devices; None for `CrowdClassifier.nested["training"]`.
    seed
        Random seed.

    Examples
    --------
    >>> x = np.repeat(np.eye(2), 20, axis=0)
    >>> annotations = np.repeat([[0, 0, 1], [1, 1, 1]], 20, axis=0)  # (item, annotator)
    >>> model = CrowdClassifier("crowd-layer", training=Training(epochs=20))
    >>> model.fit(x, annotations).predict(np.eye(2)).tolist()
    [0, 1]
    """

    nested = {"training": Training(epochs=100, patience=20)}  # noqa: RUF012

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
        training: Training | None = None,
        seed: int = 0,
    ) -> None:
        self.method = method
        self.encoder = encoder
        self.frozen = frozen
        self.augment = augment
        self.hidden = hidden
        self.dropout = dropout
        self.input_dropout = input_dropout
        self.classes = classes
        self.training = training
        self.seed = seed

    def fit(
        self,
        X: ArrayLike | Inputs,
        y: Annotations | ArrayLike,
        *,
        valid: tuple[ArrayLike | Inputs, ArrayLike] | None = None,
        features: ArrayLike | None = None,
        posterior: ArrayLike | None = None,
        folder: str | Path | None = None,
        resume: bool = False,
        progress: Progress | None = None,
    ) -> Self:
        """Learn from inputs and annotations.

        Parameters
        ----------
        X
            Inputs: an array (item, …), a sparse matrix, texts, or image files.
        y
            Annotations, a matrix (item, annotator) with -1 for unlabelled, or one label per item;
            items in the order of the inputs.
        valid
            Inputs and their true classes, to choose the epoch by.
        features
            Features of the annotators, for methods that use them: (annotator, feature).
        posterior
            For two-stage, the class probabilities to learn instead of an aggregator's:
            (item, class).
        folder, resume
            Folder of checkpoints, and whether to resume from them.
        progress
            Called with steps done, steps in all, and a message.
        """
        inputs = self._inputs(X, fitting=True)
        annotations = self._annotations(y, inputs)
        training = self._training()
        augment = augment_for(inputs) if self.augment else None
        self.encoding_: Encoding = self._encoding(inputs)
        x = self.encoding_.prepare(inputs, progress)
        examples = Examples(x, annotations, augment)
        data = {"inputs": inputs, "soft labels": posterior, "features of annotators": features}
        validation = None
        if valid is not None:
            valid_inputs, truth = as_inputs(valid[0]), _class_codes(valid[1], annotations.classes)
            validation = LabelledInputs(self.encoding_.prepare(valid_inputs), truth)
            data |= {"validation items": valid_inputs, "known labels": truth}
        vectors = self.encoding_.vectors(x)
        model, self.history_ = build_and_train(
            lambda learned: self._build(vectors, learned, features, posterior),
            examples,
            training,
            valid=validation,
            folder=folder,
            resume=resume,
            progress=progress,
            about=self._about(),
            data=None if folder is None else digests(data),
        )
        self.model_: CrowdModel = model.eval()
        return self

    def _encoding(self, inputs: Inputs) -> Encoding:
        return encoding_for(
            self.encoder, inputs, self.seed, frozen=self.frozen, augmented=self.augment
        )

    def _about(self) -> str:
        settings = {"hidden": self.hidden, "dropout": self.dropout, "augment": self.augment}
        settings |= {"input dropout": self.input_dropout}
        network = ", ".join(f"{name} {value}" for name, value in settings.items())
        return f"{self.method} on {self.encoding_.name} ({network})"

    def _build(
        self,
        vectors: Tensor,
        annotations: Annotations,
        features: Any = None,
        posterior: ArrayLike | None = None,
    ) -> CrowdModel:
        network = Network(
            hidden=self.hidden, dropout=self.dropout, input_dropout=self.input_dropout
        )
        classifier = partial(
            Classifier.of,
            self.encoding_,
            vectors=vectors,
            n_classes=annotations.n_classes,
            network=network,
        )
        method = learners.create(self.method)
        if posterior is not None and not isinstance(method, TwoStage):
            raise OptionError(f"{self.method} learns from annotations; posterior= is for two-stage")
        return method.build(
            BuildParts(annotations, classifier, _tensor(features), _tensor(posterior))
        )

    def predict(self, X: ArrayLike | Inputs) -> Array:
        """Return the most probable class of every item."""
        proba = self.predict_proba(X)
        return self.classes_[proba.argmax(axis=1)]

    @torch.no_grad()
    def predict_proba(self, X: ArrayLike | Inputs) -> Floats:
        """Return the probability of every class: (item, class)."""
        chunks = self._chunks(X, _CHUNK)
        proba = [self.model_.log_truth(x).double().softmax(dim=1).cpu().numpy() for x in chunks]
        return np.concatenate([np.zeros((0, len(self.classes_))), *proba])

    def prepare(self, X: ArrayLike | Inputs) -> Tensor | Source:
        """Return inputs as the network takes them."""
        inputs = self._inputs(X)  # which fails before `fit`
        return self.encoding_.prepare(inputs)

    def _chunks(self, X: ArrayLike | Inputs, size: int) -> Iterator[Tensor]:
        """Yield what the network takes, on its device."""
        for chunk in chunks(self.prepare(X), self._chunk_size(size)):
            yield chunk.to(self.model_.count.device)

    def _chunk_size(self, size: int) -> int:
        """Return how many items go through the network at once."""
        return size if self.encoding_.cached or self.kind_ == "arrays" else min(size, _ENCODED)

    def predict_annotator_proba(
        self, X: ArrayLike | Inputs, annotators: ArrayLike | None = None
    ) -> Floats:
        """Return label probabilities of annotators, all by default: (item, annotator, class)."""
        return self._by_pairs(X, annotators, CrowdModel.annotator_proba)

    def annotator_performance(
        self, X: ArrayLike | Inputs, annotators: ArrayLike | None = None
    ) -> Floats:
        """Return the probability that annotators, all by default, are right: (item, annotator)."""
        return self._by_pairs(X, annotators, CrowdModel.performance)

    @torch.no_grad()
    def _by_pairs(
        self, x: ArrayLike | Inputs, annotators: ArrayLike | None, predict: Any
    ) -> Floats:
        codes = self.annotator_codes(annotators).astype(np.int64)
        annotator = torch.from_numpy(codes).to(self.model_.count.device)
        size = max(_CHUNK // max(len(annotator), 1), 1)
        values = [predict(self.model_, x, annotator).double().cpu() for x in self._chunks(x, size)]
        return torch.cat(values).numpy()

    @torch.no_grad()
    def annotator_scores(
        self, X: ArrayLike | Inputs, annotations: Annotations | ArrayLike
    ) -> dict[str, Array]:
        """Return scores of every annotator on their own labels, as columns.

        `performance` is the mean probability that their labels are right; `agreement` the share
        that are the classifier's most probable class; `log_likelihood` the mean log-likelihood of
        their labels.
        """
        check_is_fitted(self)
        sums = torch.zeros(4, len(self.annotators_), dtype=torch.float64)
        for batch in self._batches(X, self._recoded(annotations)):
            vector = self.model_.classifier.encode(batch.x)
            pairs = self.model_.pairs(self.model_.log_class(vector), vector, batch)
            best = pairs.log_truth.argmax(dim=1) == batch.label
            right, log = self.model_.right(pairs), self.model_.log_probability(batch)
            scores = torch.stack([torch.ones_like(right), right, best.to(right), log])
            sums.index_add_(1, batch.annotator.cpu(), scores.double().cpu())
        count, *totals = sums.numpy()
        with np.errstate(invalid="ignore"):
            means = [total / count for total in totals]
        columns = ("performance", "agreement", "log_likelihood")
        return {
            "annotator": self.annotators_,
            "n_labels": count.astype(np.int64),
            **dict(zip(columns, means, strict=True)),
        }

    @property
    def confusion_(self) -> Floats:
        """The confusion matrix of every annotator on an average item: (annotator, true, given)."""
        check_is_fitted(self)
        with torch.no_grad():
            return self.model_.confusion().double().cpu().numpy()

    @torch.no_grad()
    def score(self, X: ArrayLike | Inputs, y: Any, sample_weight: ArrayLike | None = None) -> float:
        """Return the accuracy; of annotations, the mean log-likelihood of the labels."""
        if is_one_label(y):
            return self._accuracy(X, y, sample_weight)
        batches = self._batches(X, self._recoded(y))
        log = [self.model_.log_probability(batch) for batch in batches]
        return float(torch.cat(log).double().mean())

    def _batches(self, X: ArrayLike | Inputs, annotations: Annotations) -> Iterator[Batch]:
        """Yield annotations with the inputs of their items, on the device of the network."""
        examples = Examples(self.prepare(X), annotations)
        for batch in examples.batches(self._chunk_size(_CHUNK), 0, 0, shuffle=False):
            yield Batch(*(part.to(self.model_.count.device) for part in batch))

    def _state(self) -> State:
        state = self.model_.state_dict()
        arrays = {k: v.cpu().numpy() for k, v in state.items() if k not in self.model_.per_item}
        return State({"width": self.model_.classifier.width}, arrays)

    def _restore(self, state: State) -> None:
        annotations = Annotations.from_labels([], as_names(self.classes_))
        annotations = annotations.with_codes(annotators=self.annotators_)
        self.encoding_ = self._encoding(empty_inputs(self.kind_, self.shape_))
        width = state.notes["width"]
        model = self._build(torch.zeros(1, width), annotations, state.arrays.get("features"))
        weights = {name: torch.from_numpy(value) for name, value in state.arrays.items()}
        keys = model.load_state_dict(weights, strict=False)
        if keys.unexpected_keys or set(keys.missing_keys) - set(model.per_item):
            raise DataError(f"the weights are not those of {self.method}; save it again")
        self.model_ = model.eval()


def _tensor(values: Any) -> Tensor | None:
    if values is None:
        return None
    return torch.as_tensor(np.asarray(values), dtype=torch.get_default_dtype())


def _class_codes(truth: ArrayLike, classes: Array) -> Integers:
    codes = indices_of(as_names(np.asarray(truth)), classes)
    if (codes < 0).any():
        raise DataError("the truth of valid items holds a class that is not declared")
    return codes
