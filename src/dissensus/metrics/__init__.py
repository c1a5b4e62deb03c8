"""Scores of predictions against the truth, with bootstrap intervals.

Inter-annotator agreement.

Most measures compare the label pairs of items, so items may have any number of labels; those with
fewer than two do not count.

    votes ─ItemStatistics─▶ SufficientStatistics ─formula─▶ value   `coefficients`, `values`
    co-annotated items ─▶ kappa of every pair of annotators         `pairs`
    bootstrap samples of items ─▶ intervals                         `intervals`, `estimating`
    answers of other kinds ─distance─▶ alpha                        `distances`, `gamma`
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..answers import KINDS
from ..dispatch import by_kind
from ..formats.coerce import as_answers
from .agreement import (
    By,
    agree_on_labels,
    brennan_prediger,
    conger_kappa,
    fleiss_kappa,
    gwet_ac,
    krippendorff_alpha,
    percent_agreement,
    randolph_kappa,
)
from .agreement_result import (
    Agreement,
    AnnotatorAgreement,
    ClassAgreement,
    Estimate,
    ItemAgreement,
    in_words,
    item_agreement,
    split_options,
)
from .coefficients import Measure, find_measure, measures
from .distances import AnswerAgreement, agree_on_answers
from .evaluation import Evaluation, Score, evaluate, evaluate_answers
from .joint import IntervalKind
from .pairs import KindAgreement, Pairs, agreement_by_kind, cohen_kappa, pairwise, scott_pi
from .scores import annotator_errors, multilabel_error_rate, multilabel_manhattan, ranks
from .statistics import WeightsLike

__all__ = [
    "Agreement",
    "AnnotatorAgreement",
    "AnswerAgreement",
    "ClassAgreement",
    "Estimate",
    "Evaluation",
    "ItemAgreement",
    "KindAgreement",
    "Measure",
    "Pairs",
    "Score",
    "agree",
    "agree_on_answers",
    "agree_on_labels",
    "agreement_by_kind",
    "annotator_errors",
    "brennan_prediger",
    "cohen_kappa",
    "conger_kappa",
    "evaluate",
    "evaluate_answers",
    "find_measure",
    "fleiss_kappa",
    "gwet_ac",
    "in_words",
    "item_agreement",
    "krippendorff_alpha",
    "measures",
    "multilabel_error_rate",
    "multilabel_manhattan",
    "pairwise",
    "percent_agreement",
    "randolph_kappa",
    "ranks",
    "scott_pi",
    "split_options",
]


@by_kind(read=as_answers)
def agree(
    answers: Any,
    measures: Sequence[str] | str | None = None,
    *,
    scale: WeightsLike = "auto",
    weights: WeightsLike | None = None,
    by: By | None = None,
    multiple: bool = False,
    mark: str = "|",
    min_overlap: int = 1,
    resamples: int = 1000,
    confidence: float = 0.95,
    interval: IntervalKind = "percentile",
    seed: int = 0,
    progress: Callable[[int, int], None] | None = None,
) -> Any:
    """Return how much annotators agree.

    Settings are those of `agree_on_labels`. Answers of other kinds than classes and numbers have
    the measures of their kind; they take `resamples`, `confidence`, `seed` and `progress`.

    Examples
    --------
    >>> from dissensus import Annotations
    >>> annotations = Annotations.from_matrix([[1, 1, 1], [2, 2, 1], [2, 2, 2], [1, 2, 2]])
    >>> round(agree(annotations, "alpha", resamples=0)["alpha"].value, 3)
    0.371
    """
    raise NotImplementedError


agree.for_kind("classes", "numbers")(agree_on_labels)
agree.for_kind(*KINDS)(agree_on_answers)
