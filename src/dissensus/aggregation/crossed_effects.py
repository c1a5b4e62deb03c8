"""Crossed effects: annotators confuse classes, and every item is confusing in its own way.

Annotator a gives item i of class t the label g with probability proportional to

    exp(by_annotator[a, t, g] + by_item[i, t, g])

Both are random effects. Those of annotators are normal around a matrix that all have in common,
those of items around zero; `strength` and `item_strength` are one over their variances. The common
matrix is normal around one that is mostly right. So an annotator with few labels counts as the
average one, and labels of an item on which annotators agree in error weigh less. It is the
likelihood of minimax entropy (`minimax-entropy`) with a prevalence, and with annotators who are
alike, rather than guessing, as long as little is known about them.

EM maximizes the penalized likelihood. The curvature of a softmax is bounded (Böhning 1992), so
steps within the bound never lower it and need no line search. Every iteration is one pass: the
posterior, a step of the items, and the gradient by annotators, which adds up over items.

When it fails: With many classes and few labels it can prefer a class that nobody gave to an item,
and it has a parameter for every pair of classes of every item, so its cost grows with squared
classes.

    D. Zhou, Q. Liu, J. Platt, C. Meek. Aggregating ordinal labels from crowds by minimax
    conditional entropy. ICML, PMLR 32, 2014. (The likelihood.)
    R. H. Baayen, D. J. Davidson, D. M. Bates. Mixed-effects modeling with crossed random effects
    for subjects and items. Journal of Memory and Language 59(4), 2008.
    doi:10.1016/j.jml.2007.12.005
    D. Böhning. Multinomial logistic regression algorithm. Annals of the Institute of Statistical
    Mathematics 44(1), 1992. doi:10.1007/BF00048682
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial, reduce
from itertools import pairwise
from typing import Any, ClassVar, NamedTuple

import numpy as np
from scipy import sparse

from ..answers.annotations import Annotations, Part
from ..base.arrays import Array, Floats, Integers
from ..base.engine import add
from ..base.probability import log_normalize, normalize
from ..params import Count, NonNegative, Positive
from .classes import ClassContext
from .dawid_skene import pseudo_counts
from .em import Alternating, State, start_posterior

_CELLS = 2**18  # floats to work on at once
_ACCURACY = 0.7  # of the matrix that the common one is drawn around
_FIRST = 4.0  # pseudo-counts of an annotator at the start


class Effects(NamedTuple):
    """Parameters of the model; effects are log-odds."""

    prior: Floats  # (true class)
    common: Floats  # (true class, given class): the mean of annotators
    by_annotator: Floats  # (annotator, true class, given class)
    by_item: Floats  # (item, true class, given class)

    def reindex(self, indices: Integers, n_items: int) -> Effects:
        """Return the parameters of other annotators by their indices here; -1 is a new one."""
        by_annotator = np.concatenate([self.by_annotator, self.common[None]])[indices]
        by_item = np.zeros((n_items, *self.common.shape))
        return self._replace(by_annotator=by_annotator, by_item=by_item)


class Expected(NamedTuple):
    """Sums over items, expected under the posterior."""

    evidence: float
    true: Floats  # (true class)
    gradient: Floats  # (annotator, true class, given class): by effects of annotators
    labels: Floats  # (annotator, true class)


@dataclass(frozen=True, kw_only=True)
class CrossedEffects(Alternating[Effects]):
    """Confusion by annotators and by items, as crossed random effects.

    Parameters
    ----------
    tol
        Largest change of a posterior at which the fit has converged.
    strength
        One over the variance of annotators' effects.
    item_strength
        One over the variance of items' effects.

    Examples
    --------
    >>> from dissensus import Annotations
    >>> annotations = Annotations.from_columns("aaabbb", "xyzxyz", "001110")
    >>> CrossedEffects().fit(annotations).labels.tolist()
    ['0', '1']
    """

    params_type: ClassVar[type] = Effects

    max_iter: Count = 50
    tol: NonNegative = 1e-3
    strength: Positive = 2.0
    item_strength: Positive = 4.0

    def first_state(self, fit: ClassContext) -> State[Effects]:
        posterior = start_posterior(replace(fit, start=None))  # shares show which items are hard
        n_classes = fit.answers.n_classes
        counts = np.zeros((fit.answers.n_annotators, n_classes, n_classes))
        for part in fit.parts:
            counts += _given(part, posterior[part.start : part.stop])
        common = normalize(counts.sum(axis=0) + pseudo_counts(_FIRST, _ACCURACY, n_classes))
        by_annotator = _centred(np.log(counts + _FIRST * common))
        prior = normalize(posterior[fit.answers.labels_per_item > 0].sum(axis=0) + 1)
        rate = self.item_strength
        work = partial(_first_items, odds=np.exp(by_annotator), posterior=posterior, rate=rate)
        by_item = np.concatenate([*fit.engine.each(work, fit.parts)])
        return State(Effects(prior, _centred(np.log(common)), by_annotator, by_item), posterior)

    def advance(self, fit: ClassContext, last: State[Effects]) -> State[Effects]:
        work = partial(_pass, params=last.params, rate=self.item_strength)
        expected, posteriors, items = zip(*fit.engine.each(work, fit.parts), strict=True)
        total, previous = reduce(add, expected), last.params
        value = total.gradient - self.strength * (previous.by_annotator - previous.common)
        by_annotator = previous.by_annotator + _step(value, total.labels, self.strength)
        centre = _centred(np.log(pseudo_counts(1.0, _ACCURACY, len(previous.prior))))
        common = (self.strength * by_annotator.sum(axis=0) + centre) / (
            self.strength * len(by_annotator) + 1
        )
        params = Effects(normalize(total.true + 1), common, by_annotator, np.concatenate(items))
        objective = total.evidence - self._penalty(previous, centre)
        return State(params, np.concatenate(posteriors), objective)

    def has_converged(
        self, trace: list[float], state: State[Effects], last: State[Effects]
    ) -> bool:
        return bool(np.abs(state.posterior - last.posterior).max(initial=0.0) <= self.tol)

    def part_posterior(self, part: Part, params: Effects) -> Floats:
        odds = np.exp(params.by_annotator)
        posteriors = [_expand(piece, odds, params).posterior for piece in _pieces(part)]
        return np.concatenate([np.empty((0, part.n_classes)), *posteriors])

    def quality(self, params: Effects, agreement: Floats) -> Floats:
        """Return the probability of being right about an average item."""
        right = self.confusion(params).diagonal(axis1=1, axis2=2)
        return np.minimum(right @ params.prior, 1.0)

    def confusion(self, params: Effects) -> Floats:
        return _softmax(params.by_annotator)

    def label_probabilities(self, params: Effects, item: Array, annotator: Array) -> Floats:
        return _softmax(params.by_annotator[annotator] + params.by_item[item])

    def n_floats(self, annotations: Annotations) -> int:
        cells = (annotations.n_annotators + annotations.n_items) * annotations.n_classes**2
        return super().n_floats(annotations) + 3 * cells

    def _penalty(self, params: Effects, centre: Floats) -> float:
        own = ((params.by_annotator - params.common) ** 2).sum()
        items, common = (params.by_item**2).sum(), ((params.common - centre) ** 2).sum()
        total = self.strength * own + self.item_strength * items + common
        return float(total / 2 - np.log(params.prior).sum())


class Expanded(NamedTuple):
    """What is known of the annotations of some items."""

    evidence: float
    posterior: Floats  # (item, true class)
    odds: Floats  # (annotation, true class, given class): of annotators
    totals: Floats  # (annotation, true class): odds of annotators and items, summed over labels


def _centred(log: Floats) -> Floats:
    """Return log-odds whose sum over given classes is zero, which changes no probability."""
    return log - log.mean(axis=-1, keepdims=True)


def _softmax(x: Floats) -> Floats:
    return normalize(np.exp(x))  # penalties keep effects small


def _step(value: Floats, labels: Floats, rate: float) -> Floats:
    """Return a step along a gradient: the curvature of a softmax is at most half a label."""
    return value / (0.5 * labels[:, :, None] + rate)


def _given(part: Part, posterior: Floats) -> Floats:
    """Return the expected number of labels: (annotator, true class, given class)."""
    total = (part.labels.T @ posterior).reshape(-1, part.n_classes, part.n_classes)
    return total.swapaxes(1, 2)


def _pieces(part: Part) -> Iterator[Part]:
    """Yield ranges of items of a part, small enough to expand their annotations."""
    size = max(_CELLS // part.n_classes**2, 1)
    cuts = np.searchsorted(part.index, np.arange(size, part.index[-1], size))
    for first, last in pairwise([0, *np.unique(cuts).tolist(), part.stop - part.start]):
        rows = slice(part.index[first], part.index[last])
        yield replace(
            part,
            start=part.start + first,
            stop=part.start + last,
            index=part.index[first : last + 1] - part.index[first],
            annotator=part.annotator[rows],
            label=part.label[rows],
            ones=part.ones[rows],
            gold=None if part.gold is None else part.gold[first:last],
        )


def _expand(piece: Part, odds: Floats, params: Effects) -> Expanded:
    """Return the posterior of some items, and what it is computed from."""
    by_item, item = params.by_item[piece.start : piece.stop], piece.item
    label_odds = odds.take(piece.annotator, 0)
    totals = _totals(label_odds, np.exp(by_item).take(item, 0))
    votes, n_classes = piece.votes(), piece.n_classes
    own = params.by_annotator.swapaxes(1, 2).reshape(-1, n_classes)  # (annotator and label, true)
    joint = np.log(params.prior) + piece.labels @ own + np.einsum("ig,itg->it", votes, by_item)
    joint -= _sum_by_item(piece) @ np.log(totals)
    return Expanded(*log_normalize(joint, piece.allowed), label_odds, totals)


def _first_items(part: Part, odds: Floats, posterior: Floats, rate: float) -> Floats:
    """Return the effects of the items of a part after one step from zero."""
    out = [np.empty((0, part.n_classes, part.n_classes))]
    for piece in _pieces(part):
        label_odds, own = odds.take(piece.annotator, 0), posterior[piece.start : piece.stop]
        zero = np.zeros((len(own), *odds.shape[1:]))
        out.append(
            _move_items(piece, Expanded(0.0, own, label_odds, label_odds.sum(axis=2)), zero, rate)
        )
    return np.concatenate(out)


def _move_items(piece: Part, expanded: Expanded, effects: Floats, rate: float) -> Floats:
    """Return better effects of some items: (item, true class, given class)."""
    weight = expanded.posterior[piece.item] / expanded.totals
    expected = np.exp(effects) * _add_up(_sum_by_item(piece), weight, expanded.odds)
    observed = expanded.posterior[:, :, None] * piece.votes()[:, None, :]
    labels = expanded.posterior * np.diff(piece.index)[:, None]
    return effects + _step(observed - expected - rate * effects, labels, rate)


def _pass(part: Part, params: Effects, rate: float) -> tuple[Expected, Floats, Floats]:
    """Return expected sums of a part, its posterior, and better effects of its items."""
    odds, evidence, sums = np.exp(params.by_annotator), 0.0, np.zeros_like(params.by_annotator)
    posterior = np.empty((part.stop - part.start, part.n_classes))
    by_item = np.empty((len(posterior), *params.common.shape))
    for piece in _pieces(part):
        rows = slice(piece.start - part.start, piece.stop - part.start)
        expanded = _expand(piece, odds, params)
        evidence, posterior[rows] = evidence + expanded.evidence, expanded.posterior
        old = params.by_item[piece.start : piece.stop]
        by_item[rows] = _move_items(piece, expanded, old, rate)
        items = np.exp(by_item[rows]).take(piece.item, 0)
        weight = expanded.posterior[piece.item] / _totals(expanded.odds, items)
        sums += _add_up(_sum_by_annotator(piece), weight, items)
    observed, labelled = _given(part, posterior), np.diff(part.index) > 0
    true = posterior[labelled].sum(axis=0)
    return (
        Expected(evidence, true, observed - odds * sums, observed.sum(axis=2)),
        posterior,
        by_item,
    )


def _totals(odds: Floats, items: Floats) -> Floats:
    """Return the sums of products over given classes: (annotation, true class)."""
    return np.einsum("ntg,ntg->nt", odds, items)


def _add_up(groups: Any, weight: Floats, values: Floats) -> Floats:
    """Return weighted sums of the values of annotations: (group, true class, given class)."""
    n, *shape = values.shape
    weighted = (weight[:, :, None] * values).reshape(n, shape[0] * shape[1])
    return (groups @ weighted).reshape(groups.shape[0], *shape)


def _sum_by_item(part: Part) -> Any:
    """Return the matrix that adds up annotations by item: (item, annotation)."""
    shape = (part.stop - part.start, len(part.ones))
    return sparse.csr_array((part.ones, np.arange(shape[1]), part.index), shape=shape)


def _sum_by_annotator(part: Part) -> Any:
    """Return the matrix that adds up annotations by annotator: (annotator, annotation)."""
    rows = np.arange(len(part.ones) + 1)
    shape = (len(part.ones), part.n_annotators)
    return sparse.csr_array((part.ones, part.annotator, rows), shape=shape).T
