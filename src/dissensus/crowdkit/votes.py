"""Votes, plain and weighted, as crowd-kit calls them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, Self

from ..aggregation import Aggregator, GoldMajority, Majority, Weighted, Zbs
from ..aggregation import Wawa as OurWawa
from ..errors import DataError
from ..result import Aggregation
from ._classifier import Classifier
from ._table import Names, coded

if TYPE_CHECKING:
    import pandas as pd


@dataclass
class _SkillClassifier(Classifier):
    """The base of classifiers with a skill for every worker."""

    def _keep(self, result: Aggregation, names: Names) -> None:
        self.skills_ = names.by_worker(result.quality, "skill")


@dataclass
class MajorityVote(_SkillClassifier):
    """The label with most votes, perhaps weighted by skills."""

    default_skill: float | None = None
    on_missing_skill: Literal["error", "ignore", "value"] = "error"

    def _method(self) -> Aggregator:
        return Majority(ties="first")

    def fit(self, data: pd.DataFrame, skills: pd.Series | None = None) -> Self:
        """Fit to a table of task, worker and label, with skills by worker if given."""
        if skills is None:
            return self._fit(data)
        unknown = ~data["worker"].isin(skills.index)
        if unknown.any() and self.on_missing_skill == "error":
            worker = data.loc[unknown, "worker"].iloc[0]
            raise DataError(f"no skill for worker {worker!r}; set on_missing_skill")
        if self.on_missing_skill == "ignore":
            data = data[~unknown]
        _, names = coded(data)
        known = {
            str(code): float(skills[worker])
            for code, worker in enumerate(names.workers)
            if worker in skills.index
        }
        return self._fit(data, Weighted(skills=known, default=self.default_skill))


@dataclass
class GoldMajorityVote(_SkillClassifier):
    """Votes weighted by accuracy on tasks whose label is known."""

    def _method(self) -> Aggregator:
        return GoldMajority()

    def fit(self, data: pd.DataFrame, true_labels: pd.Series) -> Self:  # type: ignore[override]
        """Fit to a table of task, worker and label, with known labels by task."""
        return self._fit(data, true_labels=true_labels)


@dataclass
class Wawa(_SkillClassifier):
    """Votes weighted by agreement with the majority."""

    def _method(self) -> Aggregator:
        return OurWawa()


@dataclass
class ZeroBasedSkill(Wawa):
    """Votes weighted by skills that start at chance level and move towards agreement."""

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
