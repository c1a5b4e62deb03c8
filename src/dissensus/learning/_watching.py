"""A classifier trained on labels as they were given, and what became of their margins.

Training has to end before labels are known by heart. So a first training holds out some items and
finds after how many epochs the labels on them are foreseen best (`Trainee.length`); the second one
learns all labels, and goes as far. With `held_out=0` there is only the second, to its last epoch.

`Trainee` holds the inputs as an encoder prepares them, so that several networks (one per
annotator, or one with a class more) are trained on the same vectors; each begins anew.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import numpy as np
import torch
from annotated_types import Ge
from torch import Tensor, nn

from .._relation import Floats, Integers
from ..annotations import Annotations
from ..errors import DataError
from ..nn.augment import augment_for
from ..nn.batches import Examples, Source, inputs_of
from ..nn.encoding import encoding_for
from ..nn.inputs import as_inputs
from ..nn.settings import Training
from ..nn.training import train
from ..nn.validation_split import hold_out
from ..params import Probability, Settings
from ._margins import KINDS, Plain, Scale, Watched
from .network import Classifier

__all__ = ["ALONE", "Network", "Run", "Some", "Trainee", "Watch", "longest"]


@dataclass(frozen=True, kw_only=True)
class Network(Settings):
    """What stands above the encoder.

    Parameters
    ----------
    hidden
        Width of the hidden layer; 0 for none.
    dropout
        Share of the hidden layer that is left out in every step.
    input_dropout
        Share of the inputs' vectors that is left out in every step.
    """

    hidden: Annotated[int, Ge(0)] = 128
    dropout: Probability = 0.5
    input_dropout: Probability = 0.3


class Run(NamedTuple):
    """Where checkpoints go, whether to go on from them, and whom to tell."""

    folder: str | Path | None = None
    resume: bool = False
    progress: Callable[[int, int, str], None] | None = None

    def below(self, name: str, progress: Any = None) -> Run:
        """Return a run inside this one."""
        folder = None if self.folder is None else Path(self.folder) / name
        return Run(folder, self.resume, progress)


ALONE = Run()  # nothing is kept, nobody is told


class Watch(NamedTuple):
    """What became of the labels while a classifier learned them."""

    aum: dict[str, Floats]  # by kind of margin: (annotation), means over epochs
    probability: Floats  # (item, class): by the last network; of items without labels, even
    scores: Floats | None  # (epoch, item, class): logits after every epoch, if kept
    epochs: int


@dataclass(frozen=True, eq=False)
class Some:
    """The inputs of some items."""

    x: Tensor | Source
    items: Integers  # (item here): codes there

    def __len__(self) -> int:
        return len(self.items)

    def __getitem__(self, items: Any, /) -> Tensor:
        return inputs_of(self.x, self.items[np.asarray(items)])


@dataclass(frozen=True, eq=False)
class Trainee:
    """Inputs, the network above them, and how it is trained.

    Parameters
    ----------
    x
        Inputs as the network takes them, one per item.
    body
        Makes the part of the network that turns them into vectors, anew.
    vectors
        Vectors of some items, to scale by.
    network
        What stands above.
    training
        How.
    augment
        Changes the inputs of a training batch.
    name
        What the inputs go through, in words.
    quick
        Whether the inputs are vectors already: a small network learns from them in no time.
    """

    x: Tensor | Source
    body: Callable[[], nn.Module]
    vectors: Tensor
    network: Network
    training: Training
    augment: Callable[[Tensor], Tensor] | None = None
    name: str = "a network"
    quick: bool = False

    @classmethod
    def of(
        cls,
        given: Any,
        annotations: Annotations,
        encoder: str | nn.Module,
        network: Network,
        training: Training,
        *,
        frozen: bool | None = None,
        augment: bool = False,
    ) -> Trainee:
        """Return what is trained on inputs as a user has them."""
        inputs = as_inputs(given)
        changed = augment_for(inputs) if augment else None
        encoding = encoding_for(encoder, inputs, training.seed, frozen=frozen, augmented=augment)
        x = encoding.prepare(inputs)
        if len(x) != annotations.n_items:
            raise DataError(f"{len(x)} inputs, but annotations on {annotations.n_items} items")
        vectors = encoding.vectors(x)
        described = encoding.network, vectors, network, training, changed, encoding.name
        return cls(x, *described, encoding.cached)

    def some(self, items: Integers) -> Trainee:
        """Return the same on some items alone; vectors are scaled as before."""
        x = self.x[torch.from_numpy(items)] if isinstance(self.x, Tensor) else Some(self.x, items)
        return replace(self, x=x)

    def foreseen(self, annotations: Annotations, run: Run) -> Floats:
        """Return how well labels on items held out are foreseen after every epoch: (epoch).

        Log-likelihoods, added up; zeros where nothing can be held out.
        """
        training, examples = self.training, Examples(self.x, annotations, self.augment)
        learned, held = hold_out(examples, training.held_out, training.seed)
        score = np.zeros(training.epochs)
        if not (held.n_labelled and learned.n_labelled):
            return score
        with self._begun():
            plain = Plain(self.classifier(annotations.n_classes))
            about = f"how long to train {self.name} ({self.network})"
            history = train(plain, learned, training, valid=held, about=about, **run._asdict())
        rows = [row.score for row in history.rows if row.score is not None]
        score[: len(rows)] = len(held.annotations) * np.array(rows)
        score[len(rows) :] = -np.inf  # patience has ended it
        return score

    def length(self, annotations: Annotations, run: Run) -> int:
        """Return after how many epochs training should end."""
        if not self.training.held_out:
            return self.training.epochs
        return longest(self.foreseen(annotations, run.below("length", run.progress)))

    def watch(
        self,
        annotations: Annotations,
        epochs: int,
        run: Run,
        *,
        top: int = 1,
        scale: Scale = "probabilities",
        keep: bool = False,
    ) -> Watch:
        """Train a new classifier on labels as they were given, and watch their margins."""
        whole = replace(self.training, epochs=epochs, held_out=0.0, patience=0)
        with self._begun():
            learner = Watched(
                self.classifier(annotations.n_classes),
                len(annotations),
                top,
                scale,
                (epochs, annotations.n_items, annotations.n_classes) if keep else None,
            )
            examples = Examples(self.x, annotations, self.augment)
            about = f"margins with top {top} of {scale} on {self.name} ({self.network})"
            train(learner, examples, whole, about=about, **run._asdict())
        logits = learner.look(examples, epochs - 1)
        aum = (learner.total / epochs).cpu().numpy()  # (kind, annotation)
        scores = None if learner.scores is None else learner.scores.double().cpu().numpy()
        return Watch(
            {kind: aum[position] for position, kind in enumerate(KINDS)},
            logits.double().softmax(dim=1).cpu().numpy(),
            scores,
            epochs,
        )

    @contextmanager
    def _begun(self) -> Iterator[None]:
        """Draw weights by the seed, and leave the caller's random numbers as they were."""
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(self.training.seed)
            yield

    def classifier(self, n_classes: int) -> Classifier:
        """Return a new classifier."""
        how = self.network
        made = Classifier(
            self.body(),
            self.vectors.shape[1],
            n_classes,
            how.hidden,
            how.dropout,
            how.input_dropout,
        )
        made.fit_scale(self.vectors)
        return made


def longest(foreseen: Floats) -> int:
    """Return the epoch after which labels were foreseen best, the last where none is better.

    >>> longest(np.array([-3.0, -2.0, -2.5])), longest(np.zeros(3))
    (2, 3)
    """
    return len(foreseen) - int(foreseen[::-1].argmax())
