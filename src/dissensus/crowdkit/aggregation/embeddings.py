"""Answers with embeddings: the answer nearest to a weighted mean of the task's answers.

e[k] is the embedding of an answer, `center` the mean of its task's, weighted by reliabilities of
workers (RASA), and of the answer within its task, too (HRRASA). The reliability of a worker is a
quantile of chi squared with as many degrees of freedom as they have answers, divided by the sum of
squared distances of their answers to the centers. Answers in a task are reliable that resemble the
others, in their embeddings and in their outputs.

    J. Li, F. Fukumoto. A dataset of crowdsourced word sequences: collections and answer aggregation
    for ground truth creation. AnnoNLP 2019. doi:10.18653/v1/D19-5904
    J. Li. Crowdsourced text sequence aggregation based on hybrid reliability and representation.
    SIGIR 2020. doi:10.1145/3397271.3401239
    Y. Wu et al. Google's neural machine translation system. arXiv:1609.08144, 2016. (GLEU)
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from ...base.arrays import Floats, Integers
from ...errors import DataError, OptionError
from .base import in_order, require

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["HRRASA", "RASA", "ClosestToAverage", "gleu"]

_LEAST = 1e-5  # of a sum of distances, and of a reliability within a task
_LONGEST = 4  # words in a run that GLEU compares


def gleu(one: str, other: str) -> float:
    """Return the share of common runs of up to four words, in the text that has more of them.

    >>> gleu("the cat sat", "the cat sat"), round(gleu("the cat sat", "the dog sat"), 3)
    (1.0, 0.333)
    """
    first, second = _runs(one.split()), _runs(other.split())
    longer = max(first.total(), second.total())
    return (first & second).total() / longer if longer else 1.0


def cosine_distance(vector: Floats, mean: Floats) -> float:
    """Return one minus the cosine; infinity where a vector is zero."""
    product = np.linalg.norm(vector) * np.linalg.norm(mean)
    return float(1 - vector @ mean / product) if product else float("inf")


@dataclass
class ClosestToAverage:
    """The answer whose embedding is closest to the mean of its task."""

    distance: Callable[[Any, Any], float]

    def fit(
        self,
        data: pd.DataFrame,
        aggregated_embeddings: pd.Series | None = None,
        true_embeddings: pd.Series | None = None,
    ) -> Self:
        """Fit to a table of task, worker, output and embedding.

        Means are replaced by aggregated embeddings, or by true ones where they are known.
        """
        answers = _Answers(data, ["task", "worker", "output", "embedding"])
        true_centers = _unique(true_embeddings)
        if aggregated_embeddings is None:
            center = answers.centers(np.ones(len(answers.task)), true_centers)
        else:
            center = answers.by_task(aggregated_embeddings)
        table = answers.table[["task", "output"]].copy()
        pairs = zip(answers.embedding, center[answers.task], strict=True)
        table["score"] = [float(self.distance(embedding, mean)) for embedding, mean in pairs]
        table["embedding"] = answers.table["embedding"]
        self.scores_ = table.set_index("task")
        order = np.lexsort((np.arange(len(table)), table["score"], answers.task))
        best = order[np.unique(answers.task[order], return_index=True)[1]]
        self.embeddings_and_outputs_ = self.scores_.iloc[best][["output", "embedding"]]
        return self

    def fit_predict(
        self, data: pd.DataFrame, aggregated_embeddings: pd.Series | None = None
    ) -> pd.DataFrame:
        """Return output and embedding of every task."""
        return self.fit(data, aggregated_embeddings).embeddings_and_outputs_

    def fit_predict_scores(
        self, data: pd.DataFrame, aggregated_embeddings: pd.Series | None = None
    ) -> pd.DataFrame:
        """Return the distance of every answer to the mean."""
        return self.fit(data, aggregated_embeddings).scores_


@dataclass
class RASA:
    """Means weighted by reliabilities of workers."""

    n_iter: int = 100
    tol: float = 1e-9
    alpha: float = 0.05

    def fit(self, data: pd.DataFrame, true_embeddings: pd.Series | None = None) -> Self:
        """Fit to a table of task, worker and embedding."""
        answers = _Answers(data, ["task", "worker", "embedding"])
        self._learn(answers, np.ones(len(answers.task)), _unique(true_embeddings))
        return self

    def fit_predict(
        self, data: pd.DataFrame, true_embeddings: pd.Series | None = None
    ) -> pd.DataFrame:
        """Return output and embedding of every task."""
        return self.fit(data, true_embeddings)._apply(data).embeddings_and_outputs_

    def fit_predict_scores(
        self, data: pd.DataFrame, true_embeddings: pd.Series | None = None
    ) -> pd.DataFrame:
        """Return the cosine distance of every answer to the weighted mean."""
        return self.fit(data, true_embeddings)._apply(data).scores_

    def _apply(self, data: pd.DataFrame) -> Self:
        closest = ClosestToAverage(cosine_distance).fit(data, self.aggregated_embeddings_)
        self.scores_ = closest.scores_
        self.embeddings_and_outputs_ = closest.embeddings_and_outputs_
        return self

    def _learn(self, answers: _Answers, local: Floats, true_centers: pd.Series | None) -> Floats:
        """Keep reliabilities of workers and centers of tasks; return the weights of answers.

        `local` is the reliability of an answer within its task, NaN where it is alone.
        """
        import pandas as pd
        from scipy.stats import chi2

        if self.n_iter < 0:
            raise OptionError(f"n_iter = {self.n_iter}, but it must be at least 0")
        counted = np.isfinite(local)
        local = np.where(counted, np.maximum(local, _LEAST), 1.0)
        n_answers = np.bincount(answers.worker[counted], minlength=len(answers.workers))
        prior = np.where(n_answers > 0, chi2.isf(self.alpha / 2, np.maximum(n_answers, 1)), np.nan)
        skill = np.where(n_answers > 0, 1.0, np.nan)
        weight = np.where(counted, local, 1.0)
        center = answers.centers(weight, true_centers)
        self.loss_history_: list[float] = []
        for step in range(self.n_iter):
            last, center = center, answers.centers(weight, true_centers)
            far = ((answers.embedding - center[answers.task]) ** 2).sum(axis=1) / local
            far = np.bincount(answers.worker, np.where(counted, far, 0.0), len(answers.workers))
            skill = prior / np.maximum(far, _LEAST)
            weight = np.where(counted, skill[answers.worker] * local, 1.0)
            if step:
                change = float(((center - last) ** 2).sum() / max((center**2).sum(), _LEAST))
                self.loss_history_.append(change)
                if change < self.tol:
                    break
        workers = pd.Index(answers.workers, name="worker")
        self.prior_skills_ = pd.Series(prior, index=workers, name="prior_skill")
        self.skills_ = pd.Series(skill, index=workers, name="skill")
        tasks = pd.Index(answers.tasks, name="task")
        self.aggregated_embeddings_ = pd.Series(list(center), index=tasks)
        return np.where(counted, weight, np.nan)


@dataclass
class HRRASA(RASA):
    """Means weighted by reliabilities of workers, and of answers within their task.

    Tasks with one answer keep it; nothing is learned from them.
    """

    n_iter: int = 100
    tol: float = 1e-9
    lambda_emb: float = 0.5
    lambda_out: float = 0.5
    alpha: float = 0.05
    calculate_ranks: bool = False
    output_similarity: Callable[[Any, Any], float] = gleu

    def fit(self, data: pd.DataFrame, true_embeddings: pd.Series | None = None) -> Self:
        """Fit to a table of task, worker, output and embedding."""
        answers = _Answers(data, ["task", "worker", "output", "embedding"])
        local = np.full(len(answers.task), np.nan)
        for rows in answers.together():
            local[rows] = self._local(answers, rows)
        weight = self._learn(answers, local, _unique(true_embeddings))
        index = answers.table.set_index(["task", "worker"]).index
        self.weights_ = answers.frame({"weight": weight}, index)
        if self.calculate_ranks:
            center = answers.by_task(self.aggregated_embeddings_)[answers.task]
            near = _similar(answers.embedding, center)
            skill = self.skills_.to_numpy()[answers.worker]
            ranks = answers.table[["task", "output"]].assign(rank=skill * near + local)
            self.ranks_ = ranks
        return self

    def _local(self, answers: _Answers, rows: Integers) -> Floats:
        """Return how much the answers to a task resemble those of the other workers."""
        embedding, worker = answers.embedding[rows], answers.worker[rows]
        output = answers.table["output"].iloc[rows].tolist()
        alike = self.lambda_emb * _similar(embedding[:, None], embedding[None])
        if self.lambda_out:
            texts = [
                [self.output_similarity(text, compared) for compared in output] for text in output
            ]
            alike = alike + self.lambda_out * np.array(texts)
        return np.where(worker[:, None] != worker, alike, 0.0).sum(axis=1) / (len(rows) - 1)


class _Answers:
    """A table of answers as arrays."""

    def __init__(self, data: pd.DataFrame, columns: list[str]) -> None:
        self.table = require(data, columns).reset_index(drop=True)
        self.tasks = in_order(self.table["task"].unique().tolist())
        self.workers = in_order(self.table["worker"].unique().tolist())
        self.task = self._codes("task", self.tasks)  # (answer)
        self.worker = self._codes("worker", self.workers)  # (answer)
        try:
            self.embedding = np.stack(
                [np.asarray(vector, float) for vector in self.table["embedding"]]
            )
        except ValueError as error:
            raise DataError(f"embeddings must be arrays of one length: {error}") from None

    def _codes(self, column: str, values: list[Any]) -> Integers:
        code = {value: position for position, value in enumerate(values)}
        return self.table[column].map(code).to_numpy(dtype=np.int64)

    def centers(self, weight: Floats, true_centers: pd.Series | None) -> Floats:
        """Return the weighted mean of every task, or its known embedding: (task, feature)."""
        sums = np.zeros((len(self.tasks), self.embedding.shape[1]))
        np.add.at(sums, self.task, weight[:, None] * self.embedding)
        center = sums / np.bincount(self.task, weight, len(self.tasks))[:, None]
        if true_centers is not None:
            for row, task in enumerate(self.tasks):
                if task in true_centers.index:
                    center[row] = true_centers[task]
        return center

    def by_task(self, embeddings: pd.Series) -> Floats:
        """Return one given embedding for every task: (task, feature)."""
        return np.stack([np.asarray(embeddings[task], float) for task in self.tasks])

    def together(self) -> list[Integers]:
        """Return the rows of every task with several answers."""
        order = np.argsort(self.task, kind="stable")
        cuts = np.cumsum(np.bincount(self.task, minlength=len(self.tasks)))[:-1]
        return [rows for rows in np.split(order, cuts) if len(rows) > 1]

    def frame(self, columns: dict[str, Any], index: Any) -> pd.DataFrame:
        """Return a table."""
        import pandas as pd

        return pd.DataFrame(columns, index=index)


def _similar(x: Floats, y: Floats) -> Floats:
    """Return exp(- |x - y|² / (|x|² |y|²)) over the last axis; 1 for equal vectors."""
    far = ((x - y) ** 2).sum(axis=-1)
    norms = (x**2).sum(axis=-1) * (y**2).sum(axis=-1)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(far == 0, 1.0, np.exp(-far / norms))


def _runs(words: list[str]) -> Counter[tuple[str, ...]]:
    """Return all runs of up to four words, counted."""
    return Counter(
        tuple(words[start : start + length])
        for length in range(1, _LONGEST + 1)
        for start in range(len(words) - length + 1)
    )


def _unique(embeddings: pd.Series | None) -> pd.Series | None:
    """Return known embeddings; refuse several for a task."""
    if embeddings is not None and not embeddings.index.is_unique:
        raise DataError("true_embeddings has several embeddings for a task; give one each")
    return embeddings
