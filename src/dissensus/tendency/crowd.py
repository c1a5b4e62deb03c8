"""Networks that learn the truth from a crowd, asked for what each annotator would say of it.

    P(k says l of x) = Σ_t P(x is t) P(k says l | t, x)

Any method of `dissensus.learning` will do: `madl` lets errors depend on annotator and item,
`doctor-net` has a head for every annotator. The classifier is that of `CrowdClassifier`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
import torch
from annotated_types import Ge
from torch import Tensor, nn

from .._relation import Floats, Integers
from ..annotations import Annotations
from ..learning.base import CrowdModel, FitContext, Pairs
from ..learning.network import Classifier
from ..nn.batches import Examples
from ..nn.training import Training, train
from ..nn.validation_split import hold_out
from ..params import Count, Positive, Probability
from ..registry import learners
from ._base import How, State, Tendency, TendencyMethod, Views

__all__ = ["Crowd", "CrowdTendency"]

_PAIRS = 2**14
_DROPOUT = 0.5, 0.3  # of the hidden layer and of the vectors


class CrowdTendency(Tendency):
    """A classifier of the truth, and what annotators make of it."""

    def __init__(self, model: CrowdModel) -> None:
        self.model = model.eval()
        self.n_annotators, self.n_classes = model.n_annotators, model.n_classes

    @torch.inference_mode()
    def log_probability(self, views: Views, item: Integers, annotator: Integers) -> Floats:
        item, who = np.asarray(item), torch.from_numpy(np.asarray(annotator, dtype=np.int64))
        out = np.empty((len(item), self.n_classes))
        for at in range(0, len(item), _PAIRS):
            here = slice(at, at + _PAIRS)
            items, row = np.unique(item[here], return_inverse=True)
            vector = self.model.classifier.encode(torch.from_numpy(views.vectors[items]))
            seen = Pairs(self.model.log_class(vector)[row], vector[row], who[here])
            out[here] = self.model.log_given(seen).double().log_softmax(dim=1).numpy()
        return out

    def state(self) -> State:
        kept = {
            name: value.numpy()
            for name, value in self.model.state_dict().items()
            if name not in self.model.per_item
        }
        sizes = [self.n_annotators, self.n_classes, self.model.classifier.width]
        return State({"sizes": sizes}, kept)


@dataclass(frozen=True, kw_only=True)
class Crowd(TendencyMethod):
    """A network that learns the truth from a crowd, asked for what each would say.

    Parameters
    ----------
    learner
        A method of learning from annotators, as the registry writes it.
    hidden
        Width of the classifier's hidden layer.
    epochs
        How often every item is seen, at most.
    batch
        Items per step.
    lr
        Learning rate of the classifier.
    patience
        Epochs without a better one before training ends; 0 goes on to the last.
    held_out
        Share of items held out, whose annotations choose the epoch.
    """

    learner: str = "madl"
    hidden: Count = 128
    epochs: Count = 40
    batch: Count = 64
    lr: Positive = 1e-3
    patience: Annotated[int, Ge(0)] = 10
    held_out: Probability = 0.1

    def learn(self, views: Views, annotations: Annotations, how: How) -> CrowdTendency:
        x = torch.from_numpy(views.vectors)
        examples = Examples(x, annotations)
        held: Examples | None = None
        if self.held_out and examples.n_labelled > 1:
            examples, held = hold_out(examples, self.held_out, how.seed)
        known = None if how.metadata is None else torch.tensor(how.metadata, dtype=torch.float32)
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(how.seed)
            model = self._model(examples.annotations, x, known)
            train(
                model,
                examples,
                Training(
                    epochs=self.epochs,
                    batch=self.batch,
                    lr=self.lr,
                    patience=self.patience,
                    held_out=0.0,
                    seed=how.seed,
                ),
                valid=held if held is not None and held.n_labelled else None,
                folder=how.folder,
                resume=how.resume,
                progress=how.progress,
            )
        return CrowdTendency(model)

    def _model(self, annotations: Annotations, x: Tensor, known: Tensor | None) -> CrowdModel:
        def classifier() -> Classifier:
            sizes = x.shape[1], annotations.n_classes, self.hidden
            made = Classifier(nn.Flatten(), *sizes, *_DROPOUT)
            made.fit_scale(x)
            return made

        return learners.create(self.learner).build(FitContext(annotations, classifier, known))

    def restore(self, state: State) -> CrowdTendency:
        n_annotators, n_classes, width = state.notes["sizes"]
        nothing = np.zeros(0, dtype=np.int64)
        annotations = Annotations.from_codes(
            nothing, nothing, nothing, items=0, annotators=n_annotators, classes=n_classes
        )
        tensors: dict[str, Any] = {name: torch.tensor(each) for name, each in state.arrays.items()}
        model = self._model(annotations, torch.zeros(1, width), tensors.get("features"))
        model.load_state_dict(tensors, strict=False)
        return CrowdTendency(model)
