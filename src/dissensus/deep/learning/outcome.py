"""The results of a training: predictions, scores, annotators, and the files of each.

results.json        losses and scores, with peerannot's keys and units (accuracies in percent)
predictions.csv     of the training items; predictions_valid.csv, _test and _others
annotators.csv      scores of annotators; confusion.csv has their matrices
a folder            the saved classifier
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ...base.arrays import Array, Floats, Integers
from ...base.files import atomic_file
from ...metrics import Evaluation, evaluate
from ...result import Predictions
from .classifier import CrowdClassifier
from .data_sets import DataSet, Split

_MANY = 8  # classes from which on peerannot reports top-2 and top-5 accuracy


class OutputPaths(NamedTuple):
    """Paths of the files of a training."""

    model: Path  # a folder
    results: Path  # a JSON file
    run: Path  # a folder: checkpoint, log, curve, tables


@dataclass(frozen=True, eq=False)
class Outcome:
    """A classifier and the data it was trained and tested on."""

    model: CrowdClassifier
    data: DataSet

    @cached_property
    def predictions(self) -> dict[str, Predictions]:
        """Predictions for `train`, and for `valid`, `test` and `others` where these exist."""
        data = self.data
        train = Split(data.annotations.items, data.inputs)
        splits = {"train": train, "valid": data.valid, "test": data.test, "others": data.others}
        return {name: self._predicted(split) for name, split in splits.items() if split is not None}

    def _predicted(self, split: Split) -> Predictions:
        posterior = self.model.predict_proba(split.inputs)
        return Predictions(split.items, self.model.classes_, posterior.argmax(axis=1), posterior)

    @cached_property
    def evaluations(self) -> dict[str, Evaluation]:
        """Scores on the items of known truth, with intervals."""
        evaluations = {}
        for name, split in (("valid", self.data.valid), ("test", self.data.test)):
            if split is not None and split.truth is not None:
                truth = self.model.classes_[split.truth]
                gold = dict(zip(split.items.tolist(), truth.tolist(), strict=True))
                evaluations[name] = evaluate(self.predictions[name], gold)
        return evaluations

    def results(self) -> dict[str, Any]:
        """Return losses and scores under peerannot's keys, and what was trained."""
        history, data = self.model.history_, self.data
        rows, valid = history.rows, data.valid is not None
        out: dict[str, Any] = {
            "train_loss": history.loss,
            "val_loss": [row.valid_loss for row in rows if row.valid_loss is not None],
            "val_accuracy": [100 * row.score for row in rows if valid and row.score is not None],
        }
        if "test" in self.evaluations:
            scores = {name: s.value for name, s in self.evaluations["test"].scores.items() if s}
            out |= {
                "test_loss": scores["log_loss"],
                "test_accuracy": 100 * scores["accuracy"],
                "test_ece": scores["ece"],
            }
        if len(self.model.classes_) >= _MANY:
            for name, split in (("val", data.valid), ("test", data.test)):
                if split is not None and split.truth is not None:
                    posterior = self.predictions[name.replace("val", "valid")].posterior
                    assert posterior is not None
                    for k in (2, 5):
                        micro, macro = top(posterior, split.truth, k)
                        out[f"{name}_micro_top{k}"] = 100 * micro
                        out[f"{name}_macro_top{k}"] = 100 * macro
        return out | {
            "method": self.model.method,
            "encoder": self.model.encoding_.name,
            "best_epoch": history.best,
            "chosen_by": history.chosen_by,
            "n_items": data.annotations.n_items,
            "n_annotators": data.annotations.n_annotators,
            "n_annotations": len(data.annotations),
            "classes": self.model.classes_.tolist(),
        }

    def annotators(self) -> dict[str, Array]:
        """Return scores of annotators, as columns."""
        return self.model.annotator_scores(self.data.inputs, self.data.annotations)

    def confusion(self) -> dict[str, Array]:
        """Return confusion matrices, a row for each cell, as columns."""
        model = self.model
        return confusion_columns(model.confusion_, model.annotators_, model.classes_)

    def write(self, paths: OutputPaths, *, crowd: bool = True) -> None:
        """Write all files atomically, results last; without `crowd`, none of annotators."""
        from ...formats.writing import write_columns

        for name, predictions in self.predictions.items():
            file = "predictions.csv" if name == "train" else f"predictions_{name}.csv"
            write_columns(_table(predictions), paths.run / file)
        if crowd:
            write_columns(self.annotators(), paths.run / "annotators.csv")
            write_columns(self.confusion(), paths.run / "confusion.csv")
        self.model.save(paths.model)
        with atomic_file(paths.results) as draft:
            draft.write_text(json.dumps(self.results(), indent=1), encoding="utf-8")


def confusion_columns(confusion: Floats, annotators: Array, classes: Array) -> dict[str, Array]:
    """Return confusion matrices (annotator, true, given), a row for each cell, as columns."""
    annotator, true, label = np.indices(confusion.shape).reshape(3, -1)
    names = {"annotator": annotators[annotator], "true": classes[true], "given": classes[label]}
    return names | {"probability": confusion.reshape(-1)}


def top(posterior: Floats, truth: Integers, k: int) -> tuple[float, float]:
    """Return the top-k accuracy: over items, and averaged over classes.

    >>> top(np.array([[0.5, 0.3, 0.2], [0.5, 0.3, 0.2], [0.2, 0.3, 0.5]]), np.array([0, 2, 2]), 2)
    (0.6666666666666666, 0.75)
    """
    best = np.argsort(-posterior, axis=1, kind="stable")[:, :k]
    hit = (best == truth[:, None]).any(axis=1)
    count = np.bincount(truth, minlength=posterior.shape[1])
    hits = np.bincount(truth, weights=hit, minlength=posterior.shape[1])
    return float(hit.mean()), float((hits[count > 0] / count[count > 0]).mean())


def _table(predictions: Predictions) -> dict[str, Array]:
    posterior, classes = predictions.posterior, predictions.classes
    assert posterior is not None
    return {
        "item": predictions.items,
        "label": classes[predictions.label],
        "confidence": posterior.max(axis=1),
        **{f"p:{name}": posterior[:, code] for code, name in enumerate(classes.tolist())},
    }
