"""Scores of tasks, workers and the crowd, written as files as peerannot does."""

from __future__ import annotations

from pathlib import Path
from typing import Any, ClassVar

from ..quality.scores import ScoreContext, Scored, score
from ..formats.tools.peerannot import read_matrices
from ..formats.tools.folders import write_score
from .template import CrowdModel

__all__ = ["Entropy", "Krippendorff_Alpha", "Spam_Score", "Trace_confusion"]


class _ScoreModel(CrowdModel):
    """A score of ours; `values` holds it after `run`."""

    name: ClassVar[str]

    def __init__(
        self,
        answers: Any,
        *,
        n_classes: int | None = None,
        n_workers: int | None = None,
        matrix_file: str | Path | None = None,
        **_unused: Any,
    ) -> None:
        super().__init__(answers)
        self.n_classes, self.n_workers = n_classes, n_workers
        self.matrices = read_matrices(matrix_file) if matrix_file else None

    def run(self, path: str | Path) -> None:
        """Write the score below `path`, in its file under `identification/`."""
        context = ScoreContext(self.annotations, matrices=self.matrices, rounds=50)
        scored: Scored = score(context, self.name)
        self.values = scored.array
        write_score(path, str(scored.score.file), self.values)


class Entropy(_ScoreModel):
    """Entropy of the votes on every task: `entropies.npy`."""

    name = "entropy"


class Spam_Score(_ScoreModel):
    """How far every worker is from a spammer, by Dawid-Skene's matrices or those of a file."""

    name = "spam_score"


class Trace_confusion(_ScoreModel):
    """Trace of every worker's confusion matrix: `traces_confusion.npy`."""

    name = "trace"


class Krippendorff_Alpha(_ScoreModel):
    """Agreement of all workers: `krippendorff_alpha.npy`."""

    name = "krippendorff_alpha"
