"""Published ways from annotations to what each annotator would say, and to the verdict of a jury.

Three are methods: models of a crowd's truth, asked for each annotator; preferences with a random
error (PADL); labels imputed from similar annotators (SimLabel).

In jury learning, which takes any fitted model of annotators, the composition of the jury decides
the verdict. Every group of annotators gets its share of the jury's members. Juries are sampled many
times; each gives the mean of its members' predictions, and the median over juries is the verdict.

    M. L. Gordon et al. Jury learning: integrating dissenting voices into machine learning models.
    CHI 2022. doi:10.1145/3491102.3502004
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from math import log
from typing import Annotated, Any

import numpy as np
import torch
from annotated_types import Ge
from torch import Tensor, nn

from ...answers.annotations import Annotations
from ...base.arrays import Floats, Integers, frozen
from ...errors import DataError, OptionError
from ...metrics.pairs import pairwise
from ...params import Count, Positive, Probability
from ...registry import learners
from ..learning import base as learning
from ..learning.base import Classifier
from ..nn import Features, Training
from ..nn.batches import Table
from .base import FitOptions, State, Tendency, TendencyMethod, pieces
from .linear import Linear, LinearTendency
from .pairs import Pairs, fit_components
from .shrunk import fit_shrunk
from .vector_networks import (
    NetworkMethod,
    Sizes,
    VectorNet,
    VectorTendency,
    fit_network,
    hidden_layer,
)

_DROPOUT = 0.5, 0.3  # of the hidden layer and of the vectors
_LOG_STD = -1.0  # log σ at the start
_SHRINKAGE = 10.0  # pseudo-count of common items without agreement
_TINY = 1e-300


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
        arrays = {k: v for k, v in state.arrays.items() if k not in self.net.per_item}
        return State(state.notes, arrays)


@dataclass(frozen=True, kw_only=True)
class CrowdMethod(TendencyMethod):
    """A method that learns the truth from a crowd, used to predict individual annotators.

    Methods that learn the truth from a crowd, used to predict what each annotator would say.

        P(k says l of x) = Σ_t P(x is t) P(k says l | t, x)

    Any method of `dissensus.deep.learning` can be used: in `madl` errors depend on annotator and
    item, `doctor-net` has a head for every annotator. The classifier is that of `CrowdClassifier`.

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
        encoded = None if metadata is None else torch.tensor(metadata, dtype=torch.float32)
        training = Training.of(self, seed=context.seed)
        build = partial(self._model, x=x, encoded=encoded)
        return _CrowdTendency(
            fit_network(build, x, annotations, training=training, context=context)
        )

    def _model(
        self, annotations: Annotations, x: Tensor, encoded: Tensor | None
    ) -> learning.CrowdModel:
        def classifier() -> Classifier:
            sizes = x.shape[1], annotations.n_classes, self.hidden
            network = Classifier(nn.Flatten(), *sizes, *_DROPOUT)
            network.fit_scale(x)
            return network

        return learners.create(self.learner).build(
            learning.BuildParts(annotations, classifier, encoded)
        )

    def restore(self, state: State) -> Tendency:
        n_features, n_annotators, n_classes = state.notes["sizes"]
        annotations = Annotations.from_labels([], n_classes).with_codes(annotators=n_annotators)
        tensors: dict[str, Any] = {
            name: torch.tensor(array) for name, array in state.arrays.items()
        }
        model = self._model(annotations, torch.zeros(1, n_features), tensors.get("features"))
        model.load_state_dict(tensors, strict=False)
        return _CrowdTendency(model)


@dataclass(frozen=True, eq=False)
class Verdict:
    """The predictions of juries."""

    median: Floats  # (item, class): over juries, normalized
    low: Floats  # (item, class): 10th percentile over juries
    high: Floats  # (item, class): 90th percentile
    label: Integers  # (item)
    share: Floats  # (item, class): juries whose prediction it is


def apportion(quota: Mapping[str, float], size: int) -> dict[str, int]:
    """Return how many of `size` members every group gets, by the largest remainders.

    >>> apportion({"x": 2, "y": 1}, 4)
    {'x': 3, 'y': 1}
    """
    total = sum(quota.values())
    if not quota or total <= 0 or min(quota.values()) < 0:
        raise OptionError("a jury needs shares of groups, none below 0 and not all 0")
    exact = {name: share * size / total for name, share in quota.items()}
    out = {name: int(share) for name, share in exact.items()}
    by_remainder = sorted(exact, key=lambda name: out[name] - exact[name])
    for name in by_remainder[: size - sum(out.values())]:
        out[name] += 1
    return out


def jury(
    model: Tendency,
    features: Features,
    groups: Sequence[str | None],
    quota: Mapping[str, float],
    *,
    size: int = 12,
    juries: int = 100,
    seed: int = 0,
) -> Verdict:
    """Return the predictions of juries with a given composition.

    Parameters
    ----------
    model
        Predicts the members.
    features
        The items.
    groups
        The group of every annotator, `None` for those in none.
    quota
        Shares of the groups among the members, in any unit.
    size
        Members of a jury, sampled without replacement if a group is large enough.
    juries
        Number of juries; the same ones judge every item.
    seed
        Random seed.
    """
    if len(groups) != model.n_annotators:
        raise DataError(
            f"groups of {len(groups)} annotators, but the model has {model.n_annotators}"
        )
    random = np.random.default_rng([seed, 0x7041])
    counts = {name: count for name, count in apportion(quota, size).items() if count}
    members = {name: np.flatnonzero([group == name for group in groups]) for name in counts}
    for name, codes in members.items():
        if not len(codes):
            raise DataError(f"no annotator is in group {name!r}, which has {counts[name]} members")

    def sample() -> Integers:
        codes = [
            random.choice(members[name], count, replace=count > len(members[name]))
            for name, count in counts.items()
        ]
        return np.concatenate(codes)

    drawn = np.array([sample() for _ in range(juries)])  # (jury, member)
    codes, index = np.unique(drawn, return_inverse=True)
    weight = np.zeros((juries, len(codes)))
    np.add.at(weight, (np.arange(juries)[:, None], index.reshape(drawn.shape)), 1 / drawn.shape[1])
    out = np.empty((4, len(features), model.n_classes))
    for items in pieces(len(features), max(len(codes), juries) * model.n_classes):
        probability = np.exp(model.log_proba(features.take(items), codes))
        means = np.einsum("ja,iac->jic", weight, probability)
        out[:3, items] = np.quantile(means, [0.5, 0.1, 0.9], axis=0)
        best = means.argmax(axis=2)
        out[3, items] = (best[:, :, None] == np.arange(model.n_classes)).mean(axis=0)
    median = out[0] / out[0].sum(axis=1, keepdims=True)
    low, high, share = map(frozen, out[1:])
    return Verdict(frozen(median), low, high, frozen(median.argmax(axis=1)), share)


class PadlNet(VectorNet):
    """A shared hidden layer and two heads per annotator."""

    def __init__(self, sizes: Sizes, method: Padl) -> None:
        super().__init__(sizes, method)
        self.samples = method.samples
        self.body = hidden_layer(sizes.n_features, method.hidden, method.dropout)
        start = torch.randn(sizes.n_annotators, 2, sizes.n_classes, method.hidden + 1)
        start = start / method.hidden**0.5
        start[:, 1] *= 0.1
        start[:, 1, :, -1] = _LOG_STD
        self.heads = Table(start)  # (annotator, μ or log σ, class, hidden + 1)

    def log_given(self, x: Tensor, row: Tensor, annotator: Tensor) -> Tensor:
        head = self.heads(annotator)
        out = torch.einsum("nd,nscd->nsc", self.body(x)[row], head[..., :-1]) + head[..., -1]
        mean, std = out[:, 0], out[:, 1].clamp(-6, 3).exp()
        if not self.training:
            return mean.log_softmax(dim=1)
        sample = mean + std * torch.randn(self.samples, *mean.shape, device=x.device)
        return sample.log_softmax(dim=2).logsumexp(dim=0) - log(self.samples)


@dataclass(frozen=True, kw_only=True)
class Padl(NetworkMethod):
    """The preference of every annotator and their random error.

    Liao et al. (2024), PADL: an annotator's preference and their random error.

        z ~ N(μ_k(x), σ_k(x)²) on the logits,   P(k says · of x) = mean over samples of softmax(z)

    μ and log σ are heads of every annotator on a shared hidden layer. Training samples z;
    predictions use the preference alone, softmax(μ_k(x)). The published method segments images.

    When it fails: Preference and random error are not identified with one label per item and
    annotator, so the error absorbs what the preference could explain.

        Z. Liao, S. Hu, Y. Xie, Y. Xia. Modeling annotator preference and stochastic annotation
        error for medical image segmentation. Medical Image Analysis 92, 2024. arXiv:2111.13410

    Parameters
    ----------
    samples
        Samples of the error in every step.
    """

    network = PadlNet

    samples: Count = 10


@dataclass(frozen=True, kw_only=True)
class SimLabel(Linear):
    """Linear heads that also learn labels imputed from similar annotators.

    SimLabel (2025): missing labels of annotators, imputed from similar annotators.

    In every round, for pairs of item and annotator without a label,

        s[k, l]    = max(0, kappa of k and l on common items)
        q[i, k]    = Σ_l s[k, l] p_l(x_i) / Σ_l s[k, l],   over the annotators most similar to k
        confidence = (max q + 1 − entropy(q) / log C) / 2

    and if q is confident enough it is learned as a label, with a weight that grows from round to
    round. Kappas are shrunk towards zero for pairs with few common items, and count labels imputed
    before. Pairs are sampled, as many as `share` of the given labels, since all pairs would be
    items × annotators. The model is `linear`, with the priors that it chooses without imputed
    labels.

    When it fails: Where few pairs of annotators share items, kappas are shrunk to zero and nothing
    is imputed. Imputed labels repeat what the model already predicts, so they seldom help a model
    that is well regularized.

        SimLabel: similarity-weighted semi-supervision for multi-annotator learning with missing
        labels.
        2025. arXiv:2504.09525

    Parameters
    ----------
    rounds
        Rounds of imputation.
    confidence
        Confidence from which an imputed label is used, from 0 to 1.
    share
        Pairs sampled in a round, as a share of the given labels.
    neighbours
        Similar annotators from whom a label is imputed.
    weight
        Weight of an imputed label in the last round; that of a given label is one.
    """

    rounds: Count = 3
    confidence: Probability = 0.8
    share: Positive = 1.0
    neighbours: Count = 8
    weight: Probability = 1.0

    def _fit(
        self, features: Features, annotations: Annotations, context: FitOptions
    ) -> LinearTendency:
        validation = self.validation(features, annotations, context)
        kernel, priors = self.choose(validation, context)
        components, x = fit_components(features.vectors, self.components, kernel, context.seed)
        labelled = Pairs.of(x, annotations, metadata=validation.metadata, ordinal=self.ordinal)
        fit = fit_shrunk(labelled, priors)
        random = np.random.default_rng([context.seed, 0x51B1])
        completed = annotations
        n_sampled = round(self.share * len(annotations))
        for step in range(1, self.rounds + 1):
            model = LinearTendency(components, fit.heads, priors)
            item, annotator = unlabelled_pairs(annotations, n_sampled, random)
            posterior = self._impute(model, features, completed, item=item, annotator=annotator)
            entropy = -(posterior * np.log(np.maximum(posterior, _TINY))).sum(axis=1)
            uniform = np.log(max(annotations.n_classes, 2))
            confident = (posterior.max(axis=1) + 1 - entropy / uniform) / 2 > self.confidence
            item, annotator, posterior = item[confident], annotator[confident], posterior[confident]
            weight = [1.0, self.weight * step / self.rounds]
            pairs = replace(
                labelled,
                item=np.concatenate([labelled.item, item]),
                annotator=np.concatenate([labelled.annotator, annotator]),
                target=np.concatenate([labelled.target, posterior]),
                weight=np.repeat(weight, [len(annotations), len(item)]),
            )
            fit = fit_shrunk(pairs, priors, start=fit.parts)
            completed = annotations.with_codes(
                item=pairs.item,
                annotator=pairs.annotator,
                label=np.concatenate([annotations.label, posterior.argmax(axis=1)]),
            )
        return LinearTendency(components, fit.heads, priors)

    def _impute(
        self,
        model: LinearTendency,
        features: Features,
        annotations: Annotations,
        *,
        item: Integers,
        annotator: Integers,
    ) -> Floats:
        """Return the mean prediction of similar annotators, uniform if there are none."""
        similar, similarity = most_similar(annotations, self.neighbours)
        similar, similarity = similar[annotator], similarity[annotator]  # (pair, neighbour)
        out = np.zeros((len(item), model.n_classes))
        for neighbour in range(self.neighbours):
            weight = similarity[:, neighbour]
            pairs = np.flatnonzero(weight > 0)
            log = model.log_probability(features, item[pairs], similar[pairs, neighbour])
            out[pairs] += weight[pairs, None] * np.exp(log)
        total = out.sum(axis=1, keepdims=True)
        return np.where(total > 0, out / np.maximum(total, _TINY), 1 / model.n_classes)


def most_similar(annotations: Annotations, count: int) -> tuple[Integers, Floats]:
    """Return the most similar annotators and their similarities: (annotator, neighbour)."""
    pairs = pairwise(annotations, min_overlap=1, shrinkage=_SHRINKAGE)
    first = np.concatenate([pairs.one, pairs.other])
    second = np.concatenate([pairs.other, pairs.one])
    value = np.maximum(np.nan_to_num(np.concatenate([pairs.value, pairs.value])), 0)
    order = np.lexsort((-value, first))
    first, second, value = first[order], second[order], value[order]
    start = np.searchsorted(first, np.arange(annotations.n_annotators))
    rank = np.arange(len(first)) - start[first]
    near = rank < count
    neighbour = np.zeros((annotations.n_annotators, count), dtype=np.int64)
    similarity = np.zeros((annotations.n_annotators, count))
    cells = first[near], rank[near]
    neighbour[cells], similarity[cells] = second[near], value[near]
    return neighbour, similarity


def unlabelled_pairs(
    annotations: Annotations, count: int, random: np.random.Generator
) -> tuple[Integers, Integers]:
    """Return about `count` different pairs of item and annotator without a label."""
    items = np.flatnonzero(annotations.labels_per_item)
    annotators = np.flatnonzero(annotations.labels_per_annotator)
    key = random.choice(items, count) * annotations.n_annotators + random.choice(annotators, count)
    labelled = annotations.item.astype(np.int64) * annotations.n_annotators + annotations.annotator
    item, annotator = np.divmod(np.setdiff1d(key, labelled), max(annotations.n_annotators, 1))
    return item, annotator
