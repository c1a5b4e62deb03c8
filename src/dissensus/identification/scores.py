"""Every score by name: what it is of, what it says, its other names, and peerannot's file for it.

The command line, the docs and the tests walk this table. Names are matched without regard to case,
`-` and `_`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from scipy.special import entr

from .._names import Names, as_names
from .._probability import normalize
from .._relation import Array, Floats
from ..annotations import Annotations
from ..errors import DataError, MethodError, OptionError
from ..registry import aggregators
from ..result import Aggregation
from .annotators import METHOD, AnnotatorScores, identify
from .items import ItemScores, item_scores
from .spam import spam_score, trace

if TYPE_CHECKING:
    from ..learning._hardness import Hardness

__all__ = ["SCORES", "Asked", "Score", "Scored", "find_score", "score"]


@dataclass(frozen=True, eq=False)
class Asked:
    """What scores are computed from; everything that takes time is made when first asked for."""

    annotations: Annotations
    method: str = METHOD  # whose consensus everything is compared with
    gold: Any = None
    matrices: Floats | None = None  # (annotator, true class, given class), from elsewhere
    rounds: int | None = None  # of Dawid and Skene's own fit, as peerannot has it
    probabilities: Floats | None = None  # of a classifier: (item, class)
    communities: int = 0
    seed: int = 0
    inputs: Any = None  # what the items are: an array, texts or images
    network: Mapping[str, Any] = field(default_factory=dict)  # as `aum` and `waum` take it

    @cached_property
    def result(self) -> Aggregation:
        """The crowd that everything is compared with."""
        method = aggregators.create(self.method)
        return method.fit(self.annotations, gold=self.gold, seed=self.seed)

    @cached_property
    def annotators(self) -> AnnotatorScores:
        """All scores of annotators, without those that need other models or all pairs."""
        return self.identified(models=False, copying=False)

    @cached_property
    def items(self) -> ItemScores:
        """All scores of items."""
        return item_scores(self.annotations, self.result, seed=self.seed)

    def identified(self, **wanted: Any) -> AnnotatorScores:
        """Return scores of annotators, as `identify` gives them."""
        given = {"gold": self.gold, "communities": self.communities, "seed": self.seed}
        return identify(self.annotations, self.result, **given, **wanted)

    @cached_property
    def confusion(self) -> Floats:
        """Confusion matrices: those given, those of Dawid and Skene, or as the others see them."""
        if self.matrices is not None:
            shape = (
                self.annotations.n_annotators,
                self.annotations.n_classes,
                self.annotations.n_classes,
            )
            if self.matrices.shape != shape:
                raise DataError(
                    f"confusion matrices are (annotator, true, given), here {shape}, "
                    f"but these are {self.matrices.shape}"
                )
            return self.matrices
        if self.rounds is not None:
            method = aggregators.create(f"DS[max_iter={self.rounds},tol=1e-6]")
            return method.fit(self.annotations, gold=self.gold, seed=self.seed).params.confusion
        return self.annotators.confusion

    def params(self, method: str) -> Any:
        """Return what another method learns."""
        return (
            aggregators.create(method).fit(self.annotations, gold=self.gold, seed=self.seed).params
        )

    @cached_property
    def quality(self) -> Any:
        """Annotators, items and labels as CROWDLAB sees them, with a classifier."""
        if self.probabilities is None:
            raise OptionError("crowdlab needs what a classifier says: give --probabilities FILE")
        from .crowdlab import crowdlab

        return crowdlab(self.annotations, self.probabilities)

    def hardness(self, name: str) -> Hardness:
        """Return how hard a network finds the items: aum, aumc, waum or waum_perworker."""
        if self.inputs is None:
            raise OptionError(
                f"{name} trains a network on the items themselves: give --inputs FILE or FOLDER; "
                "without inputs there are entropy, margin and difficulty"
            )
        if name == "aum" and self.gold is None:
            raise OptionError(
                "aum learns one label per item: give --gold or --hard-labels; "
                "aumc learns what most annotators said"
            )
        from ..learning.aum import aum, aumc
        from ..learning.waum import waum

        how = {"seed": self.seed, **self.network}
        if name == "aum":
            return aum(self.inputs, _as_said(self.gold, self.annotations), **how)
        if name == "aumc":
            return aumc(self.inputs, self.annotations, **how)
        rounds = {} if self.rounds is None else {"rounds": self.rounds}
        more: dict[str, Any] = {"matrices": self.matrices, **rounds, **how}
        return waum(self.inputs, self.annotations, per_annotator=name == "waum_perworker", **more)


@dataclass(frozen=True)
class Score:
    """One score."""

    name: str
    of: Literal["annotator", "item", "crowd"]
    text: str
    work: Callable[[Asked], Array]
    worst: Literal["low", "high"] = "low"
    aliases: tuple[str, ...] = ()
    file: str | None = None  # where peerannot keeps it, under `identification/`
    trains: bool = False  # whether a network is trained on what the items are


@dataclass(frozen=True, eq=False)
class Scored:
    """A score of everybody or everything it is of."""

    score: Score
    names: Names
    values: Array

    @property
    def order(self) -> Array:
        """The places by score, the worst first, what has none last."""
        values = self.values.astype(float)
        return np.argsort(values if self.score.worst == "low" else -values, kind="stable")

    def table(self) -> dict[str, Array]:
        """Return names and values as columns."""
        return {self.score.of: self.names, self.score.name: self.values}


def _entropies(asked: Asked) -> Floats:
    votes = asked.annotations.votes()
    return np.where(votes.any(axis=1), entr(normalize(votes)).sum(axis=1), np.nan)


def _alpha(asked: Asked) -> Floats:
    from ..agreement import krippendorff_alpha

    return np.array([krippendorff_alpha(asked.annotations)])


def _copied(asked: Asked) -> Floats:
    from .copying import copies

    found = copies(asked.annotations, asked.result, gold=asked.gold, seed=asked.seed)
    strongest = np.zeros(asked.annotations.n_annotators)
    for side in (found.one, found.other):
        np.maximum.at(strongest, side, found.z)
    return strongest


def _as_said(gold: Mapping[str, str], annotations: Annotations) -> Annotations:
    """Return known labels of the items as annotations of one annotator."""
    known = [(item, gold[item]) for item in annotations.items.tolist() if item in gold]
    items, labels = zip(*known, strict=True) if known else ((), ())
    return Annotations.from_columns(
        items, ["gold"] * len(items), labels, items=annotations.items, classes=annotations.classes
    )


SCORES = (
    Score(
        "accuracy",
        "annotator",
        "Share of labels that are the best class of the others.",
        lambda asked: asked.annotators.accuracy.value,
    ),
    Score(
        "agreement",
        "annotator",
        "Share of meetings with labels of others in which both say the same.",
        lambda asked: asked.annotators.habits.agreement,
    ),
    Score(
        "spam_score",
        "annotator",
        "Distance from somebody who does not look at the items: 0 a spammer, 1 a hammer.",
        lambda asked: spam_score(asked.confusion),
        aliases=("spam",),
        file="spam_score.npy",
    ),
    Score(
        "trace",
        "annotator",
        "Trace of the confusion matrix, between 0 and the number of classes.",
        lambda asked: trace(asked.confusion),
        aliases=("trace_confusion",),
        file="traces_confusion.npy",
    ),
    Score(
        "information",
        "annotator",
        "Nats that a label tells about the truth.",
        lambda asked: asked.annotators.information,
        aliases=("mutual_information",),
    ),
    Score(
        "ability",
        "annotator",
        "GLAD's ability: 0 guesses, below 0 misleads.",
        lambda asked: asked.params("glad").ability,
        aliases=("glad",),
        file="glad/abilities.npy",
    ),
    Score(
        "competence",
        "annotator",
        "MACE's probability of knowing instead of making up.",
        lambda asked: asked.params("mace").competence,
        aliases=("mace",),
    ),
    Score(
        "bias",
        "annotator",
        "Share of labels that would have to be another class to use all as the others do.",
        lambda asked: asked.annotators.bias,
        worst="high",
    ),
    Score(
        "label_entropy",
        "annotator",
        "Entropy of the annotator's own labels, in nats.",
        lambda asked: asked.annotators.habits.entropy,
    ),
    Score(
        "top_share",
        "annotator",
        "Share of the class that the annotator gives most.",
        lambda asked: asked.annotators.habits.top_share,
        worst="high",
    ),
    Score(
        "longest_run",
        "annotator",
        "Most equal labels in a row, where the time is known.",
        lambda asked: asked.annotators.habits.longest_run,
        worst="high",
    ),
    Score(
        "seconds",
        "annotator",
        "Median seconds for a label, where the duration is known.",
        lambda asked: asked.annotators.habits.seconds,
    ),
    Score(
        "drift",
        "annotator",
        "How probable the change of accuracy over time is for somebody who does not change.",
        lambda asked: asked.annotators.drift,
    ),
    Score(
        "copying",
        "annotator",
        "How clearly the annotator agrees too much with somebody, in standard deviations.",
        _copied,
        worst="high",
        aliases=("copies",),
    ),
    Score(
        "annotator_quality",
        "annotator",
        "CROWDLAB's quality of an annotator, with a classifier.",
        lambda asked: asked.quality.annotator_quality,
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
        lambda asked: asked.items.margin,
    ),
    Score(
        "item_agreement",
        "item",
        "Share of pairs of the item's labels that are equal.",
        lambda asked: asked.items.agreement,
    ),
    Score(
        "posterior_entropy",
        "item",
        "Entropy of the belief in the item's classes, in nats.",
        lambda asked: asked.items.posterior_entropy,
        worst="high",
    ),
    Score(
        "confidence",
        "item",
        "Belief in the item's label.",
        lambda asked: asked.result.confidence,
    ),
    Score(
        "difficulty",
        "item",
        "GLAD's difficulty of the item, 1 / easiness.",
        lambda asked: asked.items.difficulty,
        worst="high",
        file="glad/difficulties.npy",
    ),
    Score(
        "surprise",
        "item",
        "How much less probable the item's labels are than labels usually.",
        lambda asked: asked.items.surprise,
        worst="high",
    ),
    Score(
        "consensus_quality",
        "item",
        "CROWDLAB's belief in the consensus, with a classifier.",
        lambda asked: asked.quality.consensus_quality,
        aliases=("crowdlab",),
    ),
    Score(
        "aum",
        "item",
        "Mean margin of the item's known label while a network learns it.",
        lambda asked: asked.hardness("aum").score,
        file="<model>/aum/aum_values.csv",
        trains=True,
    ),
    Score(
        "aumc",
        "item",
        "Mean margin of the label that most annotators gave, while a network learns it.",
        lambda asked: asked.hardness("aumc").score,
        file="<model>/aumc/aum_values.csv",
        trains=True,
    ),
    Score(
        "waum",
        "item",
        "Mean margin of all its labels, weighed by how far their annotators are trusted.",
        lambda asked: asked.hardness("waum").score,
        aliases=("waum_stacked",),
        file="<model>/waum_<alpha>_<yang or pleiss>/waum.csv",
        trains=True,
    ),
    Score(
        "waum_perworker",
        "item",
        "The same as waum, with a network for every annotator.",
        lambda asked: asked.hardness("waum_perworker").score,
        aliases=("waum_per_annotator",),
        file="<model>/waum_perworker_<alpha>_<yang or pleiss>/waum.csv",
        trains=True,
    ),
    Score(
        "krippendorff_alpha",
        "crowd",
        "Agreement of the whole crowd: 1 full, 0 as chance would give.",
        _alpha,
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


def score(asked: Asked | Annotations, name: str) -> Scored:
    """Return one score of everybody or everything it is of.

    >>> annotations = Annotations.from_columns("aaabbb", "xyzxyz", "001110")
    >>> score(annotations, "entropy").values.round(3).tolist()
    [0.637, 0.637]
    """
    given = Asked(asked) if isinstance(asked, Annotations) else asked
    one = find_score(name)
    names = {
        "annotator": given.annotations.annotators,
        "item": given.annotations.items,
        "crowd": as_names(["all"]),
    }
    return Scored(one, names[one.of], one.work(given))


def _plain(name: str) -> str:
    return name.casefold().replace("-", "").replace("_", "")
