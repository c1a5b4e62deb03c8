"""AUM (Pleiss et al. 2020): labels that a network cannot learn from other items are suspect.

A classifier is trained on one label per item. After every epoch t the margin M_i(t) of item i is
its label's score less that of another class (`_margins`), and

    AUM_i = (1/T) Σ_t M_i(t).

Items similar to others of their label have large margins from the first epochs on. Where the
network has to memorize an item, the label is wrong or the item is ambiguous, and its margin stays
low for long. Training ends before everything is memorized: after the number of epochs that predicts
held-out labels best.

`cut="alpha"` prunes the share `alpha` with the lowest AUM. `cut="fake"` measures memorization: a
random share 1/(K + 1) of the items is put into a fake class, the network is trained with K + 1
classes, and items at or below the 99th percentile of the AUM of the fake class are pruned. The
items that were in the fake class are scored by a second training with others in it.

AUMC is AUM with the majority label of a crowd (ties at random, by the seed).

    G. Pleiss, T. Zhang, E. Elenberg, K. Q. Weinberger. Identifying mislabeled data using the area
    under the margin ranking. NeurIPS 2020. arXiv:2001.10528
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import ArrayLike

from ...base.arrays import Array, Floats, Integers
from ...aggregation.majority import Majority
from ...answers.annotations import Annotations
from ...errors import DataError
from ...params import Probability
from .margins import Kind, Scale
from .label_trainer import Run, Trainer, prepare
from .hardness import Hardness, Margins, at_most_quantile, share_learned


@dataclass(frozen=True, kw_only=True)
class Aum(Margins):
    """The area under the margin of every item's one label.

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
        one = Annotations.from_labels(label, annotations.classes)
        epochs = trainer.n_epochs(one, run)
        if self.cut == "fake":
            n_classes, scores = annotations.n_classes, None
            values, cut, learned = self._against_fakes(trainer, label, n_classes, epochs, run)
        else:
            record = trainer.record_margins(one, epochs, run, self, keep=keep)
            values = {kind: _by_item(value, label) for kind, value in record.aum.items()}
            cut = np.full(len(label), at_most_quantile(values[self.margin], self.alpha)[0])
            scores = record.scores
            learned = share_learned(record.probability[label >= 0], label[label >= 0])
        chosen, both = values[self.margin], (values["top2"], values["pleiss"])
        return AumScores(
            annotations, chosen <= cut, *learned, epochs, label, chosen, *both, cut, scores
        )

    def _against_fakes(
        self, trainer: Trainer, label: Integers, n_classes: int, epochs: int, run: Run
    ) -> tuple[dict[str, Floats], Floats, tuple[float, float]]:
        """Return AUM by kind and cut of every item, and how much the first network has learned."""
        labelled = np.flatnonzero(label >= 0)
        size = max(round(len(labelled) / (n_classes + 1)), 1)
        drawn = np.random.default_rng([trainer.training.seed, 0xFA4E]).permutation(labelled)
        values = {kind: np.full(len(label), np.nan) for kind in ("top2", "pleiss")}
        cut = np.full(len(label), np.nan)
        learned = np.nan, np.nan
        for number, fakes in enumerate((drawn[:size], drawn[size : 2 * size])):
            moved = label.copy()
            moved[fakes] = n_classes
            one = Annotations.from_labels(moved, n_classes + 1)
            inside = run.inside(f"fake-{number}", run.progress)
            record = trainer.record_margins(one, epochs, inside, self)
            areas = {kind: _by_item(each, moved) for kind, each in record.aum.items()}
            if number == 0:
                learned = share_learned(record.probability[labelled], moved[labelled])
            level = np.quantile(areas[self.margin][fakes], self.percentile)
            own = np.setdiff1d(labelled, fakes) if number == 0 else drawn[:size]
            cut[own] = level
            for kind, each in areas.items():
                values[kind][own] = each[own]
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
    voted = majority(annotations, options.get("seed", 0))
    return replace(
        aum(x, Annotations.from_labels(voted, annotations.classes), **options),
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
