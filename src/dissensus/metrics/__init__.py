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

from .evaluation import Evaluation
from .evaluation import Score
from .evaluation import evaluate
from .evaluation import evaluate_answers
from .scores import annotator_errors
from .scores import multilabel_error_rate
from .scores import multilabel_manhattan
from .scores import ranks
from typing import Any
from typing import overload
from ..answers import Answers
from ..errors import OptionError
from .agreement_result import item_agreement
from .agreement_result import split_options
from .pairs import KindAgreement
from .pairs import agreement_by_kind
from .coefficients import Measure
from .coefficients import find_measure
from .coefficients import measures
from .distances import AnswerAgreement
from .distances import agree_on_answers
from .agreement import agree_on_labels
from .pairs import Pairs
from .pairs import cohen_kappa
from .pairs import pairwise
from .pairs import scott_pi
from .agreement_result import Agreement
from .agreement_result import AnnotatorAgreement
from .agreement_result import ClassAgreement
from .agreement_result import Estimate
from .agreement_result import ItemAgreement
from .agreement_result import in_words
from .agreement import brennan_prediger
from .agreement import conger_kappa
from .agreement import fleiss_kappa
from .agreement import gwet_ac
from .agreement import krippendorff_alpha
from .agreement import percent_agreement
from .agreement import randolph_kappa

__all__ = ['Agreement', 'AnnotatorAgreement', 'AnswerAgreement', 'ClassAgreement', 'Estimate', 'Evaluation', 'ItemAgreement', 'KindAgreement', 'Measure', 'Pairs', 'Score', 'agree', 'agree_on_answers', 'agree_on_labels', 'agreement_by_kind', 'annotator_errors', 'brennan_prediger', 'cohen_kappa', 'conger_kappa', 'evaluate', 'evaluate_answers', 'find_measure', 'fleiss_kappa', 'gwet_ac', 'in_words', 'item_agreement', 'krippendorff_alpha', 'measures', 'multilabel_error_rate', 'multilabel_manhattan', 'pairwise', 'percent_agreement', 'randolph_kappa', 'ranks', 'scott_pi', 'split_options']


@overload
def agree(annotations: Answers, **settings: Any) -> AnswerAgreement: ...


@overload
def agree(annotations: Any, measures: Any = ..., **settings: Any) -> Agreement: ...


def agree(annotations: Any, measures: Any = None, **settings: Any) -> Agreement | AnswerAgreement:
    """Return how much annotators agree.

    Answers of other kinds than classes and numbers go to `agree_on_answers`, everything else to
    `agree_on_labels`; both take `resamples`, `confidence`, `seed` and `progress`.

    Examples
    --------
    >>> from dissensus import Annotations
    >>> annotations = Annotations.from_matrix([[1, 1, 1], [2, 2, 1], [2, 2, 2], [1, 2, 2]])
    >>> round(agree(annotations, "alpha", resamples=0)["alpha"].value, 3)
    0.371
    """
    if not isinstance(annotations, Answers):
        return agree_on_labels(annotations, measures, **settings)
    if measures is not None:
        raise OptionError(f"measures are those of the kind: {annotations.kind}")
    return agree_on_answers(annotations, **settings)
