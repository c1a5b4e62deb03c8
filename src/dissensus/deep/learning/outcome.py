"""The results of a training: predictions, scores, annotators, and the files of each.

results.json        losses and scores, with peerannot's keys and units (accuracies in percent)
predictions.csv     of the training items; predictions_valid.csv, _test and _others
annotators.csv      scores of annotators; confusion.csv has their matrices
a folder            the saved classifier
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple, Self

import numpy as np

from ...base.arrays import Array, Floats, Integers
from ...base.files import atomic_file
from ...metrics import Evaluation, evaluate
from ...pages.sections import Section
from ...pages.sections import Table as SmallTable
from ...pages.terminal import interval
from ...result import Predictions, Result, Table
from ..nn.estimator import predicted_columns
from .classifier import CrowdClassifier
from .data_sets import DataSet, Split

_SHOWN = {
    "accuracy": "accuracy",
    "macro_f1": "macro F1",
    "log_loss": "log loss",
    "ece": "calibration error",
}
_WORST = 5  # annotators that are named
_ENOUGH = 5  # labels of an annotator who is
_MANY = 8  # classes from which on peerannot reports top-2 and top-5 accuracy


class OutputPaths(NamedTuple):
    """Paths of the files of a training."""

    model: Path  # a folder
    results: Path  # a JSON file
    run: Path  # a folder: checkpoint, log, curve, tables

    @classmethod
    def below(cls, folder: Path, name: str, encoder: str = "") -> Self:
        """Return the paths in a folder, as peerannot names them."""
        results = folder / "results" / f"{name}.json"
        return cls(folder / "best_models" / encoder / name, results, folder / "runs" / name)


@dataclass(frozen=True, eq=False, repr=False)
class Outcome(Result):
    """A classifier and the data it was trained and tested on.

    Attributes
    ----------
    model, data
        The classifier and its data.
    crowd
        Whether it learned from annotators, and not from one label per item.
    """

    model: CrowdClassifier
    data: DataSet
    crowd: bool = True

    @property
    def tables(self) -> Mapping[str, Table]:
        """Predictions, and what was learned of annotators."""
        tables: dict[str, Table] = {
            f"predictions_{name}".removesuffix("_train"): prediction_columns(predicted)
            for name, predicted in self.predictions.items()
        }
        if self.crowd:
            tables |= {"annotators": self.annotators(), "confusion": self.confusion()}
        return tables

    @property
    def sentences(self) -> tuple[str, ...]:
        """What was learned from, the epoch that is kept, and who labelled worst."""
        annotations, history = self.data.annotations, self.model.history_
        labels = f"{len(annotations)} labels"
        method = ""
        if self.crowd:
            labels += f" by {annotations.n_annotators} annotators"
            method = f"by {self.model.method} "
        sentences = [
            f"Learned from {labels} on {annotations.n_items} items, {method}with the encoder "
            f"{self.model.encoding_.name}.",
            f"Epoch {history.best} of {len(history.rows)} is kept, chosen by {history.chosen_by}.",
        ]
        worst = self._worst() if self.crowd and annotations.n_annotators > 1 else []
        if worst:
            sentences.append(f"Least accurate annotators, by the network: {', '.join(worst)}.")
        return tuple(sentences)

    def _worst(self) -> list[str]:
        """Return the annotators whom the network finds least accurate, among those with labels."""
        scores = self.annotators()
        rows = zip(
            *(scores[name].tolist() for name in ("performance", "n_labels", "annotator")),
            strict=True,
        )
        ranked = sorted((row for row in rows if row[1] >= _ENOUGH), key=lambda row: float(row[0]))
        return [f"{name} ({accuracy:.0%} of {count})" for accuracy, count, name in ranked[:_WORST]]

    def sections(self) -> tuple[Section, ...]:
        """Return the scores on items of known truth."""
        panels = []
        for part, evaluation in self.evaluations.items():
            rows = [
                (words, f"{score.value:.4f}", interval(score.low, score.high))
                for name, words in _SHOWN.items()
                if (score := evaluation.scores.get(name)) is not None
            ]
            title = f"{evaluation.n_scored} {part} items of known truth"
            panels.append([SmallTable(title, ("score", "value", "95 % interval"), rows, n_texts=3)])
        return (Section("training", "What was learned", panels=panels),)

    def as_dict(self) -> dict[str, Any]:
        """Return losses and scores; see `results`."""
        return self.results()

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

    def write(self, paths: OutputPaths) -> None:
        """Write all files atomically, results last."""
        from ...formats.writing import write_columns

        for name, table in self.tables.items():
            write_columns(table, paths.run / f"{name}.csv")
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


def prediction_columns(predictions: Predictions) -> dict[str, Array]:
    """Return predicted labels with the probability of every class, as columns."""
    assert predictions.posterior is not None
    columns = {"item": predictions.items}
    return columns | predicted_columns(predictions.classes, predictions.posterior)
