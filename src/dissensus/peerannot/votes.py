"""Votes, plain and weighted, as peerannot calls them."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

import numpy as np

from ..base.arrays import Array, Floats
from ..aggregation import Iwmv, Majority, Plantnet, TwoThirds
from ..aggregation import NaiveSoft as OurNaiveSoft
from ..formats.tools.folders import write_undecided
from .aggregation import AggregationModel

__all__ = ["IWMV", "MajorityVoting", "NaiveSoft", "PlantNet", "TwoThird", "Wawa"]


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
        given = self.annotations
        right = np.bincount(
            given.annotator, given.label == result.label[given.item], given.n_annotators
        )
        self.worker_score = right / np.maximum(given.labels_per_annotator, 1)

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
        **given: Any,
    ) -> None:
        super().__init__(answers, n_classes, **given)
        if AI == "ignored":
            for one in self.answers.values():
                one.pop("AI", None)
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
