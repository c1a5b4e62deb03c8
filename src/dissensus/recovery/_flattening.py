"""A majority is surer than the people behind it: how much flatter their law is.

If a person says "yes" with probability q, the majority of a people says so with the probability
that a binomial is above a/2, a steeper function of q. Its slope at q = 1/2 is

    slope(a) = a C(a - 1, (a - 1) / 2) / 2^(a - 1),  a odd; an even a is as the odd one below it,

for ties drawn at random: 1.5 for three people, 1.88 for five, 2.19 for seven. Were all items of one
kind x exactly alike, logits of P(majority | x) divided by the slope would be about those of q. They
are not: most of what a model cannot know of the majority is what it does not see of the item, and
for that part no flattening is due. Hence a power of the slope, 3/8 in `auto`: a rule of thumb,
chosen on six sets of texts that are in none of our tables.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import minimize_scalar
from scipy.special import gammaln

from .._relation import Floats, Integers
from ..errors import OptionError
from .measures import cross_entropy, entropy

__all__ = ["flattened", "likeliest_temperature", "vote_slope", "with_entropy"]

_LEAST = 1e-12


def vote_slope(count: ArrayLike) -> float:
    """Return how much steeper a majority is than a person, as a mean over items.

    >>> [round(vote_slope(a), 3) for a in (1, 3, 5, 6, 7)]
    [1.0, 1.5, 1.875, 1.875, 2.188]
    """
    votes = np.floor(np.atleast_1d(np.asarray(count, dtype=np.float64)))
    if not (votes >= 1).all():
        raise OptionError(f"vote_count = {votes.min():g}, but at least one person gave a label")
    odd = votes - (votes % 2 == 0)
    half = (odd - 1) / 2
    log = np.log(odd) + gammaln(odd) - 2 * gammaln(half + 1) - (odd - 1) * np.log(2)
    return float(np.exp(log).mean())


def flattened(p: Floats, temperature: float) -> Floats:
    """Return distributions whose logits are divided by a temperature."""
    if temperature == 1:
        return p
    log = np.log(np.maximum(p, _LEAST)) / temperature
    log -= log.max(axis=-1, keepdims=True)
    flat = np.exp(log)
    return flat / flat.sum(axis=-1, keepdims=True)


def likeliest_temperature(p: Floats, label: Integers | Floats) -> float:
    """Return the temperature under which labels are likeliest, from a fifth to five.

    Labels are codes (item), or how many people gave each: (item, class).
    """
    annotations = np.asarray(label)
    votes = np.eye(p.shape[1])[annotations] if annotations.ndim == 1 else annotations
    share = votes / votes.sum(axis=1, keepdims=True)

    def loss(log: float) -> float:
        return float(cross_entropy(share, flattened(p, float(np.exp(log))), _LEAST).mean())

    found = minimize_scalar(loss, bounds=(-np.log(5), np.log(5)), method="bounded")
    return float(np.exp(found.x))


def with_entropy(p: Floats, wanted: Floats) -> Floats:
    """Return distributions with the same order of classes and this entropy, in bits: (item)."""
    low, high = np.full(len(p), -4.0), np.full(len(p), 6.0)  # logarithms of temperatures
    log = np.log(np.maximum(p, _LEAST))
    for _ in range(50):
        middle = (low + high) / 2
        flat = log / np.exp(middle)[:, None]
        flat = np.exp(flat - flat.max(axis=1, keepdims=True))
        flat /= flat.sum(axis=1, keepdims=True)
        below = entropy(flat) < wanted
        low, high = np.where(below, middle, low), np.where(below, high, middle)
    return flat
