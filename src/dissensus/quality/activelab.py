"""ActiveLab (Goh & Mueller 2023): which items need another label most.

The score of an item is CROWDLAB's quality of its consensus, shrunk towards uniform by one more
annotator of mean weight who guesses:

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

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from ..formats.probabilities import as_models
from ..base.arrays import Floats, Integers
from ..answers.annotations import Annotations
from ..formats import as_annotations
from .crowdlab import crowdlab, moved_to_the_front
from .label_sums import by_item, majority

_TINY = 1e-30  # floor of probabilities
_COARSE = (0.1, 0.2, 0.5, 0.8, 1.0, 2.0, 3.0, 5.0, 8.0)  # temperatures to try first
_STEPS = 4  # between two of them in the fine search


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
    annotations = as_annotations(annotations)
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
        unlabelled = np.stack([_tempered(one, at) for one, at in pairs])
        posterior = np.tensordot(model_weight, unlabelled, 1) / model_weight.sum()
        quality[~labelled] = posterior[np.arange(len(posterior)), _majority_class(unlabelled)]
    # One more annotator of typical weight who guesses uniformly.
    return (total * quality + typical / annotations.n_classes) / (total + typical)


def calibrated(
    annotations: Annotations, models: Floats, as_cleanlab: bool = False
) -> tuple[Floats, Floats]:
    """Return calibrated probabilities, and the temperature of every model."""
    temperature = np.array([_temperature(annotations, one, as_cleanlab) for one in models])
    pairs = zip(models, temperature, strict=True)
    return np.stack([_tempered(one, at) for one, at in pairs]), temperature


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
    known = np.maximum(probabilities, _TINY)
    known /= known.sum(axis=1, keepdims=True)
    flat = np.exp(np.log(known) / temperature)
    return flat / flat.sum(axis=1, keepdims=True)
