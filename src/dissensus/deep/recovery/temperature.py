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
from scipy.special import gammaln

from ...errors import OptionError


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
