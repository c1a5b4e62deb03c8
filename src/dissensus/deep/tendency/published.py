"""Methods that learn the truth from a crowd, used to predict what each annotator would say."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Annotated, Any

import torch
from annotated_types import Ge
from torch import Tensor, nn

from ...answers.annotations import Annotations
from ..learning import base as learning
from ..learning.network import Classifier
from ..nn import Features, Training
from ...params import Count, Positive, Probability
from ...registry import learners
from .base import FitOptions, State, Tendency, TendencyMethod
from .vector_networks import Sizes, VectorTendency, fit_network

_DROPOUT = 0.5, 0.3  # of the hidden layer and of the vectors


class _CrowdTendency(VectorTendency):
    """A classifier of the truth and a model of the annotators."""

    net: learning.CrowdModel

    def __init__(self, model: learning.CrowdModel) -> None:
        sizes = Sizes(model.classifier.width, model.n_annotators, model.n_classes)
        super().__init__(model, sizes)

    def log_pairs(self, x: Tensor, row: Tensor, annotator: Tensor) -> Tensor:
        vector = self.net.classifier.encode(x)
        return self.net.log_given(
            learning.PairBatch(self.net.log_class(vector)[row], vector[row], annotator)
        )

    def state(self) -> State:
        state = super().state()
        kept = {k: v for k, v in state.arrays.items() if k not in self.net.per_item}
        return State(state.notes, kept)


@dataclass(frozen=True, kw_only=True)
class CrowdMethod(TendencyMethod):
    """A method that learns the truth from a crowd, used to predict individual annotators.

    Methods that learn the truth from a crowd, used to predict what each annotator would say.

        P(k says l of x) = Σ_t P(x is t) P(k says l | t, x)

    Any method of `dissensus.deep.learning` can be used: in `madl` errors depend on annotator and item,
    `doctor-net` has a head for every annotator. The classifier is that of `CrowdClassifier`.

    When it fails: It assumes a truth from which annotators deviate; for matters of opinion there is
    none, and `linear` is ahead.

    Parameters
    ----------
    learner
        A method of learning from annotators, as the registry writes it.
    hidden
        Width of the classifier's hidden layer.
    epochs
        Maximal number of epochs.
    batch
        Items per step.
    lr
        Learning rate of the classifier.
    patience
        Epochs without improvement before training stops; 0 for no early stopping.
    held_out
        Share of items in the validation split, whose annotations choose the epoch.
    """

    learner: str = "madl"
    hidden: Count = 128
    epochs: Count = 40
    batch: Count = 64
    lr: Positive = 1e-3
    patience: Annotated[int, Ge(0)] = 10
    held_out: Probability = 0.1

    def _fit(self, features: Features, annotations: Annotations, context: FitOptions) -> Tendency:
        x, metadata = torch.from_numpy(features.vectors), context.metadata
        known = None if metadata is None else torch.tensor(metadata, dtype=torch.float32)
        training = Training.of(self, seed=context.seed)
        build = partial(self._model, x=x, known=known)
        return _CrowdTendency(fit_network(build, x, annotations, training, context))

    def _model(
        self, annotations: Annotations, x: Tensor, known: Tensor | None
    ) -> learning.CrowdModel:
        def classifier() -> Classifier:
            sizes = x.shape[1], annotations.n_classes, self.hidden
            network = Classifier(nn.Flatten(), *sizes, *_DROPOUT)
            network.fit_scale(x)
            return network

        return learners.create(self.learner).build(
            learning.BuildParts(annotations, classifier, known)
        )

    def restore(self, state: State) -> Tendency:
        n_features, n_annotators, n_classes = state.notes["sizes"]
        annotations = Annotations.from_labels([], n_classes).with_codes(annotators=n_annotators)
        tensors: dict[str, Any] = {name: torch.tensor(each) for name, each in state.arrays.items()}
        model = self._model(annotations, torch.zeros(1, n_features), tensors.get("features"))
        model.load_state_dict(tensors, strict=False)
        return _CrowdTendency(model)
