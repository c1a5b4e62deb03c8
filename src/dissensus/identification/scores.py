"""Every score by name: what it is of, its meaning, aliases, and peerannot's file for it.

The command line, the docs and the tests walk this table. Names are matched without regard to case,
`-` and `_`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from difflib import get_close_matches
from operator import attrgetter
from typing import Literal

import numpy as np
from scipy.special import entr

from .._names import Names, as_names
from .._probability import normalize
from .._relation import Array, Floats
from ..agreement import krippendorff_alpha
from ..annotations import Annotations
from ..errors import MethodError
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
    compute: Callable[[ScoreContext], Array]
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
    Score(
        "accuracy",
        "annotator",
        "Share of labels that are the best class of the others.",
        attrgetter("annotators.accuracy.value"),
    ),
    Score(
        "agreement",
        "annotator",
        "Share of label pairs with other annotators that are equal.",
        attrgetter("annotators.behaviour.agreement"),
    ),
    Score(
        "spam_score",
        "annotator",
        "Distance from labels that ignore the items: 0 a spammer, 1 a hammer.",
        lambda context: spam_score(context.confusion),
        aliases=("spam",),
        file="spam_score.npy",
    ),
    Score(
        "trace",
        "annotator",
        "Trace of the confusion matrix, between 0 and the number of classes.",
        lambda context: trace(context.confusion),
        aliases=("trace_confusion",),
        file="traces_confusion.npy",
    ),
    Score(
        "information",
        "annotator",
        "Mutual information of label and truth, in nats.",
        attrgetter("annotators.information"),
        aliases=("mutual_information",),
    ),
    Score(
        "ability",
        "annotator",
        "GLAD's ability: 0 guesses, below 0 misleads.",
        lambda context: context.fit("glad").params.ability,
        aliases=("glad",),
        file="glad/abilities.npy",
    ),
    Score(
        "competence",
        "annotator",
        "MACE's probability of knowing instead of guessing.",
        lambda context: context.fit("mace").params.competence,
        aliases=("mace",),
    ),
    Score(
        "bias",
        "annotator",
        "Share of labels that would have to change for the class frequencies of the others.",
        attrgetter("annotators.bias"),
        worst="high",
    ),
    Score(
        "label_entropy",
        "annotator",
        "Entropy of the annotator's own labels, in nats.",
        attrgetter("annotators.behaviour.entropy"),
    ),
    Score(
        "top_share",
        "annotator",
        "Share of the annotator's most frequent class.",
        attrgetter("annotators.behaviour.top_share"),
        worst="high",
    ),
    Score(
        "longest_run",
        "annotator",
        "Longest run of equal labels, where the time is known.",
        attrgetter("annotators.behaviour.longest_run"),
        worst="high",
    ),
    Score(
        "seconds",
        "annotator",
        "Median seconds for a label, where the duration is known.",
        attrgetter("annotators.behaviour.seconds"),
    ),
    Score(
        "drift",
        "annotator",
        "P-value of a change of accuracy over time.",
        attrgetter("annotators.drift"),
    ),
    Score(
        "copying",
        "annotator",
        "Evidence that the annotator copies or is copied, in standard deviations.",
        _copied,
        worst="high",
        aliases=("copies",),
    ),
    Score(
        "annotator_quality",
        "annotator",
        "CROWDLAB's quality of an annotator, with a classifier.",
        attrgetter("quality.annotator_quality"),
    ),
    Score(
        "entropy",
        "item",
        "Entropy of the item's labels, in nats; 0 for a single label.",
        _entropies,
        worst="high",
        aliases=("vote_entropy",),
        file="entropies.npy",
    ),
    Score(
        "margin",
        "item",
        "Share of the most frequent label less that of the next.",
        attrgetter("items.margin"),
    ),
    Score(
        "item_agreement",
        "item",
        "Share of pairs of the item's labels that are equal.",
        attrgetter("items.agreement"),
    ),
    Score(
        "posterior_entropy",
        "item",
        "Entropy of the item's posterior, in nats.",
        attrgetter("items.posterior_entropy"),
        worst="high",
    ),
    Score(
        "confidence",
        "item",
        "Posterior probability of the item's label.",
        attrgetter("result.confidence"),
    ),
    Score(
        "difficulty",
        "item",
        "GLAD's difficulty of the item, 1 / easiness.",
        attrgetter("items.difficulty"),
        worst="high",
        file="glad/difficulties.npy",
    ),
    Score(
        "surprise",
        "item",
        "How much less probable the item's labels are than expected.",
        attrgetter("items.surprise"),
        worst="high",
    ),
    Score(
        "consensus_quality",
        "item",
        "CROWDLAB's probability of the consensus, with a classifier.",
        attrgetter("quality.consensus_quality"),
        aliases=("crowdlab",),
    ),
    Score(
        "aum",
        "item",
        "Mean margin of the item's known label while a network learns it.",
        lambda context: context.hardness("aum").score,
        file="<model>/aum/aum_values.csv",
    ),
    Score(
        "aumc",
        "item",
        "Mean margin of the item's majority label while a network learns it.",
        lambda context: context.hardness("aumc").score,
        file="<model>/aumc/aum_values.csv",
    ),
    Score(
        "waum",
        "item",
        "Mean margin of all its labels, weighted by the trust in their annotators.",
        lambda context: context.hardness("waum").score,
        aliases=("waum_stacked",),
        file="<model>/waum_<alpha>_<yang or pleiss>/waum.csv",
    ),
    Score(
        "waum_perworker",
        "item",
        "The same as waum, with a network for every annotator.",
        lambda context: context.hardness("waum_perworker").score,
        aliases=("waum_per_annotator",),
        file="<model>/waum_perworker_<alpha>_<yang or pleiss>/waum.csv",
    ),
    Score(
        "krippendorff_alpha",
        "crowd",
        "Agreement of all annotators: 1 full, 0 by chance.",
        lambda context: np.array([krippendorff_alpha(context.annotations)]),
        aliases=("krippendorffalpha", "alpha"),
        file="krippendorff_alpha.npy",
    ),
)


def find_score(name: str) -> Score:
    """Return the score of that name or alias."""
    known = {_plain(other): one for one in SCORES for other in (one.name, *one.aliases)}
    if _plain(name) in known:
        return known[_plain(name)]
    close = get_close_matches(_plain(name), known, n=1, cutoff=0.5)
    names = ", ".join(one.name for one in SCORES)
    hint = f"did you mean {known[close[0]].name}?" if close else f"there are {names}"
    raise MethodError(f"no score {name!r}; {hint}")


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
    return Scored(one, names[one.of], one.compute(context))


def _plain(name: str) -> str:
    return name.casefold().replace("-", "").replace("_", "")
