"""Crowds without camps whose labels are ordered, drawn for comparison.

    u[i, j] = a[j] θ[i] + sqrt(1 - a[j]²) e[i, j]        θ, e normal

Annotators put their own labels in the order of u. So severity and the use of the scale stay exactly
as they are, and only how far labels follow the items is a model. θ is drawn from its posterior
given the labels; a is λ of normal scores, corrected for the variance that labels lose of u.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.special import ndtri

from ..base.arrays import Array, Floats, Integers
from .split_half import ItemSet, fit_one_group

_LEAST, _MOST = 0.01, 0.98


class OneOrderedCamp(NamedTuple):
    """A fitted crowd without camps."""

    item: Integers  # (label)
    annotator: Integers  # (label)
    label: Array  # in order for every annotator
    mean: Floats  # (item), of θ
    deviation: Floats  # (item)
    loading: Floats  # (annotator): a

    def draw(self, rng: np.random.Generator, apart: float = 0.0) -> Array:
        """Return new labels of everybody; `apart` as in `OneCamp`."""
        theta = self.mean + self.deviation * rng.normal(size=len(self.mean))
        theta = (theta - theta.mean()) / max(float(theta.std()), 1e-9)
        seen = theta[self.item]
        if apart > 0:
            other = np.arange(len(theta))
            moved = np.flatnonzero(rng.random(len(other)) < apart)
            other[moved] = rng.permutation(moved)
            camp = rng.permutation(len(self.loading)) % 2 == 1
            seen = np.where(camp[self.annotator], theta[other[self.item]], seen)
        a = self.loading[self.annotator]
        value = a * seen + np.sqrt(1 - a**2) * rng.normal(size=len(seen))
        drawn = np.empty_like(self.label)
        drawn[np.lexsort((value, self.annotator))] = self.label
        return drawn


def fit_one_ordered_camp(items: ItemSet, item: Integers, label: Array) -> OneOrderedCamp:
    """Return the model of one camp, fitted to ordered labels."""
    annotator, n_items = items.annotator, items.n_items
    score = normal_scores(annotator, label)
    count = np.maximum(np.bincount(annotator, minlength=items.n_annotators), 1)
    kept = np.bincount(annotator, score**2, items.n_annotators) / count  # of the variance of u
    loading = fit_one_group(items, score).loading / np.sqrt(np.maximum(kept, _LEAST))
    loading = np.clip(loading, _LEAST, _MOST)
    slope = (loading * kept)[annotator]  # score = slope · θ + noise
    weight = slope / np.maximum(kept[annotator] - slope**2, _LEAST)
    precision = 1 + np.bincount(item, weight * slope, n_items)
    mean = np.bincount(item, weight * score, n_items) / precision
    in_order = label[np.lexsort((label, annotator))]
    return OneOrderedCamp(item, annotator, in_order, mean, 1 / np.sqrt(precision), loading)


def normal_scores(annotator: Integers, label: Array) -> Floats:
    """Return the mean of u given every label, where u is cut as often as each label is given.

    >>> normal_scores(np.array([0, 0, 0, 0]), np.array([1, 0, 1, 1])).round(2)
    array([ 0.42, -1.27,  0.42,  0.42])
    """
    order = np.lexsort((label, annotator))
    annotator, label = annotator[order], label[order]
    new = np.diff(annotator, prepend=-1) != 0
    first = new | (np.diff(label, prepend=-1) != 0)  # of equal labels of one annotator
    count = np.bincount(annotator)[annotator]
    rank = np.arange(len(label)) - np.flatnonzero(new)[np.cumsum(new) - 1]
    run = np.cumsum(first) - 1
    low = rank[first] / count[first]
    size = np.bincount(run) / count[first]
    density = np.exp(-(ndtri(np.stack([low, np.minimum(low + size, 1.0)])) ** 2) / 2)
    density /= np.sqrt(2 * np.pi)
    out = np.empty(len(label))
    out[order] = ((density[0] - density[1]) / size)[run]
    return out
