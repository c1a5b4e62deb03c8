"""Models of workers and tasks, as crowd-kit calls them.

Labels and posteriors are those after `n_iter` E-steps; parameters come from one more M-step, as in
crowd-kit. Without iterations, posteriors are the shares of votes that the models start from.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self

import numpy as np

from ...aggregation import DawidSkene as OurDawidSkene
from ...aggregation import Glad, Kos, Mace, Majority, MMsr, OneCoin
from ...aggregation.aggregation import ClassAggregation
from ...aggregation.classes import ClassContext, ClassMethod
from ...aggregation.em import EM
from ...answers.annotations import Annotations
from ...answers.gold import gold_codes
from ...base.arrays import Floats
from ...base.engine import Local
from ...errors import DataError, OptionError
from ...method import Fitted
from .base import BaseClassificationAggregator, Names, coded

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["GLAD", "KOS", "MACE", "MMSR", "DawidSkene", "OneCoinDawidSkene"]

# As crowd-kit's. Without it a cell that was once zero stays zero, and better ends are not found.
_FLOOR = 1e-10


@dataclass
class DawidSkene(BaseClassificationAggregator):
    """A confusion matrix for every worker.

    `errors_` has a row for every worker and given label, and a column for every true label. Errors
    known from before replace the first estimate ("assign"), or are counts that are added to those
    of the votes ("addition").
    """

    _fitted: ClassVar[tuple[str, ...]] = (
        *("labels_", "probas_", "priors_", "errors_"),
        "loss_history_",
    )

    n_iter: int = 100
    tol: float = 1e-5
    initial_error_strategy: Literal["assign", "addition"] | None = None

    def _method(self) -> EM[Any, Any]:
        return OurDawidSkene(smoothing=_FLOOR, max_iter=max(self.n_iter, 1), tol=self.tol)

    def fit(
        self,
        data: pd.DataFrame,
        true_labels: pd.Series | None = None,
        initial_error: pd.DataFrame | None = None,
    ) -> Self:
        """Fit to a table of task, worker and label, with known labels and known errors."""
        if self.initial_error_strategy not in (None, "assign", "addition"):
            setting = f"initial_error_strategy = {self.initial_error_strategy!r}"
            raise OptionError(f"{setting}, but it must be assign or addition")
        if initial_error is None or len(data) == 0:
            return self._fit(data, true_labels)
        if self.initial_error_strategy is None:
            raise OptionError("initial_error needs initial_error_strategy: assign or addition")
        annotations, names = coded(data)
        gold = None if true_labels is None else names.gold(true_labels)
        params, fit = self._first(annotations, names, gold, initial_error)
        if self._has_no_iterations():
            self._set(Majority(ties="first").fit(annotations, gold=gold), annotations, names)
            self.errors_ = names.errors(params.confusion)
            return self
        return self._set(self._method().infer(fit), annotations, names)

    def _first(
        self,
        annotations: Annotations,
        names: Names,
        gold: dict[str, str] | None,
        errors: pd.DataFrame,
    ) -> tuple[Any, ClassContext]:
        """Return parameters that known errors replace or add to, and a fit that begins there."""
        method = self._method()
        codes = gold_codes(annotations, gold)
        part = annotations.part(0, annotations.n_items, codes)
        votes = Majority(ties="first").fit(annotations, gold=gold).posterior
        counts = method.counts(part, votes)
        given_true = _known_counts(errors, names)
        if self.initial_error_strategy == "addition":
            given_true = given_true + counts.given_true
        else:
            _check_errors(errors, annotations, names)
        params = method.update(counts._replace(given_true=given_true), None)
        objective = method.e_step(part, params).evidence + method.log_prior(params)
        begin = _Begin(Fitted(params, (objective,), converged=False))
        return params, ClassContext(
            answers=annotations, parts=[part], gold=codes, engine=Local(), checkpoints=begin
        )

    def _keep(self, result: ClassAggregation, annotations: Annotations, names: Names) -> None:
        method = self._method()
        params = _next_params(method, annotations, result.posterior)
        confusion = method.confusion(params)
        assert confusion is not None
        self.errors_ = names.errors(confusion)
        self.priors_ = names.by_label(params.prior, "prior")
        self.loss_history_ = [value / len(annotations) for value in result.trace]


@dataclass
class OneCoinDawidSkene(DawidSkene):
    """One probability of being right for every worker."""

    _fitted: ClassVar[tuple[str, ...]] = (*DawidSkene._fitted, "skills_")

    def _method(self) -> EM[Any, Any]:
        return OneCoin(strength=0.0, max_iter=max(self.n_iter, 1), tol=self.tol)

    def fit(self, data: pd.DataFrame) -> Self:  # type: ignore[override]
        """Fit to a table of task, worker and label."""
        if self.initial_error_strategy is not None:
            raise OptionError("one coin has no initial errors; leave initial_error_strategy out")
        return self._fit(data)

    def _keep(self, result: ClassAggregation, annotations: Annotations, names: Names) -> None:
        super()._keep(result, annotations, names)
        params = _next_params(self._method(), annotations, result.posterior)
        self.skills_ = names.by_worker(params.right, "skill")


@dataclass
class GLAD(BaseClassificationAggregator):
    """Abilities of workers and difficulties of tasks."""

    _fitted: ClassVar[tuple[str, ...]] = (
        *("labels_", "probas_", "alphas_", "betas_"),
        "loss_history_",
    )

    n_iter: int = 100
    tol: float = 1e-5
    silent: bool = True
    labels_priors: pd.Series | None = None
    alphas_priors_mean: pd.Series | float | None = None
    betas_priors_mean: pd.Series | float | None = None
    m_step_max_iter: int = 25
    m_step_tol: float = 1e-2

    def _method(self) -> ClassMethod:
        if (self.m_step_max_iter, self.m_step_tol) != (25, 1e-2):
            raise OptionError(
                "the M-step takes Newton steps here; leave out m_step_max_iter and m_step_tol"
            )
        if self.labels_priors is not None and np.ptp(np.asarray(self.labels_priors, float)) > 0:
            raise OptionError("labels_priors must be the same for all labels here")
        return Glad(
            max_iter=self.n_iter + 1,
            tol=self.tol,
            mean_ability=_one_number("alphas_priors_mean", self.alphas_priors_mean),
            mean_log_easiness=_one_number("betas_priors_mean", self.betas_priors_mean),
        )

    def _has_no_iterations(self) -> bool:
        super()._has_no_iterations()
        return False  # its first E-step is before the first iteration

    def _keep(self, result: ClassAggregation, _annotations: Annotations, names: Names) -> None:
        self.alphas_ = names.by_worker(result.params.ability, "alpha")
        self.betas_ = names.by_task(result.params.log_easiness, "beta")
        self.loss_history_ = list(result.trace[1:])


@dataclass
class MACE(BaseClassificationAggregator):
    """Workers who know the truth or spam.

    Rows of `spamming_` (that a worker spams, or knows) and `thetas_` (the labels of a worker who
    spams) are workers as they first appear in the table, columns of `thetas_` labels likewise.
    """

    _fitted: ClassVar[tuple[str, ...]] = ("labels_", "probas_", "spamming_", "thetas_")

    n_restarts: int = 10
    n_iter: int = 50
    method: Literal["vb", "em"] = "vb"
    smoothing: float = 0.1
    default_noise: float = 0.5
    alpha: float = 0.5
    beta: float = 0.5
    random_state: int = 0
    verbose: int = 0

    def _method(self) -> Mace:
        if self.default_noise != 0.5:
            raise OptionError("restarts begin with votes and noise here; leave out default_noise")
        return Mace(
            known_prior=self.beta,
            spammed_prior=self.alpha,
            method=self.method,
            restarts=self.n_restarts,
            max_iter=max(self.n_iter, 1),
            smoothing=self.smoothing,
        )

    def _keep(self, result: ClassAggregation, annotations: Annotations, names: Names) -> None:  # noqa: ARG002
        params = result.params or _next_params(self._method(), annotations, result.posterior)
        self.spamming_: Floats = np.stack([1 - params.competence, params.competence], axis=1)
        self.thetas_: Floats = params.strategy

    def fit(self, data: pd.DataFrame) -> Self:
        """Fit to a table of task, worker and label."""
        self._fit(data)
        if len(self.labels_):
            workers = {worker: row for row, worker in enumerate(self._names.workers)}
            labels = {label: column for column, label in enumerate(self._names.labels)}
            rows = [
                workers[worker] for worker in data["worker"].dropna().unique() if worker in workers
            ]
            columns = [
                labels[label] for label in data["label"].dropna().unique() if label in labels
            ]
            self.spamming_ = self.spamming_[rows]
            self.thetas_ = self.thetas_[rows][:, columns]
        return self


@dataclass
class KOS(BaseClassificationAggregator):
    """Messages between workers and tasks; two labels only."""

    n_iter: int = 100
    random_state: int = 0

    def _method(self) -> ClassMethod:
        return Kos(max_iter=self.n_iter, begin="random")

    def _fit_nothing(self) -> Self:
        super()._fit_nothing()
        self.labels_ = self.labels_.astype(object)  # as theirs
        return self


@dataclass
class MMSR(BaseClassificationAggregator):
    """Skills from the agreements of pairs of workers, robust against a few who lie.

    `scores_` are sums of skills for a label, divided by that for all labels of the task. With few
    answers, skills depend on `random_state`, as in crowd-kit.
    """

    _fitted: ClassVar[tuple[str, ...]] = ("labels_", "probas_", "skills_", "scores_")

    n_iter: int = 10_000
    tol: float = 1e-10
    random_state: int = 0

    def _method(self) -> ClassMethod:
        return MMsr(max_iter=self.n_iter, tol=self.tol, begin="random")

    def fit_predict_score(self, data: pd.DataFrame) -> pd.DataFrame:
        """Return the score of every task and label."""
        return self.fit(data).scores_

    def predict_score(self, data: pd.DataFrame) -> pd.DataFrame:
        """Return the score of every label of other tasks, by the same workers."""
        if not hasattr(self, "skills_"):
            raise DataError("this MMSR is not fitted yet; call fit first")
        annotations, names = coded(data, self._names.labels, self._names.workers)
        skill = self.skills_.reindex(names.workers, fill_value=self.skills_.mean())
        return _scores(annotations, names, skill.to_numpy())

    def _keep(self, result: ClassAggregation, annotations: Annotations, names: Names) -> None:
        plain = np.ones(annotations.n_annotators)  # without iterations
        weight = plain if result.params is None else result.params.weight
        self.skills_ = names.by_worker(weight, "skill")
        self.scores_ = _scores(annotations, names, weight)


@dataclass(frozen=True)
class _Begin:
    """Checkpoints of a fit that begins with given parameters, and keeps none."""

    fitted: Fitted

    def load(self, _kind: type | None, _attempt: int) -> Fitted:
        return self.fitted

    def save(self, _fitted: Fitted, _attempt: int) -> None:
        pass


def _next_params(method: EM[Any, Any], annotations: Annotations, posterior: Floats) -> Any:
    """Return the parameters that an M-step finds under a posterior."""
    return method.update(method.counts(annotations.part(0, annotations.n_items), posterior), None)


def _scores(annotations: Annotations, names: Names, skill: Floats) -> pd.DataFrame:
    """Return the share of each label in the skills of a task's workers, which may be negative."""
    part = annotations.part(0, annotations.n_items)
    sums = part.votes(skill[part.annotator])  # (task, label)
    total = np.abs(sums.sum(axis=1, keepdims=True))
    return names.by_task_and_label(sums / np.where(total == 0, 1, total))


def _known_counts(errors: pd.DataFrame, names: Names) -> Floats:
    """Return a table of errors under our codes: (worker and given label, true label)."""
    if list(errors.index.names) != ["worker", "label"]:
        index_names = ", ".join(map(str, errors.index.names))
        raise DataError(f"the index of initial_error is {index_names}; it must be worker, label")
    label_code = {value: code for code, value in enumerate(names.labels)}
    worker_code = {value: code for code, value in enumerate(names.workers)}
    counts = np.zeros((len(worker_code), len(label_code), len(label_code)))
    true_labels = [value for value in errors.columns if value in label_code]
    columns = [label_code[value] for value in true_labels]
    for (worker, label), row in zip(errors.index, errors[true_labels].to_numpy(float), strict=True):
        if worker in worker_code and label in label_code:
            counts[worker_code[worker], label_code[label], columns] = row
    return counts.reshape(-1, len(label_code))


def _check_errors(errors: pd.DataFrame, annotations: Annotations, names: Names) -> None:
    """Refuse errors that cannot replace an estimate: incomplete, or no distributions."""
    pairs = zip(annotations.annotator.tolist(), annotations.label.tolist(), strict=True)
    known_pairs = set(errors.index)
    for worker_name, label_name in {
        (names.workers[a], names.labels[g]) for a, g in set(pairs)
    } - known_pairs:
        raise DataError(
            f"initial_error has no row for worker {worker_name!r} and label {label_name!r}"
        )
    sums = errors[[value for value in errors.columns if value in set(names.labels)]]
    sums = sums.groupby("worker", sort=False).sum()
    if (errors.to_numpy(float) <= 1).all() and not np.allclose(sums, 1):
        worker = sums.index[(~np.isclose(sums, 1)).any(axis=1)][0]
        raise DataError(
            "The sum of each worker's error matrix in initial_error should be 1.0 "
            f"for every true label, or counts above; that of {worker!r} is not"
        )


def _one_number(name: str, value: Any) -> float:
    """Return the mean of a prior, 1 by default; refuse different ones."""
    if value is None:
        return 1.0
    values = np.unique(np.asarray(value, dtype=float))
    if len(values) != 1:
        raise OptionError(f"{name} must be one number here, the same for all")
    return float(values[0])
