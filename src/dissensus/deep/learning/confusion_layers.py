"""Every annotator reports the truth through a matrix of confusion, learned with a classifier.

They differ in what a matrix is (free, shared, near a common one, a few weights), and in what keeps
classifier and matrices from exchanging classes: a start, a prior, a trace, a volume.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import Annotated, ClassVar

import torch
from annotated_types import Interval
from torch import Tensor, nn
from torch.nn.functional import normalize

from ...params import Count, NonNegative, Positive
from ..nn.batches import Batch, Table
from .base import (
    AnnotatorMatrices,
    BuildParts,
    CrowdModel,
    LearningMethod,
    PairBatch,
    at_label,
    squares,
    trusting,
)

_RIDGE = 1e-6  # a classifier that says the same of all items spans nothing
_MOST = 100.0  # of a log-volume; beyond, a matrix is singular

Trust = Annotated[float, Interval(gt=0, lt=1)]


class ConfusionModel(CrowdModel):
    """A classifier and a confusion matrix for every annotator."""

    settings: ConfusionMethod

    def __init__(self, context: BuildParts, settings: ConfusionMethod) -> None:
        super().__init__(context, settings)
        start = trusting(settings.trust, self.n_classes)
        self.matrices = AnnotatorMatrices(start, self.n_annotators)

    def log_confusion(self, annotator: Tensor, vector: Tensor) -> Tensor:
        return self.matrices(annotator).log_softmax(dim=-1)

    def penalty(self, annotator: Tensor) -> Tensor:
        return self.gaussian_prior(self.matrices.own(annotator), annotator, self.settings.spread)


class JointConfusionModel(ConfusionModel):
    """The same, of all labels on an item together."""

    joint = True

    def crowd_loss(self, log_truth: Tensor, vector: Tensor, batch: Batch) -> Tensor:
        return -self.log_together(log_truth, vector, batch).sum() / len(batch.label)


@dataclass(frozen=True, kw_only=True)
class ConfusionMethod(LearningMethod):
    """What methods with a confusion matrix per annotator have in common.

    Parameters
    ----------
    trust
        How often every annotator is right at the start.
    spread
        How far annotators may differ from what they share, as a standard deviation of logits;
        `None` for as far as the labels take them.
    """

    trust: Trust = 0.6
    spread: Positive | None = 2.0


@dataclass(frozen=True, kw_only=True)
class ConfusionLayer(ConfusionMethod):
    """One confusion matrix per annotator on top of the classifier.

    Every annotator reports the truth through a confusion matrix, learned with the classifier.

        P(j says l of x) = Σ_k p_k(x) confusion[j, k, l]

    By default it learns from the labels of an item together, by gradients of the likelihood that EM
    climbs in `raykar`:

        loss = −(1/annotations) Σ_i log Σ_k p_k(x_i) Π_j confusion[j, k, label of j on i]

    With `joint=False` it learns from every label on its own. Called coupled cross-entropy by those
    who add something to it: trace-reg, geo-crowdnet-f and geo-crowdnet-w are that with one more
    term.

    When it fails: With few labels per annotator a K × K matrix is mostly its prior, and
    `global-noise` is as good. Annotators who err on the same items are not described.

    Parameters
    ----------
    joint
        Whether to learn from the labels of an item together, or from every label on its own.
    """

    spread: Positive | None = 1.0
    joint: bool = True

    def build(self, context: BuildParts) -> ConfusionModel:
        return (JointConfusionModel if self.joint else ConfusionModel)(context, self)


class ConalModel(CrowdModel):
    """A classifier, a common matrix, and a matrix for every annotator."""

    settings: Conal

    def __init__(self, context: BuildParts, settings: Conal) -> None:
        super().__init__(context, settings)
        start = 2 * torch.eye(self.n_classes)
        if settings.trust is not None:
            start = trusting(settings.trust, self.n_classes)
        self.common = nn.Parameter(start.clone())  # (true, given)
        self.own = Table(torch.zeros(self.n_annotators, *start.shape))  # W_j − start
        self.register_buffer("start", start)
        self.item = nn.Sequential(  # two linear maps, nothing between them: as published
            nn.Linear(self.classifier.width, 128), nn.Linear(128, settings.width)
        )
        self.annotator = Table(torch.randn(self.n_annotators, settings.width))

    def share(self, annotator: Tensor, vector: Tensor) -> Tensor:
        """Return ω, how far an annotation goes the common way: (annotation)."""
        u = normalize(self.annotator(annotator), dim=1)
        v = normalize(self.item(vector), dim=1)
        return torch.sigmoid((u * v).sum(dim=1))

    def matrices(self, annotator: Tensor, vector: Tensor) -> Tensor:
        """Return the mixed matrices: (annotation, true, given)."""
        common = self.share(annotator, vector)[:, None, None]
        return common * self.common + (1 - common) * (self.start + self.own(annotator))

    def log_given(self, pairs: PairBatch) -> Tensor:
        mixed = self.matrices(pairs.annotator, pairs.vector)
        return torch.einsum("nk,nkl->nl", pairs.log_truth.exp(), mixed).log_softmax(dim=-1)

    def log_confusion(self, annotator: Tensor, vector: Tensor) -> Tensor:
        return self.matrices(annotator, vector).log_softmax(dim=-1)

    def penalty(self, annotator: Tensor) -> Tensor:
        difference = self.start + self.own(annotator) - self.common
        gain = self.over_all((squares(difference) + 1e-12).sqrt(), annotator)
        prior = self.gaussian_prior(difference, annotator, self.settings.spread)
        return prior - self.settings.scale * gain


@dataclass(frozen=True, kw_only=True)
class Conal(LearningMethod):
    """A common confusion and one of each annotator's own, mixed by item and annotator.

    Chu, Ma and Wang (2021), CoNAL: some noise is common to all, some is an annotator's own.

        ω[i, j] = sigmoid(u_j · v_i)                            u_j and v_i of length one
        P(j says · of x_i) = softmax(ω p W_common + (1 − ω) p W_j)

    Whether an error on item i by annotator j is of the common kind depends on both, through an
    embedding of each. Both have length one, so ω stays within .27 and .73. The loss rewards
    matrices that differ from the common one with `scale` · Σ_j ‖W_j − W_common‖; it has no lower
    bound, so the scale must be small.

    When it fails: With few labels per annotator the embedding of pairs is not learned, and it is a
    crowd layer with a common matrix. A large `scale` makes the loss fall without bound.

        Z. Chu, J. Ma, H. Wang. Learning from crowds by modeling common confusions. AAAI 2021.

    Parameters
    ----------
    scale
        What a distance of one from the common matrix is worth.
    width
        Length of the embeddings of items and annotators.
    trust
        How often annotators are right at the start where the classifier is sure; `None` begins
        with twice the identity, as the paper does.
    spread
        How far annotators may differ from the common matrix, as a standard deviation; `None` for
        as far as the labels take them, as published.
    """

    model = ConalModel

    scale: NonNegative = 1e-5
    width: Count = 20
    trust: Trust | None = 0.6
    spread: Positive | None = 2.0


class LayerModel(CrowdModel):
    """A classifier and a layer that turns its probabilities into logits of labels."""

    settings: CrowdLayer

    def __init__(self, context: BuildParts, settings: CrowdLayer) -> None:
        super().__init__(context, settings)
        self.size = 1.0
        if settings.trust is not None:
            self.size = float(trusting(settings.trust, self.n_classes)[0, 0])

    @abstractmethod
    def logits(self, p: Tensor, annotator: Tensor) -> Tensor:
        """Return logits of labels, from probabilities: (annotation, …, given)."""

    @abstractmethod
    def own(self, annotator: Tensor) -> Tensor:
        """Return what is theirs alone, as the prior sees it: (annotation, …)."""

    def log_given(self, pairs: PairBatch) -> Tensor:
        return self.logits(pairs.log_truth.exp(), pairs.annotator).log_softmax(dim=-1)

    def log_confusion(self, annotator: Tensor, vector: Tensor) -> Tensor:
        eye = torch.eye(self.n_classes, dtype=self.count.dtype, device=self.count.device)
        rows = [self.logits(true.expand(len(annotator), -1), annotator) for true in eye]
        return torch.stack(rows, dim=1).log_softmax(dim=-1)

    def penalty(self, annotator: Tensor) -> Tensor:
        return self.gaussian_prior(self.own(annotator), annotator, self.settings.spread)


class MatrixModel(LayerModel):
    """A matrix for every annotator."""

    def __init__(self, context: BuildParts, settings: CrowdLayer) -> None:
        super().__init__(context, settings)
        start = self.size * torch.eye(self.n_classes)
        self.matrices = AnnotatorMatrices(start, self.n_annotators)

    def logits(self, p: Tensor, annotator: Tensor) -> Tensor:
        return torch.einsum("nk,nkl->nl", p, self.matrices(annotator))

    def own(self, annotator: Tensor) -> Tensor:
        return self.matrices.own(annotator)


class WeightModel(LayerModel):
    """A weight of every annotator for every class, or one for all (`scalar`)."""

    scalar = False

    def __init__(self, context: BuildParts, settings: CrowdLayer) -> None:
        super().__init__(context, settings)
        width = 1 if self.scalar else self.n_classes
        self.weight_common = nn.Parameter(torch.full((width,), self.size))
        self.weight_own = Table(torch.zeros(self.n_annotators, width))

    def logits(self, p: Tensor, annotator: Tensor) -> Tensor:
        return (self.weight_common + self.weight_own(annotator)) * p

    def own(self, annotator: Tensor) -> Tensor:
        return self.weight_own(annotator)


class ScaleModel(WeightModel):
    """One weight for every annotator."""

    scalar = True


class WeightBiasModel(WeightModel):
    """A weight and a bias of every annotator for every class."""

    def __init__(self, context: BuildParts, settings: CrowdLayer) -> None:
        super().__init__(context, settings)
        self.bias = Table(torch.zeros(self.n_annotators, self.n_classes))

    def logits(self, p: Tensor, annotator: Tensor) -> Tensor:
        return super().logits(p, annotator) + self.bias(annotator)

    def own(self, annotator: Tensor) -> Tensor:
        return torch.cat([self.weight_own(annotator), self.bias(annotator)], dim=1)


class BiasModel(LayerModel):
    """A bias of every annotator for every class."""

    def __init__(self, context: BuildParts, settings: CrowdLayer) -> None:
        super().__init__(context, settings)
        self.bias = Table(torch.zeros(self.n_annotators, self.n_classes))

    def logits(self, p: Tensor, annotator: Tensor) -> Tensor:
        return self.size * p + self.bias(annotator)

    def own(self, annotator: Tensor) -> Tensor:
        return self.bias(annotator)


@dataclass(frozen=True, kw_only=True)
class CrowdLayer(LearningMethod):
    """A matrix of each annotator's own behind the classifier (mw).

    Rodrigues and Pereira (2018): a layer of each annotator's own behind the classifier.

    The classifier's probabilities p become new logits, and these the probabilities of the labels:

        mw    P(j says · of x) = softmax(p W_j)          a matrix
        vw    softmax(w_j * p)                           a weight for every class
        vw-b  softmax(w_j * p + b_j)                     and a bias
        vb    softmax(p + b_j)                           a bias for every class
        sw    softmax(s_j p)                             one weight

    Since p is at most one, an identity matrix makes the annotator right with probability
    e / (e + K − 1) only, .28 for eight classes. So matrices and weights start at the size that
    makes a certain classifier right with probability `trust`; the paper starts at one
    (`trust=None`). The paper has no prior on the layer; ours pulls each annotator towards what all
    share, which is learned too, or the layer would memorize the labels.

    When it fails: Nothing ties the classifier to the truth but the start: with a strong layer,
    classifier and matrices may exchange two classes or share the noise. Annotators with few labels
    are near what all share.

        F. Rodrigues, F. Pereira. Deep learning from crowds. AAAI 2018.

    Parameters
    ----------
    trust
        How often annotators are right at the start where the classifier is sure; `None` begins
        as the paper does.
    spread
        How far annotators may differ from what they share, as a standard deviation; `None` for as
        far as the labels take them.
    """

    model: ClassVar[type[CrowdModel]] = MatrixModel

    trust: Trust | None = 0.6
    spread: Positive | None = 2.0


@dataclass(frozen=True, kw_only=True)
class CrowdLayerVw(CrowdLayer):
    """A weight of each annotator's own for every class."""

    model = WeightModel


@dataclass(frozen=True, kw_only=True)
class CrowdLayerVwB(CrowdLayer):
    """A weight and a bias of each annotator's own for every class."""

    model = WeightBiasModel


@dataclass(frozen=True, kw_only=True)
class CrowdLayerVb(CrowdLayer):
    """A bias of each annotator's own for every class."""

    model = BiasModel


@dataclass(frozen=True, kw_only=True)
class CrowdLayerSw(CrowdLayer):
    """One weight of each annotator's own."""

    model = ScaleModel


class GeoCrowdnetFModel(ConfusionModel):
    """Confusion matrices under a classifier of large volume."""

    settings: GeoCrowdnetF

    def crowd_loss(self, log_truth: Tensor, vector: Tensor, batch: Batch) -> Tensor:
        loss = super().crowd_loss(log_truth, vector, batch)
        return loss - self.settings.weight * log_volume(log_truth.exp())


class GeoCrowdnetWModel(ConfusionModel):
    """Confusion matrices of large volume."""

    settings: GeoCrowdnetW

    def penalty(self, annotator: Tensor) -> Tensor:
        annotators = torch.unique(annotator)  # those of the batch alone: a step stays cheap
        confusion = self.matrices(annotators).softmax(dim=-1)  # (annotator, true, given)
        stacked = confusion.swapaxes(1, 2).reshape(-1, self.n_classes)  # (annotator, given; true)
        scale = (self.n_annotators / len(annotators)) ** 0.5
        return super().penalty(annotator) - self.settings.weight * log_volume(scale * stacked)


def log_volume(matrix: Tensor) -> Tensor:
    """Return log det(MᵀM + ridge) of a matrix (row, class); zero where that is beyond measure."""
    gram = matrix.T @ matrix
    volume = torch.logdet(gram + _RIDGE * torch.eye(len(gram), dtype=gram.dtype))
    if not bool(torch.isfinite(volume)) or float(volume.detach().abs()) > _MOST:
        return matrix.new_zeros(())
    return volume


@dataclass(frozen=True, kw_only=True)
class GeoCrowdnet(ConfusionMethod):
    """Confusion matrices, and a volume that should be large.

    GeoCrowdNet (Ibrahim et al. 2023): coupled cross-entropy, and a volume that should be large.

        F   loss − weight · log det(PᵀP),   P = p(x) of the batch: (item, class)
        W   loss − weight · log det(AᵀA),   A[(j, l), k] = confusion[j, k, l]

    The first volume is largest when every class has items that the classifier is sure of, the
    second when every class has an annotator who is nearly an expert on it. Either identifies the
    truth.

    When it fails: Where inputs do not determine the class: F makes the classifier sure all the
    same.
    W needs an annotator who is nearly an expert on every class.

        S. Ibrahim, T. Nguyen, X. Fu. Deep learning from crowdsourced labels: coupled cross-entropy
        minimization, identifiability, and regularization. ICLR 2023.

    Parameters
    ----------
    weight
        What a log-volume of one is worth.
    """

    weight: NonNegative = 0.001


@dataclass(frozen=True, kw_only=True)
class GeoCrowdnetF(GeoCrowdnet):
    """Confusion matrices, and predictions that spread over the classes."""

    model = GeoCrowdnetFModel


@dataclass(frozen=True, kw_only=True)
class GeoCrowdnetW(GeoCrowdnet):
    """Confusion matrices that distinguish the classes."""

    model = GeoCrowdnetWModel


class GlobalNoiseModel(CrowdModel):
    """A classifier and one confusion matrix."""

    def __init__(self, context: BuildParts, settings: GlobalNoise) -> None:
        super().__init__(context, settings)
        self.logits = nn.Parameter(trusting(settings.trust, self.n_classes))  # (true, given)

    def log_confusion(self, annotator: Tensor, vector: Tensor) -> Tensor:
        return self.logits.log_softmax(dim=-1).expand(len(annotator), -1, -1)


@dataclass(frozen=True, kw_only=True)
class GlobalNoise(LearningMethod):
    """One confusion matrix for all annotators.

    One confusion matrix for all annotators (Goldberger and Ben-Reuven, 2017).

        P(any annotator says l of x) = Σ_k p_k(x) confusion[k, l]

    What annotators have in common, and nothing else: right where each gave few labels.

    When it fails: Where annotators differ much, since spammers and experts share one matrix.

        J. Goldberger, E. Ben-Reuven. Training deep neural networks using a noise adaptation layer.
        ICLR 2017.

    Parameters
    ----------
    trust
        How often the annotators are right at the start.
    """

    model = GlobalNoiseModel

    trust: Trust = 0.6


class TraceRegModel(ConfusionModel):
    """Confusion matrices whose trace costs something."""

    settings: TraceReg

    def penalty(self, annotator: Tensor) -> Tensor:
        trace = self.matrices(annotator).softmax(dim=-1).diagonal(dim1=1, dim2=2).sum(dim=1)
        mean = self.over_all(trace, annotator) / self.n_annotators
        return super().penalty(annotator) + self.settings.weight * mean


@dataclass(frozen=True, kw_only=True)
class TraceReg(ConfusionMethod):
    """Confusion matrices of least trace.

    Tanno et al. (2019): of all confusion matrices that explain the labels, those of least trace.

        loss = coupled cross-entropy + weight · mean_j trace(confusion[j])

    If annotators are right more often than not, on average, the matrices of least trace among those
    that explain the noisy labels are the true ones. Left alone, the network could take the noise
    into the classifier and leave the matrices at the identity.

    When it fails: Where annotators are wrong more often than right, the smallest trace is the wrong
    solution. A large `weight` blames good annotators for what the classifier cannot learn.

        R. Tanno et al. Learning from noisy labels by regularized estimation of annotator confusion.
        CVPR 2019. doi:10.1109/CVPR.2019.01150

    Parameters
    ----------
    weight
        What a trace of one costs.
    """

    model = TraceRegModel

    weight: NonNegative = 0.01


class UnionNetModel(ConfusionModel):
    """A classifier and one distribution over annotators and labels for every class."""

    rate: Tensor  # (annotator): log share of all labels

    def __init__(self, context: BuildParts, settings: UnionNet) -> None:
        super().__init__(context, settings)
        self.register_buffer("rate", (self.count / self.count.sum()).log())

    def log_union(self, annotator: Tensor) -> Tensor:
        """Return log V of these annotators: (annotation, true, given).

        Its columns are distributions over all annotators: the one place where a step costs more
        the more of them there are.
        """
        logits = self.matrices.common + self.matrices.own.all + self.rate[:, None, None]
        total = logits.logsumexp(dim=(0, 2))  # (true)
        return logits[annotator] - total[:, None]

    def log_confusion(self, annotator: Tensor, vector: Tensor) -> Tensor:
        return self.log_union(annotator).log_softmax(dim=-1)

    def log_joint(self, log_truth: Tensor, annotator: Tensor) -> Tensor:
        """Return log u of these annotators' blocks: (annotation, given)."""
        return torch.logsumexp(log_truth[:, :, None] + self.log_union(annotator), dim=1)

    def log_given(self, pairs: PairBatch) -> Tensor:
        return self.log_joint(pairs.log_truth, pairs.annotator).log_softmax(dim=-1)

    def crowd_loss(self, log_truth: Tensor, vector: Tensor, batch: Batch) -> Tensor:
        joint = self.log_joint(log_truth[batch.row], batch.annotator)
        return -(at_label(joint, batch.label) - self.rate[batch.annotator]).mean()


@dataclass(frozen=True, kw_only=True)
class UnionNet(ConfusionMethod):
    """All annotators as one, with labels (annotator, label); settings as of `trace-reg`.

    Wei et al. (2022), Union-Net: all annotators as one who says (annotator, label).

        u(x)[(j, l)] = Σ_k V[(j, l), k] p_k(x),   every column of V a distribution over all (j, l)

    so the annotator is part of the label. The distribution of annotator j is their block of u,
    normalized. Blocks start at an identity of size `trust`, times the annotator's share of labels.

    When it fails: One matrix over all pairs of annotator and label: with thousands of annotators it
    is large and each block has few labels. It is not ahead of a crowd layer on the sets measured
    here.

        H. Wei, R. Xie, L. Feng, B. Han, B. An. Deep learning from multiple noisy annotators as a
        union. IEEE Transactions on Neural Networks and Learning Systems, 2022.
        doi:10.1109/TNNLS.2022.3168696
    """

    model = UnionNetModel
