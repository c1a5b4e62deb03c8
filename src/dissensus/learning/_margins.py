"""Margins of labels while a classifier learns them.

A label y on an item whose classes have the scores s, probabilities or logits, has the margin

    top2    s_y − s_[top + 1]        s_[r] is the r-th largest of all scores
    pleiss  s_y − s'_[top]           s'_[r] is the r-th largest of the scores of other classes

With `top` = 1 these are the label's score less the second highest, and less the highest of another
class. Both say the same of a label that is among the `top` classes; of any other, pleiss says less.

The classifier learns all labels as they were given, one term of the loss for each. After every
epoch it is asked about all items as it would be in use, without dropout, and the margins are added
up: so no item is judged by a younger network than another, every process of several has all sums,
and a training that is taken up again ends with the same ones.

    G. Pleiss, T. Zhang, E. Elenberg, K. Q. Weinberger. Identifying mislabeled data using the area
    under the margin ranking. NeurIPS 2020. arXiv:2001.10528
"""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from ..nn.batches import Batch, Examples
from ..nn.learner import Learner
from .network import Classifier

__all__ = ["KINDS", "Kind", "Plain", "Scale", "Watched", "margins"]

Kind = Literal["top2", "pleiss"]
Scale = Literal["probabilities", "logits"]

KINDS: tuple[Kind, ...] = ("top2", "pleiss")
_LOOK = 1024  # items that are looked at together


def margins(score: Tensor, label: Tensor, kind: Kind = "top2", top: int = 1) -> Tensor:
    """Return the margin of every label under the scores of its item: (label).

    >>> score = torch.tensor([[0.5, 0.25, 0.25], [0.5, 0.25, 0.25], [0.5, 0.375, 0.125]])
    >>> margins(score, torch.tensor([0, 1, 2])).tolist()
    [0.25, 0.0, -0.25]
    >>> margins(score, torch.tensor([0, 1, 2]), "pleiss").tolist()
    [0.25, -0.25, -0.375]
    """
    mine = score.gather(1, label[:, None])
    if kind == "top2":
        return (mine - score.topk(top + 1, dim=1).values[:, top:])[:, 0]
    others = score.scatter(1, label[:, None], -torch.inf)
    return (mine - others.topk(top, dim=1).values[:, top - 1 :])[:, 0]


class Plain(Learner):
    """A classifier that learns labels as they were given."""

    def __init__(self, classifier: Classifier) -> None:
        super().__init__()
        self.classifier = classifier

    def loss(self, batch: Batch) -> Tensor:
        return cross_entropy(self.classifier(batch.x)[batch.row], batch.label)

    def log_truth(self, x: Tensor) -> Tensor:
        return self.classifier(x).log_softmax(dim=-1)

    def log_probability(self, batch: Batch) -> Tensor:
        return self.log_truth(batch.x)[batch.row].gather(1, batch.label[:, None])[:, 0]


class Watched(Plain):
    """The same with sums of the margins of all labels.

    Parameters
    ----------
    classifier
        What learns.
    n_labels
        How many labels there are.
    top, scale
        As `margins` takes them, and of which scores.
    kept
        Epochs, items and classes of the scores to keep; nothing where only sums are wanted.
    """

    total: Tensor  # (kind, annotation): margins added up over epochs
    scores: Tensor | None  # (epoch, item, class): logits

    def __init__(
        self,
        classifier: Classifier,
        n_labels: int,
        top: int,
        scale: Scale,
        kept: tuple[int, int, int] | None = None,
    ) -> None:
        super().__init__(classifier)
        self.top, self.scale = top, scale
        self.register_buffer("total", torch.zeros(len(KINDS), n_labels, dtype=torch.float64))
        self.register_buffer("scores", None if kept is None else torch.full(kept, torch.nan))

    def begin(self, examples: Examples, epoch: int) -> None:
        if epoch > 0:
            self.look(examples, epoch - 1)

    @torch.no_grad()
    def look(self, examples: Examples, epoch: int) -> Tensor:
        """Add up the margins at the end of an epoch; return the logits of the items."""
        n_items, n_classes = examples.annotations.n_items, examples.annotations.n_classes
        logits = torch.zeros(n_items, n_classes, device=self.total.device)
        first = 0  # items come in order, and so do their labels
        for batch in examples.batches(_LOOK, seed=0, epoch=0, shuffle=False):
            found = self.classifier(batch.x.to(self.total.device)).float()
            score = found.softmax(dim=1) if self.scale == "probabilities" else found
            mine, label = score[batch.row.to(score.device)], batch.label.to(score.device)
            here = slice(first, first + len(label))
            for position, kind in enumerate(KINDS):
                self.total[position, here] += margins(mine, label, kind, self.top)
            logits[batch.item.to(logits.device)] = found
            first += len(label)
        if self.scores is not None:
            self.scores[epoch] = logits
        return logits
