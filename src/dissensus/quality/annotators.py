"""Annotator quality: whose labels follow the items, and how everybody uses the labels.

Every annotator is compared with the others, and where there are known items with these first:
classes with the shares of their labels, ordered labels and numbers under a model of severity and
scale use. `verdicts.py` summarizes the evidence in a word and a sentence. Verdicts do not depend on
the consensus that accuracy and confusion matrices are compared with.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import numpy as np

from ..aggregation.aggregation import ClassAggregation
from ..answers.annotations import NUMERIC, Annotations
from ..answers.gold import gold_codes, gold_values
from ..answers.identifiability import identifiable_annotators
from ..answers.numbers import Numbers
from ..base.arrays import Floats, Integers
from ..base.probability import Proportion, proportion
from ..dispatch import by_kind
from ..errors import DataError, OptionError
from ..formats import as_answers, as_truth
from ..registry import aggregators
from .annotator_scores import AnnotatorScores
from .copying import copies
from .label_scores import by_annotator
from .leave_one_out import leave_one_out
from .verdicts import annotator_behaviour, class_evidence, judge, rating_evidence, rating_scores

__all__ = ["METHOD", "AnnotatorScores", "check_fitted", "check_level", "identify"]

METHOD = "dawid-skene-map"  # fitted where no result is given
SCALES = ("nominal", "ordinal", *NUMERIC)
_STEPS = 5


@by_kind(read=as_answers)
def identify(
    answers: Any,
    result: Any = None,
    *,
    scale: str | None = None,
    method: str = "auto",
    gold: Any = None,
    models: bool = False,
    communities: int = 0,
    copying: bool = True,
    confidence: float = 0.95,
    seed: int = 0,
    progress: Callable[[int, int], None] | None = None,
) -> AnnotatorScores:
    """Score every annotator against the others.

    Of kinds other than classes and numbers, annotators and items are compared with the consensus,
    and the result is `AnswerScores`.

    Parameters
    ----------
    answers
        Answers of any kind, a table, or a path that `read` takes.
    result
        A fitted consensus to compare with; by default of classes that of `dawid-skene-map`, from
        whose posterior an annotator's own labels are taken out, and of other kinds that of
        `method`. Verdicts on classes do not depend on it, and numbers have none.
    scale
        The scale of labels: nominal, ordinal, interval or ratio; by default that of the
        annotations.
    method
        The method of the consensus, for kinds other than classes and numbers.
    gold
        What is known, as `{item: answer}`, a pandas Series, a table or a file.
    models
        Whether to fit GLAD and MACE for their abilities and competences; for classes.
    communities
        Number of communities to fit with `cbcc`; with 0, those of the result if it has any.
    copying
        Whether to look for pairs who agree too much; not among numbers.
    confidence
        The confidence level of intervals of accuracies. Those of correlations cover 95 %, those
        of spam scores 90 %, those of level, slope and noise 99 %.
    seed
        Random seed.
    progress
        Called with the steps done and their number.

    Examples
    --------
    >>> from dissensus import simulate
    >>> crowd = simulate("hammer-spammer[ratio=0.4]", n_items=100, n_annotators=5, n_classes=3)
    >>> scores = identify(crowd.annotations)
    >>> scores.verdict.tolist()
    ['attentive', 'attentive', 'attentive', 'random', 'random']
    >>> scores.evidence[4]
    'Correlation with the others 0.01 (-0.13 to 0.15) over 100 labels; answers ignore the items ...'
    """
    raise NotImplementedError


@identify.for_kind("numbers")
def identify_numbers(
    numbers: Numbers, *, scale: str | None, gold: Any, confidence: float
) -> AnnotatorScores:
    """Score annotators who gave numbers."""
    check_level(confidence)
    scale = _scale(scale or "interval")
    if scale not in NUMERIC:
        raise OptionError(f"these are numbers; on a scale that is {scale}, labels are classes")
    return _of_numbers(numbers, scale, as_truth(gold), confidence)


@identify.for_kind("classes")
def identify_classes(
    annotations: Annotations,
    result: ClassAggregation | None,
    *,
    scale: str | None,
    gold: Any,
    models: bool,
    communities: int,
    copying: bool,
    confidence: float,
    seed: int,
    progress: Callable[[int, int], None] | None,
) -> AnnotatorScores:
    """Score annotators who gave classes; of those on a scale of numbers, as numbers."""
    check_level(confidence)
    progress = progress or (lambda _step, _total: None)
    gold = as_truth(gold)
    scale = _scale(scale or annotations.scale)
    if scale in NUMERIC:
        return _of_numbers(as_answers(annotations, kind="numbers"), scale, gold, confidence)
    fit = partial(check_fitted, annotations, None, gold, seed)
    result = check_fitted(annotations, result, gold, seed)
    truth = gold_codes(annotations, gold)
    progress(1, _STEPS)
    fitted = leave_one_out(result, truth)
    behaviour = annotator_behaviour(annotations)
    progress(2, _STEPS)
    if scale == "ordinal":
        score = rating_scores(annotations)
        values = None if truth is None else np.where(truth >= 0, score[truth], np.nan)
        basis = rating_evidence(annotations, score[annotations.label], behaviour, values)
    else:
        basis = class_evidence(annotations, behaviour, truth)
    progress(3, _STEPS)
    identifiable = identifiable_annotators(annotations, result.is_identifiable)
    pairs = copies(annotations, result, gold=gold, fitted=fitted, seed=seed) if copying else None
    progress(4, _STEPS)
    ability, competence = _model_scores(result, models, fit)
    return AnnotatorScores(
        annotations=annotations,
        scale=scale,
        method=result.method,
        behaviour=behaviour,
        basis=basis,
        code=judge(basis, behaviour.top_share),
        gold=_gold_accuracy(annotations, truth, confidence),
        peers=fitted.comparison.of(identifiable[annotations.annotator], identifiable),
        ability=ability,
        competence=competence,
        community=_communities(result, communities, fit),
        copies=pairs,
        confidence=confidence,
    )


def _of_numbers(
    numbers: Numbers, scale: str, gold: Mapping[Any, Any] | None, confidence: float
) -> AnnotatorScores:
    """Return scores of annotators who gave numbers."""
    behaviour = annotator_behaviour(numbers)
    truth = gold_values(numbers, gold) if gold else None
    basis = rating_evidence(numbers, numbers.value, behaviour, truth)
    nothing = np.full(numbers.n_annotators, np.nan)
    nobody = np.full(numbers.n_annotators, -1)
    code = judge(basis, behaviour.top_share)
    return AnnotatorScores(
        annotations=numbers,
        scale=scale,
        method="rater model",
        behaviour=behaviour,
        basis=basis,
        code=code,
        gold=None,
        peers=None,
        ability=nothing,
        competence=nothing,
        community=nobody,
        copies=None,
        confidence=confidence,
    )


def check_level(confidence: float) -> None:
    """Refuse an impossible level of intervals."""
    if not 0 < confidence < 1:
        raise OptionError(f"confidence = {confidence}, but it must be above 0 and below 1")


def _scale(scale: str) -> str:
    """Return the name of a scale, with `numeric` resolved."""
    scale = "interval" if scale == "numeric" else scale
    if scale not in SCALES:
        raise OptionError(f"no scale {scale!r}; there are {', '.join(SCALES)}")
    return scale


def _gold_accuracy(
    annotations: Annotations, gold: Integers | None, confidence: float
) -> Proportion | None:
    """Return how often annotators are right on known items."""
    if gold is None:
        return None
    truth = gold[annotations.item]
    right = by_annotator(annotations, (truth >= 0) & (truth == annotations.label))
    return proportion(right, by_annotator(annotations, truth >= 0), confidence)


def check_fitted(
    annotations: Annotations,
    result: ClassAggregation | None,
    gold: Mapping[Any, Any] | None = None,
    seed: int = 0,
    method: str = METHOD,
) -> ClassAggregation:
    """Return a result that belongs to the annotations, fitted if none is given."""
    if result is None:
        return aggregators.create(method).fit(annotations, gold=gold, seed=seed)
    if not isinstance(result, ClassAggregation):
        raise OptionError(f"a result is what `aggregate` returns, not {type(result).__name__}")
    if result.answers is not annotations and result.answers != annotations:
        raise DataError("the result belongs to other annotations; aggregate these")
    return result


def _model_scores(
    result: ClassAggregation, requested: bool, fit: Callable[..., ClassAggregation]
) -> tuple[Floats, Floats]:
    """Return the abilities of GLAD and the competences of MACE."""
    annotations, out = result.answers, []
    for name, parameter in (("glad", "ability"), ("mace", "competence")):
        values = getattr(result.params, parameter, None)
        if values is None:
            values = getattr(fit(name).params, parameter) if requested else np.nan
        out.append(np.where(annotations.labels_per_annotator > 0, values, np.nan))
    return out[0], out[1]


def _communities(
    result: ClassAggregation, number: int, fit: Callable[..., ClassAggregation]
) -> Integers:
    """Return the most probable community of every annotator."""
    if number > 0:
        result = fit(f"cbcc[L={number}]")
    member = getattr(result.params, "member", None)
    if member is None:
        return np.full(result.answers.n_annotators, -1)
    return np.where(result.answers.labels_per_annotator > 0, member.argmax(axis=1), -1)
