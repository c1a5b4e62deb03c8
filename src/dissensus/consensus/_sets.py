"""What methods for sets share: from probabilities of options to a consensus."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from .._names import as_names
from .._relation import Array, Floats
from ..answers.sets import Sets, join_options
from ..result import Aggregation
from ._base import ConsensusContext, ConsensusMethod
from .result import Consensus


def sets_result(
    method: ConsensusMethod,
    fit: ConsensusContext,
    yes: Floats,
    exact: Floats,
    quality: Mapping[str, Floats],
    **settings: Any,
) -> Consensus:
    """Return the consensus of P(option is true), (item, option), and of the whole set, (item)."""
    answers: Sets = fit.answers
    if fit.gold is not None:
        gold = np.zeros_like(yes)
        position = {name: code for code, name in enumerate(answers.options.tolist())}
        known = [position.get(name, -1) for name in fit.gold.options.tolist()]
        option = np.array(known, dtype=np.int64)[fit.gold.option]
        gold[fit.gold.item[fit.gold.answer][option >= 0], option[option >= 0]] = 1.0
        yes, exact = np.where(fit.known[:, None], gold, yes), np.where(fit.known, 1.0, exact)
    asked = (answers.labels_per_item > 0) | fit.known
    names = answers.options.tolist()
    chosen = (yes > 0.5) & asked[:, None]
    labels = [join_options([names[o] for o in np.flatnonzero(row)]) for row in chosen]
    columns: dict[str, Array] = {
        "item": answers.items,
        "labels": as_names(labels),
        "confidence": np.where(asked, exact, np.nan),
        "n_answers": answers.labels_per_item,
    }
    columns |= {f"p:{name}": yes[:, o] for o, name in enumerate(names)}
    return method.result(fit, columns, quality, inner=_inner(method, answers, yes), **settings)


def _inner(method: ConsensusMethod, answers: Sets, yes: Floats) -> Aggregation:
    """Return every option of every item as a question of no and yes."""
    annotations = answers.candidates().annotations
    given = np.stack([1 - yes.ravel(), yes.ravel()], axis=1)  # (candidate, class)
    part = annotations.part(0, annotations.n_items)
    with np.errstate(invalid="ignore"):  # NaN without answers
        right = part.by_annotator(part.given_posterior(given)) / annotations.labels_per_annotator
    label = np.where(annotations.labels_per_item > 0, given.argmax(axis=1), -1)
    name = type(method).__name__
    return Aggregation(name, annotations, label, given, right, right)
