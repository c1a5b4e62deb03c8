"""The one training loop: for classifiers, tendencies, recovery and few-shot learning alike.

Every random choice follows from the seed, and everything that a step depends on is in the
checkpoint, so a run that was killed resumes bit for bit. Several processes share every batch and
add up its gradients, weighted by their share of it, as a single process would.

The epoch whose weights are kept is chosen by accuracy where `valid` knows the truth, otherwise
by the likelihood of held-out annotations; the log says which.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from math import inf, isfinite
from pathlib import Path
from time import monotonic
from typing import Any, TypeVar

import torch
from torch import Tensor, nn

from ...answers.annotations import Annotations
from ...base.progress import out_of_time
from ...base.storage import with_prefix
from ...errors import DataError, MethodError
from ...method import Progress
from .batches import Batch, Batches, Examples, LabelledInputs, Table, hold_out
from .devices import Devices, devices_for, seeded, torch_seed
from .runs import (
    Checkpoint,
    Row,
    Run,
    load_checkpoint,
    open_run,
    optimizer_tensors,
    restore_optimizers,
    save_checkpoint,
)
from .settings import Criterion, Learner, Training, clip, criterion_for, lr_factor, optimizers_for

__all__ = ["History", "Learner", "Training", "build_and_train", "train"]


_TINY = 1e-300


@dataclass(frozen=True)
class History:
    """The log of a training; the learner has the weights of the best epoch."""

    rows: tuple[Row, ...]  # one per epoch
    best: int  # the epoch whose weights were kept, counted from 1
    chosen_by: str  # the criterion

    @property
    def loss(self) -> list[float]:
        """The mean loss of every epoch."""
        return [row.loss for row in self.rows]


@dataclass
class _State:
    """The state of a training, without weights and optimizers."""

    epoch: int = 0
    step: int = 0  # of this epoch
    loss: float = 0.0  # of this epoch, summed by weight
    weight: float = 0.0
    rows: list[Row] = field(default_factory=list)
    best: int = 0
    score: float = -inf
    weights: dict[str, Tensor] = field(default_factory=dict)  # of the best epoch


class Loop:
    """One training."""

    def __init__(
        self,
        learner: Learner,
        examples: Batches,
        settings: Training,
        *,
        criterion: Criterion,
        devices: Devices,
        run: Run,
        progress: Progress | None,
    ) -> None:
        self.learner, self.examples, self.settings = learner, examples, settings
        self.criterion, self.devices, self.run = criterion, devices, run
        self.progress = progress or (lambda *_: None)
        self.optimizers = optimizers_for(learner, settings)
        self.wrapped = devices.setup(_Loss(learner, shared=devices.ranks > 1))
        self.state = _State()
        self.per_epoch = examples.n_batches(settings.batch)
        self.in_epoch = len(examples)

    def to_end(self) -> History:
        """Train to the end."""
        unsaved = 0
        while not self.ended():
            began = monotonic()
            for batch in self.batches():
                self.step(batch)
                unsaved += 1
                if self.out_of_time():
                    break
                if unsaved >= self.settings.save_every and self.state.step < self.per_epoch:
                    self.save()
                    unsaved = 0
            self.end_epoch(monotonic() - began)
            if unsaved >= self.settings.save_every or self.ended():
                self.save()
                unsaved = 0
        state = self.state
        if state.weights:
            self.learner.load_state_dict(state.weights)
        self.learner.eval()
        self.run.end(state.rows, state.best, self.criterion.description)
        return History(tuple(state.rows), state.best, self.criterion.description)

    def out_of_time(self) -> bool:
        """Return whether the time limit is reached, in any of the processes."""
        return self.devices.add_up(float(out_of_time())) > 0

    def ended(self) -> bool:
        """Return whether epochs or time are over, or none has been better for `patience` epochs."""
        state, patience = self.state, self.settings.patience
        stop = patience > 0 and state.epoch - state.best >= patience
        stop = stop or self.learner.should_stop()
        stop = stop or (state.epoch > 0 and self.out_of_time())
        return state.epoch >= self.settings.epochs or (stop and state.step == 0)

    def batches(self) -> Iterator[Batch]:
        """Yield the remaining batches of the epoch, after its preparation."""
        state, settings, devices = self.state, self.settings, self.devices
        if state.step == 0:
            self.learner.eval()
            # Its own random numbers, the same in every process.
            with torch.no_grad(), seeded(devices.device, settings.seed, state.epoch, 0xBE61):
                self.learner.begin(self.examples, state.epoch)
        self.learner.train()
        return self.examples.batches(
            settings.batch,
            settings.seed,
            state.epoch,
            start=state.step,
            rank=devices.rank,
            ranks=devices.ranks,
        )

    def step(self, batch: Batch) -> None:
        """Take one step and add up its loss."""
        state, settings, devices = self.state, self.settings, self.devices
        devices.check_launcher()
        batch = devices.move(batch)
        if self.examples.augment is not None:
            batch = batch._replace(x=self.examples.augment(batch.x))
        remaining = self.in_epoch - state.step * settings.batch
        weight = float(self.learner.weight(batch) if devices.rank < remaining else 0)
        total = devices.add_up(weight)
        factor = lr_factor(settings, state.epoch * self.per_epoch + state.step, self.per_epoch)
        for optimizer in self.optimizers:
            optimizer.zero_grad(set_to_none=True)
            for group in optimizer.param_groups:
                group["lr"] = group["highest"] * factor
        loss = self.wrapped(batch)
        devices.backward(loss * (devices.ranks * weight / max(total, _TINY)))
        if settings.clip:
            clip(self.optimizers, settings.clip)
        for optimizer in self.optimizers:
            optimizer.step()
        with torch.no_grad():
            self.learner.after_step()
        state.loss += float(loss.detach()) * weight if weight else 0.0
        state.weight += weight
        state.step += 1
        n_steps = state.epoch * self.per_epoch + state.step
        message = f"epoch {state.epoch + 1}, loss {state.loss / max(state.weight, _TINY):.4f}"
        if state.rows and state.rows[-1].score is not None:
            message += f", {self.criterion.name} {state.rows[-1].score:.4f}"
        self.progress(n_steps, settings.epochs * self.per_epoch, message)

    def end_epoch(self, seconds: float) -> None:
        """Log the epoch, and keep its weights if it is the best so far."""
        state, devices = self.state, self.devices
        devices.share_statistics(self.learner)
        self.learner.eval()
        with torch.no_grad():
            score, valid_loss = self.criterion.score(
                self.learner, devices, self.settings.batch
            ) or (None, None)
        loss = devices.add_up(state.loss) / max(devices.add_up(state.weight), _TINY)
        if not isfinite(loss):
            raise MethodError(
                f"the loss is {loss} in epoch {state.epoch + 1}; a smaller lr, or clip, may help"
            )
        groups = [group for optimizer in self.optimizers for group in optimizer.param_groups]
        lr = max(group["lr"] for group in groups)
        state.epoch, state.step, state.loss, state.weight = state.epoch + 1, 0, 0.0, 0.0
        state.rows.append(
            Row(
                epoch=state.epoch,
                loss=loss,
                score=score,
                lr=lr,
                seconds=seconds,
                valid_loss=valid_loss,
            )
        )
        if score is None:
            state.best = state.epoch
        elif score > state.score or not state.weights:
            state.best, state.score = state.epoch, score if isfinite(score) else -inf
            state.weights = {
                name: value.detach().clone() for name, value in self.learner.state_dict().items()
            }
        self.run.log(state.rows, state.best, self.criterion.description)

    def save(self) -> None:
        """Write a checkpoint, if there is a folder."""
        if self.run.folder is None:
            return
        state, devices = self.state, self.devices
        sums = torch.tensor([state.loss, state.weight], dtype=torch.float64)
        shared = {"random": devices.random_states(), "sums": devices.gather(sums)}
        if not self.run.writes:
            return
        notes = {
            "epoch": state.epoch,
            "step": state.step,
            "best": state.best,
            "score": state.score if isfinite(state.score) else None,
            "rows": [row._asdict() for row in state.rows],
        }
        parts = {
            "weights": self.learner.state_dict(),
            "best": state.weights,
            "optimizer": optimizer_tensors(self.optimizers),
        }
        tensors = {
            f"{kind}.{name}": value
            for kind, values in parts.items()
            for name, value in values.items()
        }
        with self.run.writing("checkpoint.safetensors") as draft:
            save_checkpoint(draft, Checkpoint(notes, tensors | shared))

    def restore(self, path: Path) -> None:
        """Restore the state of a checkpoint."""
        notes, tensors = load_checkpoint(path)
        sums = tensors["sums"]  # (process, 2)
        if len(sums) != self.devices.ranks:  # other processes than before: the first has all
            sums = torch.zeros(self.devices.ranks, 2, dtype=sums.dtype)
            sums[0] = tensors["sums"].sum(dim=0)
        loss, weight = sums[self.devices.rank].tolist()
        rows = [Row(**row) for row in notes["rows"]]
        score = -inf if notes["score"] is None else notes["score"]
        self.state = _State(
            epoch=notes["epoch"],
            step=notes["step"],
            loss=loss,
            weight=weight,
            rows=rows,
            best=notes["best"],
            score=score,
            weights=with_prefix("best", tensors),
        )
        try:
            self.learner.load_state_dict(with_prefix("weights", tensors))
            restore_optimizers(self.optimizers, with_prefix("optimizer", tensors))
        except (RuntimeError, ValueError, KeyError) as problem:
            reason = str(problem).splitlines()[0]
            raise DataError(f"of another network ({reason})", where=str(path)) from None
        position = self.settings.seed, notes["epoch"], notes["step"]
        self.devices.restore_random(tensors["random"], *position)


class _Loss(nn.Module):
    """The loss as the output of a network, as lightning-fabric needs it."""

    def __init__(self, learner: Learner, *, shared: bool) -> None:
        super().__init__()
        self.learner, self.shared = learner, shared

    def forward(self, batch: Batch) -> Tensor:
        loss = self.learner.loss(batch)
        if not self.shared:
            return loss
        # Processes can only add up gradients that all of them have: an empty lookup stands in for
        # a table that this loss does not use, as in a warm-up.
        tables = [module for module in self.learner.modules() if isinstance(module, Table)]
        return loss + sum(table(batch.annotator[:0]).sum() for table in tables)


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
        examples, held_out = hold_out(examples, settings.held_out, settings.seed)
        valid = held_out if held_out.n_labelled else None
    if not len(examples):
        raise DataError("no annotations to learn from; give some, or hold out fewer")
    devices = devices_for(settings)
    with (
        open_run(
            folder, settings, digest, resume=resume, devices=devices, about=about, data=data
        ) as run,
        seeded(devices.device, settings.seed, devices.rank),
    ):
        criterion = criterion_for(valid, learner)
        loop = Loop(
            learner,
            examples,
            settings,
            criterion=criterion,
            devices=devices,
            run=run,
            progress=progress,
        )
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
    validation: Examples | LabelledInputs | None = valid
    if valid is None and settings.held_out > 0 and examples.n_labelled > 1:
        examples, held_out = hold_out(examples, settings.held_out, settings.seed)
        validation = held_out if held_out.n_labelled else None
    with torch_seed(settings.seed):
        network = build(examples.annotations)
        history = train(network, examples, replace(settings, held_out=0.0), valid=validation, **run)
    return network, history
