"""crowd-kit's classes on our methods: change the import, keep the script.

    from dissensus.crowdkit import DawidSkene, MajorityVote

Input is a pandas table with the columns task, worker and label; labels come back as a Series by
task, beliefs as a table of tasks and labels, under the names that crowd-kit gives them. Values
keep their types. Settings have crowd-kit's names and defaults. Ties go to the first label in
sorted order, as there.

Where results differ from crowd-kit 1.4.2 it is for its errors: its MACE depends on how workers
and labels are called, restarts from one seed ten times and ignores `smoothing`; its Wawa,
ZeroBasedSkill and GoldMajorityVote fail with current scikit-learn; its Dawid-Skene counts the
prior once for every answer in its bound; its KOS fails where the votes of a task cancel out.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, Self

import numpy as np

from .aggregation import (
    Aggregator,
    Glad,
    GoldMajority,
    Kos,
    Mace,
    Majority,
    MMsr,
    OneCoin,
    Weighted,
    Zbs,
)
from .aggregation import (
    DawidSkene as _DawidSkene,
)
from .aggregation import (
    Wawa as _Wawa,
)
from .aggregation._em import logs, normalise
from .annotations import Annotations
from .errors import DataError
from .result import Aggregation

if TYPE_CHECKING:
    import pandas as pd

__all__ = [
    "GLAD",
    "KOS",
    "MACE",
    "MMSR",
    "DawidSkene",
    "GoldMajorityVote",
    "MajorityVote",
    "OneCoinDawidSkene",
    "Wawa",
    "ZeroBasedSkill",
]


@dataclass
class _Classifier(ABC):
    """What all of crowd-kit's classifiers have."""

    labels_: Any = field(init=False, repr=False, default=None)
    probas_: Any = field(init=False, repr=False, default=None)
    result_: Aggregation | None = field(init=False, repr=False, default=None)

    @abstractmethod
    def _method(self) -> Aggregator:
        """Return our method with the settings of theirs."""

    def _keep(self, result: Aggregation, names: _Names) -> None:  # noqa: B027
        """Keep what else the class promises after a fit."""

    def fit(self, data: pd.DataFrame) -> Self:
        """Fit to a table of task, worker and label."""
        return self._fit(data)

    def fit_predict(self, data: pd.DataFrame, *given: Any, **named: Any) -> pd.Series:
        """Return the label of every task."""
        return self.fit(data, *given, **named).labels_

    def fit_predict_proba(self, data: pd.DataFrame, *given: Any, **named: Any) -> pd.DataFrame:
        """Return the belief in every label for every task."""
        return self.fit(data, *given, **named).probas_

    def predict(self, data: pd.DataFrame) -> pd.Series:
        """Return the label of other tasks, by the same workers."""
        return self._judge(data)[0]

    def predict_proba(self, data: pd.DataFrame) -> pd.DataFrame:
        """Return the belief in every label for other tasks."""
        return self._judge(data)[1]

    def _fit(self, data: pd.DataFrame, method: Aggregator | None = None, **given: Any) -> Self:
        said, names = _coded(data)
        true_labels = given.pop("true_labels", None)
        if true_labels is not None:
            given["gold"] = names.gold(true_labels)
        result = (method or self._method()).fit(said, **given)
        self.result_, self._names = result, names
        self.labels_, self.probas_ = names.told(result)
        self._keep(result, names)
        return self

    def _judge(self, data: pd.DataFrame) -> tuple[Any, Any]:
        if self.result_ is None:
            raise DataError(f"this {type(self).__name__} is not fitted yet; call fit first")
        said, names = _coded(data, self._names.labels, self._names.workers)
        return names.told(self.result_.predict(said))


@dataclass
class MajorityVote(_Classifier):
    """The label with most votes, perhaps weighted by skills."""

    default_skill: float | None = None
    on_missing_skill: Literal["error", "ignore", "value"] = "error"
    skills_: Any = field(init=False, repr=False, default=None)

    def _method(self) -> Aggregator:
        return Majority(ties="first")

    def fit(self, data: pd.DataFrame, skills: pd.Series | None = None) -> Self:
        """Fit to a table of task, worker and label, with skills by worker if given."""
        if skills is None:
            return self._fit(data)
        unknown = ~data["worker"].isin(skills.index)
        if unknown.any() and self.on_missing_skill == "error":
            who = data.loc[unknown, "worker"].iloc[0]
            raise DataError(f"no skill for worker {who!r}; set on_missing_skill")
        if self.on_missing_skill == "ignore":
            data = data[~unknown]
        _, names = _coded(data)
        known = {
            str(code): float(skills[who])
            for code, who in enumerate(names.workers)
            if who in skills.index
        }
        return self._fit(data, Weighted.of(known, default=self.default_skill))

    def _keep(self, result: Aggregation, names: _Names) -> None:
        self.skills_ = names.by_worker(result.quality, "skill")


@dataclass
class GoldMajorityVote(_Classifier):
    """Votes weighted by accuracy on tasks whose label is known."""

    skills_: Any = field(init=False, repr=False, default=None)

    def _method(self) -> Aggregator:
        return GoldMajority()

    def fit(self, data: pd.DataFrame, true_labels: pd.Series) -> Self:  # type: ignore[override]
        """Fit to a table of task, worker and label, with known labels by task."""
        return self._fit(data, true_labels=true_labels)

    def _keep(self, result: Aggregation, names: _Names) -> None:
        self.skills_ = names.by_worker(result.quality, "skill")


@dataclass
class Wawa(_Classifier):
    """Votes weighted by agreement with the majority."""

    skills_: Any = field(init=False, repr=False, default=None)

    def _method(self) -> Aggregator:
        return _Wawa()

    def _keep(self, result: Aggregation, names: _Names) -> None:
        self.skills_ = names.by_worker(result.quality, "skill")


@dataclass
class ZeroBasedSkill(Wawa):
    """Votes weighted by skills that begin at chance and move towards agreement."""

    n_iter: int = 100
    lr_init: float = 1.0
    lr_steps_to_reduce: int = 20
    lr_reduce_factor: float = 0.5
    eps: float = 1e-5

    def _method(self) -> Aggregator:
        return Zbs(
            max_iter=self.n_iter,
            step=self.lr_init,
            every=self.lr_steps_to_reduce,
            shrink=self.lr_reduce_factor,
            above=self.eps,
        )


@dataclass
class DawidSkene(_Classifier):
    """A confusion matrix for every worker."""

    n_iter: int = 100
    tol: float = 1e-5
    initial_error_strategy: Literal["assign", "addition"] | None = None
    priors_: Any = field(init=False, repr=False, default=None)
    errors_: Any = field(init=False, repr=False, default=None)
    loss_history_: list[float] = field(init=False, repr=False, default_factory=list)

    def _method(self) -> Aggregator:
        return _DawidSkene(smoothing=0, max_iter=self.n_iter, tol=self.tol)

    def fit(
        self,
        data: pd.DataFrame,
        true_labels: pd.Series | None = None,
        initial_error: pd.DataFrame | None = None,
    ) -> Self:
        """Fit to a table of task, worker and label.

        Error rates by worker and label that are known from before decide where the fit starts.
        """
        start = None if initial_error is None else _believed(data, initial_error)
        return self._fit(data, true_labels=true_labels, start=start)

    def _keep(self, result: Aggregation, names: _Names) -> None:
        import pandas as pd

        confusion = result.params.confusion  # (annotator, true class, given class)
        rows = pd.MultiIndex.from_product([names.workers, names.labels], names=["worker", "label"])
        table = confusion.swapaxes(1, 2).reshape(len(rows), -1)
        self.errors_ = pd.DataFrame(table, index=rows, columns=names.labels)
        self.priors_ = pd.Series(result.params.prior, index=names.labels, name="prior")
        self.loss_history_ = list(result.trace)


@dataclass
class OneCoinDawidSkene(_Classifier):
    """One probability of being right for every worker."""

    n_iter: int = 100
    tol: float = 1e-5
    skills_: Any = field(init=False, repr=False, default=None)
    priors_: Any = field(init=False, repr=False, default=None)
    loss_history_: list[float] = field(init=False, repr=False, default_factory=list)

    def _method(self) -> Aggregator:
        return OneCoin(max_iter=self.n_iter, tol=self.tol)

    def _keep(self, result: Aggregation, names: _Names) -> None:
        import pandas as pd

        self.skills_ = names.by_worker(result.quality, "skill")
        self.priors_ = pd.Series(result.params.prior, index=names.labels, name="prior")
        self.loss_history_ = list(result.trace)


@dataclass
class GLAD(_Classifier):
    """Abilities of workers and difficulties of tasks."""

    n_iter: int = 100
    tol: float = 1e-5
    silent: bool = True
    alphas_priors_mean: float | None = None
    betas_priors_mean: float | None = None
    alphas_: Any = field(init=False, repr=False, default=None)
    betas_: Any = field(init=False, repr=False, default=None)
    loss_history_: list[float] = field(init=False, repr=False, default_factory=list)

    def _method(self) -> Aggregator:
        return Glad(
            max_iter=self.n_iter,
            tol=self.tol,
            mean_ability=1.0 if self.alphas_priors_mean is None else self.alphas_priors_mean,
            mean_log_easiness=1.0 if self.betas_priors_mean is None else self.betas_priors_mean,
        )

    def _keep(self, result: Aggregation, names: _Names) -> None:
        import pandas as pd

        self.alphas_ = names.by_worker(result.params.ability, "alpha")
        tasks = pd.Index(names.tasks, name="task")
        self.betas_ = pd.Series(result.params.log_easiness, index=tasks, name="beta")
        self.loss_history_ = list(result.trace)


@dataclass
class MACE(_Classifier):
    """Workers who know, or answer out of habit."""

    n_restarts: int = 10
    n_iter: int = 50
    method: Literal["vb", "em"] = "vb"
    smoothing: float = 0.1
    alpha: float = 0.5
    beta: float = 0.5
    random_state: int = 0
    verbose: int = 0
    spamming_: Any = field(init=False, repr=False, default=None)

    def _method(self) -> Aggregator:
        return Mace(
            method=self.method,
            restarts=self.n_restarts,
            max_iter=self.n_iter,
            smoothing=self.smoothing,
        )

    def fit(self, data: pd.DataFrame) -> Self:
        """Fit to a table of task, worker and label."""
        return self._fit(data, seed=self.random_state)

    def _keep(self, result: Aggregation, names: _Names) -> None:
        self.spamming_ = names.by_worker(1 - result.params.competence, "spamming")


@dataclass
class KOS(_Classifier):
    """Messages between workers and tasks; two labels only."""

    n_iter: int = 100
    random_state: int = 0

    def _method(self) -> Aggregator:
        return Kos(max_iter=self.n_iter, begin="random")

    def fit(self, data: pd.DataFrame) -> Self:
        """Fit to a table of task, worker and label."""
        return self._fit(data, seed=self.random_state)


@dataclass
class MMSR(_Classifier):
    """Skills from the agreements of pairs of workers, robust against a few who lie."""

    n_iter: int = 10_000
    tol: float = 1e-10
    random_state: int = 0
    skills_: Any = field(init=False, repr=False, default=None)
    scores_: Any = field(init=False, repr=False, default=None)

    def _method(self) -> Aggregator:
        return MMsr(max_iter=self.n_iter, tol=self.tol)

    def _keep(self, result: Aggregation, names: _Names) -> None:
        self.skills_ = names.by_worker(result.params.weight, "skill")
        self.scores_ = self.probas_


@dataclass
class _Names:
    """The values behind our codes, with the types they came with."""

    tasks: list[Any]
    workers: list[Any]
    labels: list[Any]

    def told(self, result: Aggregation) -> tuple[pd.Series, pd.DataFrame]:
        import pandas as pd

        tasks = pd.Index(self.tasks, name="task")
        chosen = [None if code < 0 else self.labels[code] for code in result.label.tolist()]
        columns = pd.Index(self.labels, name="label")
        return (
            pd.Series(chosen, index=tasks, name="agg_label"),
            pd.DataFrame(result.posterior, index=tasks, columns=columns),
        )

    def by_worker(self, values: Any, name: str) -> pd.Series:
        import pandas as pd

        return pd.Series(values, index=pd.Index(self.workers, name="worker"), name=name)

    def gold(self, true_labels: pd.Series) -> dict[str, str]:
        tasks = {task: str(code) for code, task in enumerate(self.tasks)}
        labels = {label: str(code) for code, label in enumerate(self.labels)}
        return {
            tasks[task]: labels[label]
            for task, label in true_labels.items()
            if task in tasks and label in labels
        }


def _coded(
    data: pd.DataFrame, labels: list[Any] | None = None, workers: list[Any] | None = None
) -> tuple[Annotations, _Names]:
    """Return the annotations under numbers, and the values behind the numbers."""
    missing = [name for name in ("task", "worker", "label") if name not in data.columns]
    if missing:
        raise DataError(f"no column {missing[0]!r}; crowd-kit's tables have task, worker and label")
    tasks = _sorted(data["task"].unique().tolist())
    labels = labels or _sorted(data["label"].unique().tolist())
    known = workers or []
    who = known + [one for one in _sorted(data["worker"].unique().tolist()) if one not in known]
    said = Annotations.from_codes(
        _places(data["task"], tasks),
        _places(data["worker"], who),
        _places(data["label"], labels),
        items=len(tasks),
        annotators=len(who),
        classes=len(labels),
    )
    return said, _Names(tasks, who, labels)


def _places(column: pd.Series, values: list[Any]) -> Any:
    place = {value: code for code, value in enumerate(values)}
    found = column.map(place)
    if found.isna().any():
        what = column[found.isna()].iloc[0]
        raise DataError(f"{column.name} {what!r} is not known from the fit")
    return found.to_numpy(dtype=np.int64)


def _sorted(values: list[Any]) -> list[Any]:
    try:
        return sorted(values)
    except TypeError:  # of several types
        return sorted(values, key=lambda value: (type(value).__name__, str(value)))


def _believed(data: pd.DataFrame, errors: pd.DataFrame) -> Any:
    """Return the belief about tasks under error rates of workers: (task, label)."""
    said, names = _coded(data)
    n_classes = said.n_classes
    given = np.full((said.n_annotators, n_classes, n_classes), 1 / n_classes)  # given, true
    label = {value: code for code, value in enumerate(names.labels)}
    worker = {value: code for code, value in enumerate(names.workers)}
    columns = [label[value] for value in errors.columns]
    for (who, what), row in zip(errors.index, errors.to_numpy(), strict=True):
        if who in worker and what in label:
            given[worker[who], label[what], columns] = row
    part = said.part(0, said.n_items)
    return normalise(part.said @ logs(given).reshape(-1, n_classes))[1]
