"""What came of a training: predictions, scores, what is known of annotators, and their files.

results.json        losses and scores, with peerannot's keys and units (accuracies in percent)
predictions.csv     of the items learned from, and of valid, test and others beside it
annotators.csv      how right each is; confusion.csv has their matrices
a folder            the classifier itself: safetensors and JSON, nothing pickled
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from .._files import atomic_file, atomic_folder
from .._relation import Array, Floats, Integers
from ..metrics import Evaluation, evaluate
from ..result import Predictions
from .classifier import CrowdClassifier
from .data_sets import DataSet, Part

__all__ = ["Outcome", "Places", "top"]

_MANY = 8  # classes from which on the best two and five count, as peerannot has it


class Places(NamedTuple):
    """Where the files of a training go."""

    model: Path  # a folder
    results: Path  # a JSON file
    run: Path  # a folder: checkpoint, log, curve, tables


@dataclass(frozen=True, eq=False)
class Outcome:
    """A classifier and the data that it was learned from and tried on."""

    made: CrowdClassifier
    data: DataSet

    @cached_property
    def predictions(self) -> dict[str, Predictions]:
        """What the classifier says: of `train`, and of `valid`, `test` and `others` if there."""
        data = self.data
        train = Part(data.annotations.items, data.inputs)
        parts = {"train": train, "valid": data.valid, "test": data.test, "others": data.others}
        return {name: self._predicted(part) for name, part in parts.items() if part is not None}

    def _predicted(self, part: Part) -> Predictions:
        posterior = self.made.predict_proba(part.inputs)
        return Predictions(part.items, self.made.classes_, posterior.argmax(axis=1), posterior)

    @cached_property
    def evaluations(self) -> dict[str, Evaluation]:
        """How right the classifier is on the items of known truth, with intervals."""
        found = {}
        for name, part in (("valid", self.data.valid), ("test", self.data.test)):
            if part is not None and part.truth is not None:
                truth = self.made.classes_[part.truth]
                known = dict(zip(part.items.tolist(), truth.tolist(), strict=True))
                found[name] = evaluate(self.predictions[name], known)
        return found

    def results(self) -> dict[str, Any]:
        """Return losses and scores under peerannot's keys, and what they stand for."""
        history, data = self.made.history_, self.data
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
        if len(self.made.classes_) >= _MANY:
            for name, part in (("val", data.valid), ("test", data.test)):
                if part is not None and part.truth is not None:
                    posterior = self.predictions[name.replace("val", "valid")].posterior
                    assert posterior is not None
                    for k in (2, 5):
                        micro, macro = top(posterior, part.truth, k)
                        out[f"{name}_micro_top{k}"] = 100 * micro
                        out[f"{name}_macro_top{k}"] = 100 * macro
        return out | {
            "method": self.made.method,
            "encoder": self.made.encoding_.name,
            "best_epoch": history.best,
            "chosen_by": history.chosen_by,
            "n_items": data.annotations.n_items,
            "n_annotators": data.annotations.n_annotators,
            "n_annotations": len(data.annotations),
            "classes": self.made.classes_.tolist(),
        }

    def annotators(self) -> dict[str, Array]:
        """Return what is known of every annotator, a column each."""
        return self.made.annotator_scores(self.data.inputs, self.data.annotations)

    def confusion(self) -> dict[str, Array]:
        """Return what annotators say of every class, a row for each of its cells."""
        confusion, classes = self.made.confusion_, self.made.classes_
        annotator, true, given = np.indices(confusion.shape).reshape(3, -1)
        return {
            "annotator": self.made.annotators_[annotator],
            "true": classes[true],
            "given": classes[given],
            "probability": confusion.reshape(-1),
        }

    def write(self, positions: Places, *, crowd: bool = True) -> None:
        """Write everything, each file whole or not at all; without a crowd, nothing of annotators.

        Results stand last: where they are, all is there.
        """
        from ..writers.table_files import write_columns

        for name, found in self.predictions.items():
            file = "predictions.csv" if name == "train" else f"predictions_{name}.csv"
            write_columns(_table(found), positions.run / file)
        if crowd:
            write_columns(self.annotators(), positions.run / "annotators.csv")
            write_columns(self.confusion(), positions.run / "confusion.csv")
        positions.model.parent.mkdir(parents=True, exist_ok=True)
        with atomic_folder(positions.model) as draft:
            self.made.save(draft)
        with atomic_file(positions.results) as draft:
            draft.write_text(json.dumps(self.results(), indent=1), encoding="utf-8")


def top(posterior: Floats, truth: Integers, k: int) -> tuple[float, float]:
    """Return how often the truth is among the k best classes: of all items, and mean over classes.

    >>> top(np.array([[0.5, 0.3, 0.2], [0.5, 0.3, 0.2], [0.2, 0.3, 0.5]]), np.array([0, 2, 2]), 2)
    (0.6666666666666666, 0.75)
    """
    best = np.argsort(-posterior, axis=1, kind="stable")[:, :k]
    hit = (best == truth[:, None]).any(axis=1)
    count = np.bincount(truth, minlength=posterior.shape[1])
    hits = np.bincount(truth, weights=hit, minlength=posterior.shape[1])
    return float(hit.mean()), float((hits[count > 0] / count[count > 0]).mean())


def _table(found: Predictions) -> dict[str, Array]:
    assert found.posterior is not None
    return {
        "item": found.items,
        "label": found.classes[found.label],
        "confidence": found.posterior.max(axis=1),
        **{
            f"p:{name}": found.posterior[:, code]
            for code, name in enumerate(found.classes.tolist())
        },
    }
