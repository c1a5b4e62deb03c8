"""Aggregation of labels: how many items get a wrong label, and how sure the method is of it.

Solvers are given columns of codes, so that any library can be compared; they return the class of
every item and, if they have one, the posterior. Items without known truth are not scored.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from benchopt import BaseObjective

_LEAST = 1e-6  # probability


class Objective(BaseObjective):
    """Share of wrong labels, and log loss of the truth."""

    name = "Label aggregation"
    url = "https://benchopt.github.io"
    min_benchopt_version = "1.7"
    requirements = ("numpy",)
    sampling_strategy = "run_once"

    def skip(self, **data: Any) -> tuple[bool, str | None]:
        """Skip data that could not be had."""
        return data.get("item") is None, data.get("reason")

    def set_data(
        self,
        *,
        item: Any,
        annotator: Any,
        label: Any,
        sizes: tuple[int, int, int],
        truth: Any,
        reason: str | None = None,
    ) -> None:
        """Keep columns of codes (label by label), and the truth of every item, -1 if unknown."""
        self.columns = {"item": item, "annotator": annotator, "label": label, "sizes": sizes}
        self.truth, self.reason = np.asarray(truth), reason

    def get_objective(self) -> dict[str, Any]:
        """Return what solvers are given."""
        return self.columns

    def evaluate_result(self, label: Any, posterior: Any = None) -> dict[str, float]:
        """Return the share of wrong labels first; ties are up to the method."""
        known = self.truth >= 0
        truth = self.truth[known]
        found = {"value": float(np.mean(np.asarray(label)[known] != truth))}
        if posterior is not None:
            right = np.asarray(posterior)[known][np.arange(len(truth)), truth]
            found["log_loss"] = float(-np.log(np.maximum(right, _LEAST)).mean())
        return found

    def get_one_result(self) -> dict[str, Any]:
        """Return a result, for benchopt's own tests."""
        return {"label": np.zeros(self.columns["sizes"][0], dtype=int)}
