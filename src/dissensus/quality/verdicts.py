"""A verdict on every annotator, what it rests on, and a sentence with the reason.

Verdicts rest on how far labels follow the items, not on how often they agree: somebody who rates
all items two points higher follows them, too. Classes are compared with the shares of the others'
labels, ordered labels and numbers with the mean of the others under a model of severity and scale
use. The behaviour of annotators, as amount, variety and speed, needs no truth. The first verdict
that holds:

    constant        one answer 95 % of the time, no more than by chance related to the items, and a
                    typical annotator would not answer so alike
    reversed        the correlation with the others is surely negative
    random          the probability that answers ignore the items is at least 0.9
    likely random   at least 0.5; known items would settle it
    too few labels  fewer than 10, or too few to rule out random answers
    harsh, lenient  level surely a quarter of a standard deviation below or above the median's
    central         slope surely below 0.8 of the median's
    extreme         slope surely above 1.25 of the median's
    noisy           noise, relative to the slope, surely above 1.25 times the median's
    attentive       all others

None of the first four is given to an annotator who surely follows 10 known items or more, and none
with fewer than 10 labels on items of others. The styles, harsh to noisy, are for ordered labels and
numbers, and no faults. Only random and constant annotators are proposed to be left out.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.special import chdtri, entr

from ..answers.annotations import Annotations
from ..answers.base import Relation
from ..answers.numbers import Numbers
from ..base.arrays import Array, Floats, FrozenArrays, Integers
from ..base.names import Names, as_names, decode
from .correlation import class_correlation, known_chunks, log_typical, rating_correlations
from .label_scores import agreement_with_others, median_by
from .leave_one_out import has_other_labels, leave_one_out_votes
from .rater_model import Following, RaterModel, fit_rater_model, following

if TYPE_CHECKING:
    from .annotator_scores import AnnotatorScores


UNKNOWN = "too few labels"
ATTENTIVE = "attentive"
FAULTS = ("random", "constant", "reversed", "likely random")
LEFT_OUT = ("random", "constant")  # whose labels may be left out
FLAGGED = ("random", "likely random", "constant")  # whose labels may ignore the items
STYLES = ("noisy", "harsh", "lenient", "central", "extreme")
# The worst first.
VERDICTS = (*FAULTS, UNKNOWN, *STYLES, ATTENTIVE)

ENOUGH = 10  # labels for a verdict; known items for one by them
ONE_ANSWER = 0.95  # share of one answer from which on it is always given
UNTYPICAL = float(np.log(0.01))  # log probability below which typical annotators vary more
RELATED = 1.96  # standard deviations above which labels follow the items
REVERSED = -3.1  # standard deviations
RANDOM, LIKELY, POSSIBLE = 0.9, 0.5, 0.05  # probabilities of random answers
CLOSE = 0.2  # correlation above which nobody is random
FOLLOWS_GOLD = 2.33  # standard deviations
MINOR = 5  # labels outside the commonest class, without which classes show nothing
SHIFTED = 0.25  # standard deviations of labels
NARROW, WIDE = 0.8, 1.25  # slope, and noise, relative to the median
DRIFTED = 0.01  # p-value of a change over time that is reported, over all annotators
_ORDINARY = 0.5  # highest probability of random answers of those whose median is usual
_CONFIDENCE = 0.99  # of the intervals of styles
_LEAST_SLOPE = 0.25  # of the median, where it divides noise


@dataclass(frozen=True, eq=False)
class Behaviour(FrozenArrays):
    """Behaviour of every annotator.

    Attributes
    ----------
    labels
        Number of labels.
    classes_used
        Number of different classes.
    top_share
        Share of the most frequent class.
    top_code, top_label
        The most frequent class or value.
    entropy
        Entropy of the labels in nats: 0 for one class only.
    longest_run
        Longest run of equal labels in the order of time; NaN without times.
    seconds
        Median seconds per label; NaN without durations.
    agreement
        Share of label pairs with other annotators that are equal; NaN without any.
    """

    labels: Integers  # (annotator), as all others
    classes_used: Integers
    top_share: Floats
    top_code: Integers
    top_label: Names
    entropy: Floats
    longest_run: Floats
    seconds: Floats
    agreement: Floats


def annotator_behaviour(annotations: Annotations | Numbers) -> Behaviour:
    """Return the behaviour of every annotator."""
    codes, values = answer_codes(annotations)
    n, n_values = annotations.n_annotators, max(len(values), 1)
    cell, count = np.unique(annotations.annotator * np.int64(n_values) + codes, return_counts=True)
    owner, labels = cell // n_values, annotations.labels_per_annotator
    order = np.lexsort((-cell, count, owner))
    top = np.full(n, -1)
    top[owner[order]] = cell[order] % n_values  # the last of an annotator is the most frequent
    share = count / labels[owner]
    largest = np.zeros(n)
    np.maximum.at(largest, owner, share)
    undefined = np.full(n, np.nan)
    compare = _AGREEMENT.get(annotations.kind)
    return Behaviour(
        labels=labels,
        classes_used=np.bincount(owner, minlength=n),
        top_share=np.where(labels > 0, largest, np.nan),
        top_code=top,
        top_label=decode(values, top),
        entropy=np.where(labels > 0, np.bincount(owner, entr(share), n), np.nan),
        longest_run=longest_runs(annotations),
        seconds=_median_seconds(annotations),
        agreement=undefined if compare is None else compare(annotations),
    )


def answer_codes(annotations: Annotations | Numbers) -> tuple[Array, Names]:
    """Return the code of every answer, and the classes or different values as texts."""
    return _CODES[annotations.kind](annotations)


def _class_codes(annotations: Annotations) -> tuple[Array, Names]:
    return annotations.label, annotations.classes


def _number_codes(numbers: Numbers) -> tuple[Array, Names]:
    values, codes = np.unique(numbers.value, return_inverse=True)
    return codes, as_names([f"{value:g}" for value in values.tolist()])


_CODES: Mapping[str, Callable[[Any], tuple[Array, Names]]] = {
    "classes": _class_codes,
    "numbers": _number_codes,
}
_AGREEMENT: Mapping[str, Callable[[Any], Floats]] = {"classes": agreement_with_others}
_RATED: Mapping[str, Callable[[Any], Floats]] = {
    "classes": lambda annotations: rating_scores(annotations)[annotations.label],
    "numbers": lambda numbers: numbers.value,
}


def rated_values(answers: Annotations | Numbers) -> Floats:
    """Return the value of every answer, of ordered classes their scores: (answer)."""
    return _RATED[answers.kind](answers)


def time_order(annotations: Relation) -> Integers | None:
    """Return annotations by position, sorted by annotator, then time; `None` without times.

    Annotations without a time are left out, and so are texts that do not parse as times.
    """
    time = annotations.columns.get("time")
    if time is None or time.dtype.kind not in "iufM":
        return None
    timed = np.flatnonzero(_is_defined(time))
    return timed[np.lexsort((time[timed], annotations.annotator[timed]))]


def longest_runs(annotations: Annotations | Numbers) -> Floats:
    """Return the longest run of equal labels of every annotator in the order of time.

    >>> annotations = Annotations.from_columns("abcd", "xxxx", "0110", time=[1, 4, 3, 2])
    >>> longest_runs(annotations).tolist()
    [2.0]
    """
    longest = np.full(annotations.n_annotators, np.nan)
    order = time_order(annotations)
    if order is None or len(order) == 0:
        return longest
    annotator, label = annotations.annotator[order], answer_codes(annotations)[0][order]
    begins = np.ones(len(order), dtype=bool)
    begins[1:] = (annotator[1:] != annotator[:-1]) | (label[1:] != label[:-1])
    position = np.flatnonzero(begins)
    length = np.diff(np.append(position, len(order))).astype(float)
    np.fmax.at(longest, annotator[position], length)
    return longest


def _median_seconds(annotations: Relation) -> Floats:
    duration = annotations.columns.get("duration")
    if duration is None or duration.dtype.kind not in "iufm":
        return np.full(annotations.n_annotators, np.nan)
    timed = np.flatnonzero(_is_defined(duration))
    seconds = duration[timed]
    if seconds.dtype.kind == "m":
        seconds = seconds / np.timedelta64(1, "s")
    return median_by(annotations.annotator[timed], seconds.astype(float), annotations.n_annotators)


def _is_defined(values: Array) -> Array:
    if values.dtype.kind in "Mm":
        return ~np.isnat(values)
    return np.ones(len(values), dtype=bool) if values.dtype.kind in "iu" else ~np.isnan(values)


class Bounded(NamedTuple):
    """Estimates with the bounds of their intervals; NaN where undefined."""

    value: Floats  # (annotator)
    low: Floats
    high: Floats


class Styles(NamedTuple):
    """How annotators use an ordered scale, relative to the median annotator; 99 % intervals."""

    level: Bounded  # of labels, in their standard deviations: below 0 harsh, above lenient
    slope: Bounded  # below 1 central, above extreme
    noise: Bounded  # standard deviation of what the items leave unexplained, over the slope


class Evidence(NamedTuple):
    """What verdicts rest on."""

    following: Following
    log_typical: Floats  # (annotator): log probability that a typical annotator answers so alike
    n_minor: Floats  # (annotator): labels outside the commonest class, by them or the others
    gold_z: Floats  # (annotator): correlation with known items, in standard deviations; NaN if few
    gold_labels: Integers  # (annotator): on known items
    styles: Styles | None


def class_evidence(
    annotations: Annotations, behaviour: Behaviour, gold: Integers | None
) -> Evidence:
    """Return the evidence on annotators who give classes."""
    votes = leave_one_out_votes(annotations, gold)
    compared = has_other_labels(annotations, gold)
    correlation = class_correlation(annotations, compared, votes.chunks())
    follow = following(
        correlation.correlation, correlation.size, correlation.n_labels.astype(float)
    )
    steady = behaviour.top_share >= ONE_ANSWER
    typical = np.zeros(annotations.n_annotators)
    if steady.any():
        counts = votes.comparison.counts
        typical = log_typical(
            annotations, votes.chunks(), counts=counts, judged=steady, label=behaviour.top_code
        )
    gold_z = np.full(annotations.n_annotators, np.nan)
    gold_labels = np.zeros(annotations.n_annotators, dtype=np.int64)
    if gold is not None:
        of_known = gold[annotations.item] >= 0
        on_gold = class_correlation(annotations, of_known, known_chunks(annotations, gold))
        gold_z, gold_labels = on_gold.correlation * np.sqrt(on_gold.size - 1), on_gold.n_labels
    return Evidence(
        following=follow,
        log_typical=typical,
        n_minor=correlation.n_minor,
        gold_z=_if_enough(gold_z, gold_labels),
        gold_labels=gold_labels,
        styles=None,
    )


def rating_evidence(
    answers: Relation, value: Floats, behaviour: Behaviour, gold: Floats | None
) -> Evidence:
    """Return the evidence on annotators who rate items on an ordered scale or with numbers."""
    n = answers.n_annotators
    model = fit_rater_model(answers, value, gold)
    count = model.n_answers.astype(float)
    follow = following(model.correlation, count, count)
    enough = behaviour.labels >= ENOUGH
    often = np.quantile(behaviour.top_share[enough], 0.75) if enough.any() else 1.0
    typical = count * np.log(0.5 + 0.5 * float(often))
    gold_z, gold_labels = np.full(n, np.nan), np.zeros(n, dtype=np.int64)
    if gold is not None:
        truth = gold[answers.item]
        has_gold = np.isfinite(truth)
        annotator, own, truth = (
            answers.annotator[has_gold].astype(np.int64),
            value[has_gold],
            truth[has_gold],
        )
        gold_labels = np.bincount(annotator, minlength=n)
        gold_z = rating_correlations(annotator, own, truth, n) * np.sqrt(gold_labels - 1.0).clip(0)
    return Evidence(
        following=follow,
        log_typical=typical,
        n_minor=np.full(n, np.inf),
        gold_z=_if_enough(gold_z, gold_labels),
        gold_labels=gold_labels,
        styles=_styles(model, follow),
    )


def rating_scores(annotations: Annotations) -> Floats:
    """Return ordered classes as 0, 1, 2, …: (class); those that are numbers in their order.

    >>> classes = ["2", "10", "1"]
    >>> rating_scores(Annotations.from_columns("a", "x", ["1"], classes=classes)).tolist()
    [1.0, 2.0, 0.0]
    """
    names = annotations.classes.tolist()
    try:
        value: Array = np.array([float(name) for name in names])
    except ValueError:
        return np.arange(len(names), dtype=float)
    return np.argsort(np.argsort(value, kind="stable"), kind="stable").astype(float)


def _if_enough(z: Floats, n_labels: Integers) -> Floats:
    return np.where(n_labels >= ENOUGH, z, np.nan)


def _styles(model: RaterModel, follow: Following) -> Styles:
    """Return level, slope and noise relative to the medians of those who are not random."""
    ordinary = (model.n_answers >= ENOUGH) & (follow.p_random < _ORDINARY)

    def median(values: Floats) -> float:
        values = values[ordinary & np.isfinite(values)]
        return float(np.median(values)) if len(values) else np.nan

    level = model.level - median(model.level)
    reach = model.level_error
    slope = median(model.slope)
    slope = slope if slope > 0 else np.nan
    relative = model.noise / np.maximum(model.slope, _LEAST_SLOPE * slope)
    noise = median(relative)
    noise = noise if noise > 0 else np.nan
    freedom = np.maximum(model.n_answers - 2.0, 1.0)
    tails = ((1 - _CONFIDENCE) / 2, (1 + _CONFIDENCE) / 2)
    low, high = (np.sqrt(freedom / chdtri(freedom, tail)) for tail in tails)
    return Styles(
        Bounded(level, level - reach, level + reach),
        Bounded(
            *((model.slope + shift) / slope for shift in (0, -model.slope_error, model.slope_error))
        ),
        Bounded(*(relative * factor / noise for factor in (1, low, high))),
    )


def judge(evidence: Evidence, top_share: npt.NDArray[np.float64]) -> npt.NDArray[np.int64]:
    """Return the index of every annotator's verdict in `VERDICTS`.

    `top_share` is the share of the most frequent answer: (annotator).
    """
    follow = evidence.following
    # Comparisons with NaN are false, as intended.
    related = follow.z >= RELATED
    enough = follow.n_labels >= ENOUGH
    suspect = enough & ~(evidence.gold_z > FOLLOWS_GOLD)
    untypical = evidence.log_typical < UNTYPICAL
    at_odds = suspect & (follow.low < CLOSE) & (evidence.n_minor >= MINOR)
    undecided = ~(follow.p_random <= POSSIBLE) & ~related
    rules = {
        "constant": suspect & (top_share >= ONE_ANSWER) & ~related & untypical,
        "reversed": suspect & (follow.z < REVERSED),
        "random": at_odds & (follow.p_random >= RANDOM),
        "likely random": at_odds & (follow.p_random >= LIKELY),
        UNKNOWN: ~enough | (undecided & ~(evidence.gold_z > FOLLOWS_GOLD)),
    }
    if evidence.styles is not None:
        level, slope, noise = evidence.styles
        rules |= {
            "harsh": level.high < -SHIFTED,
            "lenient": level.low > SHIFTED,
            "central": slope.high < NARROW,
            "extreme": slope.low > WIDE,
            "noisy": noise.low > WIDE,
        }
    positions = [VERDICTS.index(word) for word in rules]
    return np.select(list(rules.values()), positions, default=VERDICTS.index(ATTENTIVE))


def further_labels(evidence: Evidence, code: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Return how many more labels a verdict needs: (annotator), 0 where there is one.

    Where labels that suffice for others do not, as many again.
    """
    n_labels, needed = evidence.following.n_labels, evidence.following.needed
    n_more = np.where(needed > n_labels, needed - n_labels, n_labels)
    return np.where(code == VERDICTS.index(UNKNOWN), n_more, 0).astype(np.int64)


def reference(evidence: Evidence, annotators: npt.NDArray[np.int64] | int) -> str:
    """Return what these annotators were compared with: known labels where there are any."""
    annotators = np.atleast_1d(annotators)
    n_gold = evidence.gold_labels[annotators]
    if not n_gold.any():
        return "the others"
    all_known = (n_gold >= evidence.following.n_labels[annotators]).all()
    return "known labels" if all_known else "known labels or the others"


def explain(scores: AnnotatorScores, annotator: int) -> str:
    """Return the reason for the verdict on an annotator, in a sentence."""
    basis, gold, behaviour = scores.basis, scores.gold, scores.behaviour
    follow = basis.following
    word, among = VERDICTS[scores.code[annotator]], int(follow.n_labels[annotator])
    reasons = []
    n_gold, compared = int(basis.gold_labels[annotator]), reference(basis, annotator)
    if n_gold and gold is not None:
        reasons.append(
            f"right on {gold.value[annotator]:.0%} of {n_gold} known labels "
            f"({gold.low[annotator]:.0%} to {gold.high[annotator]:.0%})"
        )
    if among == 0:
        labels = int(behaviour.labels[annotator])
        reasons.append(f"no other annotator labelled the same items (labels: {labels})")
    elif np.isnan(follow.correlation[annotator]):
        reasons.append(f"no correlation with {compared}: {among} labels do not vary enough")
    else:
        reasons.append(
            f"correlation with {compared} {follow.correlation[annotator]:.2f} "
            f"({follow.low[annotator]:.2f} to {follow.high[annotator]:.2f}) over {among} labels"
        )
    if word in FLAGGED and follow.p_random[annotator] >= LIKELY:
        likely = min(float(follow.p_random[annotator]), 0.99)
        above = "above " if follow.p_random[annotator] > likely else ""
        reasons.append(f"answers ignore the items with probability {above}{likely:.0%}")
    share = behaviour.top_share[annotator]
    if word == "constant" or (among and share == 1):
        often = (
            f"{share:.0%}" if share == 1 or share < 0.995 else f"{math.floor(1000 * share) / 10}%"
        )
        reasons.append(f"says {str(behaviour.top_label[annotator])!r} {often} of the time")
    if word == UNKNOWN:
        needed = scores.labels_needed[annotator]
        reasons.append(f"about {needed} more labels are needed for a verdict")
    if basis.styles is not None and word in STYLES:
        reasons.append(_style(basis.styles, word, annotator))
    if scores.drift[annotator] * max(len(scores.drift), 1) < DRIFTED:
        first, second = scores.first_half[annotator], scores.second_half[annotator]
        reasons.append(f"{first:.0%} right at first, {second:.0%} later")
    partner = -1 if scores.copies is None else int(scores.copies.partner[annotator])
    if partner >= 0:
        reasons.append(f"agrees too much with {scores.annotations.annotators[partner]!r}")
    sentence = "; ".join(reasons)
    return f"{sentence[0].upper()}{sentence[1:]}."


def _style(styles: Styles, word: str, annotator: int) -> str:
    """Return what is meant by a style, with numbers."""
    if word in ("harsh", "lenient"):
        value, *ends = (abs(float(bound[annotator])) for bound in styles.level)
        side = "below" if word == "harsh" else "above"
        reach = f"({min(ends):.2f} to {max(ends):.2f})"
        return f"{value:.2f} standard deviations {side} the others {reach}"
    style, noun = (styles.noise, "noise") if word == "noisy" else (styles.slope, "range of ratings")
    value, low, high = (float(bound[annotator]) for bound in style)
    return f"{noun} {value:.2f} times the usual ({low:.2f} to {high:.2f})"
