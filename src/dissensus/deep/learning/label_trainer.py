"""A classifier trained on all labels as given, and the margins of these labels.

Training has to end before labels are memorized. So a first training on a validation split finds the
number of epochs after which held-out labels are predicted best; the second one learns all labels
for as many epochs. With `held_out=0` there is only the second, to its last epoch.

`Trainer` holds the prepared inputs, so that several networks (one per annotator, or one with an
extra class) are trained on the same vectors, each from a new start.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import numpy as np
from torch import Tensor, nn

from ...base.progress import Progress
from ...answers.annotations import Annotations, Floats, Integers
from ..nn import Training, as_inputs, train
from ..nn.augment import Augment, augment_for
from ..nn.batches import Examples, Source, hold_out, subset
from ..nn.devices import torch_seed
from ..nn.encoding import Encoding, encoding_for
from ..nn.inputs import digests
from .margins import KINDS, LabelLearner, MarginRecorder
from .hardness import Margins, split_settings
from .network import Classifier, Network

M = TypeVar("M", bound=Margins)


class Run(NamedTuple):
    """Folder of checkpoints, whether to resume from them, progress, and digests of the inputs."""

    folder: str | Path | None = None
    resume: bool = False
    progress: Progress | None = None
    data: Mapping[str, str] | None = None

    def inside(self, name: str, progress: Progress | None = None) -> Run:
        """Return a run in a subfolder."""
        folder = None if self.folder is None else Path(self.folder) / name
        return Run(folder, self.resume, progress, self.data)


class MarginRecord(NamedTuple):
    """Margins of labels while a classifier learned them."""

    aum: dict[str, Floats]  # by kind of margin: (annotation), means over epochs
    probability: Floats  # (item, class): of the last network; uniform for unlabelled items
    scores: Floats | None  # (epoch, item, class): logits after every epoch, if requested
    epochs: int


@dataclass(frozen=True, eq=False)
class Trainer:
    """Prepared inputs, the network above them, and how it is trained."""

    x: Tensor | Source
    encoding: Encoding
    vectors: Tensor  # of some items, to scale by
    network: Network
    training: Training
    augment: Augment | None = None

    def select(self, items: Integers) -> Trainer:
        """Return the same for some items; vectors are scaled as before."""
        return replace(self, x=subset(self.x, items))

    def held_out_likelihood(self, annotations: Annotations, run: Run) -> Floats:
        """Return the log-likelihood of held-out labels after every epoch: (epoch).

        Zeros where nothing can be held out.
        """
        training, examples = self.training, Examples(self.x, annotations, self.augment)
        learned, held = hold_out(examples, training.held_out, training.seed)
        score = np.zeros(training.epochs)
        if not (held.n_labelled and learned.n_labelled):
            return score
        with torch_seed(self.training.seed):
            learner = LabelLearner(self.classifier(annotations.n_classes))
            about = f"how long to train {self.encoding.name} ({self.network})"
            history = train(learner, learned, training, valid=held, about=about, **run._asdict())
        rows = [row.score for row in history.rows if row.score is not None]
        score[: len(rows)] = len(held.annotations) * np.array(rows)
        score[len(rows) :] = -np.inf  # stopped early
        return score

    def n_epochs(self, annotations: Annotations, run: Run) -> int:
        """Return after how many epochs training should end."""
        if not self.training.held_out:
            return self.training.epochs
        run = run.inside("length", run.progress)
        return best_epoch(self.held_out_likelihood(annotations, run))

    def record_margins(
        self,
        annotations: Annotations,
        epochs: int,
        run: Run,
        margins: Margins,
        *,
        keep: bool = False,
    ) -> MarginRecord:
        """Train a new classifier on all labels and return their margins."""
        training = replace(self.training, epochs=epochs, held_out=0.0, patience=0)
        shape = (epochs, annotations.n_items, annotations.n_classes) if keep else None
        with torch_seed(self.training.seed):
            classifier = self.classifier(annotations.n_classes)
            top, scale = margins.top, margins.scale
            learner = MarginRecorder(classifier, len(annotations), top, scale, shape)
            examples = Examples(self.x, annotations, self.augment)
            about = f"margins with top {top} of {scale} on {self.encoding.name} ({self.network})"
            train(learner, examples, training, about=about, **run._asdict())
        logits = learner.add_margins(examples, epochs - 1)
        aum = (learner.total / epochs).cpu().numpy()  # (kind, annotation)
        return MarginRecord(
            dict(zip(KINDS, aum, strict=True)),
            logits.double().softmax(dim=1).cpu().numpy(),
            None if learner.scores is None else learner.scores.double().cpu().numpy(),
            epochs,
        )

    def classifier(self, n_classes: int) -> Classifier:
        """Return a new classifier."""
        return Classifier.of(self.encoding, self.vectors, n_classes, self.network)


def prepare(
    method: type[M],
    X: Any,
    annotations: Annotations,
    *,
    encoder: str | nn.Module = "auto",
    frozen: bool | None = None,
    augment: bool = False,
    folder: str | Path | None = None,
    resume: bool = False,
    progress: Progress | None = None,
    **settings: Any,
) -> tuple[M, Trainer, Run]:
    """Return a method with its settings, a trainer for inputs of any kind, and its run."""
    chosen, network, training = split_settings((method, Network, Training), settings)
    inputs = as_inputs(X)
    changes = augment_for(inputs) if augment else None
    encoding = encoding_for(encoder, inputs, training.seed, frozen=frozen, augmented=augment)
    x = encoding.prepare(inputs)
    annotations.check_inputs(x)
    trainer = Trainer(x, encoding, encoding.vectors(x), network, training, changes)
    data = None if folder is None else digests({"inputs": inputs})
    return chosen, trainer, Run(folder, resume, progress, data)


def best_epoch(score: Floats) -> int:
    """Return the epoch with the best score, counted from 1; the last of equal ones.

    >>> best_epoch(np.array([-3.0, -2.0, -2.5])), best_epoch(np.zeros(3))
    (2, 3)
    """
    return len(score) - int(score[::-1].argmax())
