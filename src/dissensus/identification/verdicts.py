"""A verdict on every annotator, and a sentence with the reason.

Annotators are compared with the others (`leave_one_out.py`), and all rules use the bounds of
intervals, so that random variation seldom decides. In this order:

    too few labels to say   fewer than `FEW` labels on items of others, or these are uncertain
    adversarial             right less often than `BELOW` of the accuracy of guessing
    spammer                 the spam score is below `SPAM`, or the accuracy below uniform guessing
                            and `ABOVE`; or careless, and guessing cannot be ruled out
    careless                right less often than the others are, by `BEHIND`
    too few labels to say   guessing cannot be ruled out
    expert                  right more often than the others are, or more often than `EXPERT`
    fine                    all others

Guessing draws labels from the annotator's own label marginals, whatever the item. The accuracy of
the others is the median of those for whom guessing is ruled out, weighted by their labels.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from .._relation import Floats

if TYPE_CHECKING:
    from .annotator_scores import AnnotatorScores

FEW = 5  # labels on items that others labelled too
SPAM = 0.05  # upper bound of the spam score of a spammer
ABOVE = 0.05  # accuracy above uniform guessing
BELOW = 0.8  # accuracy of an adversary, relative to guessing
BEHIND = 0.1  # how far a careless annotator is behind the others
EXPERT = 0.9  # lower bound of the accuracy of an expert
UNSURE = 0.25  # certainty of the others above uniform, relative to full certainty
DRIFTED = 0.01  # p-value of a change over time that is reported, over all annotators
ONE_CLASS = 0.95  # share of one class that is reported, if the others give it less often

UNKNOWN = "too few labels to say"
# The worst first.
VERDICTS = ("adversarial", "spammer", "careless", UNKNOWN, "fine", "expert")


def judge(
    accuracy: Any, spam_high: Floats, guess: Floats, certainty: Floats, n_classes: int
) -> npt.NDArray[np.int64]:
    """Return the index of every annotator's verdict in `VERDICTS`.

    Parameters
    ----------
    accuracy
        The `Proportion` of right labels among those on items of others.
    spam_high
        The upper bound of the spam score.
    guess
        The accuracy of guessing with the annotator's label marginals.
    certainty
        The others' mean probability of their best class.
    n_classes
        The number of classes.
    """
    typical = typical_accuracy(accuracy, guess)
    # Comparisons with NaN are false, as intended.
    careless = accuracy.high < typical - BEHIND
    guessing = ~(accuracy.low > guess)
    uniform = 1 / max(n_classes, 1)
    spammer = (spam_high < SPAM) | (accuracy.high < uniform + ABOVE) | (careless & guessing)
    unknown = ~(accuracy.among >= FEW) | ~_is_certain(certainty, n_classes)
    rules = (
        (unknown, UNKNOWN),
        (accuracy.high < BELOW * guess, "adversarial"),
        (spammer, "spammer"),
        (careless, "careless"),
        (guessing, UNKNOWN),
        (accuracy.low > min(typical, EXPERT), "expert"),
    )
    positions = [VERDICTS.index(word) for _, word in rules]
    return np.select([rule for rule, _ in rules], positions, default=VERDICTS.index("fine"))


def typical_accuracy(accuracy: Any, guess: Floats) -> float:
    """Return the accuracy of a typical annotator who does not guess; NaN without any."""
    scored = accuracy.among > 0
    better = scored & (accuracy.low > guess)
    chosen = better if better.any() else scored
    if not chosen.any():
        return float("nan")
    value, weight = accuracy.value[chosen], accuracy.among[chosen]
    order = np.argsort(value, kind="stable")
    upto = np.cumsum(weight[order])
    return float(value[order][np.searchsorted(upto, upto[-1] / 2)])


def evidence(scores: AnnotatorScores, annotator: int) -> str:
    """Return the reason for the verdict on an annotator, in a sentence."""
    accuracy, gold, behaviour = scores.accuracy, scores.gold, scores.behaviour
    among = int(accuracy.among[annotator])
    if among == 0:
        labels = int(behaviour.labels[annotator])
        return f"No other annotator labelled the same items (labels: {labels})."
    reasons = [
        f"right on {accuracy.value[annotator]:.0%} of {among} labels "
        f"({accuracy.low[annotator]:.0%} to {accuracy.high[annotator]:.0%}; "
        f"guessing {scores.guess[annotator]:.0%}, others {scores.typical:.0%})"
    ]
    if np.isfinite(scores.spam_score[annotator]):
        reasons.append(
            f"spam score {scores.spam_score[annotator]:.2f} "
            f"({scores.spam_low[annotator]:.2f} to {scores.spam_high[annotator]:.2f})"
        )
    if gold is not None and gold.among[annotator] > 0:
        reasons.append(
            f"right on {gold.value[annotator]:.0%} of {int(gold.among[annotator])} known labels"
        )
    top_share = behaviour.top_share[annotator]
    if top_share > ONE_CLASS and scores.bias[annotator] > 1 - ONE_CLASS:
        reasons.append(f"says {scores.overused[annotator]!r} {top_share:.0%} of the time")
    if not _is_certain(scores.certainty[annotator], scores.annotations.n_classes):
        reasons.append(f"but the others are only {scores.certainty[annotator]:.0%} sure")
    if scores.drift[annotator] * max(len(scores.drift), 1) < DRIFTED:
        first, second = scores.first_half[annotator], scores.second_half[annotator]
        reasons.append(f"{first:.0%} right at first, {second:.0%} later")
    partner = -1 if scores.copies is None else int(scores.copies.partner[annotator])
    if partner >= 0:
        reasons.append(f"agrees too much with {scores.annotations.annotators[partner]!r}")
    sentence = "; ".join(reasons)
    return f"{sentence[0].upper()}{sentence[1:]}."


def _is_certain(certainty: Any, n_classes: int) -> Any:
    """Return whether the others are certain enough to judge by."""
    uniform = 1 / max(n_classes, 1)
    return certainty >= uniform + UNSURE * (1 - uniform)
