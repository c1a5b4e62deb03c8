"""How far answers agree: consistency, uncertainty and Krippendorff's alpha.

A worker of skill s gives the right label with probability s, and every other one with
(1 - s) / (labels - 1).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from ...base.arrays import Floats
from ...base.probability import log_normalize
from ...metrics import krippendorff_alpha
from ..aggregation.base import TableError, coded, complete, in_order
from ..aggregation.classification import MajorityVote

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["alpha_krippendorff", "binary_distance", "consistency", "uncertainty"]


def consistency(
    answers: pd.DataFrame,
    workers_skills: pd.Series | None = None,
    aggregator: Any = None,
    by_task: bool = False,
) -> float | pd.Series:
    """Return the posterior of the aggregated labels under the skills: the mean, or by task.

    Labels and, unless given, skills are those of the aggregator, by default a majority vote.
    """
    aggregator = MajorityVote() if aggregator is None else aggregator
    aggregated = aggregator.fit_predict(answers)
    skill = _skills(answers, workers_skills, aggregator)
    annotations, names = coded(answers)
    weights = np.array([skill[worker] for worker in names.workers])
    part = annotations.part(0, annotations.n_items)
    with np.errstate(divide="ignore"):
        right, wrong = np.log(weights), np.log((1 - weights) / max(len(names.labels) - 1, 1))
    per_answer = np.where(
        np.arange(len(names.labels)) == part.label[:, None],
        right[part.annotator, None],
        wrong[part.annotator, None],
    )  # (answer, label)
    joint = np.add.reduceat(per_answer, part.index[:-1], axis=0)  # (task, label)
    possible = np.isfinite(joint).any(axis=1)
    posterior = np.zeros_like(joint)
    posterior[possible] = log_normalize(joint[possible])[1]
    code = {label: column for column, label in enumerate(names.labels)}
    columns = [code[aggregated[task]] for task in names.tasks]
    agreed = names.by_task(posterior[np.arange(len(columns)), columns])
    return agreed if by_task else float(agreed.mean())


def uncertainty(
    answers: pd.DataFrame,
    workers_skills: pd.Series | None = None,
    aggregator: Any = None,
    compute_by: str = "task",
    aggregate: bool = True,
) -> float | pd.Series:
    """Return the entropy of the labels of every task, or worker: the mean, or each.

    Workers without skills given, or found by an aggregator, all have skill 1.
    """
    if compute_by not in answers.columns:
        raise TableError(f"no column {compute_by!r} to compute by; it may be task or worker")
    whole = complete(answers)
    if workers_skills is None and aggregator is None:
        skill = np.ones(len(whole))
    else:
        if workers_skills is None:
            aggregator.fit(answers)
        skill_of = _skills(answers, workers_skills, aggregator)
        skill = np.array([skill_of[worker] for worker in whole["worker"]])
    labels = in_order(whole["label"].unique().tolist())
    code = whole["label"].map({label: column for column, label in enumerate(labels)})
    shares = np.where(
        np.arange(len(labels)) == code.to_numpy()[:, None],
        skill[:, None],
        (1 - skill[:, None]) / max(len(labels) - 1, 1),
    )
    by = answers.loc[whole.index, compute_by]
    sums = _frame(shares, by).groupby(by).sum()
    entropies = sums.apply(_entropy, axis=1, raw=True)
    return float(entropies.mean()) if aggregate else entropies


def binary_distance(label1: Any, label2: Any) -> float:
    """Return 0 for equal labels, otherwise 1."""
    return 0.0 if label1 == label2 else 1.0


def alpha_krippendorff(
    answers: pd.DataFrame, distance: Callable[[Any, Any], float] = binary_distance
) -> float:
    """Return Krippendorff's alpha for any distance of two labels; 1 if all labels are one.

    Tasks with one answer do not count.
    """
    annotations, names = coded(answers)
    if len(names.labels) == 1:
        return 1.0
    table = np.array(
        [
            [float(distance(label, other_label)) for other_label in names.labels]
            for label in names.labels
        ]
    )
    return krippendorff_alpha(annotations, scale=table)


def _skills(
    answers: pd.DataFrame, workers_skills: pd.Series | None, aggregator: Any
) -> dict[Any, float]:
    """Return the skill of every worker, as given or as the aggregator found it."""
    if workers_skills is None:
        workers_skills = getattr(aggregator, "skills_", None)
    if workers_skills is None:
        name = type(aggregator).__name__
        raise TableError(f"{name} estimates no skills; give workers_skills")
    skill_of = workers_skills.dropna().to_dict()
    missing = [worker for worker in answers["worker"].dropna().unique() if worker not in skill_of]
    if missing:
        raise TableError(f"no skill for {len(missing)} workers, the first is {missing[0]!r}")
    return skill_of


def _entropy(shares: Floats) -> float:
    """Return the entropy of shares that need not sum to one."""
    from scipy.stats import entropy

    return float(entropy(shares))


def _frame(values: Floats, by: pd.Series) -> pd.DataFrame:
    import pandas as pd

    return pd.DataFrame(values, index=by.index)
