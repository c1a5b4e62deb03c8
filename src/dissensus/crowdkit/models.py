"""Models of workers and tasks, as crowd-kit calls them."""

from __future__ import annotations

from dataclasses import dataclass
from types import NoneType
from typing import TYPE_CHECKING, Any, Literal, Self

import numpy as np

from .._probability import log_normalize, safe_log
from ..aggregation import Aggregator, Glad, Kos, Mace, MMsr, OneCoin
from ..aggregation import DawidSkene as OurDawidSkene
from ..errors import OptionError
from ..result import Aggregation
from ._classifier import Classifier
from ._table import Names, coded

if TYPE_CHECKING:
    import pandas as pd

# As crowd-kit's. Without it a cell that was once zero stays zero, and better ends are not found.
_FLOOR = 1e-10


@dataclass
class DawidSkene(Classifier):
    """A confusion matrix for every worker."""

    n_iter: int = 100
    tol: float = 1e-5
    initial_error_strategy: Literal["assign", "addition"] | None = None

    def _method(self) -> Aggregator:
        return OurDawidSkene(smoothing=_FLOOR, max_iter=self.n_iter, tol=self.tol)

    def fit(
        self,
        data: pd.DataFrame,
        true_labels: pd.Series | None = None,
        initial_error: pd.DataFrame | None = None,
    ) -> Self:
        """Fit to a table of task, worker and label.

        Error rates by worker and label that are known from before decide where the fit starts.
        """
        if self.initial_error_strategy not in (None, "assign"):
            raise OptionError(
                f"initial_error_strategy = {self.initial_error_strategy!r} is not supported; "
                "'assign' starts from initial_error"
            )
        if self.initial_error_strategy and initial_error is None:
            raise OptionError("initial_error_strategy needs the initial_error of fit")
        start = None if initial_error is None else _start_posterior(data, initial_error)
        return self._fit(data, true_labels=true_labels, start=start)

    def _keep(self, result: Aggregation, names: Names) -> None:
        import pandas as pd

        confusion = result.params.confusion  # (annotator, true class, given class)
        rows = pd.MultiIndex.from_product([names.workers, names.labels], names=["worker", "label"])
        table = confusion.swapaxes(1, 2).reshape(len(rows), -1)
        self.errors_ = pd.DataFrame(table, index=rows, columns=names.labels)
        self.priors_ = pd.Series(result.params.prior, index=names.labels, name="prior")
        self.loss_history_ = list(result.trace)


@dataclass
class OneCoinDawidSkene(Classifier):
    """One probability of being right for every worker."""

    n_iter: int = 100
    tol: float = 1e-5

    def _method(self) -> Aggregator:
        return OneCoin(max_iter=self.n_iter, tol=self.tol)

    def _keep(self, result: Aggregation, names: Names) -> None:
        import pandas as pd

        self.skills_ = names.by_worker(result.quality, "skill")
        self.priors_ = pd.Series(result.params.prior, index=names.labels, name="prior")
        self.loss_history_ = list(result.trace)


@dataclass
class GLAD(Classifier):
    """Abilities of workers and difficulties of tasks."""

    n_iter: int = 100
    tol: float = 1e-5
    silent: bool = True
    alphas_priors_mean: float | None = None
    betas_priors_mean: float | None = None

    def _method(self) -> Aggregator:
        means = {"mean_ability": "alphas_priors_mean", "mean_log_easiness": "betas_priors_mean"}
        given = {ours: getattr(self, theirs) for ours, theirs in means.items()}
        for name, value in given.items():
            if not isinstance(value, (int, float, NoneType)):
                raise OptionError(f"{means[name]} must be one number here, the same for all")
        chosen = {name: value for name, value in given.items() if value is not None}
        return Glad(max_iter=self.n_iter, tol=self.tol, **chosen)

    def _keep(self, result: Aggregation, names: Names) -> None:
        import pandas as pd

        self.alphas_ = names.by_worker(result.params.ability, "alpha")
        tasks = pd.Index(names.tasks, name="task")
        self.betas_ = pd.Series(result.params.log_easiness, index=tasks, name="beta")
        self.loss_history_ = list(result.trace)


@dataclass
class MACE(Classifier):
    """Workers who know the truth or spam."""

    n_restarts: int = 10
    n_iter: int = 50
    method: Literal["vb", "em"] = "vb"
    smoothing: float = 0.1
    alpha: float = 0.5
    beta: float = 0.5
    random_state: int = 0
    verbose: int = 0

    def _method(self) -> Aggregator:
        if self.alpha != self.beta:
            raise OptionError(
                f"alpha = {self.alpha} and beta = {self.beta}, but here they must be the same"
            )
        return Mace(
            known_prior=self.alpha,
            method=self.method,
            restarts=self.n_restarts,
            max_iter=self.n_iter,
            smoothing=self.smoothing,
        )

    def _keep(self, result: Aggregation, names: Names) -> None:
        self.spamming_ = names.by_worker(1 - result.params.competence, "spamming")


@dataclass
class KOS(Classifier):
    """Messages between workers and tasks; two labels only."""

    n_iter: int = 100
    random_state: int = 0

    def _method(self) -> Aggregator:
        return Kos(max_iter=self.n_iter, begin="random")


@dataclass
class MMSR(Classifier):
    """Skills from the agreements of pairs of workers, robust against a few who lie."""

    n_iter: int = 10_000
    tol: float = 1e-10
    random_state: int = 0

    def _method(self) -> Aggregator:
        return MMsr(max_iter=self.n_iter, tol=self.tol)

    def _keep(self, result: Aggregation, names: Names) -> None:
        self.skills_ = names.by_worker(result.params.weight, "skill")
        self.scores_ = self.probas_


def _start_posterior(data: pd.DataFrame, errors: pd.DataFrame) -> Any:
    """Return the posterior of tasks under error rates of workers: (task, label)."""
    annotations, names = coded(data)
    n_classes = annotations.n_classes
    given = np.zeros((annotations.n_annotators, n_classes, n_classes))  # (worker, given, true)
    label = {value: code for code, value in enumerate(names.labels)}
    worker = {value: code for code, value in enumerate(names.workers)}
    known = [value for value in errors.columns if value in label]
    columns = [label[value] for value in known]
    for (who, what), row in zip(errors.index, errors[known].to_numpy(), strict=True):
        if who in worker and what in label:
            given[worker[who], label[what], columns] = row
    given = (given + _FLOOR) / (given + _FLOOR).sum(axis=1, keepdims=True)  # unknown: uniform
    part = annotations.part(0, annotations.n_items)
    return log_normalize(part.labels @ safe_log(given).reshape(-1, n_classes))[1]
