"""Labels from votes and from models, under crowd-kit's module path.

Models are in `models`; here are votes, plain and weighted, as crowd-kit calls them. Skills are
shares of agreement, as in crowd-kit: with the vote, whose ties go to the first label in sorted
order, or with known labels. Where skills weigh votes, workers without one count as the mean.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self

import numpy as np

from ...aggregation import Majority, Weighted
from ...aggregation.aggregation import ClassAggregation
from ...aggregation.classes import ClassMethod
from ...answers.annotations import Annotations
from ...base.arrays import Floats, Integers
from ...base.probability import most_probable, normalize
from ...errors import DataError, OptionError
from .base import BaseClassificationAggregator, Names, coded, complete
from .models import GLAD, KOS, MACE, MMSR, DawidSkene, OneCoinDawidSkene
from .utils import get_accuracy

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


_SETTLED = 1e-12


@dataclass
class MajorityVote(BaseClassificationAggregator):
    """The label with most votes, perhaps weighted by skills."""

    _fitted: ClassVar[tuple[str, ...]] = ("labels_", "probas_", "skills_")

    default_skill: float | None = None
    on_missing_skill: Literal["error", "ignore", "value"] = "error"

    def _method(self) -> ClassMethod:
        return Majority(ties="first")

    def fit(self, data: pd.DataFrame, skills: pd.Series | None = None) -> Self:
        """Fit to a table of task, worker and label, with skills by worker if given."""
        if skills is None:
            return self._fit(data)
        rule = self.on_missing_skill, self.default_skill
        data = answers_that_count(complete(data), skills, *rule)
        if data.empty:
            return self._fit_nothing()
        annotations, names = coded(data)
        weighted = Weighted(skills=_by_code(skills, names), default=self.default_skill)
        return self._set(weighted.fit(annotations), annotations, names)

    def _keep(self, result: ClassAggregation, annotations: Annotations, names: Names) -> None:
        self.skills_ = names.by_worker(_agreement(annotations, result.label), "skill")


def answers_that_count(
    data: pd.DataFrame, skills: pd.Series, on_missing_skill: str, default_skill: float | None
) -> pd.DataFrame:
    """Return the answers of workers with a skill, as `on_missing_skill` has it."""
    choices = ("error", "ignore", "value")
    if on_missing_skill not in choices:
        setting = f"on_missing_skill = {on_missing_skill!r}"
        raise OptionError(f"{setting}, but it must be {' or '.join(choices)}")
    if (on_missing_skill == "value") != (default_skill is not None):
        raise OptionError("default_skill and on_missing_skill='value' need each other")
    unknown = ~data["worker"].isin(skills.dropna().index)
    if not unknown.any() or on_missing_skill == "value":
        return data
    if on_missing_skill == "error":
        worker = data.loc[unknown, "worker"].iloc[0]
        raise DataError(f"no skill for worker {worker!r}; set on_missing_skill")
    lost = set(data["task"]) - set(data.loc[~unknown, "task"])
    if lost:
        raise DataError(f"{len(lost)} tasks have no worker with a skill; set default_skill")
    return data[~unknown]


@dataclass
class _SkillVote(BaseClassificationAggregator):
    """A vote weighted by skills that are learned first."""

    _fitted: ClassVar[tuple[str, ...]] = ("labels_", "probas_", "skills_")

    def _method(self) -> ClassMethod:
        return Weighted(skills=_by_code(self.skills_, self._names))

    def _vote(self, annotations: Annotations, names: Names) -> Self:
        self._names = names
        return self._set(self._method().fit(annotations), annotations, names)

    def predict(self, data: pd.DataFrame) -> pd.Series:
        """Return the label of these tasks, by the same workers."""
        return self._apply(data).labels_

    def predict_proba(self, data: pd.DataFrame) -> pd.DataFrame:
        """Return the share of skills for every label of these tasks."""
        return self._apply(data).probas_

    def _apply(self, data: pd.DataFrame) -> Self:
        if not hasattr(self, "skills_"):
            raise DataError(f"this {type(self).__name__} is not fitted yet; call fit first")
        data = complete(data)
        return self._fit_nothing() if data.empty else self._vote(*coded(data))


@dataclass
class GoldMajorityVote(_SkillVote):
    """Votes weighted by accuracy on tasks whose label is known."""

    def fit(self, data: pd.DataFrame, true_labels: pd.Series) -> Self:  # type: ignore[override]
        """Fit to a table of task, worker and label, with known labels by task.

        A task may have several known labels.
        """
        data = complete(data)
        if data.empty:
            return self._fit_nothing()
        skills: Any = get_accuracy(data, true_labels, by="worker")
        if skills.empty:
            raise DataError("no answer is about a task with a known label")
        self.skills_ = skills.rename("skill")
        return self._vote(*coded(data))


@dataclass
class Wawa(_SkillVote):
    """Votes weighted by agreement with the majority."""

    def fit(self, data: pd.DataFrame) -> Self:
        """Fit to a table of task, worker and label."""
        data = complete(data)
        if data.empty:
            return self._fit_nothing()
        annotations, names = coded(data)
        self.skills_ = names.by_worker(self._skills(annotations), "skill")
        return self._vote(annotations, names)

    def _skills(self, annotations: Annotations) -> Floats:
        """Return the skill of every worker."""
        return _agreement(annotations, _vote(annotations, np.ones(annotations.n_annotators)))


@dataclass
class ZeroBasedSkill(Wawa):
    """Votes weighted by skills that start at chance level and move towards agreement."""

    n_iter: int = 100
    lr_init: float = 1.0
    lr_steps_to_reduce: int = 20
    lr_reduce_factor: float = 0.5
    eps: float = 1e-5

    def _skills(self, annotations: Annotations) -> Floats:
        skill = np.full(annotations.n_annotators, 1 / annotations.n_classes + self.eps)
        rate = self.lr_init
        for step in range(1, self.n_iter + 1):
            if step % self.lr_steps_to_reduce == 0:
                rate *= self.lr_reduce_factor
            gap = _agreement(annotations, _vote(annotations, skill)) - skill
            if np.abs(gap).max() < _SETTLED:
                break
            skill = skill + rate * gap
        return skill


def _vote(annotations: Annotations, skill: Floats) -> Integers:
    """Return the label with most skill behind it: (task)."""
    part = annotations.part(0, annotations.n_items)
    return most_probable(normalize(part.votes(skill[part.annotator])))


def _agreement(annotations: Annotations, label: Integers) -> Floats:
    """Return the share of answers that agree with labels: (worker). Equal answers count once."""
    item, annotator = annotations.item, annotations.annotator
    new = np.ones(len(item), dtype=bool)  # rows are sorted by item, annotator, label
    for column in (item, annotator, annotations.label):
        new[1:] &= column[1:] == column[:-1]
    new[1:] = ~new[1:]
    right = (annotations.label == label[item])[new].astype(float)
    annotator = annotator[new].astype(np.intp)
    counts = np.bincount(annotator, minlength=annotations.n_annotators)
    agreed = np.bincount(annotator, right, annotations.n_annotators)
    return agreed / np.maximum(counts, 1)


def _by_code(skills: pd.Series, names: Names) -> dict[str, float]:
    """Return the skills of workers under our names."""
    skill_of = skills.dropna().to_dict()
    return {
        str(code): float(skill_of[worker])
        for code, worker in enumerate(names.workers)
        if worker in skill_of
    }
