"""Agreement among people, among models, and across: means over pairs of annotators."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..answers.annotations import Annotations
from .statistics import WeightsLike
from .pairs import pairwise


class KindAgreement(NamedTuple):
    """Agreement of the pairs of annotators of some kinds."""

    between: str  # people, models, or people and models
    pairs: int
    percent: float
    kappa: float


def agreement_by_kind(
    annotations: Annotations, weights: WeightsLike | None = None
) -> tuple[KindAgreement, ...]:
    """Return agreement among people, among models and across; nothing where kinds are not mixed.

    >>> annotations = Annotations.from_columns(
    ...     "abcdef" * 3, ["ann"] * 6 + ["bob"] * 6 + ["model:m"] * 6, "011010" "011011" "111010"
    ... ).with_kinds()
    >>> [(one.between, one.pairs, round(one.percent, 2)) for one in agreement_by_kind(annotations)]
    [('people', 1, 0.83), ('people and models', 2, 0.75)]
    """
    if not annotations.mixed_kinds:
        return ()
    model = annotations.is_kind("model")
    code = annotations.is_kind("code")
    weights = annotations.scale if weights is None else weights
    percent = pairwise(annotations, "percent", weights=weights, min_overlap=5)
    kappa = pairwise(annotations, "cohen", weights=weights, min_overlap=5)
    n_models = model[percent.one].astype(int) + model[percent.other]
    usable = ~(code[percent.one] | code[percent.other]) & percent.known
    out = []
    for count, name in enumerate(("people", "people and models", "models")):
        chosen = usable & (n_models == count)
        if chosen.any():
            values = kappa.value[chosen]
            known = values[~np.isnan(values)]
            mean = float(known.mean()) if len(known) else float("nan")
            out.append(
                KindAgreement(name, int(chosen.sum()), float(percent.value[chosen].mean()), mean)
            )
    return tuple(out)
