"""A majority is more certain than its voters: temperatures that undo this.

If a person says "yes" with probability q, the majority of a people does so with the probability
that a binomial is above a/2, a steeper function of q. Its slope at q = 1/2 is

    slope(a) = a C(a - 1, (a - 1) / 2) / 2^(a - 1),  a odd; an even a is as the odd one below it,

for ties drawn at random: 1.5 for three people, 1.88 for five, 2.19 for seven. If items with the
same features x were exactly alike, logits of P(majority | x) divided by the slope would be about
those of q. They are not: most of the uncertainty about the majority comes from what the features
do not show, and that part needs no flattening. Hence a power of the slope, 3/8 in `auto`: a rule
of thumb, chosen on six sets of texts that are in none of our tables.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import minimize_scalar
from scipy.special import gammaln

from .._relation import Floats, Integers
from ..errors import OptionError
from .measures import cross_entropy

_LEAST = 1e-12


def vote_slope(count: ArrayLike) -> float:
    """Return how much steeper a majority is than one voter, averaged over items.

    >>> [round(vote_slope(a), 3) for a in (1, 3, 5, 6, 7)]
    [1.0, 1.5, 1.875, 1.875, 2.188]
    """
    votes = np.floor(np.atleast_1d(np.asarray(count, dtype=np.float64)))
    if not (votes >= 1).all():
        raise OptionError(f"vote_count = {votes.min():g}, but every label has at least one vote")
    odd = votes - (votes % 2 == 0)
    half = (odd - 1) / 2
    log = np.log(odd) + gammaln(odd) - 2 * gammaln(half + 1) - (odd - 1) * np.log(2)
    return float(np.exp(log).mean())


def temper(p: Floats, temperature: float | Floats) -> Floats:
    """Return distributions with logits divided by a temperature, or one per item: (item, 1)."""
    if np.ndim(temperature) == 0 and temperature == 1:
        return p
    log = np.log(np.maximum(p, _LEAST)) / temperature
    flat = np.exp(log - log.max(axis=-1, keepdims=True))
    return flat / flat.sum(axis=-1, keepdims=True)


def fit_temperature(p: Floats, label: Integers | Floats) -> float:
    """Return the temperature of highest likelihood, from 0.2 to 5.

    Labels are codes (item) or vote counts: (item, class).
    """
    votes = np.eye(p.shape[1])[label] if np.ndim(label) == 1 else np.asarray(label)
    shares = votes / votes.sum(axis=1, keepdims=True)

    def loss(log: float) -> float:
        return float(cross_entropy(shares, temper(p, float(np.exp(log))), _LEAST).mean())

    best = minimize_scalar(loss, bounds=(-np.log(5), np.log(5)), method="bounded")
    return float(np.exp(best.x))
