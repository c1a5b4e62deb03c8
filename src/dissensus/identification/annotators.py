"""Whom to trust: every annotator beside the consensus of the others.

Nobody votes for themselves. An annotator's labels are compared with the belief about the items that
is left when these labels are taken away; then come the matrix of what they make of every class, its
spam score with an interval, changes over time, and pairs who agree too much. `verdicts.py` puts it
into a word and a sentence.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from .._probability import normalize
from .._relation import Floats, Integers
from ..aggregation.dawid_skene_map import trust
from ..annotations import Annotations
from ..errors import DataError, OptionError
from ..registry import aggregators
from ..result import Aggregation, gold_codes
from .annotator_scores import AnnotatorScores
from .behaviour import habits, in_time
from .copying import copies
from .leave_one_out import Record, others
from .proportions import Proportion, chance_of_difference, proportion
from .spam import mutual_information, spam_interval, spam_score, trace
from .verdicts import judge, typical_accuracy

__all__ = ["AnnotatorScores", "identify"]

METHOD = "dawid-skene-map"  # what is fitted where no result is given
MODELS = 100_000  # with more labels than this, GLAD and MACE are fitted only when asked for
STRENGTH, ACCURACY = 4.0, 0.7  # of the prior behind confusion matrices, as in dawid-skene-map
SEEN = 3.0  # labels of a true class from which on it can be somebody's worst


def identify(
    annotations: Annotations,
    result: Aggregation | None = None,
    *,
    gold: Mapping[Any, Any] | None = None,
    models: bool | None = None,
    communities: int = 0,
    copying: bool = True,
    level: float = 0.95,
    seed: int = 0,
    progress: Callable[[int, int], None] | None = None,
) -> AnnotatorScores:
    """Score every annotator against the others, and say whom to trust.

    Parameters
    ----------
    annotations
        The annotations.
    result
        A fitted crowd to compare with; by default one is fitted with `dawid-skene-map`. Under a
        model, an annotator's labels are taken out of the belief exactly; under votes, the votes.
    gold
        Known labels, `{item: label}`.
    models
        Whether to fit GLAD and MACE for their abilities and competences; by default up to a
        hundred thousand labels.
    communities
        How many communities to look for with `cbcc`; with 0, those of the result if it has any.
    copying
        Whether to look for pairs who agree too much.
    level
        What the intervals of accuracies cover. Those of spam scores cover 90 %.
    seed
        Decides what is random.
    progress
        Called with the steps that are done and how many there are.

    Examples
    --------
    >>> from dissensus import simulate
    >>> made = simulate("hammer-spammer[ratio=0.4]", n_items=100, n_annotators=5, n_classes=3)
    >>> found = identify(made.annotations)
    >>> found.verdict.tolist()
    ['expert', 'expert', 'expert', 'spammer', 'spammer']
    >>> found.evidence[4]
    'Right on 36% of 100 labels (27% to 46%; guessing 34%, others 100%); spam score 0.01 ...'
    """
    if not 0 < level < 1:
        raise OptionError(f"level = {level}, but it must be above 0 and below 1")
    if (
        result is not None
        and result.annotations is not annotations
        and result.annotations != annotations
    ):
        raise DataError("the result speaks of other annotations; aggregate these ones")
    progress = progress or (lambda _done, _total: None)
    known = gold_codes(annotations, gold)
    fitted = result or aggregators.create(METHOD).fit(annotations, gold=gold, seed=seed)
    progress(1, _STEPS)
    posteriors = others(fitted, known)
    found = posteriors.record
    progress(2, _STEPS)
    n_classes = annotations.n_classes
    counts = found.counts + trust(STRENGTH, ACCURACY, n_classes).T
    confusion = normalize(counts)
    prior = normalize(found.counts.sum(axis=(0, 2)) + 1)
    spam = spam_score(confusion)
    _, low, high = spam_interval(counts, prior=0.0)
    usual = habits(annotations)
    accuracy = proportion(_by_annotator(annotations, found.credit), found.scored, level)
    given, true = found.counts.sum(axis=1), found.counts.sum(axis=2)  # (annotator, class)
    guess = np.where(found.scored > 0, (normalize(given) * normalize(true)).sum(axis=1), np.nan)
    progress(3, _STEPS)
    pairs = copies(annotations, fitted, gold=gold, view=posteriors, seed=seed) if copying else None
    progress(4, _STEPS)
    ability, competence = _models(annotations, fitted, models, gold, seed)
    progress(5, _STEPS)
    first, second, drift = _halves(annotations, found)
    silent = found.scored == 0
    return AnnotatorScores(
        annotations,
        fitted.method,
        usual,
        accuracy,
        None if known is None else _against_gold(annotations, known, level),
        guess,
        found.certainty,
        typical_accuracy(accuracy, guess),
        confusion,
        *_worst(found.counts, confusion),
        *_bias(given, true),
        np.where(silent, np.nan, trace(confusion)),
        np.where(silent, np.nan, spam),
        np.where(silent, np.nan, np.minimum(low, spam)),  # independent rows never look equal
        np.where(silent, np.nan, high),
        np.where(silent, np.nan, mutual_information(confusion, prior)),
        ability,
        competence,
        first,
        second,
        drift,
        _communities(annotations, fitted, communities, gold, seed),
        pairs,
        judge(accuracy, np.where(silent, np.nan, high), guess, found.certainty, n_classes),
    )


_STEPS = 6


def _by_annotator(annotations: Annotations, value: Floats) -> Floats:
    """Return values of annotations, added up for every annotator; NaN counts nothing."""
    heard = ~np.isnan(value)
    return np.bincount(annotations.annotator[heard], value[heard], annotations.n_annotators).astype(
        float
    )


def _against_gold(annotations: Annotations, gold: Integers, level: float) -> Proportion:
    true = gold[annotations.item]
    right = np.where(true >= 0, true == annotations.label, np.nan)
    among = np.bincount(
        annotations.annotator[true >= 0], minlength=annotations.n_annotators
    ).astype(float)
    return proportion(_by_annotator(annotations, right), among, level)


def _worst(counts: Floats, confusion: Floats) -> tuple[Integers, Floats]:
    """Return the class that every annotator recognises least, and how often they do."""
    recall = np.einsum("att->at", confusion)
    recall = np.where(counts.sum(axis=2) >= SEEN, recall, np.inf)
    position = recall.argmin(axis=1)
    least = recall.min(axis=1, initial=np.inf)
    return np.where(np.isinf(least), -1, position), np.where(np.isinf(least), np.nan, least)


def _bias(given: Floats, true: Floats) -> tuple[Floats, Integers]:
    """Return the share of labels in the wrong class in all, and the class that is overused."""
    total = true.sum(axis=1)
    with np.errstate(invalid="ignore"):
        over = (given - true) / total[:, None]
    moved = np.abs(over).sum(axis=1) / 2
    return moved, np.where(total > 0, np.nan_to_num(over, nan=-1.0).argmax(axis=1), -1)


def _halves(annotations: Annotations, found: Record) -> tuple[Floats, Floats, Floats]:
    """Return the accuracy in both halves of every annotator's time, and the test of a change."""
    nothing = np.full(annotations.n_annotators, np.nan)
    order = in_time(annotations)
    if order is None:
        return nothing, nothing, nothing
    order = order[~np.isnan(found.credit[order])]
    who = annotations.annotator[order]
    labels = np.bincount(who, minlength=annotations.n_annotators)
    position = np.arange(len(order)) - np.repeat(np.cumsum(labels) - labels, labels)
    later = position >= np.repeat((labels + 1) // 2, labels)
    count, right = (
        np.stack(
            [
                np.bincount(who[half], value[half], annotations.n_annotators).astype(float)
                for half in (~later, later)
            ]
        )
        for value in (np.ones(len(order)), found.credit[order])
    )
    with np.errstate(invalid="ignore"):
        first, second = right / count
    return first, second, chance_of_difference(right, count)


def _models(
    annotations: Annotations,
    fitted: Aggregation,
    wanted: bool | None,
    gold: Mapping[Any, Any] | None,
    seed: int,
) -> tuple[Floats, Floats]:
    """Return the abilities of GLAD and the competences of MACE."""
    out = []
    for name, what in (("glad", "ability"), ("mace", "competence")):
        have = getattr(fitted.params, what, None)
        if have is None and (len(annotations) <= MODELS if wanted is None else wanted):
            fit = aggregators.create(name).fit(annotations, gold=gold, seed=seed)
            have = getattr(fit.params, what)
        if have is None:
            have = np.full(annotations.n_annotators, np.nan)
        out.append(np.where(annotations.labels_per_annotator > 0, have, np.nan))
    return out[0], out[1]


def _communities(
    annotations: Annotations,
    fitted: Aggregation,
    number: int,
    gold: Mapping[Any, Any] | None,
    seed: int,
) -> Integers:
    """Return the community that every annotator most probably belongs to."""
    member = getattr(fitted.params, "member", None)
    if number > 0:
        fit = aggregators.create(f"cbcc[L={number}]").fit(annotations, gold=gold, seed=seed)
        member = fit.params.member
    if member is None:
        return np.full(annotations.n_annotators, -1)
    return np.where(annotations.labels_per_annotator > 0, member.argmax(axis=1), -1)
