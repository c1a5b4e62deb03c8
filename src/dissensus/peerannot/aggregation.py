"""peerannot's models that need no network, on our methods.

`CrowdModel` holds the answers of workers to tasks. Below it are votes and models of workers and
tasks, which are fitted by one of our methods, and scores of tasks, workers and the crowd. Files are
written where peerannot writes them.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Mapping
from functools import cached_property
from numbers import Integral
from pathlib import Path
from typing import Any, ClassVar, Literal

import numpy as np

from ..aggregation import DawidSkene as OurDawidSkene
from ..aggregation import Dswc, Glad, Iwmv, Majority, Plantnet, TwoThirds, Wds, as_method
from ..aggregation import NaiveSoft as OurNaiveSoft
from ..aggregation.aggregation import ClassAggregation
from ..aggregation.classes import ClassMethod
from ..answers.annotations import Annotations
from ..base.arrays import Array, Floats
from ..base.names import code, text
from ..errors import MethodError
from ..formats.side_tables import read_removed
from ..formats.tools.peerannot import (
    from_answers,
    read_matrices,
    write_glad,
    write_score,
    write_undecided,
)
from ..quality.scores import ScoreContext, Scored, score

__all__ = [
    "GLAD",
    "IWMV",
    "WDS",
    "CrowdModel",
    "DawidSkene",
    "DawidSkeneClust",
    "Dawid_Skene",
    "Entropy",
    "Krippendorff_Alpha",
    "MajorityVoting",
    "NaiveSoft",
    "PlantNet",
    "Spam_Score",
    "Trace_confusion",
    "TwoThird",
    "Wawa",
]


class CrowdModel:
    """Answers of workers to tasks; a strategy of your own adds `get_probas` and `get_answers`.

    Parameters
    ----------
    answers
        `{task: {worker: label}}`.
    path_remove
        A file whose rows end with a task to leave out, as `too_hard.txt`.

    Examples
    --------
    >>> CrowdModel({"10": {"0": 1}, "9": {"0": 0, "2": 1}}).answers
    {9: {0: 0, 2: 1}, 10: {0: 1}}
    """

    n_classes: int | None = None
    n_workers: int | None = None

    def __init__(
        self, answers: Mapping[Any, Mapping[Any, Any]], path_remove: str | Path | None = None
    ) -> None:
        by_name = {text(task): labels for task, labels in answers.items()}
        removed = read_removed(path_remove) if path_remove else ()
        self.answers: dict[Any, dict[Any, Any]] = {
            _number(task): {
                _number(text(worker)): int(label) if isinstance(label, Integral) else label
                for worker, label in by_name[task].items()
            }
            for task in code(list(by_name))[1].tolist()
            if task not in removed
        }
        self.n_task = len(self.answers)

    @cached_property
    def annotations(self) -> Annotations:
        """The answers as annotations, in the order of tasks."""
        counts = {"n_annotators": self.n_workers, "n_classes": self.n_classes}
        if not all(
            isinstance(label, int) for labels in self.answers.values() for label in labels.values()
        ):
            del counts["n_classes"]  # classes have names
        return from_answers(self.answers, **counts)


def _number(name: str) -> Any:
    return int(name) if name.isascii() and name.isdigit() else name


class AggregationModel(CrowdModel):
    """An aggregation by one of our methods; `result` is what it returned.

    Parameters
    ----------
    answers
        `{task: {worker: label}}`.
    n_classes
        Number of classes; larger labels add classes.
    n_workers
        Number of workers; by default those with answers.
    dataset
        A folder for the files that peerannot writes under `identification/`.
    path_remove
        A file with tasks to leave out.
    """

    only_hard = False  # whether peerannot has no soft labels, and says so

    def __init__(
        self,
        answers: Any,
        n_classes: int = 2,
        *,
        n_workers: int | None = None,
        dataset: str | Path | None = None,
        path_remove: str | Path | None = None,
        **_unused: Any,
    ) -> None:
        for name, count in {"n_classes": n_classes, "n_workers": n_workers}.items():
            _check_count(type(self).__name__, name, count)
        super().__init__(answers, path_remove)
        self.n_classes, self.dataset = int(n_classes), dataset
        self.n_workers = None if n_workers is None else int(n_workers)
        self._result: ClassAggregation | None = None

    @property
    def result(self) -> ClassAggregation:
        """Our result."""
        if self._result is None:
            raise MethodError(f"this {type(self).__name__} has not run yet; call run() first")
        return self._result

    def fit(self, method: str | ClassMethod) -> ClassAggregation:
        """Fit one of our methods, and return its result."""
        self._result = as_method(method).fit(self.annotations)
        return self._result

    def get_probas(self) -> Floats | Array:
        """Return soft labels, (task, class); hard labels where peerannot has no others."""
        if self.only_hard:
            warnings.warn(f"{type(self).__name__} only returns hard labels", stacklevel=2)
            return self.get_answers()
        return self.result.posterior

    def get_answers(self) -> Array:
        """Return the label of every task; -1 where there is none."""
        classes = self.annotations.classes
        if classes.tolist() == [str(number) for number in range(len(classes))]:
            return self.result.label
        return np.append(classes.astype(object), -1)[self.result.label]


def _check_count(model: str, name: str, count: int | None) -> None:
    """Fail unless a count is at least 1; with pydantic's error where the script uses pydantic."""
    if count is None or count >= 1:
        return
    if "pydantic" in sys.modules:
        error: Any = sys.modules["pydantic"].ValidationError
        line = {"type": "greater_than_equal", "loc": (name,), "input": count, "ctx": {"ge": 1}}
        raise error.from_exception_data(model, [line])
    raise MethodError(f"{name} = {count}, but it must be at least 1")


class DawidSkene(AggregationModel):
    """A confusion matrix of every worker, by maximum likelihood.

    `pi` holds the matrices (worker, true, given) and `rho` the prevalence of classes.
    """

    def __init__(self, answers: Any, n_workers: int, n_classes: int, **further: Any) -> None:
        super().__init__(answers, n_classes, n_workers=n_workers, **further)

    def run(
        self, epsilon: float = 1e-6, maxiter: int = 50, **_unused: Any
    ) -> tuple[list[float], int]:
        """Fit, and return the log-likelihood after every iteration and their number.

        It stops where the log-likelihood changes by about `epsilon`.
        """
        tol = epsilon / max(len(self.annotations), 1)  # ours is relative
        result = self.fit(OurDawidSkene(smoothing=0, tol=tol, max_iter=maxiter))
        self.pi, self.rho = result.params.confusion, result.params.prior
        self.T, self.c = result.posterior, len(result.trace)
        if not result.converged:
            warnings.warn(
                f"{type(self).__name__} did not converge in {self.c} iterations",
                RuntimeWarning,
                stacklevel=2,
            )
        return list(result.trace), self.c


class Dawid_Skene(DawidSkene):
    """The same with its former order of arguments."""

    def __init__(self, answers: Any, n_classes: int, *, n_workers: int, **further: Any) -> None:
        super().__init__(answers, n_workers, n_classes, **further)


class WDS(AggregationModel):
    """Votes weighted by the diagonals of Dawid-Skene's confusion matrices."""

    def run(self, **_unused: Any) -> None:
        """Fit."""
        self.pi = self.fit(Wds(smoothing=0, tol=0, max_iter=50)).params.confusion


class DawidSkeneClust(AggregationModel):
    """A confusion matrix of every cluster of workers.

    Parameters
    ----------
    answers, n_classes
        As for all models.
    L
        Number of clusters.
    """

    def __init__(self, answers: Any, n_classes: int, L: int = 2, **further: Any) -> None:
        super().__init__(answers, n_classes, **further)
        self.L = L

    def run(self, **_unused: Any) -> tuple[Array, list[Array], int]:
        """Fit; return hard labels, matrices of workers and prevalence, number of iterations."""
        result = self.fit(Dswc(L=self.L))
        cluster = result.params.member.argmax(axis=1)
        self.pi, self.rho = result.params.cluster_confusion[cluster], result.params.prior
        self.probas, self.y_hat, self.c = result.posterior, result.label, len(result.trace)
        return self.y_hat, [self.pi, self.rho], self.c


class GLAD(AggregationModel):
    """Abilities of workers, `alpha`, and log easinesses of tasks, `beta`.

    With `dataset`, both are written to `identification/glad/`.
    """

    def run(self, epsilon: float = 1e-5, maxiter: int = 50, **_unused: Any) -> None:
        """Fit."""
        # There, iterations are counted after the first M-step, and the last is not counted.
        params = self.fit(Glad(solver="cg", tol=epsilon, max_iter=maxiter + 2)).params
        self.alpha, self.beta = params.ability, params.log_easiness
        if self.dataset:
            write_glad(self.dataset, self.alpha, self.beta)


class _ScoreModel(CrowdModel):
    """A score of ours; `values` holds it after `run`."""

    name: ClassVar[str]

    def __init__(
        self,
        answers: Any,
        *,
        n_classes: int | None = None,
        n_workers: int | None = None,
        matrix_file: str | Path | None = None,
        **_unused: Any,
    ) -> None:
        super().__init__(answers)
        self.n_classes, self.n_workers = n_classes, n_workers
        self.matrices = read_matrices(matrix_file) if matrix_file else None

    def run(self, path: str | Path) -> None:
        """Write the score below `path`, in its file under `identification/`."""
        context = ScoreContext(self.annotations, matrices=self.matrices, rounds=50)
        scored: Scored = score(context, self.name)
        self.values = scored.array
        write_score(path, str(scored.score.file), self.values)


class Entropy(_ScoreModel):
    """Entropy of the votes on every task: `entropies.npy`."""

    name = "entropy"


class Spam_Score(_ScoreModel):
    """How far every worker is from a spammer, by Dawid-Skene's matrices or those of a file."""

    name = "spam_score"


class Trace_confusion(_ScoreModel):
    """Trace of every worker's confusion matrix: `traces_confusion.npy`."""

    name = "trace"


class Krippendorff_Alpha(_ScoreModel):
    """Agreement of all workers: `krippendorff_alpha.npy`."""

    name = "krippendorff_alpha"


class MajorityVoting(AggregationModel):
    """The label with most votes; there are no soft labels.

    >>> MajorityVoting({0: {0: 1, 1: 1, 2: 0}, 1: {0: 0}}).get_answers()
    array([1, 0])
    """

    def get_answers(self) -> Array:
        """Return the label of every task."""
        self.fit(Majority())
        return super().get_answers()

    def get_probas(self) -> Array:
        """Return hard labels."""
        return self.get_answers()


class NaiveSoft(AggregationModel):
    """The share of votes of every label."""

    def get_probas(self) -> Floats:
        """Return the shares of votes: (task, class)."""
        return self.fit(OurNaiveSoft()).posterior

    def get_answers(self) -> Array:
        """Return the label of every task."""
        self.get_probas()
        return super().get_answers()


class TwoThird(AggregationModel):
    """The label with two thirds of the votes, and of two at least."""

    only_hard = True

    def get_answers(self) -> Array:
        """Return the label of every task, -1 where there is none; write `too_hard.txt`."""
        result = self.fit(TwoThirds())
        if self.dataset:
            write_undecided(self.dataset, "twothird", result)
        return super().get_answers()


class IWMV(AggregationModel):
    """Votes weighted by accuracy against the last vote, again and again; hard labels.

    `worker_score` holds the accuracies against the last vote.
    """

    def run(self, nb_iter: int = 10, **_unused: Any) -> None:
        """Vote with weights `nb_iter` times."""
        result = self.fit(Iwmv(weights="accuracy", max_iter=nb_iter))
        annotations = self.annotations
        right = np.bincount(
            annotations.annotator,
            annotations.label == result.label[annotations.item],
            annotations.n_annotators,
        )
        self.worker_score = right / np.maximum(annotations.labels_per_annotator, 1)

    def get_probas(self) -> Array:
        """Return hard labels."""
        return self.get_answers()


class Wawa(IWMV):
    """Votes weighted by accuracy against the majority."""

    only_hard = True

    def run(self, **_unused: Any) -> None:  # type: ignore[override]
        """Vote with weights once."""
        super().run(1)

    get_probas = AggregationModel.get_probas


class PlantNet(AggregationModel):
    """Votes weighted by the number of classes that workers know; hard labels.

    Parameters
    ----------
    answers, n_classes
        As for all models; the answers of a model are those of the worker `AI`.
    AI
        Its role: ignored, worker, fixed, invalidating or confident.
    parrots
        Not used.
    alpha, beta, theta_conf, theta_acc, taxa_obs_weight, taxa_votes_weight
        As in our `Plantnet`.
    AIweight
        The weight of the model, where it is fixed.
    authors
        A file with the author of every task, one on each line.
    scores
        A file with the model's score of every task, as JSON.
    threshold_scores
        Least score of a confident answer.
    output_unvalidated
        Whether tasks that are not valid get a label too.
    """

    only_hard = True

    def __init__(
        self,
        answers: Any,
        n_classes: int,
        AI: Literal["ignored", "worker", "fixed", "invalidating", "confident"] = "ignored",
        parrots: str = "ignored",  # noqa: ARG002
        alpha: float = 0.5,
        beta: float = 0.2,
        theta_conf: float = 2,
        theta_acc: float = 0.7,
        taxa_obs_weight: float = 1,
        taxa_votes_weight: float = 0.1,
        AIweight: float = 1,
        authors: str | Path | None = None,
        scores: str | Path | None = None,
        threshold_scores: float | None = None,
        *,
        output_unvalidated: bool = False,
        **further: Any,
    ) -> None:
        super().__init__(answers, n_classes, **further)
        if AI == "ignored":
            for labels in self.answers.values():
                labels.pop("AI", None)
        self._settings: dict[str, Any] = {
            "alpha": alpha,
            "beta": beta,
            "theta_conf": theta_conf,
            "theta_acc": theta_acc,
            "taxa_obs_weight": taxa_obs_weight,
            "taxa_votes_weight": taxa_votes_weight,
            "ai": AI,
            "ai_weight": AIweight,
            "authors": str(authors) if authors else None,
            "scores": str(scores) if scores else None,
            "output_unvalidated": output_unvalidated,
        }
        if threshold_scores is not None:
            self._settings["threshold_scores"] = threshold_scores

    def run(self, maxiter: int = 100, epsilon: float = 1e-5) -> None:
        """Update weights and labels in turns; without an iteration, all weights are equal."""
        settings = dict(self._settings)
        if maxiter == 0:
            settings["alpha"] = settings["beta"]
        params = self.fit(Plantnet(**settings, max_iter=max(maxiter, 1), tol=epsilon)).params
        self.weights = self._by_worker(params.weight)
        self.n_j = self._by_worker(params.experience)
        self.conf, self.acc, self.valid = params.confidence, params.share, params.valid

    def save_too_hard(self) -> None:
        """Write the tasks that are not valid to `too_hard.txt`, if there is a `dataset`."""
        if self.dataset:
            write_undecided(self.dataset, "plantnet", self.result)

    def _by_worker(self, values: Floats) -> Floats:
        """Return the values of workers, without the model's."""
        return values[self.annotations.annotators != "AI"]
