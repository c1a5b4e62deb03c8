"""Models that train a network, as peerannot calls them; PyTorch is imported when they run.

The network of a script becomes the encoder of ours, with a linear layer above it. Of its optimizer
we take the kind and the settings. The loss is cross-entropy, whatever criterion is given.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from ..answers.annotations import Annotations
from ..base.arrays import Floats, Integers
from ..errors import DataError
from ..formats.tools.peerannot import read_folder, read_metadata

__all__ = ["AUM", "WAUM", "CoNAL", "Crowdlayer", "WAUM_perworker"]


class AUM:
    """Mean margin of every task's label; `aums` has a row per task, `too_hard` the lowest.

    Parameters
    ----------
    tasks
        A loader of `(x, …, label, index of the task)`.
    n_classes
        Number of classes.
    model, criterion, optimizer, n_epoch
        The network and its training.
    topk
        Rank of the class to compare with.
    verbose
        Not used.
    use_pleiss
        Compare with the best other class.
    """

    def __init__(
        self,
        tasks: Any,
        n_classes: int,
        model: Any,
        criterion: Any,  # noqa: ARG002
        optimizer: Any,
        n_epoch: int,
        topk: int | bool = False,
        verbose: bool = False,  # noqa: ARG002
        use_pleiss: bool = False,
        **_unused: Any,
    ) -> None:
        group = optimizer.param_groups[0]
        self.tasks, self.n_classes = tasks, n_classes
        self._settings: dict[str, Any] = {
            "encoder": model,
            "frozen": False,
            "hidden": 0,
            "dropout": 0.0,
            "input_dropout": 0.0,
            "epochs": n_epoch,
            "held_out": 0.0,
            "margin": "pleiss" if use_pleiss else "top2",
            "top": int(topk) or 1,
            "batch": tasks.batch_size or 64,
            "optimizer": type(optimizer).__name__.lower(),
            "lr": group["lr"],
            "momentum": group.get("momentum", 0.9),
            "decay": group.get("weight_decay", 0.0),
        }

    def run(self, alpha: float = 0.01) -> None:
        """Train, and find the share `alpha` of tasks with the lowest scores."""
        import pandas as pd

        from ..deep.learning.hard_items import aum

        rows = self._rows(self.tasks.dataset.dataset.samples, -1)
        label = Annotations.from_labels([int(row[2]) for row in rows], self.n_classes)
        scores = aum(_stacked(rows), label, alpha=alpha, **self._settings)
        self._cut(scores.pruned)
        columns = {"sample_id": np.arange(len(rows)), "filename": self.filenames}
        areas = {"AUM_yang": scores.top2, "AUM_pleiss": scores.pleiss}
        self.aums = pd.DataFrame(columns | areas)

    def _rows(self, samples: Any, index: int) -> list[Any]:
        """Return the first row of every task, by the index that is in a column of the rows."""
        self.filenames = np.array([Path(str(sample[0])).name for sample in samples])
        first_rows: dict[int, Any] = {}
        for number in range(len(self.tasks.dataset)):
            row = self.tasks.dataset[number]
            first_rows.setdefault(int(row[index]), row)
        if sorted(first_rows) != list(range(len(self.filenames))):
            raise DataError(
                f"{len(first_rows)} tasks in the loader, but {len(self.filenames)} files"
            )
        return [first_rows[number] for number in range(len(first_rows))]

    def _cut(self, pruned: Any) -> None:
        """Keep the tasks that are too hard, by index and by number."""
        self.index_too_hard = np.flatnonzero(pruned)
        self.tasks_too_hard = [_task(file) for file in self.filenames[pruned]]
        self.too_hard = np.column_stack([self.index_too_hard, self.tasks_too_hard]).astype(int)


class WAUM(AUM):
    """Weighted mean margin of every task's labels; `waum` has a row per task.

    Parameters
    ----------
    tasks
        A loader of `(x, label, worker, index of the task, index)`, a row per answer.
    answers
        `{task: {worker: label}}`; the number at the end of a file's name is the task.
    n_classes, model, criterion, optimizer, n_epoch, verbose, use_pleiss, topk
        As for `AUM`.
    n_workers
        Number of workers.
    maxiterDS
        Most iterations of Dawid-Skene.
    """

    per_annotator: ClassVar[bool] = False

    def __init__(
        self,
        tasks: Any,
        answers: Any,
        n_classes: int,
        model: Any,
        criterion: Any,
        optimizer: Any,
        n_epoch: int,
        verbose: bool = False,
        use_pleiss: bool = False,
        topk: int | bool = False,
        *,
        n_workers: int,
        maxiterDS: int = 60,
        **_unused: Any,
    ) -> None:
        super().__init__(
            tasks=tasks,
            n_classes=n_classes,
            model=model,
            criterion=criterion,
            optimizer=optimizer,
            n_epoch=n_epoch,
            topk=topk,
            verbose=verbose,
            use_pleiss=use_pleiss,
        )
        self.answers = {int(task): labels for task, labels in answers.items()}
        self.n_workers = n_workers
        own = {"rounds": maxiterDS, "smoothing": 0.0, "per_annotator": self.per_annotator}
        self._settings |= own

    def run(self, alpha: float = 0.01) -> None:
        """Train, find the share `alpha` of tasks with the lowest scores, and label the others."""
        import pandas as pd

        from ..deep.learning.hard_items import waum

        rows = self._rows(self.tasks.dataset.dataset.base_samples, 3)
        self._numbers = [_task(file) for file in self.filenames]
        labelled = [
            (row, int(worker), int(label))
            for row, task in enumerate(self._numbers)
            for worker, label in self.answers[task].items()
        ]
        item, annotator, label = np.array(labelled).T
        names: Any = {"annotators": self.n_workers, "classes": self.n_classes}
        crowd = Annotations.from_codes(item, annotator, label, items=len(rows), **names)
        self.scores = waum(_stacked(rows), crowd, alpha=alpha, **self._settings)
        self._cut(self.scores.pruned)
        columns = {"index": np.arange(len(rows)), "task": self.filenames}
        self.waum = pd.DataFrame(columns | {"waum": self.scores.waum})
        self.pi = self.scores.confusion

    def get_probas(self) -> Floats:
        """Return the soft labels of tasks, zeros of those that are too hard: (task, class)."""
        position = {task: row for row, task in enumerate(sorted(self.answers))}
        posterior = np.zeros((len(position), self.n_classes))
        posterior[[position[task] for task in self._numbers]] = self.scores.posterior
        return posterior

    def get_answers(self) -> Integers:
        """Return the most probable labels."""
        return self.get_probas().argmax(axis=1)


class WAUM_perworker(WAUM):
    """The same with a network for every worker."""

    per_annotator = True


class Crowdlayer:
    """A classifier learned through a confusion matrix of every worker, from a data set folder.

    Parameters
    ----------
    tasks_path
        The folder, with `train/` and perhaps `val/` and `test/`.
    answers
        The file of answers.
    model
        Name of the encoder.
    n_classes
        Number of classes.
    optimizer, n_epochs
        Of the training.
    scale
        Weight of the penalty of CoNAL.
    verbose
        Not used.
    pretrained
        Load published weights.
    output_name
        Name of the files.
    img_size, freeze, data_augmentation
        Size of images, whether the encoder is not trained, whether images are augmented.
    **training
        Batch size, learning rate, momentum, decay, scheduler, milestones, decay of the rate, seed.
    """

    method: ClassVar[str] = "crowd-layer"

    def __init__(
        self,
        tasks_path: str | Path,
        answers: str | Path,
        model: str,
        n_classes: int,
        optimizer: str,
        n_epochs: int,
        scale: float = 1e-5,  # noqa: ARG002
        verbose: bool = True,  # noqa: ARG002
        pretrained: bool = False,
        output_name: str | None = None,
        *,
        img_size: int = 224,
        freeze: bool | None = None,
        data_augmentation: bool = False,
        **training: Any,
    ) -> None:
        self.tasks_path = Path(tasks_path)
        self.output_name = output_name or self.method
        self._read: dict[str, Any] = {"answers": Path(answers).resolve(), "n_classes": n_classes}
        self._encoder: dict[str, Any] = {"size": img_size, "pretrained": pretrained}
        self._model, self._frozen, self._augment = model, freeze, data_augmentation
        accepted = ("lr", "momentum", "decay", "scheduler", "milestones", "lr_decay", "seed")
        self._training = {name: training[name] for name in accepted if name in training}
        self._training |= {"epochs": n_epochs, "optimizer": optimizer.lower()}
        self._training["batch"] = training.get("batch_size", 64)

    def run(self, **_unused: Any) -> None:
        """Train, and write the classifier, results and predictions as `aggregate-deep` does."""
        from ..deep.learning.classifier import CrowdClassifier
        from ..deep.learning.data_sets import open_folder
        from ..deep.learning.outcome import Outcome, OutputPaths
        from ..deep.nn import Training
        from ..deep.nn.encoders import encoder_spec

        folder, name = self.tasks_path, self.output_name
        names = read_metadata(folder).get("label_names")
        data = open_folder(read_folder(folder, **self._read), folder, label_names=names)
        training = Training(**self._training)
        self.classifier = CrowdClassifier(
            self.method,
            encoder=encoder_spec(self._model, data.inputs, **self._encoder),
            frozen=self._frozen,
            augment=self._augment,
            training=training,
            seed=training.seed,
        ).fit(data.inputs, data.annotations, valid=data.known_valid)
        files = (folder / "best_models" / name, folder / "results" / f"{name}.json")
        self.outcome = Outcome(self.classifier, data)
        self.outcome.write(OutputPaths(*files, folder / "runs" / name))


class CoNAL(Crowdlayer):
    """A classifier learned through a common confusion and one of every worker's own."""

    method = "conal"

    def __init__(self, *arguments: Any, scale: float = 1e-5, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.method = f"conal[scale={scale}]"  # type: ignore[misc]


def _stacked(rows: list[Any]) -> Any:
    """Return the inputs of rows as one array: (task, …)."""
    return np.stack([np.asarray(row[0]) for row in rows])


def _task(file: str) -> int:
    """Return the number of the task at the end of a file's name."""
    match = re.search(r"(\d+)$", Path(file).stem)
    if match is None:
        raise DataError(f"{file}: no number of a task at the end of its name")
    return int(match[1])
