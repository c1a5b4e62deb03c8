"""Scores of things from comparisons of two, as crowd-kit calls them.

In the model of Bradley and Terry, a thing of score p wins against one of score q with probability
p / (p + q). With noise, a worker of skill g compares so with probability g, and otherwise takes the
left thing with a probability of their own.

    D. R. Hunter. MM algorithms for generalized Bradley-Terry models. Annals of Statistics 32(1),
    2004. doi:10.1214/aos/1079120141
    X. Chen, P. N. Bennett, K. Collins-Thompson, E. Horvitz. Pairwise ranking aggregation in a
    crowdsourced setting. WSDM 2013. doi:10.1145/2433396.2433420
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import numpy as np

from ...base.arrays import Floats, Integers
from ...errors import DataError, OptionError
from .base import in_order, require

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["BradleyTerry", "NoisyBradleyTerry"]


class _Comparisons(NamedTuple):
    """Pairs under numbers."""

    candidates: list[Any]
    left: Integers  # (comparison)
    right: Integers  # (comparison)
    left_won: Integers  # (comparison): 1 or 0

    @classmethod
    def of(cls, data: pd.DataFrame) -> _Comparisons:
        table = require(data, ["left", "right", "label"])
        candidates = in_order(list(dict.fromkeys([*table["left"], *table["right"]])))
        code = {candidate: position for position, candidate in enumerate(candidates)}
        left_won = np.array([*(table["label"] == table["left"])], dtype=bool)
        lost = ~left_won & ~np.array([*(table["label"] == table["right"])], dtype=bool)
        if lost.any():
            label = table["label"].iloc[int(lost.argmax())]
            raise DataError(f"label {label!r} is neither of the two things compared")
        left, right = (
            np.array([code[candidate] for candidate in table[side]], int)
            for side in ("left", "right")
        )
        return cls(candidates, left, right, left_won.astype(np.int64))


@dataclass
class BradleyTerry:
    """Scores that make the comparisons most probable; they sum to one.

    Unlike crowd-kit's, which always stops at the second iteration with a `tol` above zero, it goes
    on until the scores change by less in all. Our method `bradley-terry` differs: it has a prior,
    ties, a preferred side and careless annotators.
    """

    n_iter: int
    tol: float = 1e-5

    def fit(self, data: pd.DataFrame) -> Self:
        """Fit to a table of left, right and label, the winner."""
        import pandas as pd

        pairs = _Comparisons.of(data)
        n_candidates, self.loss_history_ = len(pairs.candidates), list[float]()
        winner = np.where(pairs.left_won, pairs.left, pairs.right)
        wins = np.bincount(winner, minlength=n_candidates)  # (thing)
        score = np.full(n_candidates, 1 / max(n_candidates, 1))
        for _ in range(_steps(self.n_iter) if n_candidates else 0):
            share = 1 / np.maximum(score[pairs.left] + score[pairs.right], 1e-300)
            met = np.bincount(pairs.left, share, n_candidates) + np.bincount(
                pairs.right, share, n_candidates
            )
            last, score = score, wins / met
            score = score / score.sum()
            self.loss_history_.append(float(np.abs(score - last).sum()))
            if self.loss_history_[-1] < self.tol:
                break
        index = pd.Index(pairs.candidates) if n_candidates else None
        self.scores_ = pd.Series(score, index=index, dtype=float, name="agg_score")
        return self

    def fit_predict(self, data: pd.DataFrame) -> pd.Series:
        """Return the score of every thing."""
        return self.fit(data).scores_


@dataclass
class NoisyBradleyTerry:
    """Scores of things with skills and biases of workers, all between 0 and 1.

    A small penalty keeps scores of things that always win from running away. Our method
    `bradley-terry` differs: its shares of careless answers have a prior, so few answers are enough.
    """

    n_iter: int = 100
    tol: float = 1e-5
    regularization_ratio: float = 1e-5
    random_state: int = 0

    def fit(self, data: pd.DataFrame) -> Self:
        """Fit to a table of worker, left, right and label, the winner."""
        import pandas as pd
        from scipy.optimize import minimize
        from scipy.special import expit

        pairs = _Comparisons.of(data)
        workers = in_order(require(data, ["worker"])["worker"].unique().tolist())
        code = {worker: position for position, worker in enumerate(workers)}
        worker = np.array([code[name] for name in data["worker"]], dtype=np.int64)
        n_candidates, n_workers = len(pairs.candidates), len(workers)
        start = np.random.default_rng(self.random_state).random(n_candidates + 2 * n_workers)
        best = minimize(
            self._negative,
            start,
            (pairs, worker, n_workers),
            method="L-BFGS-B",
            jac=True,
            options={"maxiter": _steps(self.n_iter), "ftol": self.tol},
        )
        score, bias, skill = np.split(expit(best.x), [n_candidates, n_candidates + n_workers])
        score_index = pd.Index(pairs.candidates, name="label")
        worker_index = pd.Index(workers, name="worker")
        self.scores_ = pd.Series(score, index=score_index, name="agg_score")
        self.biases_ = pd.Series(bias, index=worker_index, name="bias")
        self.skills_ = pd.Series(skill, index=worker_index, name="skill")
        return self

    def fit_predict(self, data: pd.DataFrame) -> pd.Series:
        """Return the score of every thing."""
        return self.fit(data).scores_

    def _negative(
        self, point: Floats, pairs: _Comparisons, worker: Integers, n_workers: int
    ) -> tuple[float, Floats]:
        """Return minus the penalized log-likelihood, and its gradient."""
        from scipy.special import expit, log_expit

        n_candidates = len(pairs.candidates)
        strength, bias, skill = np.split(point, [n_candidates, n_candidates + n_workers])
        sign = 2.0 * pairs.left_won - 1
        compares = expit(skill)[worker]
        better = expit(sign * (strength[pairs.left] - strength[pairs.right]))
        guessed = expit(sign * bias[worker])
        likelihood = compares * better + (1 - compares) * guessed
        by_thing = compares * better * (1 - better) * sign / likelihood
        by_bias = (1 - compares) * guessed * (1 - guessed) * sign / likelihood
        by_skill = compares * (1 - compares) * (better - guessed) / likelihood
        penalty = self.regularization_ratio * (log_expit(strength) + log_expit(-strength)).sum()
        gradient = np.concatenate(
            [
                np.bincount(pairs.left, by_thing, n_candidates)
                - np.bincount(pairs.right, by_thing, n_candidates)
                - self.regularization_ratio * np.tanh(strength / 2),
                np.bincount(worker, by_bias, n_workers),
                np.bincount(worker, by_skill, n_workers),
            ]
        )
        return -float(np.log(likelihood).sum() + penalty), -gradient


def _steps(n_iter: int) -> int:
    if n_iter < 0:
        raise OptionError(f"n_iter = {n_iter}, but it must be at least 0")
    return n_iter
