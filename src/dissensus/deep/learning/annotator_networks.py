"""Networks that say how annotators err, from an embedding of the annotator and, if asked, the item.

Methods with a `PerformanceModel` (MaDL, annot-mix) turn the embeddings into confusion matrices:

    e = embedding of the annotator, c = e, or (e, embedding of the item)
    logits = W relu(e + relu(V c)) + b,   confusion = softmax over the label given

Three kinds of errors: `full` has a logit for every pair of classes, `diagonal` one for every class
and spreads the errors evenly, `scalar` a single one. At the start b makes every annotator right
with probability `trust`. An annotator has a row of a table or, where features of annotators are
given, a linear map of these, which also works for new annotators.

CrowdAR is a crowd layer whose labels have a reliability, by annotator and item.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor, nn
from torch.nn.functional import binary_cross_entropy_with_logits

from ...params import Count, Positive, Probability
from ..nn.batches import Batch, Table
from .base import (
    BuildParts,
    CrowdModel,
    LearningMethod,
    PairBatch,
    at_label,
    linear,
    squares,
    trusting,
)
from .confusion_layers import CrowdLayer, MatrixModel, Trust

_ALPHA, _BETA = 1.25, 0.25  # of the Gamma prior of MaDL's γ
_MODE = (_ALPHA - 1) / _BETA
_LEAST = 1e-5  # of γ


class PerformanceModel(CrowdModel):
    """A classifier and a network that says how annotators err."""

    settings: PerformanceMethod
    features: Tensor | None

    def __init__(self, context: BuildParts, settings: PerformanceMethod) -> None:
        super().__init__(context, settings)
        width, classes = settings.width, self.n_classes
        self.register_buffer("features", context.features)
        if context.features is None:
            self.table = Table(torch.randn(self.n_annotators, width) / math.sqrt(width))
        else:
            self.embed = nn.Linear(context.features.shape[1], width)
        self.sight = nn.Linear(self.classifier.width, width) if settings.instance else None
        self.hidden = nn.Linear(2 * width if settings.instance else width, width)
        cells = {"full": classes**2, "diagonal": classes, "scalar": 1}[settings.errors]
        self.output = linear(width, cells, 0.1)
        with torch.no_grad():
            self.output.bias.copy_(self._start())

    def _start(self) -> Tensor:
        """Return the bias under which annotators are right as often as trusted: (cell)."""
        trust = self.settings.trust
        if self.settings.errors == "full":
            return trusting(trust, self.n_classes).flatten()
        return torch.tensor(math.log(trust / (1 - trust)))

    def embedding(self, annotator: Tensor) -> Tensor:
        """Return what is known of annotators: (annotation, width)."""
        if self.features is None:
            return self.table(annotator)
        return self.embed(self.features[annotator])

    def log_errors(self, embedding: Tensor, vector: Tensor) -> Tensor:
        """Return log-confusion from embeddings: (annotation, true, given)."""
        joint = embedding
        if self.sight is not None:
            joint = torch.cat([embedding, torch.tanh(self.sight(vector))], dim=1)
        cells = self.output(torch.relu(embedding + torch.relu(self.hidden(joint))))
        classes = self.n_classes
        if self.settings.errors == "full":
            return cells.reshape(-1, classes, classes).log_softmax(dim=-1)
        right = torch.diag_embed(cells.expand(-1, classes))
        eye = torch.eye(classes, dtype=cells.dtype, device=cells.device)
        return (right - math.log(max(classes - 1, 1)) * (1 - eye)).log_softmax(dim=-1)

    def log_confusion(self, annotator: Tensor, vector: Tensor) -> Tensor:
        return self.log_errors(self.embedding(annotator), vector)

    def penalty(self, annotator: Tensor) -> Tensor:
        if self.settings.spread is None:
            return super().penalty(annotator)
        variance = 2 * self.settings.spread**2
        prior = self.over_all(squares(self.embedding(annotator)), annotator)
        prior = prior + self.output.weight.square().sum()
        if self.sight is not None:
            prior = prior + self.sight.weight.square().sum() * self.classifier.width
        return prior / variance / self.n_annotations


@dataclass(frozen=True, kw_only=True)
class PerformanceMethod(LearningMethod):
    """What methods with an annotator network have in common.

    Parameters
    ----------
    errors
        Which errors an annotator may have of their own: full, diagonal or scalar.
    instance
        Whether errors depend on the item too. An annotator network that sees the item can do the
        classifier's work, so this needs many labels of each annotator.
    width
        Length of the embeddings.
    trust
        How often every annotator is right at the start.
    spread
        Standard deviation of the Gaussian prior on embeddings, weights and what is seen of an
        item; `None` for no prior.
    """

    crowd_lr: Positive = 0.01  # the network is in every batch, unlike rows of a table
    errors: Literal["full", "diagonal", "scalar"] = "full"
    instance: bool = False
    width: Count = 16
    trust: Trust = 0.6
    spread: Positive | None = 2.0


class MadlModel(PerformanceModel):
    """An annotator network, and weights against copied labels."""

    def __init__(self, context: BuildParts, settings: Madl) -> None:
        super().__init__(context, settings)
        self.gamma = nn.Parameter(torch.tensor(_MODE)) if settings.weights else None

    def crowd_loss(self, log_truth: Tensor, vector: Tensor, batch: Batch) -> Tensor:
        if self.gamma is None:
            return super().crowd_loss(log_truth, vector, batch)
        log = at_label(self.log_given(self.pairs(log_truth, vector, batch)), batch.label)
        annotators, position = torch.unique(batch.annotator, return_inverse=True)
        weight = weights(self.embedding(annotators).detach(), self.gamma)[position]
        prior = (_ALPHA - 1) * (self.gamma / _MODE).log() - _BETA * (self.gamma - _MODE)
        return -(weight * log).mean() - prior

    def after_step(self) -> None:
        if self.gamma is not None:
            self.gamma.clamp_(min=_LEAST)


def weights(embedding: Tensor, gamma: Tensor) -> Tensor:
    """Return how much annotators count, one on average and less where they are alike.

    >>> weights(torch.tensor([[0.0], [0.0], [9.0]]), torch.tensor(1.0)).tolist()
    [0.75, 0.75, 1.5]
    """
    distance = (embedding[:, None] - embedding[None]).square().sum(dim=2)
    rarity = 1 / torch.exp(-gamma * distance).sum(dim=1)
    return len(embedding) * rarity / rarity.sum()


@dataclass(frozen=True, kw_only=True)
class Madl(PerformanceMethod):
    """A network of how annotators err; labels of annotators that are alike count less.

    Herde, Huseljic and Sick (2023), MaDL: a network of annotator errors; copies count less.

    The annotator network (`_performance.py`) gives every annotator a confusion matrix, and with
    `instance` one for every annotation. Labels of similar annotators count less, since they may be
    copies:

        k[r, s] = exp(−γ ‖e_r − e_s‖²),   w_r ∝ 1 / Σ_s k[r, s],   Σ_r w_r = number of annotators
        loss = mean of w_j · (−log P(label)) − log Gamma(γ | 1.25, .25)

    The weights send no gradients into the embeddings. They are computed among the annotators of a
    batch, so that the cost of a step does not grow with the number of annotators.

    When it fails: Similar annotators are not always copies: good annotators resemble each other,
    and lose weight for it. With `instance` it overfits small sets, losing 12 points on music.

        M. Herde, D. Huseljic, B. Sick. Multi-annotator deep learning: a probabilistic framework for
        classification. TMLR 2023.

    Parameters
    ----------
    weights
        Whether annotators that are alike count less.
    """

    model = MadlModel

    weights: bool = True


class AnnotMixModel(PerformanceModel):
    """An annotator network that learns from mixed annotations."""

    settings: AnnotMix

    def crowd_loss(self, log_truth: Tensor, vector: Tensor, batch: Batch) -> Tensor:
        size, alpha = len(batch.label), self.settings.alpha
        # Drawn by torch's own generator, whose state a checkpoint holds.
        pair = torch._sample_dirichlet(vector.new_full((size, 2), alpha))
        return self.mixed_loss(vector, batch, pair[:, :1], torch.randperm(size))

    def mixed_loss(self, vector: Tensor, batch: Batch, share: Tensor, partner: Tensor) -> Tensor:
        """Return the loss of annotations mixed with their partners: shares (annotation, 1)."""

        def mix(rows: Tensor) -> Tensor:
            return share * rows + (1 - share) * rows[partner]

        mixed = mix(vector[batch.row])
        log_errors = self.log_errors(mix(self.embedding(batch.annotator)), mixed.detach())
        log_truth = self.log_class(mixed)
        log_given = torch.logsumexp(log_truth[:, :, None] + log_errors, dim=1)
        one_hot = torch.nn.functional.one_hot(batch.label, self.n_classes).to(log_given.dtype)
        return -(mix(one_hot) * log_given).sum(dim=1).mean()


@dataclass(frozen=True, kw_only=True)
class AnnotMix(PerformanceMethod):
    """A network of how annotators err, learned from mixed annotations.

    Herde et al. (2024), annot-mix: items, annotators and labels mixed in pairs.

    Every annotation of a batch is mixed with another, by a share λ ~ Beta(α, α) of its own:

        vector λ x + (1 − λ) x',   annotator λ e + (1 − λ) e',   label λ y + (1 − λ) y'
        loss = −Σ_l label_l log Σ_k p_k(mixed vector) confusion_kl(mixed vector, mixed annotator)

    The network learns to interpolate linearly and memorizes less. We mix vectors of the encoder
    rather than raw inputs: the same where inputs are features, and possible for text. The paper's
    embeddings have 128 numbers; ours 16, under which held-out labels were more likely. As in madl,
    confusion matrices depend on the item only with `instance`.

    When it fails: Where classes lie between each other, a mixture of two inputs looks like a third
    class. With `instance` it overfits small sets.

        M. Herde, L. Lührs, D. Huseljic, B. Sick. Annot-mix: learning with noisy class labels from
        multiple annotators via a mixup extension. ECAI 2024.

    Parameters
    ----------
    alpha
        Of Beta(α, α), from which the shares are drawn; 1 makes all shares equally likely.
    """

    model = AnnotMixModel

    alpha: Positive = 1.0
    trust: Trust = 0.9


class CrowdArModel(MatrixModel):
    """A crowd layer that trusts some annotations more than others."""

    settings: CrowdAr

    def __init__(self, context: BuildParts, settings: CrowdAr) -> None:
        super().__init__(context, settings)
        self.difficulty = nn.Sequential(
            nn.Linear(self.classifier.width, 128),
            nn.Sigmoid(),
            nn.Linear(128, self.n_classes),
            nn.Sigmoid(),
        )
        self.expertise = Table(torch.zeros(self.n_annotators, self.n_classes))
        self.slope = nn.Parameter(torch.ones(self.n_classes))

    def reliability(self, pairs: PairBatch) -> Tensor:
        """Return the logit of m: (annotation)."""
        better = torch.sigmoid(self.expertise(pairs.annotator)) - self.difficulty(pairs.vector)
        return (better * pairs.log_truth.exp() * self.slope).sum(dim=1)

    def crowd_loss(self, log_truth: Tensor, vector: Tensor, batch: Batch) -> Tensor:
        pairs = self.pairs(log_truth, vector, batch)
        log_given, logit = self.log_given(pairs), self.reliability(pairs)
        m = torch.sigmoid(logit)
        fit = -(m * at_label(log_given, batch.label) + (1 - m) * log_given.mean(dim=1)).mean()
        agrees = (pairs.log_truth.argmax(dim=1) == batch.label).to(m.dtype)
        trust = binary_cross_entropy_with_logits(logit, agrees)
        balance = self.settings.balance
        return balance * fit + (1 - balance) * trust

    def after_step(self) -> None:
        self.slope.clamp_(min=0)


@dataclass(frozen=True, kw_only=True)
class CrowdAr(CrowdLayer):
    """A crowd layer with a reliability for every annotation.

    Cao et al. (2023), CrowdAR: every label has a reliability, by annotator and item.

        d_i = sigmoid(W2 sigmoid(W1 x_i))               difficulty of every class
        e_j = sigmoid(E_j)                              expertise in every class
        m[i, j] = sigmoid(w · ((e_j − d_i) * p_i))      reliability, w ≥ 0

    A label of reliability m is taken as m of itself and 1 − m of any class; reliability itself
    learns from whether the label is what the classifier would say:

        loss = balance · CE(softmax(p W_j), m onehot(y) + (1 − m) / K)
             + (1 − balance) · BCE(m, [y is the classifier's best class])

    When it fails: Reliability learns from agreement with the classifier, so a classifier that is
    wrong early distrusts the right labels.

        Z. Cao et al. Learning from crowds with annotation reliability. SIGIR 2023.
        doi:10.1145/3539618.3592007

    Parameters
    ----------
    balance
        Weight of the labels; the rest is that of the reliabilities.
    """

    model = CrowdArModel

    balance: Probability = 0.9
