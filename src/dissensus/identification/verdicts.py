"""A word for every annotator, and the sentence that gives the reason.

Everything is compared with the others (`others.py`), and all rules look at the ends of intervals,
so that chance alone seldom decides. In this order:

    too few labels to say   others were heard on fewer than `FEW` labels, or they are unsure
    adversarial             right less often than `BELOW` of what guessing by habit would be
    spammer                 the spam score is below `SPAM`, or the accuracy below a coin's and
                            `ABOVE`; or careless, and guessing by habit cannot be ruled out
    careless                right less often than the others are, by `BEHIND`
    too few labels to say   guessing by habit cannot be ruled out
    expert                  right more often than the others are, or more often than `EXPERT`
    fine                    everybody else

Guessing by habit is to give every class as often as one does, whatever the item. The accuracy of
the others is the median of those for whom that is ruled out, weighted by their labels.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from .._relation import Floats

if TYPE_CHECKING:
    from .annotator_scores import AnnotatorScores

__all__ = ["VERDICTS", "evidence", "judge", "typical_accuracy"]

FEW = 5  # labels on which somebody else must be heard
SPAM = 0.05  # the upper end of the spam score below which an annotator does not look
ABOVE = 0.05  # what accuracy must have above one in so many classes
BELOW = 0.8  # an adversary is right less often than this share of what guessing would give
BEHIND = 0.1  # how far behind the others a careless annotator is
EXPERT = 0.9  # the lower end of the accuracy from which on an annotator is an expert
UNSURE = 0.25  # the certainty that the others need beyond guessing, where 1 is full certainty
DRIFTED = 0.01  # how improbable a change over time must be to be told, over all annotators
ONE_CLASS = 0.95  # share of one class that is worth telling, if the others give it less often

UNKNOWN = "too few labels to say"
# The worst first.
VERDICTS = ("adversarial", "spammer", "careless", UNKNOWN, "fine", "expert")


def judge(
    accuracy: Any, spam_high: Floats, guess: Floats, certainty: Floats, n_classes: int
) -> npt.NDArray[np.int64]:
    """Return the place of every annotator's verdict among `VERDICTS`.

    Parameters
    ----------
    accuracy
        A `Proportion` of right labels among those on which others were heard.
    spam_high
        The upper end of the spam score.
    guess
        How often habits alone would be right.
    certainty
        How sure the others are of their best class.
    n_classes
        How many classes there are.
    """
    coin = 1 / max(n_classes, 1)
    typical = typical_accuracy(accuracy, guess)
    # Comparisons with NaN are false, which is what is wanted.
    careless = accuracy.high < typical - BEHIND
    guessing = ~(accuracy.low > guess)
    spammer = (spam_high < SPAM) | (accuracy.high < coin + ABOVE) | (careless & guessing)
    unheard = ~(accuracy.among >= FEW) | ~(certainty >= coin + UNSURE * (1 - coin))
    rules = (
        (unheard, UNKNOWN),
        (accuracy.high < BELOW * guess, "adversarial"),
        (spammer, "spammer"),
        (careless, "careless"),
        (guessing, UNKNOWN),
        (accuracy.low > min(typical, EXPERT), "expert"),
    )
    positions = [VERDICTS.index(word) for _, word in rules]
    return np.select([rule for rule, _ in rules], positions, default=VERDICTS.index("fine"))


def typical_accuracy(accuracy: Any, guess: Floats) -> float:
    """Return the accuracy of an ordinary annotator, guessers left aside; NaN without any."""
    labelled = accuracy.among > 0
    looking = labelled & (accuracy.low > guess)
    chosen = looking if looking.any() else labelled
    if not chosen.any():
        return float("nan")
    value, weight = accuracy.value[chosen], accuracy.among[chosen]
    order = np.argsort(value, kind="stable")
    upto = np.cumsum(weight[order])
    return float(value[order][np.searchsorted(upto, upto[-1] / 2)])


def evidence(found: AnnotatorScores, position: int) -> str:
    """Return why an annotator has the verdict, in a sentence."""
    accuracy = found.accuracy
    among = int(accuracy.among[position])
    labels = int(found.behaviour.labels[position])
    if among == 0:
        return f"Nobody else was heard on the same items (labels: {labels})."
    told = [
        f"right on {accuracy.value[position]:.0%} of {among} labels "
        f"({accuracy.low[position]:.0%} to {accuracy.high[position]:.0%}; "
        f"guessing {found.guess[position]:.0%}, others {found.typical:.0%})"
    ]
    if np.isfinite(found.spam_score[position]):
        told.append(
            f"spam score {found.spam_score[position]:.2f} "
            f"({found.spam_low[position]:.2f} to {found.spam_high[position]:.2f})"
        )
    if found.gold is not None and found.gold.among[position] > 0:
        told.append(
            f"right on {found.gold.value[position]:.0%} of {int(found.gold.among[position])} known labels"
        )
    if found.behaviour.top_share[position] > ONE_CLASS and found.bias[position] > 1 - ONE_CLASS:
        told.append(
            f"says {found.overused[position]!r} {found.behaviour.top_share[position]:.0%} of the time"
        )
    coin = 1 / found.annotations.n_classes
    if found.certainty[position] < coin + UNSURE * (1 - coin):
        told.append(f"but the others are only {found.certainty[position]:.0%} sure")
    if found.drift[position] * max(len(found.drift), 1) < DRIFTED:
        told.append(
            f"{found.first_half[position]:.0%} right at first, {found.second_half[position]:.0%} later"
        )
    partner = None if found.copies is None else int(found.copies.partner[position])
    if partner is not None and partner >= 0:
        told.append(f"agrees too much with {found.annotations.annotators[partner]!r}")
    sentence = "; ".join(told)
    return f"{sentence[0].upper()}{sentence[1:]}."
