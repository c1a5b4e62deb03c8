"""The contract of methods that learn from annotators, and the loss that most of them share.

A `LearningMethod` is a set of settings in the registry. It builds a `CrowdModel`: a classifier
that gives `log_truth[i, k]`, the log-probability that item i is of class k, and a model of the
annotators that turns it into the log-probability of every label that annotator j could give,

    log_given[n, l] = log Σ_k exp(log_truth[i(n), k] + log_confusion[n, k, l]).

The loss is the mean of −log_given at the labels that were given, over the annotations of a batch;
missing labels do not count. Predictions do not depend on the annotators.

Some methods (`joint`) predict the labels of an item jointly instead,

    log Σ_k exp(log_truth[i, k] + Σ_n log_confusion[n, k, label n]),    n on item i,

and are evaluated by held-out labels in the same way. Only jointly do labels show why annotators
disagree: where the input leaves the class open, labels of one item agree with each other more than
with the classifier; where annotators err, they do not.

In the first epochs (`warm_up`) the classifier learns the labels as they are, all with the same
weight. The annotators keep their start, so class k of the network is class k of the crowd.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from typing import Annotated, Any, ClassVar, NamedTuple, Self

import numpy as np
import torch
from annotated_types import Ge
from torch import Tensor, nn

from ...answers.annotations import Annotations, Floats
from ...params import Positive, Probability, Settings
from ..nn import Batch, Examples, Learner
from ..nn.batches import Table
from ..nn.encoding import Encoding
from ..nn.estimator import standardization

Epochs = Annotated[int, Ge(0)]


@dataclass(frozen=True, kw_only=True)
class Network(Settings):
    """The layers above the encoder.

    Parameters
    ----------
    hidden
        Width of the hidden layer; 0 for none.
    dropout
        Dropout of the hidden layer.
    input_dropout
        Dropout of the input vectors.
    """

    hidden: Annotated[int, Ge(0)] = 128
    dropout: Probability = 0.5
    input_dropout: Probability = 0.3


class Classifier(nn.Module):
    """x → logits of the classes, by an encoder, one hidden layer and one linear head.

    The encoder turns an input into a vector; for features it is the identity. Vectors are
    standardized by the training items, so that one learning rate and one dropout fit all data.
    Methods that depend on the item (CoNAL, MaDL, CrowdAR) use the vector, without gradients into
    the encoder.

    Parameters
    ----------
    encoder
        x → vector.
    width
        Number of features of a vector.
    n_classes
        Number of classes.
    hidden
        Width of the hidden layer; 0 for none, which makes it softmax regression.
    dropout
        Dropout of the hidden layer.
    input_dropout
        Dropout of the vector.
    """

    mean: Tensor  # (feature)
    scale: Tensor  # (feature)

    def __init__(
        self,
        encoder: nn.Module,
        width: int,
        n_classes: int,
        hidden: int = 128,
        dropout: float = 0.5,
        input_dropout: float = 0.0,
    ) -> None:
        super().__init__()
        self.encoder = encoder
        self.width = width
        self.hidden_width = hidden or width
        layers: list[nn.Module] = [nn.Dropout(input_dropout)]
        if hidden:
            layers += [nn.Linear(width, hidden), nn.ReLU(), nn.Dropout(dropout)]
        self.body = nn.Sequential(*layers)
        self.head = nn.Linear(self.hidden_width, n_classes)
        self.register_buffer("mean", torch.zeros(width))
        self.register_buffer("scale", torch.ones(width))

    @classmethod
    def of(cls, encoding: Encoding, vectors: Tensor, n_classes: int, network: Network) -> Self:
        """Return a new classifier, scaled by the vectors of some items."""
        classifier = cls(encoding.network(), vectors.shape[1], n_classes, **asdict(network))
        classifier.fit_scale(vectors)
        return classifier

    def fit_scale(self, vectors: Tensor) -> None:
        """Scale by the mean and the spread of these vectors; what never varies becomes zero."""
        mean, scale = standardization(vectors)
        self.mean.copy_(mean)
        self.scale.copy_(scale)

    def encode(self, x: Tensor) -> Tensor:
        """Return the scaled vectors: (item, feature)."""
        return (self.encoder(x) - self.mean) * self.scale

    def log_truth(self, vector: Tensor) -> Tensor:
        """Return log-probabilities of the classes: (item, class)."""
        return self.head(self.body(vector)).log_softmax(dim=-1)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.body(self.encode(x)))


@dataclass(frozen=True, eq=False)
class BuildParts:
    """What a model is built for: the annotations and the classifier to train."""

    annotations: Annotations  # items in the order of the inputs
    classifier: Callable[[], Classifier]  # returns a new one
    features: Tensor | None = None  # (annotator, feature)
    posterior: Tensor | None = None  # (item, class): what to learn, where it is given


@dataclass(frozen=True, kw_only=True)
class LearningMethod(Settings):
    """A way to learn a classifier from annotators who disagree.

    Parameters
    ----------
    warm_up
        Epochs in which the classifier learns the labels as they are.
    crowd_lr
        Learning rate of the parameters of annotators. Each annotator occurs in few batches, so it
        has to be larger than the classifier's.
    """

    model: ClassVar[type[CrowdModel]]  # its network

    warm_up: Epochs = 5
    crowd_lr: Positive = 0.03

    def build(self, context: BuildParts) -> CrowdModel:
        """Return the network to train."""
        return self.model(context, self)


class PairBatch(NamedTuple):
    """(item, annotator) pairs, one for every annotation of a batch."""

    log_truth: Tensor  # (annotation, class)
    vector: Tensor  # (annotation, feature): of the item, without gradients
    annotator: Tensor  # (annotation)


class CrowdModel(Learner):
    """A classifier and a model of its annotators."""

    per_item: ClassVar[tuple[str, ...]] = ()  # buffers with a row per item, for training only
    joint: ClassVar[bool] = False  # whether the labels of an item are predicted jointly
    settings: LearningMethod
    warming: Tensor  # whether the warm-up goes on
    count: Tensor  # (annotator): number of labels, at least one

    def __init__(self, context: BuildParts, settings: LearningMethod) -> None:
        super().__init__()
        self.settings = settings
        self.classifier = context.classifier()
        self.n_items = context.annotations.n_items
        self.n_annotators = context.annotations.n_annotators
        self.n_classes = context.annotations.n_classes
        self.register_buffer("warming", torch.tensor(settings.warm_up > 0))
        count = torch.from_numpy(context.annotations.labels_per_annotator).clamp(min=1)
        self.n_annotations = max(len(context.annotations), 1)
        self.register_buffer("count", count.to(torch.get_default_dtype()))

    @abstractmethod
    def log_confusion(self, annotator: Tensor, vector: Tensor) -> Tensor:
        """Return log confusion matrices of annotators on items: (annotation, true, given)."""

    def log_given(self, pairs: PairBatch) -> Tensor:
        """Return log-probabilities of the labels that could be given: (annotation, given)."""
        confusion = self.log_confusion(pairs.annotator, pairs.vector)
        return torch.logsumexp(pairs.log_truth[:, :, None] + confusion, dim=1)

    def penalty(self, annotator: Tensor) -> Tensor:
        """Return a penalty added to the loss, for instance a prior.

        It depends on the annotators of a batch, each as often as they occur; `over_all` scales it
        to all annotators.
        """
        return self.count.new_zeros(())

    def gaussian_prior(self, own: Tensor, annotator: Tensor, spread: float | None) -> Tensor:
        """Return minus the log of a prior on rows of annotators, but for a constant."""
        if spread is None:
            return self.count.new_zeros(())
        return self.over_all(squares(own) / (2 * spread**2), annotator) / self.n_annotations

    def groups(self) -> list[dict[str, Any]]:
        networks = set(self.networks())
        crowd = [parameter for parameter in self.parameters() if parameter not in networks]
        return [
            {"params": list(self.networks())},
            {"params": crowd, "lr": self.settings.crowd_lr, "weight_decay": 0.0},
        ]

    def networks(self) -> Iterator[nn.Parameter]:
        """Yield the parameters that are not about annotators."""
        return self.classifier.parameters()

    def over_all(self, value: Tensor, annotator: Tensor) -> Tensor:
        """Return an unbiased estimate of the sum over annotators, from one value per annotation."""
        return self.n_annotations * (value / self.count[annotator]).mean()

    def crowd_loss(self, log_truth: Tensor, vector: Tensor, batch: Batch) -> Tensor:
        """Return the loss after the warm-up, without the penalty."""
        return -at_label(self.log_given(self.pairs(log_truth, vector, batch)), batch.label).mean()

    def log_label(self, vector: Tensor, batch: Batch) -> Tensor:
        """Return the log-probability of every label under every class: (annotation, true)."""
        confusion = self.log_confusion(batch.annotator, vector.detach()[batch.row])
        label = batch.label[:, None, None].expand(-1, self.n_classes, 1)
        return confusion.gather(2, label)[:, :, 0]

    def log_together(self, log_truth: Tensor, vector: Tensor, batch: Batch) -> Tensor:
        """Return the log-probability of all labels of an item together: (item)."""
        return log_truth.index_add(0, batch.row, self.log_label(vector, batch)).logsumexp(dim=1)

    def pairs(self, log_truth: Tensor, vector: Tensor, batch: Batch) -> PairBatch:
        """Return the (item, annotator) pairs of a batch."""
        return PairBatch(log_truth[batch.row], vector.detach()[batch.row], batch.annotator)

    def loss(self, batch: Batch) -> Tensor:
        batch = without_unlabelled(batch)
        vector = self.classifier.encode(batch.x)
        if self.warming:
            return -at_label(self.log_class(vector)[batch.row], batch.label).mean()
        return self.crowd_loss(self.log_class(vector), vector, batch) + self.penalty(
            batch.annotator
        )

    def begin(self, examples: Examples, epoch: int) -> None:
        self.warming.fill_(epoch < self.settings.warm_up)

    def log_class(self, vector: Tensor) -> Tensor:
        """Return log-probabilities of the classes, from vectors: (item, class)."""
        return self.classifier.log_truth(vector)

    def log_truth(self, x: Tensor) -> Tensor:
        """Return log-probabilities of the classes: (item, class)."""
        return self.log_class(self.classifier.encode(x))

    def log_probability(self, batch: Batch) -> Tensor:
        """Return the log-probability of every label in the batch: (annotation).

        Of joint models, that of each label given those before it on its item.
        """
        vector = self.classifier.encode(batch.x)
        log_truth = self.log_class(vector)
        if self.joint:
            return sequential_log_probability(
                log_truth[batch.row], self.log_label(vector, batch), batch.row
            )
        return at_label(self.log_given(self.pairs(log_truth, vector, batch)), batch.label)

    def log_classes(self, examples: Examples) -> Tensor:
        """Return log-probabilities of the classes of all items with labels: (item, class)."""
        log = self.count.new_zeros(self.n_items, self.n_classes)
        for batch in examples.batches(1024, seed=0, epoch=0, shuffle=False):
            log[batch.item] = self.log_truth(batch.x)
        return log

    def annotator_proba(self, x: Tensor, annotator: Tensor) -> Tensor:
        """Return label probabilities of annotators on items: (item, annotator, given)."""
        log_given = self.log_given(self.all_pairs(x, annotator))
        return log_given.exp().reshape(len(x), len(annotator), self.n_classes)

    def performance(self, x: Tensor, annotator: Tensor) -> Tensor:
        """Return the probability that annotators are right about items: (item, annotator)."""
        return self.right(self.all_pairs(x, annotator)).reshape(len(x), len(annotator))

    def all_pairs(self, x: Tensor, annotator: Tensor) -> PairBatch:
        """Return the pairs of every item with every annotator."""
        vector = self.classifier.encode(x)
        row = torch.arange(len(x), device=annotator.device).repeat_interleave(len(annotator))
        return PairBatch(self.log_class(vector)[row], vector[row], annotator.repeat(len(x)))

    def right(self, pairs: PairBatch) -> Tensor:
        """Return the probability that a label is right, whatever it is: (annotation)."""
        log_right = self.log_confusion(pairs.annotator, pairs.vector).diagonal(dim1=1, dim2=2)
        return (pairs.log_truth + log_right).exp().sum(dim=1)

    def confusion(self) -> Tensor:
        """Return confusion matrices on an average item: (annotator, true, given)."""
        annotators = torch.arange(self.n_annotators, device=self.count.device)
        average = self.classifier.mean.new_zeros(self.n_annotators, self.classifier.width)
        return self.log_confusion(annotators, average).exp()


def at_label(log: Tensor, label: Tensor) -> Tensor:
    """Return the entry of every row at its label."""
    return log.gather(1, label[:, None])[:, 0]


def sequential_log_probability(log_truth: Tensor, log_label: Tensor, row: Tensor) -> Tensor:
    """Return the log-probability of every label given those before it on its item: (annotation).

    Labels of one item are consecutive, as in every batch.
    """
    after = log_label.double().cumsum(dim=0)
    before = after - log_label
    log_truth = log_truth - before[torch.searchsorted(row, row)]  # without other items
    log = torch.logsumexp(log_truth + after, 1) - torch.logsumexp(log_truth + before, 1)
    return log.to(log_label.dtype)


def without_unlabelled(batch: Batch) -> Batch:
    """Return the batch without unlabelled items."""
    labelled = torch.bincount(batch.row, minlength=len(batch.item)) > 0
    if bool(labelled.all()):
        return batch
    row = (labelled.cumsum(dim=0) - 1)[batch.row]
    return batch._replace(x=batch.x[labelled], item=batch.item[labelled], row=row)


def linear(width: int, out: int, spread: float) -> nn.Linear:
    """Return a linear layer whose weights begin small and whose bias begins at zero."""
    layer = nn.Linear(width, out)
    nn.init.normal_(layer.weight, std=spread)
    nn.init.zeros_(layer.bias)
    return layer


class AnnotatorMatrices(nn.Module):
    """One matrix for every annotator: what all share and what is their own.

    As logits of confusion matrices,

        log_confusion[j, k, l] = log_softmax_l( common[k, l] + own[j, k, l] ),

    with a Gaussian prior of spread `spread` on every entry of `own`. An annotator with forty labels
    on eight classes cannot fill sixty-four cells; the prior shrinks them towards the shared matrix.
    It enters the loss divided by the number of annotations, as in the posterior.
    """

    def __init__(self, start: Tensor, n_annotators: int) -> None:
        super().__init__()
        self.common = nn.Parameter(start.clone())  # (true, given)
        self.own = Table(torch.zeros(n_annotators, *start.shape))  # (annotator, true, given)

    def forward(self, annotator: Tensor) -> Tensor:
        return self.common + self.own(annotator)


def squares(rows: Tensor) -> Tensor:
    """Return the sum of the squares in every row of a table."""
    return rows.flatten(1).square().sum(dim=1)


def trusting(accuracy: float, n_classes: int) -> Tensor:
    """Return logits under which every class is labelled correctly this often: (true, given).

    >>> trusting(0.8, 3).softmax(dim=1).diagonal().tolist()
    [0.800..., 0.800..., 0.800...]
    """
    n_wrong = max(n_classes - 1, 1)
    return math.log(accuracy * n_wrong / (1 - accuracy)) * torch.eye(n_classes)


def count_confusion(
    annotations: Annotations, posterior: Floats, own: float = 0.01, common: float = 0.0
) -> Floats:
    """Return confusion matrices counted under a posterior: (annotator, true, given).

    Every cell gets `own`, and every row the weight `common`, shared out as all annotators
    together fill that row.
    """
    n_classes = annotations.n_classes
    labels = annotations.part(0, annotations.n_items).labels
    counts = (labels.T @ posterior).reshape(-1, n_classes, n_classes).swapaxes(1, 2)
    pooled = counts.sum(axis=0) + own + np.eye(n_classes)
    counts = counts + own + common * pooled / pooled.sum(axis=1, keepdims=True)
    return counts / counts.sum(axis=2, keepdims=True)


def log_count_confusion(annotations: Annotations, posterior: Floats, common: float) -> Tensor:
    """Return the log of `count_confusion` as a tensor."""
    confusion = count_confusion(annotations, posterior, common=common)
    return torch.tensor(np.log(confusion), dtype=torch.get_default_dtype())


def vote_shares(annotations: Annotations) -> Floats:
    """Return the share of the labels of an item that each class has; zeros without labels."""
    votes = annotations.votes()
    return votes / np.maximum(votes.sum(axis=1, keepdims=True), 1)
