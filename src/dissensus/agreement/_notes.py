"""What a reader should know about measures of agreement, a sentence each."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..annotations import Annotations
from ._joint import Panel
from .differences import Wish, class_values
from .result import Estimate

__all__ = ["notes_on"]

_HIGH, _LOW = 0.8, 0.4  # much agreement, and little of it beyond chance
_FEW = 5  # common items with which a kappa of two annotators says little


def _about_pairs(panel: Panel, min_overlap: int) -> list[str]:
    """Return a warning where pairs of annotators share few items."""
    used = panel.overlap[panel.overlap >= min_overlap] if panel.by_pairs else np.zeros(0)
    if not len(used) or np.median(used) >= _FEW:
        return []
    names = " and ".join(one.name for one in panel.chosen if one.by_pairs)
    return [
        f"half of the pairs of annotators share {np.median(used):.0f} items or fewer, which says "
        f"little: give {names} a min_overlap, or take alpha"
    ]


def notes_on(
    annotations: Annotations,
    estimates: Sequence[Estimate],
    level: Wish,
    weights: Wish | None,
    panel: Panel,
    min_overlap: int,
) -> tuple[str, ...]:
    """Return what a reader should know."""
    out = []
    value = {one.measure: one.value for one in estimates}
    beyond = [(n, v) for n, v in value.items() if n in ("alpha", "fleiss", "cohen", "conger")]
    if beyond and value.get("percent", 0) >= _HIGH and beyond[0][1] < _LOW:
        most = np.bincount(annotations.label, minlength=annotations.n_classes)
        out.append(
            f"{value['percent']:.0%} of pairs agree, but {beyond[0][0]} is {beyond[0][1]:.2f}: "
            f"{most.max() / most.sum():.0%} of labels are {annotations.classes[most.argmax()]}, so chance "
            "alone would agree often; read ac1 beside it"
        )
    named = {one for one in (level, weights) if isinstance(one, str)}
    if named & {"interval", "ratio", "linear", "quadratic", "circular", "bipolar"}:
        if class_values(annotations.classes)[1]:
            out.append("classes are not all numbers, so each stands for its place: 1, 2, 3 …")
    elif "ordinal" in named and class_values(annotations.classes)[1]:
        told = ", ".join(annotations.classes[:6].tolist()) + (
            " …" if annotations.n_classes > 6 else ""
        )
        out.append(f"classes are taken in this order: {told}; another with classes")
    alone = int((annotations.labels_per_item == 1).sum())
    if alone:
        out.append(
            f"{alone} of {annotations.n_items} items have one label only, so nobody can agree there"
        )
    for one in estimates:
        if one.dropped:
            out.append(f"{one.dropped} resamples gave no {one.measure} and were left out")
    return (*out, *_about_pairs(panel, min_overlap))
