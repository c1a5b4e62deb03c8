"""Networks on item vectors: the deep baselines, and what they share.

A `VectorNet` gives the log-probability of every label from the vector of the item and the code of
the annotator. Loss, training, early stopping and state are those of `NetworkMethod`; a method adds
its network. What annotators have of their own is an embedding, a network for them or a group of
similar ones, a bias, or a head on a shared hidden layer.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from math import log
from typing import Annotated, ClassVar, NamedTuple, TypeVar

import numpy as np
import torch
from annotated_types import Ge
from torch import Tensor, nn
from torch.nn.functional import dropout, softplus

from ...answers.annotations import Annotations, Floats, Integers
from ...errors import MethodError
from ...params import Count, NonNegative, Positive, Probability
from ..nn import Batch, Examples, Features, Learner, Table, Training
from ..nn.estimator import Standardize
from ..nn.runs import load_network, network_state
from ..nn.training import build_and_train
from .base import FitOptions, State, Tendency, TendencyMethod
from .baselines import label_counts, label_marginals
from .pairs import check_width

_PAIRS = 2**14  # predicted at a time
_INIT_STD = 0.02
Net = TypeVar("Net", bound=Learner)


class Sizes(NamedTuple):
    """Sizes of a network."""

    n_features: int
    n_annotators: int
    n_classes: int


class VectorNet(Learner):
    """A network from the vector of an item and an annotator to the annotator's label."""

    def __init__(self, sizes: Sizes, method: NetworkMethod) -> None:
        super().__init__()
        self.scaled = Standardize(sizes.n_features)

    @abstractmethod
    def log_given(self, x: Tensor, row: Tensor, annotator: Tensor) -> Tensor:
        """Return log-probabilities of labels: (pair, class).

        Parameters
        ----------
        x
            Scaled vectors: (item, feature).
        row
            The item of every pair, as a row of `x`.
        annotator
            The annotator of every pair.
        """

    def start(self, annotations: Annotations) -> None:
        """Set buffers that depend on the annotations."""

    def log_batch(self, batch: Batch) -> Tensor:
        """Return log-probabilities of labels in a batch: (annotation, class)."""
        return self.log_given(self.scaled(batch.x), batch.row, batch.annotator)

    def loss(self, batch: Batch) -> Tensor:
        return -self.log_probability(batch).mean()

    def log_probability(self, batch: Batch) -> Tensor:
        return self.log_batch(batch).gather(1, batch.label[:, None])[:, 0]


def hidden_layer(n_features: int, hidden: int, dropout: float) -> nn.Sequential:
    """Return one hidden layer, shared by all annotators."""
    return nn.Sequential(
        nn.Dropout(dropout), nn.Linear(n_features, hidden), nn.ReLU(), nn.Dropout(dropout)
    )


class VectorTendency(Tendency):
    """A trained network on vectors."""

    def __init__(self, net: nn.Module, sizes: Sizes, seed: int = 0) -> None:
        self.net, self.sizes, self.seed = net.eval(), sizes, seed
        self.n_annotators, self.n_classes = sizes.n_annotators, sizes.n_classes

    @abstractmethod
    def log_pairs(self, x: Tensor, row: Tensor, annotator: Tensor) -> Tensor:
        """Return log-probabilities of labels, for items `x[row]`: (pair, class)."""

    @torch.inference_mode()
    def log_probability(self, features: Features, item: Integers, annotator: Integers) -> Floats:
        check_width(features, self.sizes.n_features)
        item, annotator = np.asarray(item), np.asarray(annotator, dtype=np.int64)
        out = np.empty((len(item), self.n_classes))
        with torch.random.fork_rng(devices=[]):
            for start in range(0, len(item), _PAIRS):
                pairs = slice(start, start + _PAIRS)
                torch.manual_seed(self.seed)  # for Monte-Carlo dropout
                items, row = np.unique(item[pairs], return_inverse=True)
                x = torch.from_numpy(features.vectors[items])
                log = self.log_pairs(x, torch.from_numpy(row), torch.from_numpy(annotator[pairs]))
                out[pairs] = log.double().log_softmax(dim=1).numpy()
        return out

    def state(self) -> State:
        notes = {"sizes": list(self.sizes), "seed": self.seed}
        return network_state(self.net)._replace(notes=notes)


class NetworkTendency(VectorTendency):
    """A trained `VectorNet`."""

    net: VectorNet

    def log_pairs(self, x: Tensor, row: Tensor, annotator: Tensor) -> Tensor:
        return self.net.log_given(self.net.scaled(x), row, annotator)


def fit_network(
    build: Callable[[Annotations], Net],
    x: Tensor,
    annotations: Annotations,
    *,
    training: Training,
    context: FitOptions,
) -> Net:
    """Return a trained network, built for the annotations outside the validation split."""
    network, _ = build_and_train(
        build,
        Examples(x, annotations),
        training,
        folder=context.folder,
        resume=context.resume,
        progress=context.progress,
        about=context.about,
        data=context.data,
    )
    return network


@dataclass(frozen=True, kw_only=True)
class NetworkMethod(TendencyMethod):
    """Settings that networks on vectors share.

    Parameters
    ----------
    hidden
        Width of the hidden layer.
    dropout
        Dropout of the vector and of the hidden layer.
    epochs
        Maximal number of epochs.
    batch
        Items per step.
    lr
        Learning rate at its highest.
    decay
        Weight decay.
    patience
        Epochs without improvement before training stops.
    held_out
        Share of items in the validation split, whose annotations choose the epoch.
    """

    network: ClassVar[type[VectorNet]]

    hidden: Count = 128
    dropout: Probability = 0.3
    epochs: Count = 60
    batch: Count = 32
    lr: Positive = 1e-3
    decay: NonNegative = 0.01
    patience: Annotated[int, Ge(0)] = 8
    held_out: Probability = 0.1

    def _fit(self, features: Features, annotations: Annotations, context: FitOptions) -> Tendency:
        x = torch.from_numpy(features.vectors)
        sizes = Sizes(x.shape[1], annotations.n_annotators, annotations.n_classes)

        def build(learned: Annotations) -> VectorNet:
            net = self.network(sizes, self)
            net.scaled.fit(x)
            net.start(learned)
            return net

        training = Training.of(self, optimizer="adamw", seed=context.seed)
        net = fit_network(build, x, annotations, training=training, context=context)
        net.start(annotations)
        return NetworkTendency(net, sizes, context.seed)

    def restore(self, state: State) -> Tendency:
        sizes = Sizes(*state.notes["sizes"])
        net = load_network(self.network(sizes, self), state)
        return NetworkTendency(net, sizes, state.notes["seed"])


class AnnotatorEmbeddingNet(VectorNet):
    """A classifier of the item's vector plus embeddings of the annotator."""

    count: Tensor  # (annotator, class): training labels

    def __init__(self, sizes: Sizes, method: AnnotatorEmbedding) -> None:
        super().__init__(sizes, method)
        width = method.hidden
        self.item = nn.Sequential(nn.Dropout(method.dropout), nn.Linear(sizes.n_features, width))
        self.weigh_item = nn.Linear(width, method.width, bias=False)
        self.annotator = self.label = None
        if method.annotator:
            self.annotator = Table(_INIT_STD * torch.randn(sizes.n_annotators, width))
            self.weigh_annotator = nn.Linear(width, method.width, bias=False)
        if method.annotations:
            self.label = nn.Parameter(_INIT_STD * torch.randn(sizes.n_classes, width))
            self.weigh_label = nn.Linear(width, method.width, bias=False)
        self.head = nn.Sequential(
            nn.LayerNorm(width), nn.ReLU(), nn.Dropout(method.dropout),
            nn.Linear(width, sizes.n_classes),
        )  # fmt: skip
        self.register_buffer("count", torch.zeros(sizes.n_annotators, sizes.n_classes))

    def start(self, annotations: Annotations) -> None:
        self.count.copy_(torch.from_numpy(label_counts(annotations)))

    def log_given(
        self, x: Tensor, row: Tensor, annotator: Tensor, without: Tensor | None = None
    ) -> Tensor:
        item = self.item(x)
        weigh = self.weigh_item(item)[row]
        out = item[row]
        if self.annotator is not None:
            own = self.annotator(annotator)
            out = out + (weigh * self.weigh_annotator(own)).sum(dim=1, keepdim=True) * own
        if self.label is not None:
            count = self.count[annotator]
            if without is not None:  # leave out the label to predict
                count = count - nn.functional.one_hot(without, count.shape[1])
            labels = count / count.sum(dim=1, keepdim=True).clamp(min=1) @ self.label
            out = out + (weigh * self.weigh_label(labels)).sum(dim=1, keepdim=True) * labels
        return self.head(out).log_softmax(dim=1)

    def log_batch(self, batch: Batch) -> Tensor:
        without = batch.label if self.training else None
        return self.log_given(self.scaled(batch.x), batch.row, batch.annotator, without)


@dataclass(frozen=True, kw_only=True)
class AnnotatorEmbedding(NetworkMethod):
    """Embeddings of annotators and of their other labels, weighted by the item.

    Deng et al. (2023): embeddings of annotators and of their other annotations.

        e_a = a row per annotator,   e_n = mean over the annotator's other labels of a row per class
        α = (W_s s) · (W_a e_a),   β = (W_s s) · (W_n e_n)
        P(k says · of x) = softmax(head(LayerNorm(s + α e_a + β e_n)))

    with s the vector of the item, here after one linear layer, since the encoder is frozen. With
    `annotations` alone a new annotator needs a few labels and no training.

    When it fails: With few labels per annotator an embedding is close to its start. Embeddings of
    the other labels leak what the annotator gave to similar items, which a new annotator does not
    have.

        N. Deng, X. F. Zhang, S. Liu, W. Wu, L. Wang, R. Mihalcea. You are what you annotate:
        towards better models through annotator representations. Findings of EMNLP 2023.
        arXiv:2305.14663

    Parameters
    ----------
    annotator
        Whether annotators have embeddings.
    annotations
        Whether their other labels are embedded.
    width
        Width of the space in which embeddings are weighted.
    """

    network = AnnotatorEmbeddingNet

    annotator: bool = True
    annotations: bool = True
    width: Count = 64

    def __post_init__(self) -> None:
        super().__post_init__()
        if not (self.annotator or self.annotations):
            raise MethodError("annotator = annotations = False, but one of them must be embedded")


def groups(annotations: Annotations, bases: int) -> Integers:
    """Return the group of every annotator: their own, or one with similar label marginals."""
    if annotations.n_annotators <= bases:
        return np.arange(annotations.n_annotators)
    log_marginals = np.log(label_marginals(annotations))
    centred = log_marginals - log_marginals.mean(axis=0)
    axis = np.linalg.svd(centred, full_matrices=False)[2][0]
    order = np.argsort(centred @ axis, kind="stable")
    count = annotations.labels_per_annotator[order]
    start = np.cumsum(count) - count
    out = np.empty(annotations.n_annotators, dtype=np.int64)
    out[order] = np.minimum(start * bases // max(len(annotations), 1), bases - 1)
    return out


class DLemaNet(VectorNet):
    """A network per group."""

    group: Tensor  # (annotator)

    def __init__(self, sizes: Sizes, method: DLema) -> None:
        super().__init__(sizes, method)
        self.dropout, self.samples, self.bases = method.dropout, method.samples, method.bases
        count = min(sizes.n_annotators, method.bases)
        first = torch.randn(count, method.hidden, sizes.n_features + 1) / sizes.n_features**0.5
        last = torch.randn(count, sizes.n_classes, method.hidden + 1) / method.hidden**0.5
        self.first, self.last = Table(first), Table(last)
        self.register_buffer("group", torch.zeros(sizes.n_annotators, dtype=torch.int64))

    def start(self, annotations: Annotations) -> None:
        if not bool(self.group.any()):
            self.group.copy_(torch.from_numpy(groups(annotations, self.bases)))

    def log_given(self, x: Tensor, row: Tensor, annotator: Tensor) -> Tensor:
        group, index = torch.unique(self.group[annotator], return_inverse=True)
        first, last = self.first(group), self.last(group)
        samples = 1 if self.training else self.samples
        logs = [self._sample(x, first, last)[row, index] for _ in range(samples)]
        return torch.stack(logs).logsumexp(dim=0) - log(samples)

    def _sample(self, x: Tensor, first: Tensor, last: Tensor) -> Tensor:
        """Return log-probabilities under one dropout mask: (item, group, class)."""
        x = dropout(x, self.dropout)
        hidden = torch.einsum("id,ghd->igh", x, first[:, :, :-1]) + first[:, :, -1]
        hidden = dropout(hidden.relu(), self.dropout)
        logits = torch.einsum("igh,gch->igc", hidden, last[:, :, :-1]) + last[:, :, -1]
        return logits.log_softmax(dim=2)


@dataclass(frozen=True, kw_only=True)
class DLema(NetworkMethod):
    """One network per annotator, or per group of similar annotators.

    D-LEMA (2021): one network per annotator, or per group of similar annotators.

    Nothing is shared but the encoder. Predictions are means over `samples` of Monte-Carlo dropout.
    With more annotators than `bases`, those with similar label marginals share a network:
    annotators are sorted along the first principal axis of their log marginals and cut into groups
    with equally many labels. The published method segments images and forms its groups by hand; the
    sorting is ours.

        P(k gives · to x) = mean over dropout samples of softmax(network_g(x)),   g the group of k

    When it fails: With few labels per network, since nothing is shared. Groups by label marginals
    put together people with the same rates and different tastes.

        Z. Mirikharaji et al. D-LEMA: deep learning ensembles from multiple annotations, application
        to skin lesion segmentation. CVPR Workshops 2021. arXiv:2012.07206

    Parameters
    ----------
    bases
        Maximal number of networks.
    samples
        Dropout samples that a prediction is the mean of.
    """

    network = DLemaNet

    hidden: Count = 32
    bases: Count = 16
    samples: Count = 10


class _Net(VectorNet):
    """The hidden layer of the item and the output layer."""

    def __init__(self, sizes: Sizes, method: NetworkMethod, width: int | None = None) -> None:
        super().__init__(sizes, method)
        self.drop = nn.Dropout(method.dropout)
        self.first = nn.Linear(sizes.n_features, method.hidden)
        self.last = nn.Linear(width or method.hidden, sizes.n_classes)

    def hidden(self, x: Tensor) -> Tensor:
        """Return the hidden layer: (item, hidden)."""
        return self.drop(softplus(self.first(self.drop(x))))


class SimpleNet(_Net):
    """A bias per annotator."""

    def __init__(self, sizes: Sizes, method: HubiSimple) -> None:
        super().__init__(sizes, method)
        self.bias = Table(0.002 * torch.rand(sizes.n_annotators, sizes.n_classes) - 0.001)

    def log_given(self, x: Tensor, row: Tensor, annotator: Tensor) -> Tensor:
        return (self.last(self.hidden(x))[row] + self.bias(annotator)).log_softmax(dim=1)


class MediumNet(_Net):
    """An embedding per annotator that gates the hidden layer."""

    def __init__(self, sizes: Sizes, method: HubiMedium) -> None:
        super().__init__(sizes, method)
        self.embedding = Table(0.02 * torch.rand(sizes.n_annotators, method.width) - 0.01)
        self.drop_embedding = nn.Dropout(method.embedding_dropout)
        self.map = nn.Linear(method.width, method.hidden)

    def log_given(self, x: Tensor, row: Tensor, annotator: Tensor) -> Tensor:
        gate = softplus(self.map(self.drop_embedding(self.embedding(annotator))))
        return self.last(self.hidden(x)[row] * gate).log_softmax(dim=1)


class FormulaNet(_Net):
    """Label marginals of the annotator, concatenated to the hidden layer."""

    marginals: Tensor  # (annotator, class)

    def __init__(self, sizes: Sizes, method: HubiFormula) -> None:
        super().__init__(sizes, method, method.hidden + sizes.n_classes)
        self.register_buffer("marginals", torch.zeros(sizes.n_annotators, sizes.n_classes))

    def start(self, annotations: Annotations) -> None:
        marginals = torch.from_numpy(label_marginals(annotations))
        std = marginals.std(dim=0, unbiased=False).clamp(min=1e-6)
        self.marginals.copy_((marginals - marginals.mean(dim=0)) / std)

    def log_given(self, x: Tensor, row: Tensor, annotator: Tensor) -> Tensor:
        joined = torch.cat([self.hidden(x)[row], self.marginals[annotator]], dim=1)
        return self.last(joined).log_softmax(dim=1)


@dataclass(frozen=True, kw_only=True)
class Hubi(NetworkMethod):
    """Human bias on a shared hidden layer.

    HuBi (Kocoń et al. 2021): human bias as a bias, as an embedding, or as a formula.

        simple    W₂ softplus(W₁ x) + b[k]
        medium    W₂ (softplus(W₁ x) · softplus(W₃ e[k]))
        formula   W₂ [softplus(W₁ x), s[k]],   s[k, c] = (share of c among k's labels − mean) / std

    Biases b start within ±.001, embeddings e within ±.01. Mean and standard deviation of the
    formula are those of the shares over annotators.

    When it fails: A bias (`simple`) or marginals (`formula`) cannot express a taste; an embedding
    (`medium`) can, and overfits below tens of labels per annotator.

        J. Kocoń et al. Learning personal human biases and representations for subjective tasks in
        natural language processing. ICDM 2021.
    """

    hidden: Count = 100


@dataclass(frozen=True, kw_only=True)
class HubiSimple(Hubi):
    """A bias per annotator on a shared hidden layer."""

    network = SimpleNet


@dataclass(frozen=True, kw_only=True)
class HubiMedium(Hubi):
    """An embedding per annotator, multiplied with the hidden layer of the item.

    Parameters
    ----------
    width
        Width of the embeddings.
    embedding_dropout
        Dropout of the embeddings.
    """

    network = MediumNet

    width: Count = 20
    embedding_dropout: Probability = 0.2


@dataclass(frozen=True, kw_only=True)
class HubiFormula(Hubi):
    """Label marginals of the annotator, concatenated to the hidden layer of the item."""

    network = FormulaNet


class MultiTaskNet(VectorNet):
    """A shared hidden layer and a head per annotator."""

    def __init__(self, sizes: Sizes, method: MultiTask) -> None:
        super().__init__(sizes, method)
        self.body = hidden_layer(sizes.n_features, method.hidden, method.dropout)
        start = torch.randn(sizes.n_annotators, sizes.n_classes, method.hidden + 1)
        self.heads = Table(start / method.hidden**0.5)  # the last column is the bias

    def log_given(self, x: Tensor, row: Tensor, annotator: Tensor) -> Tensor:
        head = self.heads(annotator)  # (pair, class, hidden + 1)
        hidden = self.body(x)[row]
        return (torch.einsum("nd,ncd->nc", hidden, head[:, :, :-1]) + head[:, :, -1]).log_softmax(1)


@dataclass(frozen=True, kw_only=True)
class MultiTask(NetworkMethod):
    """A head per annotator on a shared hidden layer.

    Davani, Díaz and Prabhakaran (2022): one task per annotator on a shared hidden layer.

        P(k says · of x) = softmax(H_k h(x)),   loss: the sum over observed labels

    The variance between heads estimates how much annotators will disagree; their vote is the
    consensus.

    When it fails: With few labels per annotator, heads overfit, and many annotators with one or two
    labels each add noise to the hidden layer.

        A. M. Davani, M. Díaz, V. Prabhakaran. Dealing with disagreements: looking beyond the
        majority vote in subjective annotations. TACL 10, 2022. doi:10.1162/tacl_a_00449
    """

    network = MultiTaskNet
