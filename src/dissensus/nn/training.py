"""The one training loop: for classifiers, tendencies, recovery and few-shot learning alike.

Every random choice follows from the seed, and everything that a step depends on is in the
checkpoint, so a run that was killed goes on as if nothing had happened, bit for bit. Several
processes share every batch and add up its gradients, weighted by what each has of it: they walk
the way of a single process.

The epoch whose weights are kept is chosen by accuracy where `valid` knows the truth, otherwise
by the likelihood of annotations held out; the log says which.
"""

from __future__ import annotations

from pathlib import Path

from .._progress import Progress
from ..errors import DataError
from ._loop import History, Loop
from .batches import Batches, Examples, LabelledInputs
from .devices import devices_for, seeded
from .early_stopping import choice_of
from .learner import Learner
from .runs import opened
from .settings import Training
from .validation_split import hold_out

__all__ = ["History", "Learner", "Training", "train"]


def train(
    learner: Learner,
    examples: Batches,
    settings: Training,
    *,
    valid: Batches | LabelledInputs | None = None,
    folder: str | Path | None = None,
    resume: bool = False,
    progress: Progress | None = None,
    about: str = "",
) -> History:
    """Train a learner and leave it with the weights of its best epoch.

    Parameters
    ----------
    learner
        The network; changed in place.
    examples
        What it learns from.
    settings
        How.
    valid
        What the epoch is chosen by: items with known truth, or annotations to foresee. Otherwise
        `settings.held_out` of the items of `Examples` are held out.
    folder
        Where checkpoints, the log and the curve go.
    resume
        Go on from the folder's checkpoint, if there is one.
    progress
        Called after every step with steps done, steps in all, and how it goes.
    about
        What is trained, in words; a training is only resumed as what it was.
    """
    digest = examples.digest()
    wanted = valid is None and settings.held_out > 0 and len(examples) > 1
    if wanted and isinstance(examples, Examples):
        examples, held = hold_out(examples, settings.held_out, settings.seed)
        valid = held if held.n_labelled else None
    if not len(examples):
        raise DataError("no annotations to learn from; give some, or hold out fewer")
    devices = devices_for(settings)
    with (
        opened(folder, settings, digest, resume, devices, about) as run,
        seeded(devices.device, settings.seed, devices.rank),
    ):
        choice = choice_of(valid, learner)
        loop = Loop(learner, examples, settings, choice, devices, run, progress)
        if resume and run.checkpoint is not None:
            loop.restore(run.checkpoint)
        return loop.to_end()
