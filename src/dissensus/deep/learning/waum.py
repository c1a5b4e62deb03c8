"""WAUM (Lefort et al. 2024): which items are too hard, whoever labels them.

A crowd gives an item several labels, some of them wrong. So the area under the margin (`aum`) of
every label is weighted by how far its annotator can be trusted with that item:

1. Dawid and Skene's model gives a confusion matrix π_j of every annotator.
2. One network is trained on all labels at once, each a term of its loss, for the number of epochs
   that predicts held-out labels best (in a training before).
3. AUM_ij is the mean margin over the epochs of the label that annotator j gave to item i.
4. s_ij = Σ_k p_k(x_i) π_j[k, k], with the probabilities p of the network after its last epoch.
5. WAUM_i = Σ_j s_ij AUM_ij / Σ_j s_ij, over the annotators of the item.
6. Items whose WAUM is not above its quantile `alpha` are too hard.
7. Dawid and Skene's model is fitted again without them, and the other items get their labels by
   votes weighted by π'_j[y, y] (`wds`).

`normalize="count"` divides by the number of labels in step 5, as one of the papers prints it. With
`per_annotator` every annotator has their own network, trained on their labels alone: for crowds
whose annotators gave many labels each.

The score is NaN, and the item stays, where it is unlabelled, or where none of its annotators is
trusted with any class that the network considers.

    T. Lefort, B. Charlier, A. Joly, J. Salmon. Identify ambiguous tasks combining crowdsourced
    labels by weighting areas under the margin. Transactions on Machine Learning Research, 2024.
    arXiv:2209.15380
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, NamedTuple

import numpy as np

from ...aggregation.dawid_skene import DawidSkene
from ...aggregation.wds import Wds
from ...answers.annotations import Annotations, Floats, Integers
from ...errors import DataError
from ...params import Count, NonNegative
from ...result import Table
from .label_trainer import Run, Trainer, best_epoch, prepare
from .hardness import Flags, Hardness, Margins, at_most_quantile, share_learned

Normalize = Literal["weights", "count"]


@dataclass(frozen=True, kw_only=True)
class Waum(Margins):
    """Areas under the margin of an item's labels, weighted by trust in their annotators.

    Parameters
    ----------
    normalize
        Divide by the sum of the weights, or by the number of labels.
    per_annotator
        Train a network for every annotator instead of one for all.
    rounds
        Most iterations of Dawid and Skene's model.
    smoothing
        Pseudo-count in its confusion matrices; at 0, maximum likelihood.
    """

    normalize: Normalize = "weights"
    per_annotator: bool = False
    rounds: Count = 60
    smoothing: NonNegative = 0.01

    def score(
        self, trainer: Trainer, annotations: Annotations, matrices: Floats | None, run: Run
    ) -> WaumScores:
        """Return the scores of all items; `matrices` replace those of the first fit."""
        self.check(annotations)
        model: dict[str, Any] = {"max_iter": self.rounds, "smoothing": self.smoothing}
        if matrices is None:
            matrices = DawidSkene(**model).fit(annotations).params.confusion
        shape = (annotations.n_annotators, annotations.n_classes, annotations.n_classes)
        if matrices.shape != shape:
            raise DataError(
                f"confusion matrices are (annotator, true, given), here {shape}, "
                f"but these are {matrices.shape}"
            )
        train = self._each if self.per_annotator else self._stacked
        aum, probability, epochs = train(trainer, annotations, run)
        weight = trust(probability, matrices, annotations)
        score = weighted(annotations, aum, weight, self.normalize)
        quantile, pruned = at_most_quantile(score, self.alpha)
        posterior, label = _labels(annotations, pruned, Wds(**model))
        learned = share_learned(probability, annotations.label)
        return WaumScores(
            annotations,
            pruned,
            *learned,
            epochs,
            label,
            score,
            aum,
            weight,
            quantile,
            matrices,
            posterior,
        )

    def _stacked(self, trainer: Trainer, annotations: Annotations, run: Run) -> _Areas:
        """Return areas and probabilities of one network that learns all labels."""
        epochs = trainer.n_epochs(annotations, run)
        record = trainer.record_margins(annotations, epochs, run, self)
        return _Areas(record.aum[self.margin], record.probability[annotations.item], epochs)

    def _each(self, trainer: Trainer, annotations: Annotations, run: Run) -> _Areas:
        """Return areas and probabilities of one network per annotator, all trained as long."""
        everyone = list(_by_annotator(annotations))
        training = trainer.training
        total = len(everyone) * (2 if training.held_out else 1)
        # Checkpoints would take longer than small networks.
        each = Run() if trainer.encoding.cached else run
        progress = run.progress or (lambda *_: None)
        epochs = training.epochs
        if training.held_out:
            score = np.zeros(epochs)
            for done, one in enumerate(everyone, 1):
                inside = each.inside(f"length-{one.number}")
                score += trainer.select(one.items).held_out_likelihood(one.annotations, inside)
                progress(done, total, f"annotator {one.number}")
            epochs = best_epoch(score)
        aum = np.zeros(len(annotations))
        probability = np.zeros((len(annotations), annotations.n_classes))
        for left, one in enumerate(everyone, 1 - len(everyone)):
            inside = each.inside(f"annotator-{one.number}")
            own = trainer.select(one.items)
            record = own.record_margins(one.annotations, epochs, inside, self)
            aum[one.rows] = record.aum[self.margin]
            probability[one.rows] = record.probability[one.annotations.item]
            progress(total + left, total, f"annotator {one.number}")
        return _Areas(aum, probability, epochs)


class _OwnLabels(NamedTuple):
    """The labels of one annotator."""

    number: int
    rows: Integers  # (own annotation): its index among all annotations
    items: Integers  # (own item): its code among all items
    annotations: Annotations


class _Areas(NamedTuple):
    aum: Floats  # (annotation)
    probability: Floats  # (annotation, class): of its item
    epochs: int


@dataclass(frozen=True, eq=False, repr=False)
class WaumScores(Hardness):
    """How hard every item is, whoever labels it; only items that remain have a label.

    Attributes
    ----------
    waum
        Weighted mean of the areas; NaN for unlabelled items and without a trusted annotator.
    aum
        Area under the margin of every label.
    weight
        Trust in every label's annotator with its item.
    quantile
        Threshold: at or below it an item is too hard.
    confusion
        The annotators' confusion matrices behind the weights.
    posterior
        Class probabilities of the remaining items; zeros for the others.
    """

    measure: ClassVar[str] = "waum"

    waum: Floats  # (item)
    aum: Floats  # (annotation)
    weight: Floats  # (annotation)
    quantile: float
    confusion: Floats  # (annotator, true class, given class)
    posterior: Floats  # (item, class)

    def annotation_table(self) -> Table:
        """Return a row per annotation."""
        annotations = self.annotations
        return {
            "item": annotations.items[annotations.item],
            "annotator": annotations.annotators[annotations.annotator],
            "label": annotations.classes[annotations.label],
            "aum": self.aum,
            "weight": self.weight,
        }


def waum(
    x: Any, annotations: Annotations, *, matrices: Floats | None = None, **options: Any
) -> WaumScores:
    """Return how hard every item is, whoever labels it.

    Parameters
    ----------
    x
        Inputs: an array, texts or image files, one per item.
    annotations
        Annotations, items in the order of the inputs.
    matrices
        Confusion matrices (annotator, true, given) instead of Dawid and Skene's.
    **options
        As for `aum`; settings of `Waum` (alpha, margin, normalize, per_annotator, …).

    Examples
    --------
    >>> x = np.repeat(np.eye(2), 20, axis=0)
    >>> labels = np.repeat([[0, 0, 0], [1, 1, 1]], 20, axis=0)  # (item, annotator)
    >>> labels[3] = [1, 1, 0]  # ambiguous
    >>> waum(x, Annotations.from_matrix(labels), epochs=10).too_hard.tolist()
    ['3']
    """
    method, trainer, run = prepare(Waum, x, annotations, **options)
    return method.score(trainer, annotations, matrices, run)


def trust(probability: Floats, confusion: Floats, annotations: Annotations) -> Floats:
    """Return the probability that the annotator of a label recognizes its item: (annotation)."""
    right = np.einsum("akk->ak", confusion)  # (annotator, class)
    return np.einsum("nk,nk->n", probability, right[annotations.annotator])


def weighted(
    annotations: Annotations, aum: Floats, weight: Floats, normalize: Normalize = "weights"
) -> Floats:
    """Return the weighted mean of every item's areas, NaN without a weight: (item)."""
    n_items = annotations.n_items
    total = np.bincount(annotations.item, weight, n_items)
    by = total if normalize == "weights" else annotations.labels_per_item.astype(float)
    area = np.bincount(annotations.item, weight * aum, n_items)
    return np.divide(area, by, where=total > 0, out=np.full(n_items, np.nan))


def _labels(annotations: Annotations, pruned: Flags, method: Wds) -> tuple[Floats, Integers]:
    """Return posterior and label of the remaining items; zeros and -1 of the others."""
    remaining = annotations.keep(~pruned[annotations.item])
    labelled = remaining.labels_per_item > 0
    if not labelled.any():
        n_items = annotations.n_items
        return np.zeros((n_items, annotations.n_classes)), np.full(n_items, -1)
    result = method.fit(remaining)
    return result.posterior * labelled[:, None], np.where(labelled, result.label, -1)


def _by_annotator(annotations: Annotations) -> Iterator[_OwnLabels]:
    """Yield the labels of every annotator."""
    for number in np.flatnonzero(annotations.labels_per_annotator).tolist():
        own = annotations.annotator == number
        items = np.bincount(annotations.item[own], minlength=annotations.n_items) > 0
        mine = annotations.keep(own).subset(items=items)
        yield _OwnLabels(number, np.flatnonzero(own), np.flatnonzero(items), mine)
