"""SimLabel (2025): labels that annotators never gave, filled in by those who are like them.

In every round, for pairs of item and annotator that never met,

    s[k, l] = max(0, kappa of k and l on common items)
    q[i, k] = Σ_l s[k, l] p_l(x_i) / Σ_l s[k, l],   over the annotators most like k
    sure    = (max q + 1 − entropy(q) / log C) / 2

and where q is sure enough it is learned as a label, with a weight that grows from round to round.
Kappas are drawn towards zero for pairs with few common items, and count what was filled in before.
Pairs are drawn at random, as many as `share` of the labels given: all pairs would be items ×
annotators. What learns is `linear`, with the strengths that it finds without filling in.

    SimLabel: similarity-weighted semi-supervision for multi-annotator learning with missing labels.
    2025. arXiv:2504.09525
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from .._relation import Floats, Integers
from ..agreement.pairs import pairwise
from ..annotations import Annotations
from ..params import Count, Positive, Probability
from ._base import How, Views
from ._components import find_components
from ._shrunk import Pairs, fit_shrunk
from .linear import Linear, LinearTendency

__all__ = ["SimLabel", "likest", "unseen"]

_SHRINKAGE = 10.0  # common items without agreement that kappas are drawn by


@dataclass(frozen=True, kw_only=True)
class SimLabel(Linear):
    """Linear heads that also learn labels filled in by annotators alike.

    Parameters
    ----------
    rounds
        How often labels are filled in.
    sure
        How sure a label has to be, from 0 to 1.
    share
        Pairs that are looked at in a round, as a share of the labels given.
    alike
        Annotators whose opinion is asked for another's label.
    imputed
        What a filled-in label counts in the last round, beside one that was given.
    """

    rounds: Count = 3
    sure: Probability = 0.8
    share: Positive = 1.0
    alike: Count = 8
    imputed: Probability = 1.0

    def learn(self, views: Views, annotations: Annotations, how: How) -> LinearTendency:
        cross = self.cross(views, annotations, how)
        trial = self.choose(cross, how)
        components = find_components(views.vectors, self.components, trial.space, how.seed)
        given = Pairs.of(components.of(views), annotations, known=cross.known, ordinal=self.ordinal)
        fit = fit_shrunk(given, trial.spreads)
        random = np.random.default_rng([how.seed, 0x51B1])
        filled = annotations
        for turn in range(self.rounds):
            model = LinearTendency(components, fit.heads, trial.spreads)
            item, annotator = unseen(annotations, round(self.share * len(annotations)), random)
            posterior = self._belief(model, views, filled, item, annotator)
            n_classes = max(annotations.n_classes, 2)
            entropy = -(posterior * np.log(np.maximum(posterior, 1e-300))).sum(axis=1) / np.log(
                n_classes
            )
            kept = (posterior.max(axis=1) + 1 - entropy) / 2 > self.sure
            item, annotator, posterior = item[kept], annotator[kept], posterior[kept]
            weight = self.imputed * (turn + 1) / self.rounds
            fit = fit_shrunk(
                replace(
                    given,
                    item=np.concatenate([given.item, item]),
                    annotator=np.concatenate([given.annotator, annotator]),
                    target=np.concatenate([given.target, posterior]),
                    weight=np.repeat([1.0, weight], [len(annotations), len(item)]),
                ),
                trial.spreads,
                start=fit.parts,
            )
            filled = _with(annotations, item, annotator, posterior.argmax(axis=1))
        return LinearTendency(components, fit.heads, trial.spreads)

    def _belief(
        self,
        model: LinearTendency,
        views: Views,
        filled: Annotations,
        item: Integers,
        annotator: Integers,
    ) -> Floats:
        """Return what annotators alike say of pairs: (pair, class); even where there is none."""
        who, much = likest(filled, self.alike)
        asked, row = who[annotator], much[annotator]  # (pair, neighbour)
        out = np.zeros((len(item), model.n_classes))
        for position in range(asked.shape[1]):
            heard = np.flatnonzero(row[:, position] > 0)
            chance = np.exp(model.log_probability(views, item[heard], asked[heard, position]))
            out[heard] += row[heard, position, None] * chance
        total = out.sum(axis=1, keepdims=True)
        return np.where(total > 0, out / np.maximum(total, 1e-300), 1 / model.n_classes)


def likest(annotations: Annotations, count: int) -> tuple[Integers, Floats]:
    """Return who is most like every annotator, and how much: (annotator, neighbour)."""
    found = pairwise(annotations, min_overlap=1, shrinkage=_SHRINKAGE)
    one = np.concatenate([found.one, found.other])
    other = np.concatenate([found.other, found.one])
    much = np.maximum(np.nan_to_num(np.concatenate([found.value, found.value])), 0)
    order = np.lexsort((-much, one))
    one, other, much = one[order], other[order], much[order]
    first = np.searchsorted(one, np.arange(annotations.n_annotators))
    rank = np.arange(len(one)) - first[one]
    kept = rank < count
    who = np.zeros((annotations.n_annotators, count), dtype=np.int64)
    size = np.zeros((annotations.n_annotators, count))
    who[one[kept], rank[kept]], size[one[kept], rank[kept]] = other[kept], much[kept]
    return who, size


def unseen(
    annotations: Annotations, count: int, random: np.random.Generator
) -> tuple[Integers, Integers]:
    """Return pairs of item and annotator that never met, about `count` of them, all different."""
    items = np.flatnonzero(annotations.labels_per_item)
    annotators = np.flatnonzero(annotations.labels_per_annotator)
    key = random.choice(items, count) * annotations.n_annotators + random.choice(annotators, count)
    met = annotations.item.astype(np.int64) * annotations.n_annotators + annotations.annotator
    item, annotator = np.divmod(np.setdiff1d(key, met), max(annotations.n_annotators, 1))
    return item, annotator


def _with(
    annotations: Annotations, item: Integers, annotator: Integers, label: Integers
) -> Annotations:
    """Return the annotations, and those that were filled in."""
    return Annotations.from_codes(
        np.concatenate([annotations.item, item]),
        np.concatenate([annotations.annotator, annotator]),
        np.concatenate([annotations.label, label]),
        items=annotations.items,
        annotators=annotations.annotators,
        classes=annotations.classes,
    )
