"""The one training loop: for classifiers, tendencies, recovery and few-shot learning alike.

Every random choice follows from the seed, and everything that a step depends on is in the
checkpoint, so a run that was killed resumes bit for bit. Several processes share every batch and
add up its gradients, weighted by their share of it, as a single process would.

The epoch whose weights are kept is chosen by accuracy where `valid` knows the truth, otherwise
by the likelihood of held-out annotations; the log says which.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

from ...base.progress import Progress
from ...answers.annotations import Annotations
from ...errors import DataError
from .loop import History, Loop
from .batches import Batches, Examples, LabelledInputs, hold_out
from .devices import devices_for, seeded, torch_seed
from .early_stopping import criterion_for
from .learner import Learner
from .runs import open_run
from .settings import Training

__all__ = ["History", "Learner", "Training", "build_and_train", "train"]

Net = TypeVar("Net", bound=Learner)


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
    data: Mapping[str, str] | None = None,
) -> History:
    """Train a learner and leave it with the weights of its best epoch.

    Parameters
    ----------
    learner
        The network; changed in place.
    examples
        What to train on.
    settings
        How to train.
    valid
        Validation split that chooses the epoch: items of known truth, or annotations. By default
        `settings.held_out` of the items of `Examples` are held out.
    folder
        Folder of checkpoints, log and curve.
    resume
        Resume from the folder's checkpoint, if there is one.
    progress
        Called after every step with steps done, steps in all, and a message.
    about
        What is trained; a run is only resumed by a training of the same description.
    data
        Digests of what it learns from besides the annotations, by name; see `digests`. A run is
        only resumed with the same.
    """
    digest = examples.digest()
    splits = valid is None and settings.held_out > 0 and len(examples) > 1
    if splits and isinstance(examples, Examples):
        examples, held = hold_out(examples, settings.held_out, settings.seed)
        valid = held if held.n_labelled else None
    if not len(examples):
        raise DataError("no annotations to learn from; give some, or hold out fewer")
    devices = devices_for(settings)
    with (
        open_run(folder, settings, digest, resume, devices, about, data) as run,
        seeded(devices.device, settings.seed, devices.rank),
    ):
        criterion = criterion_for(valid, learner)
        loop = Loop(learner, examples, settings, criterion, devices, run, progress)
        if resume and run.checkpoint is not None:
            loop.restore(run.checkpoint)
        return loop.to_end()


def build_and_train(
    build: Callable[[Annotations], Net],
    examples: Examples,
    settings: Training,
    *,
    valid: LabelledInputs | None = None,
    **run: Any,
) -> tuple[Net, History]:
    """Return a network built for the annotations outside the validation split, and trained.

    Options are those of `train`.
    """
    held: Examples | LabelledInputs | None = valid
    if valid is None and settings.held_out > 0 and examples.n_labelled > 1:
        examples, held_out = hold_out(examples, settings.held_out, settings.seed)
        held = held_out if held_out.n_labelled else None
    with torch_seed(settings.seed):
        network = build(examples.annotations)
        history = train(network, examples, replace(settings, held_out=0.0), valid=held, **run)
    return network, history
