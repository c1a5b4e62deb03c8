"""Every method of dissensus that needs labels alone."""

from __future__ import annotations

from typing import Any

from benchopt import BaseSolver


class Solver(BaseSolver):
    """A method of the registry."""

    name = "dissensus"
    requirements = ("pip::dissensus",)
    sampling_strategy = "run_once"
    parameters = {"method": ["auto", "majority", "dawid-skene", "glad", "mace", "wawa"]}  # noqa: RUF012

    def set_objective(self, item: Any, annotator: Any, label: Any, sizes: Any) -> None:
        """Make annotations of the columns; this is not timed."""
        from dissensus import Annotations
        from dissensus.aggregation import as_method

        n_items, n_annotators, n_classes = sizes
        self.annotations = Annotations.from_codes(
            item, annotator, label, items=n_items, annotators=n_annotators, classes=n_classes
        )
        self.fitting = as_method(self.method)

    def run(self, _: Any) -> None:
        """Infer the labels."""
        self.result = self.fitting.fit(self.annotations)

    def get_result(self) -> dict[str, Any]:
        """Return labels and posterior."""
        return {"label": self.result.label, "posterior": self.result.posterior}
