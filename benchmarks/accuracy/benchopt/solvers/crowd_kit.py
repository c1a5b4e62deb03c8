"""The classes of crowd-kit."""

from __future__ import annotations

from typing import Any

import numpy as np

from benchopt import BaseSolver


class Solver(BaseSolver):
    """A class of crowdkit.aggregation."""

    name = "crowd-kit"
    requirements = ("pip::crowd-kit",)
    sampling_strategy = "run_once"
    parameters = {"method": ["MajorityVote", "DawidSkene", "GLAD", "MACE"]}  # noqa: RUF012

    def set_objective(self, item: Any, annotator: Any, label: Any, sizes: Any) -> None:
        """Make a table of the columns; this is not timed."""
        import pandas as pd

        from crowdkit import aggregation

        self.table = pd.DataFrame({"task": item, "worker": annotator, "label": label})
        self.fitting, self.sizes = getattr(aggregation, self.method)(), sizes

    def run(self, _: Any) -> None:
        """Infer the labels."""
        self.probas = self.fitting.fit_predict_proba(self.table)

    def get_result(self) -> dict[str, Any]:
        """Return labels and posterior; items without labels have neither."""
        posterior = np.full((self.sizes[0], self.sizes[2]), 1 / self.sizes[2])
        rows, columns = self.probas.index.to_numpy(int), self.probas.columns.to_numpy(int)
        posterior[rows] = 0
        posterior[np.ix_(rows, columns)] = np.nan_to_num(self.probas.to_numpy(float))
        label = np.full(self.sizes[0], -1)
        label[rows] = posterior[rows].argmax(axis=1)
        return {"label": label, "posterior": posterior}
