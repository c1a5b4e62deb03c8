"""Which epoch is the best: by accuracy, by annotations foreseen, or the last."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import torch

from .batches import Batches, Examples, Known, inputs_of
from .learner import Learner

if TYPE_CHECKING:
    from .devices import Devices

__all__ = ["Choice", "choice_of"]


@dataclass(frozen=True, eq=False)
class Choice:
    """What an epoch is chosen by; a higher score is better."""

    valid: Batches | Known | None
    short: str
    words: str

    def score(self, learner: Learner, devices: Devices, size: int) -> float | None:
        """Return how good a learner is; every process looks at its share."""
        if self.valid is None:
            return None
        if isinstance(self.valid, Known):
            good, count = _accuracy(learner, self.valid, devices, size)
        else:
            good, count = _likelihood(learner, self.valid, devices, size)
        return devices.add_up(good) / max(devices.add_up(count), 1.0)


def choice_of(valid: Batches | Known | None, learner: Learner) -> Choice:
    """Return what the epoch is chosen by."""
    if valid is None:
        return Choice(None, "", "the last epoch")
    if isinstance(valid, Known):
        return Choice(valid, "accuracy", f"accuracy on {len(valid.x)} items of known truth")
    if not _foresees(learner, valid):
        return Choice(valid, "held-out gain", f"minus the loss of {valid.told}")
    return Choice(valid, "held-out log-likelihood", f"log-likelihood of {valid.told}")


def _foresees(learner: Learner, valid: Batches) -> bool:
    """Return whether a learner tells how probable held-out annotations are."""
    return isinstance(valid, Examples) and type(learner).log_chance is not Learner.log_chance


def _accuracy(learner: Learner, valid: Known, devices: Devices, size: int) -> tuple[float, float]:
    truth = torch.as_tensor(valid.truth).to(devices.device)
    right = count = 0
    for at in range(devices.rank * size, len(valid.x), devices.ranks * size):
        items = np.arange(at, min(at + size, len(valid.x)))
        found = learner.log_truth(inputs_of(valid.x, items).to(devices.device)).argmax(dim=1)
        right += int((found == truth[at : at + size]).sum())
        count += len(items)
    return right, count


def _likelihood(
    learner: Learner, valid: Batches, devices: Devices, size: int
) -> tuple[float, float]:
    good = count = 0.0
    plain = not _foresees(learner, valid)
    for place, batch in enumerate(valid.batches(size, 0, 0, shuffle=False)):
        if place % devices.ranks != devices.rank:
            continue
        here = devices.move(batch)
        if plain:
            weight = learner.weight(here)
            good, count = good - float(learner.loss(here)) * weight, count + weight
        else:
            good += float(learner.log_chance(here).double().sum())
            count += len(here.label)
    return good, count
