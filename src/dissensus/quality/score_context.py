"""The data and settings that scores are computed from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from importlib import import_module
from typing import Any

from ..base.arrays import Floats
from ..answers.annotations import Annotations
from ..errors import DataError, OptionError
from ..registry import aggregators
from ..result import Aggregation
from .annotators import METHOD, AnnotatorScores, identify_on_labels
from .crowdlab import Crowdlab, crowdlab
from .items import ItemScores, item_scores

# Scores that train a network, imported on use: they need torch.
NETWORK_SCORES = {
    "aum": "dissensus.deep.learning.hard_items:aum",
    "aumc": "dissensus.deep.learning.hard_items:aumc",
    "waum": "dissensus.deep.learning.waum:waum",
    "waum_perworker": "dissensus.deep.learning.waum:waum",
}


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
    def result(self) -> Aggregation:
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
        result = None if self.annotations.numeric else self.result
        return identify_on_labels(self.annotations, result, seed=self.seed, **context, **options)

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

    def fit(self, method: str) -> Aggregation:
        """Return the fit of a method."""
        return aggregators.create(method).fit(self.annotations, gold=self.gold, seed=self.seed)

    @cached_property
    def quality(self) -> Crowdlab:
        """CROWDLAB's scores, with a classifier."""
        if self.probabilities is None:
            raise OptionError("crowdlab needs a classifier: give --probabilities FILE")
        return crowdlab(self.annotations, self.probabilities)

    def hardness(self, name: str) -> Any:
        """Return how hard a network finds the items: aum, aumc, waum or waum_perworker."""
        if self.inputs is None:
            raise OptionError(
                f"{name} trains a network on the items themselves: give --inputs FILE or FOLDER; "
                "without inputs there are entropy, margin and difficulty"
            )
        if name == "aum" and self.gold is None:
            raise OptionError(
                "aum learns one label per item: give --gold or --hard-labels; "
                "aumc learns the majority label"
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
        module, _, function = NETWORK_SCORES[name].partition(":")
        return getattr(import_module(module), function)(self.inputs, annotations, **settings)


def _gold_annotations(gold: Mapping[str, str], annotations: Annotations) -> Annotations:
    """Return gold labels as the annotations of one annotator."""
    known = [(item, gold[item]) for item in annotations.items.tolist() if item in gold]
    items, labels = zip(*known, strict=True) if known else ((), ())
    return Annotations.from_columns(
        items, ["gold"] * len(items), labels, items=annotations.items, classes=annotations.classes
    )
