"""A verdict on every annotator, and a sentence with the reason.

Verdicts rest on how far labels follow the items (`annotator_evidence.py`), not on how often they
agree: somebody who rates all items two points higher follows them, too. The first that holds:

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
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from .annotator_evidence import ENOUGH, ONE_ANSWER, Evidence, Styles

if TYPE_CHECKING:
    from .annotator_scores import AnnotatorScores

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

UNKNOWN = "too few labels"
ATTENTIVE = "attentive"
FAULTS = ("random", "constant", "reversed", "likely random")
LEFT_OUT = ("random", "constant")  # whose labels may be left out
FLAGGED = ("random", "likely random", "constant")  # whose labels may ignore the items
STYLES = ("noisy", "harsh", "lenient", "central", "extreme")
# The worst first.
VERDICTS = (*FAULTS, UNKNOWN, *STYLES, ATTENTIVE)


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
    apart = suspect & (follow.low < CLOSE) & (evidence.n_minor >= MINOR)
    undecided = ~(follow.p_random <= POSSIBLE) & ~related
    rules = {
        "constant": suspect & (top_share >= ONE_ANSWER) & ~related & untypical,
        "reversed": suspect & (follow.z < REVERSED),
        "random": apart & (follow.p_random >= RANDOM),
        "likely random": apart & (follow.p_random >= LIKELY),
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
    given, needed = evidence.following.n_labels, evidence.following.needed
    more = np.where(needed > given, needed - given, given)
    return np.where(code == VERDICTS.index(UNKNOWN), more, 0).astype(np.int64)


def reference(evidence: Evidence, chosen: npt.NDArray[np.int64] | int) -> str:
    """Return what these annotators were compared with: known labels where there are any."""
    chosen = np.atleast_1d(chosen)
    known = evidence.gold_labels[chosen]
    if not known.any():
        return "the others"
    all_known = (known >= evidence.following.n_labels[chosen]).all()
    return "known labels" if all_known else "known labels or the others"


def explain(scores: AnnotatorScores, annotator: int) -> str:
    """Return the reason for the verdict on an annotator, in a sentence."""
    basis, gold, behaviour = scores.basis, scores.gold, scores.behaviour
    follow = basis.following
    word, among = VERDICTS[scores.code[annotator]], int(follow.n_labels[annotator])
    reasons = []
    known, compared = int(basis.gold_labels[annotator]), reference(basis, annotator)
    if known and gold is not None:
        reasons.append(
            f"right on {gold.value[annotator]:.0%} of {known} known labels "
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
        more = scores.labels_needed[annotator]
        reasons.append(f"about {more} more labels are needed for a verdict")
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
    chosen, what = (
        (styles.noise, "noise") if word == "noisy" else (styles.slope, "range of ratings")
    )
    value, low, high = (float(bound[annotator]) for bound in chosen)
    return f"{what} {value:.2f} times the usual ({low:.2f} to {high:.2f})"
