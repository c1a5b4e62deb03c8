"""Remarks on measures of agreement for the reader, a sentence each."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..annotations import Annotations
from .differences import WeightsLike, class_values
from .joint import JointMeasures
from .result import Estimate

_HIGH, _LOW = 0.8, 0.4  # much agreement, but little beyond chance
_FEW = 5  # common items below which the kappa of two annotators is unreliable


def _about_pairs(joint: JointMeasures, min_overlap: int) -> list[str]:
    """Return a warning where pairs of annotators share few items."""
    used = joint.overlap[joint.overlap >= min_overlap] if joint.by_pairs else np.zeros(0)
    if not len(used) or np.median(used) >= _FEW:
        return []
    names = " and ".join(one.name for one in joint.chosen if one.by_pairs)
    return [
        f"half of the pairs of annotators share {np.median(used):.0f} items or fewer, too "
        f"few for a kappa: give {names} a min_overlap, or take alpha"
    ]


def notes_on(
    annotations: Annotations,
    estimates: Sequence[Estimate],
    scale: WeightsLike,
    weights: WeightsLike | None,
    joint: JointMeasures,
    min_overlap: int,
) -> tuple[str, ...]:
    """Return remarks on the data and the measures."""
    out = []
    value = {one.measure: one.value for one in estimates}
    beyond = [(n, v) for n, v in value.items() if n in ("alpha", "fleiss", "cohen", "conger")]
    if beyond and value.get("percent", 0) >= _HIGH and beyond[0][1] < _LOW:
        most = np.bincount(annotations.label, minlength=annotations.n_classes)
        out.append(
            f"{value['percent']:.0%} of pairs agree, but {beyond[0][0]} is {beyond[0][1]:.2f}: "
            f"{most.max() / most.sum():.0%} of labels are {annotations.classes[most.argmax()]}, so "
            "agreement by chance is high; compare ac1"
        )
    named = {one for one in (scale, weights) if isinstance(one, str)}
    if named & {"interval", "ratio", "linear", "quadratic", "circular", "bipolar"}:
        if class_values(annotations.classes)[1]:
            out.append("classes are not all numbers, so their positions are used: 1, 2, 3 …")
    elif "ordinal" in named and class_values(annotations.classes)[1]:
        more = " …" if annotations.n_classes > 6 else ""
        order = ", ".join(annotations.classes[:6].tolist()) + more
        out.append(f"the order of classes is {order}; declare classes for another")
    alone = int((annotations.labels_per_item == 1).sum())
    if alone:
        out.append(f"{alone} of {annotations.n_items} items have one label only and do not count")
    for one in estimates:
        if one.dropped:
            out.append(f"{one.dropped} resamples gave no {one.measure} and were left out")
    return (*out, *_about_pairs(joint, min_overlap))
