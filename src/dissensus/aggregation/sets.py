"""What methods for sets share: from probabilities of options to a consensus."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from ..base.names import as_names, indices_of
from ..base.arrays import Array, Floats
from ..answers.sets import Sets, join_options
from ..result import Aggregation
from ..consensus_base import ConsensusContext, ConsensusMethod
from .aggregation import Consensus


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
    known = known_options(fit)
    if known is not None:
        yes, exact = np.where(known >= 0, known, yes), np.where(fit.known, 1.0, exact)
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


def known_options(fit: ConsensusContext) -> npt.NDArray[np.int8] | None:
    """Return known options, 1, 0, or -1 where they are unknown: (item, option); or nothing."""
    answers: Sets = fit.answers
    gold: Sets | None = fit.gold
    if gold is None:
        return None
    out = np.where(fit.known, 0, -1)[:, None].repeat(answers.n_options, axis=1).astype(np.int8)
    option = indices_of(gold.options, answers.options)[gold.option]
    item = gold.item[gold.answer]
    out[item[option >= 0], option[option >= 0]] = 1
    return out


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
