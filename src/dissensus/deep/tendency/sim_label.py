"""SimLabel (2025): missing labels of annotators, imputed from similar annotators."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from ...metrics.pairs import pairwise
from ...answers.annotations import Annotations, Floats, Integers
from ..nn.features import Features
from ...params import Count, Positive, Probability
from .base import FitOptions
from .components import fit_components
from .pairs import Pairs
from .shrunk import fit_shrunk
from .linear import Linear, LinearTendency

_SHRINKAGE = 10.0  # pseudo-count of common items without agreement
_TINY = 1e-300


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
        given = Pairs.of(x, annotations, metadata=validation.metadata, ordinal=self.ordinal)
        fit = fit_shrunk(given, priors)
        random = np.random.default_rng([context.seed, 0x51B1])
        completed = annotations
        n_sampled = round(self.share * len(annotations))
        for step in range(1, self.rounds + 1):
            model = LinearTendency(components, fit.heads, priors)
            item, annotator = unlabelled_pairs(annotations, n_sampled, random)
            posterior = self._impute(model, features, completed, item, annotator)
            entropy = -(posterior * np.log(np.maximum(posterior, _TINY))).sum(axis=1)
            uniform = np.log(max(annotations.n_classes, 2))
            kept = (posterior.max(axis=1) + 1 - entropy / uniform) / 2 > self.confidence
            item, annotator, posterior = item[kept], annotator[kept], posterior[kept]
            weight = [1.0, self.weight * step / self.rounds]
            pairs = replace(
                given,
                item=np.concatenate([given.item, item]),
                annotator=np.concatenate([given.annotator, annotator]),
                target=np.concatenate([given.target, posterior]),
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
        item: Integers,
        annotator: Integers,
    ) -> Floats:
        """Return the mean prediction of similar annotators, uniform if there are none."""
        other, similarity = most_similar(annotations, self.neighbours)
        other, similarity = other[annotator], similarity[annotator]  # (pair, neighbour)
        out = np.zeros((len(item), model.n_classes))
        for neighbour in range(self.neighbours):
            weight = similarity[:, neighbour]
            pairs = np.flatnonzero(weight > 0)
            log = model.log_probability(features, item[pairs], other[pairs, neighbour])
            out[pairs] += weight[pairs, None] * np.exp(log)
        total = out.sum(axis=1, keepdims=True)
        return np.where(total > 0, out / np.maximum(total, _TINY), 1 / model.n_classes)


def most_similar(annotations: Annotations, count: int) -> tuple[Integers, Floats]:
    """Return the most similar annotators and their similarities: (annotator, neighbour)."""
    pairs = pairwise(annotations, min_overlap=1, shrinkage=_SHRINKAGE)
    one = np.concatenate([pairs.one, pairs.other])
    other = np.concatenate([pairs.other, pairs.one])
    value = np.maximum(np.nan_to_num(np.concatenate([pairs.value, pairs.value])), 0)
    order = np.lexsort((-value, one))
    one, other, value = one[order], other[order], value[order]
    first = np.searchsorted(one, np.arange(annotations.n_annotators))
    rank = np.arange(len(one)) - first[one]
    kept = rank < count
    neighbour = np.zeros((annotations.n_annotators, count), dtype=np.int64)
    similarity = np.zeros((annotations.n_annotators, count))
    cells = one[kept], rank[kept]
    neighbour[cells], similarity[cells] = other[kept], value[kept]
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
