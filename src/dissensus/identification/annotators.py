"""Annotator quality: every annotator compared with the consensus of the others.

The labels of an annotator are compared with the leave-one-out posterior of the items, which gives
accuracy and a confusion matrix, its spam score with an interval, drift over time, and pairs who
agree too much. `verdicts.py` summarizes the scores in a word and a sentence.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import numpy as np

from .._probability import normalize
from .._relation import Floats, Integers
from ..aggregation.dawid_skene_map import pseudo_counts
from ..annotations import Annotations
from ..errors import DataError, OptionError
from ..readers import as_annotations
from ..registry import aggregators
from ..result import Aggregation, gold_codes
from .annotator_scores import AnnotatorScores
from .behaviour import annotator_behaviour, time_order
from .copying import copies
from .label_sums import by_annotator
from .leave_one_out import PeerComparison, leave_one_out
from .proportions import difference_p_value, proportion
from .spam import mutual_information, spam_interval, spam_score, trace
from .verdicts import judge, typical_accuracy

__all__ = ["METHOD", "AnnotatorScores", "check_fitted", "identify"]

METHOD = "dawid-skene-map"  # fitted where no result is given
_MODELS = 100_000  # with more labels than this, GLAD and MACE are fitted only on request
_STRENGTH, _ACCURACY = 4.0, 0.7  # of the prior on confusion matrices, as in dawid-skene-map
_MIN_LABELS = 3.0  # labels of a true class from which on it can be the worst
_STEPS = 6


def identify(
    annotations: Annotations | Any,
    result: Aggregation | None = None,
    *,
    gold: Mapping[Any, Any] | None = None,
    models: bool | None = None,
    communities: int = 0,
    copying: bool = True,
    confidence: float = 0.95,
    seed: int = 0,
    progress: Callable[[int, int], None] | None = None,
) -> AnnotatorScores:
    """Score every annotator against the others.

    Parameters
    ----------
    annotations
        Annotations, a table, or a path that `read` takes.
    result
        A fitted consensus to compare with; by default that of `dawid-skene-map`. An annotator's
        own labels are taken out of its posterior.
    gold
        Known labels, `{item: label}`.
    models
        Whether to fit GLAD and MACE for their abilities and competences; by default up to
        100,000 labels.
    communities
        Number of communities to fit with `cbcc`; with 0, those of the result if it has any.
    copying
        Whether to look for pairs who agree too much.
    confidence
        The confidence level of intervals of accuracies. Those of spam scores cover 90 %.
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
    ['expert', 'expert', 'expert', 'spammer', 'spammer']
    >>> scores.evidence[4]
    'Right on 36% of 100 labels (27% to 46%; guessing 34%, others 100%); spam score 0.01 ...'
    """
    if not 0 < confidence < 1:
        raise OptionError(f"confidence = {confidence}, but it must be above 0 and below 1")
    annotations = as_annotations(annotations)
    result = check_fitted(annotations, result, gold, seed)
    fit = partial(check_fitted, annotations, None, gold, seed)
    progress = progress or (lambda _done, _total: None)
    known = gold_codes(annotations, gold)
    progress(1, _STEPS)
    fitted = leave_one_out(result, known)
    peers = fitted.comparison
    progress(2, _STEPS)
    n_classes = annotations.n_classes
    counts = peers.counts + pseudo_counts(_STRENGTH, _ACCURACY, n_classes).T
    confusion = normalize(counts)
    prior = normalize(peers.counts.sum(axis=(0, 2)) + 1)
    spam = spam_score(confusion)
    _, low, high = spam_interval(counts, prior=0.0)
    credit = by_annotator(annotations, np.nan_to_num(peers.credit))
    accuracy = proportion(credit, peers.scored, confidence)
    given, true = peers.counts.sum(axis=1), peers.counts.sum(axis=2)  # (annotator, class)
    guess = (normalize(given) * normalize(true)).sum(axis=1)
    gold_accuracy = None
    if known is not None:
        truth = known[annotations.item]
        right = by_annotator(annotations, (truth >= 0) & (truth == annotations.label))
        gold_accuracy = proportion(right, by_annotator(annotations, truth >= 0), confidence)
    progress(3, _STEPS)
    pairs = copies(annotations, result, gold=gold, fitted=fitted, seed=seed) if copying else None
    progress(4, _STEPS)
    ability, competence = _model_scores(result, models, fit)
    progress(5, _STEPS)
    low = np.minimum(low, spam)  # independent rows are never exactly equal
    information = mutual_information(confusion, prior)
    scores = np.stack([guess, trace(confusion), spam, low, high, information])
    guess, traces, spam, low, high, information = np.where(peers.scored > 0, scores, np.nan)
    return AnnotatorScores(
        annotations,
        result.method,
        annotator_behaviour(annotations),
        accuracy,
        gold_accuracy,
        guess,
        peers.certainty,
        typical_accuracy(accuracy, guess),
        confusion,
        *_worst_class(peers.counts, confusion),
        *_bias(given, true),
        traces,
        spam,
        low,
        high,
        information,
        ability,
        competence,
        *_drift(annotations, peers),
        _communities(result, communities, fit),
        pairs,
        judge(accuracy, high, guess, peers.certainty, n_classes),
    )


def check_fitted(
    annotations: Annotations,
    result: Aggregation | None,
    gold: Mapping[Any, Any] | None = None,
    seed: int = 0,
    method: str = METHOD,
) -> Aggregation:
    """Return a result that belongs to the annotations, fitted if none is given."""
    if result is None:
        return aggregators.create(method).fit(annotations, gold=gold, seed=seed)
    if result.annotations is not annotations and result.annotations != annotations:
        raise DataError("the result belongs to other annotations; aggregate these")
    return result


def _worst_class(counts: Floats, confusion: Floats) -> tuple[Integers, Floats]:
    """Return the class with the lowest recall of every annotator, and this recall."""
    recall = np.einsum("att->at", confusion)
    recall = np.where(counts.sum(axis=2) >= _MIN_LABELS, recall, np.inf)
    least = recall.min(axis=1, initial=np.inf)
    known = np.isfinite(least)
    return np.where(known, recall.argmin(axis=1), -1), np.where(known, least, np.nan)


def _bias(given: Floats, true: Floats) -> tuple[Floats, Integers]:
    """Return the total variation distance of given and true classes, and the overused class."""
    total = true.sum(axis=1)
    with np.errstate(invalid="ignore"):
        over = (given - true) / total[:, None]
    distance = np.abs(over).sum(axis=1) / 2
    return distance, np.where(total > 0, np.nan_to_num(over, nan=-1.0).argmax(axis=1), -1)


def _drift(annotations: Annotations, peers: PeerComparison) -> tuple[Floats, Floats, Floats]:
    """Return the accuracy in both halves of every annotator's time, and the p-value of a change."""
    n, order = annotations.n_annotators, time_order(annotations)
    if order is None:
        nothing = np.full(n, np.nan)
        return nothing, nothing, nothing
    order = order[~np.isnan(peers.credit[order])]
    annotator = annotations.annotator[order]
    labels = np.bincount(annotator, minlength=n)
    position = np.arange(len(order)) - np.repeat(np.cumsum(labels) - labels, labels)
    later = position >= np.repeat((labels + 1) // 2, labels)
    cell = annotator.astype(np.int64) + n * later
    count, right = (
        np.bincount(cell, values, 2 * n).reshape(2, n).astype(float)
        for values in (None, peers.credit[order])
    )
    with np.errstate(invalid="ignore"):
        first, second = right / count
    return first, second, difference_p_value(right, count)


def _model_scores(
    result: Aggregation, requested: bool | None, fit: Callable[[str], Aggregation]
) -> tuple[Floats, Floats]:
    """Return the abilities of GLAD and the competences of MACE."""
    annotations, out = result.annotations, []
    may_fit = len(annotations) <= _MODELS if requested is None else requested
    for name, parameter in (("glad", "ability"), ("mace", "competence")):
        values = getattr(result.params, parameter, None)
        if values is None:
            values = getattr(fit(name).params, parameter) if may_fit else np.nan
        out.append(np.where(annotations.labels_per_annotator > 0, values, np.nan))
    return out[0], out[1]


def _communities(result: Aggregation, number: int, fit: Callable[[str], Aggregation]) -> Integers:
    """Return the most probable community of every annotator."""
    if number > 0:
        result = fit(f"cbcc[L={number}]")
    member = getattr(result.params, "member", None)
    if member is None:
        return np.full(result.annotations.n_annotators, -1)
    return np.where(result.annotations.labels_per_annotator > 0, member.argmax(axis=1), -1)
