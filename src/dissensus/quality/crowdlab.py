"""CROWDLAB and ActiveLab: annotators and a classifier vote together, and what to label next.

In CROWDLAB (Goh, Tkachenko & Mueller 2022) a classifier gives every item out-of-sample
`probabilities` and votes with the annotators. The weight of each is how much less often it errs
than always naming the most common class, whose error is `baseline`. Over the items with several
labels,

    right           = mean share of labels that equal the consensus
    wrong           = (1 - right) / (n_classes - 1)
    weight[a]       = 1 - (1 - share of other annotators' labels equal to those of a) / baseline
    model_weight[m] = (1 - share of consensus labels m misses / baseline) * sqrt(labels per item)

    posterior[i, k] ∝   sum over models m       model_weight[m] * probabilities[m, i, k]
                      + sum over labels g by a  weight[a] * (right if g is k, else wrong)

No weight, nor `baseline`, is below 1e-6. The consensus is first the most frequent label, then the
class with the highest posterior, for which everything is computed again. With the quality method
`agreement`, the posterior is the share of an item's labels, and only ties ask the classifier.
Conventions that the paper leaves open are those of cleanlab. Its version 2.9 moves the label counts
of an item to the first columns, which spoils calibration and the quality method `agreement`;
`as_cleanlab` does so, too.

    H. W. Goh, U. Tkachenko, J. Mueller. CROWDLAB: supervised learning to infer consensus labels and
    quality scores for data with multiple annotators. 2022. arXiv:2210.06812

ActiveLab (Goh & Mueller 2023) says which items need another label most. The score of an item is
CROWDLAB's quality of its consensus, shrunk towards uniform by one more annotator of mean weight who
guesses:

    score[i] = (total[i] * consensus_quality[i] + mean / n_classes) / (total[i] + mean)

where `mean` is the mean weight of annotators, and `total` the weight of the models and of the
annotators who labelled the item. The lowest scores come first. An item without labels has only its
models. Probabilities are first calibrated by temperature scaling, p ** (1 / temperature).
cleanlab 2.9 miscounts labels in the search for the temperature: the counts of an item's classes
move to the first columns. `as_cleanlab` does so, too.

    H. W. Goh, J. Mueller. ActiveLab: active learning with re-labeling by multiple annotators. 2023.
    arXiv:2301.11856
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Literal, NamedTuple, get_args

import numpy as np
import numpy.typing as npt

from ..answers.annotations import Annotations
from ..base.arrays import Array, Floats, FrozenArrays, Integers
from ..base.names import Names, decode
from ..base.probability import normalize
from ..base.tables import Tabular
from ..errors import OptionError
from ..formats import as_answers
from ..formats.predictions import as_models
from ..result import Table
from .label_scores import (
    LabelScore,
    agreement_with_others,
    best,
    by_annotator,
    by_cell,
    by_item,
    majority,
    worst_class,
)

_FLOOR = 1e-6  # of weights and baseline
_TINY = 1e-30  # floor of probabilities
_COARSE = (0.1, 0.2, 0.5, 0.8, 1.0, 2.0, 3.0, 5.0, 8.0)  # temperatures to try first
_STEPS = 4  # between two of them in the fine search
Quality = Literal["crowdlab", "agreement"]
Consensus = Literal["best_quality", "majority_vote"]

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
        The weights; NaN with the quality method `agreement`, which has none.
    others
        Consensus, its quality and agreement by other consensus methods, as columns of `items`.
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
    others: dict[str, Array] = field(default_factory=dict)  # (item)
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
        return activelab(self.annotations, self.probabilities)

    @property
    def items(self) -> Table:
        """Consensus, quality and agreement of every item."""
        table = {
            "item": self.annotations.items,
            "label": self.labels,
            "consensus_quality": self.consensus_quality,
            "consensus_agreement": self.consensus_agreement,
            "n_labels": self.annotations.labels_per_item,
        }
        for name, values in self.others.items():
            codes = name.startswith("label_")
            table[name] = decode(self.annotations.classes, values) if codes else values
        return table

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
    quality_method: Quality = "crowdlab",
    consensus_method: Consensus | Sequence[Consensus] = "best_quality",
    label_quality_score_kwargs: Mapping[str, Any] | None = None,
    calibrate: bool = False,
    as_cleanlab: bool = False,
) -> Crowdlab:
    """Return consensus labels and the quality of items, labels, annotators and classifiers.

    Parameters
    ----------
    annotations
        Annotations, a table, or a path that `read` takes.
    probabilities
        Out-of-sample probabilities of a classifier: (item, class), in the order of
        `annotations.items` and `annotations.classes`; of several, (model, item, class).
    quality_method
        `crowdlab`, annotators and classifier together; or `agreement`, the share of annotators.
    consensus_method
        `best_quality`, the class with the highest posterior; or `majority_vote`. Of several, the
        first counts, and the table of items has columns of the others.
    label_quality_score_kwargs
        How a label is scored by the posterior: `method`, one of `self_confidence` (default),
        `normalized_margin` and `confidence_weighted_entropy`; and `adjust_pred_probs`, whether to
        subtract the mean confidence in every class first.
    calibrate
        Whether to calibrate the probabilities to the labels by temperature scaling
        (`calibrate_probs` of cleanlab).
    as_cleanlab
        Whether to count labels as cleanlab 2.9 does, for identical scores.

    Examples
    --------
    >>> annotations = Annotations.from_columns("aaabbc", "xyzxyz", "001110")
    >>> scores = crowdlab(annotations, [[0.9, 0.1], [0.2, 0.8], [0.6, 0.4]])
    >>> scores.labels.tolist()
    ['0', '1', '0']
    >>> scores.consensus_quality.round(2).tolist()
    [0.88, 0.81, 0.6]
    """
    annotations = as_answers(annotations, kind="classes")
    models = as_models(annotations, probabilities)
    methods = [consensus_method] if isinstance(consensus_method, str) else [*consensus_method]
    _check("consensus_method", methods, Consensus)
    _check("quality_method", [quality_method], Quality)
    score = LabelScore.of(label_quality_score_kwargs or {})
    if calibrate:
        models = calibrated(annotations, models, as_cleanlab)[0]
    majority_label = majority(annotations, models.mean(axis=0))
    overlap = bool((annotations.labels_per_item > 1).any())
    agreement, weigh = quality_method == "agreement", None
    if agreement:
        posterior = _shares(annotations, as_cleanlab)
    elif overlap:
        weigh = _weigher(annotations, models)
        posterior = _posterior(annotations, models, weigh(majority_label))
    else:
        posterior = models.mean(axis=0)
    results = []
    for method in methods:
        label = majority_label
        if method == "best_quality" and (agreement or overlap):
            label = best(posterior, majority_label)
        weights = weigh(label) if weigh else _unweighted(annotations, models, agreement)
        final = _posterior(annotations, models, weights) if weigh else posterior
        results.append(
            _conclude(
                annotations, models, label=label, posterior=final, weights=weights, score=score
            )
        )
    columns: dict[str, Array] = {}
    for method, result in zip(methods[1:], results[1:], strict=True):
        columns[f"label_{method}"] = result.label
        columns[f"consensus_quality_{method}"] = result.consensus_quality
        columns[f"consensus_agreement_{method}"] = result.consensus_agreement
    notes = () if agreement or overlap else (_NO_OVERLAP,)
    return replace(results[0], others=columns, notes=notes)


def _check(name: str, values: Sequence[str], choices: Any) -> None:
    """Refuse what is not among the choices."""
    allowed = get_args(choices)
    for value in values:
        if value not in allowed:
            raise OptionError(f"{name} = {value!r}, but it must be one of {', '.join(allowed)}")
    if not values:
        raise OptionError(f"{name} is empty; give one of {', '.join(allowed)}")


def _shares(annotations: Annotations, as_cleanlab: bool) -> Floats:
    """Return the share of every class among an item's labels; uniform without labels."""
    votes = annotations.votes().astype(np.float64)
    if as_cleanlab:
        votes = moved_to_the_front(votes)
    return normalize(votes)


def moved_to_the_front(votes: Floats) -> Floats:
    """Return the votes of every item, those of the classes named moved to the first columns.

    >>> moved_to_the_front(np.array([[0, 2, 0, 1], [1, 0, 0, 0]])).tolist()
    [[2, 1, 0, 0], [1, 0, 0, 0]]
    """
    order = np.argsort(votes == 0, axis=1, kind="stable")
    return np.take_along_axis(votes, order, axis=1)


def _unweighted(annotations: Annotations, models: Floats, agreement: bool) -> _Weights:
    """Return the weights where annotators are not weighed against the classifier."""
    annotator, model = np.zeros(annotations.n_annotators), np.ones(len(models))
    if agreement:
        annotator, model = np.full_like(annotator, np.nan), np.full_like(model, np.nan)
    return _Weights(annotator, model, np.nan, np.nan)


def _weigher(annotations: Annotations, models: Floats) -> Callable[[Integers], _Weights]:
    """Return the function from a consensus to weights."""
    agreement = agreement_with_others(annotations)
    defined = ~np.isnan(agreement)
    agreement = np.where(defined, agreement, agreement[defined].mean() if defined.any() else 1.0)
    predicted = models.argmax(axis=2)  # (model, item)
    size, shared = annotations.labels_per_item, annotations.labels_per_item > 1

    def weigh(label: Integers) -> _Weights:
        n_equal = by_item(annotations, label[annotations.item] == annotations.label)
        right = float((n_equal[shared] / size[shared]).mean())
        common = np.bincount(label[shared], minlength=annotations.n_classes).max()
        baseline = max(1 - common / shared.sum(), _FLOOR)
        error = (predicted != label)[:, shared].mean(axis=1)  # (model)
        model = np.maximum(1 - error / baseline, _FLOOR) * np.sqrt(size[size > 0].mean())
        annotator = np.maximum(1 - (1 - agreement) / baseline, _FLOOR)
        return _Weights(annotator, model, right, (1 - right) / max(annotations.n_classes - 1, 1))

    return weigh


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
    score: LabelScore,
) -> Crowdlab:
    """Return all scores under the final consensus."""
    size, n_labels = annotations.labels_per_item, annotations.labels_per_annotator
    item, labelled = annotations.item, np.flatnonzero(size)
    label_quality = score(
        posterior,
        item,
        annotations.label,
        group=annotations.annotator,
        n_groups=annotations.n_annotators,
    )
    equal = label[item] == annotations.label  # (annotation)
    compared = size[item] > 1
    with np.errstate(invalid="ignore"):
        consensus_agreement = by_item(annotations, equal) / size
        agreement = by_annotator(annotations, equal) / n_labels
        shared = by_annotator(annotations, equal & compared) / by_annotator(annotations, compared)
        mean_quality = by_annotator(annotations, label_quality) / n_labels
    if np.isnan(weights.model).all():  # only agreement counts
        quality, annotator_quality = consensus_agreement, shared
    else:
        quality, group = np.full(len(label), np.nan), np.zeros(len(labelled), np.int64)
        quality[labelled] = score(posterior, labelled, label[labelled], group=group, n_groups=1)
        per_item, model = len(annotations) / max(len(labelled), 1), weights.model.mean()
        mean_weight = weights.annotator[n_labels > 0].sum() / max((n_labels > 0).sum(), 1)
        trust = model / (model + mean_weight * per_item)  # in the classifier
        annotator_quality = trust * mean_quality + (1 - trust) * shared
    return Crowdlab(
        annotations=annotations,
        probabilities=models,
        label=label,
        posterior=posterior,
        consensus_quality=quality,
        consensus_agreement=consensus_agreement,
        label_quality=label_quality,
        annotator_quality=annotator_quality,
        annotator_agreement=agreement,
        worst_class=worst_class(annotations, equal, quality[item]),
        annotator_weight=np.where(n_labels > 0, weights.annotator, np.nan),
        model_weight=weights.model,
    )


def activelab(
    annotations: Annotations | Any,
    probabilities: npt.ArrayLike | Sequence[Floats],
    *,
    as_cleanlab: bool = False,
) -> Floats:
    """Return the score of every item, with labels or without: (item).

    Parameters
    ----------
    annotations
        Annotations, a table, or a path that `read` takes; declare unlabelled items.
    probabilities
        As in `crowdlab`, of all items.
    as_cleanlab
        Whether to search for the temperature as cleanlab 2.9 does, for identical scores.

    Examples
    --------
    >>> annotations = Annotations.from_columns("aaabb", "xyzxy", "00011", items="abc")
    >>> activelab(annotations, [[0.9, 0.1], [0.4, 0.6], [0.5, 0.5]]).round(2).tolist()
    [0.91, 0.88, 0.5]
    """
    annotations = as_answers(annotations, kind="classes")
    models = as_models(annotations, probabilities)
    labelled = annotations.labels_per_item > 0
    temperature = np.ones(len(models))
    if (annotations.labels_per_item > 1).any():
        tempered, temperature = calibrated(annotations, models, as_cleanlab)
        scores = crowdlab(annotations, tempered)
        weight = scores.annotator_weight
    else:
        scores = crowdlab(annotations, models)
        weight = np.ones(annotations.n_annotators)  # nothing is known: the weight of a model
    typical = float(np.nanmean(weight)) if labelled.any() else 1.0
    model_weight = scores.model_weight
    total = model_weight.sum() + by_item(annotations, weight[annotations.annotator])
    quality = scores.consensus_quality.copy()
    if not labelled.all():
        pairs = zip(models[:, ~labelled], temperature, strict=True)
        unlabelled = np.stack([_tempered(probability, at) for probability, at in pairs])
        posterior = np.tensordot(model_weight, unlabelled, 1) / model_weight.sum()
        quality[~labelled] = posterior[np.arange(len(posterior)), _majority_class(unlabelled)]
    # One more annotator of typical weight who guesses uniformly.
    return (total * quality + typical / annotations.n_classes) / (total + typical)


def calibrated(
    annotations: Annotations, models: Floats, as_cleanlab: bool = False
) -> tuple[Floats, Floats]:
    """Return calibrated probabilities, and the temperature of every model."""
    temperature = np.array(
        [_temperature(annotations, probability, as_cleanlab) for probability in models]
    )
    pairs = zip(models, temperature, strict=True)
    return np.stack([_tempered(probability, at) for probability, at in pairs]), temperature


def _majority_class(models: Floats) -> Integers:
    """Return the majority class of the models, ties as among annotators: (item)."""
    n_models, n_items, n_classes = models.shape
    votes = Annotations.from_codes(
        np.tile(np.arange(n_items), n_models),
        np.repeat(np.arange(n_models), n_items),
        models.argmax(axis=2).ravel(),
        items=n_items,
        annotators=n_models,
        classes=n_classes,
    )
    return majority(votes, models.mean(axis=0))


def _temperature(annotations: Annotations, probabilities: Floats, as_cleanlab: bool) -> float:
    """Return the maximum-likelihood temperature, by a coarse and a fine search.

    Every item counts once, however many labels it has.
    """
    labelled = annotations.labels_per_item > 0
    votes = annotations.votes()[labelled]
    if as_cleanlab:
        votes = moved_to_the_front(votes)
    row, label = np.nonzero(votes)
    share = votes[row, label] / votes.sum(axis=1)[row]
    with np.errstate(divide="ignore"):
        log = np.log(probabilities[labelled])

    def loss(temperature: float) -> float:
        evidence = np.log(np.exp(log / temperature).sum(axis=1))
        fit = np.maximum(log[row, label] / temperature - evidence[row], np.log(_TINY))
        return -float(share @ fit) / len(votes)

    near = int(np.argmin([loss(temperature) for temperature in _COARSE]))
    low, high = max(near - 1, 0), min(near + 1, len(_COARSE) - 1)
    fine = [
        np.linspace(_COARSE[position], _COARSE[position + 1], _STEPS, endpoint=False)
        for position in range(low, high)
    ]
    temperatures = np.concatenate(fine)
    if near < high:  # as published: the last coarse temperature is never the best
        temperatures = np.append(temperatures, _COARSE[high])
    return float(temperatures[np.argmin([loss(temperature) for temperature in temperatures])])


def _tempered(probabilities: Floats, temperature: float) -> Floats:
    """Return probabilities at a temperature: flatter above 1, sharper below."""
    floored = np.maximum(probabilities, _TINY)
    floored /= floored.sum(axis=1, keepdims=True)
    flat = np.exp(np.log(floored) / temperature)
    return flat / flat.sum(axis=1, keepdims=True)
