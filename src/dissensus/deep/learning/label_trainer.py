"""A classifier trained on all labels as given, the margins of these labels, and scores from them.

A label y on an item whose classes have the scores s, probabilities or logits, has the margin

    top2    s_y − s_[top + 1]        s_[r] is the r-th largest of all scores
    pleiss  s_y − s'_[top]           s'_[r] is the r-th largest of the scores of other classes

With `top` = 1 these are the label's score minus the second highest, and minus the highest of
another class. Both agree on labels among the `top` classes; for others pleiss is lower.

The classifier learns all labels as given, one term of the loss for each. After every epoch the
margins of all items are added up, in evaluation mode: so all items are scored by the same network,
every process has all sums, and a resumed training ends with the same ones.

    G. Pleiss, T. Zhang, E. Elenberg, K. Q. Weinberger. Identifying mislabeled data using the area
    under the margin ranking. NeurIPS 2020. arXiv:2001.10528

Training has to end before labels are memorized. So a first training on a validation split finds the
number of epochs after which held-out labels are predicted best; the second one learns all labels
for as many epochs. With `held_out=0` there is only the second, to its last epoch.

`Trainer` holds the prepared inputs, so that several networks (one per annotator, or one with an
extra class) are trained on the same vectors, each from a new start. `Hardness` is what the scores
of hard items share: the items to prune, and the table.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from difflib import get_close_matches
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt
import torch
from annotated_types import Interval
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from ...answers.annotations import Annotations, Floats, Integers
from ...base.arrays import Array, FrozenArrays
from ...base.names import Names, decode
from ...errors import MethodError
from ...method import Progress
from ...params import Count, Settings
from ...result import Table
from ..nn import Batch, Learner, Training, as_inputs, train
from ..nn.batches import Examples, Source, hold_out, subset
from ..nn.devices import torch_seed
from ..nn.encoding import Encoding, encoding_for
from ..nn.inputs import Augment, augment_for, digests
from .base import Classifier, Network

Flags = npt.NDArray[np.bool_]
Kind = Literal["top2", "pleiss"]
Scale = Literal["probabilities", "logits"]

KINDS: tuple[Kind, ...] = ("top2", "pleiss")
_BATCH = 1024  # items per batch


def margins(score: Tensor, label: Tensor, kind: Kind = "top2", top: int = 1) -> Tensor:
    """Return the margin of every label under the scores of its item: (label).

    >>> score = torch.tensor([[0.5, 0.25, 0.25], [0.5, 0.25, 0.25], [0.5, 0.375, 0.125]])
    >>> margins(score, torch.tensor([0, 1, 2])).tolist()
    [0.25, 0.0, -0.25]
    >>> margins(score, torch.tensor([0, 1, 2]), "pleiss").tolist()
    [0.25, -0.25, -0.375]
    """
    own = score.gather(1, label[:, None])
    if kind == "top2":
        return (own - score.topk(top + 1, dim=1).values[:, top:])[:, 0]
    wrong = score.scatter(1, label[:, None], -torch.inf)
    return (own - wrong.topk(top, dim=1).values[:, top - 1 :])[:, 0]


class LabelLearner(Learner):
    """A classifier that learns all labels as given."""

    def __init__(self, classifier: Classifier) -> None:
        super().__init__()
        self.classifier = classifier

    def loss(self, batch: Batch) -> Tensor:
        return cross_entropy(self.classifier(batch.x)[batch.row], batch.label)

    def log_truth(self, x: Tensor) -> Tensor:
        return self.classifier(x).log_softmax(dim=-1)

    def log_probability(self, batch: Batch) -> Tensor:
        return self.log_truth(batch.x)[batch.row].gather(1, batch.label[:, None])[:, 0]


class MarginRecorder(LabelLearner):
    """The same, with sums of the margins of all labels.

    Parameters
    ----------
    classifier
        The classifier.
    n_labels
        Number of labels.
    top, scale
        As for `margins`, and of which scores.
    shape
        Epochs, items and classes of the scores to keep; None keeps the sums alone.
    """

    total: Tensor  # (kind, annotation): margins added up over epochs
    scores: Tensor | None  # (epoch, item, class): logits

    def __init__(
        self,
        classifier: Classifier,
        n_labels: int,
        top: int,
        scale: Scale,
        shape: tuple[int, int, int] | None = None,
    ) -> None:
        super().__init__(classifier)
        self.top, self.scale = top, scale
        self.register_buffer("total", torch.zeros(len(KINDS), n_labels, dtype=torch.float64))
        self.register_buffer("scores", None if shape is None else torch.full(shape, torch.nan))

    def begin(self, examples: Examples, epoch: int) -> None:
        if epoch > 0:
            self.add_margins(examples, epoch - 1)

    @torch.no_grad()
    def add_margins(self, examples: Examples, epoch: int) -> Tensor:
        """Add up the margins at the end of an epoch; return the logits of the items."""
        n_items, n_classes = examples.annotations.n_items, examples.annotations.n_classes
        logits = torch.zeros(n_items, n_classes, device=self.total.device)
        start = 0  # items come in order, and so do their labels
        for batch in examples.batches(_BATCH, seed=0, epoch=0, shuffle=False):
            batch_logits = self.classifier(batch.x.to(self.total.device)).float()
            score = batch_logits
            if self.scale == "probabilities":
                score = score.softmax(dim=1)
            own, label = score[batch.row.to(score.device)], batch.label.to(score.device)
            rows = slice(start, start + len(label))
            for position, kind in enumerate(KINDS):
                self.total[position, rows] += margins(own, label, kind, self.top)
            logits[batch.item.to(logits.device)] = batch_logits
            start += len(label)
        if self.scores is not None:
            self.scores[epoch] = logits
        return logits


@dataclass(frozen=True, kw_only=True)
class Margins(Settings):
    """Which margins are used, and how many items are pruned.

    Parameters
    ----------
    alpha
        Share of items to prune, those with the lowest scores; at least one.
    margin
        A label's score minus the second highest (top2, Yang and Koyejo), or minus the highest of
        another class (pleiss).
    top
        Rank of the score that is subtracted, minus one with top2.
    scale
        Scores: probabilities or logits.
    """

    alpha: Annotated[float, Interval(ge=0, lt=1)] = 0.01
    margin: Kind = "top2"
    top: Count = 1
    scale: Scale = "probabilities"

    def check(self, annotations: Annotations) -> None:
        """Fail where there is no class to compare a label with."""
        if annotations.n_classes <= self.top:
            classes = f"{annotations.n_classes} class{'es' if annotations.n_classes > 1 else ''}"
            raise MethodError(f"{classes}, but margins with top = {self.top} need {self.top + 1}")


@dataclass(frozen=True, eq=False, repr=False)
class Hardness(FrozenArrays):
    """Items with a score, the lower the harder.

    Attributes
    ----------
    annotations
        The annotations that were scored.
    pruned
        Which items are too hard to learn from; never one without a score.
    learned
        Share of the labels that are the network's best class at the end. Where it is no larger
        than `common`, nothing was learned, and scores mean nothing.
    common
        Share of the most frequent label.
    epochs
        How many epochs the network was trained.
    label
        The label of every item, by code; -1 for none.
    """

    measure: ClassVar[str]  # what its scores are called

    annotations: Annotations
    pruned: Flags  # (item)
    learned: float
    common: float
    epochs: int
    label: Integers  # (item)

    def __repr__(self) -> str:
        n_items = self.annotations.n_items
        return f"<{type(self).__name__}: {int(self.pruned.sum())} of {n_items} items too hard>"

    @property
    def score(self) -> Floats:
        """The score of every item; NaN where there is none: (item)."""
        score: Floats = getattr(self, self.measure)
        return score

    @property
    def hardest(self) -> Integers:
        """Items by score, the hardest first, those without one last: (item)."""
        return np.argsort(self.score, kind="stable")

    @property
    def too_hard(self) -> Names:
        """The names of the pruned items."""
        return self.annotations.items[self.pruned]

    @property
    def kept(self) -> Annotations:
        """The annotations on the remaining items; the pruned ones stay declared, without labels."""
        return self.annotations.keep(~self.pruned[self.annotations.item])

    @property
    def labels(self) -> Names:
        """The label of every item, by name; `None` for none."""
        return decode(self.annotations.classes, self.label)

    def table(self) -> Table:
        """Return a row per item."""
        return {
            "item": self.annotations.items,
            self.measure: self.score,
            "label": self.labels,
            "n_labels": self.annotations.labels_per_item,
            "pruned": self.pruned,
        }


def share_learned(probability: Floats, label: Array) -> tuple[float, float]:
    """Return the share of labels that are the best class, and of the most frequent label."""
    if not len(label):
        return np.nan, np.nan
    learned = float((probability.argmax(axis=1) == label).mean())
    return learned, float(np.bincount(label).max() / len(label))


def at_most_quantile(score: Floats, alpha: float) -> tuple[float, Flags]:
    """Return a quantile of the known scores, and which are at or below it."""
    has_score = ~np.isnan(score)
    if not has_score.any():
        return np.nan, has_score
    quantile = float(np.quantile(score[has_score], alpha))
    return quantile, has_score & (score <= quantile)


def split_settings(kinds: tuple[type[Settings], ...], settings: dict[str, Any]) -> list[Any]:
    """Return settings of several kinds from one mapping; every name belongs to one of them."""
    kind_of = {field.name: kind for kind in kinds for field in fields(kind)}
    for name in settings:
        if name not in kind_of:
            close = get_close_matches(name, kind_of, n=1)
            hint = f"did you mean {close[0]}?" if close else f"there are {', '.join(kind_of)}"
            raise MethodError(f"no setting {name!r}; {hint}")
    return [
        kind(**{name: value for name, value in settings.items() if kind_of[name] is kind})
        for kind in kinds
    ]


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
        learned, held_out = hold_out(examples, training.held_out, training.seed)
        score = np.zeros(training.epochs)
        if not (held_out.n_labelled and learned.n_labelled):
            return score
        with torch_seed(self.training.seed):
            learner = LabelLearner(self.classifier(annotations.n_classes))
            about = f"how long to train {self.encoding.name} ({self.network})"
            history = train(
                learner, learned, training, valid=held_out, about=about, **run._asdict()
            )
        rows = [row.score for row in history.rows if row.score is not None]
        score[: len(rows)] = len(held_out.annotations) * np.array(rows)
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
            learner = MarginRecorder(
                classifier, len(annotations), top=top, scale=scale, shape=shape
            )
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
    method_settings, network, training = split_settings((method, Network, Training), settings)
    inputs = as_inputs(X)
    augmentation = augment_for(inputs) if augment else None
    encoding = encoding_for(encoder, inputs, training.seed, frozen=frozen, augmented=augment)
    x = encoding.prepare(inputs)
    annotations.check_inputs(x)
    trainer = Trainer(
        x=x,
        encoding=encoding,
        vectors=encoding.vectors(x),
        network=network,
        training=training,
        augment=augmentation,
    )
    data = None if folder is None else digests({"inputs": inputs})
    return method_settings, trainer, Run(folder, resume, progress, data)


def best_epoch(score: Floats) -> int:
    """Return the epoch with the best score, counted from 1; the last of equal ones.

    >>> best_epoch(np.array([-3.0, -2.0, -2.5])), best_epoch(np.zeros(3))
    (2, 3)
    """
    return len(score) - int(score[::-1].argmax())
