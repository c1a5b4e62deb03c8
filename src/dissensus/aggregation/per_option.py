"""One question of no and yes for every option, each aggregated on its own (binary relevance)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from . import as_method
from ..answers.annotations import Annotations
from ..answers.sets import Sets
from ..consensus_base import ConsensusContext, ConsensusMethod
from .sets import known_options, sets_result
from .aggregation import Consensus


@dataclass(frozen=True, kw_only=True)
class PerOption(ConsensusMethod):
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

    def infer(self, fit: ConsensusContext) -> Consensus:
        answers: Sets = fit.answers
        chosen = np.zeros((len(answers), answers.n_options), dtype=np.int64)
        chosen[answers.answer, answers.option] = 1
        known = known_options(fit)
        yes = np.empty((answers.n_items, answers.n_options))
        found, true = np.zeros((2, answers.n_annotators)), np.zeros((2, answers.n_annotators))
        for option in range(answers.n_options):
            annotations = Annotations.from_codes(
                answers.item,
                answers.annotator,
                chosen[:, option],
                items=answers.items,
                annotators=answers.annotators,
                classes=["no", "yes"],
            )
            gold = None
            if known is not None:
                rows = zip(answers.items.tolist(), known[:, option].tolist(), strict=True)
                gold = {item: "yes" if one else "no" for item, one in rows if one >= 0}
            result = as_method(self.aggregator).fit(
                annotations, gold=gold, seed=fit.seed, engine=fit.engine
            )
            yes[:, option] = result.probabilities[:, 1]
            given_yes = yes[annotations.item, option]
            for k, weight in enumerate((1 - given_yes, given_yes)):
                true[k] += np.bincount(annotations.annotator, weight, answers.n_annotators)
                right = weight * (annotations.label == k)
                found[k] += np.bincount(annotations.annotator, right, answers.n_annotators)
            fit.progress(option + 1, 0.0)
        with np.errstate(invalid="ignore"):
            specificity, sensitivity = found / true
        exact = np.maximum(yes, 1 - yes).prod(axis=1)
        quality = {"sensitivity": sensitivity, "specificity": specificity}
        return sets_result(self, fit, yes, exact, quality)
