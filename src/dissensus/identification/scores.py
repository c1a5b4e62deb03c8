"""Every score by name: what it is of, its meaning, aliases, and peerannot's file for it.

The command line, the docs and the tests walk this table. Names are matched without regard to case,
`-` and `_`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from operator import attrgetter
from typing import Literal

import numpy as np
from scipy.special import entr

from .._names import Names, as_names
from .._probability import normalize
from .._relation import Array, Floats
from ..agreement import krippendorff_alpha
from ..annotations import Annotations
from ..registry import find_by_name
from .copying import copies
from .score_context import NETWORK_SCORES, ScoreContext
from .spam import spam_score, trace

__all__ = ["SCORES", "Score", "ScoreContext", "Scored", "find_score", "score"]


@dataclass(frozen=True)
class Score:
    """One score."""

    name: str
    of: Literal["annotator", "item", "crowd"]
    text: str
    worst: Literal["low", "high"] = "low"
    aliases: tuple[str, ...] = ()
    file: str | None = None  # where peerannot keeps it, under `identification/`

    @property
    def trains(self) -> bool:
        """Whether it trains a network on the inputs."""
        return self.name in NETWORK_SCORES


@dataclass(frozen=True, eq=False)
class Scored:
    """The values of a score."""

    score: Score
    names: Names
    values: Array

    @property
    def order(self) -> Array:
        """Positions by score, the worst first, undefined last."""
        values = self.values.astype(float)
        return np.argsort(values if self.score.worst == "low" else -values, kind="stable")

    def table(self) -> dict[str, Array]:
        """Return names and values as columns."""
        return {self.score.of: self.names, self.score.name: self.values}


def _entropies(context: ScoreContext) -> Floats:
    votes = context.annotations.votes()
    return np.where(votes.any(axis=1), entr(normalize(votes)).sum(axis=1), np.nan)


def _copied(context: ScoreContext) -> Floats:
    pairs = copies(context.annotations, context.result, gold=context.gold, seed=context.seed)
    strongest = np.zeros(context.annotations.n_annotators)
    for side in (pairs.one, pairs.other):
        np.maximum.at(strongest, side, pairs.z)
    return strongest


SCORES = (
    Score("accuracy", "annotator", "Share of labels that are the best class of the others."),
    Score("agreement", "annotator", "Share of label pairs with other annotators that are equal."),
    Score(
        "spam_score",
        "annotator",
        "Distance from labels that ignore the items: 0 a spammer, 1 a hammer.",
        aliases=("spam",),
        file="spam_score.npy",
    ),
    Score(
        "trace",
        "annotator",
        "Trace of the confusion matrix, between 0 and the number of classes.",
        aliases=("trace_confusion",),
        file="traces_confusion.npy",
    ),
    Score(
        "information",
        "annotator",
        "Mutual information of label and truth, in nats.",
        aliases=("mutual_information",),
    ),
    Score(
        "ability",
        "annotator",
        "GLAD's ability: 0 guesses, below 0 misleads.",
        aliases=("glad",),
        file="glad/abilities.npy",
    ),
    Score(
        "competence",
        "annotator",
        "MACE's probability of knowing instead of guessing.",
        aliases=("mace",),
    ),
    Score(
        "bias",
        "annotator",
        "Share of labels that would have to change for the class frequencies of the others.",
        worst="high",
    ),
    Score("label_entropy", "annotator", "Entropy of the annotator's own labels, in nats."),
    Score("top_share", "annotator", "Share of the annotator's most frequent class.", worst="high"),
    Score(
        "longest_run",
        "annotator",
        "Longest run of equal labels, where the time is known.",
        worst="high",
    ),
    Score("seconds", "annotator", "Median seconds for a label, where the duration is known."),
    Score("drift", "annotator", "P-value of a change of accuracy over time."),
    Score(
        "copying",
        "annotator",
        "Evidence that the annotator copies or is copied, in standard deviations.",
        worst="high",
        aliases=("copies",),
    ),
    Score(
        "annotator_quality", "annotator", "CROWDLAB's quality of an annotator, with a classifier."
    ),
    Score(
        "entropy",
        "item",
        "Entropy of the item's labels, in nats; 0 for a single label.",
        worst="high",
        aliases=("vote_entropy",),
        file="entropies.npy",
    ),
    Score("margin", "item", "Share of the most frequent label less that of the next."),
    Score("item_agreement", "item", "Share of pairs of the item's labels that are equal."),
    Score("posterior_entropy", "item", "Entropy of the item's posterior, in nats.", worst="high"),
    Score("confidence", "item", "Posterior probability of the item's label."),
    Score(
        "difficulty",
        "item",
        "GLAD's difficulty of the item, 1 / easiness.",
        worst="high",
        file="glad/difficulties.npy",
    ),
    Score(
        "surprise",
        "item",
        "How much less probable the item's labels are than expected.",
        worst="high",
    ),
    Score(
        "consensus_quality",
        "item",
        "CROWDLAB's probability of the consensus, with a classifier.",
        aliases=("crowdlab",),
    ),
    Score(
        "aum",
        "item",
        "Mean margin of the item's known label while a network learns it.",
        file="<model>/aum/aum_values.csv",
    ),
    Score(
        "aumc",
        "item",
        "Mean margin of the item's majority label while a network learns it.",
        file="<model>/aumc/aum_values.csv",
    ),
    Score(
        "waum",
        "item",
        "Mean margin of all its labels, weighted by the trust in their annotators.",
        aliases=("waum_stacked",),
        file="<model>/waum_<alpha>_<yang or pleiss>/waum.csv",
    ),
    Score(
        "waum_perworker",
        "item",
        "The same as waum, with a network for every annotator.",
        aliases=("waum_per_annotator",),
        file="<model>/waum_perworker_<alpha>_<yang or pleiss>/waum.csv",
    ),
    Score(
        "krippendorff_alpha",
        "crowd",
        "Agreement of all annotators: 1 full, 0 by chance.",
        aliases=("krippendorffalpha", "alpha"),
        file="krippendorff_alpha.npy",
    ),
)

# Where a score is not an attribute of the scores of annotators or items.
_COMPUTE: dict[str, Callable[[ScoreContext], Array]] = {
    "accuracy": attrgetter("annotators.accuracy.value"),
    "agreement": attrgetter("annotators.behaviour.agreement"),
    "spam_score": lambda context: spam_score(context.confusion),
    "trace": lambda context: trace(context.confusion),
    "ability": lambda context: context.fit("glad").params.ability,
    "competence": lambda context: context.fit("mace").params.competence,
    "label_entropy": attrgetter("annotators.behaviour.entropy"),
    "top_share": attrgetter("annotators.behaviour.top_share"),
    "longest_run": attrgetter("annotators.behaviour.longest_run"),
    "seconds": attrgetter("annotators.behaviour.seconds"),
    "copying": _copied,
    "annotator_quality": attrgetter("quality.annotator_quality"),
    "entropy": _entropies,
    "item_agreement": attrgetter("items.agreement"),
    "confidence": attrgetter("result.confidence"),
    "consensus_quality": attrgetter("quality.consensus_quality"),
    "krippendorff_alpha": lambda context: np.array([krippendorff_alpha(context.annotations)]),
}


def find_score(name: str) -> Score:
    """Return the score of that name or alias."""
    known = {other: one for one in SCORES for other in (one.name, *one.aliases)}
    return find_by_name("score", name, known, [one.name for one in SCORES])


def score(context: ScoreContext | Annotations, name: str) -> Scored:
    """Return one score by name.

    >>> annotations = Annotations.from_columns("aaabbb", "xyzxyz", "001110")
    >>> score(annotations, "entropy").values.round(3).tolist()
    [0.637, 0.637]
    """
    if isinstance(context, Annotations):
        context = ScoreContext(context)
    one = find_score(name)
    names = {
        "annotator": context.annotations.annotators,
        "item": context.annotations.items,
        "crowd": as_names(["all"]),
    }
    if one.trains:
        values = context.hardness(one.name).score
    else:
        values = _COMPUTE.get(one.name, attrgetter(f"{one.of}s.{one.name}"))(context)
    return Scored(one, names[one.of], values)
