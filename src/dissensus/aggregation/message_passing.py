"""Messages between items and annotators along the edges of their bipartite graph.

An item tells each of its annotators how probable its classes are by the labels of the others; an
annotator tells each item how far to trust them by their labels elsewhere. Karger, Oh & Shah (2011)
pass on plain sums, Liu, Peng & Ihler (2012) probabilities (belief propagation) or, leaving out
nobody, mean-field expectations.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, NamedTuple

import numpy as np
from scipy import sparse
from scipy.special import expit

from ..answers.annotations import Annotations, Part
from ..base.arrays import Array, Floats, Integers
from ..base.iteration import iterate
from ..base.probability import expected_log, log_normalize, negative_kl, normalize, safe_log
from ..method import Fitted
from ..params import Count, NonNegative, Positive
from .aggregation import ClassAggregation
from .bcc import DirichletModel, DirichletPosterior
from .classes import ClassContext, ClassMethod
from .dawid_skene import Confusion, Counts
from .votes import WeightedVote, Weights, record_against

_ZERO = 1e-9  # messages are around one; smaller values are rounding errors
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(16)  # on -1 to 1
_REACH = 6.0  # half the width of a window, in standard deviations,
_GAPS = 3.0  # and at least so many gaps between nodes
_CELLS = 2**20  # floats to work on at once
_SURE = 50.0  # log-odds of gold
_KNOWN = 1e12  # count of every class: the prevalence is certain


class Edges(NamedTuple):
    """Pairs of an item and an annotator, and how often each of two classes was given."""

    item: Integers  # (edge), ascending
    annotator: Array  # (edge)
    counts: Floats  # (edge, class): number of labels
    n_items: int
    n_annotators: int

    @classmethod
    def of(cls, annotations: Annotations) -> Edges:
        """Return the graph of annotations with at most two classes; repeated labels add up."""
        item = annotations.item.astype(np.int64)
        counts = np.eye(2)[annotations.label.astype(np.int64)]
        new = np.ones(len(item), dtype=bool)  # rows are sorted by item, then annotator
        new[1:] = (item[1:] != item[:-1]) | (
            annotations.annotator[1:] != annotations.annotator[:-1]
        )
        starts = np.flatnonzero(new)
        if len(starts) < len(item):
            counts = np.add.reduceat(counts, starts, axis=0)
        annotator = annotations.annotator[starts]
        return cls(
            item=item[starts],
            annotator=annotator,
            counts=counts,
            n_items=annotations.n_items,
            n_annotators=annotations.n_annotators,
        )

    @property
    def sign(self) -> Floats:
        """Labels of the second class less labels of the first: (edge)."""
        return self.counts[:, 1] - self.counts[:, 0]

    def by_item(self, value: Floats) -> Floats:
        """Return values of edges, summed for every item."""
        return np.bincount(self.item, value, self.n_items).astype(float)

    def by_annotator(self, value: Floats) -> Floats:
        """Return values of edges, summed for every annotator."""
        return np.bincount(self.annotator, value, self.n_annotators).astype(float)


def group_sum(group: Array, size: int) -> sparse.csr_array[Any, Any]:
    """Return the matrix that adds up the rows of every group: (group, row)."""
    entries, order = np.ones(len(group)), np.arange(len(group))
    return sparse.csr_array((entries, (group, order)), shape=(size, len(group)))


@dataclass(frozen=True, kw_only=True)
class Kos(WeightedVote):
    """Message passing between items and annotators; two classes only.

    Karger, Oh & Shah (2011): messages between items and annotators, for two classes.

    Labels are signs, `sign[i, a]`. An annotator sends each item a reliability, estimated from their
    other items; an item sends each annotator a score of its class, estimated from its other
    annotators:

        score[i to a] = sum over the others b of i: sign[i, b] * reliability[b to i]
        reliability[a to i] = sum over the other items j of a: sign[j, a] * score[j to a]

    After some iterations an item's class is the sign of the sum of `sign * reliability`. Gold items
    keep the score of their class. The sign is not identified; the one that agrees with most votes
    is taken. Where all messages to an item are zero, plain votes decide.

    The first messages are all one by default, so that names do not matter; the paper draws them
    from Normal(1, 1). On sparse random designs the method is nearly optimal; on real data with
    uneven numbers of labels it may fail.

    When it fails: With uneven numbers of labels per item or annotator, or with classes of unequal
    prevalence: on 13 public sets with two classes it is right in 77 %, and on rte in 50 %.

        D. R. Karger, S. Oh, D. Shah. Iterative learning for reliable crowdsourcing systems.
        NeurIPS 2011

    Parameters
    ----------
    max_iter
        Number of iterations.
    begin
        The first messages: all `ones`, or `random` around one (by the seed).

    Examples
    --------
    >>> from dissensus import Annotations
    >>> annotations = Annotations.from_columns("aaabbb", "xyzxyz", "001110")
    >>> Kos().fit(annotations).labels.tolist()
    ['0', '1']
    """

    additive: ClassVar[bool] = False
    max_classes: ClassVar[int] = 2

    max_iter: Count = 10
    begin: Literal["ones", "random"] = "ones"

    def infer(self, fit: ClassContext) -> ClassAggregation:
        params, posterior = self._solve(fit)
        return self.result(fit, posterior, Fitted(params))

    def estimate_params(self, fit: ClassContext) -> Fitted:
        return Fitted(self._solve(fit)[0])

    def _solve(self, fit: ClassContext) -> tuple[Weights, Floats]:
        """Return the weights of annotators for other items, and the posterior of these items."""
        edges = Edges.of(fit.answers)
        reliability, weight = self._messages(fit, edges)
        posterior = _posterior(edges, reliability, fit.answers)
        return record_against(fit, posterior).weights(weight), posterior

    def _messages(self, fit: ClassContext, edges: Edges) -> tuple[Floats, Floats]:
        """Return the last messages to items, and those that an item elsewhere would get."""
        sign = edges.sign
        reliability = np.ones(len(sign))
        if self.begin == "random":
            reliability += np.random.default_rng(fit.seed).standard_normal(len(reliability))
        gold = np.full(fit.answers.n_items, -1) if fit.gold is None else fit.gold
        gold_edges = np.flatnonzero(gold[edges.item] >= 0)
        truth = 2.0 * gold[edges.item[gold_edges]] - 1
        for _ in range(self.max_iter):
            vote = sign * reliability
            score = edges.by_item(vote)[edges.item] - vote
            score[gold_edges] = truth * (_scale(score) or 1.0)
            agreement = sign * score
            weight = edges.by_annotator(agreement)
            reliability = weight[edges.annotator] - agreement
            scale = _scale(reliability) or 1.0
            reliability, weight = reliability / scale, weight / scale
        reliability[np.abs(reliability) < _ZERO] = 0
        total = edges.by_item(sign * reliability)
        side = np.where(np.abs(total) < _ZERO, 0, np.sign(total))
        flip = -1.0 if side @ edges.by_item(sign) < 0 else 1.0
        return flip * reliability, flip * weight


def _posterior(edges: Edges, reliability: Floats, annotations: Annotations) -> Floats:
    """Return the share of reliability for either class: (item, class)."""
    vote = edges.sign * reliability
    sides = [edges.by_item(np.maximum(side, 0)) for side in (-vote, vote)]
    posterior = np.stack(sides, axis=1)[:, : annotations.n_classes]
    zero = posterior.sum(axis=1) == 0
    posterior[zero] = annotations.votes()[zero]
    return normalize(posterior)


def _scale(message: Floats) -> float:
    """Return the root mean square of messages."""
    return float(np.sqrt(np.mean(message**2))) if len(message) else 0.0


class _State(NamedTuple):
    """Messages and windows after an iteration."""

    message: Floats  # (edge): log-odds of the second class, sent by the annotator
    window: Floats  # (annotator, class, 2): lowest and highest angle of the accuracy
    accuracy: Floats  # (annotator, class): posterior mean
    posterior: Floats  # (item): of the second class
    objective: float = np.nan  # none


@dataclass(frozen=True, kw_only=True)
class ViBp(ClassMethod):
    """Two accuracies per annotator, by sum-product message passing; two classes only.

    Sum-product message passing of Liu, Peng & Ihler (2012): two coins per annotator.

    An annotator labels an item of the second class right with probability `accuracy[1]`, one of the
    first class with `accuracy[0]`; both have a Beta(right, wrong) prior, and the prevalence is
    uniform. Messages are log-odds of the second class. An item sends each annotator the sum of the
    messages of its others; an annotator sends each item

        log E[P(labels | second class) / mixture] - log E[P(labels | first class) / mixture]

    where `mixture` is the probability of the labels on this item under the message it sent, and the
    expectation is over the annotator's accuracies given all their labels:

        density(accuracies) ∝ prior * product over items of
            P(second) P(labels | second class) + P(first) P(labels | first class)

    so dividing by the mixture leaves the item out. The paper sums over all assignments of classes
    to items; here the same integral is computed by Gauss-Legendre quadrature over both accuracies,
    in angles (accuracy = sin²) and a window that follows the density. The cost of an iteration
    grows with the number of labels alone. Gold items send their class.

    There is no objective that rises, and messages may oscillate; the posterior of a converged fit
    is not exact, but often close. With a flat prior and certain messages this is `kos` (paper,
    section 4).

    When it fails: On unequal classes, since the prevalence is uniform, and with many labels per
    annotator messages may oscillate without converging.

        Q. Liu, J. Peng, A. Ihler. Variational inference for crowdsourcing. Advances in Neural
        Information Processing Systems 25, 2012.

    Parameters
    ----------
    max_iter
        Maximum number of iterations.
    tol
        Largest change of a posterior at which the fit has converged.
    right
        Pseudo-counts of every annotator on the right label, for every true class.
    wrong
        Pseudo-counts on the other label.

    Examples
    --------
    >>> from dissensus import Annotations
    >>> annotations = Annotations.from_columns("aaabbb", "xyzxyz", "001110")
    >>> ViBp().fit(annotations).labels.tolist()
    ['0', '1']
    """

    params_type: ClassVar[type] = Confusion
    max_classes: ClassVar[int] = 2

    max_iter: Count = 100
    tol: NonNegative = 1e-4
    right: Positive = 2.0
    wrong: Positive = 1.0

    def infer(self, fit: ClassContext) -> ClassAggregation:
        reached, fitted = self._solve(fit)
        posterior = np.stack([1 - reached.posterior, reached.posterior], axis=1)
        return self.result(fit, normalize(posterior[:, : fit.answers.n_classes]), fitted)

    def estimate_params(self, fit: ClassContext) -> Fitted:
        return self._solve(fit)[1]

    def part_posterior(self, part: Part, params: Confusion) -> Floats:
        joint = part.labels @ params.log_given + params.log_prior
        return log_normalize(joint, part.allowed)[1]

    def n_floats(self, annotations: Annotations) -> int:
        largest = int(annotations.labels_per_annotator.max(initial=0))
        cells = max(largest * len(_NODES) ** 2, _CELLS)
        return super().n_floats(annotations) + 6 * len(annotations) + 4 * cells

    def _solve(self, fit: ClassContext) -> tuple[_State, Fitted]:
        """Return the last state, and the mean accuracies as confusion matrices."""
        edges = Edges.of(fit.answers)
        gold = np.full(edges.n_items, -1) if fit.gold is None else fit.gold
        has_gold, truth = gold[edges.item] >= 0, 2.0 * gold[edges.item] - 1
        order = np.argsort(edges.annotator, kind="stable")

        def advance(last: _State) -> _State:
            odds = edges.by_item(last.message)[edges.item] - last.message
            odds = np.where(has_gold, truth * _SURE, odds)
            message, window, accuracy = np.empty_like(odds), *map(np.empty_like, last[1:3])
            for annotators, at in _blocks(edges, order):
                message[at], window[annotators], accuracy[annotators] = self._annotators(
                    edges.annotator[at] - annotators.start,
                    edges.counts[at],
                    odds[at],
                    last.window[annotators],
                )
            return _State(message, window, accuracy, expit(edges.by_item(message)))

        def has_converged(_: list[float], state: _State, last: _State) -> bool:
            return bool(np.abs(state.posterior - last.posterior).max(initial=0.0) <= self.tol)

        shape = (edges.n_annotators, 2)
        full = np.broadcast_to([0.0, np.pi / 2], (*shape, 2)).copy()
        start = _State(edges.sign, full, np.empty(shape), np.full(edges.n_items, np.nan))
        reached = iterate(
            start, advance, has_converged, max_iter=self.max_iter, progress=fit.progress
        )
        params = _matrices(reached.state.accuracy, fit.answers.n_classes)
        return reached.state, Fitted(params, (), reached.converged)

    def _annotators(
        self, annotator: Integers, counts: Floats, odds: Floats, window: Floats
    ) -> tuple[Floats, Floats, Floats]:
        """Return messages, windows and mean accuracies of some annotators."""
        middle, half = window.mean(axis=2), np.diff(window, axis=2)[:, :, 0] / 2
        angle = middle[:, :, None] + half[:, :, None] * _NODES  # (annotator, class, node)
        log_right = 2 * safe_log(np.sin(angle))
        log_wrong = 2 * safe_log(np.cos(angle))
        # The density of the angle, times the weight of the node.
        log_prior = (self.right - 0.5) * log_right + (self.wrong - 0.5) * log_wrong
        log_prior += safe_log(half)[:, :, None] + np.log(_WEIGHTS)
        right, wrong = counts[:, :, None], counts[:, ::-1, None]
        likelihood = np.exp(right * log_right[annotator] + wrong * log_wrong[annotator])
        first, second = likelihood[:, 0], likelihood[:, 1]  # (edge, node)
        mixture = (expit(-odds)[:, None] * first)[:, :, None]
        mixture = mixture + (expit(odds)[:, None] * second)[:, None, :]  # (edge, node, node)
        log_density = group_sum(annotator, len(window)) @ safe_log(mixture).reshape(len(odds), -1)
        log_density = log_density.reshape(-1, len(_NODES), len(_NODES))
        log_density += log_prior[:, 0, :, None] + log_prior[:, 1, None, :]
        density = np.exp(log_density - log_density.max(axis=(1, 2), keepdims=True))
        density /= density.sum(axis=(1, 2), keepdims=True)
        without = density[annotator] / np.maximum(mixture, 1e-300)
        message = safe_log(np.einsum("efs,es->e", without, second))
        message -= safe_log(np.einsum("efs,ef->e", without, first))
        marginal = np.stack([density.sum(axis=2), density.sum(axis=1)], axis=1)
        mean = (marginal * angle).sum(axis=2)
        spread = np.sqrt((marginal * (angle - mean[:, :, None]) ** 2).sum(axis=2))
        reach = np.maximum(_REACH * spread, _GAPS * 2 * half / len(_NODES))
        ends = np.stack([mean - reach, mean + reach], axis=2)
        accuracy = (marginal * np.exp(log_right)).sum(axis=2)
        return message, np.clip(ends, 0.0, np.pi / 2), accuracy


def _blocks(edges: Edges, order: Integers) -> Iterator[tuple[slice, Integers]]:
    """Yield ranges of annotators with their edges, few enough to work on at once."""
    count = np.bincount(edges.annotator, minlength=edges.n_annotators)
    end = np.cumsum(count)
    work = np.cumsum(count + 1) * len(_NODES) ** 2
    start = 0
    while start < len(count):
        spent = work[start - 1] if start else 0
        stop = max(int(np.searchsorted(work, spent + _CELLS, side="right")), start + 1)
        yield slice(start, stop), order[end[start] - count[start] : end[stop - 1]]
        start = stop


def _matrices(accuracy: Floats, n_classes: int) -> Confusion:
    """Return confusion matrices of these accuracies and a uniform prevalence."""
    if n_classes == 1:
        return Confusion(np.zeros(1), np.zeros((len(accuracy), 1)))
    log_given = np.log(np.where(np.eye(2, dtype=bool), accuracy[:, None], 1 - accuracy[:, None]))
    return Confusion(np.full(2, -np.log(2)), log_given.reshape(-1, 2))


def coin_counts(right: float, wrong: float, n_classes: int) -> Floats:
    """Return the prior pseudo-counts of an annotator: (given class, true class).

    >>> coin_counts(2, 1, 2).tolist()
    [[2.0, 1.0], [1.0, 2.0]]
    """
    return np.where(np.eye(n_classes, dtype=bool), float(right), float(wrong))


@dataclass(frozen=True, kw_only=True)
class ViMf(DirichletModel):
    """One confusion matrix per annotator and a uniform prevalence, by mean field.

    Mean-field variational inference of Liu, Peng & Ihler (2012): two coins per annotator.

    The model is that of `bcc` with a uniform prevalence that is not estimated. A priori an
    annotator has `right` pseudo-counts on the right label and `wrong` on every other one: for two
    classes, a Beta(2, 1) on sensitivity and specificity alike. For more classes every row is a
    Dirichlet. Posteriors of items and matrices are improved in turns, from vote shares; the
    objective, the evidence lower bound, never falls. A class that is rare stays as probable a
    priori as the others, which costs accuracy on imbalanced data: 83.9 % on d_product, where votes
    have 89.7 %.

        log posterior[i, t] = Σ_a E log confusion[a, t, label of a on i] + constant

    When it fails: On unequal classes, since the prevalence is fixed to be uniform (see above).

        Q. Liu, J. Peng, A. Ihler. Variational inference for crowdsourcing. Advances in Neural
        Information Processing Systems 25, 2012.

    Parameters
    ----------
    right
        Pseudo-counts of every annotator on the right label, for every true class.
    wrong
        Pseudo-counts on each other label.

    Examples
    --------
    >>> from dissensus import Annotations
    >>> annotations = Annotations.from_columns("aaabbb", "xyzxyz", "001110")
    >>> ViMf().fit(annotations).quality.round(2).tolist()
    [0.73, 0.73, 0.52]
    """

    right: Positive = 2.0
    wrong: Positive = 1.0

    def update(self, counts: Counts, last: DirichletPosterior | None) -> DirichletPosterior:
        n_classes = len(counts.true)
        base = coin_counts(self.right, self.wrong, n_classes)
        cells = counts.given_true.reshape(-1, n_classes, n_classes) + base
        return DirichletPosterior(
            log_prior=np.full(n_classes, -np.log(n_classes)),
            log_given=expected_log(cells, axis=1).reshape(-1, n_classes),
            true=np.full(n_classes, _KNOWN),
            given_true=cells.reshape(-1, n_classes),
            base=base,
        )

    def log_prior(self, params: DirichletPosterior) -> float:
        return negative_kl(params.cells, params.base, axis=1)
