"""ActiveLab (Goh & Mueller 2023): which items are worth another label.

An item's score is the quality of its consensus, as CROWDLAB has it, drawn towards chance by one
more annotator of mean weight who would know nothing:

    score[i] = (total[i] * consensus_quality[i] + mean / n_classes) / (total[i] + mean)

where `mean` is the mean weight of annotators, and `total` the weight of the models and of the
annotators who labelled the item. The lowest are worth a label most. An item without labels has
only its models. Beforehand the probabilities are heated or cooled, p ** (1 / temperature), until
they fit the labels best. cleanlab 2.9 miscounts labels when it looks for the temperature: the
counts of an item's classes move to the first columns. `as_cleanlab` does so, too.

    H. W. Goh, J. Mueller. ActiveLab: active learning with re-labeling by multiple annotators. 2023.
    arXiv:2301.11856
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from .._probabilities import as_models
from .._relation import Floats, Integers
from ..annotations import Annotations
from ._tally import by_item, majority
from .crowdlab import crowdlab

__all__ = ["activelab", "calibrated"]

_TINY = 1e-30  # what counts as impossible
_COARSE = (0.1, 0.2, 0.5, 0.8, 1.0, 2.0, 3.0, 5.0, 8.0)  # temperatures to try first
_STEPS = 4  # from one of them to the next, when looking closer


def activelab(
    annotations: Annotations,
    probabilities: npt.ArrayLike | Sequence[Floats],
    *,
    as_cleanlab: bool = False,
) -> Floats:
    """Return the score of every item, with labels or without: (item).

    Parameters
    ----------
    annotations
        The annotations; declare the items that have no label yet.
    probabilities
        As `crowdlab` takes them, of all items.
    as_cleanlab
        Whether to look for the temperature as cleanlab 2.9 does, for its very scores.

    Examples
    --------
    >>> annotations = Annotations.from_columns("aaabb", "xyzxy", "00011", items="abc")
    >>> activelab(annotations, [[0.9, 0.1], [0.4, 0.6], [0.5, 0.5]]).round(2).tolist()
    [0.91, 0.88, 0.5]
    """
    models = as_models(annotations, probabilities)
    heard = annotations.labels_per_item > 0
    temperature = np.ones(len(models))
    if (annotations.labels_per_item > 1).any():
        tempered, temperature = calibrated(annotations, models, as_cleanlab)
        found = crowdlab(annotations, tempered)
        weight = found.annotator_weight
    else:
        found = crowdlab(annotations, models)
        weight = np.ones(annotations.n_annotators)  # nothing is known of them: as good as a model
    typical = float(np.nanmean(weight)) if heard.any() else 1.0
    total = found.model_weight.sum() + by_item(annotations, weight[annotations.annotator])
    score = _drawn(found.consensus_quality, total, typical, annotations.n_classes)
    if not heard.all():
        pairs = zip(models[:, ~heard], temperature, strict=True)
        silent = np.stack([_tempered(posterior, heat) for posterior, heat in pairs])
        posterior = np.tensordot(found.model_weight, silent, 1) / found.model_weight.sum()
        quality = posterior[np.arange(len(posterior)), _favoured(silent)]
        score[~heard] = _drawn(quality, total[~heard], typical, annotations.n_classes)
    return score


def calibrated(
    annotations: Annotations, models: Floats, as_cleanlab: bool = False
) -> tuple[Floats, Floats]:
    """Return probabilities that fit the labels best, and the temperature of every model."""
    heat = np.array([_temperature(annotations, posterior, as_cleanlab) for posterior in models])
    return np.stack([_tempered(p, one) for p, one in zip(models, heat, strict=True)]), heat


def _drawn(quality: Floats, total: Floats, typical: float, n_classes: int) -> Floats:
    """Return qualities with one more voice that knows nothing."""
    return (total * quality + typical / n_classes) / (total + typical)


def _favoured(models: Floats) -> Integers:
    """Return the class that most models favour, ties as among annotators: (item)."""
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


def _temperature(annotations: Annotations, posterior: Floats, as_cleanlab: bool) -> float:
    """Return the temperature at which the labels are most probable, by a coarse and a fine search.

    Every item counts once, however many labels it has.
    """
    heard = annotations.labels_per_item > 0
    votes = annotations.votes()[heard]
    row, label = np.nonzero(votes)
    share = votes[row, label] / votes.sum(axis=1)[row]
    if as_cleanlab:
        label = np.cumsum(votes > 0, axis=1)[row, label] - 1
    with np.errstate(divide="ignore"):
        log = np.log(posterior[heard])

    def loss(heat: float) -> float:
        evidence = np.log(np.exp(log / heat).sum(axis=1))
        fit = np.maximum(log[row, label] / heat - evidence[row], np.log(_TINY))
        return -float(share @ fit) / len(votes)

    near = int(np.argmin([loss(heat) for heat in _COARSE]))
    low, high = max(near - 1, 0), min(near + 1, len(_COARSE) - 1)
    fine = [
        np.linspace(_COARSE[position], _COARSE[position + 1], _STEPS, endpoint=False)
        for position in range(low, high)
    ]
    heats = np.concatenate(fine)
    if near < high:  # as published: of all that are tried first, only the last cannot be the best
        heats = np.append(heats, _COARSE[high])
    return float(heats[np.argmin([loss(heat) for heat in heats])])


def _tempered(posterior: Floats, heat: float) -> Floats:
    """Return probabilities made flatter (above 1) or sharper (below 1)."""
    known = np.maximum(posterior, _TINY)
    known /= known.sum(axis=1, keepdims=True)
    flat = np.exp(np.log(known) / heat)
    return flat / flat.sum(axis=1, keepdims=True)
