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

from .agreement import (
    agree,
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
    MeanDistance,
    in_words,
    item_agreement,
    split_options,
)
from .answer_scores import Things
from .coefficients import Measure, find_measure, measures
from .distances import Distances
from .evaluation import Evaluation, Score, evaluate
from .pairs import KindAgreement, Pairs, agreement_by_kind, cohen_kappa, pairwise, scott_pi
from .scores import annotator_errors, multilabel_error_rate, multilabel_manhattan, ranks

__all__ = [
    "Agreement",
    "AnnotatorAgreement",
    "ClassAgreement",
    "Distances",
    "Estimate",
    "Evaluation",
    "ItemAgreement",
    "KindAgreement",
    "MeanDistance",
    "Measure",
    "Pairs",
    "Score",
    "Things",
    "agree",
    "agreement_by_kind",
    "annotator_errors",
    "brennan_prediger",
    "cohen_kappa",
    "conger_kappa",
    "evaluate",
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
