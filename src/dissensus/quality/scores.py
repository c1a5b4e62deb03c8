"""Every score by name: what it is of, its meaning, aliases, and peerannot's file for it.

The command line, the docs and the tests walk the table `SCORES`. Names are matched without regard
to case, `-` and `_`. Scores are computed from a `ScoreContext`, the data and their settings.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from operator import attrgetter
from typing import Any, Literal

import numpy as np
from scipy.special import entr

from ..aggregation.aggregation import ClassAggregation
from ..answers.annotations import NUMERIC, Annotations
from ..base.arrays import Array, Floats
from ..base.names import Names, as_names
from ..base.probability import normalize
from ..base.storage import as_plain
from ..errors import DataError, OptionError
from ..metrics import krippendorff_alpha
from ..pages.sections import Section
from ..registry import aggregators, find_by_name, network_scores
from ..result import Result, Table
from .annotators import METHOD, AnnotatorScores, identify
from .copying import copies
from .correlation import spam_score, trace
from .crowdlab import Crowdlab, crowdlab
from .items import ItemScores, item_scores

__all__ = ["SCORES", "Score", "ScoreContext", "Scored", "find_score", "score"]


@dataclass(frozen=True, eq=False)
class ScoreContext:
    """The data and settings of scores; everything that takes time is computed on first use."""

    annotations: Annotations
    method: str = METHOD  # of the consensus
    gold: Any = None
    matrices: Floats | None = None  # given confusion: (annotator, true class, given class)
    rounds: int | None = None  # of Dawid and Skene's own fit, as in peerannot
    probabilities: Floats | None = None  # of a classifier: (item, class)
    communities: int = 0
    seed: int = 0
    inputs: Any = None  # what the items are: an array, texts or images
    network: Mapping[str, Any] = field(default_factory=dict)  # settings of `aum` and `waum`

    @cached_property
    def result(self) -> ClassAggregation:
        """The consensus to compare with."""
        return self.fit(self.method)

    @cached_property
    def annotators(self) -> AnnotatorScores:
        """Scores of annotators, without those that need other models or all pairs."""
        return self.identified(models=False, copying=False)

    @cached_property
    def items(self) -> ItemScores:
        """Scores of items."""
        return item_scores(self.annotations, self.result, seed=self.seed)

    def identified(self, **options: Any) -> AnnotatorScores:
        """Return scores of annotators, with options of `identify`."""
        context: Any = {"gold": self.gold, "communities": self.communities}
        result = None if self.annotations.scale in NUMERIC else self.result
        return identify(self.annotations, result, seed=self.seed, **context, **options)

    @cached_property
    def confusion(self) -> Floats:
        """Confusion matrices: given, of Dawid and Skene, or under the posterior of the others."""
        if self.matrices is not None:
            n_classes = self.annotations.n_classes
            shape = (self.annotations.n_annotators, n_classes, n_classes)
            if self.matrices.shape != shape:
                raise DataError(
                    f"confusion matrices are (annotator, true, given), here {shape}, "
                    f"but these are {self.matrices.shape}"
                )
            return self.matrices
        if self.rounds is not None:
            return self.fit(f"DS[max_iter={self.rounds}]").params.confusion
        return self.annotators.confusion

    def fit(self, method: str) -> ClassAggregation:
        """Return the fit of a method."""
        return aggregators.create(method).fit(self.annotations, gold=self.gold, seed=self.seed)

    @cached_property
    def quality(self) -> Crowdlab:
        """CROWDLAB's scores, with a classifier."""
        if self.probabilities is None:
            raise OptionError("crowdlab needs a classifier", remedy="give {}", probabilities=...)
        return crowdlab(self.annotations, self.probabilities)

    def hardness(self, name: str) -> Any:
        """Return how hard a network finds the items: aum, aumc, waum or waum_perworker."""
        if self.inputs is None:
            raise OptionError(
                f"{name} trains a network on the items themselves",
                remedy="give {}; without inputs there are entropy, margin and difficulty",
                inputs=...,
            )
        if name == "aum" and self.gold is None:
            raise OptionError(
                "aum learns one label per item",
                remedy="give {}; aumc learns the majority label",
                gold=...,
            )
        settings: dict[str, Any] = {"seed": self.seed, **self.network}
        annotations = self.annotations
        if name == "aum":
            annotations = _gold_annotations(self.gold, annotations)
        elif name != "aumc":
            settings = {
                "matrices": self.matrices,
                "per_annotator": name == "waum_perworker",
                **({} if self.rounds is None else {"rounds": self.rounds}),
                **settings,
            }
        train: Any = network_scores.find(name)
        return train(self.inputs, annotations, **settings)


def _gold_annotations(gold: Mapping[str, str], annotations: Annotations) -> Annotations:
    """Return gold labels as the annotations of one annotator."""
    gold_rows = [(item, gold[item]) for item in annotations.items.tolist() if item in gold]
    items, labels = zip(*gold_rows, strict=True) if gold_rows else ((), ())
    return Annotations.from_columns(
        items, ["gold"] * len(items), labels, items=annotations.items, classes=annotations.classes
    )


@dataclass(frozen=True)
class Score:
    """One score."""

    name: str
    of: Literal["annotator", "item", "crowd"]
    text: str

    @property
    def worst(self) -> Literal["low", "high"]:
        """Which end of the scale is bad."""
        return "high" if self.name in _WORST_HIGH else "low"

    @property
    def aliases(self) -> tuple[str, ...]:
        """Other names for it."""
        return _ALIASES.get(self.name, ())

    @property
    def file(self) -> str | None:
        """Where peerannot keeps it, under `identification/`."""
        return _FILES.get(self.name)

    @property
    def trains(self) -> bool:
        """Whether it trains a network on the inputs."""
        return self.name in network_scores


@dataclass(frozen=True, eq=False, repr=False)
class Scored(Result):
    """The values of a score."""

    score: Score
    names: Names
    values: Array

    @property
    def order(self) -> Array:
        """Positions by score, the worst first, undefined last."""
        values = self.values.astype(float)
        return np.argsort(values if self.score.worst == "low" else -values, kind="stable")

    @property
    def array(self) -> Array:
        """The values as peerannot's file has them: of the crowd, a single number."""
        return self.values[0] if self.score.of == "crowd" else self.values

    def __repr__(self) -> str:
        return f"<Scored: {self.score.name} of {len(self.names)} {self.score.of}s>"

    def table(self) -> dict[str, Array]:
        """Return names and values as columns."""
        return {self.score.of: self.names, self.score.name: self.values}

    @property
    def tables(self) -> Mapping[str, Table]:
        """Names and values."""
        return {self.score.name: self.table()}

    def sections(self, top: int = 20) -> tuple[Section, ...]:
        """Return the first values, the worst first, and what the score means."""
        from .sections import score_sections

        return score_sections(self, top)

    def as_dict(self) -> dict[str, Any]:
        """Return the values by name, ready for JSON."""
        by_name = dict(zip(self.names.tolist(), as_plain(self.values), strict=True))
        return {"score": self.score.name, "of": self.score.of, "values": by_name}


def _entropies(context: ScoreContext) -> Floats:
    votes = context.annotations.votes()
    return np.where(votes.any(axis=1), entr(normalize(votes)).sum(axis=1), np.nan)


def _copied(context: ScoreContext) -> Floats:
    pairs = copies(context.annotations, context.result, gold=context.gold, seed=context.seed)
    strongest = np.zeros(context.annotations.n_annotators)
    for side in (pairs.one, pairs.other):
        np.maximum.at(strongest, side, pairs.z)
    return strongest


_TEXTS: dict[Literal["annotator", "item", "crowd"], dict[str, str]] = {
    "annotator": {
        "correlation": "How far labels follow the items: 1 fully, 0 not at all.",
        "p_random": "Probability that answers ignore the items.",
        "accuracy": "Share of labels that are the best class of the others.",
        "agreement": "Share of label pairs with other annotators that are equal.",
        "spam_score": "Distance from labels that ignore the items: 0 a spammer, 1 a hammer.",
        "trace": "Trace of the confusion matrix, between 0 and the number of classes.",
        "information": "Mutual information of label and truth, in nats.",
        "ability": "GLAD's ability: 0 guesses, below 0 misleads.",
        "competence": "MACE's probability of knowing instead of guessing.",
        "bias": "Share of labels that would have to change for the class frequencies of the "
        "others.",
        "label_entropy": "Entropy of the annotator's own labels, in nats.",
        "top_share": "Share of the annotator's most frequent class.",
        "longest_run": "Longest run of equal labels, where the time is known.",
        "seconds": "Median seconds for a label, where the duration is known.",
        "drift": "P-value of a change of accuracy over time.",
        "copying": "Evidence that the annotator copies or is copied, in standard deviations.",
        "annotator_quality": "CROWDLAB's quality of an annotator, with a classifier.",
    },
    "item": {
        "entropy": "Entropy of the item's labels, in nats; 0 for a single label.",
        "margin": "Share of the most frequent label less that of the next.",
        "item_agreement": "Share of pairs of the item's labels that are equal.",
        "posterior_entropy": "Entropy of the item's posterior, in nats.",
        "confidence": "Posterior probability of the item's label.",
        "difficulty": "GLAD's difficulty of the item, 1 / easiness.",
        "surprise": "How much less probable the item's labels are than expected.",
        "consensus_quality": "CROWDLAB's probability of the consensus, with a classifier.",
        "aum": "Mean margin of the item's known label while a network learns it.",
        "aumc": "Mean margin of the item's majority label while a network learns it.",
        "waum": "Mean margin of all its labels, weighted by the trust in their annotators.",
        "waum_perworker": "The same as waum, with a network for every annotator.",
    },
    "crowd": {"krippendorff_alpha": "Agreement of all annotators: 1 full, 0 by chance."},
}
_WORST_HIGH = {"p_random", "bias", "top_share", "longest_run", "copying"}
_WORST_HIGH |= {"entropy", "posterior_entropy", "difficulty", "surprise"}
_ALIASES = {
    "spam_score": ("spam",),
    "trace": ("trace_confusion",),
    "information": ("mutual_information",),
    "ability": ("glad",),
    "competence": ("mace",),
    "copying": ("copies",),
    "entropy": ("vote_entropy",),
    "consensus_quality": ("crowdlab",),
    "waum": ("waum_stacked",),
    "waum_perworker": ("waum_per_annotator",),
    "krippendorff_alpha": ("krippendorffalpha", "alpha"),
}
_FILES = {
    "spam_score": "spam_score.npy",
    "trace": "traces_confusion.npy",
    "ability": "glad/abilities.npy",
    "entropy": "entropies.npy",
    "difficulty": "glad/difficulties.npy",
    "aum": "<model>/aum/aum_values.csv",
    "aumc": "<model>/aumc/aum_values.csv",
    "waum": "<model>/waum_<alpha>_<yang or pleiss>/waum.csv",
    "waum_perworker": "<model>/waum_perworker_<alpha>_<yang or pleiss>/waum.csv",
    "krippendorff_alpha": "krippendorff_alpha.npy",
}
SCORES = tuple(
    Score(name, of, text) for of, texts in _TEXTS.items() for name, text in texts.items()
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
    by_name = {alias: entry for entry in SCORES for alias in (entry.name, *entry.aliases)}
    return find_by_name("score", name, by_name, [entry.name for entry in SCORES])


def score(context: ScoreContext | Annotations, name: str) -> Scored:
    """Return one score by name.

    >>> annotations = Annotations.from_columns("aaabbb", "xyzxyz", "001110")
    >>> score(annotations, "entropy").values.round(3).tolist()
    [0.637, 0.637]
    """
    if not isinstance(context, ScoreContext):
        context = ScoreContext(context)
    entry = find_score(name)
    names = {
        "annotator": context.annotations.annotators,
        "item": context.annotations.items,
        "crowd": as_names(["all"]),
    }
    if entry.trains:
        values = context.hardness(entry.name).score
    else:
        values = _COMPUTE.get(entry.name, attrgetter(f"{entry.of}s.{entry.name}"))(context)
    return Scored(entry, names[entry.of], values)
