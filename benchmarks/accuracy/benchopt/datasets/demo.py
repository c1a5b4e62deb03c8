"""The data set that comes with dissensus."""

from __future__ import annotations

from typing import Any

from benchopt import BaseDataset


class Dataset(BaseDataset):
    """500 photos, 40 annotators."""

    name = "Demo"
    requirements = ("pip::dissensus",)

    def get_data(self) -> dict[str, Any]:
        """Return columns of codes, and the truth."""
        from dissensus import demo

        annotations, truth = demo()
        code = {name: number for number, name in enumerate(annotations.classes.tolist())}
        return {
            "item": annotations.item,
            "annotator": annotations.annotator,
            "label": annotations.label,
            "sizes": (annotations.n_items, annotations.n_annotators, annotations.n_classes),
            "truth": [code.get(truth.get(item), -1) for item in annotations.items.tolist()],
        }
