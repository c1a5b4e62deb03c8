"""The criterion that chooses the epoch: accuracy, held-out likelihood, or none (the last epoch)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import isnan, nan
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import torch

from .batches import Batches, Examples, LabelledInputs, inputs_of
from .learner import Learner

if TYPE_CHECKING:
    from .devices import Devices

Sums = tuple[float, float, float]  # of the score, of the log-likelihood, and of the weights


class EpochScore(NamedTuple):
    """How good a learner is after an epoch; the highest score is chosen."""

    score: float
    loss: float | None  # mean negative log-likelihood on the validation split, where known


@dataclass(frozen=True, eq=False)
class Criterion:
    """What the epoch is chosen by."""

    valid: Batches | LabelledInputs | None
    name: str
    description: str

    def score(self, learner: Learner, devices: Devices, size: int) -> EpochScore | None:
        """Return how good a learner is; every process evaluates its share."""
        if self.valid is None:
            return None
        if isinstance(self.valid, LabelledInputs):
            sums = _accuracy(learner, self.valid, devices, size)
        elif learner.by_accuracy:
            sums = _annotator_accuracy(learner, self.valid, devices, size)
        else:
            sums = _likelihood(learner, self.valid, devices, size)
        score, log, count = map(devices.add_up, sums)
        count = max(count, 1.0)
        return EpochScore(score / count, None if isnan(log) else -log / count)


def criterion_for(valid: Batches | LabelledInputs | None, learner: Learner) -> Criterion:
    """Return what the epoch is chosen by."""
    if valid is None:
        return Criterion(None, "", "the last epoch")
    if isinstance(valid, LabelledInputs):
        return Criterion(valid, "accuracy", f"accuracy on {len(valid.x)} items of known truth")
    held_out = valid.describe(learner.held_out_name)
    if learner.by_accuracy:
        return Criterion(valid, "held-out accuracy", f"mean accuracy by annotator on {held_out}")
    if not _has_likelihood(learner, valid):
        return Criterion(valid, "held-out gain", f"minus the loss of {held_out}")
    return Criterion(valid, "held-out log-likelihood", f"log-likelihood of {held_out}")


def _has_likelihood(learner: Learner, valid: Batches) -> bool:
    overridden = type(learner).log_probability is not Learner.log_probability
    return isinstance(valid, Examples) and overridden


def _batches(valid: Batches, devices: Devices, size: int) -> Iterator[Any]:
    """Yield the batches of this process."""
    for number, batch in enumerate(valid.batches(size, 0, 0, shuffle=False)):
        if number % devices.ranks == devices.rank:
            yield devices.move(batch)


def _accuracy(learner: Learner, valid: LabelledInputs, devices: Devices, size: int) -> Sums:
    truth = torch.as_tensor(valid.truth).to(devices.device).long()
    right = count = 0
    total = 0.0
    for start in range(devices.rank * size, len(valid.x), devices.ranks * size):
        items = np.arange(start, min(start + size, len(valid.x)))
        log = learner.log_truth(inputs_of(valid.x, items).to(devices.device))
        true = truth[start : start + size]
        right += int((log.argmax(dim=1) == true).sum())
        total += float(log.double().gather(1, true[:, None]).sum())
        count += len(items)
    return right, total, count


def _annotator_accuracy(learner: Learner, valid: Batches, devices: Devices, size: int) -> Sums:
    """Return the sum of the accuracies of annotators and their number; no likelihood."""
    assert isinstance(valid, Examples)
    labels = torch.from_numpy(valid.annotations.labels_per_annotator).clamp(min=1).double()
    weight = (1 / labels).to(devices.device)  # (annotator): of one of their labels
    score = count = 0.0
    for batch in _batches(valid, devices, size):
        own = weight[batch.annotator]
        score += float((own * (learner.predicted_labels(batch) == batch.label)).sum())
        count += float(own.sum())
    return score, nan, count


def _likelihood(learner: Learner, valid: Batches, devices: Devices, size: int) -> Sums:
    score = count = 0.0
    known = _has_likelihood(learner, valid)
    for batch in _batches(valid, devices, size):
        if known:
            score += float(learner.log_probability(batch).double().sum())
            count += len(batch.label)
        else:
            weight = learner.weight(batch)
            score, count = score - float(learner.loss(batch)) * weight, count + weight
    return score, score, count
