"""Which epoch is the best: by accuracy, by annotations foreseen, or the last."""

from __future__ import annotations

from dataclasses import dataclass
from math import isnan, nan
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import torch

from .batches import Batches, Examples, LabelledInputs, inputs_of
from .learner import Learner

if TYPE_CHECKING:
    from .devices import Devices

__all__ = ["Choice", "Standing", "choice_of"]


class Standing(NamedTuple):
    """How good a learner is; the epoch of the highest score is chosen."""

    score: float
    loss: float | None  # mean surprise at the truth, or at annotations held out, where it is known


@dataclass(frozen=True, eq=False)
class Choice:
    """What an epoch is chosen by; a higher score is better."""

    valid: Batches | LabelledInputs | None
    short: str
    words: str

    def standing(self, learner: Learner, devices: Devices, size: int) -> Standing | None:
        """Return how good a learner is; every process looks at its share."""
        if self.valid is None:
            return None
        if isinstance(self.valid, LabelledInputs):
            sums = _accuracy(learner, self.valid, devices, size)
        elif learner.by_accuracy:
            sums = _by_annotator(learner, self.valid, devices, size)
        else:
            sums = _likelihood(learner, self.valid, devices, size)
        good, log, count = map(devices.add_up, sums)
        return Standing(good / max(count, 1.0), None if isnan(log) else -log / max(count, 1.0))


def choice_of(valid: Batches | LabelledInputs | None, learner: Learner) -> Choice:
    """Return what the epoch is chosen by."""
    if valid is None:
        return Choice(None, "", "the last epoch")
    if isinstance(valid, LabelledInputs):
        return Choice(valid, "accuracy", f"accuracy on {len(valid.x)} items of known truth")
    held = valid.told(learner.foresees)
    if learner.by_accuracy:
        return Choice(valid, "held-out accuracy", f"mean accuracy by annotator on {held}")
    if not _foresees(learner, valid):
        return Choice(valid, "held-out gain", f"minus the loss of {held}")
    return Choice(valid, "held-out log-likelihood", f"log-likelihood of {held}")


def _foresees(learner: Learner, valid: Batches) -> bool:
    """Return whether a learner tells how probable held-out annotations are."""
    return (
        isinstance(valid, Examples) and type(learner).log_probability is not Learner.log_probability
    )


def _accuracy(
    learner: Learner, valid: LabelledInputs, devices: Devices, size: int
) -> tuple[float, float, float]:
    truth = torch.as_tensor(valid.truth).to(devices.device).long()
    right = count = 0
    log = 0.0
    for at in range(devices.rank * size, len(valid.x), devices.ranks * size):
        items = np.arange(at, min(at + size, len(valid.x)))
        found = learner.log_truth(inputs_of(valid.x, items).to(devices.device))
        here = truth[at : at + size]
        right += int((found.argmax(dim=1) == here).sum())
        log += float(found.double().gather(1, here[:, None]).sum())
        count += len(items)
    return right, log, count


def _by_annotator(
    learner: Learner, valid: Batches, devices: Devices, size: int
) -> tuple[float, float, float]:
    """Return the accuracies of annotators added up, and how many there are; no likelihood."""
    assert isinstance(valid, Examples)  # of nothing else it is known who speaks
    labels = torch.from_numpy(valid.annotations.labels_per_annotator).clamp(min=1).double()
    share = (1 / labels).to(devices.device)  # (annotator): what one of their labels counts
    good = count = 0.0
    for position, batch in enumerate(valid.batches(size, 0, 0, shuffle=False)):
        if position % devices.ranks != devices.rank:
            continue
        here = devices.move(batch)
        mine = share[here.annotator]
        good += float((mine * (learner.foreseen(here) == here.label)).sum())
        count += float(mine.sum())
    return good, nan, count


def _likelihood(
    learner: Learner, valid: Batches, devices: Devices, size: int
) -> tuple[float, float, float]:
    good = count = 0.0
    plain = not _foresees(learner, valid)
    for position, batch in enumerate(valid.batches(size, 0, 0, shuffle=False)):
        if position % devices.ranks != devices.rank:
            continue
        here = devices.move(batch)
        if plain:
            weight = learner.weight(here)
            good, count = good - float(learner.loss(here)) * weight, count + weight
        else:
            good += float(learner.log_probability(here).double().sum())
            count += len(here.label)
    return good, good, count
