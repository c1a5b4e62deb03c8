"""Public sets by name, as `dissensus install` prepares them, and any data set folder by path.

    benchopt run . -d "Installed[source=[labelme,music]]"
    benchopt run . -d "Installed[source=my/folder]"

A folder has `answers.json` and `ground_truth.npy`. Names are fetched once, into the cache.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

from benchopt import BaseDataset


class Dataset(BaseDataset):
    """A data set folder."""

    name = "Installed"
    parameters = {"source": ["labelme", "music"]}  # noqa: RUF012
    requirements = ("pip::dissensus",)

    def get_data(self) -> dict[str, Any]:
        """Return columns of codes, and the truth; or why there are none."""
        from dissensus import DissensusError, install, read, read_truth

        with tempfile.TemporaryDirectory() as work:
            folder = Path(self.source)
            try:
                if not (folder / "answers.json").is_file():
                    folder = Path(work) / "set"
                    install(str(self.source), folder, answers_only=True)
                annotations, truth = read(folder), read_truth(folder)
            except DissensusError as problem:
                return {"item": None, "reason": str(problem)}
        names = annotations.items.tolist()
        return {
            "item": annotations.item,
            "annotator": annotations.annotator,
            "label": annotations.label,
            "sizes": (annotations.n_items, annotations.n_annotators, annotations.n_classes),
            "truth": [int(truth.get(name, -1)) for name in names],
        }
