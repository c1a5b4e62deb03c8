"""Simulated crowds with known truth, by the strategies of peerannot and others."""

from __future__ import annotations

from typing import Any

from benchopt import BaseDataset


class Dataset(BaseDataset):
    """A crowd for every strategy and seed."""

    name = "Simulated"
    parameters = {  # noqa: RUF012
        "strategy": [
            "hammer-spammer",
            "student-teacher",
            "independent-confusion",
            "discrete-difficulty",
            "glad",
        ],
        "n_items, n_annotators, n_classes, feedback": [(300, 30, 4, 5)],
        "random_state": [0, 1, 2],
    }
    requirements = ("pip::dissensus",)
    test_parameters = {"strategy": ["hammer-spammer"], "random_state": [0]}  # noqa: RUF012

    def get_data(self) -> dict[str, Any]:
        """Return columns of codes, and the truth."""
        from dissensus import simulate

        drawn = simulate(
            self.strategy,
            n_items=self.n_items,
            n_annotators=self.n_annotators,
            n_classes=self.n_classes,
            feedback=self.feedback,
            seed=self.random_state,
        )
        annotations = drawn.annotations
        return {
            "item": annotations.item,
            "annotator": annotations.annotator,
            "label": annotations.label,
            "sizes": (annotations.n_items, annotations.n_annotators, annotations.n_classes),
            "truth": drawn.truth,
        }
