"""A classifier trained on labels as they were given, and what became of their margins.

`Trainee` holds the inputs as an encoder prepares them, so that several networks (one per
annotator, or one with a class more) are trained on the same vectors; each begins anew.
"""

from __future__ import annotations

from collections.abc import Callable
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
from ..nn.inputs import as_inputs
from ..nn.settings import Training
from ..nn.training import train
from ..params import Probability, Settings
from ._encoding import encoding_for
from ._margins import KINDS, Scale, Watched
from ._network import Classifier

__all__ = ["ALONE", "Network", "Run", "Some", "Trainee", "Watch"]


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
    """

    x: Tensor | Source
    body: Callable[[], nn.Module]
    vectors: Tensor
    network: Network
    training: Training
    augment: Callable[[Tensor], Tensor] | None = None
    name: str = "a network"

    @classmethod
    def of(
        cls,
        given: Any,
        said: Annotations,
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
        encoding = encoding_for(encoder, inputs, training.seed, frozen=frozen, changing=augment)
        x = encoding.prepare(inputs)
        if len(x) != said.n_items:
            raise DataError(f"{len(x)} inputs, but annotations on {said.n_items} items")
        # Every label is learned: what is held out would have no margin, and no epoch is chosen.
        whole = replace(training, held_out=0.0, patience=0)
        vectors = encoding.vectors(x)
        name = getattr(encoding.encoder, "name", "a network")
        return cls(x, encoding.network, vectors, network, whole, changed, name)

    def some(self, items: Integers) -> Trainee:
        """Return the same on some items alone; vectors are scaled as before."""
        x = self.x[torch.from_numpy(items)] if isinstance(self.x, Tensor) else Some(self.x, items)
        return replace(self, x=x)

    def watch(
        self,
        said: Annotations,
        run: Run,
        *,
        top: int = 1,
        scale: Scale = "probabilities",
        keep: bool = False,
    ) -> Watch:
        """Train a new classifier on labels as they were given, and watch their margins."""
        epochs = self.training.epochs
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(self.training.seed)
            learner = Watched(
                self.classifier(said.n_classes),
                len(said),
                top,
                scale,
                (epochs, said.n_items, said.n_classes) if keep else None,
            )
            examples = Examples(self.x, said, self.augment)
            about = f"margins with top {top} of {scale} on {self.name} ({self.network})"
            train(learner, examples, self.training, about=about, **run._asdict())
        logits = learner.look(examples, epochs - 1)
        aum = (learner.total / epochs).cpu().numpy()  # (kind, annotation)
        scores = None if learner.scores is None else learner.scores.double().cpu().numpy()
        return Watch(
            {kind: aum[place] for place, kind in enumerate(KINDS)},
            logits.double().softmax(dim=1).cpu().numpy(),
            scores,
        )

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
