"""Constraints on labels to request: costs, limits and new annotators, checked."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from ..base.names import abbreviate, as_names, indices_of, text, union
from ..base.arrays import Array, Floats, Integers
from ..answers.annotations import Annotations
from ..answers.base import Relation
from ..errors import DataError, OptionError
from ..result import Aggregation
from ._posterior_state import pair_keys


@dataclass(frozen=True, eq=False)
class Constraints:
    """Budget and limits of labels to request."""

    budget: float
    cost: Floats  # (annotator)
    room: Integers  # (annotator): labels that they may still give
    per_item: int | None = None  # more labels of an item, at most
    max_labels: int | None = None
    allowed_pairs: Integers | None = None  # keys of the only pairs that can be requested
    rounds: int = 8  # in which the budget is spent where an item may get several labels


def check_options(
    annotations: Annotations,
    budget: float,
    per_item: int | None,
    batch: int | None,
    target: float,
    draws: int,
) -> None:
    """Refuse impossible numbers."""
    if annotations.n_classes < 2:
        raise DataError(
            f"{annotations.n_classes} classes leave nothing to decide; declare all classes"
        )
    if not (np.isfinite(budget) and budget > 0):
        raise OptionError(f"budget = {budget}, but it must be above 0")
    for name, value in (("per_item", per_item), ("batch", batch)):
        if value is not None and value < 1:
            raise OptionError(f"{name} = {value}, but it must be at least 1")
    if not 0 < target < 1:
        raise OptionError(f"target = {target}, but it must be above 0 and below 1")
    if draws < 0:
        raise OptionError(f"draws = {draws}, but it must be at least 0")


def with_new(
    annotations: Annotations, result: Aggregation | None, annotators: Iterable[Any]
) -> tuple[Annotations, Aggregation | None, npt.NDArray[np.bool_]]:
    """Return annotations that declare these annotators, and which of all may be asked."""
    names = as_names(annotators)
    if len(names) == 0:
        raise OptionError("annotators is empty; name those who may be asked")
    if (indices_of(names, annotations.annotators) < 0).any():
        all_names = union(annotations.annotators, names)
        codes = indices_of(annotations.annotators, all_names)[annotations.annotator]
        annotations = annotations.with_codes(annotator=codes, annotators=all_names)
        result = result.predict(annotations) if result is not None else None
    return annotations, result, indices_of(annotations.annotators, names) >= 0


def amounts_of(
    given: float | Mapping[Any, float] | None, annotations: Annotations, what: str, default: float
) -> Floats:
    """Return a number for every annotator."""
    if given is None:
        return np.full(annotations.n_annotators, float(default))
    if isinstance(given, Mapping):
        amount_of = {text(name): float(value) for name, value in given.items()}
        unknown = [name for name in amount_of if name not in set(annotations.annotators.tolist())]
        if unknown:
            raise DataError(
                f"a {what} for {unknown[0]!r}, who is not among the annotators "
                f"{abbreviate(annotations.annotators)}"
            )
        missing = [name for name in annotations.annotators.tolist() if name not in amount_of]
        if missing and what == "cost":
            raise DataError(f"no cost for annotator {missing[0]!r}; {len(missing)} have none")
        amounts = np.array(
            [amount_of.get(name, default) for name in annotations.annotators.tolist()], float
        )
    else:
        amounts = np.full(annotations.n_annotators, float(given))
    least = 0 if what == "limit" else np.nextafter(0, 1)
    wrong = np.flatnonzero(~(np.isfinite(amounts) & (amounts >= least)))
    if len(wrong):
        bound = "at least" if what == "limit" else "above"
        raise OptionError(f"{what} = {amounts[wrong[0]]:g}, but it must be {bound} 0")
    return amounts


def keys_of(available: Relation, annotations: Annotations) -> Integers:
    """Return the pairs that can be requested, as keys in ascending order."""
    item: Array = indices_of(available.items, annotations.items)[available.item]
    annotator: Array = indices_of(available.annotators, annotations.annotators)[available.annotator]
    known = (item >= 0) & (annotator >= 0)
    return np.unique(pair_keys(item[known], annotator[known], annotations.n_annotators))
