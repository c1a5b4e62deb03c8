"""How much annotators agree, before anybody asks who is right.

Most measures look at the pairs of labels that an item got, so items may have any number of labels;
those with fewer than two say nothing. The cost is that of one walk over the annotations.

    votes ─Terms─▶ sums over items ─formula─▶ coefficient      `coefficients`, `values`
    meetings of two annotators ─▶ kappa of every pair          `pairs`, `clusters`
    draws of items ─▶ the same sums again ─▶ intervals         `intervals`, `estimating`
"""

from __future__ import annotations

from ._measures import Measure, find_measure, measures
from .clusters import Clusters, cluster
from .estimating import agree
from .options import split_options
from .pairs import Pairs, cohen_kappa, pairwise, scott_pi
from .result import Agreement, AnnotatorAgreement, ClassAgreement, Estimate, ItemAgreement
from .shares import item_agreement
from .values import (
    brennan_prediger,
    conger_kappa,
    fleiss_kappa,
    gwet_ac,
    krippendorff_alpha,
    percent_agreement,
    randolph_kappa,
)
from .words import in_words

__all__ = [
    "Agreement",
    "AnnotatorAgreement",
    "ClassAgreement",
    "Clusters",
    "Estimate",
    "ItemAgreement",
    "Measure",
    "Pairs",
    "agree",
    "brennan_prediger",
    "cluster",
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
