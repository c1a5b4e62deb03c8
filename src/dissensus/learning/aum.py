"""AUM (Pleiss et al. 2020): labels that a network cannot learn from other items are suspect.

A classifier is trained on one label per item. After every epoch t the margin M_i(t) of item i is
its label's score less that of another class (`_margins`), and

    AUM_i = (1/T) Σ_t M_i(t).

Items that look like others with the same label have large margins from the first epochs on. Where
the network has to learn an item by heart against what it learns from the rest, the label is wrong
or the item cannot be told: its margin is low for long. Training ends before everything is known by
heart: after as many epochs as foresee labels on items held out best.

`cut="alpha"` leaves out the share `alpha` with the lowest AUM. `cut="fake"` finds out where
learning by heart begins: a random share 1/(K + 1) of the items is put into a class that does not
exist, the network is trained with K + 1 classes, and what is not above the 99th percentile of
their AUM is left out. Items that were in that class are judged by a second training in which
others are.

AUMC is AUM with the labels that most of a crowd gave (ties at random, by the seed).

    G. Pleiss, T. Zhang, E. Elenberg, K. Q. Weinberger. Identifying mislabeled data using the area
    under the margin ranking. NeurIPS 2020. arXiv:2001.10528
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import ArrayLike
from torch import nn

from .._names import Names
from .._relation import Array, Floats, Integers
from ..aggregation.majority import Majority
from ..annotations import Annotations
from ..errors import DataError
from ..nn.settings import Training
from ..params import Probability
from ._hardness import Hardness, Margins, below, settings_of, share_learned
from ._margins import Kind, Scale
from ._watching import ALONE, Network, Run, Trainee

__all__ = ["Aum", "AumScores", "aum", "aumc"]


@dataclass(frozen=True, kw_only=True)
class Aum(Margins):
    """The area under the margin of every item's one label.

    Parameters
    ----------
    cut
        Where items are too hard: below the quantile `alpha`, or below what a class that does not
        exist reaches.
    percentile
        Of the AUM in that class.
    """

    margin: Kind = "pleiss"
    scale: Scale = "logits"
    cut: Literal["alpha", "fake"] = "alpha"
    percentile: Probability = 0.99

    def score(
        self,
        trainee: Trainee,
        annotations: Annotations,
        label: Integers,
        run: Run = ALONE,
        *,
        keep: bool = False,
    ) -> AumScores:
        """Return the scores of items with one label each, -1 for none."""
        self.check(annotations)
        one = _labelled(label, annotations.classes)
        epochs = trainee.length(one, run)
        if self.cut == "fake":
            values, cut, learned = self._against_fakes(
                trainee, label, annotations.n_classes, epochs, run
            )
            scores = None
        else:
            record = trainee.watch(one, epochs, run, top=self.top, scale=self.scale, keep=keep)
            values = {kind: _spread(found, label) for kind, found in record.aum.items()}
            cut = np.full(len(label), below(values[self.margin], self.alpha)[0])
            scores = record.scores
            learned = share_learned(record.probability[label >= 0], label[label >= 0])
        chosen = values[self.margin]
        return AumScores(
            annotations,
            chosen <= cut,
            *learned,
            epochs,
            label,
            chosen,
            values["top2"],
            values["pleiss"],
            cut,
            scores,
        )

    def _against_fakes(
        self,
        trainee: Trainee,
        label: Integers,
        n_classes: int,
        epochs: int,
        run: Run,
    ) -> tuple[dict[str, Floats], Floats, tuple[float, float]]:
        """Return AUM by kind and cut, of every item from a training where it is real; and more.

        The last is how much the first network has learned.
        """
        heard = np.flatnonzero(label >= 0)
        size = max(round(len(heard) / (n_classes + 1)), 1)
        drawn = np.random.default_rng([trainee.training.seed, 0xFA4E]).permutation(heard)
        values = {kind: np.full(len(label), np.nan) for kind in ("top2", "pleiss")}
        cut = np.full(len(label), np.nan)
        learned = np.nan, np.nan
        for number, fakes in enumerate((drawn[:size], drawn[size : 2 * size])):
            moved = label.copy()
            moved[fakes] = n_classes
            record = trainee.watch(
                _labelled(moved, n_classes + 1),
                epochs,
                run.below(f"fake-{number}", run.progress),
                top=self.top,
                scale=self.scale,
            )
            found = {kind: _spread(each, moved) for kind, each in record.aum.items()}
            if number == 0:
                learned = share_learned(record.probability[heard], moved[heard])
            level = np.quantile(found[self.margin][fakes], self.percentile)
            mine = np.setdiff1d(heard, fakes) if number == 0 else drawn[:size]
            cut[mine] = level
            for kind, each in found.items():
                values[kind][mine] = each[mine]
        return values, cut, learned


@dataclass(frozen=True, eq=False, repr=False)
class AumScores(Hardness):
    """The area under the margin of every item; its label is the one that was learned.

    Attributes
    ----------
    aum
        Mean margin over the epochs, as the settings have it; NaN without a label.
    top2, pleiss
        The same with either margin.
    cut
        At or below this an item is too hard.
    scores
        Logits after every epoch, if they were to be kept.
    """

    measure: ClassVar[str] = "aum"

    aum: Floats  # (item)
    top2: Floats  # (item)
    pleiss: Floats  # (item)
    cut: Floats  # (item)
    scores: Floats | None  # (epoch, item, class)

    @property
    def score(self) -> Floats:
        return self.aum


def aum(
    x: Any,
    labels: Annotations | ArrayLike,
    *,
    encoder: str | nn.Module = "auto",
    frozen: bool | None = None,
    augment: bool = False,
    keep: bool = False,
    folder: str | Path | None = None,
    resume: bool = False,
    progress: Any = None,
    **settings: Any,
) -> AumScores:
    """Return the area under the margin of every item.

    Parameters
    ----------
    x
        Inputs: an array, texts or image files, one per item.
    labels
        One label per item; -1, NaN or nothing where there is none.
    encoder, frozen, augment
        What turns inputs into vectors, whether it learns nothing, and whether images are changed
        at random while training; as `CrowdClassifier` takes them.
    keep
        Whether to keep the logits of every epoch.
    folder, resume, progress
        Where to keep checkpoints, whether to go on from them, whom to tell.
    **settings
        Of `Aum` (margin, top, scale, alpha, cut, …), of the network (hidden, dropout,
        input_dropout) and of `Training` (epochs, lr, seed, …). `held_out` is the share of items
        that decides after how many of the epochs to end; 0 goes to the last.

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
            f"item {crowded[0]!r} has several labels, but AUM learns one; take aumc or waum"
        )
    label = np.full(annotations.n_items, -1)
    label[annotations.item] = annotations.label
    how, network, training = settings_of((Aum, Network, Training), settings)
    trainee = Trainee.of(x, annotations, encoder, network, training, frozen=frozen, augment=augment)
    return how.score(trainee, annotations, label, Run(folder, resume, progress), keep=keep)


def aumc(
    x: Any,
    annotations: Annotations,
    *,
    encoder: str | nn.Module = "auto",
    frozen: bool | None = None,
    augment: bool = False,
    keep: bool = False,
    folder: str | Path | None = None,
    resume: bool = False,
    progress: Any = None,
    **settings: Any,
) -> AumScores:
    """Return the area under the margin of the label that most of a crowd gave to every item.

    Parameters
    ----------
    x
        Inputs: an array, texts or image files, one per item.
    annotations
        Who said what, items in the order of the inputs.
    encoder, frozen, augment, keep, folder, resume, progress, **settings
        As `aum` takes them.
    """
    how, network, training = settings_of((Aum, Network, Training), settings)
    trainee = Trainee.of(x, annotations, encoder, network, training, frozen=frozen, augment=augment)
    label = majority(annotations, training.seed)
    return how.score(trainee, annotations, label, Run(folder, resume, progress), keep=keep)


def majority(annotations: Annotations, seed: int) -> Integers:
    """Return the label that most gave to every item, -1 where nobody did: (item)."""
    found = Majority().fit(annotations, seed=seed).label
    return np.where(annotations.labels_per_item > 0, found, -1)


def _from_labels(labels: ArrayLike) -> Annotations:
    column = np.asarray(labels)
    if column.ndim != 1:
        raise DataError(f"one label per item, but these have {column.ndim} axes")
    return Annotations.from_matrix(column[:, None])


def _labelled(label: Integers, classes: Names | int) -> Annotations:
    """Return one label per item as annotations of one annotator."""
    heard = np.flatnonzero(label >= 0)
    return Annotations.from_codes(
        heard, np.zeros_like(heard), label[heard], items=len(label), annotators=1, classes=classes
    )


def _spread(found: Array, label: Integers) -> Floats:
    """Return what is known of labels for every item, NaN where there is none."""
    values = np.full(len(label), np.nan)
    values[label >= 0] = found
    return values
