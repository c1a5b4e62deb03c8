"""Margins of labels while a classifier learns them.

A label y on an item whose classes have the scores s, probabilities or logits, has the margin

    top2    s_y − s_[top + 1]        s_[r] is the r-th largest of all scores
    pleiss  s_y − s'_[top]           s'_[r] is the r-th largest of the scores of other classes

With `top` = 1 these are the label's score minus the second highest, and minus the highest of
another class. Both agree on labels among the `top` classes; for others pleiss is lower.

The classifier learns all labels as given, one term of the loss for each. After every epoch the
margins of all items are added up, in evaluation mode: so all items are scored by the same network,
every process has all sums, and a resumed training ends with the same ones.

    G. Pleiss, T. Zhang, E. Elenberg, K. Q. Weinberger. Identifying mislabeled data using the area
    under the margin ranking. NeurIPS 2020. arXiv:2001.10528
"""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from ..nn import Batch, Examples, Learner
from .network import Classifier

Kind = Literal["top2", "pleiss"]
Scale = Literal["probabilities", "logits"]

KINDS: tuple[Kind, ...] = ("top2", "pleiss")
_BATCH = 1024  # items per batch


def margins(score: Tensor, label: Tensor, kind: Kind = "top2", top: int = 1) -> Tensor:
    """Return the margin of every label under the scores of its item: (label).

    >>> score = torch.tensor([[0.5, 0.25, 0.25], [0.5, 0.25, 0.25], [0.5, 0.375, 0.125]])
    >>> margins(score, torch.tensor([0, 1, 2])).tolist()
    [0.25, 0.0, -0.25]
    >>> margins(score, torch.tensor([0, 1, 2]), "pleiss").tolist()
    [0.25, -0.25, -0.375]
    """
    own = score.gather(1, label[:, None])
    if kind == "top2":
        return (own - score.topk(top + 1, dim=1).values[:, top:])[:, 0]
    others = score.scatter(1, label[:, None], -torch.inf)
    return (own - others.topk(top, dim=1).values[:, top - 1 :])[:, 0]


class LabelLearner(Learner):
    """A classifier that learns all labels as given."""

    def __init__(self, classifier: Classifier) -> None:
        super().__init__()
        self.classifier = classifier

    def loss(self, batch: Batch) -> Tensor:
        return cross_entropy(self.classifier(batch.x)[batch.row], batch.label)

    def log_truth(self, x: Tensor) -> Tensor:
        return self.classifier(x).log_softmax(dim=-1)

    def log_probability(self, batch: Batch) -> Tensor:
        return self.log_truth(batch.x)[batch.row].gather(1, batch.label[:, None])[:, 0]


class MarginRecorder(LabelLearner):
    """The same, with sums of the margins of all labels.

    Parameters
    ----------
    classifier
        The classifier.
    n_labels
        Number of labels.
    top, scale
        As for `margins`, and of which scores.
    shape
        Epochs, items and classes of the scores to keep; None keeps the sums alone.
    """

    total: Tensor  # (kind, annotation): margins added up over epochs
    scores: Tensor | None  # (epoch, item, class): logits

    def __init__(
        self,
        classifier: Classifier,
        n_labels: int,
        top: int,
        scale: Scale,
        shape: tuple[int, int, int] | None = None,
    ) -> None:
        super().__init__(classifier)
        self.top, self.scale = top, scale
        self.register_buffer("total", torch.zeros(len(KINDS), n_labels, dtype=torch.float64))
        self.register_buffer("scores", None if shape is None else torch.full(shape, torch.nan))

    def begin(self, examples: Examples, epoch: int) -> None:
        if epoch > 0:
            self.add_margins(examples, epoch - 1)

    @torch.no_grad()
    def add_margins(self, examples: Examples, epoch: int) -> Tensor:
        """Add up the margins at the end of an epoch; return the logits of the items."""
        n_items, n_classes = examples.annotations.n_items, examples.annotations.n_classes
        logits = torch.zeros(n_items, n_classes, device=self.total.device)
        first = 0  # items come in order, and so do their labels
        for batch in examples.batches(_BATCH, seed=0, epoch=0, shuffle=False):
            batch_logits = self.classifier(batch.x.to(self.total.device)).float()
            score = batch_logits
            if self.scale == "probabilities":
                score = score.softmax(dim=1)
            own, label = score[batch.row.to(score.device)], batch.label.to(score.device)
            here = slice(first, first + len(label))
            for position, kind in enumerate(KINDS):
                self.total[position, here] += margins(own, label, kind, self.top)
            logits[batch.item.to(logits.device)] = batch_logits
            first += len(label)
        if self.scores is not None:
            self.scores[epoch] = logits
        return logits
