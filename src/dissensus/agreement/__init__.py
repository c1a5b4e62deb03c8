"""Inter-annotator agreement.

Most measures compare the label pairs of items, so items may have any number of labels; those with
fewer than two do not count.

    votes ─ItemStatistics─▶ SufficientStatistics ─formula─▶ value   `coefficients`, `values`
    co-annotated items ─▶ kappa of every pair of annotators         `pairs`
    bootstrap samples of items ─▶ intervals                         `intervals`, `estimating`
"""

from __future__ import annotations

from .breakdown import item_agreement, split_options
from .by_kind import KindAgreement, agreement_by_kind
from .coefficients import Measure, find_measure, measures
from .estimating import agree
from .pairs import Pairs, cohen_kappa, pairwise, scott_pi
from .result import Agreement, AnnotatorAgreement, ClassAgreement, Estimate, ItemAgreement, in_words
from .values import (
    brennan_prediger,
    conger_kappa,
    fleiss_kappa,
    gwet_ac,
    krippendorff_alpha,
    percent_agreement,
    randolph_kappa,
)

__all__ = [
    "Agreement",
    "AnnotatorAgreement",
    "ClassAgreement",
    "Estimate",
    "ItemAgreement",
    "KindAgreement",
    "Measure",
    "Pairs",
    "agree",
    "agreement_by_kind",
    "brennan_prediger",
    "cohen_kappa",
    "conger_kappa",
    "find_measure",
    "fleiss_kappa",
    "gwet_ac",
    "in_words",
    "item_agreement",
    "krippendorff_alpha",
    "measures",
    "pairwise",
    "percent_agreement",
    "randolph_kappa",
    "scott_pi",
    "split_options",
]
