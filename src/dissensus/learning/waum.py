"""WAUM (Lefort et al. 2024): which items are too hard, whoever labels them.

A crowd gives an item several labels, some of them by people who err. So the area under the margin
(`aum`) of every single label is weighed by how far its annotator is to be trusted with that item:

1. Dawid and Skene's model gives a confusion matrix π_j of every annotator.
2. One network is trained on all labels at once, every one a term of its loss, until labels on
   items held out (in a training before) would be foreseen worse.
3. AUM_ij is the mean margin over the epochs of the label that annotator j gave to item i.
4. s_ij = Σ_k p_k(x_i) π_j[k, k], with the probabilities p of the network after its last epoch.
5. WAUM_i = Σ_j s_ij AUM_ij / Σ_j s_ij, over the annotators of the item.
6. Items whose WAUM is not above its quantile `alpha` are too hard.
7. Dawid and Skene's model is fitted again without them, and the other items get their labels by
   votes that weigh π'_j[y, y] (`wds`).

`normalize="count"` divides by the number of labels in step 5, as one of the papers prints it. With
`per_annotator` every annotator has a network of their own, trained on their labels alone: for
crowds whose annotators gave many labels each.

An item has no score where nobody labelled it, or where nobody on it is trusted with any class
that the network sees: it is NaN, and the item stays.

    T. Lefort, B. Charlier, A. Joly, J. Salmon. Identify ambiguous tasks combining crowdsourced
    labels by weighting areas under the margin. Transactions on Machine Learning Research, 2024.
    arXiv:2209.15380
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Literal, NamedTuple

import numpy as np
from torch import nn

from .._relation import Floats, Integers
from ..aggregation.dawid_skene import DawidSkene
from ..aggregation.wds import Wds
from ..annotations import Annotations
from ..errors import DataError
from ..identification.label_sums import by_item
from ..nn.settings import Training
from ..params import Count, NonNegative
from ..result import Table
from ._hardness import Flags, Hardness, Margins, below, settings_of, share_learned
from ._watching import ALONE, Network, Run, Trainee, longest

__all__ = ["Waum", "WaumScores", "trust", "waum", "weighted"]

Normalize = Literal["weights", "count"]


@dataclass(frozen=True, kw_only=True)
class Waum(Margins):
    """Areas under the margin of an item's labels, weighed by how far annotators are trusted.

    Parameters
    ----------
    normalize
        Divide by the sum of the weights, or by the number of labels.
    per_annotator
        Train a network for every annotator instead of one for all.
    rounds
        Of Dawid and Skene's model, at most.
    smoothing
        Pseudo-count in its confusion matrices; at 0, maximum likelihood.
    """

    normalize: Normalize = "weights"
    per_annotator: bool = False
    rounds: Count = 60
    smoothing: NonNegative = 0.01

    def score(
        self,
        trainee: Trainee,
        annotations: Annotations,
        matrices: Floats | None = None,
        run: Run = ALONE,
    ) -> WaumScores:
        """Return the scores of all items; `matrices` stand for the first fit's, if given."""
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
        aum, probability, epochs = train(trainee, annotations, run)
        weight = trust(probability, matrices, annotations)
        score = weighted(annotations, aum, weight, self.normalize)
        quantile, pruned = below(score, self.alpha)
        posterior, label = _labels(annotations, pruned, Wds(**model))
        return WaumScores(
            annotations,
            pruned,
            *share_learned(probability, annotations.label),
            epochs,
            label,
            score,
            aum,
            weight,
            quantile,
            matrices,
            posterior,
        )

    def _stacked(self, trainee: Trainee, annotations: Annotations, run: Run) -> _Areas:
        """Return areas and probabilities of one network that learns all labels."""
        epochs = trainee.length(annotations, run)
        record = trainee.watch(annotations, epochs, run, top=self.top, scale=self.scale)
        return _Areas(record.aum[self.margin], record.probability[annotations.item], epochs)

    def _each(self, trainee: Trainee, annotations: Annotations, run: Run) -> _Areas:
        """Return areas and probabilities of a network for every annotator, all trained as long."""
        alone_all = list(_by_annotator(annotations))
        training, done = trainee.training, 0
        each = ALONE if trainee.quick else run  # checkpoints would take longer than the networks

        def progress(alone: _Alone) -> None:
            nonlocal done
            done += 1
            if run.progress is not None:
                rounds = 2 if training.held_out else 1
                run.progress(done, rounds * len(alone_all), f"annotator {alone.number}")

        epochs = training.epochs
        if training.held_out:
            foreseen = np.zeros(epochs)
            for alone in alone_all:
                own = each.below(f"length-{alone.number}")
                foreseen += trainee.some(alone.items).foreseen(alone.annotations, own)
                progress(alone)
            epochs = longest(foreseen)
        aum = np.zeros(len(annotations))
        probability = np.zeros((len(annotations), annotations.n_classes))
        for alone in alone_all:
            record = trainee.some(alone.items).watch(
                alone.annotations,
                epochs,
                each.below(f"annotator-{alone.number}"),
                top=self.top,
                scale=self.scale,
            )
            aum[alone.rows] = record.aum[self.margin]
            probability[alone.rows] = record.probability[alone.annotations.item]
            progress(alone)
        return _Areas(aum, probability, epochs)


class _Alone(NamedTuple):
    """What one annotator said."""

    number: int
    rows: Integers  # (annotation here): its place among all
    items: Integers  # (item here): its code among all
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
        Weighted mean of the areas; NaN where nobody labelled the item or nobody is trusted.
    aum
        Area under the margin of every label.
    weight
        How far every label's annotator is trusted with its item.
    quantile
        At or below this an item is too hard.
    confusion
        The annotators' matrices behind the weights.
    posterior
        Belief in the classes of the items that remain; zeros for the others.
    """

    measure: ClassVar[str] = "waum"

    waum: Floats  # (item)
    aum: Floats  # (annotation)
    weight: Floats  # (annotation)
    quantile: float
    confusion: Floats  # (annotator, true class, given class)
    posterior: Floats  # (item, class)

    @property
    def score(self) -> Floats:
        return self.waum

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
    x: Any,
    annotations: Annotations,
    *,
    encoder: str | nn.Module = "auto",
    frozen: bool | None = None,
    augment: bool = False,
    matrices: Floats | None = None,
    folder: str | Path | None = None,
    resume: bool = False,
    progress: Any = None,
    **settings: Any,
) -> WaumScores:
    """Return how hard every item is, whoever labels it.

    Parameters
    ----------
    x
        Inputs: an array, texts or image files, one per item.
    annotations
        Who said what, items in the order of the inputs.
    encoder, frozen, augment
        What turns inputs into vectors, whether it learns nothing, and whether images are changed
        at random while training; as `CrowdClassifier` takes them.
    matrices
        Confusion matrices (annotator, true, given) instead of Dawid and Skene's.
    folder, resume, progress
        Where to keep checkpoints, whether to go on from them, whom to tell.
    **settings
        Of `Waum` (alpha, margin, normalize, per_annotator, …), of the network (hidden, dropout,
        input_dropout) and of `Training` (epochs, lr, seed, …). `held_out` is the share of items
        that decides after how many of the epochs to end; 0 goes to the last.

    Examples
    --------
    >>> x = np.repeat(np.eye(2), 20, axis=0)
    >>> labels = np.repeat([[0, 0, 0], [1, 1, 1]], 20, axis=0)  # (item, annotator)
    >>> labels[3] = [1, 1, 0]  # nobody can progress
    >>> found = waum(x, Annotations.from_matrix(labels), epochs=10)
    >>> found.too_hard.tolist()
    ['3']
    """
    how, network, training = settings_of((Waum, Network, Training), settings)
    trainee = Trainee.of(x, annotations, encoder, network, training, frozen=frozen, augment=augment)
    return how.score(trainee, annotations, matrices, Run(folder, resume, progress))


def trust(probability: Floats, confusion: Floats, annotations: Annotations) -> Floats:
    """Return how probably every label's annotator recognises its item's class: (annotation)."""
    right = np.einsum("akk->ak", confusion)  # (annotator, class)
    return np.einsum("nk,nk->n", probability, right[annotations.annotator])


def weighted(
    annotations: Annotations, aum: Floats, weight: Floats, normalize: Normalize = "weights"
) -> Floats:
    """Return the weighted mean of every item's areas, NaN without a weight: (item)."""
    total, size = by_item(annotations, weight), annotations.labels_per_item
    by = total if normalize == "weights" else size.astype(float)
    area = by_item(annotations, weight * aum)
    return np.divide(area, by, where=total > 0, out=np.full(len(area), np.nan))


def _labels(annotations: Annotations, pruned: Flags, method: Wds) -> tuple[Floats, Integers]:
    """Return belief and label of the items that remain; zeros and -1 of the others."""
    kept = annotations.keep(~pruned[annotations.item])
    heard = kept.labels_per_item > 0
    if not heard.any():
        return np.zeros((annotations.n_items, annotations.n_classes)), np.full(
            annotations.n_items, -1
        )
    found = method.fit(kept)
    return found.posterior * heard[:, None], np.where(heard, found.label, -1)


def _by_annotator(annotations: Annotations) -> Iterator[_Alone]:
    """Yield every annotator who said something."""
    item, order = (
        annotations.item.astype(np.int64),
        np.argsort(annotations.annotator, kind="stable"),
    )
    ends = np.cumsum(annotations.labels_per_annotator)
    for number, rows in enumerate(np.split(order, ends[:-1])):
        if len(rows):
            items, position = np.unique(item[rows], return_inverse=True)
            own = Annotations.from_codes(
                position,
                np.zeros_like(position),
                annotations.label[rows],
                items=len(items),
                annotators=1,
                classes=annotations.classes,
            )
            yield _Alone(number, rows, items, own)
