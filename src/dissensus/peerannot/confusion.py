"""Models of workers and tasks, as peerannot calls them."""

from __future__ import annotations

import warnings
from typing import Any

from ..base.arrays import Array
from ..aggregation import DawidSkene as OurDawidSkene
from ..aggregation import Dswc, Glad, Wds
from ..formats.tools.folders import write_glad
from .aggregation import AggregationModel

__all__ = ["GLAD", "WDS", "DawidSkene", "DawidSkeneClust", "Dawid_Skene"]


class DawidSkene(AggregationModel):
    """A confusion matrix of every worker, by maximum likelihood.

    `pi` holds the matrices (worker, true, given) and `rho` the prevalence of classes.
    """

    def __init__(self, answers: Any, n_workers: int, n_classes: int, **given: Any) -> None:
        super().__init__(answers, n_classes, n_workers=n_workers, **given)

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

    def __init__(self, answers: Any, n_classes: int, *, n_workers: int, **given: Any) -> None:
        super().__init__(answers, n_workers, n_classes, **given)


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

    def __init__(self, answers: Any, n_classes: int, L: int = 2, **given: Any) -> None:
        super().__init__(answers, n_classes, **given)
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
