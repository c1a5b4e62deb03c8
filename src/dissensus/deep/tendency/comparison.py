"""Methods compared by their predictions of each annotator's labels on held-out items.

Two baselines are always among them: each annotator's label marginals (`own-majority`) and one
prediction for everybody (`consensus`). Of a fitted model these are its own marginals, and the mean
over its annotators.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...answers.annotations import Annotations
from ...base.arrays import Integers
from ...base.tables import columns_of
from ...errors import DataError
from ...method import Progress
from ...pages.sections import Section
from ...pages.sections import Table as SmallTable
from ...pages.wording import formatted
from ...registry import tendencies
from ...result import Result, Table
from ..nn.features import features_of
from .classifier import TendencyClassifier
from .scores import TendencyScores, score

BASELINES = ("own-majority", "consensus")
# Scores of the summary, and their heads in a table.
_SHOWN = {
    "log_loss": "log\nloss",
    "accuracy": "accuracy",
    "accuracy_worst_decile": "worst\ntenth",
    "macro_f1": "macro\nF1",
    "mae": "MAE",
    "dic": "DIC",
    "dic_rms": "DIC\nrms",
    "kappa_correlation": "r\nof kappas",
}


@dataclass(frozen=True, eq=False, repr=False)
class TendencyComparison(Result):
    """Scores of several methods on the same labels.

    Attributes
    ----------
    scores
        Of every method; the last is the one that was asked for last.
    title
        What was predicted.
    """

    scores: Mapping[str, TendencyScores]
    title: str

    @property
    def summaries(self) -> dict[str, dict[str, float]]:
        """Overall scores of every method, and means over annotators."""
        return {name: scores.summary() for name, scores in self.scores.items()}

    @property
    def tables(self) -> Mapping[str, Table]:
        """A row for every method."""
        rows = [{"method": name} | summary for name, summary in self.summaries.items()]
        return {self.title: columns_of(rows)}

    @property
    def sentences(self) -> tuple[str, ...]:
        """What the means are over, and how much of DIC is noise."""
        summary = list(self.summaries.values())[-1]
        pairs, people = int(summary["n_pairs_used"]), int(summary["n_annotators"])
        sentences = [f"means over {people} annotators with enough labels, {pairs} pairs of them"]
        floor = summary.get("dic_rms_floor", float("nan"))
        if floor == floor:
            noise = f"DIC {summary['dic_floor']:.2f}, rms {floor:.3f}"
            sentences.append(f"noise of the labels themselves: {noise}")
        elif pairs:
            sentences.append("too few common items to estimate the noise of DIC: do not rely on it")
        return tuple(sentences)

    def sections(self) -> tuple[Section, ...]:
        """Return a table of all methods, then the sentences."""
        summaries = self.summaries
        ordered = any(summary["mae"] == summary["mae"] for summary in summaries.values())
        heads = {key: head for key, head in _SHOWN.items() if key != "mae" or ordered}
        rows = [
            (name, *(formatted(summary[key], ".3f") for key in heads))
            for name, summary in summaries.items()
        ]
        table = SmallTable(self.title, ("method", *heads.values()), rows, framed=False)
        below = Section("means", "", text=self.sentences)
        return (Section("methods", self.title, panels=[[table]], subsections=[below]),)

    def as_dict(self) -> dict[str, Any]:
        """Return the scores of every method."""
        return {name: scores.as_dict() for name, scores in self.scores.items()}


def compare_tendencies(
    annotations: Annotations,
    inputs: Any,
    methods: Sequence[str],
    *,
    encoder: str = "auto",
    held_out: float = 0.2,
    metadata: Any = None,
    seed: int = 0,
    progress: Progress | None = None,
    **options: Any,
) -> TendencyComparison:
    """Compare methods that learn from a part of the items and predict the labels on the rest.

    Parameters
    ----------
    annotations, inputs
        Labels, and the inputs of their items, in one order.
    methods
        Methods as the registry writes them; the baselines are added.
    encoder
        Encoder of the inputs, once for all methods.
    held_out
        Share of the labelled items that are predicted.
    metadata
        Metadata of annotators: name → column → value.
    seed
        Random seed.
    progress
        Called with steps done, steps in all, and a message.
    options
        Of `score`: min_labels, min_overlap, weights.
    """
    specs = list(dict.fromkeys([*BASELINES, *methods]))
    train, test = split_items(annotations, held_out, seed)
    learned, held = annotations.take(train), annotations.take(test)
    tokens = any(tendencies.create(spec).needs_tokens(learned) for spec in specs)
    features = features_of(inputs, encoder, tokens=tokens, seed=seed, progress=progress)
    scores, notes = {}, []
    for spec in specs:
        estimator = TendencyClassifier(spec, encoder=encoder, seed=seed)
        estimator.fit(features.take(train), learned, metadata=metadata, progress=progress)
        scores[spec] = estimator.evaluate(features.take(test), held, **options)
        notes += estimator.notes_
    title = f"{len(held)} labels on {len(test)} of {annotations.n_items} items"
    return TendencyComparison(scores, title, notes=tuple(notes))


def score_tendency(
    estimator: TendencyClassifier,
    inputs: Any,
    annotations: Annotations,
    *,
    name: str = "a fitted model",
    **options: Any,
) -> TendencyComparison:
    """Score a fitted model beside its own baselines; further arguments are those of `score`."""
    test, log_probability = estimator.predict_annotations(inputs, annotations)
    consensus = np.log(np.maximum(estimator.predict_proba(inputs, "soft"), 1e-15))
    predictions = {
        "own-majority": np.log(estimator.label_marginals_)[test.annotator],
        "consensus": consensus[test.item],
        estimator.method: log_probability,
    }
    scores = {
        method: score(test, log_probability, seed=estimator.seed, **options)
        for method, log_probability in predictions.items()
    }
    title = f"{name} on {len(annotations)} labels, {annotations.n_items} items"
    return TendencyComparison(scores, title)


def split_items(annotations: Annotations, held_out: float, seed: int) -> tuple[Integers, Integers]:
    """Return labelled items to learn from and held-out ones, by code."""
    labelled = np.flatnonzero(annotations.labels_per_item)
    order = np.random.default_rng([seed, 0x7E57]).permutation(labelled)
    count = round(held_out * len(order))
    if not 0 < count < len(order):
        raise DataError(f"{len(order)} labelled items are too few to hold out {held_out:g} of them")
    return np.sort(order[count:]), np.sort(order[:count])
