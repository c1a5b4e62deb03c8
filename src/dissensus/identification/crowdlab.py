"""CROWDLAB (Goh, Tkachenko & Mueller 2022): annotators and a classifier vote together.

A classifier gives every item out-of-sample `probabilities` and votes with the annotators. The
weight of each is how much less often it errs than always naming the most common class, whose error
is `baseline`. Over the items with several labels,

    right           = mean share of labels that equal the consensus
    wrong           = (1 - right) / (n_classes - 1)
    weight[a]       = 1 - (1 - share of other annotators' labels equal to those of a) / baseline
    model_weight[m] = (1 - share of consensus labels m misses / baseline) * sqrt(labels per item)

    posterior[i, k] ∝   sum over models m       model_weight[m] * probabilities[m, i, k]
                      + sum over labels g by a  weight[a] * (right if g is k, else wrong)

No weight, nor `baseline`, is below 1e-6. The consensus is first the most frequent label, then the
class with the highest posterior, for which everything is computed again. Conventions that the paper
leaves open are those of cleanlab.

    H. W. Goh, U. Tkachenko, J. Mueller. CROWDLAB: supervised learning to infer consensus labels and
    quality scores for data with multiple annotators. 2022. arXiv:2210.06812
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from .._names import Names, decode
from .._probabilities import as_models
from .._relation import Floats, FrozenArrays, Integers
from .._tables import Tabular
from ..annotations import Annotations
from ..readers import as_annotations
from ..result import Table
from .label_sums import (
    agreement_with_others,
    best,
    by_annotator,
    by_cell,
    by_item,
    majority,
    worst_class,
)

_FLOOR = 1e-6  # of weights and baseline
_NO_OVERLAP = (
    "No item has two labels: the posterior is the classifier's, annotators have no weight."
)


@dataclass(frozen=True, eq=False, repr=False)
class Crowdlab(Tabular, FrozenArrays):
    """The consensus of annotators and classifiers, and the quality of each of them.

    Attributes
    ----------
    annotations
        The annotations.
    probabilities
        The probabilities of the classifiers.
    label
        Code of every item's consensus; -1 without labels.
    posterior
        Posterior of the classes, from annotators and classifiers together.
    consensus_quality
        Posterior probability of the consensus; NaN without labels.
    consensus_agreement
        Share of an item's labels that equal the consensus; NaN without labels.
    label_quality
        Posterior probability of every label, in the order of the annotations.
    annotator_quality
        Mean posterior of an annotator's labels, mixed with their agreement with the consensus;
        NaN for annotators who share no item with anybody.
    annotator_agreement
        Share of an annotator's labels that equal the consensus; NaN without labels.
    worst_class
        The least precise class of an annotator, by code; -1 without labels.
    annotator_weight, model_weight
        The weights.
    notes
        Remarks on the scores, a sentence each.
    """

    annotations: Annotations
    probabilities: Floats  # (model, item, class)
    label: Integers  # (item)
    posterior: Floats  # (item, class)
    consensus_quality: Floats  # (item)
    consensus_agreement: Floats  # (item)
    label_quality: Floats  # (annotation)
    annotator_quality: Floats  # (annotator)
    annotator_agreement: Floats  # (annotator)
    worst_class: Integers  # (annotator)
    annotator_weight: Floats  # (annotator)
    model_weight: Floats  # (model)
    notes: tuple[str, ...] = ()

    def __repr__(self) -> str:
        models = f"{len(self.model_weight)} model{'s'[: len(self.model_weight) > 1]}"
        items, annotators = self.annotations.n_items, self.annotations.n_annotators
        return f"<Crowdlab: {items} items, {annotators} annotators, {models}>"

    @cached_property
    def labels(self) -> Names:
        """The consensus on every item by name; `None` without labels."""
        return decode(self.annotations.classes, self.label)

    @cached_property
    def active(self) -> Floats:
        """The ActiveLab score of every item; the lowest need a label most."""
        from .activelab import activelab

        return activelab(self.annotations, self.probabilities)

    @property
    def items(self) -> Table:
        """Consensus, quality and agreement of every item."""
        return {
            "item": self.annotations.items,
            "label": self.labels,
            "consensus_quality": self.consensus_quality,
            "consensus_agreement": self.consensus_agreement,
            "n_labels": self.annotations.labels_per_item,
        }

    @property
    def annotators(self) -> Table:
        """Quality, agreement with the consensus, worst class and weight of every annotator."""
        return {
            "annotator": self.annotations.annotators,
            "n_labels": self.annotations.labels_per_annotator,
            "annotator_quality": self.annotator_quality,
            "annotator_agreement": self.annotator_agreement,
            "worst_class": decode(self.annotations.classes, self.worst_class),
            "annotator_weight": self.annotator_weight,
        }

    def _table(self) -> Table:
        return self.items

    def as_dict(self) -> dict[str, Any]:
        """Return plain dictionaries, lists and numbers."""
        return {
            "items": {name: values.tolist() for name, values in self.items.items()},
            "annotators": {name: values.tolist() for name, values in self.annotators.items()},
            "model_weight": self.model_weight.tolist(),
            "notes": list(self.notes),
        }


class _Weights(NamedTuple):
    """Weights of annotators and models, and label probabilities given the consensus."""

    annotator: Floats  # (annotator)
    model: Floats  # (model)
    right: float
    wrong: float


def crowdlab(
    annotations: Annotations | Any,
    probabilities: npt.ArrayLike | Sequence[Floats],
    *,
    calibrate: bool = False,
) -> Crowdlab:
    """Return consensus labels and the quality of items, labels, annotators and classifiers.

    Parameters
    ----------
    annotations
        Annotations, a table, or a path that `read` takes.
    probabilities
        Out-of-sample probabilities of a classifier: (item, class), in the order of
        `annotations.items` and `annotations.classes`; of several, (model, item, class).
    calibrate
        Whether to calibrate the probabilities to the labels by temperature scaling.

    Examples
    --------
    >>> annotations = Annotations.from_columns("aaabbc", "xyzxyz", "001110")
    >>> scores = crowdlab(annotations, [[0.9, 0.1], [0.2, 0.8], [0.6, 0.4]])
    >>> scores.labels.tolist()
    ['0', '1', '0']
    >>> scores.consensus_quality.round(2).tolist()
    [0.88, 0.81, 0.6]
    """
    annotations = as_annotations(annotations)
    models = as_models(annotations, probabilities)
    if calibrate:
        from .activelab import calibrated

        models = calibrated(annotations, models)[0]
    first = majority(annotations, models.mean(axis=0))
    if not (annotations.labels_per_item > 1).any():
        weights = _Weights(np.zeros(annotations.n_annotators), np.ones(len(models)), np.nan, np.nan)
        return _conclude(annotations, models, first, models.mean(axis=0), weights, (_NO_OVERLAP,))
    others = agreement_with_others(annotations)
    known = ~np.isnan(others)
    others = np.where(known, others, others[known].mean() if known.any() else 1.0)
    predicted = models.argmax(axis=2)  # (model, item)
    posterior = _posterior(annotations, models, _weights(annotations, first, others, predicted))
    label = best(posterior, first)
    weights = _weights(annotations, label, others, predicted)
    return _conclude(annotations, models, label, _posterior(annotations, models, weights), weights)


def _weights(
    annotations: Annotations, label: Integers, others: Floats, predicted: Integers
) -> _Weights:
    """Return the weights under a consensus."""
    size, several = annotations.labels_per_item, annotations.labels_per_item > 1
    same = by_item(annotations, label[annotations.item] == annotations.label)
    right = float((same[several] / size[several]).mean())
    common = np.bincount(label[several], minlength=annotations.n_classes).max()
    baseline = max(1 - common / several.sum(), _FLOOR)
    error = (predicted != label)[:, several].mean(axis=1)  # (model)
    model = np.maximum(1 - error / baseline, _FLOOR) * np.sqrt(size[size > 0].mean())
    annotator = np.maximum(1 - (1 - others) / baseline, _FLOOR)
    return _Weights(annotator, model, right, (1 - right) / max(annotations.n_classes - 1, 1))


def _posterior(annotations: Annotations, models: Floats, weights: _Weights) -> Floats:
    """Return the weighted posterior of annotators and models: (item, class)."""
    weight = weights.annotator[annotations.annotator]
    posterior = by_cell(annotations, weight * (weights.right - weights.wrong))
    posterior += np.tensordot(weights.model, models, 1)
    total = by_item(annotations, weight)
    posterior += weights.wrong * total[:, None]
    posterior /= (total + weights.model.sum())[:, None]
    return posterior


def _conclude(
    annotations: Annotations,
    models: Floats,
    label: Integers,
    posterior: Floats,
    weights: _Weights,
    notes: tuple[str, ...] = (),
) -> Crowdlab:
    """Return all scores under the final consensus."""
    size, given = annotations.labels_per_item, annotations.labels_per_annotator
    item = annotations.item
    quality = np.where(size > 0, posterior[np.arange(len(label)), label], np.nan)
    label_quality = posterior[item, annotations.label]
    same = label[item] == annotations.label  # (annotation)
    several = size[item] > 1
    with np.errstate(invalid="ignore"):
        consensus_agreement = by_item(annotations, same) / size
        agreement = by_annotator(annotations, same) / given
        shared = by_annotator(annotations, same & several) / by_annotator(annotations, several)
        mean_quality = by_annotator(annotations, label_quality) / given
    per_item, model = len(annotations) / max((size > 0).sum(), 1), weights.model.mean()
    mean_weight = weights.annotator[given > 0].sum() / max((given > 0).sum(), 1)
    trust = model / (model + mean_weight * per_item)  # in the classifier
    return Crowdlab(
        annotations,
        models,
        label,
        posterior,
        quality,
        consensus_agreement,
        label_quality,
        trust * mean_quality + (1 - trust) * shared,
        agreement,
        worst_class(annotations, same, quality[item]),
        np.where(given > 0, weights.annotator, np.nan),
        weights.model,
        notes,
    )
