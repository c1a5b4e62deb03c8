"""Sets: which options are true of an item, by the options that annotators chose.

The result of every method for sets is made here from probabilities of options. `PerOption` asks one
question of no and yes for every option, each aggregated on its own (binary relevance).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from ..answers.annotations import Annotations
from ..answers.sets import Sets, join_options
from ..base.arrays import Array, Floats
from ..base.names import as_names, indices_of
from ..method import FitContext, Method
from . import as_method
from .aggregation import AnswerAggregation, ClassAggregation


def sets_result(
    method: Method[Sets, AnswerAggregation],
    fit: FitContext[Sets],
    yes: Floats,
    exact: Floats,
    quality: Mapping[str, Floats],
    **settings: Any,
) -> AnswerAggregation:
    """Return the consensus of P(option is true), (item, option), and of the whole set, (item)."""
    answers: Sets = fit.answers
    gold = known_options(fit)
    if gold is not None:
        yes, exact = np.where(gold >= 0, gold, yes), np.where(fit.known, 1.0, exact)
    answered = (answers.labels_per_item > 0) | fit.known
    names = answers.options.tolist()
    is_true = (yes > 0.5) & answered[:, None]
    labels = [join_options([names[o] for o in np.flatnonzero(row)]) for row in is_true]
    columns: dict[str, Array] = {
        "item": answers.items,
        "labels": as_names(labels),
        "confidence": np.where(answered, exact, np.nan),
        "n_answers": answers.labels_per_item,
    }
    columns |= {f"p:{name}": yes[:, o] for o, name in enumerate(names)}
    return AnswerAggregation.of(
        method, fit, columns, quality, inner=_inner(method, answers, yes), **settings
    )


def known_options(fit: FitContext[Sets]) -> npt.NDArray[np.int8] | None:
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


def _inner(method: Method[Sets, AnswerAggregation], answers: Sets, yes: Floats) -> ClassAggregation:
    """Return every option of every item as a question of no and yes."""
    annotations = answers.candidates().annotations
    posterior = np.stack([1 - yes.ravel(), yes.ravel()], axis=1)  # (candidate, class)
    part = annotations.part(0, annotations.n_items)
    with np.errstate(invalid="ignore"):  # NaN without answers
        right = (
            part.by_annotator(part.given_posterior(posterior)) / annotations.labels_per_annotator
        )
    label = np.where(annotations.labels_per_item > 0, posterior.argmax(axis=1), -1)
    name = type(method).__name__
    return ClassAggregation(
        method=name,
        answers=annotations,
        label=label,
        posterior=posterior,
        quality=right,
        agreement=right,
    )


@dataclass(frozen=True, kw_only=True)
class PerOption(Method[Sets, AnswerAggregation]):
    """One question of no and yes for every option, each aggregated on its own.

    One question of no and yes for every option, each aggregated on its own (binary relevance).

        P(option o is true of item i) by an aggregator of yes and no

    When it fails: Options that exclude or imply each other: each is decided on its own, so the
    result may be a set that nobody would give, such as "none" together with another option.

    Parameters
    ----------
    aggregator
        The method for one option.
    """

    aggregator: str = "hierarchical"

    def infer(self, fit: FitContext[Sets]) -> AnswerAggregation:
        answers: Sets = fit.answers
        has_option = np.zeros((len(answers), answers.n_options), dtype=np.int64)
        has_option[answers.answer, answers.option] = 1
        gold_options = known_options(fit)
        yes = np.empty((answers.n_items, answers.n_options))
        hits, true = np.zeros((2, answers.n_annotators)), np.zeros((2, answers.n_annotators))
        for option in range(answers.n_options):
            annotations = Annotations.from_codes(
                answers.item,
                answers.annotator,
                has_option[:, option],
                items=answers.items,
                annotators=answers.annotators,
                classes=["no", "yes"],
            )
            gold = None
            if gold_options is not None:
                rows = zip(answers.items.tolist(), gold_options[:, option].tolist(), strict=True)
                gold = {item: "yes" if value else "no" for item, value in rows if value >= 0}
            result = as_method(self.aggregator).fit(
                annotations, gold=gold, seed=fit.seed, engine=fit.engine
            )
            yes[:, option] = result.probabilities[:, 1]
            given_yes = yes[annotations.item, option]
            for k, weight in enumerate((1 - given_yes, given_yes)):
                true[k] += np.bincount(annotations.annotator, weight, answers.n_annotators)
                right = weight * (annotations.label == k)
                hits[k] += np.bincount(annotations.annotator, right, answers.n_annotators)
            fit.progress(option + 1, 0.0)
        with np.errstate(invalid="ignore"):
            specificity, sensitivity = hits / true
        exact = np.maximum(yes, 1 - yes).prod(axis=1)
        quality = {"sensitivity": sensitivity, "specificity": specificity}
        return sets_result(self, fit, yes=yes, exact=exact, quality=quality)
