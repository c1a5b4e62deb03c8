"""Items that are too hard to learn from, by the margins of labels while a network learns them.

Items similar to others of their label have large margins from the first epochs on. Where the
network has to memorize an item, the label is wrong or the item is ambiguous, and its margin stays
low for long. `Aum` scores items with one label each, `Waum` those that a crowd has labelled.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from ...aggregation.dawid_skene import DawidSkene, Wds
from ...aggregation.votes import Majority
from ...answers.annotations import Annotations
from ...base.arrays import Array, Floats, Integers
from ...errors import DataError
from ...params import Count, NonNegative, Probability
from ...result import Table
from .label_trainer import (
    Flags,
    Hardness,
    Kind,
    Margins,
    Run,
    Scale,
    Trainer,
    at_most_quantile,
    best_epoch,
    prepare,
    share_learned,
)

Normalize = Literal["weights", "count"]


@dataclass(frozen=True, kw_only=True)
class Aum(Margins):
    """The area under the margin of every item's one label.

    AUM (Pleiss et al. 2020): labels that a network cannot learn from other items are suspect.

    A classifier is trained on one label per item. After every epoch t the margin M_i(t) of item i
    is its label's score less that of another class (`margins`), and

        AUM_i = (1/T) Σ_t M_i(t).

    Training ends before everything is memorized: after the number of epochs that predicts held-out
    labels best.

    `cut="alpha"` prunes the share `alpha` with the lowest AUM. `cut="fake"` measures memorization:
    a random share 1/(K + 1) of the items is put into a fake class, the network is trained with
    K + 1 classes, and items at or below the 99th percentile of the AUM of the fake class are
    pruned. The items that were in the fake class are scored by a second training with others in it.

    AUMC is AUM with the majority label of a crowd (ties at random, by the seed).

        G. Pleiss, T. Zhang, E. Elenberg, K. Q. Weinberger. Identifying mislabeled data using the
        area under the margin ranking. NeurIPS 2020. arXiv:2001.10528

    Parameters
    ----------
    cut
        Items are too hard below the quantile `alpha`, or below what a fake class reaches.
    percentile
        Percentile of the AUM in the fake class.
    """

    margin: Kind = "pleiss"
    scale: Scale = "logits"
    cut: Literal["alpha", "fake"] = "alpha"
    percentile: Probability = 0.99

    def score(
        self, trainer: Trainer, annotations: Annotations, label: Integers, run: Run, *, keep: bool
    ) -> AumScores:
        """Return the scores of items with one label each, -1 for none."""
        self.check(annotations)
        single = Annotations.from_labels(label, annotations.classes)
        epochs = trainer.n_epochs(single, run)
        if self.cut == "fake":
            n_classes, scores = annotations.n_classes, None
            values, cut, learned = self._against_fakes(
                trainer, label, n_classes=n_classes, epochs=epochs, run=run
            )
        else:
            record = trainer.record_margins(single, epochs, run, self, keep=keep)
            values = {kind: _by_item(value, label) for kind, value in record.aum.items()}
            cut = np.full(len(label), at_most_quantile(values[self.margin], self.alpha)[0])
            scores = record.scores
            learned = share_learned(record.probability[label >= 0], label[label >= 0])
        share, common = learned
        area = values[self.margin]
        return AumScores(
            annotations=annotations,
            pruned=area <= cut,
            learned=share,
            common=common,
            epochs=epochs,
            label=label,
            aum=area,
            top2=values["top2"],
            pleiss=values["pleiss"],
            cut=cut,
            scores=scores,
        )

    def _against_fakes(
        self, trainer: Trainer, label: Integers, *, n_classes: int, epochs: int, run: Run
    ) -> tuple[dict[str, Floats], Floats, tuple[float, float]]:
        """Return AUM by kind and cut of every item, and how much the first network has learned."""
        labelled = np.flatnonzero(label >= 0)
        size = max(round(len(labelled) / (n_classes + 1)), 1)
        order = np.random.default_rng([trainer.training.seed, 0xFA4E]).permutation(labelled)
        values = {kind: np.full(len(label), np.nan) for kind in ("top2", "pleiss")}
        cut = np.full(len(label), np.nan)
        learned = np.nan, np.nan
        for number, fakes in enumerate((order[:size], order[size : 2 * size])):
            fake_label = label.copy()
            fake_label[fakes] = n_classes
            annotations = Annotations.from_labels(fake_label, n_classes + 1)
            inside = run.inside(f"fake-{number}", run.progress)
            record = trainer.record_margins(annotations, epochs, inside, self)
            areas = {kind: _by_item(value, fake_label) for kind, value in record.aum.items()}
            if number == 0:
                learned = share_learned(record.probability[labelled], fake_label[labelled])
            level = np.quantile(areas[self.margin][fakes], self.percentile)
            items = np.setdiff1d(labelled, fakes) if number == 0 else order[:size]
            cut[items] = level
            for kind, area in areas.items():
                values[kind][items] = area[items]
        return values, cut, learned


@dataclass(frozen=True, eq=False, repr=False)
class AumScores(Hardness):
    """The area under the margin of every item; its label is the one that was learned.

    Attributes
    ----------
    aum
        Mean margin over the epochs, by the kind in the settings; NaN without a label.
    top2, pleiss
        The same with either margin.
    cut
        Threshold: at or below it an item is too hard.
    scores
        Logits after every epoch, if requested.
    """

    measure: ClassVar[str] = "aum"

    aum: Floats  # (item)
    top2: Floats  # (item)
    pleiss: Floats  # (item)
    cut: Floats  # (item)
    scores: Floats | None  # (epoch, item, class)


def aum(
    x: Any, labels: Annotations | ArrayLike, *, keep: bool = False, **options: Any
) -> AumScores:
    """Return the area under the margin of every item.

    Parameters
    ----------
    x
        Inputs: an array, texts or image files, one per item.
    labels
        One label per item; -1 or NaN for unlabelled.
    keep
        Whether to return the logits of every epoch.
    **options
        As for `CrowdClassifier`: `encoder`, `frozen`, `augment`, and `folder`, `resume`, `progress`
        of its `fit`. Settings of `Aum` (margin, top, scale, alpha, cut, …), of the network (hidden,
        dropout, input_dropout) and of `Training` (epochs, lr, seed, …). `held_out` is the share of
        items that decides the number of epochs; 0 takes all of them.

    Examples
    --------
    >>> x = np.repeat(np.eye(2), 20, axis=0)
    >>> labels = np.repeat(["cat", "dog"], 20)
    >>> labels[3] = "dog"  # one is wrong
    >>> aum(x, labels, epochs=10).too_hard.tolist()
    ['3']
    """
    annotations = labels if isinstance(labels, Annotations) else _from_labels(labels)
    if (annotations.labels_per_item > 1).any():
        crowded = annotations.items[annotations.labels_per_item > 1]
        raise DataError(
            f"item {crowded[0]!r} has several labels, but AUM learns one; use aumc or waum"
        )
    label = np.full(annotations.n_items, -1)
    label[annotations.item] = annotations.label
    method, trainer, run = prepare(Aum, x, annotations, **options)
    return method.score(trainer, annotations, label, run, keep=keep)


def aumc(x: Any, annotations: Annotations, **options: Any) -> AumScores:
    """Return the area under the margin of the majority label of every item.

    Parameters
    ----------
    x
        Inputs: an array, texts or image files, one per item.
    annotations
        Annotations, items in the order of the inputs.
    **options
        As for `aum`.
    """
    label = majority(annotations, options.get("seed", 0))
    return replace(
        aum(x, Annotations.from_labels(label, annotations.classes), **options),
        annotations=annotations,
    )


def majority(annotations: Annotations, seed: int) -> Integers:
    """Return the majority label of every item, -1 for unlabelled: (item)."""
    label = Majority().fit(annotations, seed=seed).label
    return np.where(annotations.labels_per_item > 0, label, -1)


def _from_labels(labels: ArrayLike) -> Annotations:
    column = np.asarray(labels)
    if column.ndim != 1:
        raise DataError(f"one label per item, but these have {column.ndim} axes")
    return Annotations.from_matrix(column[:, None])


def _by_item(value: Array, label: Integers) -> Floats:
    """Return values of labels by item, NaN for unlabelled."""
    values = np.full(len(label), np.nan)
    values[label >= 0] = value
    return values


@dataclass(frozen=True, kw_only=True)
class Waum(Margins):
    """Areas under the margin of an item's labels, weighted by trust in their annotators.

    WAUM (Lefort et al. 2024): which items are too hard, whoever labels them.

    A crowd gives an item several labels, some of them wrong. So the area under the margin (`Aum`)
    of every label is weighted by how far its annotator can be trusted with that item:

    1. Dawid and Skene's model gives a confusion matrix π_j of every annotator.
    2. One network is trained on all labels at once, each a term of its loss, for the number of
       epochs that predicts held-out labels best (in a training before).
    3. AUM_ij is the mean margin over the epochs of the label that annotator j gave to item i.
    4. s_ij = Σ_k p_k(x_i) π_j[k, k], with the probabilities p of the network after its last epoch.
    5. WAUM_i = Σ_j s_ij AUM_ij / Σ_j s_ij, over the annotators of the item.
    6. Items whose WAUM is not above its quantile `alpha` are too hard.
    7. Dawid and Skene's model is fitted again without them, and the other items get their labels by
       votes weighted by π'_j[y, y] (`wds`).

    `normalize="count"` divides by the number of labels in step 5, as one of the papers prints it.
    With `per_annotator` every annotator has their own network, trained on their labels alone: for
    crowds whose annotators gave many labels each.

    The score is NaN, and the item stays, where it is unlabelled, or where none of its annotators is
    trusted with any class that the network considers.

        T. Lefort, B. Charlier, A. Joly, J. Salmon. Identify ambiguous tasks combining crowdsourced
        labels by weighting areas under the margin. Transactions on Machine Learning Research, 2024.
        arXiv:2209.15380

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
        train = self._train_each if self.per_annotator else self._train_one
        aum, probability, epochs = train(trainer, annotations, run)
        weight = trust(probability, matrices, annotations)
        score = weighted(annotations, aum, weight, self.normalize)
        quantile, pruned = at_most_quantile(score, self.alpha)
        posterior, label = _labels(annotations, pruned, Wds(**model))
        learned, common = share_learned(probability, annotations.label)
        return WaumScores(
            annotations=annotations,
            pruned=pruned,
            learned=learned,
            common=common,
            epochs=epochs,
            label=label,
            waum=score,
            aum=aum,
            weight=weight,
            quantile=quantile,
            confusion=matrices,
            posterior=posterior,
        )

    def _train_one(self, trainer: Trainer, annotations: Annotations, run: Run) -> _Areas:
        """Return areas and probabilities of one network that learns all labels."""
        epochs = trainer.n_epochs(annotations, run)
        record = trainer.record_margins(annotations, epochs, run, self)
        return _Areas(record.aum[self.margin], record.probability[annotations.item], epochs)

    def _train_each(self, trainer: Trainer, annotations: Annotations, run: Run) -> _Areas:
        """Return areas and probabilities of one network per annotator, all trained as long."""
        crowd = list(_by_annotator(annotations))
        training = trainer.training
        total = len(crowd) * (2 if training.held_out else 1)
        n_trained = 0
        # Checkpoints would take longer than small networks.
        parent = Run() if trainer.encoding.cached else run
        progress = run.progress or (lambda *_: None)
        epochs = training.epochs
        if training.held_out:
            score = np.zeros(epochs)
            for own in crowd:
                inside = parent.inside(f"length-{own.annotator}")
                score += trainer.select(own.items).held_out_likelihood(own.annotations, inside)
                n_trained += 1
                progress(n_trained, total, f"annotator {own.annotator}")
            epochs = best_epoch(score)
        aum = np.zeros(len(annotations))
        probability = np.zeros((len(annotations), annotations.n_classes))
        for own in crowd:
            inside = parent.inside(f"annotator-{own.annotator}")
            selected = trainer.select(own.items)
            record = selected.record_margins(own.annotations, epochs, inside, self)
            aum[own.rows] = record.aum[self.margin]
            probability[own.rows] = record.probability[own.annotations.item]
            n_trained += 1
            progress(n_trained, total, f"annotator {own.annotator}")
        return _Areas(aum, probability, epochs)


class _OwnLabels(NamedTuple):
    """The labels of one annotator."""

    annotator: int
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
    divisor = total if normalize == "weights" else annotations.labels_per_item.astype(float)
    area = np.bincount(annotations.item, weight * aum, n_items)
    return np.divide(area, divisor, where=total > 0, out=np.full(n_items, np.nan))


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
    for annotator in np.flatnonzero(annotations.labels_per_annotator).tolist():
        own = annotations.annotator == annotator
        items = np.bincount(annotations.item[own], minlength=annotations.n_items) > 0
        labels = annotations.keep(own).subset(items=items)
        yield _OwnLabels(annotator, np.flatnonzero(own), np.flatnonzero(items), labels)
